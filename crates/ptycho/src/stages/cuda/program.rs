//! The kernels' sources and how they are compiled: a program for each shape of frames and number of modes.

use std::fmt;

use zellige_engine::cuda::{Properties, Recipe};

use crate::model::{Model, Transfer};
use crate::stages::Noise;

/// Threads of a block that sums, and rows of a tile: 256 and 4 were the fastest of nine choices on an H200.
pub(super) const TEAM: u32 = 256;
pub(super) const TILE_ROWS: usize = 4;
/// Columns of a tile: the lanes of a warp.
pub(super) const TILE_COLUMNS: usize = 32;
/// Blocks of it that a multiprocessor is to hold: with several modes, fewer with more registers for what is under way each (four
/// modes of 256 x 256: 566 us for 691).
pub(super) fn crowd(exits: usize) -> u32 {
    if exits > 1 { 2 } else { 4 }
}

/// Floats of a warp's part of the exchange.
const PART: u32 = 1056;

/// How frames go through the Fourier constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In pieces around cuFFT.
    Plain,
    /// In registers.
    Fused {
        /// Logarithm of the blocks of a cluster that share a frame.
        cluster: u32,
        /// The next wave is copied to shared memory meanwhile.
        fetch: bool,
    },
}

/// What programs are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Rows and columns of a frame.
    pub frame: [usize; 2],
    /// Modes of probe and object.
    pub modes: [usize; 2],
    /// Whether there are several probes.
    pub several: bool,
    /// Whether the detector is in the near field.
    pub near: bool,
    /// How.
    pub way: Way,
}

impl Kind {
    /// The kind for a model on a device.
    pub fn of(model: &Model, device: &Properties) -> Self {
        let kind = Self {
            frame: model.frame,
            modes: model.modes,
            several: model.probes > 1,
            near: model.transfer != Transfer::Far,
            way: Way::Plain,
        };
        let hopper = device.capability.0 >= 9;
        let fits = |kind: &Self| kind.shared() <= device.shared_per_block && device.capability.0 >= 8;
        let [rows, columns] = model.frame.map(|n| if n.is_power_of_two() { n.ilog2() } else { 0 });
        if !(5..=9).contains(&columns) || rows + columns < 10 || rows + columns > 17 {
            return kind;
        }
        // Eight blocks of 256 threads, two a multiprocessor, for 256 x 256: one frame's barriers are waited for while another computes.
        let cluster = if rows + columns == 16 { 3 } else { (rows + columns).saturating_sub(14) };
        if cluster > 0 && !hopper {
            return kind;
        }
        let fetch = hopper && cluster == 0 && kind.exits() == 1;
        let fused = [fetch, false].map(|fetch| Self { way: Way::Fused { cluster, fetch }, ..kind });
        fused.into_iter().find(fits).unwrap_or(kind)
    }

    /// Modes of an exit wave.
    pub fn exits(&self) -> usize {
        self.modes[0] * self.modes[1]
    }

    /// Logarithms: columns, rows, blocks, warps of a block, rows in a thread's registers.
    fn bits(&self) -> [u32; 5] {
        let [rows, columns] = self.frame.map(usize::ilog2);
        let cluster = self.cluster();
        let register_rows = 10 - columns;
        [columns, rows, cluster, rows - register_rows - cluster, register_rows]
    }

    /// Logarithm of the blocks that share a frame.
    pub(super) fn cluster(&self) -> u32 {
        match self.way {
            Way::Plain => 0,
            Way::Fused { cluster, .. } => cluster,
        }
    }

    /// Threads of a block that has a frame, or its part of one.
    pub(super) fn threads(&self) -> u32 {
        32 << self.bits()[3]
    }

    /// Whether the last exchange has room of its own: `WIDE` of dft.cu.
    fn wide(&self) -> bool {
        self.cluster() > 0 && self.exits() == 1
    }

    /// `DESK` of seat.cu.
    fn desk(&self) -> u32 {
        let [_, _, cluster, warps, rows] = self.bits();
        let (blocks, warps) = (1 << cluster, 1 << warps);
        warps * PART * 4 + ((warps << rows) + warps) * 8 + warps * 8 + blocks * 8 + warps * blocks * 4 + 8
    }

    /// Bytes of shared memory of a block of `project`.
    pub(super) fn shared(&self) -> u32 {
        let Way::Fused { fetch, .. } = self.way else { return 0 };
        let big = if fetch || self.wide() || self.exits() > 1 { 32 * self.threads() * 8 } else { 0 };
        big + self.desk()
    }

    /// And of `gradient` and `line`.
    pub(super) fn likelihood_shared(&self) -> u32 {
        32 * self.threads() * 8 + self.desk()
    }

    /// And of `sequence`.
    pub(super) fn sequence_shared(&self) -> u32 {
        (1 + u32::from(self.wide() && !self.narrow())) * 32 * self.threads() * 8 + self.desk()
    }

    /// Whether probe and a wide exchange do not fit into shared memory together.
    fn narrow(&self) -> bool {
        2 * 32 * self.threads() * 8 + self.desk() > 220 << 10
    }

    /// The same without a wave that is fetched ahead.
    pub(super) fn unfetched(self) -> Self {
        match self.way {
            Way::Plain => self,
            Way::Fused { cluster, .. } => Self { way: Way::Fused { cluster, fetch: false }, ..self },
        }
    }

    /// The kind that goes from view to view where no waves are kept: a frame at a time is spread over as many multiprocessors as it can be,
    /// 64 threads each; measured on an H200 with 128 x 128 pixels: 31 us a frame on one, 24 on 2, 21 on 4, 18 on 8.
    pub(super) fn spread_out(self, device: &Properties) -> Self {
        let Way::Fused { cluster, .. } = self.way else { return self };
        if device.capability.0 < 9 {
            return Self { way: Way::Fused { cluster, fetch: false }, ..self };
        }
        let most = cluster + (self.threads() / 64).max(1).ilog2();
        Self { way: Way::Fused { cluster: most.clamp(cluster, 3), fetch: false }, ..self }
    }

    /// Where value `i` of a wave (`pack` 2) or of the magnitudes (`pack` 4) at the detector lies in its frame.
    pub(super) fn order(&self, pack: usize) -> Option<Vec<u32>> {
        self.order_in(pack, self.near)
    }

    /// The same in real space, as `row_of` of frame.cu says, or where the transform leaves it.
    pub(super) fn order_in(&self, pack: usize, real: bool) -> Option<Vec<u32>> {
        let Way::Fused { .. } = self.way else { return None };
        let [columns, _, cluster, warps, register_rows] = self.bits();
        let register_columns = columns - 5;
        let (blocks, threads) = (1_usize << cluster, self.threads() as usize);
        let mut order = Vec::with_capacity(self.frame[0] * self.frame[1]);
        for block in 0..blocks {
            for group in 0..32 / pack {
                for thread in 0..threads {
                    for r in group * pack..(group + 1) * pack {
                        let (lane, warp) = (thread % 32, thread / 32);
                        if real {
                            let row = ((r >> register_columns) << (warps + cluster)) + (warp << cluster | block);
                            order.push((row * self.frame[1] + (r & ((1 << register_columns) - 1)) * 32 + lane) as u32);
                            continue;
                        }
                        let (q, above) = (r >> cluster << cluster | if cluster > 0 { block } else { 0 }, r & (blocks - 1));
                        let q = if cluster > 0 { q } else { r };
                        let kx = (lane & ((1 << register_columns) - 1)) + ((warp + (q >> warps << warps)) << register_columns);
                        let ky = (lane >> register_columns) + (((q & ((1 << warps) - 1)) + (above << warps)) << register_rows);
                        order.push((ky * self.frame[1] + kx) as u32);
                    }
                }
            }
        }
        Some(order)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}, {} modes", self.frame[0], self.frame[1], self.exits())
    }
}

pub(super) fn recipe(kind: &Kind, name: &str, sources: &[&str], kernels: &[&str]) -> Recipe {
    let define = |name: &str, value: &dyn fmt::Display| (name.to_owned(), value.to_string());
    let mut defines = vec![
        define("NX", &kind.frame[1]),
        define("NY", &kind.frame[0]),
        define("PROBES", &kind.modes[0]),
        define("OBJECTS", &kind.modes[1]),
        define("MODES", &kind.exits()),
        define("SETS", &if kind.several { 2 } else { 1 }),
        define("TEAM", &TEAM),
        define("CROWD", &crowd(kind.exits())),
        define("TILE_ROWS", &TILE_ROWS),
    ];
    if let Way::Fused { cluster, fetch } = kind.way {
        defines.extend([
            define("LX", &kind.bits()[0]),
            define("LY", &kind.bits()[1]),
            define("CL", &cluster),
            define("FETCH", &u8::from(fetch)),
            define("NEAR", &u8::from(kind.near)),
            define("RESIDENT", &(512 / kind.threads()).max(1)),
        ]);
    }
    // Division and square root to two units in the last place; what is summed of them is compared to 1e-5.
    let options = ["-prec-div=false", "-prec-sqrt=false", "-ftz=true"];
    options.iter().fold(Recipe::new(&format!("ptycho {name} {kind}"), sources, &defines, kernels), |recipe, option| recipe.option(option))
}

/// Kernels that sum over views, for every kind.
pub(super) fn sums_recipe(kind: &Kind) -> Recipe {
    let sources = [include_str!("model.cu"), include_str!("sums.cu"), include_str!("overlap.cu")];
    recipe(kind, "sums", &sources, &["overlap"])
}

/// Kernels of gradients and directions, for every kind.
pub(super) fn vectors_recipe(kind: &Kind) -> Recipe {
    let sources = [include_str!("model.cu"), include_str!("sums.cu"), include_str!("vectors.cu")];
    recipe(kind, "vectors", &sources, &["object_sums", "probe_parts", "probe_sums", "dot", "combine", "neighbours"])
}

/// Kernels that a frame goes through.
pub(super) fn frames_recipe(kind: &Kind) -> Recipe {
    match kind.way {
        Way::Plain => {
            let sources = [include_str!("model.cu"), include_str!("constrain.cu"), include_str!("plain.cu")];
            recipe(kind, "frames", &sources, &["spread", "shade", "constrain"])
        }
        Way::Fused { .. } => {
            let sources = [
                include_str!("model.cu"),
                include_str!("hopper.cu"),
                include_str!("dft.cu"),
                include_str!("frame.cu"),
                include_str!("seat.cu"),
                include_str!("constrain.cu"),
                include_str!("step.cu"),
                include_str!("project.cu"),
            ];
            recipe(kind, "frames", &sources, &["begin", "project"])
        }
    }
}

/// The kernel that goes from view to view: one mode, in registers.
pub(super) fn sequence_recipe(kind: &Kind) -> Recipe {
    let sources = [
        include_str!("model.cu"),
        include_str!("hopper.cu"),
        include_str!("dft.cu"),
        include_str!("frame.cu"),
        include_str!("seat.cu"),
        include_str!("constrain.cu"),
        include_str!("step.cu"),
        include_str!("pie.cu"),
        include_str!("sequence.cu"),
    ];
    let mut recipe = recipe(kind, "sequence", &sources, &["sequence"]);
    recipe.defines.push(("NARROW".to_owned(), u8::from(kind.narrow()).to_string()));
    recipe
}

/// Kernels of the likelihood: all modes, in registers.
pub(super) fn likelihood_recipe(kind: &Kind, noise: Noise) -> Recipe {
    let sources = [
        include_str!("model.cu"),
        include_str!("hopper.cu"),
        include_str!("dft.cu"),
        include_str!("frame.cu"),
        include_str!("seat.cu"),
        include_str!("constrain.cu"),
        include_str!("step.cu"),
        include_str!("noise.cu"),
        include_str!("likelihood.cu"),
    ];
    let mut recipe = recipe(kind, "likelihood", &sources, &["gradient", "line"]);
    // Shared memory is full of intensities: the exchange of a cluster has no room of its own.
    recipe.defines.extend([("NOISE".to_owned(), number(noise).to_owned()), ("NARROW".to_owned(), "1".to_owned())]);
    recipe
}

/// Kernels that look for places: all modes, in registers.
pub(super) fn places_recipe(kind: &Kind) -> Recipe {
    let sources = [
        include_str!("model.cu"),
        include_str!("hopper.cu"),
        include_str!("dft.cu"),
        include_str!("frame.cu"),
        include_str!("seat.cu"),
        include_str!("constrain.cu"),
        include_str!("step.cu"),
        include_str!("places.cu"),
    ];
    let mut recipe = recipe(kind, "places", &sources, &["trial", "slope"]);
    recipe.defines.push(("NARROW".to_owned(), "1".to_owned()));
    recipe
}

/// Kernels of frames in pieces, for every kind.
pub(super) fn pieces_recipe(kind: &Kind) -> Recipe {
    let sources = [include_str!("model.cu"), include_str!("constrain.cu"), include_str!("plain.cu"), include_str!("pieces.cu")];
    recipe(kind, "pieces", &sources, &["multiply", "intensity", "deviation", "change", "slopes", "shade"])
}

/// And of the likelihood.
pub(super) fn pieces_likelihood_recipe(kind: &Kind, noise: Noise) -> Recipe {
    let sources = [
        include_str!("model.cu"),
        include_str!("constrain.cu"),
        include_str!("noise.cu"),
        include_str!("pieces.cu"),
        include_str!("pieces_likelihood.cu"),
    ];
    let mut recipe = recipe(kind, "likelihood in pieces", &sources, &["brighten", "settle_brightness", "weigh", "bend"]);
    recipe.defines.push(("NOISE".to_owned(), number(noise).to_owned()));
    recipe
}

/// And of engines that go from view to view or from batch to batch.
pub(super) fn sweeps_recipe(kind: &Kind) -> Recipe {
    let sources = [
        include_str!("model.cu"),
        include_str!("constrain.cu"),
        include_str!("pie.cu"),
        include_str!("pieces.cu"),
        include_str!("pieces_sweep.cu"),
        include_str!("pieces_squares.cu"),
    ];
    let kernels = [
        "difference",
        "settle_errors",
        "step_object",
        "step_probe",
        "finish",
        "residual",
        "object_direction",
        "probe_direction",
        "divide",
        "products",
        "add",
    ];
    recipe(kind, "sweeps in pieces", &sources, &kernels)
}

/// Supports of probes and smoothing of objects, for every kind.
pub(super) fn supports_recipe(kind: &Kind) -> Recipe {
    recipe(kind, "supports", &[include_str!("model.cu"), include_str!("supports.cu")], &["smooth", "veil", "compare"])
}

/// `NOISE` of noise.cu.
fn number(noise: Noise) -> &'static str {
    match noise {
        Noise::Gaussian => "0",
        Noise::Poisson => "1",
        Noise::Euclid => "2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(frame: [usize; 2], modes: [usize; 2], way: Way) -> Kind {
        // A far detector's kernels are parts of a near one's.
        Kind { frame, modes, several: frame[0] == 64, near: frame[0] != 128, way }
    }

    #[test]
    fn kernels_compile() {
        let fused = |cluster, fetch| Way::Fused { cluster, fetch };
        // The widest of each sort: a program takes the compiler seconds for each architecture.
        for (kind, sequence) in [
            (kind([128, 128], [1, 1], fused(0, true)), false),
            (kind([256, 256], [2, 2], fused(3, false)), false),
            (kind([64, 64], [1, 1], fused(1, false)), true),
            (kind([96, 100], [2, 1], Way::Plain), false),
        ] {
            if sequence {
                zellige_engine::testing::compiles(&sequence_recipe(&kind));
                continue;
            }
            zellige_engine::testing::compiles(&frames_recipe(&kind));
            zellige_engine::testing::compiles(&sums_recipe(&kind));
            zellige_engine::testing::compiles(&vectors_recipe(&kind));
            super::super::stream::recipes(&kind).iter().for_each(zellige_engine::testing::compiles);
        }
        zellige_engine::testing::compiles(&likelihood_recipe(&kind([64, 64], [2, 1], fused(1, false)), Noise::Poisson));
        zellige_engine::testing::compiles(&places_recipe(&kind([64, 64], [2, 1], fused(1, false))));
        let pieces = kind([96, 100], [3, 2], Way::Plain);
        for recipe in [pieces_recipe(&pieces), sweeps_recipe(&pieces), supports_recipe(&pieces)] {
            zellige_engine::testing::compiles(&recipe);
        }
        // The formulae are those of the kernels in registers, which take the compiler ten times as long.
        for noise in [Noise::Gaussian, Noise::Poisson, Noise::Euclid] {
            zellige_engine::testing::compiles(&pieces_likelihood_recipe(&pieces, noise));
        }
    }

    #[test]
    fn orders_are_permutations() {
        for (frame, cluster) in [([32, 32], 0), ([64, 128], 0), ([128, 128], 0), ([128, 256], 1), ([256, 256], 2)] {
            let kind = kind(frame, [1, 1], Way::Fused { cluster, fetch: false });
            for pack in [2, 4] {
                for real in [false, true] {
                    let mut order = kind.order_in(pack, real).unwrap();
                    order.sort_unstable();
                    assert!(order.iter().enumerate().all(|(i, j)| i == *j as usize), "{frame:?}");
                }
            }
        }
    }
}
