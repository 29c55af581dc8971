//! Particles that come into a store: made on the device, or put in.

use zellige_engine::cuda::{Buffer, Kernel};
use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks_mut, each, indices, map};

use super::Store;
use crate::loading::UniformSource;
use crate::particles::Particles;
use crate::stages::cuda::arguments::Domain;
use crate::stages::cuda::program::maker;

/// Kernels that make particles, with offsets in a cell that are the same for all.
pub(super) struct Maker {
    fill: Kernel,
    make_column: Kernel,
    offsets: Buffer<f64>,
}

impl Store {
    /// Has what makes particles, with such offsets.
    fn load_maker(&mut self, offsets: &[[f64; 2]]) -> Result<()> {
        if self.maker.is_none() {
            let program = maker(&self.kernel_config).build(&self.cuda)?;
            let offsets = self.pool.buffer_from(bytemuck::cast_slice(offsets), "pic: offsets")?;
            self.maker = Some(Maker { fill: program.kernel("fill")?, make_column: program.kernel("make_column")?, offsets });
        }
        Ok(())
    }

    /// Makes room for a column of cells of `uniform_source`. Waits where it may have to grow.
    pub(in crate::stages::cuda) fn reserve_column(&mut self, uniform_source: &UniformSource, offsets: &[[f64; 2]]) -> Result<()> {
        self.reserve(
            self.rows() * uniform_source.per_cell(),
            self.kernel_config.tile[1] * uniform_source.per_cell().div_ceil(self.kernel_config.parts),
        )?;
        self.load_maker(offsets)
    }

    /// Makes the particles of the last column of cells, which is column `column` of the run, among those that the next step reads;
    /// how many. `reserve_column` has made room for them.
    pub(in crate::stages::cuda) fn make_column(&mut self, domain: Domain, uniform_source: UniformSource, column: u64) -> Result<usize> {
        let n = self.rows() * uniform_source.per_cell();
        let Some(Maker { make_column, offsets, .. }) = &self.maker else { unreachable!("`reserve_column` comes first") };
        // Into the inbox that is read next.
        self.current = 1 - self.current;
        let launch = make_column.launch(n.div_ceil(256) as u32, 256).arg(uniform_source).arg(domain).arg(self.argument());
        // SAFETY: a formula, a domain, a store, two offsets of each particle of a cell where they are read, and a column.
        unsafe { launch.arg(offsets).arg(column).run()? };
        self.swap_pages()?;
        self.most += n;
        self.fullest += self.kernel_config.tile[1] * uniform_source.per_cell().div_ceil(self.kernel_config.parts);
        Ok(n)
    }

    /// Makes all particles of `uniform_source` in the empty store.
    pub(in crate::stages::cuda) fn fill(&mut self, domain: Domain, uniform_source: UniformSource, offsets: &[[f64; 2]]) -> Result<()> {
        let [x, y] = self.kernel_config.tile;
        let n = self.grid.cells[0] * self.rows() * uniform_source.per_cell();
        self.reserve(n, x * y * uniform_source.per_cell().div_ceil(self.kernel_config.parts))?;
        self.load_maker(offsets)?;
        let Some(Maker { fill, offsets, .. }) = &self.maker else { unreachable!("made just now") };
        let launch = fill.launch(self.blocks(), self.kernel_config.block).arg(uniform_source).arg(domain).arg(self.argument());
        // SAFETY: a formula, a domain, a store with room for what it makes, and two offsets of each particle of a cell where they are read.
        unsafe { launch.arg(offsets).run()? };
        self.swap_pages()?;
        // Inboxes get pages for those that leave in the first step: of hot particles, more than the common list holds.
        // SAFETY: a store.
        unsafe { self.kernels.absorb.launch(self.blocks(), self.kernel_config.block).arg(self.argument()).run()? };
        self.swap_pages()?;
        // Nothing may have been lost.
        self.counters()?;
        if self.len()? != n {
            let message = format!("{} of {n} were made", self.most);
            return Err(Error::Numerics { what: "particles".into(), place: "start on the GPU".into(), message });
        }
        Ok(())
    }

    /// Puts particles in, which have been checked and lie on the rows that are here. They are in the lists afterwards where
    /// `listed` says so; else those of few stay among what came, for the next step.
    pub(in crate::stages::cuda) fn insert(&mut self, p: &Particles, listed: bool) -> Result<()> {
        let ([_, ty], parts, record) = (self.kernel_config.tile, self.kernel_config.parts, self.kernel_config.record());
        let first = self.grid.held().start;
        let unit_of = |k: usize| ((p.j[k] as usize - first) / ty * self.tiles[0] + self.tile_column(p.i[k] as usize)) * parts + k % parts;
        let units = map(indices(p.len()), |_, k| unit_of(k) as u32);
        let mut seen = vec![0_u32; self.units()];
        for u in &units {
            seen[*u as usize] += 1;
        }
        let unit = seen.iter().copied().max().unwrap_or(0) as usize;
        self.reserve(p.len(), unit)?;
        // No more at a time than half an inbox and the common list hold.
        let limit = ((self.capacity.inbox_room - 1) / 2 * self.kernel_config.page()).max(1) as u32;
        let mut begin = 0;
        while begin < p.len() {
            seen.fill(0);
            let piece = units[begin..].iter().take(self.place.len()).take_while(|u| {
                let n = &mut seen[**u as usize];
                *n += 1;
                *n <= limit
            });
            let end = begin + piece.count();
            let mut records = vec![0; (end - begin) * record];
            each((chunks_mut(&mut records, record), begin..end), |_, (bytes, k)| self.record(p, k, units[k], bytes));
            self.cuda.upload_at(&mut self.common, 0, &records)?;
            let n = (end - begin) as u32;
            // Into the inbox that is read next.
            self.current = 1 - self.current;
            // SAFETY: a store and a number; the records are there.
            unsafe { self.kernels.enter.launch(n.div_ceil(256), 256).arg(self.argument()).arg(n).run()? };
            self.swap_pages()?;
            if listed || n as usize != p.len() {
                // SAFETY: a store.
                unsafe { self.kernels.absorb.launch(self.blocks(), self.kernel_config.block).arg(self.argument()).run()? };
                self.swap_pages()?;
            }
            begin = end;
        }
        self.most += p.len();
        self.fullest += unit;
        Ok(())
    }

    /// `Record` of common.cu.
    fn record(&self, p: &Particles, k: usize, unit: u32, bytes: &mut [u8]) {
        let [tx, ty] = self.kernel_config.tile;
        let cell = (((p.i[k] as usize + self.passed) % tx) | (((p.j[k] as usize - self.grid.held().start) % ty) << 8)) as u32;
        bytes[..8].copy_from_slice(bytemuck::cast_slice(&[unit, cell]));
        let weight = p.weight.get(k).copied().unwrap_or(1.0);
        let values = [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight];
        let real = self.kernel_config.real();
        for (v, to) in values[..5 + usize::from(self.kernel_config.weighted)].iter().zip(bytes[8..].chunks_exact_mut(real)) {
            if real == 4 {
                to.copy_from_slice(&(*v as f32).to_ne_bytes());
            } else {
                to.copy_from_slice(&v.to_ne_bytes());
            }
        }
        if self.kernel_config.tagged {
            let at = bytes.len() - 8;
            bytes[at..].copy_from_slice(&p.tag.get(k).copied().unwrap_or(0).to_ne_bytes());
        }
    }
}
