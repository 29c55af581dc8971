//! Particles of a gas as a caller between two steps sees and changes them.

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{Column, Table};

use crate::flow::Flow;
use crate::particles::Particles;

/// Columns that can be set, by their names in records.
const COLUMNS: [&str; 3] = ["velocity_x", "velocity_y", "velocity_z"];

/// Refusal of values for `name`.
fn refused(name: &str, message: String, allowed: &str) -> Error {
    Error::input("the run", Problem::new(name, message).allowed(allowed))
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
        let position = |d: usize| Column::numbers("position", ["x", "y"][d], "m", own.iter().map(|k| at(*k)[d]).collect());
        let velocity =
            |d: usize| Column::numbers("velocity", ["x", "y", "z"][d], "m/s", own.iter().map(|k| f64::from(all.velocity[d][*k])).collect());
        let name = self.model.species[species].name.clone();
        let columns = (0..2).map(position).chain((0..3).map(velocity)).collect();
        Table { title: format!("particles of {name}"), name, length_si: 1.0, time_si: 1.0, len: own.len(), share: None, columns }
    }

    /// Sets velocities of the particles of a species; positions, where they are given, must be what they are.
    ///
    /// # Errors
    /// A column is unknown, not as long as there are particles, not finite, or that of another position.
    pub(crate) fn set_velocities(&mut self, species: usize, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let mut all = self.stages.particles()?;
        let table = self.table_of(&all, species);
        let own = of_species(&all, species);
        let speed = |all: &Particles, k: usize| all.velocity.iter().map(|v| f64::from(v[k]).powi(2)).sum::<f64>().sqrt();
        let before: Vec<f64> = own.iter().map(|k| speed(&all, *k)).collect();
        for (name, values) in columns {
            if values.len() != own.len() {
                return Err(refused(name, format!("{} values for {} particles", values.len(), own.len()), "a value a particle"));
            }
            if let Some(k) = values.iter().position(|v| !(*v as f32).is_finite()) {
                return Err(refused(name, format!("value {k} is {}", values[k]), "finite numbers of single precision"));
            }
            let Some(d) = COLUMNS.iter().position(|column| column == name) else {
                let Some(column) = table.columns.iter().find(|column| column.name() == *name) else {
                    return Err(refused(name, "no column of particles has that name".into(), &COLUMNS.join(", ")));
                };
                if column.values != Column::numbers("", "", "", values.clone()).values {
                    return Err(refused(name, "particles of a gas stay where they are".into(), "the positions that they have"));
                }
                continue;
            };
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
}
