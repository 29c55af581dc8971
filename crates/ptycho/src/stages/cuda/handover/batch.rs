//! Waves of a batch, which the parts of a run that make them tell all others: sums over a batch follow the order in which its views
//! were drawn, and each part takes them all ([`BatchShare`]).

use std::sync::Arc;

use zellige_engine::cuda::{Argument, Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::links::{Opened, Ways};

use super::super::batches::Batch;
use super::super::number::{C, Number};
use super::super::program::{KernelConfig, TEAM};
use super::handover_recipe;
use crate::batch::BatchShare;
use crate::model::Model;

/// Views of a batch that this part makes waves of.
#[derive(Debug, Clone, Copy)]
pub(in crate::stages::cuda) struct OwnViews {
    /// Address of their numbers.
    pub(in crate::stages::cuda) list: u64,
    /// Number of those of the batches before, in the same pass.
    pub(in crate::stages::cuda) first: usize,
    pub(in crate::stages::cuda) count: usize,
}

/// Waves of the views of a batch, from all parts.
pub(in crate::stages::cuda) struct BatchWaves<T: Number> {
    // First: it waits before anything is freed.
    ways: Ways,
    cuda: Cuda,
    kernel: Kernel,
    /// Views of a batch, at most, and values of the waves of one.
    most: usize,
    wave: usize,
    /// Waves part by part, of this batch and of the one before: others send theirs while this part still reads those.
    told: Opened<C<T>>,
    second: bool,
    /// Waves in the order of the batch.
    all: Buffer<C<T>>,
    /// Place of each view of a pass among those of its batch part by part.
    places: Buffer<u32>,
    /// Own views of a pass, counted from the first own one, and how many of them come before each batch (and in all).
    own: Buffer<u32>,
    before: Vec<usize>,
    /// Views of a batch of the pass.
    size: usize,
}

impl<T: Number> BatchWaves<T> {
    /// Memory for batches of at most this many views; all parts make theirs at the same time.
    pub(in crate::stages::cuda) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig, most: usize) -> Result<Self> {
        let (wave, what) = (model.exits() * model.pixels(), "ptycho: waves between parts");
        let mut ways = Ways::new(cuda, model.share.links(), 0)?;
        Ok(Self {
            told: ways.open(Arc::new(pool.alloc_zeros(2 * most * wave, what)?))?,
            ways,
            cuda: cuda.clone(),
            kernel: handover_recipe(&config).build(cuda)?.kernel("waves_in")?,
            most,
            wave,
            second: false,
            all: pool.alloc_zeros(most * wave, what)?,
            places: pool.alloc_zeros(model.views.len(), what)?,
            own: pool.alloc_zeros(model.own().len(), what)?,
            before: Vec::new(),
            size: most,
        })
    }

    /// Returns true if batches of this many views fit.
    pub(in crate::stages::cuda) fn fits(&self, views: usize) -> bool {
        views <= self.most
    }

    /// Begins a pass over the views in `order`, by batches of `size`.
    pub(in crate::stages::cuda) fn begin(&mut self, model: &Model, order: &[u32], size: usize) -> Result<()> {
        let (mut places, mut own, first) = (Vec::with_capacity(order.len()), Vec::new(), model.own().start as u32);
        self.before = vec![0];
        self.size = size;
        for batch in order.chunks(size) {
            let parts = BatchShare::new(&model.share, batch);
            places.extend(parts.places());
            own.extend(parts.own().iter().map(|slot| batch[*slot as usize] - first));
            self.before.push(own.len());
        }
        self.cuda.upload_at(&mut self.places, 0, &places)?;
        self.cuda.upload_at(&mut self.own, 0, &own)
    }

    /// Own views of batch number `number`.
    pub(in crate::stages::cuda) fn own(&self, number: usize) -> OwnViews {
        let first = self.before[number];
        OwnViews { list: self.own.from(first).value(), first, count: self.before[number + 1] - first }
    }

    /// Own views of the batches of the pass from number `number` on.
    pub(in crate::stages::cuda) fn own_from(&self, number: usize, batches: usize) -> OwnViews {
        let own = self.own(number);
        OwnViews { count: self.before[number + batches] - own.first, ..own }
    }

    /// Tells the others the waves `own` of own views of batch number `number`, whose parts are `parts`, and takes theirs. Gives the
    /// batch as sums over all of it see it: `list` has the address of its views' numbers.
    pub(in crate::stages::cuda) fn tell(
        &mut self,
        number: usize,
        parts: &BatchShare,
        own: &Buffer<C<T>>,
        batch: Batch,
        list: u64,
    ) -> Result<Batch> {
        let Self { ways, kernel, most, wave, told, second, all, places, size, .. } = self;
        let (here, turn) = (parts.own_range(), if *second { *most } else { 0 });
        for part in ways.others() {
            ways.copy(own, 0, told, part, (turn + here.start) * *wave, here.len() * *wave);
        }
        ways.settle()?;
        *second = !*second;
        let grid = ((*wave as u32).div_ceil(4 * TEAM), parts.len() as u32);
        let launch = kernel.launch(grid, TEAM).arg(own).arg(told.own().from(turn * *wave)).arg(places.from(number * *size));
        // SAFETY: (const C*, const C*, const u32*, u32, u32, C*) as `waves_in` declares; all waves hold as many views as the batch has,
        // or the own ones of it, each of which has a place.
        unsafe { launch.arg(here.start as u32).arg(here.len() as u32).arg(&*all).run()? };
        Ok(Batch { list, work: all.address(), ..batch })
    }
}
