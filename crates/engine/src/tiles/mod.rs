//! Particles in tiles: the store of every solver with particles, on the CPU.
//!
//! The cells of a domain are cut into tiles of a size of one's choice ([`Tiling`]); the last ones of an axis are smaller where it
//! does not divide. A tile keeps its particles in rows ([`Row`]): buckets of one row of cells, or of several up to the whole
//! tile. A row has columns:
//!
//! | column | how many | for example |
//! |---|---|---|
//! | numbers `T` | up to `N`, as many as the [`Layout`] says | offsets in the cell, momentum, weight, internal energy |
//! | words `I` of 32 or 64 bits | up to `W`, those that the layout says | identity of a tracked particle, quantum numbers |
//! | key, one byte or two | 1 | cell in the row, times the kinds plus the kind where there are several, as of species |
//!
//! A store is used in one of two ways:
//!
//! - **In place.** Particles are changed where they lie; the row of a particle is exact after every step, the order inside a row is
//!   free. Particles that change row swap slots with those that come the other way ([`Row::swap`], [`Row::fill`], [`Row::close`]),
//!   rows have no free slots, and particles that leave a tile are delivered when all tiles are done ([`Deliveries::deliver`]).
//! - **Sorted by key.** A pass begins with the arrivals ([`Deliveries::take`]) and a stable counting sort into a thread's row
//!   ([`Row::sort_into`]), works there, and writes the columns back as they stand, with new keys; a particle that leaves becomes a
//!   free slot ([`Key::HOLE`]) that the next sort leaves out. A particle is read and written once.
//!
//! What leaves a tile goes into its [`Outbox`], with its destination, however far that is; handing over costs in proportion to
//! the leavers. Rows grow when they are full; nothing is ever dropped, and [`TransferCount`] counts both ends of the way.
//!
//! Nothing here depends on the number of threads: the order of particles is the same, to the slot.

mod band;
mod column;
mod exchange;
mod parcels;
mod row;
mod sort;
mod store;
#[cfg(test)]
mod tests;
mod tiling;

pub use band::Band;
pub use column::{Key, Layout, Word};
pub use exchange::{Deliveries, Outbox, TransferCount};
pub use parcels::{hand_over, take_over};
pub use row::{Columns, Particle, Row};
pub use store::{Store, Tile};
pub use tiling::{Location, Tiling};
