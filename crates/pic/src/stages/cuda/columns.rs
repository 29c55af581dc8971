//! Columns of particles as copies in the memory of the GPU, and momenta from there: `columns.cu`.

use bytemuck::{Pod, Zeroable};
use zellige_engine::cuda::{Buffer, Kernel, Recipe};
use zellige_engine::error::{Error, Result};
use zellige_engine::record::ValuesOnGpu;

use super::CudaStages;
use super::store::Store;
use crate::stages::{ColumnUnits, ColumnsOnGpu, Precision};

/// Names of the kernels: single precision, then double; those that read, then those that write.
const NAMES: [&str; 4] = ["columns_f32", "columns_f64", "put_momenta_f32", "put_momenta_f64"];

/// Kernels in the precision of the run.
pub(super) struct ColumnKernels {
    read: Kernel,
    put: Kernel,
}

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

#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Momenta {
    single: [u64; 3],
    wide: [u64; 3],
    unit: f64,
}

impl CudaStages {
    /// The kernels, and pages of a species in the order of its particles. Waits for the numbers of the pages in use.
    fn pages_of_columns(&mut self, species: usize) -> Result<(&ColumnKernels, Vec<PageOfColumns>)> {
        let wide = usize::from(self.setup.precision == Precision::F64);
        let kernels = match &mut self.columns {
            Some(kernels) => &*kernels,
            none => {
                let program = recipe().build(&self.cuda)?;
                none.insert(ColumnKernels { read: program.kernel(NAMES[wide])?, put: program.kernel(NAMES[2 + wide])? })
            }
        };
        let mut first = 0;
        let mut pages = Vec::new();
        for page in self.species[species].store.pages_in_use()? {
            pages.push(PageOfColumns { first, number: page.number, count: page.count, corner: page.corner });
            first += u64::from(page.count);
        }
        Ok((kernels, pages))
    }

    /// Columns of all particles of a species. Waits.
    pub(super) fn copied_columns(&mut self, species: usize, units: &ColumnUnits) -> Result<ColumnsOnGpu> {
        let (kernels, pages) = self.pages_of_columns(species)?;
        let (read, n) = (kernels.read.clone(), pages.last().map_or(0, |page| page.first as usize + page.count as usize));
        let (store, cuda) = (&self.species[species].store, &self.cuda);
        let column = || cuda.alloc_zeros::<f64>(n, "a copy of particles");
        let position = (0..self.setup.grid.dimensions).map(|_| column()).collect::<Result<Vec<_>>>()?;
        let copies = ColumnsOnGpu {
            position,
            momentum: [column()?, column()?, column()?],
            weighting: column()?,
            id: store.kernel_config.tagged.then(|| cuda.alloc_zeros(n, "a copy of particles")).transpose()?,
        };
        let listed = cuda.buffer_from(&pages, "pages of particles")?;
        let all = store.pages_of_columns(&listed);
        let to = Columns {
            position: [0, 1].map(|d| copies.position.get(d).map_or(0, Buffer::address)),
            momentum: copies.momentum.each_ref().map(Buffer::address),
            weighting: copies.weighting.address(),
            id: copies.id.as_ref().map_or(0, Buffer::address),
        };
        let ColumnUnits { origin, h, moved, momentum, weighting } = *units;
        let launch = read.launch(pages.len() as u32, 256).plain(all).plain(UnitsOfColumns { origin, h, moved, momentum, weighting });
        // SAFETY: as declared; pages are in use and laid out so, and columns have room for the particles of all of them.
        unsafe { launch.plain(to).run() }?;
        Ok(copies)
    }

    /// Puts momenta of all particles of a species in place, in units of `unit`; those that are none stay.
    pub(super) fn put_momenta(&mut self, species: usize, momenta: [Option<&ValuesOnGpu>; 3], unit: f64) -> Result<()> {
        self.ahead = None;
        let (kernels, pages) = self.pages_of_columns(species)?;
        let n = pages.last().map_or(0, |page| page.first as usize + page.count as usize);
        if let Some(other) = momenta.iter().flatten().find(|values| values.len() != n) {
            let message = format!("{} momenta for {n} particles", other.len());
            return Err(Error::Numerics { what: "particles".into(), place: "momenta put in".into(), message });
        }
        let (put, listed) = (kernels.put.clone(), self.cuda.buffer_from(&pages, "pages of particles")?);
        let address = |wide: bool| momenta.map(|v| v.filter(|v| matches!(v, ValuesOnGpu::F64(_)) == wide).map_or(0, ValuesOnGpu::address));
        let given = Momenta { single: address(false), wide: address(true), unit };
        let all = self.species[species].store.pages_of_columns(&listed);
        // SAFETY: as declared; pages are in use and laid out so, and columns have a value for each particle.
        unsafe { put.launch(pages.len() as u32, 256).plain(all).plain(given).run() }
    }
}

impl Store {
    /// Pages as the kernels take them.
    fn pages_of_columns(&self, pages: &Buffer<PageOfColumns>) -> PagesOfColumns {
        let config = &self.kernel_config;
        PagesOfColumns {
            slots: self.slots.address(),
            pages: pages.address(),
            bytes: config.page_bytes() as u64,
            slots_of_page: config.page() as u32,
            weighted: u32::from(config.weighted),
        }
    }
}

#[cfg(test)]
mod tests;
