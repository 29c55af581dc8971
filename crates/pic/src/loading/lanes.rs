//! Loops in registers of the best instruction set at hand. All give the same bits.

#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;
use zellige_engine::real::Isa;

/// A loop that is compiled for each instruction set.
pub(crate) trait Work {
    /// All of it, to be inlined.
    fn run(self);
}

/// Does `work` by the instructions of `isa`.
pub(crate) fn on(isa: Isa, work: impl Work) {
    match isa {
        // SAFETY: `Isa::all` asked the CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(work) },
        Isa::Baseline => work.run(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx512(work: impl Work) {
    if AVX512 { work.run() } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx2(work: impl Work) {
    work.run();
}
