//! Division of a domain into tiles.

/// Division of a domain into tiles, and of tiles into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Cells of the domain per axis.
    pub cells: [usize; 2],
    /// Cells of a tile.
    pub tile: [usize; 2],
    /// Tiles per axis.
    pub tiles: [usize; 2],
    /// Rows of cells in one row of particles.
    pub depth: usize,
    /// Cells of the first column of tiles that the domain has moved past; see [`Tiling::moving`].
    pub behind: usize,
}

/// Location of a particle: tile, row in it, cell in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// Number of the tile, row by row of tiles.
    pub tile: u32,
    /// Row in the tile.
    pub row: u16,
    /// Cell in the row; its column in the tile where a row is one row of cells.
    pub cell: u8,
}

impl Tiling {
    /// Tiles of `tile` cells over `cells` cells, a row of particles for each row of cells. The last tiles of an axis are smaller
    /// where it does not divide. Tiles are at most 256 cells wide and 2^15 high: larger ones are cut to that.
    pub fn new(cells: [usize; 2], tile: [usize; 2]) -> Self {
        let tile = [tile[0].clamp(1, 256), tile[1].clamp(1, 1 << 15)];
        Self { cells, tile, tiles: [cells[0].div_ceil(tile[0]), cells[1].div_ceil(tile[1])], depth: 1, behind: 0 }
    }

    /// Sets `depth` rows of cells for each row of particles: at least one, at most a tile, and at most as many as have cells that a
    /// byte can tell apart.
    #[must_use]
    pub fn with_depth(self, depth: usize) -> Self {
        Self { depth: depth.clamp(1, (256 / self.tile[0]).min(self.tile[1])), ..self }
    }

    /// Gives the domain as many columns of tiles as it takes where it moves along x and they stand still: part of the first column
    /// is then behind it.
    #[must_use]
    pub fn moving(self) -> Self {
        Self { tiles: [(self.cells[0] + self.tile[0] - 1).div_ceil(self.tile[0]), self.tiles[1]], ..self }
    }

    /// The tiling after the domain has moved on by `cells` cells along x.
    #[must_use]
    pub fn moved(self, cells: usize) -> Self {
        Self { behind: (self.behind + cells) % self.tile[0], ..self }
    }

    /// Number of tiles.
    pub fn len(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Returns true if there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lowest cell of a tile, and its cells. A column of tiles that the domain has not reached has none.
    #[inline]
    pub fn bounds(&self, tile: usize) -> ([usize; 2], [usize; 2]) {
        let at = [tile % self.tiles[0], tile / self.tiles[0]];
        let behind = [self.behind, 0];
        let edge = |a: usize, n: usize| (n * self.tile[a]).saturating_sub(behind[a]).min(self.cells[a]);
        let corner = [0, 1].map(|a| edge(a, at[a]));
        (corner, [0, 1].map(|a| edge(a, at[a] + 1) - corner[a]))
    }

    /// Rows of particles in a tile.
    pub fn rows(&self, tile: usize) -> usize {
        self.bounds(tile).1[1].div_ceil(self.depth)
    }

    /// Location of cell `(i, j)` of the domain.
    #[inline]
    pub fn locate(&self, i: usize, j: usize) -> Location {
        let (x, y) = ((i + self.behind) / self.tile[0], j / self.tile[1]);
        let tile = (y * self.tiles[0] + x) as u32;
        let (column, row) = (i - (x * self.tile[0]).saturating_sub(self.behind), j - y * self.tile[1]);
        if self.depth == 1 {
            return Location { tile, row: row as u16, cell: column as u8 };
        }
        let deep = row / self.depth;
        Location { tile, row: deep as u16, cell: ((row - deep * self.depth) * self.tile[0] + column) as u8 }
    }

    /// The cell of the domain at a location.
    #[inline]
    pub fn cell(&self, location: Location) -> [usize; 2] {
        let (corner, _) = self.bounds(location.tile as usize);
        let cell = usize::from(location.cell);
        let (below, column) = if self.depth == 1 { (0, cell) } else { (cell / self.tile[0], cell % self.tile[0]) };
        [corner[0] + column, corner[1] + usize::from(location.row) * self.depth + below]
    }

    /// Numbers that cells of a row may have: 0 to this, less one. Not all of them are cells of the domain in tiles that were cut.
    pub fn cells_of_row(&self) -> usize {
        self.tile[0] * self.depth
    }

    /// The tiles around a tile, across the sides of the domain too as if it were periodic, each once, in a fixed order: row by row
    /// from the one below. The tile itself is one of them, since a particle may go round and arrive where it was.
    pub fn near(&self, tile: usize) -> Vec<u32> {
        let at = [tile % self.tiles[0], tile / self.tiles[0]];
        let mut all = Vec::with_capacity(9);
        for dy in [self.tiles[1] - 1, 0, 1] {
            for dx in [self.tiles[0] - 1, 0, 1] {
                let t = ((at[1] + dy) % self.tiles[1]) * self.tiles[0] + (at[0] + dx) % self.tiles[0];
                if !all.contains(&(t as u32)) {
                    all.push(t as u32);
                }
            }
        }
        all
    }
}
