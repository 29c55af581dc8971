//! Courses of tagged particles, chosen at the start.

use std::collections::BTreeMap;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::{Curve, Record};

use crate::config::Config;
use crate::config::diagnostics::TracksConfig;
use crate::diagnostics::histogram::{ParticleColumns, selected, selection};
use crate::particles::Particles;
use crate::plasma::Plasma;

/// Numbers kept of a particle at a time: `x, y, ux, uy, uz`.
const KEPT: usize = 5;

/// Tracks of a species' particles.
#[derive(Debug, Clone)]
pub struct Tracks {
    /// As in the input.
    pub config: TracksConfig,
    species: usize,
    /// Tags that are followed, and their rows in the table.
    tags: BTreeMap<u64, usize>,
    /// Units of length and time.
    units: [&'static str; 2],
    time: Vec<f64>,
    /// Per time, per particle, [`KEPT`] numbers; NaN where the particle is gone.
    values: Vec<f64>,
}

impl Tracks {
    /// Chooses the particles.
    pub fn new(config: &Config, tracks: TracksConfig, plasma: &mut Plasma) -> Result<Self> {
        let species = plasma.setup.species.iter().position(|s| s.name == tracks.species).unwrap_or(0);
        let select = selection(config, tracks.select.as_ref())?;
        let links = plasma.links().clone();
        let Plasma { stages, model, moved, .. } = plasma;
        let mut tags = Vec::new();
        let part = |mut p: Particles| {
            let tag = std::mem::take(&mut p.tag);
            let chosen = selected(select.as_ref(), &ParticleColumns::new(model, *moved, p));
            // As bits: a tag is any 64 of them.
            (0..tag.len()).filter(|k| chosen.as_ref().is_none_or(|c| c[*k])).map(|k| f64::from_bits(tag[k])).collect()
        };
        stages.visit(species, &part, &mut |found| tags.extend(found.into_iter().map(f64::to_bits)))?;
        // Found at the first part, and followed by all.
        let mut tags: Vec<u64> = links.first_says(tags)?;
        tags.sort_unstable();
        // Evenly thinned out.
        let step = tags.len().div_ceil(tracks.limit).max(1);
        let tags = tags.into_iter().step_by(step).enumerate().map(|(k, tag)| (tag, k)).collect();
        let units = [model.units.label("m", "c/w_n"), model.units.label("s", "1/w_n")];
        Ok(Self { config: tracks, species, tags, units, time: Vec::new(), values: Vec::new() })
    }

    /// A point of every course.
    pub fn sample(&mut self, plasma: &mut Plasma) -> Result<()> {
        let tags: Vec<u64> = self.tags.keys().copied().collect();
        for [x, y, ux, uy, uz] in plasma.stages.follow(self.species, &tags)? {
            let [x, y] = plasma.model.position(plasma.moved as f64 + x, y);
            self.values.extend([x, y, ux, uy, uz]);
        }
        self.time.push(plasma.time() * plasma.model.units.time);
        Ok(())
    }

    /// A curve per quantity, a line per particle.
    pub fn records(&self) -> Vec<Record> {
        let n = self.tags.len();
        let record = |(c, quantity): (usize, &str)| {
            let line = |(tag, slot): (&u64, &usize)| {
                let course = (0..self.time.len()).map(|t| self.values[KEPT * (t * n + slot) + c]).collect();
                (format!("{tag}"), course)
            };
            Record::Curve(Curve {
                name: format!("tracks_{}_{quantity}", self.config.species),
                title: format!("{quantity} of {} particles of {}", n, self.config.species),
                x_label: format!("time [{}]", self.units[1]),
                y_label: match quantity.strip_prefix('u') {
                    Some(axis) => format!("u_{axis} [c]"),
                    None => format!("{quantity} [{}]", self.units[0]),
                },
                x: self.time.clone(),
                lines: self.tags.iter().map(line).collect(),
                log_y: false,
            })
        };
        ["x", "y", "ux", "uy", "uz"].into_iter().enumerate().map(record).collect()
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer, k: usize) -> Result<()> {
        let tags: Vec<u64> = self.tags.keys().copied().collect();
        writer.bytes(&format!("tracks{k}.tags"), bytemuck::cast_slice(&tags))?;
        writer.f64s(&format!("tracks{k}.time"), &self.time)?;
        writer.f64s(&format!("tracks{k}.values"), &self.values)
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader, k: usize) -> Result<()> {
        let bytes = reader.bytes(&format!("tracks{k}.tags"))?;
        self.tags = bytes.as_chunks::<8>().0.iter().enumerate().map(|(k, w)| (u64::from_le_bytes(*w), k)).collect();
        self.time = reader.f64s(&format!("tracks{k}.time"))?;
        self.values = reader.f64s(&format!("tracks{k}.values"))?;
        if self.values.len() != KEPT * self.tags.len() * self.time.len() {
            return Err(reader.content_error(format!("the table of tracks {k} has the wrong length")));
        }
        Ok(())
    }
}
