//! Errors of the engine as exceptions of the package, with the same text and hint.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use zellige_engine::error::Error;

/// Name of the exception in `zellige.errors`.
fn class(error: &Error) -> &'static str {
    match error {
        Error::Input { .. } | Error::Format { .. } | Error::Content { .. } => "InputError",
        Error::File { .. } => "FileError",
        Error::Unwritten { source, .. } => class(source),
        Error::Numerics { .. } => "NumericsError",
        Error::Device { .. } => "DeviceError",
        Error::OutOfMemory { .. } | Error::TooLarge { .. } => "OutOfMemoryError",
        Error::Interrupted { .. } => "Interrupted",
        _ => "Error",
    }
}

/// Longest wait for Python's handler of a signal.
const HANDLED: Duration = Duration::from_millis(100);

/// Exception of Python's own handler of a signal, which is called after ours, perhaps by another thread that has yet to come to it.
fn raised_by_handler(py: Python<'_>) -> Option<PyErr> {
    let begun = Instant::now();
    loop {
        match py.check_signals() {
            Err(raised) => return Some(raised),
            Ok(()) if begun.elapsed() > HANDLED => return None,
            Ok(()) => py.detach(|| std::thread::sleep(Duration::from_millis(1))),
        }
    }
}

/// The exception for an error. After a signal it is what Python's own handler raises, `KeyboardInterrupt` as a rule.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    if let Error::Interrupted { reason: "SIGINT" | "SIGTERM", .. } = error
        && let Some(raised) = raised_by_handler(py)
    {
        return raised;
    }
    let raise = || {
        let class = py.import("zellige.errors")?.getattr(class(error))?;
        class.call1((error.to_string(), error.hint(), error.exit_code()))
    };
    raise().map_or_else(|failed| failed, PyErr::from_value)
}

/// Result of the engine for Python.
pub(crate) trait ForPython<T> {
    /// Makes an error an exception.
    fn for_python(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> ForPython<T> for zellige_engine::error::Result<T> {
    fn for_python(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}
