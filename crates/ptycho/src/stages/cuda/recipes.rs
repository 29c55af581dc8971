//! The kernels' sources and how they are compiled: a program for each [`KernelConfig`].

use std::fmt::Display;

use zellige_engine::cuda::{Files, Recipe};
use zellige_engine::cuda_files;

use super::arguments::ARGUMENTS;
use super::handover::handover_recipe;
use super::program::{FrameProcessing, KernelConfig, TEAM, TILE_ROWS, crowd, pair};
use crate::modes;
use crate::stages::Noise;

/// Source files.
const FILES: &Files = cuda_files![
    "adds.cu",
    "apart.cu",
    "atomic.cu",
    "batch_difference.cu",
    "batch_directions.cu",
    "batch_least_squares.cu",
    "batch_likelihood.cu",
    "batch_sweep.cu",
    "batches.cu",
    "begin.cu",
    "bins.cu",
    "clustered.cu",
    "clustered_frame.cu",
    "clustered_transform.cu",
    "columns.cu",
    "constrain.cu",
    "dft.cu",
    "exchanges.cu",
    "frame.cu",
    "handover/handover.cu",
    "hopper.cu",
    "likelihood.cu",
    "lines.cu",
    "mix.cu",
    "model.cu",
    "multi_pass.cu",
    "noise.cu",
    "overlap.cu",
    "pie.cu",
    "positions.cu",
    "probe_sums.cu",
    "project.cu",
    "radix.cu",
    "ramps.cu",
    "registers.cu",
    "reorder.cu",
    "sequence.cu",
    "shifted.cu",
    "shifted_sums.cu",
    "step.cu",
    "stream/keep.cu",
    "stream/stream.cu",
    "subpixel.cu",
    "sums.cu",
    "supports.cu",
    "tiles.cu",
    "twisted.cu",
    "vectors.cu",
    "view_sums.cu",
    "wavefield.cu";
    "arguments.cuh" => ARGUMENTS,
];

/// A program of the files `roots` and what they include.
pub(super) fn recipe(config: &KernelConfig, name: &str, roots: &[&str], kernels: &[&str]) -> Recipe {
    let define = |name: &str, value: &dyn Display| (name.to_owned(), value.to_string());
    let mut defines = vec![
        define("NX", &config.frame[1]),
        define("NY", &config.frame[0]),
        define("BX", &config.bin[1]),
        define("BY", &config.bin[0]),
        define("PROBES", &config.modes[0]),
        define("OBJECTS", &config.modes[1]),
        define("MODES", &config.exits()),
        define("SETS", &if config.several { 2 } else { 1 }),
        define("SHIFTED", &u8::from(config.shifted)),
        define("TEAM", &TEAM),
        define("CROWD", &crowd(config.exits(), config.number())),
        define("TILE_ROWS", &TILE_ROWS),
        define("PAIR", &pair(config.frame, config.number())),
    ];
    if config.double {
        defines.push(define("DOUBLE", &1));
    }
    if let FrameProcessing::Fused { cluster, fetch } = config.processing {
        defines.extend([
            define("LX", &config.bits()[0]),
            define("LY", &config.bits()[1]),
            define("CL", &cluster),
            define("FETCH", &u8::from(fetch)),
            define("NEAR", &u8::from(config.near)),
            define("RESIDENT", &(512 / config.threads()).max(1)),
        ]);
    }
    // Division and square root to two units in the last place; what is summed of them is compared to 1e-5.
    let options = ["-prec-div=false", "-prec-sqrt=false", "-ftz=true"];
    options
        .iter()
        .fold(Recipe::of_files(&format!("ptycho {name} {config}"), FILES, roots, &defines, kernels), |recipe, option| recipe.option(option))
}

/// A program whose kernels stand around a library's transforms.
fn plain(config: &KernelConfig, name: &str, roots: &[&str], kernels: &[&str]) -> Recipe {
    defined(defined(recipe(config, name, roots, kernels), "PARTS", config.parts()), "CHANGES", config.changes())
}

/// Program with transforms of lines.
fn tiled(config: &KernelConfig, joined: bool) -> Recipe {
    let (root, own): (_, &[&str]) = if joined {
        ("columns.cu", &["spread", "apply_transfer", "frame_errors", "rows_out", "columns", "rows_back"])
    } else {
        ("apart.cu", &["spread", "apply_transfer", "measure", "frame_errors", "rows_out", "columns_out", "columns_back", "rows_back"])
    };
    let tiles = config.tiles().into_iter().flat_map(|tiles| tiles.defines());
    tiles.fold(plain(config, "frames", &[root], own), |recipe, (name, value)| defined(recipe, name, value))
}

/// Adds a constant to a program.
fn defined(mut recipe: Recipe, name: &str, value: impl Display) -> Recipe {
    recipe.defines.push((name.to_owned(), value.to_string()));
    recipe
}

/// Parts that an engine needs besides the frames and the sums of the overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Gradients and lines of a likelihood.
    Likelihood(Noise),
    /// Steps from view to view or from batch to batch.
    Sweeps,
    /// Trials of positions.
    Positions,
    /// Frames that come and go.
    Streaming,
    /// Sums that go from part to part of a run.
    Parts,
    /// Supports of probes, or smoothing.
    Supports,
    /// The wavefield preconditioner.
    Wavefield,
}

/// Programs of frames of a configuration for the needed operations, each once.
pub fn recipes_for(config: &KernelConfig, needed: &[Needed]) -> Vec<Recipe> {
    // Only projections fetch the wave to come.
    let (still, fused) = (config.unfetched(), config.fused());
    let mut all = vec![frames_recipe(config), sums_recipe(config)];
    if config.shifted {
        all.extend([batches_recipe(config), subpixel_recipe(config), supports_recipe(config)]);
        all.extend(fused.then(|| shifted_recipe(config)));
    }
    for needed in needed {
        all.extend(match needed {
            Needed::Likelihood(noise) if fused => vec![vectors_recipe(config), likelihood_recipe(&still, *noise)],
            Needed::Likelihood(noise) => {
                vec![vectors_recipe(config), batches_recipe(config), batch_likelihood_recipe(config, *noise)]
            }
            Needed::Sweeps => vec![batches_recipe(config), sweeps_recipe(config)],
            Needed::Positions if fused && !config.shifted => vec![positions_recipe(&still)],
            Needed::Positions => vec![batches_recipe(config)],
            Needed::Streaming => super::stream::recipes(config).into(),
            Needed::Parts => vec![handover_recipe(config)],
            Needed::Supports => vec![supports_recipe(config)],
            Needed::Wavefield => vec![wavefield_recipe(config)],
        });
    }
    let mut names = std::collections::BTreeSet::new();
    all.retain(|recipe| names.insert(recipe.name.clone()));
    all
}

/// Kernels that sum over views, for every kind.
pub(super) fn sums_recipe(config: &KernelConfig) -> Recipe {
    let recipe = recipe(config, "sums", &["overlap.cu", "mix.cu"], &["overlap", "mode_products", "mode_mix"]);
    defined(defined(recipe, "ATOMIC", u8::from(config.atomic)), "PRODUCTS", modes::BLOCK)
}

/// Kernels of gradients and directions, for every kind.
pub(super) fn vectors_recipe(config: &KernelConfig) -> Recipe {
    let kernels = ["object_sums", "object_adds", "probe_parts", "probe_sums", "dot", "combine", "neighbours"];
    recipe(config, "vectors", &["vectors.cu"], &kernels)
}

/// Kernels that a frame goes through.
pub(super) fn frames_recipe(config: &KernelConfig) -> Recipe {
    match config.processing {
        FrameProcessing::MultiPass => {
            plain(config, "frames", &["multi_pass.cu"], &["spread", "apply_transfer", "measure", "constrain", "frame_errors"])
        }
        FrameProcessing::Tiled { joined } => tiled(config, joined),
        FrameProcessing::Clustered { cluster } => {
            defined(plain(config, "frames", &["clustered.cu"], &["spread", "apply_transfer", "project"]), "CL", cluster)
        }
        FrameProcessing::Fused { .. } => recipe(config, "frames", &["project.cu"], &["begin", "project"]),
    }
}

/// The kernel that goes from view to view: one mode, in registers.
pub(super) fn sequence_recipe(config: &KernelConfig) -> Recipe {
    defined(
        recipe(config, "sequence", &["sequence.cu", "reorder.cu"], &["sequence", "reorder_frames"]),
        "NARROW",
        u8::from(config.narrow()),
    )
}

/// Kernels of the likelihood: all modes, in registers.
pub(super) fn likelihood_recipe(config: &KernelConfig, noise: Noise) -> Recipe {
    // Shared memory is full of intensities: the exchange of a cluster has no room of its own.
    let narrow = defined(recipe(config, "likelihood", &["likelihood.cu"], &["gradient", "line"]), "NARROW", 1);
    defined(narrow, "NOISE", number(noise))
}

/// Kernels of position refinement: all modes, in registers.
pub(super) fn positions_recipe(config: &KernelConfig) -> Recipe {
    defined(recipe(config, "positions", &["positions.cu"], &["trial", "slope"]), "NARROW", 1)
}

/// Kernels of frames in pieces, for every kind.
pub(super) fn batches_recipe(config: &KernelConfig) -> Recipe {
    let kernels = ["multiply", "intensity", "deviation", "change", "slopes", "apply_transfer"];
    plain(config, "batches", &["multi_pass.cu", "batches.cu"], &kernels)
}

/// Program of the likelihood.
pub(super) fn batch_likelihood_recipe(config: &KernelConfig, noise: Noise) -> Recipe {
    let kernels = ["brighten", "view_brightness", "weigh", "bend"];
    defined(recipe(config, "likelihood in pieces", &["batch_likelihood.cu"], &kernels), "NOISE", number(noise))
}

/// Program of engines that go from view to view or from batch to batch.
pub(super) fn sweeps_recipe(config: &KernelConfig) -> Recipe {
    let kernels = [
        "difference",
        "view_errors",
        "step_object",
        "look_through_object",
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
    recipe(
        config,
        "sweeps in pieces",
        &["batch_difference.cu", "batch_sweep.cu", "batch_least_squares.cu", "batch_directions.cu"],
        &kernels,
    )
}

/// Kernels of sub-pixel shifts.
pub(super) fn subpixel_recipe(config: &KernelConfig) -> Recipe {
    let kernels = ["tilt", "probe_numerator", "gather_shifted_back", "add_parts", "step_subpixel", "brightest_seen", "shift_waves"];
    recipe(config, "sub-pixel probes", &["subpixel.cu"], &kernels)
}

/// Kernels of sub-pixel shifts of frames in registers.
pub(super) fn shifted_recipe(config: &KernelConfig) -> Recipe {
    let kernels = ["transform_probes", "shift_probes", "gather_back", "gather_rest_back", "end_sums"];
    defined(recipe(&config.unfetched(), "sub-pixel probes in registers", &["shifted_sums.cu"], &kernels), "NARROW", 1)
}

/// Supports of probes and smoothing of objects, for every kind.
pub(super) fn supports_recipe(config: &KernelConfig) -> Recipe {
    recipe(config, "supports", &["supports.cu"], &["smooth", "veil", "compare"])
}

/// The wavefield preconditioner, for every kind.
pub(super) fn wavefield_recipe(config: &KernelConfig) -> Recipe {
    let kernels = ["wavefield_object", "wavefield_scatter", "wavefield_divide", "wavefield_parts", "wavefield_probe"];
    recipe(config, "wavefield", &["wavefield.cu"], &kernels)
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

    fn config(frame: [usize; 2], modes: [usize; 2], processing: FrameProcessing) -> KernelConfig {
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
            double: false,
            processing,
        }
    }

    #[test]
    fn kernels_compile() {
        let fused = |cluster, fetch| FrameProcessing::Fused { cluster, fetch };
        // The widest of each sort: a program takes the compiler seconds for each architecture.
        for (config, sequence) in [
            (config([128, 128], [1, 1], fused(0, true)), false),
            (config([256, 256], [2, 2], fused(3, false)), false),
            (config([64, 64], [1, 1], fused(1, false)), true),
            (config([96, 100], [2, 1], FrameProcessing::MultiPass), false),
        ] {
            if sequence {
                zellige_engine::testing::compiles(&sequence_recipe(&config));
                continue;
            }
            zellige_engine::testing::compiles(&frames_recipe(&config));
            zellige_engine::testing::compiles(&sums_recipe(&config));
            zellige_engine::testing::compiles(&vectors_recipe(&config));
            super::super::stream::recipes(&config).iter().for_each(zellige_engine::testing::compiles);
            zellige_engine::testing::compiles(&handover_recipe(&config));
        }
        zellige_engine::testing::compiles(&likelihood_recipe(&config([64, 64], [2, 1], fused(1, false)), Noise::Poisson));
        zellige_engine::testing::compiles(&positions_recipe(&config([64, 64], [2, 1], fused(1, false))));
        // The widest radices, three passes, bins.
        zellige_engine::testing::compiles(&frames_recipe(&config([1024, 300], [1, 1], FrameProcessing::Tiled { joined: true })));
        let apart = config([60, 2048], [2, 1], FrameProcessing::Tiled { joined: false });
        zellige_engine::testing::compiles(&frames_recipe(&KernelConfig { bin: [3, 2], ..apart }));
        let operations = config([96, 100], [3, 2], FrameProcessing::MultiPass);
        for recipe in [batches_recipe(&operations), sweeps_recipe(&operations), supports_recipe(&operations), wavefield_recipe(&operations)]
        {
            zellige_engine::testing::compiles(&recipe);
        }
        let shifted = KernelConfig { shifted: true, ..operations };
        for recipe in
            [frames_recipe(&shifted), sums_recipe(&shifted), vectors_recipe(&shifted), sweeps_recipe(&shifted), subpixel_recipe(&shifted)]
        {
            zellige_engine::testing::compiles(&recipe);
        }
        let shifted = KernelConfig { shifted: true, near: false, ..config([128, 128], [2, 2], fused(0, false)) };
        for recipe in [frames_recipe(&shifted), shifted_recipe(&shifted), likelihood_recipe(&shifted, Noise::Gaussian)] {
            zellige_engine::testing::compiles(&recipe);
        }
        zellige_engine::testing::compiles(&shifted_recipe(&KernelConfig { shifted: true, ..config([128, 256], [1, 1], fused(1, false)) }));
        let binned = KernelConfig { bin: [3, 2], ..operations };
        let likelihood = batch_likelihood_recipe(&binned, Noise::Gaussian);
        for recipe in [frames_recipe(&binned), batches_recipe(&binned), sweeps_recipe(&binned), likelihood] {
            zellige_engine::testing::compiles(&recipe);
        }
        // Doubles: one program of each sort, every kernel once.
        let doubles = KernelConfig { double: true, shifted: true, ..config([63, 45], [2, 1], FrameProcessing::MultiPass) };
        let even = KernelConfig { frame: [64, 48], shifted: false, atomic: false, ..doubles };
        let programs = [frames_recipe(&doubles), batches_recipe(&doubles), sweeps_recipe(&doubles), subpixel_recipe(&doubles)];
        let others =
            [vectors_recipe(&even), supports_recipe(&even), wavefield_recipe(&even), batch_likelihood_recipe(&even, Noise::Poisson)];
        let streamed = super::super::stream::recipes(&even);
        for recipe in programs.iter().chain(&others).chain(&streamed).chain(&[sums_recipe(&even), sums_recipe(&doubles)]) {
            zellige_engine::testing::compiles(recipe);
        }
        let clustered = KernelConfig { double: true, ..config([128, 128], [1, 1], FrameProcessing::Clustered { cluster: 1 }) };
        zellige_engine::testing::compiles(&frames_recipe(&clustered));
        // The formulae are those of the kernels in registers, which take the compiler ten times as long.
        for noise in [Noise::Gaussian, Noise::Poisson, Noise::Euclid] {
            zellige_engine::testing::compiles(&batch_likelihood_recipe(&operations, noise));
        }
    }
}
