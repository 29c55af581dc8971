//! Conversion of the input to the problem: arrays filled from numbers, expressions and files, every value checked.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::expr::{Column, Expr};
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks_mut, each, items_mut, position};
use zellige_io::source::{SourceFile, tuple};

use crate::config::{Config, FileSource, Source};
use crate::fold::copy;
use crate::grid::{Axis, Bc, Grid};
use crate::problem::{Problem, Side, SideValues};
use crate::stages::HostShare;

/// The problem that a checked input states. `folder` is where relative file names start.
pub fn problem(config: &Config, folder: &Path) -> Result<Problem<'static>> {
    problem_in(config, folder, &HostShare::whole(&grid(config)))
}

/// The problem with values on the slabs that a part of a run holds.
pub(crate) fn problem_in(config: &Config, folder: &Path, share: &HostShare) -> Result<Problem<'static>> {
    let mut all = Nodes::all(config);
    all.held = share.held(all.len());
    let rhs = fill(config, "rhs", &config.rhs, &all, None, folder)?;
    let guess = config.guess.as_ref().map(|g| fill(config, "guess", g, &all, None, folder)).transpose()?;
    let mut problem = bare(config, rhs);
    for (d, end) in every_side(config) {
        problem.sides[d][end] = side(config, d, end, None, folder)?;
    }
    if let Some(guess) = guess {
        problem = problem.guess(guess);
    }
    Ok(problem)
}

/// The problem without its sides and its guess.
fn bare<'a>(config: &Config, rhs: impl Into<Cow<'a, [f64]>>) -> Problem<'a> {
    let at = |v: &[usize], d: usize| v.get(d).copied().unwrap_or(1);
    let nodes = [0, 1, 2].map(|d| at(&config.grid.nodes, d));
    let size = [0, 1, 2].map(|d| config.grid.size.get(d).copied().unwrap_or(1.0));
    Problem::space(nodes, size, rhs).mean(config.mean)
}

/// Axis and end of every side.
fn every_side(config: &Config) -> impl Iterator<Item = (usize, usize)> {
    (0..config.dimensions()).flat_map(|d| [(d, 0), (d, 1)])
}

/// The right-hand sides of a batch, with guesses and sides that are theirs or the same for all.
pub(crate) struct BatchProblems {
    count: usize,
    nodes: usize,
    /// All but what differs.
    common: Problem<'static>,
    /// One set of values, or one for each, one behind the other.
    rhs: Vec<f64>,
    guess: Option<Vec<f64>>,
    sides: Vec<(usize, usize, Vec<f64>)>,
}

/// Selects the part that belongs to number `k` of `values`, `len` of which are for all or for each.
fn own(values: &[f64], len: usize, k: usize) -> &[f64] {
    if values.len() == len { values } else { &values[k * len..][..len] }
}

impl BatchProblems {
    /// Number of right-hand sides.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All right-hand sides, or the one that they have in common.
    pub(crate) fn rhs(&self) -> &[f64] {
        &self.rhs
    }

    /// Problem `k`.
    pub(crate) fn of(&self, k: usize) -> Problem<'_> {
        let Problem { nodes, size, ref sides, mean, .. } = self.common;
        let guess = self.guess.as_ref().map(|guess| own(guess, self.nodes, k).into());
        let mut problem = Problem { nodes, size, sides: sides.clone(), rhs: own(&self.rhs, self.nodes, k).into(), guess, mean };
        for (d, end, values) in &self.sides {
            problem.sides[*d][*end].values = SideValues::Nodes(own(values, self.nodes / nodes[*d], k).into());
        }
        problem
    }
}

/// The problems that a checked input states, `count` of them, with values on the slabs that a part of a run holds.
pub(crate) fn problems(config: &Config, count: usize, folder: &Path, share: &HostShare) -> Result<BatchProblems> {
    let (mut all, batch) = (Nodes::all(config), Some(count));
    all.held = share.held(all.len());
    let rhs = fill(config, "rhs", &config.rhs, &all, batch, folder)?;
    let guess = config.guess.as_ref().map(|g| fill(config, "guess", g, &all, batch, folder)).transpose()?;
    let (mut common, mut sides) = (bare(config, Vec::new()), Vec::new());
    for (d, end) in every_side(config) {
        let mut side = side(config, d, end, batch, folder)?;
        if let SideValues::Nodes(values) = &mut side.values {
            sides.push((d, end, std::mem::take(values.to_mut())));
        }
        common.sides[d][end] = side;
    }
    Ok(BatchProblems { count, nodes: all.len(), common, rhs, guess, sides })
}

/// Right-hand sides of the batch that an input states, if it is one: by its own word, or by a stack in the file.
pub fn batch(config: &Config, folder: &Path) -> Result<Option<usize>> {
    let Source::File(source) = &config.rhs else { return Ok(config.batch) };
    if config.batch.is_some() {
        return Ok(config.batch);
    }
    let from = source_file("rhs", source, folder)?;
    let shape = from.shape()?;
    match shape.split_first() {
        Some((0, rest)) if rest == Nodes::all(config).shape => Err(input(from.problem("holds a stack of no right-hand side"))),
        Some((count, rest)) if rest == Nodes::all(config).shape => Ok(Some(*count)),
        _ => Ok(None),
    }
}

/// Checks the files that the input names, except their values: missing or damaged files and other shapes are reported before a run
/// begins.
pub fn check_files(config: &Config, folder: &Path) -> Result<()> {
    let batch = batch(config, folder)?;
    let look = |path: &str, source: Option<&Source>, nodes: &dyn Fn() -> Nodes| match source {
        Some(Source::File(source)) => {
            let from = source_file(path, source, folder)?;
            must_fit(&from, &from.shape()?, &nodes(), batch)
        }
        _ => Ok(()),
    };
    look("rhs", Some(&config.rhs), &|| Nodes::all(config))?;
    look("guess", config.guess.as_ref(), &|| Nodes::all(config))?;
    for (d, end) in every_side(config) {
        let side = config.boundary.side(d, end);
        look(&side.path, side.values, &|| Nodes::side(config, d, end))?;
    }
    Ok(())
}

/// The finest grid of a checked input.
pub fn grid(config: &Config) -> Grid {
    let axis = |d: usize| {
        let [lo, hi] = [0, 1].map(|end| config.boundary.side(d, end).bc);
        Axis::new(config.grid.nodes[d], config.grid.size[d], lo, hi)
    };
    Grid { axes: [axis(0), axis(1), if config.dimensions() == 2 { Axis::flat() } else { axis(2) }] }
}

fn side(config: &Config, d: usize, end: usize, batch: Option<usize>, folder: &Path) -> Result<Side<'static>> {
    let side = config.boundary.side(d, end);
    let values = match side.values {
        None => SideValues::Constant(0.0),
        Some(Source::Number(value)) => SideValues::Constant(*value),
        Some(source) => SideValues::Nodes(fill(config, &side.path, source, &Nodes::side(config, d, end), batch, folder)?.into()),
    };
    Ok(Side { bc: side.bc, values })
}

/// Coordinates of a set of nodes that is a product of axes, and those of them that have values here.
struct Nodes {
    /// Coordinates per axis, x first; one of them on a side; z has one in the plane.
    coordinates: [Vec<f64>; 3],
    /// Shape in C order, as a file must have it.
    shape: Vec<usize>,
    /// Numbers of the nodes with values: whole slabs.
    held: Range<usize>,
}

impl Nodes {
    fn all(config: &Config) -> Self {
        let axes = config.dimensions();
        let coordinates = [0, 1, 2].map(|d| if d < axes { coordinates(config, d) } else { vec![0.0] });
        let held = 0..coordinates.iter().map(Vec::len).product();
        Self { coordinates, shape: config.grid.nodes.iter().rev().copied().collect(), held }
    }

    fn side(config: &Config, d: usize, end: usize) -> Self {
        let mut all = Self::all(config);
        let last = all.coordinates[d].len() - 1;
        all.coordinates[d] = vec![all.coordinates[d][if end == 0 { 0 } else { last }]];
        all.shape.remove(config.dimensions() - 1 - d);
        all.held = 0..all.len();
        all
    }

    fn len(&self) -> usize {
        self.coordinates.iter().map(Vec::len).product()
    }
}

fn coordinates(config: &Config, d: usize) -> Vec<f64> {
    let origin = config.grid.origin.get(d).copied().unwrap_or(0.0);
    let (n, h) = (config.grid.nodes[d], config.spacing(d));
    let periodic = config.boundary.side(d, 0).bc == Bc::Periodic;
    // The last node sits on the far side exactly.
    (0..n).map(|i| origin + if i + 1 == n && !periodic { config.grid.size[d] } else { i as f64 * h }).collect()
}

/// Values over `nodes`, x fastest, all of them finite: once, or in a batch for each right-hand side where they differ.
fn fill(config: &Config, path: &str, source: &Source, nodes: &Nodes, batch: Option<usize>, folder: &Path) -> Result<Vec<f64>> {
    match source {
        Source::Number(value) => {
            let mut values = zeros(nodes.len());
            if value.to_bits() != 0 {
                each(items_mut(&mut values[nodes.held.clone()]), |_, v| *v = *value);
            }
            Ok(values)
        }
        Source::Expression(text) => {
            let expression =
                Expr::parse_with(text, &config.variables(), &config.constants()).map_err(|e| input(e.problem(absolute(path))))?;
            let dimensions = config.dimensions();
            let counts = config.batch.is_some() && expression.uses(dimensions);
            let mut values = zeros(nodes.len() * if counts { batch.unwrap_or(1) } else { 1 });
            for (k, values) in values.chunks_mut(nodes.len()).enumerate() {
                evaluate(&expression, dimensions, nodes, k, values);
                if let Some(place) = not_finite(values, nodes) {
                    return Err(input(place.fault(path, dimensions, counts.then_some(k))));
                }
            }
            Ok(values)
        }
        Source::File(source) => file(path, source, nodes, batch, folder),
    }
}

/// The values of an expression for right-hand side `k`.
fn evaluate(expression: &Expr, dimensions: usize, nodes: &Nodes, k: usize, values: &mut [f64]) {
    let [x, y, z] = &nodes.coordinates;
    let first = nodes.held.start / x.len();
    each(chunks_mut(&mut values[nodes.held.clone()], x.len()), |row, out| {
        let row = first + row;
        let mut columns =
            [Column::Values(x), Column::Constant(y[row % y.len()]), Column::Constant(z[row / y.len()]), Column::Constant(0.0)];
        columns[dimensions] = Column::Constant(k as f64);
        expression.eval_many(&columns[..=dimensions], out);
    });
}

/// A value that cannot be used, and where.
struct InvalidValue {
    value: f64,
    index: [usize; 3],
    at: [f64; 3],
}

impl InvalidValue {
    fn fault(&self, path: &str, dimensions: usize, k: Option<usize>) -> Fault {
        let index: Vec<_> = self.index[..dimensions].iter().map(ToString::to_string).collect();
        let at: Vec<_> = ["x", "y", "z"].iter().zip(&self.at[..dimensions]).map(|(name, x)| format!("{name} = {x}")).collect();
        let of = k.map_or(String::new(), |k| format!(" for k = {k}"));
        Fault::new(absolute(path), format!("the value at node ({}), {}, is {}{of}", index.join(", "), at.join(", "), self.value))
            .allowed("finite numbers")
            .hint("`if(condition, value, otherwise)` keeps an expression away from a pole")
    }
}

fn not_finite(values: &[f64], nodes: &Nodes) -> Option<InvalidValue> {
    let n = nodes.held.start + position(&values[nodes.held.clone()], |v| !v.is_finite())?;
    let [x, y, z] = &nodes.coordinates;
    let index = [n % x.len(), n / x.len() % y.len(), n / (x.len() * y.len())];
    Some(InvalidValue { value: values[n], index, at: [x[index[0]], y[index[1]], z[index[2]]] })
}

/// The array of a file, held against the nodes.
fn file(path: &str, source: &FileSource, nodes: &Nodes, batch: Option<usize>, folder: &Path) -> Result<Vec<f64>> {
    let from = source_file(path, source, folder)?;
    let shape = from.shape()?;
    must_fit(&from, &shape, nodes, batch)?;
    if nodes.held.len() == nodes.len() {
        return Ok(from.array()?.values);
    }
    if shape != nodes.shape {
        // Of a stack one array after the other.
        let mut values = zeros(shape[0] * nodes.len());
        for (k, values) in values.chunks_mut(nodes.len()).enumerate() {
            copy(&from.rows(k..k + 1)?[nodes.held.clone()], &mut values[nodes.held.clone()]);
        }
        return Ok(values);
    }
    let slab = nodes.len() / shape[0];
    let mut values = zeros(nodes.len());
    copy(&from.rows(nodes.held.start / slab..nodes.held.end / slab)?, &mut values[nodes.held.clone()]);
    Ok(values)
}

/// Refuses an array whose shape is neither that of the nodes nor that of a stack of them.
fn must_fit(from: &SourceFile, shape: &[usize], nodes: &Nodes, batch: Option<usize>) -> Result<()> {
    let stacked: Option<Vec<usize>> = batch.map(|count| std::iter::once(count).chain(nodes.shape.iter().copied()).collect());
    if shape == nodes.shape || stacked.as_deref() == Some(shape) {
        return Ok(());
    }
    let or = stacked.map_or(String::new(), |stacked| format!(" or {}", tuple(&stacked)));
    let mut fault = from.problem(format!("has the shape {}, expected {}{or}", tuple(shape), tuple(&nodes.shape)));
    fault = fault.hint("arrays are in C order with x fastest: y before x in the shape, z before y");
    if shape.iter().rev().eq(&nodes.shape) && shape.len() > 1 {
        fault = fault.hint("the axes are the other way round: save the transposed array");
    } else if batch.is_none() && shape.split_first().is_some_and(|(_, rest)| rest == nodes.shape) {
        fault = fault.hint("a stack belongs to a batch: say with `batch` how many right-hand sides there are, or give a stack of them");
    }
    Err(input(fault))
}

/// The file of a source at `path`.
fn source_file(path: &str, source: &FileSource, folder: &Path) -> Result<SourceFile> {
    SourceFile::new(format!("{}.file", absolute(path)), &source.file, folder)
}

/// A path in the solver's table as the input file has it.
fn absolute(path: &str) -> String {
    format!("poisson.{path}")
}

fn input(fault: Fault) -> Error {
    Error::input("the input", fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Boundary, DirichletConfig, NeumannConfig, SideConfig};

    fn expression(text: &str) -> Source {
        Source::Expression(text.into())
    }

    fn refusal(config: &Config, folder: &Path) -> Fault {
        match problem(config, folder) {
            Err(Error::Input { mut problems, .. }) => problems.remove(0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn expressions_fill_rows_sides_and_constants() {
        let mut config = Config::new(vec![4, 3], vec![3.0, 4.0], expression("x + 10*y + 100*lx + 1000*hy"));
        config.grid.origin = vec![1.0, -1.0];
        config.boundary = Boundary {
            x_hi: Some(SideConfig::Dirichlet(DirichletConfig { dirichlet: expression("x + y") })),
            y: Some(SideConfig::Neumann(NeumannConfig { neumann: expression("y*x") })),
            ..Boundary::default()
        };
        let problem = problem(&config, Path::new(".")).unwrap();
        let expected: Vec<f64> = (0..12).map(|n| 1.0 + (n % 4) as f64 + 10.0 * (2.0 * (n / 4) as f64 - 1.0) + 2300.0).collect();
        assert_eq!(problem.rhs, expected);
        assert_eq!(problem.sides[0][1], Side::dirichlet_nodes(vec![3.0, 5.0, 7.0]));
        assert_eq!(problem.sides[1][0], Side::neumann_nodes(vec![-1.0, -2.0, -3.0, -4.0]));
        assert_eq!(problem.sides[1][1], Side::neumann_nodes(vec![3.0, 6.0, 9.0, 12.0]));
        assert_eq!(problem.sides[0][0], Side::dirichlet(0.0));
        assert_eq!(problem.grid(), grid(&config));
        assert!(problem.check().is_empty());
    }

    #[test]
    fn space_has_a_third_axis_everywhere() {
        let mut config = Config::new(vec![3, 4, 5], vec![2.0, 3.0, 4.0], expression("x + 10*y + 100*z"));
        config.boundary.z_hi = Some(SideConfig::Dirichlet(DirichletConfig { dirichlet: expression("x + y + z") }));
        config.boundary.x = Some(SideConfig::Kind(Bc::Periodic));
        let problem = problem(&config, Path::new(".")).unwrap();
        assert_eq!(problem.rhs[2 + 3 * (1 + 4 * 4)], 2.0 * 2.0 / 3.0 + 10.0 + 400.0);
        let SideValues::Nodes(top) = &problem.sides[2][1].values else { panic!() };
        assert_eq!((top.len(), top[3 * 3]), (12, 7.0));
        assert!(problem.check().is_empty());
    }

    #[test]
    fn values_that_are_not_finite_have_a_place() {
        let config = Config::new(vec![5, 3], vec![4.0, 2.0], expression("1/(x - 2) + y"));
        let fault = refusal(&config, Path::new("."));
        assert_eq!(fault.path, "poisson.rhs");
        assert!(fault.message.contains("node (2, 0), x = 2, y = 0, is inf"), "{fault}");
    }

    #[test]
    fn files_must_have_the_shape_and_be_finite() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, shape: &[usize], values: Vec<f64>| {
            zellige_io::npy::write(folder.path().join(name), shape, &zellige_engine::record::Values::F64(values)).unwrap();
        };
        write("good.npy", &[3, 4], (0..12).map(f64::from).collect());
        write("turned.npy", &[4, 3], vec![0.0; 12]);
        write("nan.npy", &[3, 4], (0..12).map(|i| if i == 7 { f64::NAN } else { 0.0 }).collect());
        let config = |name: &str| Config::new(vec![4, 3], vec![1.0, 1.0], Source::File(FileSource { file: name.into() }));
        let good = problem(&config("good.npy"), folder.path()).unwrap();
        assert_eq!(good.rhs[5], 5.0);
        let turned = refusal(&config("turned.npy"), folder.path());
        assert!(turned.message.contains("(4, 3), expected (3, 4)") && turned.hint.unwrap().contains("transposed"), "{}", turned.message);
        let nan = refusal(&config("nan.npy"), folder.path());
        assert!(nan.message.contains("NaN at index (1, 3)"), "{nan}");
        assert!(refusal(&config("rho.txt"), folder.path()).allowed.unwrap().contains("npy"));
        let absent = refusal(&config("absent.npy"), folder.path());
        assert!(absent.path == "poisson.rhs.file" && absent.message.contains("cannot read") && absent.hint.is_some(), "{absent}");
    }

    /// Compares with the messages of a check that reads no values, as a dry run does.
    #[test]
    fn damaged_and_missing_files_are_named_with_their_key_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let field = |name: &str, shape: &[usize]| {
            let values = zellige_engine::record::Values::F64(vec![0.5; shape.iter().product()]);
            zellige_io::npy::write(folder.path().join(name), shape, &values).unwrap();
        };
        field("good.npy", &[3, 4]);
        field("side.npy", &[3]);
        field("turned.npy", &[4, 3]);
        let whole = std::fs::read(folder.path().join("good.npy")).unwrap();
        std::fs::write(folder.path().join("short.npy"), &whole[..whole.len() - 9]).unwrap();
        std::fs::write(folder.path().join("note.h5"), "no HDF5 at all").unwrap();
        let file = |name: &str| Source::File(FileSource { file: name.into() });
        let side = |name: &str| Some(SideConfig::Dirichlet(DirichletConfig { dirichlet: file(name) }));
        let good = || {
            let mut config = Config::new(vec![4, 3], vec![1.0, 1.0], file("good.npy"));
            config.boundary = Boundary { x_lo: side("side.npy"), ..Boundary::default() };
            config
        };
        check_files(&good(), folder.path()).unwrap();
        let cases: [(&str, &str, &str); 5] = [
            ("short.npy", "poisson.rhs.file", "needs 96 bytes of data, 87 are there"),
            ("turned.npy", "poisson.rhs.file", "has the shape (4, 3), expected (3, 4)"),
            ("absent.npy", "poisson.rhs.file", "cannot read"),
            ("note.h5:/rho", "poisson.rhs.file", "is not a valid HDF5 file"),
            ("good.npy", "poisson.boundary.x_lo.dirichlet.file", "has the shape (3, 4), expected (3)"),
        ];
        for (name, key, words) in cases {
            let mut config = good();
            if key.contains("rhs") {
                config.rhs = file(name);
            } else {
                config.boundary.x_lo = side(name);
            }
            let Err(Error::Input { problems, .. }) = check_files(&config, folder.path()) else { panic!("{name}") };
            assert!(problems[0].path == key && problems[0].message.contains(words), "{name}: {}", problems[0]);
            assert_eq!(refusal(&config, folder.path()), problems[0], "{name}");
        }
    }
}
