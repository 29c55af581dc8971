//! A plasma in a checkpoint. Each part of a run writes the particles that it has, and reads those that lie in its cells.

use std::ops::Range;

use zellige_engine::checkpoint::{Reader, Writer, own_ranges};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use super::Plasma;
use crate::particles::Particles;
use crate::stages::{Component, Ledger};

impl Plasma {
    /// Everything that a bit-equal continuation needs, and J of the last step where results show it (`with_current`): the next
    /// step does not need it.
    ///
    /// # Errors
    /// A value is not finite: nothing sound would go on from there.
    pub fn save(&mut self, writer: &mut Writer, with_current: bool) -> Result<()> {
        writer.u64("step", self.step)?;
        writer.u64("moved", self.moved)?;
        let mut broken = None;
        for component in &Component::ALL[..if with_current && self.has_current { 9 } else { 6 }] {
            let (first, values) = self.stages.own_rows(*component)?;
            broken = broken.or_else(|| self.broken(|| component.name().into(), &values));
            writer.joined(component.name(), &[(first * self.setup.grid.nodes(0), &values[..])])?;
        }
        for s in 0..self.setup.species.len() {
            let p = self.stages.own_particles(s)?;
            let first = self.links.before(p.len())?;
            let name = |column: &str| format!("species{s}.{column}");
            writer.joined(&name("i"), &[(first, &p.i[..])])?;
            writer.joined(&name("j"), &[(first, &p.j[..])])?;
            for (column, values) in [("s", &p.s), ("t", &p.t), ("ux", &p.u[0]), ("uy", &p.u[1]), ("uz", &p.u[2]), ("weight", &p.weight)] {
                broken = broken.or_else(|| self.broken(|| format!("{column} of {}", self.setup.species[s].name), values));
                writer.joined(&name(column), &[(first, &values[..])])?;
            }
            writer.joined(&name("tag"), &[(first, &p.tag[..])])?;
        }
        self.must_be_sound(broken)?;
        let auxiliary_state = self.stages.auxiliary_state()?;
        writer.json("hidden", &auxiliary_state.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())?;
        for (k, (_, values)) in auxiliary_state.iter().enumerate() {
            writer.f64s(&format!("hidden{k}"), values)?;
        }
        for (k, l) in self.start.iter().enumerate() {
            let numbers = [l.injected as f64, l.removed as f64, l.energy_in, l.energy_out, l.charge_out];
            writer.f64s(&format!("ledger{k}"), &numbers)?;
        }
        writer.f64("radiated", self.radiated)?;
        writer.f64s("added", &self.added.iter().map(|n| *n as f64).collect::<Vec<_>>())?;
        let weights: Vec<f64> = self.setup.species.iter().map(|s| s.weight).collect();
        writer.f64s("weights", &weights)?;
        self.gauss.save(writer)
    }

    /// Takes it back.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.step = reader.u64("step")?;
        self.moved = reader.u64("moved")?;
        self.stages.set_moved(self.moved);
        // The largest density on a window's way, which weights are relative to, may be on what was added to the way.
        for (species, weight) in self.setup.species.iter().zip(reader.f64s("weights")?) {
            if species.weight != weight {
                let message = format!("its particles of `{}` have another weight: the longer run meets a larger density", species.name);
                return Err(reader.content_error(format!("{message}; `reference_density` in both inputs sets it")));
            }
        }
        let [width, height] = [0, 1].map(|axis| self.setup.grid.nodes(axis));
        self.has_current = reader.has(Component::Jx.name());
        for component in &Component::ALL[..if self.has_current { 9 } else { 6 }] {
            let (name, expected) = (component.name(), width * height);
            let found = reader.count::<f64>(name)?;
            if found != expected {
                return Err(
                    reader.content_error(format!("section `{name}` has {found} values, expected {expected}: the input has changed"))
                );
            }
            self.stages.set_rows(*component, &mut |row, values| reader.values_from(name, row * width, values))?;
        }
        for s in 0..self.setup.species.len() {
            let p = own_particles(reader, s, self.setup.grid.cells, &self.stages.own_cells(), &self.links)?;
            self.stages.replace(s, &p)?;
        }
        let names: Vec<String> = reader.json("hidden")?;
        let auxiliary_state = names.into_iter().enumerate().map(|(k, name)| Ok((name, reader.f64s(&format!("hidden{k}"))?)));
        self.stages.set_auxiliary_state(&auxiliary_state.collect::<Result<Vec<_>>>()?)?;
        for (k, ledger) in self.start.iter_mut().enumerate() {
            let mut v = [0.0; 5];
            reader.f64s_into(&format!("ledger{k}"), &mut v)?;
            *ledger = Ledger { injected: v[0] as u64, removed: v[1] as u64, energy_in: v[2], energy_out: v[3], charge_out: v[4] };
        }
        self.radiated = reader.f64("radiated")?;
        self.added = reader.f64s("added")?.into_iter().map(|n| n as i64).collect();
        self.gauss.restore(reader)
    }
}

/// The particles of species `s` in a domain of `cells` cells that lie in the cells `own` of this part.
fn own_particles(reader: &Reader, s: usize, cells: [usize; 2], own: &[Range<usize>; 2], links: &Links) -> Result<Particles> {
    let name = |column: &str| format!("species{s}.{column}");
    let n = reader.count::<u32>(&name("i"))?;
    let counts = ["s", "t", "ux", "uy", "uz"].map(|c| reader.count::<f64>(&name(c)));
    let even = counts.into_iter().chain([reader.count::<u32>(&name("j"))]).map(|count| Ok(count? == n));
    let optional = [reader.count::<f64>(&name("weight")), reader.count::<u64>(&name("tag"))].map(|count| Ok([0, n].contains(&count?)));
    let even = even.chain(optional).collect::<Result<Vec<bool>>>()?.into_iter().all(|fits| fits);
    let apart = || reader.content_error(format!("the particles of species {s} do not fit together"));
    if !even {
        return Err(apart());
    }
    // Their ranges in the file: as tiles follow each other, in few pieces.
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    let ranges = own_ranges(links, n, own, |first, found| {
        columns.resize(found.len(), 0_u32);
        rows.resize(found.len(), 0_u32);
        reader.values_from(&name("i"), first, &mut columns)?;
        reader.values_from(&name("j"), first, &mut rows)?;
        for (cell, (i, j)) in found.iter_mut().zip(columns.iter().zip(&rows)) {
            *cell = [*i, *j].map(|n| n as usize);
            if !(cell[0] < cells[0] && cell[1] < cells[1]) {
                return Err(apart());
            }
        }
        Ok(())
    })?;
    let column = |c: &str| reader.picked::<f64>(&name(c), &ranges);
    Ok(Particles {
        i: reader.picked(&name("i"), &ranges)?,
        j: reader.picked(&name("j"), &ranges)?,
        s: column("s")?,
        t: column("t")?,
        u: [column("ux")?, column("uy")?, column("uz")?],
        weight: column("weight")?,
        tag: reader.picked(&name("tag"), &ranges)?,
    })
}
