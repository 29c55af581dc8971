//! Errors of the engine as exceptions of the package, with their text and hint in the words of its calls.

use std::io::ErrorKind;

use pyo3::prelude::*;
use zellige_cli::session::words::for_python;
use zellige_engine::error::Error;

/// Name of the exception in `zellige.errors`.
fn class(error: &Error) -> &'static str {
    match error {
        Error::Input { .. } | Error::Format { .. } | Error::Content { .. } => "InputError",
        Error::File { source, .. } if source.kind() == ErrorKind::NotFound => "MissingFileError",
        Error::File { .. } => "FileError",
        Error::Unwritten { source, .. } => class(source),
        Error::Numerics { .. } => "NumericsError",
        Error::Device { .. } => "DeviceError",
        Error::OutOfMemory { .. } | Error::TooLarge { .. } => "OutOfMemoryError",
        Error::Interrupted { .. } => "Interrupted",
        _ => "Error",
    }
}

/// An exception of `zellige.errors` with a text of this package.
fn of_class(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let raise = || py.import("zellige.errors")?.getattr(class)?.call1((message,));
        raise().map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// An argument of a type, or at a place, that cannot be used.
pub(crate) fn wrong_type(message: impl Into<String>) -> PyErr {
    of_class("ArgumentError", message.into())
}

/// An argument whose value or shape cannot be used.
pub(crate) fn wrong_value(message: impl Into<String>) -> PyErr {
    of_class("InputError", message.into())
}

/// A call while another one is at work.
pub(crate) fn busy(message: impl Into<String>) -> PyErr {
    of_class("BusyError", message.into())
}

/// The exception for an error. After a signal it is what Python's own handler raises, which is called before ours:
/// `KeyboardInterrupt` as a rule, nothing where the process ignores the signal, as in the background of a shell.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    if let (Error::Interrupted { .. }, Err(raised)) = (error, py.check_signals()) {
        return raised;
    }
    let raise = || {
        let class = py.import("zellige.errors")?.getattr(class(error))?;
        class.call1((for_python(&error.to_string()), error.hint().map(|hint| for_python(&hint)), error.exit_code()))
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
