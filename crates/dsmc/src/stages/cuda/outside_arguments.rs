//! The structs of the kernels that show particles to a caller and take velocities from one.

use zellige_device_macro::device;

/// Columns of the particles of a species, in their order; those of address 0 are not wanted.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside {
    /// Number of the first one of each tile.
    pub(super) firsts: *const u64,
    /// Positions, m.
    pub(super) position: [*mut f64; 2],
    /// Velocities, m/s.
    pub(super) velocity: [*mut f64; 3],
    pub(super) origin: [f64; 2],
    pub(super) h: [f64; 2],
    pub(super) species: u32,
}

/// Velocities to be set, each in one of two precisions; those of address 0 stay.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    /// Number of the first particle of each tile.
    pub(super) firsts: *const u64,
    pub(super) single: [*const f32; 3],
    pub(super) wide: [*const f64; 3],
    pub(super) species: u32,
}
