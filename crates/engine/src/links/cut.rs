//! Division of a lattice of tiles among parts, by recursive bisection.

use std::ops::Range;

/// A box of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First tile of each axis.
    pub lower: [usize; 3],
    /// One past the last tile of each axis.
    pub upper: [usize; 3],
}

impl Block {
    /// Tiles along an axis.
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.lower[axis]..self.upper[axis]
    }

    /// Number of tiles.
    pub fn len(&self) -> usize {
        (0..3).map(|axis| self.range(axis).len()).product()
    }

    /// Returns true if there are no tiles.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the tile lies in the box.
    pub fn contains(&self, tile: [usize; 3]) -> bool {
        (0..3).all(|axis| self.range(axis).contains(&tile[axis]))
    }
}

/// Boxes of tiles, one a part, which together are the whole lattice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    lattice: [usize; 3],
    blocks: Vec<Block>,
    /// Part of each tile, x running fastest.
    owners: Vec<u32>,
}

impl Cut {
    /// Cuts a lattice of tiles, x running fastest, into `parts` boxes of about the same weight. An axis that is not among `axes` is
    /// not cut; of the others the longest is, the last of those of equal length: its boxes lie in one piece in memory. Where there
    /// are more parts than tiles along these axes, the last parts own nothing.
    pub fn new(lattice: [usize; 3], axes: &[usize], parts: usize, weight: impl Fn(usize) -> f64) -> Self {
        let whole = Block { lower: [0; 3], upper: lattice };
        let most: usize = axes.iter().map(|axis| lattice[*axis]).product();
        let mut blocks = Vec::with_capacity(parts);
        bisect(lattice, whole, axes, parts.clamp(1, most.max(1)), &weight, &mut blocks);
        blocks.resize(parts.max(1), Block { lower: lattice, upper: lattice });
        let mut owners = vec![0; whole.len()];
        for (part, block) in blocks.iter().enumerate() {
            for z in block.range(2) {
                for y in block.range(1) {
                    let row = (z * lattice[1] + y) * lattice[0];
                    owners[row + block.lower[0]..row + block.upper[0]].fill(part as u32);
                }
            }
        }
        Self { lattice, blocks, owners }
    }

    /// A lattice that is not cut.
    pub fn whole(lattice: [usize; 3]) -> Self {
        let whole = Block { lower: [0; 3], upper: lattice };
        Self { lattice, blocks: vec![whole], owners: vec![0; whole.len()] }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.blocks.len()
    }

    /// Tiles per axis.
    pub fn lattice(&self) -> [usize; 3] {
        self.lattice
    }

    /// Box of a part.
    pub fn block(&self, part: usize) -> Block {
        self.blocks[part]
    }

    /// Number of parts that own tiles: the first ones.
    pub fn busy(&self) -> usize {
        self.blocks.iter().filter(|block| !block.is_empty()).count()
    }

    /// Part that owns a tile.
    pub fn owner(&self, tile: usize) -> usize {
        self.owners[tile] as usize
    }

    /// Distance of the boxes of two parts, across the sides too as if the lattice were periodic: that of their faces, squared, in
    /// tiles, then that of their middles.
    pub fn distance(&self, a: usize, b: usize) -> [usize; 2] {
        let (a, b) = (self.blocks[a], self.blocks[b]);
        let (mut faces, mut middles) = (0, 0);
        for axis in 0..3 {
            let (a, b, n) = (a.range(axis), b.range(axis), self.lattice[axis]);
            let apart = (a.start.max(b.start)).saturating_sub(a.end.min(b.end));
            let around = (n + a.start.min(b.start)).saturating_sub(a.end.max(b.end));
            let between = (a.start + a.end).abs_diff(b.start + b.end);
            faces += apart.min(around).pow(2);
            middles += between.min((2 * n).saturating_sub(between)).pow(2);
        }
        [faces, middles]
    }

    /// Tiles of a part, in the order of their numbers.
    pub fn tiles(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        let (block, lattice) = (self.blocks[part], self.lattice);
        let rows = block.range(2).flat_map(move |z| block.range(1).map(move |y| (z * lattice[1] + y) * lattice[0]));
        rows.flat_map(move |row| block.range(0).map(move |x| row + x))
    }
}

/// Cuts a box into `parts` boxes, which go behind those of `blocks`.
fn bisect(lattice: [usize; 3], block: Block, axes: &[usize], parts: usize, weight: &dyn Fn(usize) -> f64, blocks: &mut Vec<Block>) {
    if parts == 1 {
        blocks.push(block);
        return;
    }
    let split = |axis: usize, at: usize| {
        let (mut below, mut above) = (block, block);
        (below.upper[axis], above.lower[axis]) = (at, at);
        (below, above)
    };
    let room = |b: Block| axes.iter().map(|axis| b.range(*axis).len()).product::<usize>();
    let longest = axes.iter().copied().max_by_key(|axis| (block.range(*axis).len(), *axis));
    let axis = longest.expect("an axis is cut");
    let layer = |at: usize| {
        let (_, rest) = split(axis, at);
        let mut one = rest;
        one.upper[axis] = at + 1;
        let rows = one.range(2).flat_map(|z| one.range(1).map(move |y| (z * lattice[1] + y) * lattice[0]));
        rows.flat_map(|row| one.range(0).map(move |x| row + x)).map(weight).sum::<f64>()
    };
    let layers: Vec<f64> = block.range(axis).map(layer).collect();
    let total: f64 = layers.iter().sum();
    // Half of the parts below, or as many as leave each of them a tile.
    let divided = (block.lower[axis] + 1..block.upper[axis]).map(|at| {
        let (below, above) = split(axis, at);
        let first = (parts / 2).clamp(parts.saturating_sub(room(above)).max(1), room(below).min(parts - 1));
        let weight: f64 = layers[..at - block.lower[axis]].iter().sum();
        ((weight - total * first as f64 / parts as f64).abs(), first, below, above)
    });
    let best = divided.min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, first, below, above) = best.expect("there are two tiles along the longest axis");
    bisect(lattice, below, axes, first, weight, blocks);
    bisect(lattice, above, axes, parts - first, weight, blocks);
}
