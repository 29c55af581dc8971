//! Particles in tiles: the store of every solver with particles, on the CPU.
//!
//! The cells of a domain are cut into tiles of a size of one's choice ([`Mosaic`]); the last ones of an axis are smaller where it
//! does not divide. A tile keeps its particles in rows ([`Row`]): buckets of one row of cells, or of several up to the whole
//! tile. A row has columns:
//!
//! | column | how many | for example |
//! |---|---|---|
//! | numbers `T` | up to `N`, as many as the [`Layout`] says | offsets in the cell, momentum, weight, internal energy |
//! | words `I` of 32 or 64 bits | up to `W`, those that the layout says | identity of a tracked particle, quantum numbers |
//! | key, one byte or two | 1 | cell in the row, times the kinds plus the kind where there are several, as of species |
//!
//! There are two ways to keep a store, and a solver takes the one that its step wants:
//!
//! - **In place.** Particles are changed where they lie; which row one lies in is exact after every step, inside a row the order is
//!   free. What changes row swaps with what comes the other way ([`Row::swap`], [`Row::fill`], [`Row::close`]), rows
//!   have no free slots, and what leaves a tile is handed over when all tiles are done ([`Post::deliver`]).
//! - **Through the order of keys.** A pass begins with what arrives ([`Post::take`]) and a stable counting sort into a thread's row
//!   ([`Row::sort_into`]), works there, and writes the columns back as they stand, with new keys; what leaves becomes a free slot
//!   ([`Key::HOLE`]) that the next sort leaves out. A particle is read and written once.
//!
//! What leaves a tile goes into its [`Outbox`], with its destination, however far that is; handing over costs in proportion to
//! the leavers. Rows grow when they are full; nothing is ever dropped, and [`Moved`] counts both ends of the way.
//!
//! Nothing here depends on the number of threads: the order of particles is the same, to the slot.

mod band;
mod column;
mod exchange;
mod mosaic;
mod row;
mod sort;
mod store;
#[cfg(test)]
mod tests;

pub use band::Band;
pub use column::{Key, Layout, Word};
pub use exchange::{Moved, Outbox, Post};
pub use mosaic::{Location, Mosaic};
pub use row::{Columns, Particle, Row};
pub use store::{Store, Tile};
