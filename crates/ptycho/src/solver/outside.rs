//! Objects and probes given to who asks between two iterations, and taken back.

use std::ops::Range;

use num_complex::Complex;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::record::{FieldOnGpu, GivenValues, ValuesOnGpu};
use zellige_engine::sim::{not_on_gpu, not_set};

use super::Ptycho;
use crate::model::Model;
use crate::output::{object_without_values, of_object, of_probe, probe_without_values};
use crate::stages::Held;

/// An object or a probe.
struct Part {
    name: String,
    /// Number of the object or the probe.
    number: usize,
    shape: [usize; 3],
    /// First value, in objects or probes.
    first: usize,
    of: Held,
}

impl Part {
    /// Its values among those of all objects or probes.
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.shape.iter().product::<usize>()
    }

    /// Phase of the sample plane that the stages keep in probes, pixel by pixel; nothing of objects.
    fn factors<'a>(&self, model: &'a Model) -> &'a [Complex<f64>] {
        match self.of {
            Held::Probe => &model.filter,
            Held::Object => &[],
        }
    }
}

/// Objects and probes by the names of records.
fn parts(model: &Model) -> Vec<Part> {
    let [probe_modes, object_modes] = model.modes;
    let objects = model.storages.iter().enumerate().map(|(i, storage)| Part {
        name: format!("object{}", of_object(model, i)),
        number: i,
        shape: [object_modes, storage.shape[0], storage.shape[1]],
        first: storage.offset,
        of: Held::Object,
    });
    let probes = (0..model.probes).map(|s| Part {
        name: format!("probe{}", of_probe(model, s)),
        number: s,
        shape: [probe_modes, model.frame[0], model.frame[1]],
        first: s * probe_modes * model.pixels(),
        of: Held::Probe,
    });
    objects.chain(probes).collect()
}

/// Values that can be set.
const FINITE: &str = "finite numbers in single precision";

fn refused(name: &str, message: String, allowed: String) -> Error {
    Error::input("the run", Problem::new(name, message).allowed(allowed))
}

/// The object or probe of that name, which is set to values of this shape.
fn part_to_set(model: &Model, name: &str, shape: &[usize]) -> Result<Part> {
    let all = parts(model);
    let names: Vec<String> = all.iter().map(|part| part.name.clone()).collect();
    let Some(part) = all.into_iter().find(|part| part.name == name) else {
        return Err(not_set("field", name, &names.iter().map(String::as_str).collect::<Vec<_>>()));
    };
    if shape != part.shape {
        return Err(refused(name, format!("an array of {shape:?} values"), format!("{:?}: modes, rows, columns", part.shape)));
    }
    Ok(part)
}

/// A value as records have it.
fn told(v: Complex<f64>) -> [f32; 2] {
    [v.re as f32, v.im as f32]
}

impl Ptycho {
    /// An object or a probe in the memory of the run's GPU. Probes have not the phase of the sample plane that the stages keep in
    /// them.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn wave_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        self.settle()?;
        let model = self.whole.model.clone();
        let all = parts(&model);
        let names: Vec<String> = all.iter().map(|part| part.name.clone()).collect();
        let Some(part) = all.into_iter().find(|part| part.name == name) else { return Err(not_on_gpu(name, &names)) };
        let wave = match part.of {
            Held::Probe => probe_without_values(&model, part.number),
            Held::Object => object_without_values(&model, part.number),
        };
        match self.whole.stages.wave_on_gpu(part.of, part.range(), part.factors(&model), copier)? {
            Some(values) => Ok(FieldOnGpu { field: wave.field_without_values(), values }),
            None => Err(not_on_gpu(name, &[])),
        }
    }

    /// [`Ptycho::set_wave`] from values in the memory of the run's GPU.
    pub(super) fn set_wave_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu, copier: &FieldCopier) -> Result<()> {
        self.settle()?;
        let model = self.whole.model.clone();
        let part = part_to_set(&model, name, shape)?;
        if let Some((k, number)) = copier.first_unfit(values, 1.0, false)? {
            return Err(refused(name, format!("value {k} has the part {number}"), FINITE.into()));
        }
        if self.whole.stages.set_wave_on_gpu(part.of, part.range(), part.factors(&model), values, copier)? {
            self.comparisons = None;
        }
        Ok(())
    }

    /// Puts an object or a probe in place of what there is; exit waves stay. Values that are what records tell stay to the last
    /// bit: those are in single precision, and probes in them have not the phase of the sample plane.
    ///
    /// # Errors
    /// There is none of that name, the shape is another one, or a value is not finite.
    pub(super) fn set_wave(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        self.settle()?;
        let model = self.whole.model.clone();
        let part = part_to_set(&model, name, shape)?;
        let values = values.complex();
        if let Some(k) = values.iter().position(|v| !told(*v).iter().all(|v| v.is_finite())) {
            return Err(refused(name, format!("value {k} is {}", values[k]), FINITE.into()));
        }
        let mut state = self.whole.stages.state()?;
        let held = match part.of {
            Held::Probe => &mut state.probe,
            Held::Object => &mut state.object,
        };
        let mut changed = false;
        for (i, (held, value)) in held[part.first..].iter_mut().zip(&values).enumerate() {
            let phase = if part.of == Held::Probe { model.filter[i % model.pixels()] } else { Complex::new(1.0, 0.0) };
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
