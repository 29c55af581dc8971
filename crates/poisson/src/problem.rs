//! The problem as physics states it, and as the solvers take it.
//!
//! A [`Problem`] is `u_xx + u_yy (+ u_zz) = rho` on a box with a condition on each side. [`Problem::fold`] turns it into
//! the linear system `A u = f` of the grid: Dirichlet values stand on their nodes of `u`, Neumann fluxes are moved into
//! `f`, and what is left is homogeneous.
//!
//! * Neumann: the node beyond a side is mirrored, `u(-1) = u(1) + 2 h g` with `g` the outward derivative, so that
//!   `f = rho - 2 g / h` on the side's nodes; where two Neumann sides meet both terms are taken off.
//! * A node shared by a Dirichlet side and a Neumann side is a Dirichlet node.
//! * A node shared by two Dirichlet sides takes the value of the x side before the y side before the z side, and of the
//!   upper side before the lower one. No equation reads such a node: the choice is seen in the output only.
//! * Without any Dirichlet side the problem is singular: it has a solution only if the volume-weighted mean of `f` is
//!   zero. That mean, the imbalance, is taken off `f` and reported.

use std::borrow::Cow;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::parallel::position;

use crate::grid::{Axis, Bc, Grid, Level, cycle_levels};

/// The number formats of the solution and of the work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-synonyms" = { "single": "f32", "float": "f32", "float32": "f32", "fp32": "f32", "double": "f64", "float64": "f64", "fp64": "f64" }))]
pub enum Precision {
    /// Single precision throughout: fastest, with a residual floor near `0.04 eps N^2` for N intervals per side.
    F32,
    /// Double precision throughout.
    F64,
    /// Double, the cycle single: the answer of `f64` at nearly the cost of `f32`.
    #[default]
    Mixed,
}

impl Precision {
    /// Rounding unit of the solution and residual.
    pub fn eps(self) -> f64 {
        if self == Self::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
    }

    /// Bytes of a value of the solution.
    pub fn outer_bytes(self) -> u64 {
        if self == Self::F32 { 4 } else { 8 }
    }

    /// Bytes of a value of the correction.
    pub fn inner_bytes(self) -> u64 {
        if self == Self::F64 { 8 } else { 4 }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Mixed => "mixed",
        })
    }
}

/// Input of the constructors of the backends.
#[derive(Debug, Clone, PartialEq)]
pub struct StageSetup {
    /// The cycle_levels, finest first; its last entry has no transfer.
    pub levels: Vec<Level>,
    /// Number format.
    pub precision: Precision,
    /// Keeps `u_l` and `f_l` on coarse levels too (full multigrid).
    pub full: bool,
}

impl StageSetup {
    /// The hierarchy below `grid` with at most `coarse_levels` coarser levels.
    pub fn new(grid: &Grid, coarse_levels: usize, precision: Precision, full: bool) -> Self {
        Self { levels: cycle_levels(grid, coarse_levels), precision, full }
    }

    /// The finest grid.
    pub fn grid(&self) -> &Grid {
        &self.levels[0].grid
    }
}

/// Values along one side, over its nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum SideValues<'a> {
    /// One value for the whole side.
    Constant(f64),
    /// One value per node of the side, the lower of its two axes fastest: an x side holds `values[j + N k]`, a y side
    /// `values[i + M k]`, a z side `values[i + M j]` for M, N nodes in x, y.
    Nodes(Cow<'a, [f64]>),
}

impl SideValues<'_> {
    fn borrowed(&self) -> SideValues<'_> {
        match self {
            Self::Constant(c) => SideValues::Constant(*c),
            Self::Nodes(v) => SideValues::Nodes(Cow::Borrowed(v)),
        }
    }

    /// The value at node `n` of the side.
    pub fn at(&self, n: usize) -> f64 {
        match self {
            Self::Constant(c) => *c,
            Self::Nodes(v) => v[n],
        }
    }
}

/// The condition on one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// Type of boundary condition.
    pub bc: Bc,
    /// Values of `u` (Dirichlet) or of its outward derivative (Neumann); not read on a periodic side.
    pub values: SideValues<'a>,
}

impl<'a> Side<'a> {
    /// Borrows this side with its values.
    fn borrowed(&self) -> Side<'_> {
        Side { bc: self.bc, values: self.values.borrowed() }
    }

    /// Copies this side with values of its own.
    pub(crate) fn to_own(&self) -> Side<'static> {
        let values = match &self.values {
            SideValues::Constant(c) => SideValues::Constant(*c),
            SideValues::Nodes(v) => SideValues::Nodes(Cow::Owned(v.to_vec())),
        };
        Side { bc: self.bc, values }
    }

    /// `u = value`.
    pub fn dirichlet(value: f64) -> Self {
        Self { bc: Bc::Dirichlet, values: SideValues::Constant(value) }
    }

    /// `u` given per node of the side, in the order of [`SideValues::Nodes`].
    pub fn dirichlet_nodes(values: impl Into<Cow<'a, [f64]>>) -> Self {
        Self { bc: Bc::Dirichlet, values: SideValues::Nodes(values.into()) }
    }

    /// `du/dn = slope`, n outward.
    pub fn neumann(slope: f64) -> Self {
        Self { bc: Bc::Neumann, values: SideValues::Constant(slope) }
    }

    /// `du/dn` given per node of the side, in the order of [`SideValues::Nodes`].
    pub fn neumann_nodes(slopes: impl Into<Cow<'a, [f64]>>) -> Self {
        Self { bc: Bc::Neumann, values: SideValues::Nodes(slopes.into()) }
    }

    /// The axis closes on itself; the opposite side must say so too.
    pub fn periodic() -> Self {
        Self { bc: Bc::Periodic, values: SideValues::Constant(0.0) }
    }
}

/// `u_xx + u_yy (+ u_zz) = rho` on a box. Arrays are in C order with x fastest: `rho[i + M (j + N k)]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem<'a> {
    /// Nodes per axis, x first; z has 1 in the plane. Sides are nodes; a periodic axis counts each node once.
    pub nodes: [usize; 3],
    /// Length per axis; a periodic axis has its period.
    pub size: [f64; 3],
    /// Conditions, `[axis][lower, upper]`; the z pair is not read in the plane.
    pub sides: [[Side<'a>; 2]; 3],
    /// The right-hand side over all nodes; not read on Dirichlet nodes.
    pub rhs: Cow<'a, [f64]>,
    /// A first guess over all nodes; zero without one.
    pub guess: Option<Cow<'a, [f64]>>,
    /// Singular problems: the mean of `u`, weighted by control volumes.
    pub mean: f64,
}

const AXES: [&str; 3] = ["x", "y", "z"];
const ENDS: [&str; 2] = ["lo", "hi"];

impl<'a> Problem<'a> {
    /// A plane problem with `u = 0` on all sides.
    pub fn plane(nodes: [usize; 2], size: [f64; 2], rhs: impl Into<Cow<'a, [f64]>>) -> Self {
        Self::space([nodes[0], nodes[1], 1], [size[0], size[1], 1.0], rhs)
    }

    /// A problem in space with `u = 0` on all sides.
    pub fn space(nodes: [usize; 3], size: [f64; 3], rhs: impl Into<Cow<'a, [f64]>>) -> Self {
        let zero = || [Side::dirichlet(0.0), Side::dirichlet(0.0)];
        Self { nodes, size, sides: [zero(), zero(), zero()], rhs: rhs.into(), guess: None, mean: 0.0 }
    }

    /// View of the problem that borrows its values.
    pub(crate) fn view(&self) -> Problem<'_> {
        let guess = self.guess.as_deref().map(Cow::Borrowed);
        Problem { nodes: self.nodes, size: self.size, sides: self.sides.clone(), rhs: Cow::Borrowed(&self.rhs), guess, mean: self.mean }
    }

    /// Sets the conditions of both sides of an axis, 0 for x.
    #[must_use]
    pub fn sides(mut self, axis: usize, lower: Side<'a>, upper: Side<'a>) -> Self {
        self.sides[axis] = [lower, upper];
        self
    }

    /// Closes an axis on itself, 0 for x.
    #[must_use]
    pub fn periodic(self, axis: usize) -> Self {
        self.sides(axis, Side::periodic(), Side::periodic())
    }

    /// Starts from a guess over all nodes (warm start).
    #[must_use]
    pub fn guess(mut self, guess: impl Into<Cow<'a, [f64]>>) -> Self {
        self.guess = Some(guess.into());
        self
    }

    /// Sets the mean that a singular problem's solution gets.
    #[must_use]
    pub fn mean(mut self, mean: f64) -> Self {
        self.mean = mean;
        self
    }

    /// The finest grid. Meaningful once [`Problem::check`] finds nothing.
    pub fn grid(&self) -> Grid {
        Grid {
            axes: std::array::from_fn(|d| {
                let [lo, hi] = &self.sides[d];
                if d == 2 && self.nodes[2] == 1 { Axis::flat() } else { Axis::new(self.nodes[d], self.size[d], lo.bc, hi.bc) }
            }),
        }
    }

    /// Nodes of a side of axis `d`: the two other axes, lower first.
    fn side_nodes(&self, d: usize) -> [usize; 2] {
        match d {
            0 => [self.nodes[1], self.nodes[2]],
            1 => [self.nodes[0], self.nodes[2]],
            _ => [self.nodes[0], self.nodes[1]],
        }
    }

    /// Finds every fault of the statement.
    pub fn check(&self) -> Vec<Fault> {
        self.faults(None, true)
    }

    /// Refuses faults of the statement; the values of the right-hand side are not read.
    pub(crate) fn check_statement(&self) -> Result<()> {
        refuse(self.faults(None, false))
    }

    /// Borrows this problem with its arrays.
    pub(crate) fn borrowed(&self) -> Problem<'_> {
        Problem {
            nodes: self.nodes,
            size: self.size,
            sides: self.sides.each_ref().map(|pair| pair.each_ref().map(Side::borrowed)),
            rhs: Cow::Borrowed(&self.rhs),
            guess: self.guess.as_deref().map(Cow::Borrowed),
            mean: self.mean,
        }
    }

    /// Finds faults of the statement, of values over all nodes those in `range`, if one is given; those of the right-hand side are
    /// read or not.
    pub(crate) fn faults(&self, range: Option<Range<usize>>, rhs: bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        let dimensions = if self.nodes[2] == 1 { 2 } else { 3 };
        for d in 0..dimensions {
            let axis = AXES[d];
            if self.nodes[d] < 3 {
                faults.push(Fault::new(format!("nodes.{axis}"), format!("{} nodes", self.nodes[d])).allowed("3 or more"));
            }
            if !(self.size[d].is_finite() && self.size[d] > 0.0) {
                faults.push(Fault::new(format!("size.{axis}"), format!("the length is {}", self.size[d])).allowed("finite and above 0"));
            }
            let [lo, hi] = &self.sides[d];
            if (lo.bc == Bc::Periodic) != (hi.bc == Bc::Periodic) {
                faults.push(
                    Fault::new(format!("sides.{axis}"), "one side is periodic and the other is not")
                        .hint("make both sides periodic, or neither"),
                );
            }
            let expected: usize = self.side_nodes(d).iter().product();
            for (side, end) in self.sides[d].iter().zip(ENDS) {
                let path = format!("sides.{axis}_{end}");
                match &side.values {
                    SideValues::Constant(c) if !c.is_finite() => {
                        faults.push(Fault::new(path, format!("the value is {c}")).allowed("finite numbers"));
                    }
                    SideValues::Nodes(v) => {
                        faults.extend(array_fault(&path, v, 0..v.len(), expected, &self.side_nodes(d)[..dimensions - 1]));
                    }
                    SideValues::Constant(_) => {}
                }
            }
        }
        let Some(len) = self.nodes.iter().try_fold(1_usize, |a, n| a.checked_mul(*n)) else {
            faults.push(Fault::new("nodes", "more nodes than memory can count"));
            return faults;
        };
        let range = range.unwrap_or(0..len);
        if rhs || self.rhs.len() != len {
            faults.extend(array_fault("rhs", &self.rhs, range.clone(), len, &self.nodes[..dimensions]));
        }
        if let Some(guess) = &self.guess {
            faults.extend(array_fault("guess", guess, range, len, &self.nodes[..dimensions]));
        }
        if !self.mean.is_finite() {
            faults.push(Fault::new("mean", format!("the mean is {}", self.mean)).allowed("finite numbers"));
        } else if self.mean != 0.0 && self.sides[..dimensions].iter().flatten().any(|side| side.bc == Bc::Dirichlet) {
            faults.push(mean_fault());
        }
        faults
    }
}

/// The faults as an error, if there are any.
pub(crate) fn refuse(faults: Vec<Fault>) -> Result<()> {
    if faults.is_empty() { Ok(()) } else { Err(Error::Input { origin: "the problem".into(), problems: faults }) }
}

/// A mean that nothing would make of it.
pub(crate) fn mean_fault() -> Fault {
    Fault::new("mean", "a side has Dirichlet values, which determine the mean of the solution")
        .hint("leave it out, or give no side `u` itself")
}

/// A wrong length or the first value of a range that is not finite.
pub(crate) fn array_fault(path: &str, values: &[f64], range: Range<usize>, expected: usize, nodes: &[usize]) -> Option<Fault> {
    let shape = || nodes.iter().rev().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if values.len() != expected {
        let message = format!("{} values where the shape ({}) needs {expected}", values.len(), shape());
        return Some(Fault::new(path, message).hint("arrays cover all nodes, sides included, x fastest"));
    }
    let first = range.start + position(&values[range], |v| !v.is_finite())?;
    let mut rest = first;
    let place: Vec<_> = nodes
        .iter()
        .map(|n| {
            let i = rest % n;
            rest /= n;
            i.to_string()
        })
        .collect();
    let message = format!(
        "the value at index ({}) of the shape ({}) is {}",
        place.into_iter().rev().collect::<Vec<_>>().join(", "),
        shape(),
        values[first]
    );
    Some(Fault::new(path, message).allowed("finite numbers"))
}

#[cfg(test)]
mod tests;
