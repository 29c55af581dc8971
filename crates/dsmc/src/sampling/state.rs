//! Averages in a checkpoint: of all cells, of which each part of a run writes and reads its own.

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;

use super::of_cells::OfCells;
use super::{Samples, surface_sums};
use crate::config::AUTO;
use crate::model::Model;
use crate::stages::Stages;

/// Sections of a checkpoint with the counts.
const COUNTS: [&str; 6] = ["samples.taken", "samples.current", "samples.batches", "samples.start", "samples.full", "samples.batch"];

/// Sections with the scatter of surfaces, loads and flows.
const SPREADS: [&str; 3] = ["surface", "load", "section"];

impl Samples {
    /// Writes everything; open batches are in `pending`, the sums that the stages hold.
    pub fn save(&mut self, model: &Model, writer: &mut Writer, stages: &mut dyn Stages) -> Result<()> {
        self.fetch_own(model, stages)?;
        let mut surfaces = vec![0.0; self.surfaces.len()];
        stages.pending(&mut self.batch_cells, &mut surfaces)?;
        let widths = OfCells::widths(model);
        let counts = [self.taken, self.current, self.batches, self.start, u64::from(self.full), self.batch];
        for (name, n) in COUNTS.into_iter().zip(counts) {
            writer.u64(name, n)?;
        }
        if let Some(search) = &self.search {
            search.save(writer)?;
        }
        writer.joined("samples.cells.pending", &self.shares.placed(&self.batch_cells, widths[0]))?;
        writer.f64s("samples.surfaces.pending", &surfaces)?;
        for ((name, own), width) in self.own.columns().into_iter().zip(widths) {
            writer.joined(name, &self.shares.placed(own, width))?;
        }
        writer.f64s("samples.surfaces", &self.surfaces)?;
        for (name, spread) in SPREADS.into_iter().zip([&self.surface_spread, &self.load_spread, &self.section_spread]) {
            writer.f64s(&format!("samples.{name}_mean"), &spread.mean)?;
            writer.f64s(&format!("samples.{name}_square"), &spread.square)?;
        }
        Ok(())
    }

    /// Does `work` on the particles of the stages, through which sums that are open go out and come back.
    pub(crate) fn beside(&mut self, stages: &mut dyn Stages, work: impl FnOnce(&mut dyn Stages) -> Result<()>) -> Result<()> {
        let mut surfaces = vec![0.0; self.surfaces.len()];
        stages.pending(&mut self.batch_cells, &mut surfaces)?;
        work(stages)?;
        stages.put_samples(&self.batch_cells, &surfaces)
    }

    /// Takes everything back.
    pub fn restore(&mut self, model: &Model, reader: &Reader, stages: &mut dyn Stages) -> Result<()> {
        let fit = |name: &str, n: usize| {
            let values = reader.f64s(name)?;
            if values.len() == n {
                Ok(values)
            } else {
                Err(reader.content_error(format!("section `{name}` has {} numbers, {n} expected", values.len())))
            }
        };
        let mut counts = [0; COUNTS.len()];
        for (count, name) in counts.iter_mut().zip(COUNTS) {
            *count = reader.u64(name)?;
        }
        let full;
        [self.taken, self.current, self.batches, self.start, full, self.batch] = counts;
        if self.batch == 0 {
            return Err(reader.content_error("section `samples.batch` is 0"));
        }
        self.full = full > 0;
        if let Some(search) = &mut self.search {
            search.restore(reader)?;
        }
        let widths = OfCells::widths(model);
        let mut pending = self.shares.read(reader, "samples.cells.pending", widths[0])?;
        let mut pending_surfaces = fit("samples.surfaces.pending", surface_sums(model))?;
        for ((name, own), width) in self.own.columns_mut().into_iter().zip(widths) {
            *own = self.shares.read(reader, name, width)?;
        }
        // A run that goes on with more steps keeps its batches as long as they were and has more of them, unless all that they hold
        // is less than a batch of so many steps: then it is the beginning of the first one.
        let longer = self.closed() > 0 && self.start != AUTO && self.closed() + self.current < self.length();
        if longer {
            pending.iter_mut().zip(&self.own.sums).for_each(|(to, from)| *to += from);
            pending_surfaces.iter_mut().zip(fit("samples.surfaces", surface_sums(model))?).for_each(|(to, from)| *to += from);
            self.current += self.closed();
            (self.batches, self.batch) = (0, self.length());
            self.own.clear();
        }
        stages.put_samples(&pending, &pending_surfaces)?;
        self.outdate();
        if let Some(device) = stages.batches().filter(|_| self.batches > 0) {
            device.put(&self.own.sums, &self.own.spread.square, &self.own.spread.filled)?;
        }
        if !self.links.is_first() || longer {
            return Ok(());
        }
        self.surfaces = fit("samples.surfaces", self.surfaces.len())?;
        let spreads = [&mut self.surface_spread, &mut self.load_spread, &mut self.section_spread];
        for (name, spread) in SPREADS.into_iter().zip(spreads) {
            spread.mean = fit(&format!("samples.{name}_mean"), spread.mean.len())?;
            spread.square = fit(&format!("samples.{name}_square"), spread.square.len())?;
        }
        Ok(())
    }
}
