//! The compiled part of the Python package `zellige`: arrays, runs, plans, and the command line. What users import is in
//! `python/zellige`, which documents it.
//!
//! Beside device code this crate alone has `unsafe`: it hands memory to other libraries and takes theirs, by Python's array
//! interface and by DLPack.

mod array;
mod device;
mod dlpack;
mod errors;
mod memory;
mod plan;
mod ptycho;
mod record;
mod run;
mod tuples;

use std::ffi::OsString;

use pyo3::prelude::*;

#[global_allocator]
static MEMORY: zellige_engine::allocator::ExitingAllocator = zellige_engine::allocator::ExitingAllocator;

/// Compiled part of the package: arrays, runs, plans, and the command.
#[pymodule]
mod _zellige {
    #[pymodule_export]
    use super::array::{Array, restored};
    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use super::plan::PoissonPlan;
    #[pymodule_export]
    use super::ptycho::PtychoEngine;
    #[pymodule_export]
    use super::run::Session;

    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Carries out a command line in this process and returns its exit code; where kernels are still being compiled, the process ends
/// with it. `arguments` begins with the name of the program; `program` starts the same program in another process.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    let code = py.detach(|| zellige_cli::command(arguments, program));
    // The interpreter, too, would take the compiler down under its threads.
    zellige_engine::cuda::end_if_compiling(code);
    code
}
