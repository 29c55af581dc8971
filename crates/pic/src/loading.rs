//! Putting particles in: cell by cell, each from its own random numbers, then in an order in which neighbours in memory sit in
//! different cells.

use std::ops::Range;

use zellige_engine::error::{Problem, Result};
use zellige_engine::parallel::{each, indices, items, items_mut, map, owned};

use crate::config::species::Positions;
use crate::grid::{BELOW, Grid};
use crate::particles::{Particles, Species};
use crate::sampling::{Purpose, Stream, half_step_back, normal_quantile, radical_inverse};
use crate::setup::{Heat, Load, Model, absolute, bad_density, input};
use crate::stages::Component;

/// Particles generated at a time.
const PORTION: usize = 1 << 22;

impl Model {
    /// The particles of species `s` in the columns `columns` of the box, which has moved by `moved` cells, in portions.
    pub fn particles(&self, s: usize, columns: Range<usize>, moved: u64, mut give: impl FnMut(Particles) -> Result<()>) -> Result<()> {
        let load = &self.loads[s];
        let row = (columns.len() * load.per_cell).max(1);
        let rows = (PORTION / row).clamp(1, self.grid.cells[1]);
        let mut first = 0;
        while first < self.grid.cells[1] {
            let band = first..(first + rows).min(self.grid.cells[1]);
            first = band.end;
            let parts: Vec<(Particles, Vec<u32>)> =
                map(band, |_, j| self.row(load, j, columns.clone(), moved)).into_iter().collect::<Result<_>>()?;
            give(dealt(&parts))?;
        }
        Ok(())
    }

    /// The particles of a row of cells, and how many each cell has.
    fn row(&self, load: &Load, j: usize, columns: Range<usize>, moved: u64) -> Result<(Particles, Vec<u32>)> {
        let (mut out, mut counts) = (Particles::default(), Vec::with_capacity(columns.len()));
        for i in columns {
            let before = out.len();
            self.cell(load, i as u32, j, i as u64 + moved, &mut out)?;
            counts.push((out.len() - before) as u32);
        }
        Ok((out, counts))
    }

    /// The particles of one cell: column `i` of the box, column `column` counted from the start of the run.
    fn cell(&self, load: &Load, i: u32, j: usize, column: u64, out: &mut Particles) -> Result<()> {
        let stream = |purpose| Stream::new(self.seed, load.number, purpose, column, j);
        let path = || absolute(&format!("species[{}].density", load.number));
        let density = |place: [f64; 2]| match load.density.at(place) {
            n if n.is_finite() && n >= 0.0 => Ok(n),
            n => Err(bad_density(&path(), n, place)),
        };
        let species = &load.species;
        let (mut wanted, by_number) = (load.per_cell, !species.weighted && !load.flat);
        if by_number {
            // The mean number is what the density in the centre asks for, and no cell has a fraction of a particle.
            let mean = load.per_cell as f64 * density(self.place(column as f64 + 0.5, j as f64 + 0.5))? / load.reference;
            wanted = (mean + stream(Purpose::Count).open()[0]) as usize;
        }
        let mut places = stream(Purpose::Place);
        let begin = out.len();
        for k in 0..wanted {
            let [x, y] = offsets(load, wanted, k, self.grid.dimensions, &mut places);
            let place = self.place(column as f64 + 0.5 + x, j as f64 + 0.5 + y);
            let n = if by_number { load.reference } else { density(place)? };
            if n == 0.0 {
                continue;
            }
            out.i.push(i);
            out.j.push(j as u32);
            out.s.push(x);
            out.t.push(y);
            if species.weighted {
                out.weight.push(n / load.reference);
            }
            if species.tagged {
                // Unique as long as a run has fewer than 2^20 particles per cell and fewer than 2^44 cells.
                out.tag.push((((column * self.grid.cells[1] as u64) + j as u64) << 20) + k as u64 + 1);
            }
        }
        let mut momenta = self.spread(load, out.len() - begin, column, j, &out.s[begin..], &out.t[begin..])?;
        if load.corrected {
            take_off_mean(&mut momenta);
        }
        for (n, u) in momenta.iter().enumerate() {
            let place = self.place(column as f64 + 0.5 + out.s[begin + n], j as f64 + 0.5 + out.t[begin + n]);
            let drift = [0, 1, 2].map(|c| load.drift[c].at(place));
            // A relativistic gas is boosted when it is drawn; a Gaussian is shifted.
            let u = if matches!(load.heat, Heat::MaxwellJuttner(_)) { *u } else { [0, 1, 2].map(|c| u[c] + drift[c]) };
            if let Some(bad) = u.iter().find(|c| !c.is_finite()) {
                let path = absolute(&format!("species[{}].momentum", load.number));
                let message = format!("a momentum at x = {}, y = {} is {bad}", place[0], place[1]);
                return Err(input(&path, Problem::new("", message).allowed("finite numbers")));
            }
            for c in 0..3 {
                out.u[c].push(u[c]);
            }
        }
        Ok(())
    }

    /// Momenta about the drift (with it, for a relativistic gas) of the particles of a cell.
    fn spread(&self, load: &Load, n: usize, column: u64, j: usize, s: &[f64], t: &[f64]) -> Result<Vec<[f64; 3]>> {
        let place = |k: usize| self.place(column as f64 + 0.5 + s[k], j as f64 + 0.5 + t[k]);
        let mut stream = Stream::new(self.seed, load.number, Purpose::Momentum, column, j);
        let warm = |value: f64, place: [f64; 2]| {
            if value.is_finite() && value >= 0.0 {
                return Ok(value);
            }
            let path = absolute(&format!("species[{}].momentum", load.number));
            let message = format!("the temperature or thermal momentum at x = {}, y = {} is {value}", place[0], place[1]);
            Err(input(&path, Problem::new("", message).allowed("finite, 0 or more")))
        };
        let mut normals = |k: usize| {
            if load.quiet { quiet_normal(k, load.per_cell, column, j, self.grid.dimensions) } else { stream.normal_vector() }
        };
        match &load.heat {
            Heat::Cold => Ok(vec![[0.0; 3]; n]),
            Heat::Gaussian(widths) => (0..n)
                .map(|k| {
                    let (g, at) = (normals(k), place(k));
                    Ok([g[0] * warm(widths[0].at(at), at)?, g[1] * warm(widths[1].at(at), at)?, g[2] * warm(widths[2].at(at), at)?])
                })
                .collect(),
            Heat::Temperature(temperature) => (0..n)
                .map(|k| {
                    let (g, at) = (normals(k), place(k));
                    let width = warm(temperature.at(at), at)?.sqrt();
                    Ok(g.map(|g| g * width))
                })
                .collect(),
            Heat::MaxwellJuttner(temperature) => (0..n)
                .map(|k| {
                    let at = place(k);
                    let rest = stream.maxwell_juttner(warm(temperature.at(at), at)?);
                    Ok(stream.boosted(rest, [0, 1, 2].map(|c| load.drift[c].at(at))))
                })
                .collect(),
        }
    }
}

/// Offset of particle `k` of `n` from the cell's centre.
fn offsets(load: &Load, n: usize, k: usize, dimensions: usize, stream: &mut Stream) -> [f64; 2] {
    let [x, y] = match load.positions {
        Positions::Random => stream.open(),
        Positions::Lattice if n == load.per_cell => {
            let [nx, ny] = load.lattice;
            [((k % nx) as f64 + 0.5) / nx as f64, ((k / nx) as f64 + 0.5) / ny as f64]
        }
        // Halton's points, moved so that their mean is the centre where `n` is a power of 2.
        Positions::Quiet | Positions::Lattice => {
            [(radical_inverse(2, k as u64) + 0.5 / n as f64).fract(), (radical_inverse(3, k as u64) + 0.5 / n as f64).fract()]
        }
    };
    if dimensions == 1 { [x - 0.5, 0.0] } else { [x - 0.5, y - 0.5] }
}

/// Fractions of a rotation from row to row, per component: roots of primes, so that rows together fill the momenta evenly (a rotation
/// as of Cranley and Patterson, SIAM J. Numer. Anal. 13 (1976) 904, by Weyl's sequence).
const ROTATIONS: [f64; 3] = [0.414_213_562_373_095_05, 0.732_050_807_568_877_3, 0.236_067_977_499_789_7];

/// Normal vector `k` of the `n` of a cell. A row of cells has one Halton sequence, in the dimensions that places leave, which each row
/// turns by another angle: the box has as many different momenta as particles. The same in each cell it would have `n`.
fn quiet_normal(k: usize, n: usize, column: u64, row: usize, dimensions: usize) -> [f64; 3] {
    let bases: [u64; 3] = if dimensions == 1 { [3, 5, 7] } else { [5, 7, 11] };
    // The quantile has no bound at the ends.
    let least = 1e-3 / n as f64;
    std::array::from_fn(|c| {
        let p = (radical_inverse(bases[c], column * n as u64 + k as u64) + row as f64 * ROTATIONS[c]).fract();
        normal_quantile(p.clamp(least, 1.0 - least))
    })
}

fn take_off_mean(vectors: &mut [[f64; 3]]) {
    // One particle has no spread that could be told from its drift.
    if vectors.len() < 2 {
        return;
    }
    for c in 0..3 {
        let mean = vectors.iter().map(|v| v[c]).sum::<f64>() / vectors.len() as f64;
        for v in &mut *vectors {
            v[c] -= mean;
        }
    }
}

/// Rows of cells as one list: the first particle of every cell, then the second one of every cell, and so on.
fn dealt(rows: &[(Particles, Vec<u32>)]) -> Particles {
    // Where each cell of a row begins.
    let begins: Vec<Vec<u32>> =
        map(items(rows), |_, (_, counts)| counts.iter().scan(0, |sum, c| Some(std::mem::replace(sum, *sum + c))).collect());
    let most = map(items(rows), |_, row| row.1.iter().copied().max().unwrap_or(0)).into_iter().max().unwrap_or(0);
    // What a row has for a round of dealing lies in one piece: round, row, length.
    let of_round = |round: u32| {
        rows.iter().enumerate().map(move |(j, row)| (round, j, row.1.iter().filter(|c| **c > round).count())).collect::<Vec<_>>()
    };
    let plan = map(indices(most as usize), |_, round| of_round(round as u32)).concat();
    let deal = Deal { rows, begins: &begins, plan: &plan };
    Particles {
        i: deal.column(|p| &p.i),
        j: deal.column(|p| &p.j),
        s: deal.column(|p| &p.s),
        t: deal.column(|p| &p.t),
        u: [0, 1, 2].map(|c| deal.column(|p| &p.u[c])),
        weight: deal.column(|p| &p.weight),
        tag: deal.column(|p| &p.tag),
    }
}

/// How the particles of rows are dealt.
struct Deal<'a> {
    rows: &'a [(Particles, Vec<u32>)],
    begins: &'a [Vec<u32>],
    plan: &'a [(u32, usize, usize)],
}

impl Deal<'_> {
    /// A column of all rows; empty where theirs are.
    fn column<T: Copy + Default + Send + Sync>(&self, of: impl Fn(&Particles) -> &[T] + Sync) -> Vec<T> {
        let total = self.rows.iter().map(|r| of(&r.0).len()).sum();
        let mut out = vec![T::default(); total];
        if total == 0 {
            return out;
        }
        let mut rest = out.as_mut_slice();
        let pieces: Vec<_> =
            self.plan.iter().map(|(round, j, len)| (rest.split_off_mut(..*len).expect("as many as there are"), *round, *j)).collect();
        each(owned(pieces), |_, (piece, round, j)| {
            let (from, counts) = (of(&self.rows[j].0), &self.rows[j].1);
            let cells = self.begins[j].iter().zip(counts).filter(|(_, n)| **n > round);
            piece.iter_mut().zip(cells).for_each(|(to, (begin, _))| *to = from[(begin + round) as usize]);
        });
        out
    }
}

pub(crate) fn append(all: &mut Particles, more: Particles) {
    all.i.extend(more.i);
    all.j.extend(more.j);
    all.s.extend(more.s);
    all.t.extend(more.t);
    for (to, from) in all.u.iter_mut().zip(more.u) {
        to.extend(from);
    }
    all.weight.extend(more.weight);
    all.tag.extend(more.tag);
}

/// Takes momenta from the time of the places half a step back, in the fields given over all corners with guards (empty ones
/// are zero).
pub fn back_push(grid: &Grid, order: u32, species: &Species, fields: &[Vec<f64>; 6], particles: &mut Particles) {
    if !species.mobile || fields.iter().all(Vec::is_empty) {
        return;
    }
    let alpha = 0.5 * grid.dt * species.charge_to_mass();
    let Particles { i, j, s, t, u, .. } = particles;
    let [ux, uy, uz] = u;
    let columns = (items(i), items(j), items(s), items(t));
    let momenta = (items_mut(ux), items_mut(uy), items_mut(uz));
    each((columns, momenta), |_, ((i, j, s, t), (ux, uy, uz))| {
        let at = |c: usize| {
            let field = &fields[c];
            if field.is_empty() { 0.0 } else { alpha * gathered(grid, order, field, Component::ALL[c].stagger(), [*i, *j], [*s, *t]) }
        };
        let back = half_step_back([*ux, *uy, *uz], [at(0), at(1), at(2)], [at(3), at(4), at(5)]);
        [*ux, *uy, *uz] = back;
    });
}

/// A component at a particle: linear or quadratic weights about its own lattice.
fn gathered(grid: &Grid, order: u32, field: &[f64], stagger: [f64; 2], cell: [u32; 2], offset: [f64; 2]) -> f64 {
    let axis = |d: usize| -> (isize, Vec<f64>) {
        // Distance from the lattice's point 0, in cells.
        let x = f64::from(cell[d]) + 0.5 + offset[d] - stagger[d];
        if order == 1 {
            let low = x.floor();
            (low as isize, vec![low + 1.0 - x, x - low])
        } else {
            let near = x.round();
            let r = x - near;
            (near as isize - 1, vec![0.5 * (0.5 - r).powi(2), 0.75 - r * r, 0.5 * (0.5 + r).powi(2)])
        }
    };
    let ((i, wx), (j, wy)) = (axis(0), axis(1));
    let mut sum = 0.0;
    for (b, wy) in wy.iter().enumerate() {
        for (a, wx) in wx.iter().enumerate() {
            sum += wx * wy * field[grid.index((i + a as isize).max(-(BELOW as isize)), (j + b as isize).max(-(BELOW as isize)))];
        }
    }
    sum
}
