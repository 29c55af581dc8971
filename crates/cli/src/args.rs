//! The command line as typed.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use zellige_live::Address;

use crate::commands::run::resumed_folder;

/// Exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes: 0 done; 2 wrong input or arguments; 3 the goal was missed (not converged, values not finite) or a check failed (of a run: \
unless --keep-going); 4 device or memory; 5 files; 70 a defect of this program; 75 wall-time limit or stopped from the live page, 130 SIGINT, 143 SIGTERM \
(the state is saved first).

Results go to files and standard output, messages to standard error. NO_COLOR is respected.";

/// Plasmas, rarefied gases, ptychography and Poisson's equation on every CPU core and on NVIDIA GPUs, from one input file.
#[derive(Debug, Parser)]
#[command(name = "zellige", version = crate::report::VERSION, after_help = EXIT_CODES, max_term_width = 120)]
pub(crate) struct Arguments {
    /// Print more details on standard error.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run input files (TOML, YAML or JSON): one, or several over the devices. Without a file: list the examples that come with the
    /// program.
    Run(RunArgs),
    /// Time the benchmark cases on a device, with their physics checked.
    Bench(BenchArgs),
    /// List every device and library, with the reason where one cannot be used.
    Devices {
        /// Print as JSON.
        #[arg(long)]
        json: bool,
        /// Measure the copy bandwidth of each device (takes a second).
        #[arg(long)]
        measure: bool,
    },
    /// Compile kernels for GPUs that need not be at hand, and pack them into one file: runs that find it compile nothing. Needs
    /// NVRTC.
    Kernels(KernelsArgs),
    /// Write one of the examples into a file to start from; without a name, list them.
    #[command(aliases = ["examples", "init"])]
    New(NewArgs),
    /// Print the JSON schema of a solver's input, for editors.
    Schema {
        /// The solver, for example `poisson`.
        solver: String,
    },
    /// Draw pictures of results: a folder, or an NPY, VTI, BOV, HDF5 or CSV file.
    View(ViewArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Rarefied gas: properties of a gas at rest, the plan of a run, inputs of the older form.
    Dsmc {
        #[command(subcommand)]
        command: DsmcCommand,
    },
    /// Ptychography: convert a scan to other formats.
    Ptycho {
        #[command(subcommand)]
        command: PtychoCommand,
    },
    /// Solve Poisson's equation with the seven classical arguments X Y M N S ERR Q.
    #[command(after_long_help = POISSON_HELP, allow_negative_numbers = true)]
    Poisson(PoissonArgs),
}

/// About rarefied gas.
#[derive(Debug, Subcommand)]
pub(crate) enum DsmcCommand {
    /// Print viscosity, conductivity, free path and more of a gas of the table; without a name, list the gases.
    Gas {
        /// The gas, for example `N2`.
        name: Option<String>,
        /// Temperature, K.
        #[arg(long = "T", value_name = "KELVIN", allow_negative_numbers = true, default_value_t = 300.0)]
        temperature: f64,
        /// Number density, 1/m^3.
        #[arg(long = "n", value_name = "PER_CUBIC_METRE", allow_negative_numbers = true, conflicts_with = "pressure")]
        density: Option<f64>,
        /// Pressure, Pa; 101325 if neither it nor a density is given.
        #[arg(long = "p", value_name = "PASCAL", allow_negative_numbers = true)]
        pressure: Option<f64>,
    },
    /// Print free path, collision time, Knudsen number, memory and warnings of an input, and run nothing.
    Check {
        /// The input file.
        input: PathBuf,
        /// Set a key of the input, as for `run`.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Rewrite an input of the older form (`grid`, `physics`, `init`) as TOML.
    Convert {
        /// The input in the older form.
        old: PathBuf,
        /// File to write.
        new: PathBuf,
        /// Outline of a body. May be repeated.
        #[arg(short, long, value_name = "FILE")]
        geometry: Vec<PathBuf>,
        /// Source of gas. May be repeated.
        #[arg(short, long, value_name = "FILE")]
        source: Vec<PathBuf>,
        /// Schedule of each source, in their order.
        #[arg(short = 'S', long, value_name = "FILE")]
        schedule: Vec<PathBuf>,
    },
}

/// About ptychography.
#[derive(Debug, Subcommand)]
pub(crate) enum PtychoCommand {
    /// Read or simulate the scan of an input and write it as .cxi, .ptyd or .npz, cut and summed as the input says.
    Convert {
        /// The input file.
        input: PathBuf,
        /// The files to write; the ending says the format.
        #[arg(required = true, value_name = "OUTPUT")]
        outputs: Vec<PathBuf>,
        /// Set a key of the input, as for `run`.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
}

/// Folder and device of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunTarget {
    /// Device: auto (the fastest that works), cpu, cuda, cuda:N; for `run` also several GPUs, `cuda:all`, `cuda:0-3` or `cuda:0,2`.
    /// Overrides ZELLIGE_DEVICE and the input file.
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Threads on the CPU; 0 takes every core.
    #[arg(long)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The input file. Several are independent runs, one at a time on each device.
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Folder for the results; by default `out/` and the input's name. Of several runs: the folder above theirs.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: RunTarget,
    /// Parts of the domain, which share the threads: the same results, bit for bit, on any number. With several GPUs each has a
    /// part. Under `mpirun` or `srun` each process is a part.
    #[arg(long, value_name = "N")]
    pub(crate) parts: Option<usize>,
    /// Set a key of the input: `--set poisson.tolerance=1e-10`, `--set output.formats.0=bov`. May be repeated. Values with commas
    /// between them, `--set poisson.tolerance=1e-4,1e-6`, make a run each.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Check the input and print the plan; compute and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Resume from the checkpoint of an earlier run in this folder, or from that file; without INPUT, with the input that lies
    /// there.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath, value_parser = PathBufValueParser::new().map(|named| resumed_folder(&named)))]
    pub(crate) resume: Option<PathBuf>,
    /// Save checkpoints in this folder, for example on another disk; `--resume DIR` continues from there.
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<PathBuf>,
    /// Write into the folder although another process does.
    #[arg(long)]
    pub(crate) force: bool,
    /// End with exit code 0 although checks failed, for scripts that use such results.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Show the run in a browser, at an address that is printed: fields, phase spaces, rows and stages as they come. On this
    /// machine alone unless a host is named, and at the first free port from 8420 on.
    #[arg(long, value_name = "PORT|HOST:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) live: Option<Address>,
    /// Let the page of `--live` save checkpoints, stop the run and go on to the next engine.
    #[arg(long, requires = "live")]
    pub(crate) steer: bool,
    /// Also write a timeline of the stages, `trace.json`, for Perfetto or chrome://tracing.
    #[arg(long)]
    pub(crate) profile: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Cases or beginnings of their names, for example `poisson` or `poisson/mixed`; all without any. `run/` before them times
    /// whole runs of these cases, with their output, and `sweep/` and a solver its plain case over sizes.
    pub(crate) cases: Vec<String>,
    #[command(flatten)]
    pub(crate) target: RunTarget,
    /// Write the results as an array, one object a case.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// List the cases and what they time.
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KernelsArgs {
    /// The file to write: `zellige.kernels` beside the binary is found by itself, any other by ZELLIGE_KERNELS.
    pub(crate) output: PathBuf,
    /// Inputs whose programs are packed; those of all examples without any.
    pub(crate) inputs: Vec<PathBuf>,
    /// Architectures, with commas between them.
    #[arg(long, value_delimiter = ',', default_values = ["sm_80", "sm_90"])]
    pub(crate) arch: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The example, for example `poisson/dipole`; `poisson` lists those of a solver.
    pub(crate) example: Option<String>,
    /// File to write; by default the example's name in this folder.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// A result folder or file; `file.h5:/path` for a dataset (also of .cxi, .ptyr, .ptyd, .nxs). In a folder, pictures that the
    /// run made stay unless `--range`, `--log` or `--map` asks for others.
    pub(crate) path: PathBuf,
    /// Picture to write; by default beside the data.
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
    /// Lowest and highest value of the colour bar.
    #[arg(long, num_args = 2, value_names = ["LOW", "HIGH"], allow_negative_numbers = true)]
    pub(crate) range: Option<Vec<f64>>,
    /// Logarithmic colours.
    #[arg(long)]
    pub(crate) log: bool,
    /// Colour map: viridis, cividis, inferno, magma, balance or cyclic.
    #[arg(long)]
    pub(crate) map: Option<String>,
    /// Show the folder in a browser, as `run --live` shows a run, until Ctrl-C.
    #[arg(long, value_name = "PORT|HOST:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["output", "range", "log", "map", "terminal"])]
    pub(crate) live: Option<Address>,
    /// Draw fields on standard output as well, even if it is not a terminal that reports 24-bit colours.
    #[arg(long)]
    pub(crate) terminal: bool,
}

/// Number formats.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PrecisionArg {
    /// Single.
    F32,
    /// Double.
    F64,
    /// Solution and residual double, the cycle single.
    Mixed,
}

#[derive(Debug, Args)]
pub(crate) struct PoissonArgs {
    /// Length of the domain in x: x in [0, X].
    #[arg(value_name = "X")]
    pub(crate) x: f64,
    /// Length of the domain in y: y in [0, Y].
    #[arg(value_name = "Y")]
    pub(crate) y: f64,
    /// Nodes in x, both sides included.
    #[arg(value_name = "M")]
    pub(crate) m: usize,
    /// Nodes in y, both sides included.
    #[arg(value_name = "N")]
    pub(crate) n: usize,
    /// Coarse levels of multigrid; not used by SOR.
    #[arg(value_name = "S")]
    pub(crate) s: u32,
    /// Relative residual to reach, ||rho - A u|| / ||rho||.
    #[arg(value_name = "ERR")]
    pub(crate) err: f64,
    /// 0 SOR, 1 C-cycle, 2 V-cycle, 3 W-cycle.
    #[arg(value_name = "Q", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) q: u8,
    /// Folder for the results.
    #[arg(short, long, default_value = "out/poisson")]
    pub(crate) output: PathBuf,
    /// Right-hand side: an expression of x and y (lengths lx, ly), or an NPY file of shape (N, M). By default a pair of
    /// opposite Gaussian charges.
    #[arg(long, value_name = "EXPRESSION|FILE.npy", allow_hyphen_values = true)]
    pub(crate) rhs: Option<String>,
    #[command(flatten)]
    pub(crate) target: RunTarget,
    /// Number formats.
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) precision: PrecisionArg,
}

const POISSON_HELP: &str = "\
Solves u_xx + u_yy = rho on [0, X] x [0, Y] with u = 0 on the sides, on M x N nodes. Writes solution.npy (shape (N, M)), BOV, \
VTI, PNG and summary.json.

The arguments are those of the MGCUDA program of the multigrid lecture by Applied Parallel Computing; what they do differs \
from it where that program could not be right:

- ERR is a relative residual, ||rho - A u|| / ||rho||. There it was the largest change of u in a sweep, which with slow \
convergence says little about the error: at 4096 x 4096 a change of 1e-6 goes with an error of order one.

- Nodes are X / (M - 1) apart, so that the first and the last lie on the sides. There it was X / M.

- The cycles restrict the residual and correct the solution. There the solution itself was moved between grids.

- SOR takes the optimal relaxation factor of the grid (1.998 at 4096), not one between 1 and 1.5.

- Any size works: no power of two is needed, and a coarse level keeps both sides of the domain.

Example: zellige poisson 32 32 4096 4096 3 1e-6 2";
