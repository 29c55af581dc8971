//! Means of planes that lie in a GPU's memory.

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use super::{PixelWeights, picture_pixels, pixel_weights};
use crate::cuda::{Buffer, Coming, Cuda, Downloads, Kernel, Pool, Recipe};
use crate::error::Result;
use crate::record::{Centring, Planes};

/// Threads of a block.
const BLOCK: u32 = 256;

/// Recipe of the kernels.
pub fn recipe() -> Recipe {
    // Without fused operations: the bits of the host.
    Recipe::new("planes of pictures", &[include_str!("plane.cu")], &[], &["plane_f32", "plane_f64_as_f32", "plane_f64"])
        .option("--fmad=false")
}

/// A plane of a field in a GPU's memory: value `(i, j)` is number `begin + i strides[0] + j strides[1]` of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct PlaneOnGpu<'a> {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The values are doubles.
    pub double: bool,
    /// A record of the field has doubles.
    pub double_in_record: bool,
    /// Number of the first value.
    pub begin: usize,
    /// Values along the axes of the picture.
    pub len: [usize; 2],
    /// Distances of neighbours along them, in values.
    pub strides: [usize; 2],
    /// Location of the values.
    pub centring: Centring,
    /// A record of the field holds `value * scale`, rounded.
    pub scale: f64,
    /// The first values of each axis that are zero in a record, whatever lies there.
    pub zeros: [usize; 2],
    pub(super) memory: PhantomData<&'a ()>,
}

impl<'a> PlaneOnGpu<'a> {
    /// A plane of values as they lie, in single or double precision, row after row.
    pub fn new<T: Pod>(buffer: &'a Buffer<T>, double: bool, len: [usize; 2], centring: Centring) -> Self {
        let (address, bytes) = (buffer.address(), buffer.bytes());
        let (strides, zeros, double_in_record) = ([1, len[0]], [0; 2], double);
        Self { address, bytes, double, double_in_record, begin: 0, len, strides, centring, scale: 1.0, zeros, memory: PhantomData }
    }

    pub(super) fn size(&self) -> u64 {
        if self.double { 8 } else { 4 }
    }

    /// Returns true if all values lie in the buffer.
    pub(super) fn is_inside(&self) -> bool {
        let last = |d: usize| self.len[d].checked_sub(1)?.checked_mul(self.strides[d]);
        let end = last(0).zip(last(1)).and_then(|(x, y)| self.begin.checked_add(x)?.checked_add(y)?.checked_add(1));
        end.and_then(|end| (end as u64).checked_mul(self.size())).is_some_and(|end| end <= self.bytes)
    }
}

/// An axis as the kernel takes it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct PixelAxis {
    first: u64,
    weights: u64,
    stride: u64,
    pixels: u32,
    zeros: u32,
}

/// The first value of each pixel, then the place of its first weight, then the number of weights; and the weights.
fn tables(pixels: &[PixelWeights]) -> (Vec<u32>, Vec<f64>) {
    let mut first: Vec<u32> = pixels.iter().map(|p| p.first as u32).collect();
    let mut weights = Vec::new();
    first.push(0);
    for pixel in pixels {
        weights.extend_from_slice(&pixel.weights);
        first.push(weights.len() as u32);
    }
    (first, weights)
}

/// Weights of an axis on the device.
struct DeviceWeights {
    of: (usize, usize, Centring),
    first: Buffer<u32>,
    weights: Buffer<f64>,
}

/// Makes pictures of planes in a GPU's memory: only their pixels go to the host, and nobody waits for them but who looks at them.
pub struct PlaneReducer {
    pool: Pool,
    kernels: [Kernel; 3],
    /// Axes seen so far: a run has few.
    axes: Vec<DeviceWeights>,
    /// Some after the first picture.
    pixels: Option<Downloads<f32>>,
    cuda: Cuda,
}

impl std::fmt::Debug for PlaneReducer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlaneReducer").field("axes", &self.axes.len()).finish_non_exhaustive()
    }
}

impl PlaneReducer {
    /// A reducer whose memory is that of `pool`.
    pub fn new(cuda: &Cuda, pool: &Pool) -> Result<Self> {
        let program = recipe().build(cuda)?;
        Ok(Self {
            kernels: [program.kernel("plane_f32")?, program.kernel("plane_f64_as_f32")?, program.kernel("plane_f64")?],
            axes: Vec::new(),
            pixels: None,
            cuda: cuda.clone(),
            pool: pool.clone(),
        })
    }

    /// The reducer in `slot`, made when it is asked for first.
    pub fn of<'a>(slot: &'a mut Option<Self>, cuda: &Cuda, pool: &Pool) -> Result<&'a mut Self> {
        match slot {
            Some(reducer) => Ok(reducer),
            none => Ok(none.insert(Self::new(cuda, pool)?)),
        }
    }

    /// The pixels of each plane that [`Planes::axes_of`] names, of a field with so many values and such distances of neighbours
    /// along its axes; `plane` says the rest.
    pub fn planes(&mut self, plane: &PlaneOnGpu<'_>, len: &[usize], strides: &[usize]) -> Result<Vec<Coming<f32>>> {
        let of = |(i, j): (usize, usize)| {
            let rest = (0..len.len()).find(|axis| *axis != i && *axis != j);
            let begin = plane.begin + rest.map_or(0, |axis| len[axis] / 2 * strides[axis]);
            self.pixels(&PlaneOnGpu { begin, len: [len[i], len[j]], strides: [strides[i], strides[j]], ..*plane })
        };
        Planes::axes_of(len).into_iter().map(of).collect()
    }

    /// The pixels of a plane, rows from the top, as [`Planes`] has them, on their way.
    ///
    /// # Panics
    /// If the plane is empty or does not lie in its buffer.
    pub fn pixels(&mut self, plane: &PlaneOnGpu<'_>) -> Result<Coming<f32>> {
        assert!(plane.is_inside(), "a plane of {:?} values does not lie in its buffer of {} bytes", plane.len, plane.bytes);
        let (pixels, centring) = picture_pixels(plane.len, plane.centring);
        for d in 0..2 {
            self.weights_of((plane.len[d], pixels[d], centring))?;
        }
        let axis = |d: usize| {
            let of = (plane.len[d], pixels[d], centring);
            let weights = self.axes.iter().find(|a| a.of == of).expect("made above");
            let (first, weights) = (weights.first.address(), weights.weights.address());
            PixelAxis { first, weights, stride: plane.strides[d] as u64, pixels: pixels[d] as u32, zeros: plane.zeros[d] as u32 }
        };
        let kernel = match (plane.double, plane.double_in_record) {
            (false, _) => &self.kernels[0],
            (true, false) => &self.kernels[1],
            (true, true) => &self.kernels[2],
        };
        let count = pixels[0] * pixels[1];
        let launch = kernel.launch((count as u32).div_ceil(BLOCK), BLOCK).arg(plane.address + plane.begin as u64 * plane.size());
        let launch = launch.plain(axis(0)).plain(axis(1)).arg(plane.scale);
        Downloads::of(&mut self.pixels, &self.cuda, "pixels of a picture")?.begin_filled(count, |to| {
            // SAFETY: the arguments as declared; the values lie in their buffer, which is borrowed, tables have what their pixels
            // name, and there is room for all pixels.
            unsafe { launch.arg(to).run() }
        })
    }

    /// Has the weights of an axis on the device.
    fn weights_of(&mut self, of: (usize, usize, Centring)) -> Result<()> {
        if self.axes.iter().all(|a| a.of != of) {
            let (first, weights) = tables(&pixel_weights(of.0, of.1, of.2));
            let what = "weights of pixels";
            let (first, weights) = (self.pool.buffer_from(&first, what)?, self.pool.buffer_from(&weights, what)?);
            self.axes.push(DeviceWeights { of, first, weights });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
