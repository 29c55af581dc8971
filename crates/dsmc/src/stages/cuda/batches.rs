//! Averages and their scatter on the device: batches are closed where their sums are (`batch.cu`).

use std::ops::Range;

use zellige_engine::cuda::{Argument, Buffer, BufferOf, Downloads, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each, indices, map};

use super::Gas;
use super::batch_arguments::{self, MeanRate, Molecule, Regions};
use super::tiling::Tiling;
use crate::model::Model;
use crate::sampling;
use crate::stages::{Batches, FetchCells, Wanted};

/// Sums and scatter of all batches; empty before the first.
#[derive(Debug)]
pub(super) struct Closed {
    pool: Pool,
    all: Buffer<f64>,
    square: Buffer<f64>,
    filled: Buffer<u32>,
    volume: Buffer<f64>,
    /// Weights of cells, where they have some.
    relative: Buffer<f32>,
    molecules: BufferOf<Molecule>,
    rates: BufferOf<MeanRate>,
    speeds: Buffer<f64>,
    /// Sums of regions.
    regions: Buffer<f64>,
    /// Copies of them to the host, once some were begun.
    numbers: Option<Downloads<f64>>,
    counts: Option<Downloads<u32>>,
}

impl Closed {
    pub(super) fn new(pool: &Pool) -> Result<Self> {
        let what = "dsmc: batches";
        Ok(Self {
            pool: pool.clone(),
            all: pool.alloc_zeros(0, what)?,
            square: pool.alloc_zeros(0, what)?,
            filled: pool.alloc_zeros(0, what)?,
            volume: pool.alloc_zeros(0, what)?,
            relative: pool.alloc_zeros(0, what)?,
            molecules: pool.alloc_zeros(0, what)?,
            rates: pool.alloc_zeros(0, what)?,
            speeds: pool.alloc_zeros(0, what)?,
            regions: pool.alloc_zeros(0, what)?,
            numbers: None,
            counts: None,
        })
    }

    /// Lets what changes them wait for copies under way.
    fn before_changes(&self) -> Result<()> {
        self.numbers.as_ref().map_or(Ok(()), Downloads::before_changes)?;
        self.counts.as_ref().map_or(Ok(()), Downloads::before_changes)
    }

    /// Makes room, and the tables.
    fn reserve(&mut self, model: &Model, tiling: &Tiling, sums: usize) -> Result<()> {
        if !self.all.is_empty() {
            return Ok(());
        }
        let (what, cells) = ("dsmc: batches", tiling.padded_cells());
        self.all = self.pool.alloc_zeros(sums, what)?;
        self.square = self.pool.alloc_zeros(cells * sampling::width(model), what)?;
        self.filled = self.pool.alloc_zeros(cells * sampling::sections::lines(model), what)?;
        let volume = |cell: [usize; 2]| model.cell_volume(model.grid.index(cell));
        let volumes: Vec<f64> = map(indices(cells), |c, _| tiling.padded_cell(c).map_or(0.0, volume));
        self.volume = self.pool.buffer_from(&volumes, what)?;
        let relative = |c: usize| tiling.padded_cell(c).map_or(1.0, |cell| model.relative(model.grid.index(cell)) as f32);
        let relatives: Vec<f32> = (0..if model.weighted() { cells } else { 0 }).map(relative).collect();
        self.relative = self.pool.buffer_from(&relatives, what)?;
        self.molecules = self.pool.buffer_from(&molecules(model), what)?;
        self.rates = self.pool.buffer_from(&rates(model), what)?;
        self.speeds = self.pool.buffer_from(&speeds(model), what)?;
        Ok(())
    }
}

/// Molecules by species.
pub(super) fn molecules(model: &Model) -> Vec<<Molecule as Argument>::Value> {
    model.species.iter().map(|s| molecule(s).value()).collect()
}

/// Mean rates of all pairs: powers of the temperature, which two of them tell.
pub(super) fn rates(model: &Model) -> Vec<<MeanRate as Argument>::Value> {
    let species = model.species.len();
    let rate = |a: usize, b: usize| {
        let [one, two] = [1.0, 2.0].map(|t| model.mean_rate(a, b, t));
        MeanRate { rate: one, power: (two / one).log2() }.value()
    };
    (0..species).flat_map(|a| (0..species).map(move |b| rate(a, b))).collect()
}

/// Mean speeds at 1 K by species.
pub(super) fn speeds(model: &Model) -> Vec<f64> {
    (0..model.species.len()).map(|s| model.mean_speed(s, 1.0)).collect()
}

fn molecule(species: &crate::gas::Species) -> Molecule {
    let modes = species.vibration.modes();
    let each = |f: &dyn Fn(&crate::gas::vibration::Mode) -> f64| std::array::from_fn(|m| modes.get(m).map_or(0.0, f));
    Molecule {
        mass: species.mass,
        freedom: f64::from(species.rotation),
        theta: each(&|m| m.theta),
        degeneracy: each(&|m| f64::from(m.degeneracy)),
        modes: modes.len() as u32,
    }
}

/// Kernels of batch.cu.
#[derive(Debug, Clone)]
pub(super) struct BatchKernels {
    pub(super) close_batch: Kernel,
    pub(super) sum_regions: Kernel,
}

impl Gas {
    /// Batches as kernels see them: batch number `count` of so many samples each.
    fn argument(&self, count: u64, samples: u64) -> batch_arguments::Batches {
        let c = &self.closed;
        batch_arguments::Batches {
            fresh: self.averages.sums().address(),
            all: c.all.address(),
            square: c.square.address(),
            filled: c.filled.address(),
            volume: c.volume.address(),
            relative: c.relative.address(),
            molecules: c.molecules.address(),
            rates: c.rates.address(),
            speeds: c.speeds.address(),
            stride: self.averages.stride() as u64,
            cells: self.store.tiling.padded_cells() as u64,
            count: count as f64,
            samples: samples as f64,
            weight: self.model.weight,
        }
    }
}

impl Batches for Gas {
    fn close(&mut self, count: u64, samples: u64, surfaces: &mut [f64]) -> Result<()> {
        self.fold()?;
        self.averages.reserve()?;
        let tiling = self.store.tiling;
        self.closed.reserve(&self.model, &tiling, self.averages.sums().len())?;
        let argument = self.argument(count, samples);
        let c = &mut self.closed;
        c.before_changes()?;
        if argument.cells > 0 {
            let launch = self.store.kernels.batch.close_batch.launch((argument.cells as u32).div_ceil(128), 128).arg(argument);
            // SAFETY: the argument as declared; every list has the length that its numbers say.
            unsafe { launch.run()? };
        }
        self.take_surfaces(surfaces)
    }

    fn regions(&mut self, regions: [usize; 2], sums: Range<usize>) -> Result<Vec<f64>> {
        self.fold()?;
        self.averages.reserve()?;
        let (species, tiling) = (self.model.species.len(), self.store.tiling);
        let kept = sums.start.min(self.averages.kept())..sums.end.min(self.averages.kept());
        let n = regions[0] * regions[1] * species * kept.len();
        if self.closed.regions.len() < n {
            self.closed.regions = self.closed.pool.alloc_zeros(n, "dsmc: batches")?;
        }
        let grid = [(regions[0] * regions[1]) as u32, species as u32, kept.len() as u32];
        let whole;
        let (fresh, stride, tiles) = match &self.beyond {
            None => (self.averages.sums(), self.averages.stride(), tiling.tiles[0]),
            Some(beyond) => {
                // The sums of all tiles come to the first part, which adds them as one part does.
                let own = self.cuda.download(self.averages.sums())?;
                let all = beyond.whole(&tiling, &own, self.averages.kept(), self.averages.keys())?;
                if !beyond.links.is_first() {
                    return Ok(Vec::new());
                }
                whole = self.closed.pool.buffer_from(&all, "dsmc: batches")?;
                (&whole, all.len() / self.averages.kept(), tiling.all[0])
            }
        };
        let argument = Regions {
            fresh: fresh.address(),
            weights: self.tables.weights.address(),
            stride: stride as u64,
            tiles: tiles as u32,
            cells: tiling.cells.map(|n| n as u32),
            count: regions.map(|n| n as u32),
            from: kept.start as u32,
        };
        let launch = self.store.kernels.batch.sum_regions.launch(grid, 256).arg(argument).arg(&mut self.closed.regions);
        // SAFETY: the arguments as declared; one number a block.
        unsafe { launch.run()? };
        let found = self.cuda.download(&self.closed.regions)?;
        // Sums of internal modes that no species has are 0.
        let (kept, asked) = (kept.len(), sums.len());
        let mut out = vec![0.0; regions[0] * regions[1] * species * asked];
        for (to, from) in out.chunks_exact_mut(asked).zip(found[..n].chunks_exact(kept.max(1))) {
            to[..kept].copy_from_slice(from);
        }
        Ok(out)
    }

    fn discard(&mut self, surfaces: &mut [f64]) -> Result<()> {
        self.fold()?;
        self.averages.clear()?;
        self.take_surfaces(surfaces)
    }

    fn begin_fetch(&mut self) -> Result<FetchCells> {
        let tiling = self.store.tiling;
        let (stride, width, lines) = (tiling.padded_cells(), sampling::width(&self.model), sampling::sections::lines(&self.model));
        let (sums, c) = (self.averages.stride() * self.averages.kept(), &mut self.closed);
        let numbers = Downloads::of(&mut c.numbers, &self.cuda, "dsmc: averages for the host")?;
        let counts = Downloads::of(&mut c.counts, &self.cuda, "dsmc: averages for the host")?;
        if c.all.is_empty() {
            numbers.reserve_in_place(&[sums, stride * width])?;
            counts.reserve_in_place(&[stride * lines])?;
            return Ok(Box::new(|_, _, _| Ok(())));
        }
        // From their places: they change when the next batch is closed.
        let all = numbers.begin_in_place(&c.all, c.all.len())?;
        let squares = numbers.begin_in_place(&c.square, c.square.len())?;
        let counts = counts.begin_in_place(&c.filled, c.filled.len())?;
        let order = self.averages.order();
        Ok(Box::new(move |cells, square, filled| {
            order.gather(all.wait()?, cells);
            let (squares, counts) = (squares.wait()?, counts.wait()?);
            each((chunks_mut(square, width), chunks_mut(filled, lines)), |cell, (square, filled)| {
                let c = tiling.padded_index(order.cell(cell));
                square.iter_mut().enumerate().for_each(|(q, to)| *to = squares[q * stride + c]);
                filled.iter_mut().enumerate().for_each(|(line, to)| *to = f64::from(counts[line * stride + c]));
            });
            Ok(())
        }))
    }

    fn show(&mut self, wanted: &Wanted, batches: u64, samples: u64) -> Result<Option<Buffer<f64>>> {
        if self.beyond.is_some() {
            return Ok(None);
        }
        let tiling = self.store.tiling;
        let out = self.cuda.alloc_zeros(tiling.cells[0] * tiling.cells[1], "a copy of averages")?;
        let shown = batch_arguments::Shown {
            value: wanted.value as u32,
            line: wanted.line as u32,
            needs: wanted.needs,
            error: u32::from(wanted.error),
            by_particles: u32::from(wanted.by_particles),
            filled: sampling::FILLED.min(batches) as u32,
            cells: tiling.cells.map(|n| n as u32),
            tiles: tiling.tiles[0] as u32,
        };
        // Those before the next one.
        let argument = self.argument(batches + 1, samples);
        let launch = self.copiers()?.show.launch(out.len().div_ceil(128) as u32, 128).arg(argument).arg(shown);
        // SAFETY: the arguments as declared; lists are as long as their numbers say once a batch was closed, and `out` has the cells.
        unsafe { launch.arg(&out).run()? };
        Ok(Some(out))
    }

    fn put(&mut self, cells: &[f64], square: &[f64], filled: &[f64]) -> Result<()> {
        let tiling = self.store.tiling;
        self.averages.reserve()?;
        self.closed.reserve(&self.model, &tiling, self.averages.sums().len())?;
        self.closed.before_changes()?;
        self.averages.write(cells, &mut self.closed.all)?;
        let stride = tiling.padded_cells();
        let (width, lines) = (sampling::width(&self.model), sampling::sections::lines(&self.model));
        let (mut squares, mut counts) = (vec![0.0; width * stride], vec![0_u32; lines * stride]);
        for cell in 0..self.averages.cells() {
            let c = tiling.padded_index(self.averages.cell(cell));
            (0..width).for_each(|q| squares[q * stride + c] = square[cell * width + q]);
            (0..lines).for_each(|line| counts[line * stride + c] = filled[cell * lines + line] as u32);
        }
        self.cuda.upload(&mut self.closed.square, &squares)?;
        self.cuda.upload(&mut self.closed.filled, &counts)
    }
}
