//! Changes of a plasma from outside, between two steps: fields and particles in the units of their records.

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::record::{TableOnGpu, ValuesOnGpu};

use super::Plasma;
use crate::diagnostics::histogram::positions;
use crate::output::ParticleUnits;
use crate::particles::Particles;
use crate::stages::{Component, Precision};

/// Columns that can be set, by their names in records.
const COLUMNS: [&str; 6] = ["position_x", "position_y", "momentum_x", "momentum_y", "momentum_z", "weighting"];

/// Values that can be set.
const FINITE: &str = "finite numbers of the run's precision";

/// Refusal of values for `name`.
fn refused(name: &str, message: String, allowed: &str) -> Error {
    let problem = Problem::new(name, message);
    Error::input("the run", if allowed.is_empty() { problem } else { problem.allowed(allowed) })
}

/// Refuses values that are not finite in units of `unit` and the precision of the run.
fn must_be_finite(name: &str, values: &[f64], unit: f64, precision: Precision) -> Result<()> {
    let finite = |v: &f64| if precision == Precision::F32 { ((v / unit) as f32).is_finite() } else { (v / unit).is_finite() };
    match values.iter().position(|v| !finite(v)) {
        Some(k) => Err(refused(name, format!("value {k} is {}", values[k]), FINITE)),
        None => Ok(()),
    }
}

impl Plasma {
    /// Sets a component of E or B on the cells of the box, row by row.
    ///
    /// # Errors
    /// There are not as many values as cells, or one is not finite.
    pub(crate) fn set_field(&mut self, name: &str, component: Component, values: &[f64]) -> Result<()> {
        let grid = &self.setup.grid;
        let [columns, rows] = grid.cells;
        if values.len() != columns * rows {
            return Err(refused(name, format!("{} values for {} cells", values.len(), columns * rows), "a value a cell"));
        }
        let scale = self.field_unit(component);
        must_be_finite(name, values, scale, self.setup.precision)?;
        let mut all = self.stages.component(component)?;
        for (j, row) in values.chunks_exact(columns).enumerate() {
            for (i, value) in row.iter().enumerate() {
                all[grid.index(i as isize, j as isize)] = value / scale;
            }
        }
        self.stages.set_component(component, &all)?;
        self.gauss.forget_all();
        Ok(())
    }

    /// [`Plasma::set_field`] from as many values in the memory of the run's GPU.
    ///
    /// # Errors
    /// Values are complex, or one is not finite.
    pub(crate) fn set_field_on_gpu(&mut self, name: &str, component: Component, values: &ValuesOnGpu, copier: &FieldCopier) -> Result<()> {
        if !matches!(values, ValuesOnGpu::F32(_) | ValuesOnGpu::F64(_)) {
            return Err(refused(name, "complex values of a real field".into(), "real numbers"));
        }
        let scale = self.field_unit(component);
        if let Some((k, value)) = self.stages.set_cells_on_gpu(component, values, scale, copier)? {
            return Err(refused(name, format!("value {k} is {value}"), FINITE));
        }
        self.gauss.forget_all();
        Ok(())
    }

    /// Unit of the records of E or B.
    fn field_unit(&self, component: Component) -> f64 {
        let units = self.model.units;
        if (component as usize) < 3 { units.electric } else { units.magnetic }
    }

    /// Sets columns of the particles of a species; those that are not given stay. Particles whose position is what it was stay
    /// where they are to the last bit.
    ///
    /// # Errors
    /// A column is unknown, too short or constant, or a particle lies outside of the box.
    pub(crate) fn set_particles(&mut self, species: usize, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let units = ParticleUnits::new(self, species);
        let mut before = self.stages.particles(species)?;
        let old = before.len();
        let n = columns.first().map_or(old, |(_, values)| values.len());
        if let Some((name, values)) = columns.iter().find(|(_, values)| values.len() != n) {
            return Err(refused(name, format!("{} values, where the first column has {n}", values.len()), "columns of one length"));
        }
        let tags: Vec<f64> = before.tag.iter().map(|tag| *tag as f64).collect();
        for (name, values) in columns {
            let unit = match name.as_str() {
                "weighting" => units.weighting,
                momentum if momentum.starts_with("momentum") => units.momentum,
                _ => 1.0,
            };
            must_be_finite(name, values, unit, self.setup.precision)?;
            let constant = match name.as_str() {
                "charge" => values.iter().all(|v| *v == units.charge),
                "mass" => values.iter().all(|v| *v == units.mass),
                "id" => tags == *values,
                other if COLUMNS[..self.setup.grid.dimensions].contains(&other) || COLUMNS[2..].contains(&other) => true,
                _ => return Err(refused(name, "no column of particles has that name".into(), &COLUMNS.join(", "))),
            };
            if !constant {
                return Err(refused(name, "it cannot be changed".into(), "the values that particles have"));
            }
        }
        let given = |name: &str| columns.iter().find(|(column, _)| column == name).map(|(_, values)| values.as_slice());
        if n != old {
            let needed = COLUMNS[..self.setup.grid.dimensions].iter().chain(&COLUMNS[2..]);
            let missing: Vec<&str> = needed.copied().filter(|name| given(name).is_none()).collect();
            if !missing.is_empty() || !before.tag.is_empty() {
                let message = format!("{n} particles in place of {old}");
                let allowed =
                    if missing.is_empty() { "as many, since they are tracked".into() } else { format!("{} as well", missing.join(", ")) };
                return Err(refused("particles", message, &allowed));
            }
        }
        let mut now = Particles::default();
        let u = std::array::from_fn(|d| match given(COLUMNS[2 + d]) {
            // Values that are as they were keep their bits.
            Some(values) => (0..n)
                .map(|k| if n == old && before.u[d][k] * units.momentum == values[k] { before.u[d][k] } else { values[k] / units.momentum })
                .collect(),
            None => std::mem::take(&mut before.u[d]),
        });
        now.weight = self.weights(species, given(COLUMNS[5]), &before, units.weighting)?;
        self.place(given(COLUMNS[0]), given(COLUMNS[1]), &mut before, n, &mut now)?;
        (now.u, now.tag) = (u, before.tag);
        self.stages.replace(species, &now)?;
        self.added[species] += n as i64 - old as i64;
        self.gauss.forget_all();
        Ok(())
    }

    /// [`Plasma::set_particles`] from columns in the memory of the run's GPU, of as many particles as there are: momenta are
    /// changed in place. Other columns must be as they are, of which `copy` makes a copy there.
    ///
    /// # Errors
    /// Those of [`Plasma::set_particles`]; values are complex, or particles would be others or elsewhere.
    pub(crate) fn set_particles_on_gpu(
        &mut self,
        species: usize,
        columns: &[(String, ValuesOnGpu)],
        copier: &FieldCopier,
        copy: impl FnOnce(&mut Self) -> Result<TableOnGpu>,
    ) -> Result<()> {
        let n = self.stages.count()?[species] as usize;
        let unit = ParticleUnits::new(self, species).momentum;
        let mut momenta = [None; 3];
        let mut others = Vec::new();
        for (name, values) in columns {
            let momentum = COLUMNS[2..5].iter().position(|column| column == name);
            if !values.is_real() && (momentum.is_some() || !matches!(values, ValuesOnGpu::U64(_))) {
                return Err(refused(name, "values are no real numbers".into(), "float32, float64"));
            }
            if values.len() != n {
                let message = format!("{} values for {n} particles", values.len());
                return Err(refused(name, message, "as many in the memory of a GPU; other numbers of particles in that of the host"));
            }
            match momentum {
                Some(c) => {
                    if let Some((k, value)) = copier.first_unfit(values, unit, self.setup.precision == Precision::F64)? {
                        return Err(refused(name, format!("value {k} is {value}"), FINITE));
                    }
                    momenta[c] = Some(values);
                }
                None => others.push((name, values)),
            }
        }
        if !others.is_empty() {
            let there = copy(self)?;
            for (name, values) in others {
                let Some((_, own)) = there.columns.iter().find(|(column, _)| column.name() == *name) else {
                    return Err(refused(name, "no column of particles has that name".into(), &COLUMNS.join(", ")));
                };
                if let Some(k) = copier.first_unlike(values, own)? {
                    let message = format!("value {k} is another one than particle {k} has");
                    let allowed = "momenta in the memory of a GPU, in place; positions and weights in that of the host";
                    return Err(refused(name, message, allowed));
                }
            }
        }
        self.stages.set_momenta_on_gpu(species, momenta, unit)?;
        self.gauss.forget_all();
        Ok(())
    }

    /// Factors to the weight of a species, of which a macro-particle of weight 1 is `unit` real particles.
    fn weights(&self, species: usize, given: Option<&[f64]>, before: &Particles, unit: f64) -> Result<Vec<f64>> {
        let Some(values) = given else { return Ok(before.weight.clone()) };
        if let Some(k) = values.iter().position(|w| *w <= 0.0) {
            return Err(refused(COLUMNS[5], format!("value {k} is {}", values[k]), "positive numbers"));
        }
        if self.setup.species[species].weighted {
            return Ok(values.iter().map(|w| w / unit).collect());
        }
        if values.iter().any(|w| *w != unit) {
            let message = format!("macro-particles of `{}` weigh the same", self.setup.species[species].name);
            return Err(refused(COLUMNS[5], message, &format!("{unit} for all of them, or `weighting = \"variable\"` in the input")));
        }
        Ok(before.weight.first().map_or_else(Vec::new, |_| vec![1.0; values.len()]))
    }

    /// Cells of `n` particles and their offsets in them, from positions where these are given.
    fn place(&self, x: Option<&[f64]>, y: Option<&[f64]>, before: &mut Particles, n: usize, now: &mut Particles) -> Result<()> {
        let grid = &self.setup.grid;
        let (given, as_many) = (x.is_some() || y.is_some(), before.len() == n);
        let kept = (given && as_many).then(|| positions(&self.model, self.moved, before));
        let axis = |d: usize, given: Option<&[f64]>, cells: Vec<u32>, offsets: Vec<f64>| {
            let Some(values) = given else { return Ok((cells, offsets)) };
            let [corner, width] = self.cells_to_place(d);
            let (mut i, mut s) = (Vec::with_capacity(n), Vec::with_capacity(n));
            for (k, value) in values.iter().enumerate() {
                if kept.as_ref().is_some_and(|kept| kept[d][k] == *value) {
                    i.push(cells[k]);
                    s.push(offsets[k]);
                    continue;
                }
                let at = (value - corner) / width;
                let last = grid.cells[d] as f64;
                if !(0.0..=last).contains(&at) {
                    let message = format!("particle {k} would lie at {value}");
                    return Err(refused(COLUMNS[d], message, &format!("{corner} to {}", corner + last * width)));
                }
                let cell = at.floor().min(last - 1.0);
                i.push(cell as u32);
                s.push((at - cell - 0.5).clamp(-0.5, 0.5));
            }
            Ok((i, s))
        };
        let [(i, s), (j, t)] = [(&mut before.i, &mut before.s), (&mut before.j, &mut before.t)]
            .map(|(cells, offsets)| (std::mem::take(cells), std::mem::take(offsets)));
        let (j, t) = if grid.dimensions == 1 && !as_many { (vec![0; n], vec![0.0; n]) } else { (j, t) };
        (now.i, now.s) = axis(0, x, i, s)?;
        (now.j, now.t) = axis(1, y, j, t)?;
        Ok(())
    }
}
