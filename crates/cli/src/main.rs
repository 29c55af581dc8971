//! `zellige`: the command line.

#[cfg(test)]
mod adding;
mod args;
mod commands;
#[cfg(test)]
mod keys;
mod report;
mod sink;
mod solvers;
mod writer;

use std::process::ExitCode;

use clap::Parser;
use zellige_engine::notice;
use zellige_engine::times::{self, Phase};

#[global_allocator]
static MEMORY: zellige_engine::allocator::ExitingAllocator = zellige_engine::allocator::ExitingAllocator;

fn main() -> ExitCode {
    times::begin(Phase::Reading);
    zellige_engine::allocator::unmap_large_arrays();
    zellige_engine::signal::survive_limits_on_files();
    report::defects_in_one_line();
    let arguments = args::Arguments::parse();
    report::log(arguments.verbose);
    notice::told_by(report::note);
    match commands::dispatch(arguments.command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
