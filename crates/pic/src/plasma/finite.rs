//! A plasma that has broken down ends the run before its fields, its particles or a checkpoint leave it, in place of sound ones.
//! Energies tell it where they are measured, which is not in every step.

use serde::{Deserialize, Serialize};
use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::position;
use zellige_engine::record::{Entries, Record, Table, Values};

use super::{Plasma, on_host};

/// First value that is not finite: its quantity, and the value as text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Broken(String, String);

impl Plasma {
    /// The first value of a quantity that is not finite; none where all are.
    pub(super) fn broken(&self, name: impl FnOnce() -> String, values: &[f64]) -> Option<Broken> {
        let found = on_host(&self.device, || position(values, |v| !v.is_finite()));
        found.map(|k| Broken(name(), values[k].to_string()))
    }

    /// [`Plasma::broken`] of single or double precision.
    fn broken_in(&self, name: impl FnOnce() -> String, values: &Values) -> Option<Broken> {
        match values {
            Values::F64(values) => self.broken(name, values),
            Values::F32(values) => {
                let found = on_host(&self.device, || position(values, |v| !v.is_finite()));
                found.map(|k| Broken(name(), values[k].to_string()))
            }
        }
    }

    /// [`Plasma::broken`] of the columns of a table.
    fn broken_in_table(&self, table: &Table) -> Option<Broken> {
        table.columns.iter().find_map(|column| match &column.values {
            Entries::Each(values) => self.broken_in(|| format!("{} of {}", column.name(), table.name), values),
            Entries::Whole(_) | Entries::Same(_) => None,
        })
    }

    /// Refuses to go on where any part has found a value that is not finite. All parts ask alike.
    pub(super) fn must_be_sound(&self, found: Option<Broken>) -> Result<()> {
        let found: Vec<Broken> = found.into_iter().collect();
        match self.links.all_say(&found)?.into_iter().flatten().next() {
            None => Ok(()),
            Some(Broken(what, value)) => Err(self.broken_down(what, &value)),
        }
    }

    /// Refuses fields and particles with a value that is not finite.
    pub(crate) fn must_be_finite(&self, records: &[Record]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let found = records.iter().find_map(|record| match record {
            Record::Mesh(mesh) => {
                (0..mesh.components.len()).find_map(|c| self.broken_in(|| mesh.field_name(c), &mesh.components[c].values))
            }
            Record::Table(table) => self.broken_in_table(table),
            _ => None,
        });
        self.must_be_sound(found)
    }

    /// [`Plasma::must_be_finite`] for particles that no record holds.
    pub(crate) fn particles_must_be_finite(&self, particles: &Table) -> Result<()> {
        self.must_be_sound(self.broken_in_table(particles))
    }

    /// Error of a quantity of which a value is not finite.
    pub(super) fn broken_down(&self, what: String, value: &str) -> Error {
        Error::Numerics { what, place: format!("step {}", self.step), message: format!("a value is {value}: {}", self.cause()) }
    }
}
