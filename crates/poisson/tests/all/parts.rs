//! Runs in several parts: the same solution, history of residuals and checkpoints, bit for bit.

use std::path::Path;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::config::{Format, Source};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_engine::links::{Links, inside};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Axis, Centring, Field, Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing::parts::{model_tells_the_traffic, same_in_parts};
use zellige_io::{hdf5, npy};
use zellige_poisson::config::FileSource;
use zellige_poisson::estimate::axis_to_swap;
use zellige_poisson::{Config, Poisson};

/// An input in two or three dimensions; `more` are keys of its table.
pub(crate) fn input(nodes: &[usize], more: &str) -> Config {
    let size: Vec<f64> = nodes.iter().map(|n| *n as f64 / 100.0).collect();
    // Other values on every slab.
    let rhs = if nodes.len() == 2 { "sin(3*x) * exp(y) + x*y" } else { "sin(3*x) * exp(y - z) + x*y" };
    let text = format!("[poisson]\nrhs = \"{rhs}\"\n{more}\n[poisson.grid]\nnodes = {nodes:?}\nsize = {size:?}\n");
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

/// Sweeps on the direct solution go on until they reach rounding.
#[test]
fn direct_solutions_in_the_plane() {
    let direct = "method = \"direct\"\ntolerance = 0.0\n";
    for (name, nodes, keys) in [
        ("direct", [200, 385], format!("precision = \"f64\"\n{GIVEN}")),
        ("direct f32", [130, 301], format!("precision = \"f32\"\n{GIVEN}")),
        ("direct with a guess", [130, 301], format!("guess = \"x*y\"\n{GIVEN}")),
        ("direct singular", [260, 259], "boundary = { all = \"neumann\" }".into()),
        ("direct periodic", [256, 301], "boundary = { all = \"periodic\" }".into()),
        ("direct mixed", [200, 331], "boundary = { x = \"periodic\", y_lo = \"neumann\", y_hi = { dirichlet = \"x\" } }".into()),
        ("direct channel", [201, 330], "boundary = { x_lo = { dirichlet = \"y\" }, x_hi = \"neumann\", y = \"periodic\" }".into()),
        ("direct from below", [150, 256], "boundary = { x = \"neumann\", y_lo = { dirichlet = \"x\" }, y_hi = \"neumann\" }".into()),
    ] {
        same_in_parts::<Poisson>(name, &input(&nodes, &format!("{direct}{keys}")), Path::new("."), &[2, 3, 4, 8], 1);
    }
}

#[test]
fn direct_solutions_in_space() {
    let direct = "method = \"direct\"\ntolerance = 0.0\n";
    for (name, nodes, keys) in [
        ("direct space", [33, 40, 129], format!("precision = \"f64\"\n{GIVEN}")),
        ("direct space periodic", [32, 24, 97], "precision = \"f32\"\nboundary = { all = \"periodic\" }".into()),
        ("direct space singular", [40, 33, 80], "boundary = { x = \"periodic\", y = \"neumann\", z = \"neumann\" }".into()),
    ] {
        same_in_parts::<Poisson>(name, &input(&nodes, &format!("{direct}{keys}")), Path::new("."), &[2, 3, 4, 8], 1);
    }
}

/// Axes whose sizes are awkward for transforms change places with the last one: slabs of one axis become slabs of another.
#[test]
fn direct_solutions_of_awkward_sizes() {
    let direct = "method = \"direct\"\ntolerance = 0.0\n";
    for (name, nodes, parts, swapped) in [
        ("direct awkward", &[384, 257][..], &[2, 3, 8][..], 0),
        ("direct awkward f32", &[384, 321], &[2, 4], 0),
        ("direct awkward x", &[108, 33, 65], &[2, 4], 0),
        ("direct awkward y", &[33, 108, 65], &[2, 3, 8], 1),
        // Too few nodes along it for eight parts, whose slabs of the grid are enough.
        ("direct awkward few", &[60, 257], &[2, 8], 0),
    ] {
        let precision = if name.ends_with("f32") { "precision = \"f32\"\n" } else { "" };
        let config =
            input(nodes, &format!("{direct}{precision}boundary = {{ all = {{ dirichlet = \"x - y\" }}, {y} }}", y = "y_hi = \"neumann\""));
        assert_eq!(axis_to_swap(&zellige_poisson::setup::grid(&config), false), Some(swapped), "{name}");
        same_in_parts::<Poisson>(name, &config, Path::new("."), parts, 1);
    }
}

/// `auto` takes in parts what it takes in one.
#[test]
fn the_automatic_choice() {
    for (name, nodes, keys) in [
        ("auto", &[129, 257][..], "tolerance = 0.0"),
        ("auto from a guess", &[129, 257], "tolerance = 0.0\nguess = \"x*y\""),
        ("auto space", &[33, 33, 65], "tolerance = 0.0"),
    ] {
        same_in_parts::<Poisson>(name, &input(nodes, &format!("{keys}\n{GIVEN}")), Path::new("."), &[2, 3, 4], 1);
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

/// Parts read their rows of files; what they begin from and when they end is that of the whole.
#[test]
fn files_guesses_and_the_truncation_error() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = [130, 301];
    let values: Vec<f64> = (0..nodes[0] * nodes[1]).map(|n| (n as f64 * 0.37).sin()).collect();
    npy::write(folder.path().join("rho.npy"), &[nodes[1], nodes[0]], &Values::F64(values.clone())).unwrap();
    let axes = [0, 1].map(|d| Axis::bare(d, 0.0, 0.01, nodes[d])).to_vec();
    let guess = Record::Field(Field::bare("guess", axes, Centring::Node, Values::F64(values)));
    hdf5::write(folder.path().join("guess.h5"), &[guess]).unwrap();
    for (name, keys) in [
        ("files", "method = \"multigrid\"\nguess = { file = \"guess.h5:/guess\" }\ntolerance = 1e-9"),
        ("guess in the plane", "method = \"multigrid\"\nguess = \"x*y\"\nprecision = \"f64\"\ntolerance = 1e-10"),
        ("truncation", "method = \"fmg\"\npre = 1\npost = 0\nsmoother = \"jacobi\"\ntolerance = \"truncation\""),
    ] {
        let mut config = input(&nodes, &format!("{keys}\n{GIVEN}"));
        if name == "files" {
            config.rhs = zellige_poisson::config::Source::File(FileSource { file: "rho.npy".into() });
        }
        same_in_parts::<Poisson>(name, &config, folder.path(), &[2, 3, 4], 1);
    }
}

/// Records of all parts together.
fn whole_records(poisson: &mut Poisson, links: &Links) -> Result<Vec<Record>> {
    poisson.records()?.into_iter().map(|record| record.joined(links)).collect()
}

/// Parts on GPUs take cycles for `auto`, and any number of parts goes on with them where it would take the direct solver itself.
#[test]
fn what_was_begun_by_cycles_goes_on_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.zck");
    let environment = || Ok(Environment::new(Device::Cpu(Cpu::new(1)?), folder.path(), 1));
    let [cycles, auto] = ["method = \"fmg\"\n", ""].map(|method| input(&[129, 257], &format!("{method}tolerance = 1e-9")));
    let finished = |poisson: &mut Poisson| {
        while poisson.outcome().is_none() {
            poisson.step(&mut Profiler::off())?;
        }
        Ok(poisson.clock().step)
    };
    let whole = inside::run(3, |links| {
        let mut poisson = Poisson::setup(&cycles, &environment()?.of_part(links.clone()))?;
        poisson.step(&mut Profiler::off())?;
        let mut writer = Writer::of_parts(&links, &path, Poisson::NAME)?;
        poisson.save(&mut writer)?;
        writer.finish()?;
        let steps = finished(&mut poisson)?;
        Ok((steps, whole_records(&mut poisson, &links)?))
    });
    let (steps, records) = whole.unwrap().remove(0);
    assert!(steps > 2);
    for parts in [1, 2] {
        let found = inside::run(parts, |links| {
            let mut poisson = Poisson::setup(&auto, &environment()?.of_part(links.clone()))?;
            poisson.restore(&Reader::open(&path, Poisson::NAME)?)?;
            let steps = finished(&mut poisson)?;
            Ok((steps, whole_records(&mut poisson, &links)?))
        });
        assert!(found.unwrap().remove(0) == (steps, records.clone()), "{parts}");
    }
    // The direct solver, which is their own choice, ends with its step.
    let mut one = Poisson::setup(&auto, &environment().unwrap()).unwrap();
    assert_eq!(finished(&mut one).unwrap(), 1);
}

/// A value that a part alone has is named by its place in the whole.
#[test]
fn a_value_that_is_not_finite_is_named_by_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut values = vec![0.0; 130 * 301];
    values[130 * 290 + 7] = f64::NAN;
    npy::write(folder.path().join("rho.npy"), &[301, 130], &Values::F64(values)).unwrap();
    let mut of_file = input(&[130, 301], "method = \"multigrid\"");
    of_file.rhs = zellige_poisson::config::Source::File(FileSource { file: "rho.npy".into() });
    let mut of_expression = input(&[130, 301], "method = \"multigrid\"");
    of_expression.rhs = zellige_poisson::config::Source::Expression("log(2.8 - y)".into());
    for (config, words) in [(of_file, "holds NaN at index (290, 7)"), (of_expression, "the value at node (0, 280), x = 0, y = 2.8")] {
        let environment = || Ok(Environment::new(Device::Cpu(Cpu::new(1)?), folder.path(), 1));
        let said = inside::run(3, |links| {
            Ok(Poisson::setup(&config, &environment()?.of_part(links.clone())).err().map_or_else(String::new, |error| error.to_string()))
        });
        let said = said.unwrap();
        assert!(said.iter().all(|error| error.contains(words)), "{said:?}");
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

/// Those of a direct solution, which is one step.
#[test]
fn the_model_tells_the_traffic_of_direct_solutions() {
    let environment = || Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 7);
    for (name, nodes, keys) in [
        ("plane", &[257, 513][..], "boundary = { all = \"periodic\" }"),
        ("space", &[65, 65, 129], "boundary = { x = \"periodic\" }"),
        ("awkward", &[384, 321], ""),
    ] {
        let config = input(nodes, &format!("method = \"direct\"\n{keys}"));
        for parts in [2, 4] {
            let sent = inside::run(parts, |links| {
                let mut poisson = Poisson::setup(&config, &environment().of_part(links.clone()))?;
                let before = links.traffic();
                poisson.step(&mut Profiler::off())?;
                Ok(links.traffic().since(before))
            });
            let sent = sent.unwrap();
            let most = [sent.iter().map(|s| s.messages).max(), sent.iter().map(|s| s.bytes).max()].map(|most| most.unwrap() as f64);
            let division = Poisson::divide(&config, &environment(), &Poisson::plan(&config, &environment()).unwrap(), parts).unwrap();
            for (found, told) in most.into_iter().zip([division.messages, division.bytes]) {
                assert!((0.7..1.4).contains(&(told / found)), "{name} in {parts} parts: {most:?}, by the model {division:?}");
            }
        }
    }
}

/// The right-hand sides of a batch one after the other, each by all parts; by cycles a checkpoint is of one half done.
#[test]
fn batches() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = [97, 161];
    let values: Vec<f64> = (0..3 * nodes[0] * nodes[1]).map(|n| (n as f64 * 0.37).sin()).collect();
    npy::write(folder.path().join("stack.npy"), &[3, nodes[1], nodes[0]], &Values::F64(values)).unwrap();
    for (name, keys, early) in [
        ("batch", "batch = 5\nboundary = { x_lo = { dirichlet = \"k*y\" }, y = \"neumann\" }", 2),
        ("batch of singular problems", "batch = 4\nprecision = \"f32\"\nboundary = { all = \"periodic\" }", 1),
        ("batch by cycles", "batch = 3\nmethod = \"multigrid\"\nguess = \"x*k\"\nboundary = { all = \"neumann\" }", 6),
        ("batch of a file", "", 1),
    ] {
        let mut config = input(&nodes, keys);
        config.rhs = match name {
            "batch of a file" => zellige_poisson::config::Source::File(FileSource { file: "stack.npy".into() }),
            _ => zellige_poisson::config::Source::Expression("sin(3*x + k) * exp(y)".into()),
        };
        same_in_parts::<Poisson>(name, &config, folder.path(), &[2, 3, 4], early);
    }
}
