//! Particles in tiles: the store of every solver with particles, on the processor.
//!
//! The cells of a domain are cut into tiles of a size of one's choice ([`Mosaic`]); the last ones of an axis are smaller where it
//! does not divide. A tile keeps its particles in rows ([`Row`]): buckets of one row of cells, or of several up to the whole
//! tile. A row has columns:
//!
//! | column | how many | for example |
//! |---|---|---|
//! | numbers `T` | up to `N`, as many as the [`Layout`] says | offsets in the cell, momentum, weight |
//! | bytes | `B` | species, quantum number |
//! | cell in the row | one byte | |
//! | tag | 64 bits, where the layout says so | identity of a tracked particle |
//!
//! Which row a particle lies in is exact after every step. Inside a row the order is free, or by cell after [`Row::sort`], which
//! keeps the order of those in one cell. What leaves a tile goes into its [`Outbox`], with the place where it belongs, however
//! far that is; [`deliver`] hands everything over when all tiles are done, at a cost proportional to the leavers. Rows grow when
//! they are full; nothing is ever dropped, and [`Moved`] counts both ends of the way.
//!
//! Nothing here depends on the number of threads: the order of particles is the same, to the slot.

mod band;
mod exchange;
mod mosaic;
mod row;
mod sort;
mod store;
#[cfg(test)]
mod tests;

pub use band::Band;
pub use exchange::{Moved, Outbox, deliver};
pub use mosaic::{Mosaic, Place};
pub use row::{Columns, Layout, Particle, Row};
pub use sort::Sorter;
pub use store::{Store, Tile};
