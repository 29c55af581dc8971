//! Frames as they are kept: counts of 16 bits where all are such, magnitudes otherwise; and kernels that convert them, and waves in
//! half precision, into what the others take.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pinned, Pool, Recipe};
use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks, chunks_mut, each, position};

use crate::model::MASKED;
use crate::stages::cuda::number::{C, Number};
use crate::stages::cuda::program::{KernelConfig, TEAM};
use crate::stages::cuda::recipes::recipe;
use crate::stages::cuda::refused;

/// Mark of a pixel that was not measured.
const NOTHING: u16 = u16::MAX;

/// The kernels.
pub(super) fn keep_recipe(config: &KernelConfig) -> Recipe {
    // Waves of doubles are kept as they are.
    let kernels: &[_] =
        if config.double { &["from_counts", "from_magnitudes"] } else { &["from_counts", "from_magnitudes", "narrow", "widen"] };
    recipe(config, "kept frames", &["stream/keep.cu"], kernels)
}

/// The counts whose square root a magnitude is, where there are such.
fn counts(mag: f32) -> Option<u16> {
    if mag == MASKED {
        return Some(NOTHING);
    }
    let counts = f64::from(mag).powi(2).round();
    let sound = (0.0..f64::from(NOTHING)).contains(&counts) && (counts as f32).sqrt() == mag;
    sound.then_some(counts as u16)
}

/// Bytes of a pixel as it is kept.
pub(super) fn bytes_of_pixel(mag: &[f32]) -> u64 {
    // Of frames that nobody has read yet nothing is known.
    if !mag.is_empty() && position(mag, |m| counts(*m).is_none()).is_none() { 2 } else { 4 }
}

/// All frames in page-locked memory, in the order of the model.
pub(super) fn frames(cuda: &Cuda, mag: &[f32], bytes: u64) -> Result<Pinned<u8>> {
    let mut raw = cuda.pinned::<u8>(mag.len() * bytes as usize, "ptycho: frames")?;
    if bytes == 2 {
        let to: &mut [u16] = bytemuck::cast_slice_mut(&mut raw);
        each((chunks_mut(to, 1 << 14), chunks(mag, 1 << 14)), |_, (to, mag)| {
            to.iter_mut().zip(mag).for_each(|(to, m)| *to = counts(*m).unwrap_or(NOTHING));
        });
    } else {
        bytemuck::cast_slice_mut(&mut raw).copy_from_slice(mag);
    }
    Ok(raw)
}

/// The kernels, ready.
pub(super) struct FrameConverter {
    counts: Kernel,
    magnitudes: Kernel,
    /// Kernels to half precision and back, of runs in single precision.
    halves: Option<[Kernel; 2]>,
    pixels: usize,
}

impl FrameConverter {
    pub(super) fn new(cuda: &Cuda, config: KernelConfig) -> Result<Self> {
        let program = keep_recipe(&config).build(cuda)?;
        Ok(Self {
            counts: program.kernel("from_counts")?,
            magnitudes: program.kernel("from_magnitudes")?,
            halves: if config.double { None } else { Some([program.kernel("narrow")?, program.kernel("widen")?]) },
            pixels: config.counted(),
        })
    }

    /// Magnitudes of `views` frames, kept in `bytes` a pixel, in the order of a kind.
    pub(super) fn magnitudes(
        &self,
        (raw, bytes): (&Buffer<u8>, u64),
        order: Option<&Buffer<u32>>,
        mag: &mut Buffer<f32>,
        views: usize,
    ) -> Result<()> {
        assert!(views * self.pixels <= mag.len() && (views * self.pixels) as u64 * bytes <= raw.bytes(), "{views} frames");
        let kernel = if bytes == 2 { &self.counts } else { &self.magnitudes };
        let launch = kernel.launch((self.pixels.div_ceil(TEAM as usize) as u32, views as u32), TEAM);
        // SAFETY: (const T*, const u32*, float*) as declared; both hold so many frames.
        unsafe { launch.arg(raw).arg(order.map_or(0, Buffer::address)).arg(mag).run() }
    }

    fn half(&self, which: usize) -> Result<&Kernel> {
        self.halves.as_ref().map(|kernels| &kernels[which]).ok_or_else(halves_of_doubles)
    }

    /// Waves to half precision.
    pub(super) fn narrow<T: Number>(&self, waves: &Buffer<C<T>>, half_precision: &mut Buffer<u32>, count: usize) -> Result<()> {
        // SAFETY: (const C*, u32*, u64) as declared; both hold so many values.
        unsafe { self.half(0)?.launch(grid(count), TEAM).arg(waves).arg(half_precision).arg(count as u64).run() }
    }

    /// Converts them back.
    pub(super) fn widen<T: Number>(&self, half_precision: &Buffer<u32>, waves: &mut Buffer<C<T>>, count: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.half(1)?.launch(grid(count), TEAM).arg(half_precision).arg(waves).arg(count as u64).run() }
    }
}

/// Error for doubles that are to be kept in half precision.
pub(super) fn halves_of_doubles() -> Error {
    refused("exit waves in half precision of a run in doubles", "leave out `exit_waves` of [ptycho.memory], or `precision`")
}

fn grid(count: usize) -> u32 {
    count.div_ceil(TEAM as usize).min(1 << 16) as u32
}

/// The order of magnitudes in frames as kernels of `config` read them, on the device.
pub(super) fn order(pool: &Pool, config: KernelConfig) -> Result<Option<Buffer<u32>>> {
    config.order(4).map(|order| pool.buffer_from(&order, "ptycho: order of frames")).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back_from_their_roots() {
        assert!((0..u32::from(NOTHING)).all(|n| counts((n as f32).sqrt()) == Some(n as u16)));
        assert_eq!(counts(MASKED), Some(NOTHING));
        assert_eq!([65_535.0_f32.sqrt(), 0.5_f32.sqrt(), 3.0001_f32.sqrt(), f32::NAN].map(counts), [None; 4]);
        assert_eq!(bytes_of_pixel(&[1.0, MASKED, 2.0]), 2);
        assert_eq!(bytes_of_pixel(&[1.0, 1.5]), 4);
    }
}
