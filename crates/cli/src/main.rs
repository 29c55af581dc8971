//! `zellige`: the command line.

mod args;
mod commands;
mod report;
mod sink;
mod solvers;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static MEMORY: zellige_engine::allocator::OrExit = zellige_engine::allocator::OrExit;

fn main() -> ExitCode {
    zellige_engine::signal::survive_limits_on_files();
    report::defects_in_one_line();
    let arguments = args::Arguments::parse();
    report::log(arguments.verbose);
    match commands::dispatch(arguments.command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
