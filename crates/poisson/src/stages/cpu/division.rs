//! Model of a run in parts: slabs of each level that is large enough, and copies of those beside them.

use zellige_engine::links::Division;
use zellige_engine::links::forecast::ranges;
use zellige_engine::sim::Plan;

use super::field::in_slabs;
use super::share::{begins, large_enough};
use super::strips::MOST;
use crate::cost::visits;
use crate::direct;
use crate::grid::Level;
use crate::method::{Choice, Scheme};
use crate::stages::ranges::even;

/// Copies of slabs beside those of a part on a visit of a level: on the way down the residual, on the way up residual and
/// correction.
const COPIES: f64 = 3.0;
/// Values that all parts give to all in a cycle: norms of the residual, and those of the coarse level that is not divided.
const GATHERED: f64 = 2.0;

/// Share of a direct solution that goes by groups of modes from part to part.
const BY_GROUPS: f64 = 0.3;

/// Slabs of the parts of a level's `slabs`.
fn shares(slabs: usize, parts: usize) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> {
    even(parts, slabs, [0, 1])
}

/// Planes that a GPU copies from beside for a visit of a level, all at once, and rows, in two goes: by whole bands, whose height
/// depends on the GPU.
const ON_GPU: [f64; 2] = [6.0, 100.0];

/// Division among `parts` parts, of which each may have a GPU.
pub(crate) fn of(levels: &[Level], choice: &Choice, plan: &Plan, (parts, gpu): (usize, bool)) -> Division {
    let plane = levels[0].grid.axes[2].is_flat();
    let least = if gpu && plane { ON_GPU[1] as usize } else { 0 };
    let (given, levels) = (&levels[0].grid, in_slabs(levels));
    let size = choice.precision.inner_bytes() as f64;
    let [_, _, slabs] = levels[0].grid.nodes();
    let finest = || even(parts, slabs, if gpu { [0, 2] } else { begins(&levels[0].grid) });
    let cut = ranges(if plane { "rows of nodes" } else { "planes of nodes" }, finest());
    let (mut all, mut whole, mut copies, mut bytes, mut divided) = (0.0, 0.0, 0.0, 0.0, parts > 1);
    let neighbours = parts.saturating_sub(1).min(2) as f64;
    let mut coarse = 0.0;
    for (l, level) in levels.iter().enumerate() {
        let [x, rows, slabs] = level.grid.nodes();
        let (times, nodes) = match choice.scheme {
            Scheme::Cycles { plan, .. } => (visits(plan.cycle, l), (x * rows * slabs) as f64),
            _ => (1.0, (x * rows * slabs) as f64),
        };
        let last = l > 0 && l + 1 == levels.len();
        let before = divided;
        divided = divided && !last && shares(slabs, parts).all(|share| large_enough(share.len(), x * rows) && share.len() >= least);
        all += times * nodes;
        if divided {
            // A sweep of both colours reaches two slabs, a residual one.
            let (each, depth) = match choice.scheme {
                Scheme::Cycles { .. } if gpu => (if plane { 2.0 } else { 1.0 }, ON_GPU[usize::from(plane)]),
                Scheme::Cycles { plan, .. } => (COPIES, f64::from(2 * (plan.pre + plan.post) + 2)),
                // Two sweeps in one pass, or four on the planes that are copied.
                Scheme::Sweeps { block, .. } if gpu => (f64::from(block) / if plane { 2.0 } else { 4.0 }, if plane { 6.0 } else { 8.0 }),
                Scheme::Sweeps { block, .. } => {
                    let passes = f64::from(block.div_ceil(MOST));
                    (passes, 2.0 * f64::from(block) / passes + 1.0)
                }
                Scheme::Direct => (0.0, 0.0),
            };
            copies += times * each;
            bytes += times * each * neighbours * depth * (x * rows) as f64 * size;
        } else {
            whole += times * nodes;
            if before && parts > 1 {
                coarse = times;
                bytes += times * nodes * size;
            }
        }
    }
    if parts == 1 {
        (whole, copies, bytes) = (0.0, 0.0, 0.0);
    }
    // The first part sends what was gathered to those beside it in the tree, which the others hand on; GPUs copy to all others at
    // once, and of a level that is not divided the residual alone.
    let (rounds, told) = if parts == 1 {
        (0.0, 0.0)
    } else if gpu {
        (1.0 + coarse, (1.0 + coarse) * (parts - 1) as f64)
    } else {
        let told = match choice.scheme {
            // The sums at the end, and the constant mode.
            Scheme::Direct => 1.0 + f64::from(u8::from(given.singular())),
            _ => GATHERED,
        };
        let (deep, gathers) = ((parts as f64).log2().ceil(), told + coarse);
        (2.0 * gathers * deep, gathers * deep)
    };
    let share = finest().map(|s| s.len()).max().unwrap_or(slabs) as f64 / slabs as f64;
    let repeated = whole / all;
    let mut imbalance = share * parts as f64;
    let (mut rounds, mut messages) = (copies + rounds, copies * neighbours + told);
    if choice.scheme == Scheme::Direct && parts > 1 && repeated < 1.0 {
        let (sent, size) = (direct::Sent::new(given, parts), choice.precision.outer_bytes() as f64);
        let count = sent.groups as f64;
        // The groups, and planes of the solution beside those of others, for the norms of its residual.
        messages += neighbours * (count + 1.0);
        bytes += size * (neighbours * sent.carried as f64 + if sent.around { 2.0 } else { neighbours } * sent.plane as f64);
        bytes += (size_of::<f64>() * sent.column) as f64 * (parts as f64).log2().ceil();
        // The first group goes to the last part and back; meanwhile parts have one way to do in place of two. The sums of the residual
        // go from part to part once.
        rounds += count + (2 * (parts - 1) + parts + 1) as f64;
        imbalance *= 1.0 + BY_GROUPS * (parts - 1) as f64 / count;
    }
    Division {
        cut,
        imbalance,
        repeated,
        memory: (plan.memory as f64 * (repeated + (1.0 - repeated) * share)) as u64,
        rounds,
        messages,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Bc, Grid};
    use crate::method::{Method, Options};
    use crate::solver::levels_of;

    /// Parts on GPUs exchange once a level on the way down, tell all others the norms and a coarse level, and plane grids are cut
    /// where parts have whole bands.
    #[test]
    fn gpus_exchange_less_often() {
        let options = Options { method: Method::Multigrid, ..Options::default() };
        let division = |grid: &Grid, parts: usize, gpu: bool| {
            let choice = options.choose(grid, false, false).unwrap();
            of(&levels_of(grid, &choice), &choice, &Plan { memory: 1 << 30, ..Plan::default() }, (parts, gpu))
        };
        let axis = |n: usize| Axis::new(n, 1.0, Bc::Dirichlet, Bc::Dirichlet);
        let space = Grid { axes: [axis(129), axis(129), axis(129)] };
        let [host, gpu] = [false, true].map(|gpu| division(&space, 4, gpu));
        // Levels of 129, 65 and 33 planes, and what is gathered of that with 17.
        assert_eq!((gpu.rounds, gpu.messages), (3.0 + 2.0, 2.0 * 3.0 + 2.0 * 3.0));
        assert!(gpu.rounds < host.rounds && gpu.imbalance == host.imbalance && gpu.memory < 1 << 29, "{host:?} {gpu:?}");
        let plane = Grid::plane(axis(257), axis(257));
        assert!(division(&plane, 4, true).repeated > 0.99 && division(&plane, 4, false).repeated < 0.1);
        let alone = division(&space, 1, true);
        assert_eq!((alone.rounds, alone.messages, alone.bytes, alone.memory), (0.0, 0.0, 0.0, 1 << 30));
    }
}
