//! Changes of a reconstruction from outside, between two iterations.

use num_complex::Complex;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::GivenValues;
use zellige_engine::sim::not_set;

use super::Ptycho;
use crate::model::Model;
use crate::output::{of_object, of_probe};

/// An object or a probe that can be set.
struct Part {
    name: String,
    shape: [usize; 3],
    /// First value, in objects or probes.
    first: usize,
    is_probe: bool,
}

/// All that can be set, by the names of records.
fn parts(model: &Model) -> Vec<Part> {
    let [probe_modes, object_modes] = model.modes;
    let objects = model.storages.iter().enumerate().map(|(i, storage)| Part {
        name: format!("object{}", of_object(model, i)),
        shape: [object_modes, storage.shape[0], storage.shape[1]],
        first: storage.offset,
        is_probe: false,
    });
    let probes = (0..model.probes).map(|s| Part {
        name: format!("probe{}", of_probe(model, s)),
        shape: [probe_modes, model.frame[0], model.frame[1]],
        first: s * probe_modes * model.pixels(),
        is_probe: true,
    });
    objects.chain(probes).collect()
}

/// A value as records have it.
fn told(v: Complex<f64>) -> [f32; 2] {
    [v.re as f32, v.im as f32]
}

impl Ptycho {
    /// Puts an object or a probe in place of what there is; exit waves stay. Values that are what records tell stay to the last
    /// bit: those are in single precision, and probes in them have not the phase of the sample plane.
    ///
    /// # Errors
    /// There is none of that name, the shape is another one, or a value is not finite.
    pub(super) fn set_wave(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        self.settle()?;
        let model = self.whole.model.clone();
        let all = parts(&model);
        let Some(part) = all.iter().find(|part| part.name == name) else {
            return Err(not_set("field", name, &all.iter().map(|part| &part.name[..]).collect::<Vec<_>>()));
        };
        let refused = |message: String, allowed: String| Err(Error::input("the run", Problem::new(name, message).allowed(allowed)));
        if shape != part.shape {
            return refused(format!("an array of {shape:?} values"), format!("{:?}: modes, rows, columns", part.shape));
        }
        let values = values.complex();
        if let Some(k) = values.iter().position(|v| !told(*v).iter().all(|v| v.is_finite())) {
            return refused(format!("value {k} is {}", values[k]), "finite numbers in single precision".into());
        }
        let mut state = self.whole.stages.state()?;
        let held = if part.is_probe { &mut state.probe } else { &mut state.object };
        let mut changed = false;
        for (i, (held, value)) in held[part.first..].iter_mut().zip(&values).enumerate() {
            let phase = if part.is_probe { model.filter[i % model.pixels()] } else { Complex::new(1.0, 0.0) };
            if told(*held * phase.conj()) != told(*value) {
                (*held, changed) = (*value * phase, true);
            }
        }
        if changed {
            self.comparisons = None;
            self.whole.stages.set_state(&state)?;
        }
        Ok(())
    }
}
