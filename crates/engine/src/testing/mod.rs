//! Helpers shared by the tests of all crates: a GPU or a compiler where there is one, and a clear message where there is none.
//!
//! With `ZELLIGE_REQUIRE_GPU=1` (and `ZELLIGE_REQUIRE_NVRTC=1`) a skip is a failure.

mod files;
pub mod host;
pub mod mpi;
pub mod parts;
pub mod toy;

pub use self::files::alike;

use crate::cuda::{self, Cuda};

/// The architectures that every kernel is compiled for: one for each set of instructions that kernels tell apart (`__CUDA_ARCH__`
/// below 800, below 900, from there on). Kernels of the examples are compiled for `sm_100` too, with all optimisations, by
/// `.ci/run kernels`.
pub const ARCHITECTURES: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

fn required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|v| !v.is_empty() && v != "0")
}

/// The first GPU, or `None` after saying `skipped: no GPU`.
///
/// # Panics
/// Without a usable GPU where `ZELLIGE_REQUIRE_GPU` is set.
pub fn gpu() -> Option<Cuda> {
    let opened = Cuda::open(0).and_then(|cuda| cuda::compiler().map(|_| cuda));
    match opened {
        Ok(cuda) => {
            // A test ends where the process may end with it.
            cuda::hold_the_end();
            Some(cuda)
        }
        Err(error) => {
            assert!(!required("ZELLIGE_REQUIRE_GPU"), "ZELLIGE_REQUIRE_GPU is set, but: {error}");
            println!("skipped: no GPU ({error})");
            None
        }
    }
}

/// Returns true if kernels can be compiled here; prints `skipped: no NVRTC` otherwise.
///
/// # Panics
/// Without NVRTC where `ZELLIGE_REQUIRE_NVRTC` is set.
pub fn compiler() -> bool {
    match cuda::compiler() {
        Ok(_) => true,
        Err(error) => {
            assert!(!required("ZELLIGE_REQUIRE_NVRTC"), "ZELLIGE_REQUIRE_NVRTC is set, but: {error}");
            println!("skipped: no NVRTC ({error})");
            false
        }
    }
}

/// Puts a program through the compiler for all [`ARCHITECTURES`], without most optimisations, which take two thirds of the time.
/// Skipped without NVRTC.
///
/// # Panics
/// With the compiler's log where it does not compile.
pub fn compiles(recipe: &cuda::Recipe) {
    if !compiler() {
        return;
    }
    let version = cuda::compiler().map_or((0, 0), |(_, version)| version);
    // Side by side: a program can take the compiler ten seconds for each.
    std::thread::scope(|scope| {
        for arch in ARCHITECTURES {
            scope.spawn(move || {
                let fast = version >= (13, 0);
                let recipe = if fast { &recipe.clone().option("--Ofast-compile=max") } else { recipe };
                let cubin = recipe.compile_only(arch).unwrap_or_else(|error| panic!("{error}"));
                let [image] = &cubin.images[..] else { panic!("{} images", cubin.images.len()) };
                assert!(image.code.starts_with(b"\x7fELF"), "{} for {arch} is no machine code", recipe.name);
                assert_eq!(image.names.len(), recipe.kernels.len());
            });
        }
    });
}
