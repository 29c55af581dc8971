//! Columns of particles as copies in the memory of the GPU: `columns.cu`.

use bytemuck::{Pod, Zeroable};
use zellige_engine::cuda::{Buffer, Recipe};
use zellige_engine::error::Result;

use super::CudaStages;
use crate::stages::{ColumnUnits, ColumnsOnGpu, Precision};

/// Names of the kernels: single precision, then double.
const NAMES: [&str; 2] = ["columns_f32", "columns_f64"];

/// Recipe of the kernels.
pub(super) fn recipe() -> Recipe {
    // Without fused operations: the bits of the host.
    Recipe::new("pic columns of particles", &[include_str!("columns.cu")], &[], &NAMES).option("--fmad=false")
}

/// A page as `columns.cu` has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct PageOfColumns {
    first: u64,
    number: u32,
    count: u32,
    corner: [i32; 2],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct PagesOfColumns {
    slots: u64,
    pages: u64,
    bytes: u64,
    slots_of_page: u32,
    weighted: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct UnitsOfColumns {
    origin: [f64; 2],
    h: [f64; 2],
    moved: f64,
    momentum: f64,
    weighting: f64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Columns {
    position: [u64; 2],
    momentum: [u64; 3],
    weighting: u64,
    id: u64,
}

impl CudaStages {
    /// Columns of all particles of a species. Waits for the numbers of the pages in use.
    pub(super) fn copied_columns(&mut self, species: usize, units: &ColumnUnits) -> Result<ColumnsOnGpu> {
        let wide = self.setup.precision == Precision::F64;
        let kernel = match &mut self.columns {
            Some(kernel) => &*kernel,
            none => none.insert(recipe().build(&self.cuda)?.kernel(NAMES[usize::from(wide)])?),
        };
        let (store, cuda) = (&self.species[species].store, &self.cuda);
        let mut n = 0;
        let mut pages = Vec::new();
        for page in store.pages_in_use()? {
            pages.push(PageOfColumns { first: n as u64, number: page.number, count: page.count, corner: page.corner });
            n += page.count as usize;
        }
        let column = || cuda.alloc_zeros::<f64>(n, "a copy of particles");
        let position = (0..self.setup.grid.dimensions).map(|_| column()).collect::<Result<Vec<_>>>()?;
        let copies = ColumnsOnGpu {
            position,
            momentum: [column()?, column()?, column()?],
            weighting: column()?,
            id: store.kernel_config.tagged.then(|| cuda.alloc_zeros(n, "a copy of particles")).transpose()?,
        };
        let listed = cuda.buffer_from(&pages, "pages of particles")?;
        let config = &store.kernel_config;
        let all = PagesOfColumns {
            slots: store.slots.address(),
            pages: listed.address(),
            bytes: config.page_bytes() as u64,
            slots_of_page: config.page() as u32,
            weighted: u32::from(config.weighted),
        };
        let to = Columns {
            position: [0, 1].map(|d| copies.position.get(d).map_or(0, Buffer::address)),
            momentum: copies.momentum.each_ref().map(Buffer::address),
            weighting: copies.weighting.address(),
            id: copies.id.as_ref().map_or(0, Buffer::address),
        };
        let ColumnUnits { origin, h, moved, momentum, weighting } = *units;
        let launch = kernel.launch(pages.len() as u32, 256).plain(all).plain(UnitsOfColumns { origin, h, moved, momentum, weighting });
        // SAFETY: as declared; pages are in use and laid out so, and columns have room for the particles of all of them.
        unsafe { launch.plain(to).run() }?;
        Ok(copies)
    }
}

#[cfg(test)]
mod tests;
