//! Engines that go from view to view in an order of their own: frames are picked one by one from where they are kept.

use zellige_engine::cuda::{Buffer, Pool};
use zellige_engine::error::{Error, Result};

use super::ring::BlockRing;
use super::{BlockBuffers, StreamedStages, keep};
use crate::model::View;
use crate::stages::cuda::number::{C, Number, pairs};
use crate::stages::cuda::supports::Supports;
use crate::stages::cuda::{CudaStages, KernelConfig};
use crate::stages::{LeastSquares, Stages, Sweep};

/// Arrays in the order of a pass.
pub(super) struct ReorderedFrames<T> {
    /// The kind that `order` was made for.
    config: KernelConfig,
    order: Option<Buffer<u32>>,
    views: Buffer<View>,
    /// Views of the current block.
    here: Buffer<View>,
    /// Sub-pixel remainders of all and of the current block.
    shifts: [Buffer<[T; 2]>; 2],
    weights: Buffer<[T; 2]>,
    errors: Buffer<T>,
}

impl<T: Number> ReorderedFrames<T> {
    fn new(pool: &Pool, config: KernelConfig, views: usize) -> Result<Self> {
        let what = "ptycho: views in order";
        Ok(Self {
            config,
            order: keep::order(pool, config)?,
            views: pool.alloc_zeros(views, what)?,
            here: pool.alloc_zeros(views, what)?,
            shifts: [pool.alloc_zeros(views, what)?, pool.alloc_zeros(views, what)?],
            weights: pool.alloc_zeros(views, what)?,
            errors: pool.alloc_zeros(3 * views, what)?,
        })
    }
}

impl<T: Number> BlockRing<T> {
    /// Puts the frames `picked`, and their waves with `waves`, into slot `slot`.
    fn pick(&mut self, slot: usize, picked: &[u32], waves: bool, raw: &[u8]) -> Result<()> {
        let Self { up, cuda, layout, need, held, slots, host, .. } = self;
        up.wait_for(&slots[slot].free)?;
        cuda.wait_for(&slots[slot].free)?;
        let (kept, size, wave) = (&mut slots[slot].kept, need.raw as usize, need.wave as usize);
        for (i, n) in picked.iter().map(|n| *n as usize).enumerate() {
            let (b, at) = (n / layout.block, n % layout.block);
            if let Some(from) = &held[b] {
                cuda.copy(&from.raw, at * size, &mut kept.raw, i * size, size)?;
                if waves {
                    let part = |bytes: usize| (at * wave / bytes, i * wave / bytes, wave / bytes);
                    let ((a, b, n), (c, d, m)) = (part(size_of::<C<T>>()), part(size_of::<u32>()));
                    if kept.half_precision.is_empty() {
                        cuda.copy(&from.waves, a, &mut kept.waves, b, n)?;
                    } else {
                        cuda.copy(&from.half_precision, c, &mut kept.half_precision, d, m)?;
                    }
                }
                continue;
            }
            // SAFETY: the slot is free; host memory stays, and waves came back before the last pass ended.
            unsafe {
                kept.raw_from(up, i * size, &raw[n * size..(n + 1) * size])?;
                if waves {
                    let begin = (layout.streamed(b).unwrap_or(0) * layout.block + at) * wave;
                    kept.waves_from(up, i * wave, &host[begin..begin + wave])?;
                }
            }
        }
        up.record(&slots[slot].came)?;
        cuda.wait_for(&slots[slot].came)
    }

    /// Takes the waves of the frames `picked` back to where they are kept, and gives the slot free.
    fn put_back(&mut self, slot: usize, picked: &[u32], waves: bool) -> Result<()> {
        let Self { down, cuda, layout, need, held, slots, host, .. } = self;
        if !waves {
            return cuda.record(&slots[slot].free);
        }
        let (kept, wave) = (&slots[slot].kept, need.wave as usize);
        for (i, n) in picked.iter().map(|n| *n as usize).enumerate() {
            if let Some(to) = &mut held[n / layout.block] {
                let at = n % layout.block;
                if kept.half_precision.is_empty() {
                    let wave = wave / size_of::<C<T>>();
                    cuda.copy(&kept.waves, i * wave, &mut to.waves, at * wave, wave)?;
                } else {
                    let wave = wave / size_of::<u32>();
                    cuda.copy(&kept.half_precision, i * wave, &mut to.half_precision, at * wave, wave)?;
                }
            }
        }
        cuda.record(&slots[slot].done)?;
        down.wait_for(&slots[slot].done)?;
        for (i, n) in picked.iter().map(|n| *n as usize).enumerate() {
            let (b, at) = (n / layout.block, n % layout.block);
            if let Some(number) = layout.streamed(b) {
                let begin = (number * layout.block + at) * wave;
                // SAFETY: nobody sends for the slot before `free`; the host's part is read after the pass has ended.
                unsafe { kept.waves_to(down, i * wave, &mut host[begin..begin + wave])? };
            }
        }
        down.record(&slots[slot].free)
    }
}

/// Pass from view to view.
pub(super) enum Pass<'a> {
    Sweep(&'a Sweep),
    LeastSquares(&'a LeastSquares),
}

impl Pass<'_> {
    /// Tells whether waves are kept, the number of views of a batch, and whether the probe is updated.
    fn size(&self) -> (bool, usize, bool) {
        match self {
            Self::Sweep(rule) => (rule.c != 1.0 || rule.a + rule.b != 1.0, rule.batch.max(1), rule.probe),
            Self::LeastSquares(rule) => (false, rule.batch.max(1), rule.probe),
        }
    }
}

impl<T: Number> StreamedStages<T> {
    /// One pass from view to view, or from batch to batch.
    pub(super) fn pick_views(&mut self, pass: &Pass, order: &[u32]) -> Result<()> {
        let (keeps, batch, probe) = pass.size();
        let all = self.inner.scan.views.len();
        assert!(order.len() <= all && order.iter().all(|n| (*n as usize) < all), "an order of other views");
        self.ready(keeps)?;
        // As `CudaStages::sweep` chooses.
        let apart = probe && self.inner.supports.as_ref().is_some_and(Supports::apart);
        let registers = matches!(pass, Pass::Sweep(rule) if !rule.looks_through_objects()) && batch <= 1 && !apart;
        let config = self.inner.frames.sequence_kind(keeps).filter(|_| registers).unwrap_or(self.inner.frames.config);
        if self.picked.as_ref().is_none_or(|p| p.config != config) {
            self.picked = Some(ReorderedFrames::new(&self.inner.pool, config, all)?);
        }
        self.inner.need_subpixel()?;
        let bytes = self.bytes_of_pixel;
        let Self { work: Some(BlockBuffers { ring, waves, .. }), picked: Some(picked), inner, convert, raw, .. } = self else {
            return Ok(());
        };
        let (cuda, wave) = (inner.cuda.clone(), inner.model.exits() * inner.model.pixels());
        // Whole batches.
        let length = ring.layout.block / batch * batch;
        let length = if batch >= order.len() && ring.layout.block >= order.len() { order.len() } else { length };
        if length == 0 {
            // Blocks are made for the largest batch that was announced.
            let message = format!("batches of {batch} views, and room for {} at a time", ring.layout.block);
            let hint = "take smaller ones (`batch` of [[ptycho.engine]]), or allow more memory (`device` of [ptycho.memory])";
            return Err(Error::Device { device: "cuda".into(), message, hint: Some(hint.into()) });
        }
        ring.drain()?;
        let views: Vec<View> = order.iter().map(|n| inner.scan.views[*n as usize]).collect();
        let weights: Vec<[T; 2]> = order.iter().map(|n| self.counted[*n as usize]).collect();
        cuda.upload(&mut picked.views, &views)?;
        cuda.upload(&mut picked.weights, &weights)?;
        let shifts: Vec<[f64; 2]> = order.iter().map(|n| inner.scan.shifts[*n as usize]).collect();
        cuda.upload_at(&mut picked.shifts[0], 0, &pairs(&shifts))?;
        let one_by_one: Vec<u32> = (0..length as u32).collect();
        let (half, slots) = (ring.half, ring.slots.len());
        for (number, part) in order.chunks(length).enumerate() {
            let (slot, first, count) = (number % slots, number * length, part.len());
            ring.pick(slot, part, keeps, raw)?;
            let kept = &mut ring.slots[slot].kept;
            inner.frames.views = count;
            cuda.copy(&picked.weights, first, &mut inner.frames.weight, 0, count)?;
            cuda.copy(&picked.views, first, &mut picked.here, 0, count)?;
            let [all, here] = &mut picked.shifts;
            cuda.copy(all, first, here, 0, count)?;
            convert.magnitudes((&kept.raw, bytes), picked.order.as_ref(), &mut inner.frames.mag, count)?;
            if half {
                convert.widen(&kept.half_precision, waves, count * wave)?;
            }
            let stored = if half { &mut *waves } else { &mut kept.waves };
            let mut swap = |inner: &mut CudaStages<T>| {
                std::mem::swap(&mut inner.frames.waves, stored);
                std::mem::swap(&mut inner.scan.on_device, &mut picked.here);
                if let Some(subpixel) = &mut inner.subpixel {
                    subpixel.swap(&mut picked.shifts[1]);
                }
                inner.begin_at(0);
            };
            swap(inner);
            let done = match pass {
                Pass::Sweep(rule) => inner.sweep(rule, &one_by_one[..count]),
                Pass::LeastSquares(rule) => inner.least_squares(rule, &one_by_one[..count]),
            };
            swap(inner);
            done?;
            if half {
                convert.narrow(waves, &mut kept.half_precision, count * wave)?;
            }
            cuda.copy(&inner.frames.errors, 0, &mut picked.errors, 3 * first, 3 * count)?;
            ring.put_back(slot, part, keeps)?;
        }
        ring.drain()?;
        // Errors go where their views are; those of views that were not in the order stay.
        let found = cuda.download_range(&picked.errors, 0..3 * order.len())?;
        let mut errors = cuda.download(&self.errors)?;
        for (n, found) in order.iter().zip(found.chunks_exact(3)) {
            errors[3 * *n as usize..3 * *n as usize + 3].copy_from_slice(found);
        }
        cuda.upload(&mut self.errors, &errors)
    }
}
