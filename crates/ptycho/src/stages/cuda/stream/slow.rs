//! Operations on all waves that are done now and then through the host: shifts, checkpoints.

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;

use super::StreamedStages;
use super::ring::Access;
use super::sweeps::NEUTRAL;
use crate::stages::Stages;
use crate::stages::cuda::CudaStages;
use crate::stages::cuda::arguments::ConstraintArgument;
use crate::stages::cuda::number::{C, Number, narrow, wide};
use crate::stages::cuda::saved::{roll, waves};

/// Waves are read and written.
const CHANGE: Access = Access { raw: false, read: true, write: true };

impl<T: Number> StreamedStages<T> {
    /// Does something to `inner` that is not to see the waves of the block at work; errors are those of all views.
    pub(super) fn aside<R>(&mut self, work: impl FnOnce(&mut CudaStages<T>) -> Result<R>) -> Result<R> {
        let Self { inner, errors, .. } = self;
        let [mut none, mut nothing] = [inner.pool.alloc_zeros(0, "ptycho: exit waves")?, inner.pool.alloc_zeros(0, "ptycho: exit waves")?];
        let mut swap = |inner: &mut CudaStages<T>| {
            std::mem::swap(&mut inner.frames.waves, &mut none);
            std::mem::swap(&mut inner.frames.exits, &mut nothing);
            std::mem::swap(&mut inner.frames.errors, errors);
        };
        swap(inner);
        let done = work(inner);
        swap(inner);
        done
    }

    /// Returns true if waves are kept.
    fn keeps(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.ring.need.wave > 0)
    }

    /// Shifts kept waves with their probes, to other sub-pixel positions.
    pub(super) fn shift_waves(&mut self, shifts: &[[f64; 2]]) -> Result<()> {
        self.inner.need_subpixel()?;
        let CudaStages { subpixel: Some(subpixel), scan, frames, .. } = &mut self.inner else { return Ok(()) };
        // A near detector's stay, as its frame does.
        if frames.config.near || self.work.as_ref().is_none_or(|w| w.ring.need.wave == 0) {
            return Ok(());
        }
        subpixel.set_shift_change(&scan.shifts, shifts)?;
        self.sweep(CHANGE, false, |inner, _, _, range| {
            inner.begin_at(range.start);
            let CudaStages { subpixel: Some(subpixel), operations: Some(operations), frames, .. } = inner else { return Ok(()) };
            subpixel.shift_waves(operations, frames)
        })
    }

    /// Moves probes, objects and exit waves as [`Stages::roll`] says.
    pub(super) fn roll_all(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()> {
        self.aside(|inner| inner.roll(probes, objects))?;
        if !self.keeps() {
            return Ok(());
        }
        let (frame, pixels, wave) = (self.inner.model.frame, self.inner.model.pixels(), self.inner.model.exits());
        self.sweep(CHANGE, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            inner.frames.project(model, ConstraintArgument::from(&NEUTRAL))?;
            let mut values = inner.cuda.download_range(&inner.frames.exits, 0..range.len() * wave * pixels)?;
            for (planes, view) in values.chunks_exact_mut(wave * pixels).zip(&inner.scan.views[range.clone()]) {
                let by = probes[view.probe as usize];
                planes.chunks_exact_mut(pixels).for_each(|plane| roll(plane, frame, by));
            }
            inner.cuda.upload(&mut inner.frames.exits, &values)?;
            inner.frames.begin(model, true)
        })
    }

    /// Exit waves as [`Stages::exit_waves`] has them, block by block.
    pub(super) fn all_exit_waves(&mut self) -> Result<Vec<Complex<f64>>> {
        let mut all = Vec::new();
        if !self.keeps() {
            return Ok(all);
        }
        let wave = self.inner.model.exits() * self.inner.model.pixels();
        self.sweep(Access { read: true, ..Access::default() }, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            inner.frames.project(model, ConstraintArgument::from(&NEUTRAL))?;
            all.extend(wide(&inner.cuda.download_range(&inner.frames.exits, 0..range.len() * wave)?));
            Ok(())
        })?;
        Ok(all)
    }

    /// Puts exit waves block by block.
    pub(super) fn put_exit_waves(&mut self, values: &[Complex<f64>]) -> Result<()> {
        self.ready(true)?;
        let wave = self.inner.model.exits() * self.inner.model.pixels();
        self.sweep(Access { write: true, ..Access::default() }, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            inner.cuda.upload(&mut inner.frames.exits, &narrow(&values[range.start * wave..range.end * wave]))?;
            inner.frames.begin(model, true)
        })
    }

    /// Writes the state; waves as a section for each block.
    pub(super) fn save_all(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        self.aside(|inner| inner.save(prefix, writer))?;
        let block = if self.keeps() { self.layout().map_or(0, |l| l.block) } else { 0 };
        writer.u64(&format!("{prefix}waves.block"), block as u64)?;
        if block == 0 {
            return Ok(());
        }
        let wave = self.inner.model.exits() * self.inner.model.pixels();
        self.sweep(Access { read: true, ..Access::default() }, false, |inner, _, b, range| {
            let values = inner.cuda.download_range(&inner.frames.waves, 0..range.len() * wave)?;
            writer.bytes(&format!("{prefix}waves.{b}"), bytemuck::cast_slice(&values))
        })
    }

    /// Takes it back; blocks may have other lengths now.
    pub(super) fn restore_all(&mut self, prefix: &str, reader: &Reader) -> Result<()> {
        self.pending = None;
        self.aside(|inner| inner.restore(prefix, reader))?;
        if reader.u64(&format!("{prefix}waves.block"))? == 0 {
            return Ok(());
        }
        self.ready(true)?;
        let wave = self.inner.model.exits() * self.inner.model.pixels();
        let (mut section, mut values): (usize, Vec<C<T>>) = (0, Vec::new());
        self.sweep(Access { write: true, ..Access::default() }, false, |inner, _, _, range| {
            while values.len() < range.len() * wave {
                let more = waves(reader, &format!("{prefix}waves.{section}"))?;
                if more.is_empty() || more.len() % wave != 0 {
                    return Err(reader.content_error(format!("section `{prefix}waves.{section}` does not hold whole waves")));
                }
                values.extend(more);
                section += 1;
            }
            inner.cuda.upload(&mut inner.frames.waves, &values[..range.len() * wave])?;
            values.drain(..range.len() * wave);
            Ok(())
        })
    }
}
