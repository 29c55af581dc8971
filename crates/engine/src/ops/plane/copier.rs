//! Copies of fields that stay in a GPU's memory.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use num_complex::Complex;

use super::PlaneOnGpu;
use crate::cuda::{Buffer, Cuda, Kernel, Recipe};
use crate::error::Result;
use crate::record::ValuesOnGpu;

/// Threads of a block.
const BLOCK: u32 = 256;

/// Recipe of the kernels.
pub fn recipe() -> Recipe {
    // Without fused operations: the bits of the host.
    Recipe::new("copies of fields", &[include_str!("copier.cu")], &[], &NAMES).option("--fmad=false")
}

const NAMES: [&str; 18] = [
    "copy_f32",
    "copy_f64_as_f32",
    "copy_f64",
    "copy_wave_f32",
    "copy_wave_f64",
    "unfit_f32_f32",
    "unfit_f32_f64",
    "unfit_f64_f32",
    "unfit_f64_f64",
    "put_f32_f32",
    "put_f32_f64",
    "put_f64_f32",
    "put_f64_f64",
    "put_wave_f32_f32",
    "put_wave_f32_f64",
    "put_wave_f64_f32",
    "put_wave_f64_f64",
    "unlike",
];
/// Places of the first kernels of a way back, of which there are four each: from single and double precision, to both.
const UNFIT: usize = 5;
const PUT: usize = 9;
const PUT_WAVE: usize = 13;
const UNLIKE: usize = 17;

/// A plane as the kernels take it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Strided {
    len: [u64; 2],
    strides: [u64; 2],
    zeros: [u32; 2],
}

impl Strided {
    fn new(plane: &PlaneOnGpu<'_>) -> Self {
        Self { len: plane.len.map(|n| n as u64), strides: plane.strides.map(|n| n as u64), zeros: plane.zeros.map(|n| n as u32) }
    }
}

fn blocks(count: usize) -> u32 {
    count.div_ceil(BLOCK as usize) as u32
}

/// Copies fields that lie in a GPU's memory to arrays of their own there, with the bits that records have, and back.
pub struct FieldCopier {
    cuda: Cuda,
    kernels: Vec<Kernel>,
}

impl std::fmt::Debug for FieldCopier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FieldCopier").field("cuda", &self.cuda).finish_non_exhaustive()
    }
}

impl FieldCopier {
    /// A copier for fields on `cuda`.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let program = recipe().build(cuda)?;
        let kernels = NAMES.iter().map(|name| program.kernel(name)).collect::<Result<_>>()?;
        Ok(Self { cuda: cuda.clone(), kernels })
    }

    /// The GPU.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// The values of a plane in the precision of its record.
    ///
    /// # Panics
    /// If the plane is empty or does not lie in its buffer.
    pub fn plane(&self, plane: &PlaneOnGpu<'_>, what: &str) -> Result<ValuesOnGpu> {
        assert!(plane.is_inside(), "a plane of {:?} values does not lie in its buffer", plane.len);
        let count = plane.len[0] * plane.len[1];
        let from = plane.address + plane.begin as u64 * plane.size();
        let launch = |kernel: &Kernel, to: u64| {
            let launch = kernel.launch(blocks(count), BLOCK).arg(from).plain(Strided::new(plane));
            // SAFETY: the arguments as declared; the values lie in their buffer, which is borrowed, and there is room for all.
            unsafe { launch.arg(plane.scale).arg(to).run() }
        };
        if plane.double && plane.double_in_record {
            let to = self.cuda.alloc_zeros::<f64>(count, what)?;
            launch(&self.kernels[2], to.address())?;
            return Ok(ValuesOnGpu::F64(to));
        }
        let to = self.cuda.alloc_zeros::<f32>(count, what)?;
        launch(&self.kernels[usize::from(plane.double)], to.address())?;
        Ok(ValuesOnGpu::F32(to))
    }

    /// Complex values in single precision, each times the conjugate of the factor that is its turn where there are factors.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    pub fn wave<T>(&self, wave: &Buffer<Complex<T>>, range: Range<usize>, factors: &[Complex<f64>], what: &str) -> Result<ValuesOnGpu>
    where
        Complex<T>: Pod,
    {
        assert!(range.end <= wave.len(), "values {range:?} of {}", wave.len());
        let to = self.cuda.alloc_zeros::<Complex<f32>>(range.len(), what)?;
        let on_device = if factors.is_empty() { None } else { Some(self.cuda.buffer_from(factors, what)?) };
        let kernel = &self.kernels[if size_of::<T>() == 4 { 3 } else { 4 }];
        let launch = kernel.launch(blocks(range.len()), BLOCK).arg(wave.from(range.start));
        let launch = launch.arg(on_device.as_ref().map_or(0, Buffer::address)).arg(factors.len() as u64).arg(range.len() as u64);
        // SAFETY: the arguments as declared; the range lies in the buffer, and there is room for all of it.
        unsafe { launch.arg(&to).run() }?;
        Ok(ValuesOnGpu::Complex(to))
    }

    /// Number and value of the first number that is not finite in units of `unit`, in double precision or single. Waits.
    pub fn first_unfit(&self, values: &ValuesOnGpu, unit: f64, double: bool) -> Result<Option<(usize, f64)>> {
        let count = values.len() * values.numbers();
        let first = self.cuda.buffer_from(&[u64::MAX], "a number")?;
        let kernel = &self.kernels[UNFIT + 2 * usize::from(values.is_double()) + usize::from(double)];
        let launch = kernel.launch(blocks(count), BLOCK).arg(values.address()).arg(count as u64).arg(unit);
        // SAFETY: the arguments as declared; so many numbers lie there.
        unsafe { launch.arg(&first).run() }?;
        let first = self.cuda.download(&first)?[0];
        if first == u64::MAX {
            return Ok(None);
        }
        let k = first as usize / values.numbers();
        Ok(Some((k, values.number(&self.cuda, first as usize)?)))
    }

    /// Number of the first value that is another one than in a column of the same length, both of real or whole numbers. Waits.
    ///
    /// # Panics
    /// If lengths differ, or values are complex.
    pub fn first_unlike(&self, values: &ValuesOnGpu, column: &ValuesOnGpu) -> Result<Option<usize>> {
        assert!(values.len() == column.len() && values.numbers() * column.numbers() == 1, "{values:?} beside {column:?}");
        let kind = |values: &ValuesOnGpu| match values {
            ValuesOnGpu::U64(_) => 2_u32,
            real => u32::from(real.is_double()),
        };
        let first = self.cuda.buffer_from(&[u64::MAX], "a number")?;
        let launch = self.kernels[UNLIKE].launch(blocks(values.len()), BLOCK).arg(values.address()).arg(kind(values));
        let launch = launch.arg(column.address()).arg(kind(column)).arg(values.len() as u64);
        // SAFETY: the arguments as declared; both columns have so many values of their types.
        unsafe { launch.arg(&first).run() }?;
        let first = self.cuda.download(&first)?[0];
        Ok((first != u64::MAX).then_some(first as usize))
    }

    /// Puts values in units of `unit` in place of those of a plane.
    ///
    /// # Panics
    /// If there are not as many values as the plane has, the plane does not lie in its buffer, or values are no real numbers.
    pub fn put_plane(&self, values: &ValuesOnGpu, unit: f64, plane: &PlaneOnGpu<'_>) -> Result<()> {
        let count = plane.len[0] * plane.len[1];
        assert!(plane.is_inside() && values.len() == count && values.numbers() == 1, "{values:?} for a plane of {:?}", plane.len);
        let kernel = &self.kernels[PUT + 2 * usize::from(values.is_double()) + usize::from(plane.double)];
        let launch = kernel.launch(blocks(count), BLOCK).arg(values.address()).plain(Strided::new(plane)).arg(unit);
        // SAFETY: the arguments as declared; there are as many values as the plane has, which lies in its buffer.
        unsafe { launch.arg(plane.address + plane.begin as u64 * plane.size()).run() }
    }

    /// Puts values, each times the factor that is its turn where there are factors, in place of those of a wave; those that are as
    /// [`FieldCopier::wave`] gives them stay to the last bit. Returns true if something has changed. Waits.
    ///
    /// # Panics
    /// If the range does not lie in the buffer, or there are not as many values.
    pub fn put_wave<T>(
        &self,
        values: &ValuesOnGpu,
        wave: &mut Buffer<Complex<T>>,
        range: Range<usize>,
        factors: &[Complex<f64>],
    ) -> Result<bool>
    where
        Complex<T>: Pod,
    {
        assert!(range.end <= wave.len() && values.len() == range.len(), "{values:?} for values {range:?} of {}", wave.len());
        let changed = self.cuda.alloc_zeros::<u32>(1, "a number")?;
        let on_device = if factors.is_empty() { None } else { Some(self.cuda.buffer_from(factors, "factors of a wave")?) };
        let kernel = &self.kernels[PUT_WAVE + 2 * usize::from(values.is_double()) + usize::from(size_of::<T>() == 8)];
        let launch = kernel.launch(blocks(range.len()), BLOCK).arg(values.address()).arg(values.numbers() as u32);
        let launch = launch.arg(on_device.as_ref().map_or(0, Buffer::address)).arg(factors.len() as u64).arg(range.len() as u64);
        // SAFETY: the arguments as declared; the range lies in the buffer, and there are as many values.
        unsafe { launch.arg(wave.from(range.start)).arg(&changed).run() }?;
        Ok(self.cuda.download(&changed)? != [0])
    }
}

#[cfg(test)]
mod tests;
