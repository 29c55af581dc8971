//! Plans of rustfft, for `f32` and `f64`, and nothing else.
//!
//! rustfft is generic over the number type, so its many kernels are compiled in the crate that makes a planner: here,
//! once, and not again with every change or test build of a larger crate. All others use `Arc<dyn Fft>`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustfft::FftPlanner;
pub use rustfft::{Fft, FftDirection, FftNum};

/// A number type with planned transforms.
pub trait Planned: FftNum {
    /// A transform of `n` points from the planner of the process, which remembers what it has planned.
    fn line(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;
}

macro_rules! planned {
    ($($t:ty),*) => {$(
        impl Planned for $t {
            fn line(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>> {
                static PLANNER: OnceLock<Mutex<FftPlanner<$t>>> = OnceLock::new();
                let planner = PLANNER.get_or_init(|| Mutex::new(FftPlanner::new()));
                planner.lock().unwrap_or_else(PoisonError::into_inner).plan_fft(n, direction)
            }
        }
    )*};
}
planned!(f32, f64);
