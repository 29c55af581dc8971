//! A gas in a checkpoint. Each part of a run writes the particles that it has, at the places of their tiles, and reads those that
//! lie in its cells.

use zellige_engine::checkpoint::{Element, Reader, Writer, own_ranges};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use crate::flow::Flow;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::{Particles, Placed};

/// Slices of a column with their places; none of a column that nothing needs.
fn placed<'a, V: Element>(column: &'a [V], places: &[Placed]) -> Vec<(usize, &'a [V])> {
    let places = if column.is_empty() { &[] } else { places };
    places.iter().map(|p| (p.first, &column[p.own.clone()])).collect()
}

impl Flow {
    /// Writes everything.
    pub fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64("step", self.step)?;
        let (p, places) = self.stages.own_particles()?;
        writer.joined("particles.cell", &placed(&p.cell, &places))?;
        writer.joined("particles.species", &placed(&p.species, &places))?;
        writer.joined("particles.level", &placed(&p.level, &places))?;
        writer.joined("particles.tag", &placed(&p.tag, &places))?;
        for (name, values) in ["x", "y"].into_iter().zip(&p.offset).chain(["vx", "vy", "vz"].into_iter().zip(&p.velocity)) {
            writer.joined(&format!("particles.{name}"), &placed(values, &places))?;
        }
        writer.joined("particles.rotation", &placed(&p.rotation, &places))?;
        drop(p);
        writer.f64s("collisions", &self.stages.extra()?)?;
        self.samples.save(&self.model, writer, &mut *self.stages)
    }

    /// Takes everything back.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        let p = own_particles(reader, &self.model, self.own_area(), &self.links)?;
        self.stages.clear()?;
        self.stages.put_back(&p)?;
        self.stages.set_extra(&reader.f64s("collisions")?).map_err(|message| reader.content_error(message))?;
        self.step = reader.u64("step")?;
        self.samples.restore(&self.model, reader, &mut *self.stages)
    }
}

/// The particles that lie in an area.
fn own_particles(reader: &Reader, model: &Model, area: Rectangle, links: &Links) -> Result<Particles> {
    let name = |column: &str| format!("particles.{column}");
    let apart = || reader.content_error("columns of particles do not fit together or into the domain of this input");
    let n = reader.count::<u32>(&name("cell"))?;
    let c = &model.collisions;
    let full = |wanted: bool| if wanted { n } else { 0 };
    let mut counts = vec![(reader.count::<u16>(&name("species"))?, n), (reader.count::<f32>(&name("rotation"))?, full(c.rotation))];
    counts.push((reader.count::<u32>(&name("level"))?, full(c.vibration)));
    counts.push((reader.count::<u32>(&name("tag"))?, full(c.partner.tagged())));
    for column in ["x", "y", "vx", "vy", "vz"] {
        counts.push((reader.count::<f32>(&name(column))?, n));
    }
    if counts.iter().any(|(found, expected)| found != expected) {
        return Err(apart());
    }
    // Their ranges in the file: as tiles follow each other, in few pieces.
    let mut cells = Vec::new();
    let ranges = own_ranges(links, n, &[0, 1].map(|axis| area.range(axis)), |first, found| {
        cells.resize(found.len(), 0_u32);
        reader.values_from(&name("cell"), first, &mut cells)?;
        for (to, cell) in found.iter_mut().zip(&cells) {
            if *cell as usize >= model.grid.len() {
                return Err(apart());
            }
            *to = model.grid.cell(*cell as usize);
        }
        Ok(())
    })?;
    let numbers = |column: &str| reader.picked::<f32>(&name(column), &ranges);
    let p = Particles {
        cell: reader.picked(&name("cell"), &ranges)?,
        species: reader.picked(&name("species"), &ranges)?,
        offset: [numbers("x")?, numbers("y")?],
        velocity: [numbers("vx")?, numbers("vy")?, numbers("vz")?],
        rotation: numbers("rotation")?,
        level: reader.picked(&name("level"), &ranges)?,
        tag: reader.picked(&name("tag"), &ranges)?,
    };
    let inside = p.species.iter().all(|s| usize::from(*s) < model.species.len())
        && p.offset.iter().flatten().all(|x| (0.0..1.0).contains(x))
        && p.velocity.iter().flatten().all(|v| v.is_finite());
    if inside { Ok(p) } else { Err(apart()) }
}
