//! Large records of runs in parts: each part writes what it has.

use std::path::Path;
use std::time::{Duration, Instant};

use zellige_engine::testing::mpi::launchers;

use crate::checkpoints::{processes, told};
use crate::common::{names, zellige};
use crate::parts::{arguments, example, files};

/// A plasma of 1.2 million cells with a particle each, twice as many as its pictures have pixels.
const PLASMA: [&str; 4] =
    ["pic.grid.cells=[2400, 500]", "pic.grid.size=[240.0, 50.0]", "pic.species.0.particles_per_cell=1", "pic.diagnostics.fields=[]"];
/// Two records of several components, which take more than 4 MiB, and one of one.
const FIELDS: &str = "pic.diagnostics.fields=[{what = [\"ex\", \"ey\", \"jx\", \"charge\"], every = 2}]";
/// Pixels of the picture of a field, in double precision.
const PICTURE: u64 = 8 * 1210 * 252;

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
    let formats = "output.formats=[\"npy\", \"vti\", \"hdf5\", \"png\"]";
    let dumps = [FIELDS, formats, "pic.diagnostics.particles=[{species = \"electrons\", limit = 2000000, every = 2}]"];
    run("1", "one", &dumps);
    run("3", "with", &dumps);
    assert!(files(&folder.path().join("one")) == files(&folder.path().join("with")));
    let file = std::fs::metadata(folder.path().join("with/openpmd/data_000002.h5")).unwrap().len();
    // Particles with two positions, three momenta and a weight in double precision, and four components.
    assert!(file > 1_200_000 * (48 + 16), "{file} bytes");
    let [with, without] = ["with", "without"].map(|output| sent(&folder.path().join(output)));
    for (with, without) in with.iter().zip(&without) {
        // Of pictures, four at the beginning and at the end, a part sends the pixels of its rows.
        assert!(*with < without + 8 * PICTURE / 2 + file / 100, "{with} bytes sent, {without} without files of {file}");
    }
}

/// Files in the formats of an input that names none are those of one part.
#[test]
fn pictures_are_made_of_the_pixels_of_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("pic/kong.toml");
    let keys = [&PLASMA[..], &["pic.steps=2", FIELDS]].concat();
    let run = |parts: &str, output: &str| {
        let found = zellige(folder.path(), &[&arguments(&input, &keys, output)[..], &["--parts", parts]].concat());
        assert_eq!(found.code, 0, "{}", found.err);
        files(&folder.path().join(output))
    };
    let one = run("1", "one");
    let pictures = one.iter().filter(|(name, _)| name.ends_with("_000002.png")).count();
    assert!(pictures == 4 && one.iter().any(|(name, _)| name == "openpmd/data_000002.h5"), "{pictures} pictures");
    for parts in ["2", "4"] {
        assert!(run(parts, parts) == one, "{parts} parts write other files");
    }
    for (k, mpirun) in launchers().into_iter().enumerate() {
        let output = format!("mpi{k}");
        let done = processes(&mpirun, 2, "", &arguments(&input, &keys, &output), folder.path()).output().unwrap();
        assert!(done.status.success(), "by {}: {}", mpirun.maker, told(&done));
        assert!(files(&folder.path().join(&output)) == one, "2 processes by {} write other files", mpirun.maker);
    }
}

/// Each part writes its slabs of a potential: one that may not is named.
#[test]
fn a_potential_goes_from_each_part_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("poisson/dipole.toml");
    let formats = "output.formats=[\"npy\", \"vti\", \"hdf5\", \"png\"]";
    let keys = ["poisson.grid.nodes=[2048, 2048]", "poisson.tolerance=1e-2", formats];
    for (parts, output) in [("1", "one"), ("3", "three")] {
        let found = zellige(folder.path(), &[&arguments(&input, &keys, output)[..], &["--parts", parts]].concat());
        assert_eq!(found.code, 0, "{}", found.err);
    }
    assert!(files(&folder.path().join("one")) == files(&folder.path().join("three")));
    // 33 MB of doubles, of which only the first part may write more than 20.
    let limit = "if [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" = 1 ]; then ulimit -f 20000; fi;";
    for (k, mpirun) in launchers().into_iter().enumerate() {
        let output = format!("out{k}");
        let done = processes(&mpirun, 2, limit, &arguments(&input, &keys, &output), folder.path()).output().unwrap();
        let told = told(&done);
        assert!(!done.status.success() && told.contains("part 1 on "), "by {}: {told}", mpirun.maker);
        assert!(!folder.path().join(output).join("solution.npy").exists(), "by {}", mpirun.maker);
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
