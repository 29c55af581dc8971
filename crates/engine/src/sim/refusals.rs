//! Refusals of what a caller between two steps asks for.

use crate::error::{Error, Problem};

/// Error of values for a part of the state that cannot be set between two steps, with what can.
pub fn not_set(kind: &str, name: &str, allowed: &[&str]) -> Error {
    let problem = Problem::new(name, format!("no {kind} of this run can be set by that name"));
    let allowed = if allowed.is_empty() { "none of this solver's".into() } else { allowed.join(", ") };
    Error::input("the run", problem.allowed(allowed))
}

/// Error of a field or of particles that do not lie in the memory of the run's GPU, with those that do.
pub fn not_on_gpu(name: &str, allowed: &[String]) -> Error {
    let problem = Problem::new(name, "nothing by that name lies in the memory of the run's GPU as an array");
    let allowed = if allowed.is_empty() { "none of this run's".into() } else { allowed.join(", ") };
    Error::input("the run", problem.allowed(allowed).hint("`run.fields` and `run.particles` have it on the host, if it is there"))
}
