//! `zellige`: the command line.

use std::process::ExitCode;

#[global_allocator]
static MEMORY: zellige_engine::allocator::ExitingAllocator = zellige_engine::allocator::ExitingAllocator;

fn main() -> ExitCode {
    zellige_engine::allocator::unmap_large_arrays();
    let program = std::env::current_exe().map_or_else(|_| vec!["zellige".into()], |path| vec![path.into_os_string()]);
    let code = zellige_cli::command(std::env::args_os(), program);
    zellige_engine::cuda::end_if_compiling(code);
    ExitCode::from(code)
}
