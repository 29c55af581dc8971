//! A gas in a checkpoint. Each part of a run writes the particles that it has, at the places of their tiles, and reads those that
//! lie in its cells.

use std::ops::Range;

use zellige_engine::checkpoint::{Element, Reader, Writer, add_to_ranges};
use zellige_engine::error::Result;

use crate::flow::Flow;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::{Particles, Placed};

/// Particles whose cells are looked at together.
const BATCH: usize = 1 << 18;

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
        let p = own_particles(reader, &self.model, self.own_area())?;
        self.stages.clear()?;
        self.stages.put_back(&p)?;
        self.stages.set_extra(&reader.f64s("collisions")?).map_err(|message| reader.content_error(message))?;
        self.step = reader.u64("step")?;
        self.samples.restore(&self.model, reader, &mut *self.stages)
    }
}

/// The particles that lie in an area.
fn own_particles(reader: &Reader, model: &Model, area: Rectangle) -> Result<Particles> {
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
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut cells = vec![0_u32; n.min(BATCH)];
    for first in (0..n).step_by(BATCH) {
        let some = (n - first).min(BATCH);
        reader.values_from(&name("cell"), first, &mut cells[..some])?;
        for (k, cell) in (first..).zip(&cells[..some]) {
            let cell = *cell as usize;
            if cell >= model.grid.len() {
                return Err(apart());
            }
            let [x, y] = model.grid.cell(cell);
            if area.range(0).contains(&x) && area.range(1).contains(&y) {
                add_to_ranges(&mut ranges, k);
            }
        }
    }
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
