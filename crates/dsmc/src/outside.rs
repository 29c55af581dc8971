//! Particles of a gas as a caller between two steps sees and changes them.

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::record::{Column, Table, TableOnGpu, ValuesOnGpu};
use zellige_engine::sim::not_on_gpu;

use crate::flow::Flow;
use crate::particles::Particles;

/// Columns that can be set, by their names in records.
const COLUMNS: [&str; 3] = ["velocity_x", "velocity_y", "velocity_z"];

/// Quantities, components and units of all columns, in their order.
const ALL: [(&str, &str, &str); 5] =
    [("position", "x", "m"), ("position", "y", "m"), ("velocity", "x", "m/s"), ("velocity", "y", "m/s"), ("velocity", "z", "m/s")];

/// A column by its place among them.
fn column(k: usize, values: Vec<f64>) -> Column {
    let (quantity, component, unit) = ALL[k];
    Column::numbers(quantity, component, unit, values)
}

/// Refusal of values for `name`.
fn refused(name: &str, message: String, allowed: &str) -> Error {
    Error::input("the run", Problem::new(name, message).allowed(allowed))
}

fn must_fit(name: &str, values: usize, particles: usize) -> Result<()> {
    if values == particles {
        return Ok(());
    }
    Err(refused(name, format!("{values} values for {particles} particles"), "a value a particle"))
}

/// Largest component of a velocity, m/s, as in an input: flights of a faster one would cross a box for ever.
const FASTEST: f64 = 3e6;

fn too_fast(name: &str, k: usize, value: f64) -> Error {
    refused(name, format!("value {k} is {value}"), "-3e6 to 3e6 m/s")
}

fn unknown(name: &str) -> Error {
    refused(name, "no column of particles has that name".into(), &COLUMNS.join(", "))
}

fn displaced(name: &str) -> Error {
    refused(name, "particles of a gas stay where they are".into(), "the positions that they have")
}

/// Numbers of the particles of a species.
fn of_species(particles: &Particles, species: usize) -> Vec<usize> {
    (0..particles.len()).filter(|k| usize::from(particles.species[*k]) == species).collect()
}

impl Flow {
    /// Positions (m) and velocities (m/s) of all particles of a species.
    pub(crate) fn table(&mut self, species: usize) -> Result<Table> {
        let all = self.stages.particles()?;
        Ok(self.table_of(&all, species))
    }

    fn table_of(&self, all: &Particles, species: usize) -> Table {
        let grid = &self.model.grid;
        let own = of_species(all, species);
        let at = |k: usize| grid.position(grid.cell(all.cell[k] as usize), [0, 1].map(|d| f64::from(all.offset[d][k])));
        let position = |d: usize| column(d, own.iter().map(|k| at(*k)[d]).collect());
        let velocity = |d: usize| column(2 + d, own.iter().map(|k| f64::from(all.velocity[d][*k])).collect());
        let name = self.model.species[species].name.clone();
        let columns = (0..2).map(position).chain((0..3).map(velocity)).collect();
        Table { title: format!("particles of {name}"), name, length_si: 1.0, time_si: 1.0, len: own.len(), share: None, columns }
    }

    /// Sets velocities of the particles of a species; positions, where they are given, must be what they are.
    ///
    /// # Errors
    /// A column is unknown, not as long as there are particles, too fast, or that of another position.
    pub(crate) fn set_velocities(&mut self, species: usize, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let mut all = self.stages.particles()?;
        let table = self.table_of(&all, species);
        let own = of_species(&all, species);
        let speed = |all: &Particles, k: usize| all.velocity.iter().map(|v| f64::from(v[k]).powi(2)).sum::<f64>().sqrt();
        let before: Vec<f64> = own.iter().map(|k| speed(&all, *k)).collect();
        for (name, values) in columns {
            must_fit(name, values.len(), own.len())?;
            let Some(d) = COLUMNS.iter().position(|column| column == name) else {
                let Some(column) = table.columns.iter().find(|column| column.name() == *name) else { return Err(unknown(name)) };
                if column.values != Column::numbers("", "", "", values.clone()).values {
                    return Err(displaced(name));
                }
                continue;
            };
            if let Some(k) = values.iter().position(|v| v.is_nan() || v.abs() > FASTEST) {
                return Err(too_fast(name, k, values[k]));
            }
            own.iter().zip(values).for_each(|(k, v)| all.velocity[d][*k] = *v as f32);
        }
        let faster = own.iter().zip(&before).any(|(k, before)| speed(&all, *k) > *before);
        let fastest = (0..all.len()).map(|k| speed(&all, k)).fold(0.0, f64::max);
        // As from a checkpoint.
        let Self { stages, samples, .. } = self;
        samples.beside(&mut **stages, |stages| {
            let counted = stages.extra()?;
            stages.clear()?;
            stages.put_back(&all)?;
            let refuse = |message| Error::Numerics { what: "the state of the gas".into(), place: "particles put back".into(), message };
            stages.set_extra(&counted).map_err(refuse)?;
            if faster { stages.raise_majorants(2.0 * fastest) } else { Ok(()) }
        })
    }

    /// Columns of [`Flow::table`] as copies in the memory of the GPU that the particles lie on.
    pub(crate) fn table_on_gpu(&mut self, species: usize) -> Result<TableOnGpu> {
        let Some(found) = self.stages.columns_on_gpu(species, [true; 5])? else {
            return Err(not_on_gpu(&self.model.species[species].name, &[]));
        };
        let columns = found.columns.into_iter().flatten().enumerate();
        Ok(TableOnGpu { columns: columns.map(|(k, values)| (column(k, Vec::new()), ValuesOnGpu::F64(values))).collect() })
    }

    /// [`Flow::set_velocities`] from columns in the memory of the GPU that the particles lie on: changed in place.
    ///
    /// # Errors
    /// Those of [`Flow::set_velocities`]; values are no real numbers.
    pub(crate) fn set_velocities_on_gpu(&mut self, species: usize, columns: &[(String, ValuesOnGpu)], copier: &FieldCopier) -> Result<()> {
        let names = [0, 1, 2, 3, 4].map(|k| column(k, Vec::new()).name());
        let mut given: [Option<&ValuesOnGpu>; 5] = [None; 5];
        for (name, values) in columns {
            given[names.iter().position(|n| n == name).ok_or_else(|| unknown(name))?] = Some(values);
            if !values.is_real() {
                return Err(refused(name, "values are no real numbers".into(), "float32, float64"));
            }
        }
        let wanted = std::array::from_fn(|k| k < 2 && given[k].is_some());
        let Some(there) = self.stages.columns_on_gpu(species, wanted)? else {
            return Err(not_on_gpu(&self.model.species[species].name, &[]));
        };
        for (name, values) in columns {
            must_fit(name, values.len(), there.len)?;
            // In units in which the fastest is the largest number.
            if COLUMNS.contains(&&**name)
                && let Some((k, value)) = copier.first_unfit(values, FASTEST / f64::from(f32::MAX), false)?
            {
                return Err(too_fast(name, k, value));
            }
        }
        for (k, position) in there.columns.into_iter().enumerate() {
            if let (Some(position), Some(values)) = (position, given[k])
                && copier.first_unlike(values, &ValuesOnGpu::F64(position))?.is_some()
            {
                return Err(displaced(&names[k]));
            }
        }
        match self.stages.set_velocities_on_gpu(species, [given[2], given[3], given[4]])? {
            Some(fastest) => self.stages.raise_majorants(2.0 * fastest),
            None => Ok(()),
        }
    }
}
