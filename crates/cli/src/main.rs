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
use zellige_engine::times::{self, Part};

#[global_allocator]
static MEMORY: zellige_engine::allocator::OrExit = zellige_engine::allocator::OrExit;

fn main() -> ExitCode {
    times::begin(Part::Reading);
    zellige_engine::allocator::give_back_large();
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
