//! Vertex-centred regular grids whose last interval may be a fraction of the others, and the three-point operator of
//! each axis on them.
//!
//! Node `i` of an axis sits at `i h`, except that the last interval has the length `theta h` with `0 < theta <= 1`.
//! A user's grid has `theta = 1`; coarse grids of any size get a fraction there, so that no size is special.
//! On a periodic axis of `n` nodes the last interval leads from node `n - 1` back to node 0.
//!
//! The operator is `(A u)_i = west_i (u_{i-1} - u_i) + east_i (u_{i+1} - u_i)`, summed over the axes, with
//! `west = 2 / (hw (hw + he))` and `east = 2 / (he (hw + he))`. A Neumann end mirrors its neighbour; a Dirichlet end
//! is no unknown and its row is zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The condition on one side of the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "fixed": "dirichlet", "value": "dirichlet", "grounded": "dirichlet", "flux": "neumann", "gradient": "neumann", "insulated": "neumann", "zero_gradient": "neumann", "cyclic": "periodic" }))]
pub enum Bc {
    /// The value is given.
    Dirichlet,
    /// The outward derivative is given.
    Neumann,
    /// The axis closes on itself; both sides must say so.
    Periodic,
}

/// Least `theta` of a periodic coarse axis. Point relaxation hardly moves a pair of nodes that is tied by a shorter
/// interval; a period that is longer by a fraction of a coarse cell costs less: factors of 0.26 without it, 0.1 with it.
const SHORTEST: f64 = 0.25;

/// One axis of a grid level.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Number of nodes, ends included (periodic: each node once).
    pub nodes: usize,
    /// Interval length.
    pub h: f64,
    /// Length of the last interval over `h`.
    pub theta: f64,
    /// Control volume of the last node beyond its half interval, over `h`; only at a Neumann end of a coarse axis.
    pub tail: f64,
    /// Condition at node 0.
    pub lo: Bc,
    /// Condition at the last node.
    pub hi: Bc,
}

impl Axis {
    /// An axis of `length` with `nodes` nodes: `length / (nodes - 1)` apart, periodic `length / nodes`.
    pub fn new(nodes: usize, length: f64, lo: Bc, hi: Bc) -> Self {
        let intervals = if lo == Bc::Periodic { nodes } else { nodes - 1 };
        Self { nodes, h: length / intervals.max(1) as f64, theta: 1.0, tail: 0.0, lo, hi }
    }

    /// The third axis of a plane problem: one node without neighbours.
    pub fn flat() -> Self {
        Self { nodes: 1, h: 1.0, theta: 1.0, tail: 0.0, lo: Bc::Neumann, hi: Bc::Neumann }
    }

    /// Returns true for [`Axis::flat`].
    pub fn is_flat(&self) -> bool {
        self.nodes == 1
    }

    /// Returns true if the axis is periodic.
    pub fn periodic(&self) -> bool {
        self.lo == Bc::Periodic
    }

    /// Number of intervals.
    pub fn intervals(&self) -> usize {
        if self.periodic() { self.nodes } else { self.nodes - 1 }
    }

    /// Position of node `i` from node 0.
    pub fn position(&self, i: usize) -> f64 {
        if i > 0 && i == self.intervals() { (i as f64 - 1.0 + self.theta) * self.h } else { i as f64 * self.h }
    }

    /// First and one past the last node that is an unknown.
    pub fn unknowns(&self) -> std::ops::Range<usize> {
        usize::from(self.lo == Bc::Dirichlet)..self.nodes - usize::from(self.hi == Bc::Dirichlet)
    }

    /// Lengths of the intervals west and east of node `i`; `None` beyond an end.
    fn intervals_at(&self, i: usize) -> (Option<f64>, Option<f64>) {
        let last = self.theta * self.h;
        let n = self.intervals();
        let west = if i == 0 { self.periodic().then_some(last) } else { Some(if i == n { last } else { self.h }) };
        let east = if i == n { None } else { Some(if i == n - 1 { last } else { self.h }) };
        (west, east)
    }

    /// The operator's weights `(west, east)` at node `i`; zero where there is no neighbour or no unknown.
    pub fn weights(&self, i: usize) -> (f64, f64) {
        if self.is_flat() || !self.unknowns().contains(&i) {
            return (0.0, 0.0);
        }
        match self.intervals_at(i) {
            (Some(hw), Some(he)) => (2.0 / (hw * (hw + he)), 2.0 / (he * (hw + he))),
            (None, Some(he)) => (0.0, 2.0 / (he * he)),
            // The flux from the west over the node's own control volume.
            (Some(hw), None) => (1.0 / (hw * (0.5 * hw + self.tail * self.h)), 0.0),
            (None, None) => (0.0, 0.0),
        }
    }

    /// Length of the control volume of node `i`.
    pub fn volume(&self, i: usize) -> f64 {
        if self.is_flat() {
            return 1.0;
        }
        let (hw, he) = self.intervals_at(i);
        let beyond = if he.is_none() { self.tail * self.h } else { 0.0 };
        0.5 * (hw.unwrap_or(0.0) + he.unwrap_or(0.0)) + beyond
    }

    /// Returns true if a coarser axis would still have two intervals.
    pub fn can_coarsen(&self) -> bool {
        !self.is_flat() && self.intervals() >= if self.periodic() { 4 } else { 3 }
    }

    /// Returns true if the axis may shrink to a single node: its constant mode is then left to the other axes alone.
    fn can_collapse(&self) -> bool {
        !self.is_flat() && self.nodes <= 3 && self.lo != Bc::Dirichlet && self.hi != Bc::Dirichlet
    }

    /// Keeps every second node, and always the last one: the new last interval is `(1 + theta) / 2` or `theta / 2` of the new `h`.
    /// A periodic axis keeps it at a quarter of a cell or more. At a Neumann end a short interval would tie two nodes together that
    /// no point smoother parts from the rest: there an odd last node is dropped and its control volume added to the node before it.
    /// An axis that cannot be coarsened any further collapses to a single node, [`Axis::flat`].
    #[must_use]
    pub fn coarsen(&self) -> Self {
        if !self.can_coarsen() {
            return Self::flat();
        }
        let n = self.intervals();
        if self.hi == Bc::Neumann && n != 3 {
            let (intervals, tail) = if n.is_multiple_of(2) { (n / 2, 0.5 * self.tail) } else { (n / 2, 0.5 * (1.0 + self.tail)) };
            return Self { nodes: intervals + 1, h: 2.0 * self.h, theta: 1.0, tail, lo: self.lo, hi: self.hi };
        }
        let shortest = if self.periodic() { SHORTEST } else { 0.0 };
        let (intervals, theta) =
            if n.is_multiple_of(2) { (n / 2, 0.5 * (1.0 + self.theta)) } else { (n.div_ceil(2), (0.5 * self.theta).max(shortest)) };
        let nodes = if self.periodic() { intervals } else { intervals + 1 };
        Self { nodes, h: 2.0 * self.h, theta, tail: 0.5 * self.tail, lo: self.lo, hi: self.hi }
    }

    /// The fine node on which node `i` of `self.coarsen()` sits (not for a collapsing axis).
    pub fn fine_node(&self, i: usize) -> usize {
        (2 * i).min(self.nodes - 1)
    }
}

/// The transfer between an axis and its coarse axis, as tables over its nodes. With `coarsened == false` it is the identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// Marks an axis that is coarsened between the two levels.
    pub coarsened: bool,
    /// Coarse node west of (or at) each fine node.
    pub parent: Vec<u32>,
    /// Linear interpolation: weight of coarse node `parent`.
    pub west: Vec<f64>,
    /// Weight of coarse node `parent + 1` (periodic: wrapped).
    pub east: Vec<f64>,
    /// Fine node under each coarse node.
    pub child: Vec<u32>,
    /// Restriction weights of fine nodes `child - 1`, `child`, `child + 1` (periodic: wrapped).
    pub restrict: Vec<[f64; 3]>,
}

impl Transfer {
    /// Linear interpolation at the true positions and its volume-weighted transpose, `R = Vc^-1 P^T V`: full weighting
    /// `(1/4, 1/2, 1/4)` away from the ends, `(1/2, 1/2)` at a Neumann end. It keeps the integral of the residual, so
    /// that a singular problem stays solvable on every level.
    pub fn new(fine: &Axis, coarsened: bool) -> Self {
        let n = fine.nodes;
        if !coarsened {
            return Self {
                coarsened,
                parent: (0..n as u32).collect(),
                west: vec![1.0; n],
                east: vec![0.0; n],
                child: (0..n as u32).collect(),
                restrict: vec![[0.0, 1.0, 0.0]; n],
            };
        }
        let coarse = fine.coarsen();
        if coarse.is_flat() {
            return Self::collapse(fine);
        }
        let nc = coarse.nodes;
        let child: Vec<u32> = (0..nc).map(|i| fine.fine_node(i) as u32).collect();
        let (mut parent, mut west, mut east) = (vec![0_u32; n], vec![0.0; n], vec![0.0; n]);
        for i in 0..n {
            let p = (i / 2).min(nc - 1);
            // With an odd number of intervals the last node is a coarse node of its own.
            let p = if !fine.periodic() && i == n - 1 { nc - 1 } else { p };
            parent[i] = p as u32;
            // Beyond the last coarse node the correction is flat, as a Neumann end is.
            if child[p] as usize == i || (p == nc - 1 && fine.hi == Bc::Neumann) {
                west[i] = 1.0;
            } else {
                let (hw, he) = fine.intervals_at(i);
                let (hw, he) = (hw.unwrap_or(fine.h), he.unwrap_or(fine.h));
                west[i] = he / (hw + he);
                east[i] = hw / (hw + he);
            }
        }
        let mut restrict = vec![[0.0; 3]; nc];
        for i in 0..n {
            let p = parent[i] as usize;
            let v = fine.volume(i);
            if west[i] != 0.0 {
                let slot = if child[p] as usize == i { 1 } else { 2 };
                restrict[p][slot] += west[i] * v / coarse.volume(p);
            }
            if east[i] != 0.0 {
                let q = (p + 1) % nc;
                restrict[q][0] += east[i] * v / coarse.volume(q);
            }
        }
        Self { coarsened, parent, west, east, child, restrict }
    }

    /// Transfers from an axis of two or three nodes to a single one: interpolation of a constant, and the weighted mean.
    fn collapse(fine: &Axis) -> Self {
        let n = fine.nodes;
        let total: f64 = (0..n).map(|i| fine.volume(i)).sum();
        let share = |i: usize| fine.volume(i) / total;
        let restrict = if n == 3 { [share(0), share(1), share(2)] } else { [share(0), share(1), 0.0] };
        Self { coarsened: true, parent: vec![0; n], west: vec![1.0; n], east: vec![0.0; n], child: vec![1], restrict: vec![restrict] }
    }
}

/// A grid level: x, y, z, x contiguous in memory; a plane problem has a flat z.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The axes, x first.
    pub axes: [Axis; 3],
}

impl Grid {
    /// A plane grid.
    pub fn plane(x: Axis, y: Axis) -> Self {
        Self { axes: [x, y, Axis::flat()] }
    }

    /// Nodes per axis, x first.
    pub fn nodes(&self) -> [usize; 3] {
        [self.axes[0].nodes, self.axes[1].nodes, self.axes[2].nodes]
    }

    /// Number of nodes in all.
    pub fn len(&self) -> usize {
        self.nodes().iter().product()
    }

    /// Returns true if there are no nodes (never, for a checked grid).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of space dimensions.
    pub fn dimensions(&self) -> usize {
        self.axes.iter().filter(|a| !a.is_flat()).count()
    }

    /// Number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.axes.iter().map(|a| a.unknowns().len()).product()
    }

    /// Returns true if constants are in the null space: no side holds a value.
    pub fn singular(&self) -> bool {
        self.axes.iter().filter(|a| !a.is_flat()).all(|a| a.lo != Bc::Dirichlet && a.hi != Bc::Dirichlet)
    }

    /// Selects the axes to coarsen next: those whose spacing is within a factor 1.42 of the finest one that can still be coarsened
    /// (semicoarsening of stretched cells); `None` on the coarsest grid. In a thin domain, an axis that cannot be coarsened further
    /// and holds no value collapses once it is the finest: nothing would smooth its constant mode otherwise.
    pub fn coarsening(&self) -> Option<[bool; 3]> {
        let shrinks = |d: usize| {
            let others = (0..3).any(|o| o != d && self.axes[o].can_coarsen());
            self.axes[d].can_coarsen() || (others && self.axes[d].can_collapse())
        };
        let finest = (0..3).filter(|d| shrinks(*d)).map(|d| self.axes[d].h).fold(f64::INFINITY, f64::min);
        let mask = std::array::from_fn(|d| shrinks(d) && self.axes[d].h < 1.42 * finest);
        mask.contains(&true).then_some(mask)
    }

    /// The next coarser grid.
    #[must_use]
    pub fn coarsen(&self, mask: [bool; 3]) -> Self {
        Self { axes: std::array::from_fn(|d| if mask[d] { self.axes[d].coarsen() } else { self.axes[d].clone() }) }
    }

    /// Ratio of the largest spacing to the smallest over the axes that are not flat.
    pub fn stretch(&self) -> f64 {
        let h = || self.axes.iter().filter(|a| !a.is_flat()).map(|a| a.h);
        h().fold(0.0, f64::max) / h().fold(f64::INFINITY, f64::min)
    }
}

/// One level of the hierarchy with the transfer to the next coarser one.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The grid.
    pub grid: Grid,
    /// Transfers per axis; `None` on the coarsest level.
    pub transfer: Option<[Transfer; 3]>,
}

/// The hierarchy below `grid`, finest first, with at most `coarse_levels` coarser levels.
pub fn hierarchy(grid: &Grid, coarse_levels: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut grid = grid.clone();
    loop {
        match grid.coarsening().filter(|_| levels.len() < coarse_levels) {
            Some(mask) => {
                let coarse = grid.coarsen(mask);
                let transfer = std::array::from_fn(|d| Transfer::new(&grid.axes[d], mask[d]));
                levels.push(Level { grid: std::mem::replace(&mut grid, coarse), transfer: Some(transfer) });
            }
            None => {
                levels.push(Level { grid, transfer: None });
                return levels;
            }
        }
    }
}

/// Largest number of unknowns of the coarsest level of a cycle: any device solves it exactly at next to no cost.
const FEW: usize = 100;

/// The levels that cycles go through: [`hierarchy`] down to the first level below the finest that has few unknowns.
pub fn cycle_levels(grid: &Grid, coarse_levels: usize) -> Vec<Level> {
    let mut levels = hierarchy(grid, coarse_levels);
    if let Some(last) = (1..levels.len()).find(|l| levels[*l].grid.unknowns() <= FEW) {
        levels.truncate(last + 1);
        levels[last].transfer = None;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let mut all = Vec::new();
        for nodes in [3, 4, 5, 6, 9, 12, 33, 100] {
            for (lo, hi) in [
                (Bc::Dirichlet, Bc::Dirichlet),
                (Bc::Neumann, Bc::Neumann),
                (Bc::Dirichlet, Bc::Neumann),
                (Bc::Neumann, Bc::Dirichlet),
                (Bc::Periodic, Bc::Periodic),
            ] {
                let mut axis = Axis::new(nodes, 2.0, lo, hi);
                all.push(axis.clone());
                while axis.can_coarsen() {
                    axis = axis.coarsen();
                    all.push(axis.clone());
                }
            }
        }
        all
    }

    #[test]
    fn coarse_axes_keep_the_length() {
        for axis in axes() {
            let total: f64 = (0..axis.nodes).map(|i| axis.volume(i)).sum();
            // A sum of at most 100 lengths of order one; a period may have grown by a fraction of a cell.
            let grown = if axis.periodic() { 0.5 * axis.h } else { 1e-13 };
            assert!(total > 2.0 - 1e-13 && total < 2.0 + grown, "{axis:?}: {total}");
        }
    }

    #[test]
    fn weights_differentiate_parabolas_exactly() {
        for axis in axes().into_iter().filter(|a| !a.periodic()) {
            let u = |i: usize| axis.position(i).powi(2);
            for i in 1..axis.nodes - 1 {
                let (w, e) = axis.weights(i);
                let second = w * (u(i - 1) - u(i)) + e * (u(i + 1) - u(i));
                // Weights reach 2 / (theta h)^2 and multiply rounded differences.
                assert!((second - 2.0).abs() < 1e-9 * (w + e).max(1.0), "{axis:?} node {i}: {second}");
            }
        }
    }

    #[test]
    fn operator_is_symmetric_under_the_volumes() {
        for axis in axes() {
            for i in 0..axis.nodes {
                let j = (i + 1) % axis.nodes;
                if (j == 0 && !axis.periodic()) || !axis.unknowns().contains(&i) || !axis.unknowns().contains(&j) {
                    continue;
                }
                let (there, back) = (axis.volume(i) * axis.weights(i).1, axis.volume(j) * axis.weights(j).0);
                assert!((there - back).abs() <= 1e-13 * there, "{axis:?} between {i} and {j}");
            }
        }
    }

    #[test]
    fn interpolation_keeps_lines_and_restriction_keeps_integrals() {
        for fine in axes().into_iter().filter(|a| a.can_coarsen() || a.can_collapse()) {
            let (coarse, t) = (fine.coarsen(), Transfer::new(&fine, true));
            for i in 0..fine.nodes {
                let p = t.parent[i] as usize;
                assert!((t.west[i] + t.east[i] - 1.0).abs() < 1e-15);
                let wraps = p + 1 == coarse.nodes;
                // A node that was dropped at a Neumann end lies beyond the last coarse one and takes its value.
                let dropped = fine.hi == Bc::Neumann && t.child[coarse.nodes - 1] < i as u32;
                if !coarse.is_flat() && !dropped && (!wraps || t.east[i] == 0.0) {
                    let at = t.west[i] * coarse.position(p) + if wraps { 0.0 } else { t.east[i] * coarse.position(p + 1) };
                    assert!((at - fine.position(i)).abs() < 1e-14, "{fine:?} node {i}");
                }
            }
            let length: f64 = (0..fine.nodes).map(|i| fine.volume(i)).sum();
            let volume = |c: usize| if coarse.is_flat() { length } else { coarse.volume(c) };
            // sum_I Vc_I (R r)_I = sum_i V_i r_i for any r: test the columns one by one.
            let mut column = vec![0.0; fine.nodes];
            for (c, weights) in t.restrict.iter().enumerate() {
                for (slot, w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
                    let i = (t.child[c] as usize + fine.nodes + slot - 1) % fine.nodes;
                    column[i] += w * volume(c);
                }
            }
            for (i, sum) in column.iter().enumerate() {
                assert!((sum - fine.volume(i)).abs() < 1e-14, "{fine:?} node {i}");
            }
        }
    }

    #[test]
    fn stretched_grids_coarsen_the_short_spacing_first() {
        let (x, y) = (Axis::new(65, 1.0, Bc::Dirichlet, Bc::Dirichlet), Axis::new(65, 10.0, Bc::Dirichlet, Bc::Dirichlet));
        let grid = Grid::plane(x, y);
        assert_eq!(grid.coarsening(), Some([true, false, false]));
        let levels = hierarchy(&grid, usize::MAX);
        assert!(levels.last().is_some_and(|l| l.grid.coarsening().is_none()));
        assert!(levels.len() > 6);
    }

    #[test]
    fn thin_domains_collapse_across_and_go_on_along() {
        for bc in [Bc::Neumann, Bc::Periodic] {
            let grid = Grid::plane(Axis::new(5, 0.04, bc, bc), Axis::new(1025, 10.24, Bc::Dirichlet, Bc::Dirichlet));
            let levels = hierarchy(&grid, usize::MAX);
            assert_eq!(levels.last().unwrap().grid.nodes(), [1, 3, 1], "{bc:?}");
        }
        let square = Grid::plane(Axis::new(65, 1.0, Bc::Neumann, Bc::Neumann), Axis::new(65, 1.0, Bc::Neumann, Bc::Neumann));
        assert_eq!(hierarchy(&square, usize::MAX).last().unwrap().grid.nodes(), [3, 3, 1]);
    }

    #[test]
    fn cycles_end_on_the_first_level_with_few_unknowns() {
        let square =
            |n: usize| Grid::plane(Axis::new(n, 1.0, Bc::Dirichlet, Bc::Dirichlet), Axis::new(n, 1.0, Bc::Dirichlet, Bc::Dirichlet));
        for (n, most, expected) in
            [(257, usize::MAX, vec![257, 129, 65, 33, 17, 9]), (257, 2, vec![257, 129, 65]), (9, usize::MAX, vec![9, 5])]
        {
            let levels = cycle_levels(&square(n), most);
            assert_eq!(levels.iter().map(|l| l.grid.nodes()[0]).collect::<Vec<_>>(), expected);
            assert!(levels.last().is_some_and(|l| l.transfer.is_none()));
        }
    }
}
