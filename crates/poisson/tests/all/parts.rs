//! Runs in several parts: the same solution, history of residuals and checkpoints, bit for bit.

use std::path::Path;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::config::{Format, Source};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::links::inside;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Axis, Centring, Field, Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing::parts::{model_tells_the_traffic, same_in_parts};
use zellige_io::{hdf5, npy};
use zellige_poisson::config::FileSource;
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

/// `auto` takes cycles in parts, and one part goes on with them where it would take the direct solver itself.
#[test]
fn what_parts_began_by_cycles_goes_on_so_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.zck");
    let environment = || Ok(Environment::new(Device::Cpu(Cpu::new(1)?), folder.path(), 1));
    let config = input(&[129, 257], "tolerance = 1e-9");
    let finished = |poisson: &mut Poisson| {
        while poisson.outcome().is_none() {
            poisson.step(&mut Profiler::off())?;
        }
        Ok(poisson.clock().step)
    };
    let whole = inside::run(3, |links| {
        let mut poisson = Poisson::setup(&config, &environment()?.of_part(links.clone()))?;
        poisson.step(&mut Profiler::off())?;
        let mut writer = Writer::of_parts(&links, &path, Poisson::NAME)?;
        poisson.save(&mut writer)?;
        writer.finish()?;
        let steps = finished(&mut poisson)?;
        Ok((steps, poisson.records()?.into_iter().map(|record| record.joined(&links)).collect::<Result<Vec<_>, _>>()?))
    });
    let (steps, records) = whole.unwrap().remove(0);
    let mut one = Poisson::setup(&config, &environment().unwrap()).unwrap();
    one.restore(&Reader::open(&path, Poisson::NAME).unwrap()).unwrap();
    assert!(steps > 2 && finished(&mut one).unwrap() == steps && one.records().unwrap() == records);
    // The direct solver ends with its step; several parts do not take up what it left.
    let mut one = Poisson::setup(&config, &environment().unwrap()).unwrap();
    assert_eq!(finished(&mut one).unwrap(), 1);
    let mut writer = Writer::create(&path, Poisson::NAME).unwrap();
    one.save(&mut writer).unwrap();
    writer.finish().unwrap();
    let refused = inside::run(2, |links| {
        let mut poisson = Poisson::setup(&config, &environment()?.of_part(links))?;
        Ok(poisson.restore(&Reader::open(&path, Poisson::NAME)?).unwrap_err().to_string())
    });
    assert!(refused.unwrap()[0].contains("resume it in one part"));
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
