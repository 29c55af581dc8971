//! Sizes of the buffers of a run, for the store that allocates them and for the plan.

use zellige_engine::cuda::Properties;

use super::program::KernelConfig;
use super::{fields, kernel_config, tiles};
use crate::stages::{Precision, Setup};

/// Least and most records of the common list.
const COMMON: std::ops::RangeInclusive<usize> = 1 << 14..=1 << 22;
/// Pages that the inbox of a unit may have, in multiples of the mean; the same for lists where no unit is ever split.
const CROWD: usize = 16;
/// Particles from which on an inbox has half of that, since its table would show: fuller tiles are split.
const MANY: usize = 1 << 20;
/// Helpers for each place of the device: very full units are split into parts of no more than such a part of all particles.
const HELPERS: usize = 3;
/// Units that `team.cu` splits in a step at most.
pub(super) const HEAVY: usize = 256;

/// Sizes of a store's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Capacity {
    /// Particles of a part into which a very full unit is split.
    pub(super) target: usize,
    /// Units of work beside those of the tiles, and both together.
    pub(super) helpers: usize,
    pub(super) units: usize,
    /// Records of the common list, and of the outboxes of all blocks.
    pub(super) common: usize,
    pub(super) outbox: usize,
    pub(super) pages: usize,
    /// Pages of a list and of an inbox at most.
    pub(super) list_room: usize,
    pub(super) inbox_room: usize,
}

impl Capacity {
    /// For `n` particles in `own` units of the tiles, in each of which `unit` may be at the start, on a device that holds `places`
    /// blocks at a time.
    pub(super) fn new(kernel_config: &KernelConfig, own: usize, n: usize, unit: usize, places: usize) -> Self {
        let (warps, page, mean) = (kernel_config.warps(), kernel_config.page(), n.div_ceil(own));
        // A part is not less than three quarters of that: so many helpers are enough for all particles.
        let target = (2 * mean).max(kernel_config.target).max(n.div_ceil(HELPERS * places));
        let helpers = 4 * n / (3 * target);
        let units = own + helpers;
        // Lists end with pages half empty, on the mean; inboxes have a quarter more than what comes, twice, and a page at least. Few
        // lists may be far from the mean.
        let ends = if n < MANY { (own * warps).min(n) } else { (own * warps).div_ceil(2) };
        let pages = (n + n / 4 + COMMON.start()).div_ceil(page) + ends + 2 * units + 1;
        let crowd = if n < MANY { CROWD } else { CROWD / 2 };
        // Before it is split a list has grown to the limit, and by what an insertion or a step brings.
        let most = if helpers == 0 { CROWD * mean.max(unit / 4) } else { 3 * (target + target / 2) / 2 + 4 * mean };
        Self {
            target,
            helpers,
            units,
            common: (n / 16).clamp(*COMMON.start(), *COMMON.end()),
            outbox: places.min(units) * warps * kernel_config.out(),
            pages,
            list_room: (most.div_ceil(warps * page) + CROWD).min(pages),
            inbox_room: (crowd * mean.max(if helpers == 0 { unit / 4 } else { 0 }).div_ceil(page) + CROWD).min(pages),
        }
    }

    /// Particles of a unit that is not split yet at most.
    pub(super) fn limit(&self) -> usize {
        self.target + self.target / 2
    }

    /// Bytes of all of them.
    fn bytes(&self, kernel_config: &KernelConfig) -> usize {
        let (lists, records) = (self.units * kernel_config.warps(), self.common + self.outbox);
        let words = lists * (1 + self.list_room)
            + 2 * self.units * (2 + self.inbox_room)
            + 2 * self.units
            + 16 * self.helpers
            + HEAVY
            + self.pages.next_power_of_two()
            + self.common;
        // And the sums of a measured step: four numbers a unit.
        self.pages * kernel_config.page_bytes() + records * kernel_config.record() + 4 * words + 32 * self.units
    }
}

/// Bytes that a run takes on `gpu`: the stores of all species, and on each node the fields, the sums of the current, what is known
/// of the residual, and the charge while it is looked at.
pub fn memory(setup: &Setup, gpu: &Properties) -> u64 {
    let species = setup.species.iter().zip(&setup.expected).map(|(species, n)| {
        let kernel_config = kernel_config(setup, *n, gpu).of(species);
        let tiles = tiles(setup, &kernel_config);
        let places = (gpu.multiprocessors * kernel_config.resident) as usize;
        Capacity::new(&kernel_config, tiles[0] * tiles[1] * kernel_config.parts, (*n).max(1), 0, places).bytes(&kernel_config)
    });
    let size = if setup.precision == Precision::F32 { 4 } else { 8 };
    let fuses_fields = usize::from(fields::fuses_fields(setup));
    let smoothed = usize::from(setup.smoothing.iter().any(|s| s.passes > 0));
    let external = setup.external.iter().filter(|e| !e.is_empty()).count();
    // E and B, twice where the update is fused, else J and its half-filtered copy; sums, twice where the update is fused; residual and charge.
    let node =
        size * (6 + 6 * fuses_fields + 3 * (1 - fuses_fields) + 3 * smoothed + external) + 24 * (1 + fuses_fields) + 8 * (2 + 3 + smoothed);
    (species.sum::<usize>() + node * setup.grid.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::particles::{Pusher, Species};
    use crate::stages::cuda::tests::bare;

    /// Lists, inboxes, outboxes and half-empty pages are counted: with few particles a cell they take 0.4 and more of what the rest
    /// does, with many 0.1.
    #[test]
    fn a_plan_has_more_than_its_particles() {
        let gpu = Properties {
            name: "a GPU".into(),
            capability: (9, 0),
            multiprocessors: 132,
            l2: 50 << 20,
            shared_per_block: 232_448,
            shared_per_multiprocessor: 233_472,
            memory: 80 << 30,
            cooperative: true,
        };
        let species = Species {
            name: "electrons".into(),
            charge: -1.0,
            mass: 1.0,
            weight: 1.0,
            weighted: false,
            tagged: false,
            mobile: true,
            pusher: Pusher::Boris,
            wall_thermal: [[0.0; 2]; 2],
        };
        for (cells, per_cell, more) in [(512, 4, 0.4), (1024, 16, 0.2), (2048, 64, 0.1)] {
            let n = cells * cells * per_cell;
            let setup = Setup { species: vec![species.clone()], precision: Precision::F32, ..bare([cells; 2], n) };
            // 22 bytes a particle with a quarter of spare room, 136 a node.
            let least = ((n + n / 4) * 22 + 136 * setup.grid.len()) as f64;
            let share = memory(&setup, &gpu) as f64 / least;
            assert!((1.0 + more..1.2 + more).contains(&share), "{cells}^2 cells, {per_cell} each: {share}");
        }
    }
}
