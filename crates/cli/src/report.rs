//! Messages for people on standard error: errors with hints, labels, numbers with units.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use zellige_engine::error::Error;
pub(crate) use zellige_engine::text::bytes;

/// Version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit that the binary was built from.
pub(crate) const GIT_HASH: &str = env!("ZELLIGE_GIT_HASH");

/// A line on standard error. Whoever read it may have gone (`zellige run x.toml 2>&1 | head`): the work goes on, as its results are
/// files.
macro_rules! say_always {
    ($($text:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr().lock(), format_args!("{}\n", format_args!($($text)*)));
    }};
}

/// A line on standard error, of the part of a run that speaks for all.
macro_rules! say {
    ($($text:tt)*) => {
        if !$crate::report::is_quiet() {
            $crate::report::say_always!($($text)*);
        }
    };
}
pub(crate) use {say, say_always};

/// True in a process that is one of several parts of a run, and not the first.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves all but errors to the first part.
pub(crate) fn only_errors() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns true if only errors are said.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns true if standard error accepts colours.
fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::io::stderr().is_terminal()
}

/// Returns true if standard output is a terminal that shows 24-bit colours, as far as it says.
pub(crate) fn terminal_takes_colours() -> bool {
    let says = |name: &str, words: &[&str]| std::env::var(name).is_ok_and(|v| words.iter().any(|w| v.contains(w)));
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && (says("COLORTERM", &["truecolor", "24bit"]) || says("TERM", &["256color", "direct", "kitty", "alacritty"]))
}

fn painted(code: &str, text: &str) -> String {
    if colours() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// `error: ...`, a blank line, `hint: ...`.
pub(crate) fn error(error: &Error) {
    fault(&error.to_string());
    if let Some(hint) = error.hint() {
        say_always!("\n{}: {hint}", painted("1;36", "hint"));
    }
}

/// `error: ...` in one line.
pub(crate) fn fault(text: &str) {
    say_always!("{}: {text}", painted("1;31", "error"));
}

/// `warning: ...`.
pub(crate) fn warning(text: &str) {
    say!("{}: {text}", painted("1;33", "warning"));
}

/// `note: ...`.
pub(crate) fn note(text: &str) {
    say!("{}: {text}", painted("1;36", "note"));
}

/// A label of a plan or a result with its text.
pub(crate) fn line(label: &str, text: &str) {
    say!("  {} {text}", painted("1", &format!("{label:<12}")));
}

/// A heading.
pub(crate) fn heading(text: &str) {
    say!("{}", painted("1", text));
}

/// Indefinite article of a word.
pub(crate) fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// A count with thin groups: `16 777 216`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// A time for people.
pub(crate) fn seconds(s: f64) -> String {
    match s {
        s if s >= 120.0 => format!("{:.1} min", s / 60.0),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// A time of nanoseconds for people: three decimals where they say something.
pub(crate) fn nanoseconds(ns: f64) -> String {
    if ns < 1e5 { format!("{ns:.3} ns") } else { seconds(ns * 1e-9) }
}

/// Messages of the libraries, when they are asked for.
pub(crate) fn log(verbose: bool) {
    if verbose {
        let ready = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(std::io::stderr)
            .with_ansi(colours())
            .without_time()
            .try_init();
        debug_assert!(ready.is_ok(), "the log is set up once");
    }
}

/// A defect ends in one line that can be reported, with exit code 70; `RUST_BACKTRACE=1` shows more.
pub(crate) fn defects_in_one_line() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // A damaged HDF5 file can make its library panic; that ends in an ordinary error.
        if zellige_io::hdf5::is_guarded() {
            return;
        }
        // A reader that closed the pipe (`zellige schema poisson | head`) is no defect.
        let text = info.payload().downcast_ref::<String>().map(String::as_str).or(info.payload().downcast_ref::<&str>().copied());
        if text.is_some_and(|t| t.contains("Broken pipe")) {
            std::process::exit(0);
        }
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(info);
        }
        let place = info.location().map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
        say!("{}: a defect of zellige {VERSION} ({GIT_HASH}){place}: {}", painted("1;31", "error"), text.unwrap_or("no message"));
        say!("\n{}: please report this line with the input; `RUST_BACKTRACE=1` shows more", painted("1;36", "hint"));
        std::process::exit(70);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(count(16_777_216), "16 777 216");
        assert_eq!(count(999), "999");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(3.5 * 1024.0 * 1024.0), "3.50 MiB");
        assert_eq!(seconds(0.0123), "12.30 ms");
        assert_eq!(seconds(75.0), "75.00 s");
        assert_eq!((nanoseconds(13.9614), nanoseconds(653_951.72)), ("13.961 ns".into(), "654.0 us".into()));
    }
}
