//! The one error type of the engine: it names the input, the position, what is allowed and what to do.
//!
//! Display is one or more lower-case lines; the hint, where there is one, comes from [`Error::hint`] so that the
//! command line can set it apart. [`Error::exit_code`] maps each kind to the documented exit code.

use std::path::{Path, PathBuf};

/// Short form used throughout the workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One fault of an input, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problem {
    /// Dotted path of the key, for example `poisson.grid.nodes`.
    pub path: String,
    /// Description of the error, with the offending value.
    pub message: String,
    /// Accepted values, for example `3 to 65536`.
    pub allowed: Option<String>,
    /// Remedy.
    pub hint: Option<String>,
    /// Line and column in the input file, counted from 1; filled in by the loader.
    pub position: Option<(usize, usize)>,
}

impl Problem {
    /// A problem at the key `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), ..Self::default() }
    }

    /// States the values that are accepted.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// States the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        write!(f, "{}", self.message)?;
        if let Some(allowed) = &self.allowed {
            write!(f, " (allowed: {allowed})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n    hint: {hint}")?;
        }
        Ok(())
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |all, p| all + "\n  " + &p.to_string())
}

/// Errors other than programming mistakes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input file or the command line asks for something that cannot be had; every problem found is listed.
    #[error("{origin}: {} problem{}{}", problems.len(), if problems.len() == 1 { "" } else { "s" }, list(problems))]
    Input {
        /// The file, or `command line`.
        origin: String,
        /// All problems found in one reading.
        problems: Vec<Problem>,
    },
    /// A file or folder cannot be read, written, created or renamed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// A verb: `read`, `write`, `create`, `rename`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file was read but its content is not what its format demands.
    #[error("`{}` is not a valid {format} file: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format's name, for example `NPY`.
        format: &'static str,
        /// Description of the error, with position, expected and found values.
        message: String,
    },
    /// A file is sound, but lacks what is needed: a missing dataset, values of another type.
    #[error("`{}`: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the missing or unexpected part, and of what was found.
        message: String,
    },
    /// A device that was asked for is absent or refused its work.
    #[error("device `{device}`: {message}")]
    Device {
        /// The device as asked for, for example `cuda:0`.
        device: String,
        /// Description of what happened.
        message: String,
        /// The command or setting that fixes it.
        hint: Option<String>,
    },
    /// Memory ran out.
    #[error("out of memory on {device}: {} asked for {what}, {} free", crate::text::bytes(*requested as f64), free.map_or_else(|| "unknown".to_owned(), |b| crate::text::bytes(b as f64)))]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Purpose of the memory, for example `poisson level 0: residual`.
        what: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free at that moment, where the device tells.
        free: Option<u64>,
    },
    /// Request for more memory than the device has in all: refused before any of it is allocated.
    #[error("out of memory on {device}: {} asked for {what}, {} there in all", crate::text::bytes(*requested as f64), crate::text::bytes(*memory as f64))]
    TooLarge {
        /// The device's name, or `the host`.
        device: String,
        /// Purpose of the memory.
        what: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes that the device has.
        memory: u64,
    },
    /// The computation broke down: values that are not finite, divergence.
    #[error("{what} at {place}: {message}")]
    Numerics {
        /// The quantity.
        what: String,
        /// Step or cycle, and position where known.
        place: String,
        /// Description of the observation.
        message: String,
    },
    /// A signal, the wall-time limit or the live page ended the run early; the state was saved first.
    #[error("interrupted by {reason} after step {step}{}", checkpoint.as_deref().map_or_else(String::new, |p| format!("; state saved in `{}`", p.display())))]
    Interrupted {
        /// `SIGINT`, `SIGTERM`, `the wall-time limit` or `the live page`.
        reason: &'static str,
        /// The last finished step.
        step: u64,
        /// Path of the checkpoint, if one was written.
        checkpoint: Option<PathBuf>,
    },
    /// Results could not be written; the state was saved, so that they can be without computing again.
    #[error("{source}; the state after step {step} is saved in `{}`", checkpoint.display())]
    Unwritten {
        /// Cause.
        source: Box<Self>,
        /// The last finished step.
        step: u64,
        /// Path of the checkpoint.
        checkpoint: PathBuf,
    },
    /// Another part of the run failed, and this one ends with it.
    #[error("part {part}{} ended the run: {message}", host.as_deref().map_or_else(String::new, |host| format!(" on {host}")))]
    Part {
        /// Number of the part that failed.
        part: usize,
        /// Its host, where that is not this one.
        host: Option<String>,
        /// Its error.
        message: String,
        /// Its exit code.
        code: u8,
    },
    /// A kernel did not compile: a defect of this program, reported with the compiler's log.
    #[error("kernel program `{program}` did not compile for {arch}:\n{log}")]
    Kernel {
        /// The program's name.
        program: String,
        /// The architecture, for example `sm_90`.
        arch: String,
        /// The compiler's log.
        log: String,
    },
}

/// The command that resumes from a checkpoint.
fn resume(checkpoint: &Path) -> String {
    let folder = checkpoint.parent().and_then(Path::parent).unwrap_or(checkpoint);
    format!("`zellige run --resume {}`", folder.display())
}

/// End of a message about a value that is not finite.
pub(crate) const BROKEN_DOWN: &str = "the computation has broken down";

impl Error {
    /// One problem on the command line or in an unnamed input.
    pub fn input(origin: impl Into<String>, problem: Problem) -> Self {
        Self::Input { origin: origin.into(), problems: vec![problem] }
    }

    /// A failed file operation.
    pub fn file(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::File { action, path: path.as_ref().to_owned(), source }
    }

    /// A file whose content is wrong.
    pub fn format(path: impl AsRef<Path>, format: &'static str, message: impl Into<String>) -> Self {
        Self::Format { path: path.as_ref().to_owned(), format, message: message.into() }
    }

    /// A file that the input names under `key` and that cannot be read, or does not hold what it should, is a problem of that key;
    /// other errors stay as they are.
    #[must_use]
    pub fn of_key(self, key: impl Into<String>) -> Self {
        if let Self::Format { .. } | Self::Content { .. } = &self {
            return Self::input("the input", Problem::new(key, self.to_string()));
        }
        let Self::File { action: "read", path, source } = &self else { return self };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let hint = match source.kind() {
            std::io::ErrorKind::NotFound if !folder.is_dir() => {
                format!("there is no folder `{}`; paths are relative to the folder of the input file", folder.display())
            }
            std::io::ErrorKind::NotFound => {
                "paths are relative to the folder of the input file; put the file there or correct the name".into()
            }
            std::io::ErrorKind::PermissionDenied => "change the permissions of the file, or name another one".into(),
            _ => "name a file that can be read as a whole".into(),
        };
        Self::input("the input", Problem::new(key, format!("cannot read `{}`: {source}", path.display())).hint(hint))
    }

    /// The fix, where one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { source, action, .. } => match source.kind() {
                std::io::ErrorKind::NotFound if *action == "read" => Some("check the spelling and the current folder".into()),
                std::io::ErrorKind::PermissionDenied => {
                    Some("name another one that you may use, or change the permissions".into())
                }
                std::io::ErrorKind::StorageFull => {
                    Some("free some space, or name another folder; no half-written file was left".into())
                }
                std::io::ErrorKind::QuotaExceeded | std::io::ErrorKind::FileTooLarge => {
                    Some("the system limits what you may write here (quota, `ulimit -f`): name another folder; no half-written file was left".into())
                }
                std::io::ErrorKind::AlreadyExists if *action == "create" => {
                    Some("there is a file of that name: name another folder, or move the file away".into())
                }
                std::io::ErrorKind::NotADirectory => Some("what should be a folder on this path is a file: name another path".into()),
                std::io::ErrorKind::NotFound => Some("there is no such folder, and it cannot be made: name another one".into()),
                _ => None,
            },
            Self::Device { hint, .. } => hint.clone(),
            Self::OutOfMemory { .. } => {
                Some("ask for less (`--dry-run` shows what a run needs), close other programs, or use another `--device`".into())
            }
            Self::TooLarge { .. } => {
                Some("ask for less (`--dry-run` shows what a run needs), or use a `--device` or a machine with more memory".into())
            }
            Self::Interrupted { checkpoint: Some(path), .. } => Some(format!("resume with {}", resume(path))),
            Self::Unwritten { source, checkpoint, .. } => {
                let first = source.hint().map(|hint| format!("{hint}; then ")).unwrap_or_default();
                Some(format!("{first}{} writes the results without computing again", resume(checkpoint)))
            }
            // A value that is no number; other messages of this kind say themselves what to do.
            Self::Numerics { message, .. } if message.ends_with(BROKEN_DOWN) => Some(
                "the step before it was already wrong: look at the last rows for what grows; a smaller time step, more smoothing or a finer \
                 grid keep a scheme stable, and a value of the input that is far out of scale breaks any"
                    .into(),
            ),
            Self::Kernel { .. } => Some("please report this with the log; `--device cpu` works meanwhile".into()),
            _ => None,
        }
    }

    /// The process exit code: 2 input, 3 numerics, 4 device or memory, 5 files, 70 defect, 75 wall time, live page or end of a
    /// queue, 130 SIGINT, 143 SIGTERM.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input { .. } | Self::Format { .. } | Self::Content { .. } => 2,
            Self::Numerics { .. } => 3,
            Self::Device { .. } | Self::OutOfMemory { .. } | Self::TooLarge { .. } => 4,
            Self::File { .. } => 5,
            Self::Unwritten { source, .. } => source.exit_code(),
            Self::Kernel { .. } => 70,
            Self::Part { code, .. } => *code,
            Self::Interrupted { reason, .. } => match *reason {
                "SIGINT" => 130,
                "SIGTERM" => 143,
                _ => 75,
            },
        }
    }
}
