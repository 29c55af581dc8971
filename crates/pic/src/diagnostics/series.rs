//! Energies, momenta and counts over time, with what went in and out: the ledger of a run.

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::{Curve, Record, Row};

use super::balance::{Balance, EnergyAccount};
use crate::config::units::C;
use crate::config::{Config, Units};
use crate::plasma::Plasma;

/// Columns of the table before those of the species.
const COLUMNS: [&str; 15] = [
    "time",
    "electric",
    "magnetic",
    "kinetic",
    "total",
    "change",
    "momentum_x",
    "momentum_y",
    "momentum_z",
    "particles",
    "injected",
    "removed",
    "energy_in",
    "energy_out",
    "work",
];

/// A table, a line per measurement, in the input's units.
#[derive(Debug, Clone)]
pub struct Series {
    /// Names of the columns.
    names: Vec<String>,
    /// The columns, of one length.
    columns: Vec<Vec<f64>>,
    /// Largest change of `div E - rho` seen so far, `e n_0`.
    pub charge_error: f64,
    balance: Balance,
    units: Units,
    dimensions: usize,
}

impl Series {
    /// An empty table.
    pub fn new(config: &Config, plasma: &Plasma) -> Self {
        let names: Vec<String> =
            COLUMNS.iter().map(|s| (*s).to_owned()).chain(config.species.iter().map(|s| format!("kinetic_{}", s.name))).collect();
        let columns = vec![Vec::new(); names.len()];
        Self { names, columns, charge_error: 0.0, balance: Balance::new(plasma), units: config.scales(), dimensions: config.dimensions() }
    }

    /// Takes what the last step, which began at step `step` with `account`, measured.
    pub fn push(&mut self, plasma: &mut Plasma, step: u64, account: &EnergyAccount) -> Result<()> {
        let (e, ledger) = (plasma.energies()?, &account.ledger);
        plasma.gauss.measured(&e);
        let scale = self.units.total_energy(self.dimensions);
        let momenta = if self.units.si { scale / C } else { scale };
        let (electric, magnetic) = (e.electric.iter().sum::<f64>(), e.magnetic.iter().sum::<f64>());
        let kinetic: f64 = e.kinetic.iter().sum();
        // Energy that left with particles is counted as if it were still there.
        let total = electric + magnetic + kinetic + ledger.energy_out - ledger.energy_in;
        let change = self.balance.change(plasma, step, electric + magnetic, kinetic, account)?;
        let momentum = [0, 1, 2].map(|c| e.momentum.iter().map(|p| p[c]).sum::<f64>());
        let count: u64 = e.count.iter().sum();
        let time = step as f64 * plasma.setup.grid.dt * self.units.time;
        let mut line = vec![
            time,
            electric * scale,
            magnetic * scale,
            kinetic * scale,
            total * scale,
            change,
            momentum[0] * momenta,
            momentum[1] * momenta,
            momentum[2] * momenta,
            count as f64,
            ledger.injected as f64,
            ledger.removed as f64,
            ledger.energy_in * scale,
            ledger.energy_out * scale,
            account.work * scale,
        ];
        line.extend(e.kinetic.iter().map(|k| k * scale));
        self.columns.iter_mut().zip(line).for_each(|(column, v)| column.push(v));
        Ok(())
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> &[f64] {
        self.names.iter().position(|n| n == name).map_or(&[], |k| &self.columns[k])
    }

    /// The last value of a column; 0 before the first measurement.
    pub fn last(&self, name: &str) -> f64 {
        self.column(name).last().copied().unwrap_or(0.0)
    }

    /// The scalars of the last measurement.
    pub fn row(&self) -> Row {
        let energy = self.units.label(["J", "J/m^2", "J/m"][self.dimensions], "");
        let momentum = self.units.label(["N s", "N s/m^2", "N s/m"][self.dimensions], "");
        let mut row = Row::default();
        row.push("measured_at", self.units.label("s", ""), self.last("time"));
        for name in ["electric", "magnetic", "kinetic", "total"] {
            row.push(name, energy, self.last(name));
        }
        row.push("energy_change", "", self.last("change"));
        row.push("momentum_x", momentum, self.last("momentum_x"));
        row.push("momentum_y", momentum, self.last("momentum_y"));
        row.push("momentum_z", momentum, self.last("momentum_z"));
        row.push("charge_error", "", self.charge_error);
        row.push("particles", "", self.last("particles"));
        row
    }

    /// The state was changed from outside: the energy is that of the next measurement.
    pub fn changed(&mut self) {
        self.balance.begin_anew();
    }

    /// Largest change of the energy, beside what can change.
    pub fn worst_change(&self) -> f64 {
        self.balance.worst()
    }

    /// Energies and momenta as curves; the change of the energy where the box is `closed`, and what crossed the sides where
    /// something did.
    pub fn records(&self, closed: bool) -> Vec<Record> {
        let energy = self.units.label(["J", "J/m^2", "J/m"][self.dimensions], "n_0 m_e c^2");
        let curve = |name: &str, title: &str, y: &str, log_y: bool, columns: &[&str]| {
            Record::Curve(Curve {
                name: name.into(),
                title: title.into(),
                x_label: format!("time [{}]", self.units.label("s", "1/w_n")),
                y_label: y.into(),
                x: self.column("time").to_vec(),
                lines: columns.iter().map(|c| ((*c).replace('_', " "), self.column(c).to_vec())).collect(),
                log_y,
            })
        };
        let species: Vec<&str> = self.names[COLUMNS.len()..].iter().map(String::as_str).collect();
        let mut energies = vec!["electric", "magnetic"];
        energies.extend(&species);
        energies.push("total");
        let momentum = format!("momentum [{}]", self.units.label(["N s", "N s/m^2", "N s/m"][self.dimensions], "n_0 m_e c"));
        let mut records = vec![
            curve("energies", "energies", &format!("energy [{energy}]"), true, &energies),
            curve("momentum", "momentum of the particles", &momentum, false, &["momentum_x", "momentum_y", "momentum_z"]),
        ];
        if closed {
            records.push(curve(
                "energy_change",
                "change of the energy relative to the energy that can change",
                "relative change",
                false,
                &["change"],
            ));
        }
        let moves = |name: &str| self.column(name).first() != self.column(name).last();
        if moves("injected") || moves("removed") {
            let title = "macro-particles in the domain, injected and removed";
            records.push(curve("ledger", title, "macro-particles", false, &["particles", "injected", "removed"]));
        }
        if moves("energy_in") || moves("energy_out") {
            let title = "kinetic energy that particles carried through the boundaries";
            records.push(curve("ledger_energy", title, &format!("energy [{energy}]"), false, &["energy_in", "energy_out"]));
        }
        if moves("work") {
            let title = "work of the fields on particles";
            records.push(curve("work", title, &format!("energy [{energy}]"), false, &["work"]));
        }
        records
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        writer.f64("series.charge_error", self.charge_error)?;
        self.balance.save(writer)?;
        for (k, column) in self.columns.iter().enumerate() {
            writer.f64s(&format!("series{k}"), column)?;
        }
        Ok(())
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.charge_error = reader.f64("series.charge_error")?;
        self.balance.restore(reader)?;
        for (k, column) in self.columns.iter_mut().enumerate() {
            *column = reader.f64s(&format!("series{k}"))?;
        }
        if self.columns.iter().any(|c| c.len() != self.columns[0].len()) {
            return Err(reader.content_error("the columns of the energies differ in length"));
        }
        Ok(())
    }
}
