//! Instruction sets: the pass over a tile is written once over registers and compiled for each of them; the best one that the
//! machine has is chosen at run time.

use std::sync::Mutex;

use zellige_engine::real::AVX512;
pub use zellige_engine::real::Isa;
#[cfg(not(target_arch = "x86_64"))]
use zellige_engine::real::Lanes as Array;
use zellige_engine::real::RealScalar;

use super::advance::PassContext;
use super::exchange::Outbox;
use super::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use super::lanes::{F32x4, F32x8, F32x16, F64x2, F64x4, F64x8};
use super::row::{Scratch, advance_rows};
use super::store::Band;
use super::window::Window;

/// Data of the pass over one tile.
pub(super) struct Work<'a, T> {
    pub(super) pass: &'a PassContext<'a, T>,
    pub(super) tile: Band<'a, T>,
    pub(super) window: &'a mut Window<T>,
    pub(super) out: &'a mut Outbox<T>,
    pub(super) scratch: &'a Mutex<Scratch<T>>,
    /// Order of the shapes.
    pub(super) order: u32,
}

impl<T: RealScalar> Work<'_, T> {
    /// # Safety
    /// The CPU has the instructions of `X`.
    #[inline(always)]
    unsafe fn run<X: Lanes<Scalar = T>>(mut self) {
        // A thread has its scratch for itself; a panic in a test may leave the lock poisoned, the content is overwritten.
        let mut scratch = self.scratch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: the caller's.
        unsafe {
            if self.order == 1 {
                advance_rows::<X, 1>(self.pass, &mut self.tile, self.window, self.out, &mut scratch);
            } else {
                advance_rows::<X, 2>(self.pass, &mut self.tile, self.window, self.out, &mut scratch);
            }
        }
    }
}

/// A number format of the particles.
pub(super) trait Format: RealScalar {
    /// Cells of a tile's row.
    fn cells(isa: Isa) -> usize;

    /// Runs the pass over a tile. `isa` is one of [`Isa::all`].
    fn advance(isa: Isa, work: Work<'_, Self>);
}

impl Format for f32 {
    fn cells(isa: Isa) -> usize {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => F32x16::CELLS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => F32x8::CELLS,
            Isa::Baseline => 8,
        }
    }

    fn advance(isa: Isa, work: Work<'_, Self>) {
        match isa {
            // SAFETY: `Isa::all` asked the CPU.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::<f32, F32x16>(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::<f32, F32x8>(work) },
            // SAFETY: every processor of the architecture has these.
            #[cfg(target_arch = "x86_64")]
            Isa::Baseline => unsafe { work.run::<F32x4>() },
            // SAFETY: plain arrays need nothing.
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Baseline => unsafe { work.run::<Array<f32, 4>>() },
        }
    }
}

impl Format for f64 {
    fn cells(_: Isa) -> usize {
        8
    }

    fn advance(isa: Isa, work: Work<'_, Self>) {
        match isa {
            // SAFETY: `Isa::all` asked the CPU.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::<f64, F64x8>(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::<f64, F64x4>(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Baseline => unsafe { work.run::<F64x2>() },
            // SAFETY: plain arrays need nothing.
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Baseline => unsafe { work.run::<Array<f64, 2>>() },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx512<T: RealScalar, X: Lanes<Scalar = T>>(work: Work<'_, T>) {
    // SAFETY: the caller's.
    if AVX512 { unsafe { work.run::<X>() } } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx2<T: RealScalar, X: Lanes<Scalar = T>>(work: Work<'_, T>) {
    // SAFETY: the caller's.
    unsafe { work.run::<X>() }
}
