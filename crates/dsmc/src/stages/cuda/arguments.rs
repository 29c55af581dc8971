//! The structs that kernels take, and those of tables.

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::device;

use crate::gas::vibration::MODES;

/// Columns of a set.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable)]
pub(super) struct Columns {
    pub(super) x: *mut f32,
    pub(super) y: *mut f32,
    pub(super) vx: *mut f32,
    pub(super) vy: *mut f32,
    pub(super) vz: *mut f32,
    pub(super) rotation: *mut f32,
    pub(super) level: *mut Level,
    pub(super) key: *mut u16,
    /// Number that a particle shares with its last partner.
    pub(super) tag: *mut u32,
}

/// Particles, and those that change tiles.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Zeroable)]
pub(super) struct Store {
    pub(super) now: Columns,
    pub(super) next: Columns,
    /// Begin of each region; one more than tiles.
    pub(super) first: *mut u32,
    pub(super) next_first: *mut u32,
    /// Leavers of each list by region: way << 28 | slot in the region.
    pub(super) list: *mut u32,
    /// Leavers by tile and list.
    pub(super) left: *mut u32,
    /// Those of them that are FAR or PENDING.
    pub(super) special: *mut u32,
    /// Particles that stay, by tile.
    pub(super) stay: *mut u32,
    /// Leavers by tile and way.
    pub(super) near: *mut u32,
    /// `list`, `left`, `near` of the step before; the same addresses but of small gases.
    pub(super) old_list: *const u32,
    pub(super) old_left: *const u32,
    pub(super) old_near: *const u32,
    /// Particles that will come from neighbours and from afar, by tile.
    pub(super) near_in: *mut u32,
    pub(super) far_in: *mut u32,
    /// Particles that come now, by tile.
    pub(super) near_n: *mut u32,
    pub(super) far_n: *mut u32,
    /// Number of those from afar that are in `arrivals`, by tile.
    pub(super) filled: *mut u32,
    /// Of small gases, in place of `goals`: those from afar by tile (arrive.cu).
    pub(super) chains: *mut u32,
    pub(super) link: *mut u32,
    /// Of small gases: particles that are FAR or PENDING.
    pub(super) wanderers: *mut uint2,
    /// Tiles that are begun first, class by class, and how many of each there are (turns.cu): those of more particles than
    /// `full`.
    pub(super) turns: *mut u32,
    pub(super) full: u32,
    pub(super) counters: *mut Counters,
    pub(super) cells: [i32; 2],
    pub(super) tiles: [i32; 2],
    /// Tiles.
    pub(super) count: u32,
    /// Slots of a column.
    pub(super) capacity: u32,
    /// Of a run in parts: the first tile of the store along each axis, `[x, y]` of the first tile of this part and of one past the
    /// last, and tiles of the domain along x.
    pub(super) lower: [i32; 2],
    pub(super) own: [i32; 4],
    pub(super) all: i32,
    /// Number of parts.
    pub(super) parts: u32,
    /// Part of each tile of the domain, layers of a cell being one.
    pub(super) owner: *const u16,
    /// By part, and the half of them in use.
    pub(super) slabs: *const Slab,
    pub(super) half: u32,
    /// First slot of what has come from a tile of the ring, by tile and way.
    pub(super) link_first: *mut u32,
}

/// Exchange with another part: send.cu. This part's own is null.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slab {
    /// Two halves each, used in turn.
    pub(super) outgoing: *mut u32,
    pub(super) incoming: *const u32,
    /// Room for leavers to tiles beside, and for those that go far.
    pub(super) near: u32,
    pub(super) far: u32,
    /// Links in common, each way, and number of the first among those of all parts.
    pub(super) links: u32,
    pub(super) first_link: u32,
}

/// Counts of a store, kept on the device.
#[device]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Counters {
    pub(super) injected: u64,
    pub(super) removed: u64,
    pub(super) collisions: u64,
    pub(super) attempts: u64,
    pub(super) exceeded: u64,
    pub(super) stuck: u64,
    pub(super) copied: u64,
    pub(super) dropped: u64,
    /// Particles behind the regions, injected during the last step.
    pub(super) fresh: u32,
    /// Particles that found no room.
    pub(super) refused: u32,
    /// Most particles that a tile with more than INDEX had.
    pub(super) fullest: u32,
    /// Entries of `wanderers`.
    pub(super) special: u32,
    /// Particles behind the injected ones, which came from other parts during the last step: from afar, and from tiles beside.
    pub(super) far: u32,
    pub(super) near: u32,
    /// Leavers that found no room in a slab.
    pub(super) unsent: u32,
    pub(super) unused: u32,
    /// All that ever came from other parts.
    pub(super) received: u64,
}

/// Collisions of a pair of species: `Kinetics` of collide.rs.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinetics {
    pub(super) rate: f32,
    pub(super) power: f32,
    pub(super) soft: f32,
    pub(super) share: [f32; 2],
    pub(super) thermal: f32,
    pub(super) pool: f32,
    pub(super) inelastic: u32,
    pub(super) species: [u32; 2],
    /// Index of each one's table of chances of vibration by Millikan and White, or -1.
    pub(super) chances: [[i32; MODES]; 2],
}

/// Internal modes of a species.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct Modes {
    pub(super) rotation: u32,
    /// Modes of vibration.
    pub(super) count: u32,
    pub(super) z_rotation: f32,
    /// Parker's, 0 where z is constant.
    pub(super) t_star: f32,
    pub(super) theta: [f32; MODES],
    pub(super) degeneracy: [f32; MODES],
    pub(super) z: [f32; MODES],
}

/// Part of a divided cell.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) fraction: f32,
    /// Outline.
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Collisions.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gas {
    pub(super) pairs: *const Kinetics,
    pub(super) modes: *const Modes,
    /// `[a * SPECIES + b]`.
    pub(super) lookup: *const u32,
    /// By tile and cell.
    pub(super) rate: *const f32,
    /// By pair, tile and cell.
    pub(super) sigma_g_max: *mut f32,
    pub(super) seen: *mut f32,
    pub(super) attempts: *mut f32,
    /// First part by tile and cell, with their number in the upper 8 bits; 0 where it is whole.
    pub(super) divided: *const u32,
    /// The first stands for none.
    pub(super) parts: *const Part,
    pub(super) outline: *const int2,
    pub(super) seed: u64,
    pub(super) step: u64,
    /// `tiles * CELLS`.
    pub(super) stride: u64,
    /// `[table][point]`.
    pub(super) chances: *const f32,
    /// Squared lengths of a cell's edges over that of the first.
    pub(super) across: [f32; 2],
    pub(super) jeans: u32,
}

/// Pass over all tiles.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pass {
    /// Cells per velocity along each axis: `dt / h`, 0 where there is no axis.
    pub(super) step: [f32; 2],
    /// `tiles * KEYS`.
    pub(super) stride: u32,
    /// By tile and cell; geometry/mod.rs.
    pub(super) reach: *const u8,
    /// `[KEPT][tile][key]`.
    pub(super) sums: *mut Average,
    /// `2 k/m` by species, then `2 k theta/m` of each mode by species.
    pub(super) factor: *const f64,
    /// Faces of sides that follow the gas within, by tile; one more than tiles.
    pub(super) follow_first: *const u32,
    /// Cell in the tile, number of the face.
    pub(super) follow: *const uint2,
    /// By face.
    pub(super) memory: *const f64,
    /// MOVING numbers a face.
    pub(super) moving: *mut f64,
    /// By species.
    pub(super) mass: *const f64,
    /// Molecules of a particle by tile and cell, where they differ.
    pub(super) weights: *const f32,
    /// `dt`, `per_metre`, `surfaces` and `momentum` of `Domain`, for flights against mirrors in the pass.
    pub(super) dt: f64,
    pub(super) per_metre: [f64; 2],
    pub(super) surfaces: *mut u64,
    pub(super) momentum: f64,
    /// A bit for each side that is a mirror.
    pub(super) mirrors: u32,
}

/// Wall.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Wall {
    /// 0 specular, 1 diffuse, 2 Cercignani-Lampis-Lord.
    pub(super) model: i32,
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
    /// Part that a diffuse wall accommodates.
    pub(super) normal: f64,
    pub(super) tangential: f64,
}

/// Species as walls see it.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct Molecule {
    pub(super) mass: f64,
    /// `2 k / m`.
    pub(super) thermal: f64,
    pub(super) theta: [f64; MODES],
    pub(super) degeneracy: [u32; MODES],
    pub(super) rotation: u32,
    /// Modes of vibration.
    pub(super) count: u32,
}

/// Sides and walls.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Domain {
    /// -1 periodic, -2 open, else the number of the wall.
    pub(super) edge: [i32; 4],
    /// 1 where each cell along a side has a wall of its own, the first at `edge`.
    pub(super) along: [u32; 4],
    /// `step` of `Pass`.
    pub(super) path: [f32; 2],
    pub(super) dt: f64,
    /// Cells per metre, 0 where there is no axis.
    pub(super) per_metre: [f64; 2],
    pub(super) seed: u64,
    pub(super) step: u64,
    pub(super) walls: *const Wall,
    pub(super) species: *const Molecule,
    /// SURFACE_SUMS of stages/mod.rs, in whole numbers; sides first.
    pub(super) surfaces: *mut u64,
    /// Whole numbers per molecule, per kg m/s and per J.
    pub(super) hits: f64,
    pub(super) momentum: f64,
    pub(super) energy: f64,
    /// `weights` of `Pass`.
    pub(super) weights: *const f32,
    pub(super) sample: u32,
    pub(super) capacity: u32,
}

/// Segment of a body.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) normal: [f64; 2],
    /// In cells.
    pub(super) middle: [f64; 2],
    /// Change of the position along it, -1 to 1, for a cell along each axis.
    pub(super) per_cell: [f64; 2],
    pub(super) wall: u32,
}

/// Bodies.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Geometry {
    /// By cell: one more than its index in `first`, 0 without pieces.
    pub(super) slots: *const u32,
    pub(super) first: *const u32,
    pub(super) pieces: *const Piece,
    pub(super) references: *const Reference,
    pub(super) segments: *const Segment,
    /// Set in a body, by cell without pieces.
    pub(super) inside: *const u8,
    pub(super) cells: [i32; 2],
    pub(super) h: [f64; 2],
}

/// Face of an open side.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    pub(super) cell: [i32; 2],
    pub(super) side: u32,
    /// Number of its averages, 0xffffffff where the gas beyond is given.
    pub(super) follow: u32,
}

/// Species beyond a side.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Beam {
    pub(super) density: f64,
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
    pub(super) mass: f64,
    /// Particles through a face and step.
    pub(super) mean: f64,
}

/// Quantities given at a side that follows the gas within.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct SubsonicBoundary {
    /// 0 outlet of a pressure, 1 inlet of a pressure, 2 inlet of a flux.
    pub(super) what: u32,
    pub(super) value: f64,
    pub(super) temperature: f64,
}

/// Line source.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// In cells, from the corner of the domain.
    pub(super) ends: [f64; 4],
    pub(super) normal: [f64; 2],
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
}

/// Injection.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inflow {
    pub(super) faces: *const Face,
    /// `[side][species]`.
    pub(super) beams: *const Beam,
    /// By side.
    pub(super) given: *const SubsonicBoundary,
    pub(super) moving: *const f64,
    /// Molecules a particle over the free volume of the cell, by number of the averages.
    pub(super) volume: *const f64,
    /// Particles before it, by face and species.
    pub(super) offsets: *mut u32,
    pub(super) lines: *const Line,
    /// By line: particles before its schedule, before each species; at the end all.
    pub(super) groups: *const u32,
    pub(super) fractions: *const f64,
    /// By axis, face area times dt over the weight.
    pub(super) per_flux: [f64; 2],
    pub(super) face_count: u32,
    pub(super) line_count: u32,
}
