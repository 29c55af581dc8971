//! The widest vectors of the processor at hand, chosen at run time.

/// Runs `work` compiled for the widest vectors that the processor has. What it calls must be inlined into it to gain from
/// that; the results are the same bits everywhere, because nothing is fused or reordered.
#[inline]
pub(super) fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2")]
        fn avx512<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        #[target_feature(enable = "avx2")]
        fn avx2<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq") {
            // SAFETY: the processor has just been found to have these instructions.
            return unsafe { avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has just been found to have these instructions.
            return unsafe { avx2(work) };
        }
    }
    plain(work)
}

/// Not inlined, as the others cannot be: once in the binary, not once in everything that a caller is inlined into.
#[inline(never)]
fn plain<R>(work: impl FnOnce() -> R) -> R {
    work()
}
