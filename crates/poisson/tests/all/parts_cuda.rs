//! Runs in several parts on one GPU: the same solution, history of residuals and checkpoints as in one, bit for bit. Skipped
//! without a GPU.

use std::panic::catch_unwind;
use std::path::Path;
use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::links::inside;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing::{self, parts::same_in_parts_of_a_gpu};
use zellige_poisson::Poisson;

use crate::parts::{GIVEN, input};

/// Compares all cases, each a name, nodes and keys of the input, before it fails.
fn same<const D: usize>(cases: &[(&str, [usize; D], &str)], common: &str, parts: &[usize]) {
    if testing::gpu().is_none() {
        return;
    }
    let differs = |(name, nodes, keys): &(&str, [usize; D], &str)| {
        let config = input(nodes, &format!("{keys}\n{common}"));
        let compare = || same_in_parts_of_a_gpu::<Poisson>(name, &config, Path::new("."), parts, 2);
        let begun = Instant::now();
        let differs = catch_unwind(compare).is_err();
        println!("{name}: {} in {:.1} s", if differs { "differs" } else { "same bits" }, begun.elapsed().as_secs_f64());
        differs
    };
    let which: Vec<&str> = cases.iter().filter(|case| differs(case)).map(|case| case.0).collect();
    assert!(which.is_empty(), "{which:?}");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn space_in_parts_of_a_gpu() {
    let cases = [
        ("space v f32", [65, 72, 161], "method = \"multigrid\"\nprecision = \"f32\"\ntolerance = 1e-5"),
        ("space v mixed", [80, 65, 257], "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9"),
        ("space v f64", [65, 66, 130], "method = \"multigrid\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("space w f64", [65, 65, 129], "method = \"multigrid\"\ncycle = \"w\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("space f f32", [97, 65, 129], "method = \"multigrid\"\ncycle = \"f\"\npre = 3\npost = 2\nprecision = \"f32\"\ntolerance = 1e-5"),
        ("space c f64", [65, 65, 129], "method = \"multigrid\"\ncycle = \"c\"\nprecision = \"f64\"\ntolerance = 1e-5"),
        ("space sor f64", [65, 65, 129], "method = \"sor\"\nprecision = \"f64\"\ntolerance = 1e-3"),
    ];
    same(&cases, GIVEN, &[2, 3, 8]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn smoothers_in_parts_of_a_gpu() {
    let cases = [
        ("jacobi", [65, 65, 129], "method = \"jacobi\"\nprecision = \"f32\"\ntolerance = 0.3"),
        ("chebyshev sweeps", [65, 65, 129], "method = \"chebyshev\"\nprecision = \"f64\"\ntolerance = 1e-2"),
        (
            "chebyshev cycles",
            [65, 65, 129],
            "method = \"multigrid\"\nsmoother = \"chebyshev\"\npre = 3\nprecision = \"f64\"\ntolerance = 1e-8",
        ),
    ];
    same(&cases, GIVEN, &[2, 4]);
    let cases = [("jacobi cycles", [130, 385], "method = \"multigrid\"\nsmoother = \"jacobi\"\nprecision = \"mixed\"\ntolerance = 1e-6")];
    same(&cases, GIVEN, &[2, 4]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sides_in_parts_of_a_gpu() {
    let multigrid = "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9";
    let cases = [
        ("space singular", [65, 66, 129], "boundary = { all = \"neumann\" }"),
        ("space periodic", [64, 64, 128], "boundary = { all = \"periodic\" }"),
        ("space periodic, odd", [64, 64, 129], "boundary = { all = \"periodic\" }"),
        (
            "space across",
            [64, 65, 128],
            "boundary = { x = \"periodic\", y_lo = \"neumann\", y_hi = { dirichlet = \"x\" }, z = \"neumann\" }",
        ),
    ];
    same(&cases, multigrid, &[2, 3]);
    let cases = [
        ("plane singular", [260, 513], "boundary = { all = \"neumann\" }"),
        ("plane periodic", [256, 512], "boundary = { all = \"periodic\" }"),
        ("plane across", [256, 430], "boundary = { x = \"periodic\", y_lo = \"neumann\", y_hi = { dirichlet = \"x\" } }"),
    ];
    same(&cases, multigrid, &[2, 3]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn plane_in_parts_of_a_gpu() {
    let cases = [
        ("v f64", [513, 1025], "method = \"multigrid\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("v f32", [1025, 2049], "method = \"multigrid\"\nprecision = \"f32\"\ntolerance = 1e-5"),
        ("v mixed", [600, 801], "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9"),
        ("w f64", [300, 1025], "method = \"multigrid\"\ncycle = \"w\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("f mixed", [257, 1000], "method = \"multigrid\"\ncycle = \"f\"\npre = 3\npost = 2\nprecision = \"mixed\"\ntolerance = 1e-9"),
        ("sor f32", [257, 1025], "method = \"sor\"\nprecision = \"f32\"\ntolerance = 1e-2"),
        ("sor f64", [301, 777], "method = \"sor\"\nprecision = \"f64\"\ntolerance = 1e-2"),
    ];
    same(&cases, GIVEN, &[2, 3, 8]);
}

/// Right-hand sides go down and solutions come up level by level: by one kernel a level here, by passes that march in the plane.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn full_multigrid_of_space_in_parts_of_a_gpu() {
    let cases = [
        ("fmg space f64", [65, 66, 129], "precision = \"f64\"\ntolerance = 1e-10"),
        ("fmg space mixed", [97, 65, 161], "precision = \"mixed\"\ntolerance = 1e-9"),
    ];
    same(&cases, &format!("method = \"fmg\"\n{GIVEN}"), &[2, 3, 8]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn full_multigrid_of_planes_in_parts_of_a_gpu() {
    let cases = [
        ("fmg mixed", [600, 801], "precision = \"mixed\"\ntolerance = 1e-9"),
        ("fmg f64", [300, 1026], "precision = \"f64\"\ntolerance = 1e-10"),
        ("fmg w f64", [257, 1025], "cycle = \"w\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("fmg c f64", [257, 1025], "cycle = \"c\"\nprecision = \"f64\"\ntolerance = 1e-6"),
    ];
    same(&cases, &format!("method = \"fmg\"\n{GIVEN}"), &[2, 3, 8]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sides_of_full_multigrid_in_parts_of_a_gpu() {
    let cases = [
        ("fmg singular", [260, 513], "boundary = { all = \"neumann\" }"),
        ("fmg periodic", [256, 512], "boundary = { all = \"periodic\" }"),
        ("fmg across", [256, 515], "boundary = { x = \"periodic\", y_lo = \"neumann\", y_hi = { dirichlet = \"x\" } }"),
    ];
    same(&cases, "method = \"fmg\"\nprecision = \"mixed\"\ntolerance = 1e-9", &[2, 4]);
}

/// Prints times of a cycle in 1, 2, 4 and 8 parts on the GPUs that there are.
#[test]
#[ignore = "takes long; needs a GPU"]
fn times_of_parts_of_gpus() {
    if testing::gpu().is_none() {
        return;
    }
    let gpus = Cuda::count().unwrap();
    for (nodes, precision) in [(&[513, 513, 513][..], "f32"), (&[257, 257, 257], "f32"), (&[8193, 8193], "f32"), (&[4097, 4097], "f32")] {
        let keys = format!("method = \"multigrid\"\nprecision = \"{precision}\"\ntolerance = 1e-5");
        let config = input(nodes, &keys);
        for parts in [1, 2, 4, 8] {
            let times = inside::run(parts, |links| {
                // Parts have the GPUs in turns.
                let device = Device::Cuda(Cuda::open(links.rank() % gpus)?);
                let mut solver = Poisson::setup(&config, &Environment::new(device, ".", 7).of_part(links.clone()))?;
                let mut profiler = Profiler::off();
                for _ in 0..3 {
                    solver.step(&mut profiler)?;
                }
                links.all_say(&())?;
                let (begun, cycles) = (Instant::now(), 20);
                for _ in 0..cycles {
                    solver.step(&mut profiler)?;
                }
                Ok(begun.elapsed().as_secs_f64() / f64::from(cycles))
            });
            println!("{nodes:?} {precision}, {parts} parts on {gpus} GPUs: {:.4} ms a cycle", 1e3 * times.unwrap()[0]);
        }
    }
}
