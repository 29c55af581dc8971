//! Averages as copies in the memory of the run's GPU, by the names of their records.

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{FieldOnGpu, Palette, ValuesOnGpu};
use zellige_engine::sim::not_on_gpu;

use super::{Written, field_of, written};
use crate::flow::{Averaged, Flow};
use crate::model::Model;
use crate::sampling::by_particles;
use crate::stages::Wanted;

/// Ending of the names of standard errors.
const ERROR: &str = "_error";

/// The value that has a name, and whether its standard error is meant.
fn named<'a>(all: &'a [Written], name: &str) -> Option<(&'a Written, bool)> {
    all.iter().find_map(|w| match name.strip_prefix(w.name.as_str()) {
        Some("") => Some((w, false)),
        Some(ERROR) => Some((w, true)),
        _ => None,
    })
}

/// Request to a device for the value.
fn wanted(model: &Model, w: &Written, error: bool) -> Wanted {
    Wanted { value: w.at, line: w.line, needs: w.needs as u32, error, by_particles: by_particles(model, w.at) }
}

/// A value of the cells, or its standard error, by the name of its record.
///
/// # Errors
/// There is none of that name, or no batch of samples is full yet.
pub(crate) fn field(flow: &mut Flow, name: &str) -> Result<FieldOnGpu> {
    let all = written(&flow.model);
    let Some((found, error)) = named(&all, name) else {
        let names: Vec<String> = all.iter().map(|w| w.name.clone()).chain(all.iter().map(|w| format!("{}{ERROR}", w.name))).collect();
        return Err(not_on_gpu(name, &names));
    };
    if flow.samples.batches == 0 {
        let problem = Problem::new(name, "there is no average yet: no batch of samples is full");
        return Err(Error::input("the run", problem.hint("make more steps; `sampling` of the input says when averages begin")));
    }
    let Flow { model, samples, stages, .. } = flow;
    let Some(values) = samples.show(&wanted(model, found, error), &mut **stages)? else { return Err(not_on_gpu(name, &[])) };
    let title = if error { format!("standard error of the {}", found.title) } else { found.title.clone() };
    let field = field_of(Averaged::from(&*flow), name.to_owned(), title, found.unit, Vec::new(), Palette::Undrawn);
    Ok(FieldOnGpu { field, values: ValuesOnGpu::F64(values) })
}

/// Request to a device for the record of that name, if it is a value of the cells.
#[cfg(test)]
pub(crate) fn wanted_of(flow: &Flow, name: &str) -> Option<Wanted> {
    named(&written(&flow.model), name).map(|(found, error)| wanted(&flow.model, found, error))
}
