//! Instruction sets: a row operation is written once over lanes and compiled for each of them; the best one that the
//! machine has is chosen at run time. All give the same bits: no operation is fused or reordered.

#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;
pub(crate) use zellige_engine::real::Isa;

/// A piece of work that is compiled for each instruction set. `run` must be `#[inline(always)]`.
pub(crate) trait Work {
    /// Result of the work.
    type Out;

    /// Does it.
    fn run(self) -> Self::Out;
}

/// Does work with the instructions of a set.
pub(crate) trait Run {
    /// Does `work`.
    fn run<W: Work>(self, work: W) -> W::Out;
}

impl Run for Isa {
    #[inline]
    fn run<W: Work>(self, work: W) -> W::Out {
        match self {
            // SAFETY: `Avx512` and `Avx2` come from `Isa::all`, which asked the CPU.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2(work) },
            Self::Baseline => baseline(work),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
unsafe fn avx512<W: Work>(work: W) -> W::Out {
    if AVX512 { work.run() } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<W: Work>(work: W) -> W::Out {
    work.run()
}

/// Runs the work without inlining; the others cannot be inlined: once in the binary, not once in every pass that does this work.
#[inline(never)]
fn baseline<W: Work>(work: W) -> W::Out {
    work.run()
}
