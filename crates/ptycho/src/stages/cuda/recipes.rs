//! The kernels' sources and how they are compiled: a program for each [`KernelConfig`].

use std::fmt::Display;

use zellige_engine::cuda::Recipe;

use super::program::{FrameProcessing, KernelConfig, TEAM, TILE_ROWS, crowd};
use crate::modes;
use crate::stages::Noise;

/// A program of these sources behind `model.cu` and `bins.cu`, which all of them stand on.
pub(super) fn recipe(kind: &KernelConfig, name: &str, sources: &[&str], kernels: &[&str]) -> Recipe {
    let define = |name: &str, value: &dyn Display| (name.to_owned(), value.to_string());
    let mut defines = vec![
        define("NX", &kind.frame[1]),
        define("NY", &kind.frame[0]),
        define("BX", &kind.bin[1]),
        define("BY", &kind.bin[0]),
        define("PROBES", &kind.modes[0]),
        define("OBJECTS", &kind.modes[1]),
        define("MODES", &kind.exits()),
        define("SETS", &if kind.several { 2 } else { 1 }),
        define("SHIFTED", &u8::from(kind.shifted)),
        define("TEAM", &TEAM),
        define("CROWD", &crowd(kind.exits())),
        define("TILE_ROWS", &TILE_ROWS),
    ];
    if let FrameProcessing::Fused { cluster, fetch } = kind.processing {
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
    let sources = [&[include_str!("model.cu"), include_str!("bins.cu")][..], sources].concat();
    options.iter().fold(Recipe::new(&format!("ptycho {name} {kind}"), &sources, &defines, kernels), |recipe, option| recipe.option(option))
}

/// A program whose kernels hold frames in registers.
fn in_registers(kind: &KernelConfig, name: &str, sources: &[&str], kernels: &[&str]) -> Recipe {
    let frames = [
        include_str!("hopper.cu"),
        include_str!("dft.cu"),
        include_str!("frame.cu"),
        include_str!("registers.cu"),
        include_str!("constrain.cu"),
        include_str!("step.cu"),
    ];
    recipe(kind, name, &[&frames, sources].concat(), kernels)
}

/// A program whose kernels stand around a library's transforms.
fn plain(kind: &KernelConfig, name: &str, sources: &[&str], kernels: &[&str]) -> Recipe {
    let sources = [&[include_str!("constrain.cu"), include_str!("plain.cu")][..], sources].concat();
    defined(defined(recipe(kind, name, &sources, kernels), "PARTS", kind.parts()), "CHANGES", kind.changes())
}

/// Program with transforms of lines.
fn tiled(kind: &KernelConfig, joined: bool) -> Recipe {
    let (columns, own): (_, &[&str]) = if joined {
        (include_str!("columns.cu"), &["spread", "apply_transfer", "frame_errors", "rows_out", "columns", "rows_back"])
    } else {
        (
            include_str!("apart.cu"),
            &["spread", "apply_transfer", "measure", "frame_errors", "rows_out", "columns_out", "columns_back", "rows_back"],
        )
    };
    let sources = [include_str!("radix.cu"), include_str!("lines.cu"), include_str!("tiles.cu"), columns];
    let tiles = kind.tiles().into_iter().flat_map(|tiles| tiles.defines());
    tiles.fold(plain(kind, "frames", &sources, own), |recipe, (name, value)| defined(recipe, name, value))
}

/// Adds a constant to a program.
fn defined(mut recipe: Recipe, name: &str, value: impl Display) -> Recipe {
    recipe.defines.push((name.to_owned(), value.to_string()));
    recipe
}

/// Sums over views in either way.
fn summing() -> [&'static str; 4] {
    [include_str!("sums.cu"), include_str!("probe_sums.cu"), include_str!("adds.cu"), include_str!("atomic.cu")]
}

/// Parts that an engine needs besides the frames and the sums of the overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Gradients and lines of a likelihood.
    Descent(Noise),
    /// Steps from view to view or from batch to batch.
    Sweeps,
    /// Trials of positions.
    Positions,
    /// Frames that come and go.
    Streaming,
    /// Supports of probes, or smoothing.
    Supports,
    /// The wavefield preconditioner.
    Wavefield,
}

/// Programs of frames of a kind for what is needed, each once.
pub fn recipes_for(kind: &KernelConfig, needed: &[Needed]) -> Vec<Recipe> {
    // Only projections fetch the wave to come.
    let (still, fused) = (kind.unfetched(), matches!(kind.processing, FrameProcessing::Fused { .. }));
    let mut all = vec![frames_recipe(kind), sums_recipe(kind)];
    if kind.shifted {
        all.extend([pieces_recipe(kind), subpixel_recipe(kind), supports_recipe(kind)]);
    }
    for needed in needed {
        all.extend(match needed {
            Needed::Descent(noise) if fused => vec![vectors_recipe(kind), likelihood_recipe(&still, *noise)],
            Needed::Descent(noise) => vec![vectors_recipe(kind), pieces_recipe(kind), pieces_likelihood_recipe(kind, *noise)],
            Needed::Sweeps => vec![pieces_recipe(kind), sweeps_recipe(kind)],
            Needed::Positions if fused => vec![positions_recipe(&still)],
            Needed::Positions => vec![pieces_recipe(kind)],
            Needed::Streaming => super::stream::recipes(kind).into(),
            Needed::Supports => vec![supports_recipe(kind)],
            Needed::Wavefield => vec![wavefield_recipe(kind)],
        });
    }
    let mut names = std::collections::BTreeSet::new();
    all.retain(|recipe| names.insert(recipe.name.clone()));
    all
}

/// Kernels that sum over views, for every kind.
pub(super) fn sums_recipe(kind: &KernelConfig) -> Recipe {
    let several = kind.modes[0] > 1;
    let mixing: &[_] = if several { &[include_str!("mix.cu")] } else { &[] };
    let kernels: &[_] = if several { &["overlap", "mode_products", "mode_mix"] } else { &["overlap"] };
    let sources = [&summing()[..], &[include_str!("overlap.cu")], mixing].concat();
    let recipe = defined(recipe(kind, "sums", &sources, kernels), "ATOMIC", u8::from(kind.atomic));
    if several { defined(recipe, "PRODUCTS", modes::BLOCK) } else { recipe }
}

/// Kernels of gradients and directions, for every kind.
pub(super) fn vectors_recipe(kind: &KernelConfig) -> Recipe {
    let sources = [&summing()[..], &[include_str!("vectors.cu")]].concat();
    let kernels = ["object_sums", "object_adds", "probe_parts", "probe_sums", "dot", "combine", "neighbours"];
    recipe(kind, "vectors", &sources, &kernels)
}

/// Kernels that a frame goes through.
pub(super) fn frames_recipe(kind: &KernelConfig) -> Recipe {
    match kind.processing {
        FrameProcessing::Plain => plain(kind, "frames", &[], &["spread", "apply_transfer", "measure", "constrain", "frame_errors"]),
        FrameProcessing::Tiled { joined } => tiled(kind, joined),
        FrameProcessing::Fused { .. } => in_registers(kind, "frames", &[include_str!("project.cu")], &["begin", "project"]),
    }
}

/// The kernel that goes from view to view: one mode, in registers.
pub(super) fn sequence_recipe(kind: &KernelConfig) -> Recipe {
    let sources = [include_str!("pie.cu"), include_str!("sequence.cu"), include_str!("reorder.cu")];
    defined(in_registers(kind, "sequence", &sources, &["sequence", "reorder_frames"]), "NARROW", u8::from(kind.narrow()))
}

/// Kernels of the likelihood: all modes, in registers.
pub(super) fn likelihood_recipe(kind: &KernelConfig, noise: Noise) -> Recipe {
    let sources = [include_str!("noise.cu"), include_str!("likelihood.cu")];
    // Shared memory is full of intensities: the exchange of a cluster has no room of its own.
    let narrow = defined(in_registers(kind, "likelihood", &sources, &["gradient", "line"]), "NARROW", 1);
    defined(narrow, "NOISE", number(noise))
}

/// Kernels of position refinement: all modes, in registers.
pub(super) fn positions_recipe(kind: &KernelConfig) -> Recipe {
    defined(in_registers(kind, "positions", &[include_str!("positions.cu")], &["trial", "slope"]), "NARROW", 1)
}

/// Kernels of frames in pieces, for every kind.
pub(super) fn pieces_recipe(kind: &KernelConfig) -> Recipe {
    let kernels = ["multiply", "intensity", "deviation", "change", "slopes", "apply_transfer"];
    plain(kind, "pieces", &[include_str!("pieces.cu")], &kernels)
}

/// Program of the likelihood.
pub(super) fn pieces_likelihood_recipe(kind: &KernelConfig, noise: Noise) -> Recipe {
    let sources = [include_str!("constrain.cu"), include_str!("noise.cu"), include_str!("pieces.cu"), include_str!("pieces_likelihood.cu")];
    let kernels = ["brighten", "view_brightness", "weigh", "bend"];
    defined(recipe(kind, "likelihood in pieces", &sources, &kernels), "NOISE", number(noise))
}

/// Program of engines that go from view to view or from batch to batch.
pub(super) fn sweeps_recipe(kind: &KernelConfig) -> Recipe {
    let sources = [
        include_str!("constrain.cu"),
        include_str!("pie.cu"),
        include_str!("pieces.cu"),
        include_str!("pieces_sweep.cu"),
        include_str!("adds.cu"),
        include_str!("pieces_squares.cu"),
    ];
    let kernels = [
        "difference",
        "view_errors",
        "step_object",
        "step_probe",
        "step_on",
        "finish",
        "residual",
        "object_direction",
        "object_scatter",
        "greatest_of",
        "probe_direction",
        "divide",
        "products",
        "add",
    ];
    recipe(kind, "sweeps in pieces", &sources, &kernels)
}

/// Kernels of sub-pixel shifts.
pub(super) fn subpixel_recipe(kind: &KernelConfig) -> Recipe {
    let sources = [include_str!("constrain.cu"), include_str!("pieces.cu"), include_str!("subpixel.cu")];
    let kernels = ["tilt", "probe_numerator", "gather_shifted_back", "add_parts", "step_subpixel", "brightest_seen", "shift_waves"];
    recipe(kind, "sub-pixel probes", &sources, &kernels)
}

/// Supports of probes and smoothing of objects, for every kind.
pub(super) fn supports_recipe(kind: &KernelConfig) -> Recipe {
    recipe(kind, "supports", &[include_str!("supports.cu")], &["smooth", "veil", "compare"])
}

/// The wavefield preconditioner, for every kind.
pub(super) fn wavefield_recipe(kind: &KernelConfig) -> Recipe {
    let kernels = ["wavefield_object", "wavefield_scatter", "wavefield_divide", "wavefield_parts", "wavefield_probe"];
    recipe(kind, "wavefield", &[include_str!("sums.cu"), include_str!("wavefield.cu")], &kernels)
}

/// `NOISE` of noise.cu.
fn number(noise: Noise) -> u8 {
    match noise {
        Noise::Gaussian => 0,
        Noise::Poisson => 1,
        Noise::Euclid => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(frame: [usize; 2], modes: [usize; 2], processing: FrameProcessing) -> KernelConfig {
        // A far detector's kernels are parts of a near one's.
        KernelConfig {
            frame,
            bin: [1, 1],
            modes,
            several: frame[0] == 64,
            near: frame[0] != 128,
            atomic: modes[0] == 2,
            registers: true,
            shifted: false,
            processing,
        }
    }

    #[test]
    fn kernels_compile() {
        let fused = |cluster, fetch| FrameProcessing::Fused { cluster, fetch };
        // The widest of each sort: a program takes the compiler seconds for each architecture.
        for (kind, sequence) in [
            (kind([128, 128], [1, 1], fused(0, true)), false),
            (kind([256, 256], [2, 2], fused(3, false)), false),
            (kind([64, 64], [1, 1], fused(1, false)), true),
            (kind([96, 100], [2, 1], FrameProcessing::Plain), false),
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
        zellige_engine::testing::compiles(&positions_recipe(&kind([64, 64], [2, 1], fused(1, false))));
        // The widest radices, three passes, bins.
        zellige_engine::testing::compiles(&frames_recipe(&kind([1024, 300], [1, 1], FrameProcessing::Tiled { joined: true })));
        let apart = kind([60, 2048], [2, 1], FrameProcessing::Tiled { joined: false });
        zellige_engine::testing::compiles(&frames_recipe(&KernelConfig { bin: [3, 2], ..apart }));
        let pieces = kind([96, 100], [3, 2], FrameProcessing::Plain);
        for recipe in [pieces_recipe(&pieces), sweeps_recipe(&pieces), supports_recipe(&pieces), wavefield_recipe(&pieces)] {
            zellige_engine::testing::compiles(&recipe);
        }
        let shifted = KernelConfig { shifted: true, ..pieces };
        for recipe in
            [frames_recipe(&shifted), sums_recipe(&shifted), vectors_recipe(&shifted), sweeps_recipe(&shifted), subpixel_recipe(&shifted)]
        {
            zellige_engine::testing::compiles(&recipe);
        }
        let binned = KernelConfig { bin: [3, 2], ..pieces };
        let likelihood = pieces_likelihood_recipe(&binned, Noise::Gaussian);
        for recipe in [frames_recipe(&binned), pieces_recipe(&binned), sweeps_recipe(&binned), likelihood] {
            zellige_engine::testing::compiles(&recipe);
        }
        // The formulae are those of the kernels in registers, which take the compiler ten times as long.
        for noise in [Noise::Gaussian, Noise::Poisson, Noise::Euclid] {
            zellige_engine::testing::compiles(&pieces_likelihood_recipe(&pieces, noise));
        }
    }
}
