//! `zellige`: the command line.

mod args;
mod commands;
mod report;
mod sink;
mod solvers;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
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
