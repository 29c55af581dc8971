//! Putting particles in: cell by cell, each from its own random numbers, some cells at a time ([`Batch`]) in an order in which
//! neighbours in memory sit in different cells. [`Source`] makes them on any thread; a store takes them as they come
//! (`Stages::fill`) or in portions.

mod file;
mod half_step_back;
pub(crate) mod lanes;
mod portions;
mod quiet;
mod random;
mod relativistic;
pub(crate) mod uniform;

use zellige_engine::error::{Problem, Result};
use zellige_engine::real::Isa;
use zellige_engine::rng::Philox;

pub(crate) use self::file::Bounds;
pub use self::file::Listed;
pub use self::half_step_back::back_push;
pub(crate) use self::portions::joined;
use self::quiet::Halton;
use self::random::Draws;
pub(crate) use self::uniform::RowOfCells;
pub use self::uniform::UniformSource;
use crate::config::species::Positions;
use crate::sampling::{Purpose, Stream, purpose};
use crate::setup::{Load, Model, Profile, ThermalSpread, absolute, bad_density, input};
use crate::stages::Setup;

/// Particles of some cells: the first one of every cell, then the second one of every cell, and so on.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The cells.
    pub cells: Vec<[u32; 2]>,
    /// Their columns, counted from the start of the run, and their rows: counters of random numbers.
    columns: Vec<u64>,
    rows: Vec<u64>,
    wanted: Vec<u32>,
    /// Index of the cell of each particle.
    pub cell: Vec<u32>,
    draws: Draws,
    /// Offsets from the cell's centre.
    pub s: Vec<f64>,
    /// See above.
    pub t: Vec<f64>,
    /// `gamma v/c`, per component.
    pub u: [Vec<f64>; 3],
    /// Factor to the species' weight; empty where all are 1.
    pub weight: Vec<f64>,
    /// Tag; empty where there are none.
    pub tag: Vec<u64>,
}

impl Batch {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.cell.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.cell.is_empty()
    }

    /// Other cells, without particles.
    fn begin(&mut self, cells: impl Iterator<Item = [u32; 2]>, moved: u64) {
        self.cells.clear();
        self.cells.extend(cells);
        self.columns.clear();
        self.columns.extend(self.cells.iter().map(|c| u64::from(c[0]) + moved));
        self.rows.clear();
        self.rows.extend(self.cells.iter().map(|c| Stream::first(c[1] as usize)));
        self.cell.clear();
        self.draws.clear();
        self.weight.clear();
        self.tag.clear();
    }

    /// Deals `wanted` particles to each cell.
    fn assign_counts(&mut self) {
        let all = self.cells.len();
        let (least, most) = self.wanted.iter().fold((u32::MAX, 0), |(a, b), n| (a.min(*n), b.max(*n)));
        let total = self.wanted.iter().map(|n| *n as usize).sum();
        self.cell.reserve(total);
        self.draws.reserve(total);
        // One in each cell, as often as every cell has one.
        let even = least.min(most) as usize * all;
        self.cell.extend(0..if even > 0 { all as u32 } else { 0 });
        repeat(&mut self.cell, all, even);
        for (to, from) in [(&mut self.draws.columns, &self.columns), (&mut self.draws.rows, &self.rows)] {
            to.extend_from_slice(&from[..all.min(even)]);
            repeat(to, all, even);
        }
        (self.draws.cells, self.draws.paired) = (all, even / (2 * all.max(1)) * 2 * all);
        self.draws.numbers.resize(even, 0);
        for (k, numbers) in self.draws.numbers.chunks_exact_mut(all.max(1)).enumerate() {
            numbers.fill(k as u32);
        }
        for k in least.min(most)..most {
            for c in (0..all).filter(|c| self.wanted[*c] > k) {
                self.cell.push(c as u32);
                self.draws.columns.push(self.columns[c]);
                self.draws.rows.push(self.rows[c]);
                self.draws.numbers.push(k);
            }
        }
    }

    /// Leaves out the particles without density and deals the others anew.
    fn leave_out(&mut self, kept: &[bool]) {
        let mut of_cell = vec![Vec::new(); self.cells.len()];
        for (p, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
            of_cell[self.cell[p] as usize].push(p);
        }
        let most = of_cell.iter().map(Vec::len).max().unwrap_or(0);
        let order: Vec<usize> = (0..most).flat_map(|k| of_cell.iter().filter_map(move |of| of.get(k).copied())).collect();
        fn picked<T: Copy>(values: &mut Vec<T>, order: &[usize]) {
            if !values.is_empty() {
                *values = order.iter().map(|p| values[*p]).collect();
            }
        }
        picked(&mut self.cell, &order);
        picked(&mut self.s, &order);
        picked(&mut self.t, &order);
        picked(&mut self.weight, &order);
        picked(&mut self.tag, &order);
        self.draws.clear();
        let mut number = vec![0; self.cells.len()];
        for c in self.cell.iter().map(|c| *c as usize) {
            self.draws.columns.push(self.columns[c]);
            self.draws.rows.push(self.rows[c]);
            self.draws.numbers.push(number[c]);
            number[c] += 1;
        }
    }
}

/// Repeats the first `period` values, which are all there are, up to `len`: a multiple of them.
fn repeat<T: Copy>(values: &mut Vec<T>, period: usize, len: usize) {
    debug_assert!(values.len() == period.min(len));
    while values.len() < len {
        values.extend_from_within(..values.len().min(len - values.len()));
    }
}

/// Particles of one species as they are put in.
pub struct Source<'a> {
    model: &'a Model,
    load: &'a Load,
    setup: &'a Setup,
    /// Cells that the box has moved by.
    moved: u64,
    total_field: &'a [Vec<f64>; 6],
    isa: Isa,
    /// Offsets of the particles of a full cell where they are the same in each.
    offsets: Vec<[f64; 2]>,
    quiet: Option<[Halton; 3]>,
}

impl<'a> Source<'a> {
    /// Of species `s` of `model` in a box that has moved by `moved` cells. Momenta are taken half a step back in the fields
    /// `total_field`, over all corners with guards (empty ones are zero).
    pub fn new(model: &'a Model, setup: &'a Setup, s: usize, moved: u64, total_field: &'a [Vec<f64>; 6]) -> Self {
        let load = &model.loads[s];
        let offsets = match load.positions {
            Positions::Random => Vec::new(),
            Positions::Lattice | Positions::Quiet => (0..load.per_cell).map(|k| regular(load, load.per_cell, k)).collect(),
        };
        let warm = !matches!(load.heat, ThermalSpread::Cold | ThermalSpread::MaxwellJuttner(_));
        let quiet = (load.quiet && warm).then(|| quiet::bases(model.grid.dimensions));
        Self { model, load, setup, moved, total_field, isa: Isa::best(), offsets, quiet }
    }

    /// Particles that `cells` hold at most.
    fn most(&self, cells: usize) -> usize {
        cells * self.load.per_cell
    }

    /// The particles of `cells`.
    pub fn fill(&self, cells: impl Iterator<Item = [u32; 2]>, out: &mut Batch) -> Result<()> {
        out.begin(cells, self.moved);
        if let Some(listed) = &self.load.listed {
            let species = &self.load.species;
            listed.take(species.weighted, species.tagged, species.weight, out);
            if !listed.behind {
                half_step_back::back_push_batch(self.setup, self.load.number, self.total_field, out);
            }
            return Ok(());
        }
        let by_number = self.count(out)?;
        out.assign_counts();
        self.draw_positions(out);
        self.weigh(by_number, out)?;
        self.set_momenta(out)?;
        half_step_back::back_push_batch(self.setup, self.load.number, self.total_field, out);
        Ok(())
    }

    fn path(&self, key: &str) -> String {
        absolute(&format!("species[{}].{key}", self.load.number))
    }

    fn density(&self, position: [f64; 2]) -> Result<f64> {
        match self.load.density.at(position) {
            n if n.is_finite() && n >= 0.0 => Ok(n),
            n => Err(bad_density(&self.path("density"), n, position)),
        }
    }

    /// Position of a particle in the input's units.
    fn at(&self, out: &Batch, p: usize) -> [f64; 2] {
        let c = out.cell[p] as usize;
        self.model.position(out.columns[c] as f64 + 0.5 + out.s[p], f64::from(out.cells[c][1]) + 0.5 + out.t[p])
    }

    /// Counts the particles of each cell; true if their number makes the density.
    fn count(&self, out: &mut Batch) -> Result<bool> {
        let load = self.load;
        let by_number = !load.species.weighted && !load.flat;
        out.wanted.clear();
        out.wanted.resize(out.cells.len(), load.per_cell as u32);
        if by_number {
            for (c, wanted) in out.wanted.iter_mut().enumerate() {
                let (column, row) = (out.columns[c], out.cells[c][1] as usize);
                // The mean number is what the density in the centre asks for, and no cell has a fraction of a particle.
                let density = self.density(self.model.position(column as f64 + 0.5, row as f64 + 0.5))?;
                let mean = load.per_cell as f64 * density / load.reference;
                *wanted = (mean + Stream::new(self.model.seed, load.number, Purpose::Count, column, row).open()[0]) as u32;
            }
        }
        Ok(by_number)
    }

    fn philox(&self, what: Purpose) -> Philox {
        Philox::new(purpose::start(self.load.number, what), self.model.seed)
    }

    fn draw_positions(&self, out: &mut Batch) {
        let n = out.len();
        out.s.resize(n, 0.0);
        out.t.resize(n, 0.0);
        if self.load.positions == Positions::Random {
            random::positions(self.isa, self.philox(Purpose::Position), &out.draws, &mut out.s, &mut out.t);
        } else if out.wanted.iter().all(|wanted| *wanted as usize == self.offsets.len()) {
            // All cells are full: their first particles, then their second ones.
            let all = out.cells.len().max(1);
            for (offset, (s, t)) in self.offsets.iter().zip(out.s.chunks_exact_mut(all).zip(out.t.chunks_exact_mut(all))) {
                s.fill(offset[0]);
                t.fill(offset[1]);
            }
        } else {
            for (p, c) in out.cell.iter().enumerate() {
                let (k, wanted) = (out.draws.numbers[p] as usize, out.wanted[*c as usize] as usize);
                [out.s[p], out.t[p]] = if wanted == self.offsets.len() { self.offsets[k] } else { regular(self.load, wanted, k) };
            }
        }
        if self.model.grid.dimensions == 1 {
            out.t.fill(0.0);
        }
    }

    /// Weights and tags; nothing where there is no density.
    fn weigh(&self, by_number: bool, out: &mut Batch) -> Result<()> {
        let (load, n) = (self.load, out.len());
        if load.species.tagged {
            let rows = self.model.grid.cells[1] as u64;
            let tag = |(c, k): (&u32, &u32)| tag(rows, out.columns[*c as usize], out.cells[*c as usize][1], u64::from(*k));
            out.tag.extend(out.cell.iter().zip(&out.draws.numbers).map(tag));
        }
        let mut kept = Vec::new();
        match load.density {
            _ if by_number => {}
            Profile::Number(density) => {
                if load.species.weighted {
                    out.weight.resize(n, density / load.reference);
                }
            }
            _ => {
                for p in 0..n {
                    let density = self.density(self.at(out, p))?;
                    kept.push(density != 0.0);
                    if load.species.weighted {
                        out.weight.push(density / load.reference);
                    }
                }
            }
        }
        if kept.contains(&false) {
            out.leave_out(&kept);
        }
        Ok(())
    }

    /// Momenta.
    fn set_momenta(&self, out: &mut Batch) -> Result<()> {
        let (load, n) = (self.load, out.len());
        for u in &mut out.u {
            u.resize(n, 0.0);
        }
        if let Some(constant) = self.constant(out)? {
            random::normals(self.isa, self.philox(Purpose::Momentum), &out.draws, constant, &mut out.u);
            return Ok(());
        }
        let relativistic = matches!(load.heat, ThermalSpread::MaxwellJuttner(_));
        match &load.heat {
            ThermalSpread::Cold => out.u.iter_mut().for_each(|u| u.fill(0.0)),
            ThermalSpread::MaxwellJuttner(temperature) => self.draw_relativistic(temperature, out)?,
            ThermalSpread::Gaussian(widths) => {
                self.draw_normals(out);
                for (c, width) in widths.iter().enumerate() {
                    self.stretch(c..c + 1, width, |v| v, out)?;
                }
            }
            ThermalSpread::Temperature(temperature) => {
                self.draw_normals(out);
                self.stretch(0..3, temperature, f64::sqrt, out)?;
            }
        }
        if load.corrected {
            take_off_mean(out);
        }
        if !relativistic {
            // A relativistic gas is boosted when it is drawn; a Gaussian is shifted.
            for (c, drift) in load.drift.iter().enumerate() {
                if let Profile::Number(drift) = drift {
                    out.u[c].iter_mut().for_each(|u| *u += drift);
                } else {
                    for p in 0..n {
                        let position = self.at(out, p);
                        out.u[c][p] += drift.at(position);
                    }
                }
            }
        }
        for u in &out.u {
            // Nothing but a number is no more than the largest.
            if !u.iter().fold(true, |all, u| all & (u.abs() <= f64::MAX)) {
                let p = u.iter().position(|u| !u.is_finite()).unwrap_or(0);
                let position = self.at(out, p);
                let message = format!("a momentum at x = {}, y = {} is {}", position[0], position[1], u[p]);
                return Err(input(&self.path("momentum"), Problem::new("", message).allowed("finite numbers")));
            }
        }
        Ok(())
    }

    /// Widths and drifts where they are all that becomes of normal numbers, the same everywhere, and make nothing but numbers of
    /// them.
    fn constant(&self, out: &Batch) -> Result<Option<[[f64; 3]; 2]>> {
        let load = self.load;
        if self.quiet.is_some() || load.corrected || out.is_empty() {
            return Ok(None);
        }
        let number = |profile: &Profile| if let Profile::Number(value) = profile { Some(*value) } else { None };
        let three = |profiles: &[Profile; 3]| Some([number(&profiles[0])?, number(&profiles[1])?, number(&profiles[2])?]);
        let widths = match &load.heat {
            ThermalSpread::Cold | ThermalSpread::MaxwellJuttner(_) => None,
            ThermalSpread::Gaussian(widths) => three(widths),
            ThermalSpread::Temperature(temperature) => number(temperature).map(|t| [t; 3]),
        };
        let (Some(mut widths), Some(drifts)) = (widths, three(&load.drift)) else { return Ok(None) };
        for (width, drift) in widths.iter_mut().zip(drifts) {
            *width = self.warm(*width, out, 0)?;
            if matches!(load.heat, ThermalSpread::Temperature(_)) {
                *width = width.sqrt();
            }
            // The longest normal number of 32 random bits is 6.8.
            if !(7.0 * *width + drift.abs()).is_finite() {
                return Ok(None);
            }
        }
        Ok(Some([widths, drifts]))
    }

    fn draw_normals(&self, out: &mut Batch) {
        let Some(bases) = &self.quiet else {
            random::normals(self.isa, self.philox(Purpose::Momentum), &out.draws, random::AS_THEY_ARE, &mut out.u);
            return;
        };
        for (p, c) in out.cell.iter().enumerate() {
            let (column, row) = (out.columns[*c as usize], out.cells[*c as usize][1]);
            let normal = quiet::normal(bases, out.draws.numbers[p] as usize, self.load.per_cell, column, row as usize);
            (0..3).for_each(|c| out.u[c][p] = normal[c]);
        }
    }

    /// Multiplies components by what `of` makes of a width or temperature.
    fn stretch(&self, components: std::ops::Range<usize>, profile: &Profile, of: impl Fn(f64) -> f64, out: &mut Batch) -> Result<()> {
        if let (Profile::Number(value), false) = (profile, out.is_empty()) {
            let width = of(self.warm(*value, out, 0)?);
            out.u[components].iter_mut().flatten().for_each(|u| *u *= width);
            return Ok(());
        }
        for p in 0..out.len() {
            let width = of(self.warm(profile.at(self.at(out, p)), out, p)?);
            out.u[components.clone()].iter_mut().for_each(|u| u[p] *= width);
        }
        Ok(())
    }

    /// A width or a temperature, which must be one.
    fn warm(&self, value: f64, out: &Batch, p: usize) -> Result<f64> {
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        let [x, y] = self.at(out, p);
        let message = format!("the temperature or thermal momentum at x = {x}, y = {y} is {value}");
        Err(input(&self.path("momentum"), Problem::new("", message).allowed("finite, 0 or more")))
    }
}

/// Tag of particle `k` of a cell in a box of so many rows: unique as long as a run has fewer than 2^20 particles per cell and fewer
/// than 2^44 cells.
fn tag(rows: u64, column: u64, row: u32, k: u64) -> u64 {
    ((column * rows + u64::from(row)) << 20) + k + 1
}

/// Offset from the cell's centre of particle `k` of `n` where there is nothing random to it; one of two dimensions.
fn regular(load: &Load, n: usize, k: usize) -> [f64; 2] {
    let [x, y] = if load.positions == Positions::Lattice && n == load.per_cell {
        let [nx, ny] = load.lattice;
        [((k % nx) as f64 + 0.5) / nx as f64, ((k / nx) as f64 + 0.5) / ny as f64]
    } else {
        quiet::position(n, k)
    };
    [x - 0.5, y - 0.5]
}

/// Takes the mean of a cell's momenta off them.
fn take_off_mean(out: &mut Batch) {
    let mut counts = vec![0_u32; out.cells.len()];
    out.cell.iter().for_each(|c| counts[*c as usize] += 1);
    for u in &mut out.u {
        let mut means = vec![0.0; out.cells.len()];
        out.cell.iter().zip(&*u).for_each(|(c, u)| means[*c as usize] += u);
        // One particle has no spread that could be told from its drift.
        means.iter_mut().zip(&counts).for_each(|(sum, n)| *sum = if *n < 2 { 0.0 } else { *sum / f64::from(*n) });
        out.cell.iter().zip(u).for_each(|(c, u)| *u -= means[*c as usize]);
    }
}
