//! Every example, made short, in parts and in processes of both MPI libraries: the same files.

use std::path::Path;

use zellige_engine::testing::mpi::launchers;

use crate::common::{names, zellige};
use crate::parts::{PARTICLES, arguments, example, files};

/// An example, and keys that make it short.
type Short = (&'static str, &'static [&'static str]);

const PLASMA: &[Short] = &[
    ("filamentation", &["pic.t_end=0.7"]),
    ("heating", &["pic.t_end=0.7"]),
    ("kelvin_helmholtz", &["pic.t_end=0.2", "pic.grid.cells=[64, 128]", "pic.grid.size=[2.05, 4.1]"]),
    ("kong", &["pic.steps=6", "pic.grid.cells=[96, 200]", "pic.grid.size=[9.6, 20.0]"]),
    ("kong", PARTICLES),
    ("langmuir", &["pic.t_end=1"]),
    ("log_weibel", &["pic.steps=3", "pic.grid.cells=[64, 128]", "pic.grid.size=[6.4, 12.8]"]),
    ("magnetised_waves", &["pic.t_end=1"]),
    ("plasma_waves", &["pic.t_end=1"]),
    ("slab", &["pic.t_end=0.5"]),
    ("two_stream", &["pic.t_end=0.1"]),
    ("wakefield", &["pic.t_end=0.3"]),
];

const GAS: &[Short] = &[
    ("cavity", &["dsmc.steps=30", "dsmc.sampling.start=15"]),
    ("couette", &["dsmc.steps=30", "dsmc.sampling.start=15"]),
    ("cylinder", &["dsmc.steps=10", "dsmc.sampling.start=5"]),
    ("flat_plate", &["dsmc.steps=30", "dsmc.sampling.start=15"]),
    ("fourier", &["dsmc.steps=30", "dsmc.sampling.start=15"]),
    ("jet", &["dsmc.steps=40", "dsmc.sampling.start=20"]),
    // The search for the steady state needs many steps.
    ("knudsen_pump", &["dsmc.steps=420"]),
    ("nozzle", &["dsmc.steps=20", "dsmc.sampling.start=10"]),
    ("relaxation", &["dsmc.steps=30", "dsmc.sampling.start=15"]),
    ("satellite_panel", &["dsmc.steps=20", "dsmc.sampling.start=10"]),
];

const POISSON: &[Short] = &[
    ("anisotropic", &["poisson.grid.nodes=[257, 257]"]),
    ("batch", &["poisson.grid.nodes=[129, 129]", "poisson.batch=3"]),
    ("channel", &["poisson.grid.nodes=[200, 101]"]),
    ("dipole", &["poisson.grid.nodes=[256, 256]"]),
    ("manufactured", &["poisson.grid.nodes=[257, 257]"]),
    ("neumann", &["poisson.grid.nodes=[129, 129]"]),
    ("periodic", &["poisson.grid.nodes=[120, 100]"]),
    ("point_charges_3d", &["poisson.grid.nodes=[33, 33, 33]"]),
];

const FEW: &str = "ptycho.scan.0.simulate.frames=25";
const SMALL: &str = "ptycho.scan.0.simulate.size=64";
const FIRST: &str = "ptycho.engine.0.iterations=6";
const SECOND: &str = "ptycho.engine.1.iterations=2";
const AT_ONCE: &str = "ptycho.engine.0.positions.start=1";

const PTYCHO: &[Short] = &[
    (
        "mixed_state",
        &[
            FEW,
            SMALL,
            "ptycho.engine.0.iterations=2",
            "ptycho.engine.1.iterations=3",
            "ptycho.engine.1.batch=5",
            "ptycho.engine.2.iterations=2",
        ],
    ),
    ("near_field", &["ptycho.scan.0.simulate.frames=9", SMALL, FIRST, SECOND]),
    ("position_errors", &[FEW, SMALL, FIRST, SECOND, AT_ONCE, "ptycho.engine.0.positions.stop=6"]),
    ("simulated", &[FEW, SMALL, FIRST, SECOND]),
    ("stacked", &[FEW, SMALL, FIRST, SECOND]),
    ("streamed", &[FEW, FIRST, SECOND, "ptycho.memory.device=\"256 KiB\""]),
    ("subpixel", &[FEW, SMALL, FIRST, SECOND, AT_ONCE]),
    ("weak_phase", &[FEW, SMALL, FIRST, SECOND]),
    ("wide_beam", &[FEW, FIRST, SECOND]),
];

/// Examples that one part computes, with the reason.
const REFUSED: &[(&str, &str)] = &[("ptycho/mixed_state", "larger `batch`")];

/// Runs examples of a solver in one part, 2, 3, 4 and 8, and in 1, 2 and 4 processes.
fn all_write_the_files_of_one(solver: &str, runs: &[Short]) {
    let folder = tempfile::tempdir().unwrap();
    for (k, (name, keys)) in runs.iter().enumerate() {
        let input = example(&format!("{solver}/{name}.toml"));
        let one = format!("one{k}");
        let alone = zellige(folder.path(), &arguments(&input, keys, &one));
        // Short runs have other results than the checks of the example expect.
        assert!([0, 3].contains(&alone.code), "{name}: {}", alone.err);
        let expected = files(&folder.path().join(&one));
        assert!(expected.len() > 3, "{name} writes nothing to compare");
        let compare = |output: &str, what: &str| {
            let found = files(&folder.path().join(output));
            let names = |files: &[(String, _)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&found), names(&expected), "{name} {what}");
            let other: Vec<_> = found.iter().zip(&expected).filter(|(a, b)| a != b).map(|((name, _), _)| name).collect();
            assert!(other.is_empty(), "{name} {what}: other {other:?}");
            std::fs::remove_dir_all(folder.path().join(output)).unwrap();
        };
        for parts in ["2", "3", "4", "8"] {
            let found = zellige(folder.path(), &[&arguments(&input, keys, "parts")[..], &["--parts", parts]].concat());
            assert_eq!(found.code, alone.code, "{name} in {parts} parts: {}", found.err);
            compare("parts", &format!("in {parts} parts"));
        }
        for mpirun in launchers() {
            for processes in [1, 2, 4] {
                let mut command = mpirun.command(processes);
                command.arg(env!("CARGO_BIN_EXE_zellige")).args(arguments(&input, keys, "processes")).current_dir(folder.path());
                let done = command.output().unwrap();
                let (told, what) = (String::from_utf8_lossy(&done.stderr), format!("by {} in {processes}", mpirun.maker));
                assert_eq!(done.status.code(), Some(alone.code), "{name} {what}: {told}");
                compare("processes", &what);
                // One of them speaks.
                assert_eq!(told.matches("zellige 0.").count(), 1, "{told}");
            }
        }
    }
}

#[test]
fn plasmas_write_the_files_of_one_part() {
    all_write_the_files_of_one("pic", PLASMA);
}

#[test]
fn gases_write_the_files_of_one_part() {
    all_write_the_files_of_one("dsmc", GAS);
}

#[test]
fn potentials_write_the_files_of_one_part() {
    all_write_the_files_of_one("poisson", POISSON);
}

#[test]
fn reconstructions_write_the_files_of_one_part() {
    all_write_the_files_of_one("ptycho", PTYCHO);
}

/// No example is left out.
#[test]
fn every_example_is_tried_in_parts() {
    let listed = [("pic", PLASMA), ("dsmc", GAS), ("poisson", POISSON), ("ptycho", PTYCHO)];
    let mut known: Vec<String> =
        listed.iter().flat_map(|(solver, runs)| runs.iter().map(move |(name, _)| format!("{solver}/{name}"))).collect();
    known.extend(REFUSED.iter().map(|(name, _)| (*name).to_owned()));
    let folder = example("");
    let there = listed.iter().flat_map(|(solver, _)| {
        names(&Path::new(&folder).join(solver))
            .into_iter()
            .filter_map(move |name| Some(format!("{solver}/{}", name.strip_suffix(".toml")?)))
    });
    let missing: Vec<String> = there.filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let folder = tempfile::tempdir().unwrap();
    for (name, reason) in REFUSED {
        let found = zellige(folder.path(), &["run", &example(&format!("{name}.toml")), "--device", "cpu", "--parts", "2"]);
        assert!(found.code == 2 && found.err.contains(reason), "{name}: {}", found.err);
    }
}
