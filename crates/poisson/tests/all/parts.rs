//! Runs in several parts: the same solution, history of residuals and checkpoints, bit for bit.

use std::path::Path;

use zellige_engine::config::{Format, Source};
use zellige_engine::testing::parts::{model_tells_the_traffic, same_in_parts};
use zellige_poisson::{Config, Poisson};

/// An input in two or three dimensions; `more` are keys of its table.
pub(crate) fn input(nodes: &[usize], more: &str) -> Config {
    let size: Vec<f64> = nodes.iter().map(|n| *n as f64 / 100.0).collect();
    let text = format!("[poisson]\nrhs = \"sin(3*x) * exp(y) + x*y\"\n{more}\n[poisson.grid]\nnodes = {nodes:?}\nsize = {size:?}\n");
    Source::parse(&text, Format::Toml, "input").unwrap().typed::<Poisson>().unwrap().config
}

fn same(name: &str, nodes: &[usize], more: &str) {
    same_in_parts::<Poisson>(name, &input(nodes, more), Path::new("."), &[2, 3, 4, 8], 2);
}

pub(crate) const GIVEN: &str = "boundary = { all = { dirichlet = \"x - y\" } }";

#[test]
fn cycles_in_the_plane() {
    for (name, keys) in [
        ("v", "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9"),
        ("w", "method = \"multigrid\"\ncycle = \"w\"\nprecision = \"f32\"\ntolerance = 1e-5"),
        ("f", "method = \"multigrid\"\ncycle = \"f\"\npre = 3\npost = 2\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("c", "method = \"multigrid\"\ncycle = \"c\"\nprecision = \"f64\"\ntolerance = 1e-6"),
        ("chebyshev", "method = \"multigrid\"\nsmoother = \"chebyshev\"\npre = 4\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("fmg", "method = \"fmg\"\nprecision = \"mixed\"\ntolerance = 1e-11"),
    ] {
        same(name, &[200, 385], &format!("{keys}\n{GIVEN}"));
    }
}

#[test]
fn relaxations_of_the_solution() {
    for (name, keys) in [
        ("sor", "method = \"sor\"\nprecision = \"f64\"\ntolerance = 1e-2"),
        ("jacobi", "method = \"jacobi\"\nprecision = \"f32\"\ntolerance = 0.2"),
        ("chebyshev sweeps", "method = \"chebyshev\"\nprecision = \"f64\"\ntolerance = 1e-4"),
    ] {
        same(name, &[130, 301], &format!("{keys}\n{GIVEN}"));
    }
}

#[test]
fn sides_and_axes() {
    let multigrid = "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9\nboundary = ";
    same("singular", &[260, 259], &format!("{multigrid}{{ all = \"neumann\" }}"));
    same("periodic", &[256, 301], &format!("{multigrid}{{ all = \"periodic\" }}"));
    same("mixed sides", &[200, 330], &format!("{multigrid}{{ x = \"periodic\", y_lo = \"neumann\", y_hi = {{ dirichlet = \"x\" }} }}"));
}

#[test]
fn space() {
    for (name, nodes, keys) in [
        ("space", [33, 40, 129], "method = \"multigrid\"\nprecision = \"mixed\"\ntolerance = 1e-9"),
        ("space by full multigrid", [48, 33, 97], "method = \"fmg\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("space by relaxation", [33, 33, 65], "method = \"sor\"\nprecision = \"f64\"\ntolerance = 1e-3"),
    ] {
        same(name, &nodes, &format!("{keys}\n{GIVEN}"));
    }
}

/// Small problems are worked on by all parts alike.
#[test]
fn examples() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/poisson"));
    for name in ["channel.toml", "neumann.toml", "periodic.toml"] {
        let mut config = Source::read(folder.join(name)).unwrap().typed::<Poisson>().unwrap().config;
        config.method = zellige_poisson::method::Method::Multigrid;
        same_in_parts::<Poisson>(name, &config, folder, &[3, 8], 2);
    }
}

/// Messages as a dry run tells them are those that parts send in a cycle.
#[test]
fn the_model_tells_the_traffic() {
    for (name, nodes, keys) in [
        ("v", &[257, 513][..], "method = \"multigrid\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("space", &[65, 65, 129], "method = \"multigrid\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("sor", &[257, 257], "method = \"sor\"\nprecision = \"f64\"\ntolerance = 1e-10"),
    ] {
        model_tells_the_traffic::<Poisson>(name, &input(nodes, &format!("{keys}\n{GIVEN}")), Path::new("."), &[2, 4], 3, [2.0, 2.5]);
    }
}
