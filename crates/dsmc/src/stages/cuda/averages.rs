//! Sums of samples on the device, `[sum][tile][key]`: in double precision, and where a cell has few particles those of the last
//! samples in single precision beside them, so that a sample reads and writes half as many bytes.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pinned, Pool};
use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each};

use super::program::KernelConfig;
use super::tiling::Tiling;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::stages::samples_at_a_time;

/// Blocks that add recent sums to old ones.
const FOLDERS: u32 = 1056;

/// The sums; empty until the first sample.
pub(super) struct Averages {
    cuda: Cuda,
    pool: Pool,
    old: Buffer<f64>,
    recent: Buffer<f32>,
    /// Host copy, page-locked and kept: a copy into pages that must be made first takes ten times as long.
    host: Option<Pinned<f64>>,
    brief: bool,
    /// Samples in `recent`, and most of them: counted, so that nothing depends on who looks when.
    held: u32,
    most: u32,
    tiling: Tiling,
    /// Cells of this part.
    area: Rectangle,
    keys: usize,
    species: usize,
    /// Sums of a cell and species that are kept here, and those of the caller.
    sums: [usize; 2],
}

/// Order of sums on the device, for who has a copy of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct SumsOrder {
    tiling: Tiling,
    area: Rectangle,
    keys: usize,
    species: usize,
    sums: [usize; 2],
}

impl SumsOrder {
    /// Sets `cells`, `[cell][species][sum]`, to sums in this order.
    pub(super) fn gather(&self, sums: &[f64], cells: &mut [f64]) {
        let ([used, one], stride) = (self.sums, self.tiling.len() * self.keys);
        each(chunks_mut(cells, self.species * one), |cell, to| {
            to.fill(0.0);
            let (tile, slot) = self.tiling.tile_and_slot(self.area.cell(cell));
            for tile in tile..tile + self.tiling.layers {
                for s in 0..self.species {
                    for q in 0..used {
                        to[s * one + q] += sums[q * stride + tile * self.keys + slot * self.species + s];
                    }
                }
            }
        });
    }

    /// Cell number `k` of this part.
    pub(super) fn cell(&self, k: usize) -> [usize; 2] {
        self.area.cell(k)
    }
}

impl Averages {
    pub(super) fn new(model: &Model, config: &KernelConfig, tiling: Tiling, area: Rectangle, cuda: &Cuda, pool: &Pool) -> Result<Self> {
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            old: pool.alloc_zeros(0, "dsmc: averages")?,
            recent: pool.alloc_zeros(0, "dsmc: averages")?,
            host: None,
            brief: config.brief,
            held: 0,
            most: samples_at_a_time(model.per_cell),
            tiling,
            area,
            keys: config.keys(),
            species: model.species.len(),
            sums: [model.collisions.kept(), model.collisions.sums()],
        })
    }

    /// Number of cells of this part.
    pub(super) fn cells(&self) -> usize {
        self.area.len()
    }

    /// Cell number `k` of them.
    pub(super) fn cell(&self, k: usize) -> [usize; 2] {
        self.area.cell(k)
    }

    /// Numbers of a sum.
    pub(super) fn stride(&self) -> usize {
        self.tiling.len() * self.keys
    }

    /// Makes room for all sums.
    pub(super) fn reserve(&mut self) -> Result<()> {
        if self.old.is_empty() {
            let n = self.stride() * self.sums[0];
            self.old = self.pool.alloc_zeros(n, "dsmc: averages")?;
            self.recent = self.pool.alloc_zeros(if self.brief { n } else { 0 }, "dsmc: averages")?;
        }
        Ok(())
    }

    /// Address of the sums that a sample is added to: `Pass::sums` of advance.cu.
    pub(super) fn address(&self) -> u64 {
        if self.brief { self.recent.address() } else { self.old.address() }
    }

    /// Counts a sample. Whether recent sums must be added to old ones before the next.
    pub(super) fn count(&mut self) -> bool {
        self.held += u32::from(self.brief);
        self.brief && self.held == self.most
    }

    /// Adds recent sums to old ones. Does not wait.
    pub(super) fn fold(&mut self, fold: &Kernel) -> Result<()> {
        self.held = 0;
        let n = self.old.len() as u64;
        // SAFETY: the arguments as declared, both of `n` numbers.
        unsafe { fold.launch(FOLDERS, 256).arg(&mut self.recent).arg(&mut self.old).arg(n).run() }
    }

    /// Those in double precision, all after [`Averages::fold`].
    pub(super) fn sums(&self) -> &Buffer<f64> {
        &self.old
    }

    /// True if some are in single precision.
    pub(super) fn unfolded(&self) -> bool {
        self.held > 0
    }

    /// Sums of a cell and species that are kept.
    pub(super) fn kept(&self) -> usize {
        self.sums[0]
    }

    /// Forgets all that are in double precision.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.cuda.fill_zero(&mut self.old)
    }

    /// Sets `cells`, `[cell][species][sum]`, to those in double precision. Waits.
    pub(super) fn look(&mut self, cells: &mut [f64]) -> Result<()> {
        if self.old.is_empty() {
            cells.fill(0.0);
            return Ok(());
        }
        let old = std::mem::replace(&mut self.old, self.pool.alloc_zeros(0, "dsmc: averages")?);
        let read = self.read(&old, cells);
        self.old = old;
        read
    }

    /// Sets `cells` to sums that lie as those here do. Waits.
    fn read(&mut self, from: &Buffer<f64>, cells: &mut [f64]) -> Result<()> {
        let mut host = match self.host.take() {
            Some(host) => host,
            None => self.cuda.pinned(from.len(), "dsmc: averages")?,
        };
        self.cuda.download_to(from, 0, &mut host)?;
        self.order().gather(&host, cells);
        self.host = Some(host);
        Ok(())
    }

    /// Order of the sums.
    pub(super) fn order(&self) -> SumsOrder {
        SumsOrder { tiling: self.tiling, area: self.area, keys: self.keys, species: self.species, sums: self.sums }
    }

    /// Takes back what [`Averages::look`] gave away.
    pub(super) fn put(&mut self, cells: &[f64]) -> Result<()> {
        if self.old.is_empty() && cells.iter().all(|v| *v == 0.0) {
            return Ok(());
        }
        self.reserve()?;
        let mut old = std::mem::replace(&mut self.old, self.pool.alloc_zeros(0, "dsmc: averages")?);
        let written = self.write(cells, &mut old);
        self.old = old;
        written
    }

    /// Sets a list of such sums to those of `cells`.
    pub(super) fn write(&self, cells: &[f64], to: &mut Buffer<f64>) -> Result<()> {
        let ([used, one], stride) = (self.sums, self.stride());
        let mut sums = vec![0.0; stride * used];
        for (cell, from) in cells.chunks_exact(self.species * one).enumerate() {
            let (tile, slot) = self.tiling.tile_and_slot(self.area.cell(cell));
            for s in 0..self.species {
                for q in 0..used {
                    sums[q * stride + tile * self.keys + slot * self.species + s] = from[s * one + q];
                }
            }
        }
        self.cuda.upload(to, &sums)
    }

    /// State of a continuation besides the sums in double precision: the number of recent samples, and their sums where there are
    /// any.
    pub(super) fn numbers(&self) -> Result<Vec<f64>> {
        let recent = if self.held > 0 { self.cuda.download(&self.recent)? } else { Vec::new() };
        Ok(std::iter::once(f64::from(self.held)).chain(recent.into_iter().map(f64::from)).collect())
    }

    /// Numbers of a tile and sum.
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// Lengths of [`Averages::numbers`] of all tiles of the domain, with recent samples and without.
    pub(super) fn lengths(&self) -> [usize; 2] {
        let tiles = self.tiling.all[0] * self.tiling.all[1] * self.tiling.layers;
        [1 + if self.brief { tiles * self.keys * self.sums[0] } else { 0 }, 1]
    }

    /// Takes them back.
    pub(super) fn set_numbers(&mut self, numbers: &[f64]) -> Result<()> {
        let [held, recent @ ..] = numbers else { return Ok(()) };
        self.held = *held as u32 % self.most;
        if recent.is_empty() {
            return self.cuda.fill_zero(&mut self.recent);
        }
        self.reserve()?;
        let recent: Vec<f32> = recent.iter().map(|v| *v as f32).collect();
        self.cuda.upload(&mut self.recent, &recent)
    }
}
