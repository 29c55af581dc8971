//! The commands, one file each.

mod bench;
pub(crate) mod conclude;
mod devices;
mod dsmc;
mod folder;
mod gpus;
mod kernels;
pub(crate) mod live;
mod new;
pub(crate) mod parts;
mod poisson;
mod ptycho;
mod queue;
pub(crate) mod ready;
pub(crate) mod run;
mod tell;
mod view;
mod whole;

use std::io::Write;

use clap::CommandFactory;
use zellige_engine::error::{Error, Result};

use crate::args::{Arguments, Command};
use crate::solvers;

/// Runs the command and returns the exit code.
pub(crate) fn dispatch(command: Command) -> Result<u8> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Devices { json, measure } => devices::devices(json, measure),
        Command::Kernels(arguments) => kernels::kernels(&arguments),
        Command::New(arguments) => new::new(&arguments),
        Command::Schema { solver } => print(&format!("{:#}\n", solvers::find(&solver)?.schema())),
        Command::View(arguments) => view::view(&arguments),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "zellige", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Dsmc { command } => dsmc::dsmc(command),
        Command::Ptycho { command } => ptycho::ptycho(command),
        Command::Poisson(arguments) => poisson::poisson(arguments),
    }
}

/// Data to standard output. A reader that went away is no error.
pub(crate) fn print(text: &str) -> Result<u8> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::file("write", "standard output", e)),
        _ => Ok(0),
    }
}
