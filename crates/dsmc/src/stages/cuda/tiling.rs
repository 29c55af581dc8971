//! Layout of the grid in tiles on a GPU, and the number of particles that a block has room for.

use zellige_engine::cuda::Properties;
use zellige_engine::links::Block;

use super::program::KernelConfig;
use crate::grid::Grid;
use crate::model::{Edge, Model, Partner};
use crate::sampling;
use crate::stages::samples_at_a_time;

/// Particles of a tile where there are enough of them for all multiprocessors, and blocks that one is to hold: where they stay
/// evenly spread, and where shared memory has room for twice as many (`docs/performance/dsmc.md` has what was tried).
const EVEN: (f64, u32) = (2560.0, 3);
const UNEVEN: (f64, u32) = (1280.0, 4);
/// The fewest particles of a tile.
const FEWEST: f64 = 128.0;
/// Threads of a block.
const THREADS: u32 = 256;
/// Most cells of a tile, and most keys: counts of keys lie in shared memory once for each warp.
const MOST_CELLS: usize = 256;
const MOST_KEYS: usize = 512;
/// Blocks that a multiprocessor should have to work on in each step.
const BLOCKS: f64 = 4.0;
/// Particles expected in a cell from which on a cell of 65 536 is not far: there one word of 32 bits has fewer values than there
/// are pairs.
const CROWDED: f64 = 512.0;
/// Particles of one of several tiles that share crowded cells, and the most cells that they share. So many particles that what a
/// finite number of them in a cell makes, about 1/N, is below what is tested; so many cells that few particles leave a tile in a
/// step, each of which costs several times what one costs that stays.
const CROWD: f64 = 2048.0;
const CROWD_CELLS: usize = 4;
/// Particles below which launches take longer than what they do.
const RECORDED: f64 = 1e6;
/// Particles for each thread that a small gas's tile has room for at most: their keys stay in registers.
const FOR_A_THREAD: usize = 10;

/// Shared memory of a block besides what it asks for, about: without the marks of teams, for which tiles are not made smaller.
const OWN: u32 = 2048;

/// Tiles of `1 << shift[0]` by `1 << shift[1]` cells; the last ones of an axis are smaller. Where cells are very full, several
/// tiles share the same ones, layer by layer, and stand one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    pub(super) cells: [usize; 2],
    pub(super) shift: [u32; 2],
    pub(super) tiles: [usize; 2],
    pub(super) layers: usize,
    /// Of a run in parts: tiles of the domain along each axis, the first one here, and the box of this part in the domain. Around
    /// the box stands a ring of tiles of others, which stay empty.
    pub(super) all: [usize; 2],
    pub(super) lower: [usize; 2],
    pub(super) own: [[usize; 2]; 2],
}

impl Tiling {
    pub(super) fn new(grid: &Grid, shift: [u32; 2], layers: u32) -> Self {
        let tiles = [0, 1].map(|d| grid.cells[d].div_ceil(1 << shift[d]));
        Self { cells: grid.cells, shift, tiles, layers: layers as usize, all: tiles, lower: [0; 2], own: [[0; 2], tiles] }
    }

    /// That of a part that owns a box of its tiles.
    pub(super) fn of_part(self, block: Block) -> Self {
        let own = [block.lower, block.upper].map(|[x, y, _]| [x, y]);
        if block.is_empty() {
            return Self { tiles: [0; 2], lower: [0; 2], own: [[0; 2]; 2], ..self };
        }
        let lower = own[0].map(|at| at.saturating_sub(1));
        let tiles = [0, 1].map(|d| (own[1][d] + 1).min(self.all[d]) - lower[d]);
        Self { tiles, lower, own, ..self }
    }

    /// Cells of a tile along each axis.
    pub(super) fn tile(&self) -> [usize; 2] {
        self.shift.map(|shift| 1 << shift)
    }

    /// Number of tiles of this part.
    pub(super) fn own_len(&self) -> usize {
        let [lower, upper] = self.own;
        (upper[0] - lower[0]) * (upper[1] - lower[1]) * self.layers
    }

    /// Number here of the first of the tiles that share a place among those of the domain.
    pub(super) fn at(&self, place: usize) -> usize {
        let at = [place % self.all[0], place / self.all[0]];
        ((at[1] - self.lower[1]) * self.tiles[0] + at[0] - self.lower[0]) * self.layers
    }

    /// Number of the place of a cell's tiles among those of the domain.
    pub(super) fn place_of(&self, cell: [usize; 2]) -> usize {
        (cell[1] >> self.shift[1]) * self.all[0] + (cell[0] >> self.shift[0])
    }

    /// True if a cell is one of this part.
    pub(super) fn owns(&self, cell: [usize; 2]) -> bool {
        (0..2).all(|d| (self.own[0][d]..self.own[1][d]).contains(&(cell[d] >> self.shift[d])))
    }

    /// Number of tiles.
    pub(super) fn len(&self) -> usize {
        self.tiles[0] * self.tiles[1] * self.layers
    }

    /// Tile of a cell of this part or of the ring around it, the first where several share it, and the cell's number in it.
    pub(super) fn tile_and_slot(&self, cell: [usize; 2]) -> (usize, usize) {
        let tile = self.at(self.place_of(cell));
        let local = [0, 1].map(|d| cell[d] & ((1 << self.shift[d]) - 1));
        (tile, local[1] << self.shift[0] | local[0])
    }

    /// The cell of a number in a tile, if it is in the domain.
    pub(super) fn cell(&self, tile: usize, slot: usize) -> Option<[usize; 2]> {
        let tile = tile / self.layers;
        let at = [tile % self.tiles[0] + self.lower[0], tile / self.tiles[0] + self.lower[1]];
        let local = [slot & ((1 << self.shift[0]) - 1), slot >> self.shift[0]];
        let cell = [0, 1].map(|d| (at[d] << self.shift[d]) + local[d]);
        (cell[0] < self.cells[0] && cell[1] < self.cells[1]).then_some(cell)
    }

    /// Length of a list with a number for each cell, tile by tile, those included that fill the last tiles.
    pub(super) fn padded_cells(&self) -> usize {
        (self.tiles[0] * self.tiles[1]) << (self.shift[0] + self.shift[1])
    }

    /// Index of a cell in such a list.
    pub(super) fn padded_index(&self, cell: [usize; 2]) -> usize {
        let (tile, slot) = self.tile_and_slot(cell);
        ((tile / self.layers) << (self.shift[0] + self.shift[1])) + slot
    }

    /// Cell of an index, if it is in the domain.
    pub(super) fn padded_cell(&self, index: usize) -> Option<[usize; 2]> {
        let bits = self.shift[0] + self.shift[1];
        self.cell((index >> bits) * self.layers, index & ((1 << bits) - 1))
    }
}

/// True if particles stay as evenly spread as they begin: none are injected and nothing is in the way.
fn even(model: &Model) -> bool {
    model.edges.iter().all(|e| *e != Edge::Open) && model.geometry.is_empty() && model.sources.is_empty()
}

/// True if launches take longer than what they do: of such a gas steps are recorded, and tiles look for their arrivals themselves.
pub(super) fn is_small(model: &Model) -> bool {
    model.expected < RECORDED
}

/// Kernel configuration of a run in so many parts: tiles are those of one part; steps, which wait for others, are not recorded.
pub(super) fn kernel_config_of(model: &Model, properties: &Properties, parts: usize) -> KernelConfig {
    let config = kernel_config(model, properties);
    if parts == 1 { config } else { KernelConfig { parts: true, recorded: false, ..config } }
}

/// Kernel configuration of a run in one part.
pub(super) fn kernel_config(model: &Model, properties: &Properties) -> KernelConfig {
    // A small gas has small tiles, and room for as many blocks as an uneven one: 64 registers a thread, which not every compiler keeps to
    // by itself.
    if even(model) && !is_small(model) {
        let config = kernel_config_with(model, properties, EVEN);
        // Of particles with internal modes, or on a GPU with less shared memory, fewer blocks would fit.
        if EVEN.1 * (config.shared() + OWN) <= properties.shared_per_multiprocessor {
            return config;
        }
    }
    kernel_config_with(model, properties, UNEVEN)
}

/// Kernel configuration for a number of particles in a tile and of blocks on a multiprocessor.
fn kernel_config_with(model: &Model, properties: &Properties, (best, resident): (f64, u32)) -> KernelConfig {
    let species = model.species.len();
    let best = (model.expected / (BLOCKS * f64::from(properties.multiprocessors))).clamp(FEWEST, best);
    let most = MOST_CELLS.min(MOST_KEYS / species).max(1);
    let mut shift = [0_u32; 2];
    loop {
        // Squares leave least to the neighbours.
        let along_x = shift[0] <= shift[1] && (1 << shift[0]) < model.grid.cells[0] || (1 << shift[1]) >= model.grid.cells[1];
        let axis = usize::from(!along_x);
        let cells = 2_usize << (shift[0] + shift[1]);
        if cells > most || cells as f64 * model.per_cell > best || (1 << shift[axis]) >= model.grid.cells[axis] {
            break;
        }
        shift[axis] += 1;
    }
    let mut layers = 1;
    if shift == [0; 2] && is_crowded(model) {
        shift = shift_of_crowd(model.grid.cells, most.min(CROWD_CELLS));
        layers = (f64::from(1 << (shift[0] + shift[1])) * model.per_cell / CROWD) as u32;
    }
    let cells = 1_usize << (shift[0] + shift[1]);
    let geometry = &model.geometry;
    let mut config = KernelConfig {
        components: model.components,
        species,
        shift,
        layers,
        capacity: 0,
        threads: THREADS,
        resident,
        lanes: (THREADS / cells as u32).clamp(1, 32),
        rotates: model.collisions.rotation,
        modes: model.collisions.modes,
        scheme: model.collisions.scheme,
        tagged: model.collisions.partner.tagged(),
        nearest: model.collisions.partner == Partner::NearestNeighbour,
        bodies: [!geometry.is_empty(), geometry.divided().next().is_some()],
        weighted: model.weighted(),
        follows: model.given.iter().any(Option::is_some),
        along_z: model.collisions.along_z,
        brief: samples_at_a_time(model.per_cell) > 1,
        crowded: model.per_cell > CROWDED,
        recorded: is_small(model),
        mirrors: layers > 1 && mirrors(model) != 0,
        parts: false,
        values: [sampling::first_mode(model), sampling::first_with_z(model)],
    };
    // Six deviations of Poisson's law above the mean; where a flow piles up, twice as many.
    let mean = cells as f64 * model.per_cell / f64::from(config.layers);
    let most = mean + 6.0 * mean.sqrt();
    let [least, whole] = [1.0, if even(model) { 1.0 } else { 2.0 }].map(|times| 32 * ((most * times + 32.0) / 32.0).ceil() as usize);
    config.capacity = 2048;
    let twice = config.shared();
    config.capacity = 1024;
    let each = (twice - config.shared()) / 1024;
    let none = config.shared() - 1024 * each + config.declared();
    let room = |shared: u32| (shared.saturating_sub(none) / each / 32 * 32) as usize;
    let fits = room(properties.shared_per_block);
    // But not so many that blocks become fewer: those hide each other's waits, and the few tiles that are fuller are sorted in device memory.
    let enough = (1..=resident).rev().map(|blocks| room(properties.shared_per_multiprocessor / blocks)).find(|room| *room >= least);
    config.capacity = whole.min(fits).min(enough.unwrap_or(fits)).max(32);
    if config.recorded && !even(model) {
        // Flows may pile up: all that the tiles leave to each other, when all are worked on at once.
        let tiles = Tiling::new(&model.grid, shift, config.layers).len() as u32;
        let blocks = tiles.div_ceil(properties.multiprocessors.max(1)).clamp(1, resident);
        let more = room(properties.shared_per_multiprocessor / blocks);
        config.capacity = config.capacity.max(more.min(fits).min(FOR_A_THREAD * THREADS as usize));
    }
    config
}

/// True if cells are so full that several tiles share them. Not where neighbours of a cell, positions in it or single tiles count:
/// nearest-neighbour partners and the last ones, parts of cells, weights, sides that follow the gas.
fn is_crowded(model: &Model) -> bool {
    let plain =
        model.geometry.is_empty() && !model.weighted() && model.given.iter().all(Option::is_none) && !model.collisions.partner.tagged();
    plain && model.per_cell >= 2.0 * CROWD
}

/// A bit for each side that is a mirror everywhere.
pub(super) fn mirrors(model: &Model) -> u32 {
    let is_mirror = |edge: &Edge| matches!(edge, Edge::Wall(wall) if model.walls[*wall as usize].is_mirror());
    model.edges.iter().enumerate().map(|(side, edge)| u32::from(is_mirror(edge)) << side).sum()
}

/// Logarithms of the cells of a tile that is shared, along each axis: squares where the grid has them.
fn shift_of_crowd(grid: [usize; 2], most: usize) -> [u32; 2] {
    let mut shift = [0_u32; 2];
    while 2 << (shift[0] + shift[1]) <= most {
        let axes = [0, 1].into_iter().filter(|d: &usize| 2 << shift[*d] <= grid[*d]);
        let Some(axis) = axes.min_by_key(|d| shift[*d]) else { break };
        shift[axis] += 1;
    }
    shift
}

#[cfg(test)]
mod tests {
    use zellige_engine::links::Cut;

    use super::*;

    #[test]
    fn every_cell_has_one_slot() {
        for (cells, shift, layers) in
            [([100, 70], [4, 3], 1), ([1, 1], [0, 0], 1), ([300, 1], [7, 0], 1), ([7, 500], [3, 5], 1), ([5, 3], [0, 0], 4)]
        {
            let grid = Grid { cells, h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
            let tiling = Tiling::new(&grid, shift, layers);
            let mut found = 0;
            for tile in 0..tiling.len() {
                for slot in 0..1 << (shift[0] + shift[1]) {
                    if let Some(cell) = tiling.cell(tile, slot) {
                        assert_eq!(tiling.tile_and_slot(cell), (tile - tile % layers as usize, slot));
                        found += 1;
                    }
                }
            }
            assert_eq!(found, grid.len() * layers as usize, "{tiling:?}");
        }
    }

    /// Each cell is one of one part, which has a tile and a slot for it and for those in the ring around it.
    #[test]
    fn parts_have_the_cells_of_their_boxes() {
        let grid = Grid { cells: [50, 21], h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
        for (shift, layers, parts) in [([2, 1], 1, 3), ([0, 0], 2, 4), ([3, 3], 1, 8)] {
            let whole = Tiling::new(&grid, shift, layers);
            let cut = Cut::new([whole.all[0], whole.all[1], 1], &[0, 1], parts, |_| 1.0);
            let mut owned = 0;
            for part in 0..parts {
                let tiling = whole.of_part(cut.block(part));
                assert_eq!(tiling.own_len(), cut.tiles(part).count() * layers as usize);
                for cell in (0..grid.len()).map(|c| grid.cell(c)).filter(|cell| tiling.owns(*cell)) {
                    let (tile, slot) = tiling.tile_and_slot(cell);
                    assert!(tile < tiling.len() && tiling.cell(tile, slot) == Some(cell) && cut.owner(tiling.place_of(cell)) == part);
                    owned += 1;
                }
            }
            assert_eq!(owned, grid.len());
        }
    }

    /// Cells of so many particles share tiles by four, or as many as there are.
    #[test]
    fn crowded_cells_share_tiles() {
        let gpu = Properties::usual("sm_90").unwrap();
        let mut config = crate::bench::config("dsmc/dense-cells").unwrap();
        for (cells, per_cell, shift, layers) in [
            ([8, 8], 1e5, [1, 1], 195),
            ([5, 3], 5000.0, [1, 1], 9),
            ([300, 1], 1e4, [2, 0], 19),
            ([1, 7], 1e4, [0, 2], 19),
            ([1, 1], 1e6, [0, 0], 488),
            ([8, 8], 4000.0, [0, 0], 1),
        ] {
            (config.grid.cells, config.particles_per_cell) = (cells.to_vec(), Some(per_cell));
            config.grid.size = cells.map(|n| 1e-5 * n as f64).to_vec();
            let kernels = kernel_config(&Model::new(&config, std::path::Path::new(""), 1).unwrap(), &gpu);
            assert_eq!((kernels.shift, kernels.layers, kernels.mirrors), (shift, layers, layers > 1), "{cells:?}");
            assert!(layers == 1 || (2304..3000).contains(&kernels.capacity), "{cells:?}: {}", kernels.capacity);
        }
    }

    /// Every cell has an index of its own, from which it comes back; all others are none's.
    #[test]
    fn padded_lists_hold_every_cell_once() {
        for (cells, shift, layers) in [([7, 5], [2, 1], 1), ([9, 1], [3, 0], 1), ([3, 6], [0, 0], 3), ([4, 11], [1, 2], 2)] {
            let grid = Grid { cells, h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
            let tiling = Tiling::new(&grid, shift, layers);
            let mut found = vec![None; tiling.padded_cells()];
            for cell in (0..cells[0] * cells[1]).map(|c| [c % cells[0], c / cells[0]]) {
                assert_eq!(found[tiling.padded_index(cell)].replace(cell), None, "{tiling:?}");
            }
            let back: Vec<_> = (0..found.len()).map(|index| tiling.padded_cell(index)).collect();
            assert_eq!(back, found, "{tiling:?}");
        }
    }
}
