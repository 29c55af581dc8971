//! Instruction sets: what is compiled for each of them is chosen at run time.

/// The instruction sets that inner loops are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// 64-byte registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 32-byte registers and fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Instructions that every processor of the architecture has.
    Baseline,
}

/// Compile-time switch for the code of [`Isa::Avx512`]: off in builds other than releases where that code cannot run (`build.rs`).
/// Functions for it test this first, so that no code is generated for what they call.
pub const AVX512: bool = !cfg!(without_avx512);

impl Isa {
    /// The best one of this machine.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// All that this machine has and this build holds, the best one first. `Avx512` means the foundation with its parts VL, DQ and
    /// BW.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if AVX512 && avx2 && wide {
                all.push(Self::Avx512);
            }
            if avx2 {
                all.push(Self::Avx2);
            }
        }
        all.push(Self::Baseline);
        all
    }
}

/// Asks for the cache line at `p` soon.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults nowhere.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}
