//! Instruction sets: a row operation is written once over lanes and compiled for each of them; the best one that the
//! machine has is chosen at run time. All give the same bits: no operation is fused or reordered.

/// A piece of work that is compiled for each instruction set. `run` must be `#[inline(always)]`.
pub(super) trait Work {
    /// What it gives.
    type Out;

    /// Does it.
    fn run(self) -> Self::Out;
}

/// The instruction sets that rows are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isa {
    /// 64-byte registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 32-byte registers.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What every processor of the architecture has.
    Baseline,
}

impl Isa {
    /// The best one of this machine.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// All that this machine has.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push(Self::Avx2);
            }
            if Self::detect() == Self::Avx512 {
                all.push(Self::Avx512);
            }
        }
        all
    }

    /// Does `work` with these instructions.
    #[inline]
    pub(super) fn run<W: Work>(self, work: W) -> W::Out {
        match self {
            // SAFETY: `Avx512` and `Avx2` are only made by `detect` and `all`, after the processor said that it has them.
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
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<W: Work>(work: W) -> W::Out {
    work.run()
}

/// Not inlined, as the others cannot be: once in the binary, not once in every pass that does this work.
#[inline(never)]
fn baseline<W: Work>(work: W) -> W::Out {
    work.run()
}
