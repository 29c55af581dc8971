//! Large records of runs in parts: each part writes what it has.

use std::path::Path;
use std::time::{Duration, Instant};

use zellige_engine::testing::mpi::launchers;

use crate::checkpoints::{processes, told};
use crate::common::{names, zellige};
use crate::parts::{arguments, example, files};

/// A plasma of 1.2 million cells with a particle each.
const PLASMA: [&str; 5] = [
    "pic.grid.cells=[1200, 1000]",
    "pic.grid.size=[120.0, 100.0]",
    "pic.species.0.particles_per_cell=1",
    "pic.diagnostics.fields=[]",
    "output.formats=[\"npy\", \"hdf5\"]",
];

/// Bytes that each part of a run has sent.
fn sent(folder: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    summary["parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap()).collect()
}

/// No part sends its particles or fields to another one: the first never holds all.
#[test]
fn particles_and_fields_go_from_each_part_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("pic/kong.toml");
    let run = |parts: &str, output: &str, more: &[&str]| {
        let keys = [&PLASMA[..], &["pic.steps=2"], more].concat();
        let found = zellige(folder.path(), &[&arguments(&input, &keys, output)[..], &["--parts", parts]].concat());
        assert_eq!(found.code, 0, "{}", found.err);
    };
    run("3", "without", &[]);
    let fields = "pic.diagnostics.fields=[{what = [\"ex\", \"ey\", \"jx\", \"charge\"], every = 2}]";
    let dumps = [fields, "pic.diagnostics.particles=[{species = \"electrons\", limit = 2000000, every = 2}]"];
    run("1", "one", &dumps);
    run("3", "with", &dumps);
    assert!(files(&folder.path().join("one")) == files(&folder.path().join("with")));
    let file = std::fs::metadata(folder.path().join("with/openpmd/data_000002.h5")).unwrap().len();
    // Particles with two positions, three momenta and a weight in double precision, and four components.
    assert!(file > 1_200_000 * (48 + 16), "{file} bytes");
    let [with, without] = ["with", "without"].map(|output| sent(&folder.path().join(output)));
    for (with, without) in with.iter().zip(&without) {
        assert!(*with < without + file / 100, "{with} bytes sent, {without} without files of {file}");
    }
}

/// One process may not write far into a file, as on a full disk: all end, it is named, and no file has its name.
#[test]
fn a_process_that_cannot_write_its_particles_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("pic/kong.toml");
    let more = ["pic.steps=2", "pic.diagnostics.particles=[{species = \"electrons\", limit = 2000000, every = 1}]"];
    let keys = [&PLASMA[..], &more].concat();
    let limit = "if [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" = 1 ]; then ulimit -f 40000; fi;";
    for (k, mpirun) in launchers().into_iter().enumerate() {
        let output = format!("out{k}");
        let begun = Instant::now();
        let done = processes(&mpirun, 3, limit, &arguments(&input, &keys, &output), folder.path()).output().unwrap();
        let told = told(&done);
        assert!(!done.status.success() && begun.elapsed() < Duration::from_secs(60), "by {}: {told}", mpirun.maker);
        assert!(told.contains("part 1 on ") && told.contains("data_000000.h5"), "by {}: {told}", mpirun.maker);
        assert_eq!(names(&folder.path().join(output).join("openpmd")), Vec::<String>::new(), "by {}", mpirun.maker);
    }
}
