//! The command line as a function: the binary calls it, and so does the Python package, whose module holds the program too.

#[cfg(test)]
mod adding;
mod args;
mod commands;
#[cfg(test)]
mod keys;
mod report;
pub mod session;
mod sink;
mod solvers;
mod writer;

use std::ffi::OsString;
use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;

use clap::Parser;
use zellige_engine::error::{Error, Result};
use zellige_engine::notice;
use zellige_engine::times::{self, Phase};

/// Words that start this program anew.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Carries out a command line, whose first word is the name of the program, and returns the exit code. `program` starts the same
/// program in a process of its own: its path, and words before the arguments where it is not a binary of ours.
///
/// For the main thread of a process that has nothing else to do: signals end the command as they end the binary, and a defect ends
/// the process.
pub fn command(arguments: impl IntoIterator<Item = OsString>, program: Vec<OsString>) -> u8 {
    times::begin(Phase::Reading);
    PROGRAM.get_or_init(|| program);
    zellige_engine::signal::survive_limits_on_files();
    report::defects_in_one_line();
    let arguments = match args::Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(words) => {
            // Help to standard output, faults to standard error; whoever read it may have gone.
            let _ = words.print();
            return u8::try_from(words.exit_code()).unwrap_or(2);
        }
    };
    report::log(arguments.verbose);
    notice::told_by(report::note);
    let code = commands::dispatch(arguments.command).unwrap_or_else(|error| {
        report::error(&error);
        error.exit_code()
    });
    // At the end of a process of ours the library would do so.
    let _ = std::io::stdout().flush();
    code
}

/// A process of this program, for runs that have one each.
fn another_process() -> Result<Command> {
    let no_words = || Error::file("find", "this program", std::io::ErrorKind::NotFound.into());
    let (path, words) = PROGRAM.get().and_then(|words| words.split_first()).ok_or_else(no_words)?;
    let mut command = Command::new(path);
    command.args(words);
    Ok(command)
}
