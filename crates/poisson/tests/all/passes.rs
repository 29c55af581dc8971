//! The passes of the CPU against the definition spelt out node by node, bit for bit: for every boundary condition, size,
//! thread count and instruction set.

use crate::common::{self, noise};
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::real::{Isa, RealScalar};
use zellige_poisson::grid::{Axis, Bc, Grid, Transfer};
use zellige_poisson::problem::{Precision, StageSetup};
use zellige_poisson::stages::cpu::{Array, ArrayAccess, array_access, relaxations};
use zellige_poisson::stages::{Smoother, Start};

const D: Bc = Bc::Dirichlet;
const N: Bc = Bc::Neumann;
const P: Bc = Bc::Periodic;

/// Numbers at the unknowns; all else stays.
fn fill(stages: &mut dyn ArrayAccess, level: usize, array: Array, seed: usize) {
    let grid = stages.ordered()[level].grid.clone();
    let mut values = stages.values(level, array).unwrap_or_else(|| vec![0.0; grid.len()]);
    let [x, y, z] = &grid.axes;
    for k in z.unknowns() {
        for j in y.unknowns() {
            for i in x.unknowns() {
                values[i + x.nodes * (j + y.nodes * k)] = noise(seed + i + 1000 * (j + 1000 * k));
            }
        }
    }
    stages.set(level, array, &values);
}

/// The numbers of an array.
fn values<T: RealScalar>(stages: &dyn ArrayAccess, level: usize, array: Array) -> Nodes<T> {
    stages.values(level, array).expect("there is such an array").into_iter().map(T::from_f64).collect()
}

/// A level as plain tables of nodes.
struct ReferenceLevel {
    axes: [Axis; 3],
    scale: f64,
}

type Nodes<T> = Vec<T>;

/// Colours, factor of relaxation, momentum.
type Relaxation = ([bool; 2], f64, f64);

impl ReferenceLevel {
    fn at(&self, p: [usize; 3]) -> usize {
        p[0] + self.axes[0].nodes * (p[1] + self.axes[1].nodes * p[2])
    }

    fn each(&self) -> Vec<[usize; 3]> {
        let [x, y, z] = self.axes.each_ref().map(|a| a.nodes);
        (0..x * y * z).map(|n| [n % x, n / x % y, n / (x * y)]).collect()
    }

    fn unknown(&self, p: [usize; 3]) -> bool {
        (0..3).all(|d| self.axes[d].unknowns().contains(&p[d]))
    }

    /// `A u` at a node, rounded as the row operations round.
    fn operator<T: RealScalar>(&self, u: &[T], p: [usize; 3]) -> T {
        let centre = u[self.at(p)];
        let axis = |d: usize| {
            let (west, east) = self.axes[d].weights(p[d]);
            let n = self.axes[d].nodes;
            let value = |step: usize, weight: f64| {
                let mut q = p;
                q[d] = (q[d] + step) % n;
                if weight == 0.0 { centre } else { u[self.at(q)] }
            };
            let (a, b) = (T::from_f64(west * self.scale), T::from_f64(east * self.scale));
            a * (value(n - 1, west) - centre) + b * (value(1, east) - centre)
        };
        if self.axes[1].nodes == 1 { axis(0) + axis(2) } else { axis(0) + axis(1) + axis(2) }
    }

    fn relax<T: RealScalar>(&self, u: &[T], before: &[T], rhs: &[T], sweep: Relaxation) -> Nodes<T> {
        let (colours, omega, momentum) = sweep;
        let (omega, momentum) = (T::from_f64(omega), T::from_f64(momentum));
        let new = |p: [usize; 3]| {
            let n = self.at(p);
            if !colours[(p[0] + p[1] + p[2]) % 2] || !self.unknown(p) {
                return u[n];
            }
            let sum = |d: usize| self.axes[d].weights(p[d]).0 + self.axes[d].weights(p[d]).1;
            let step = omega * T::from_f64(1.0 / (self.scale * (sum(0) + (sum(1) + sum(2)))));
            let start = if momentum == T::ZERO { u[n] } else { u[n] + momentum * (u[n] - before[n]) };
            start - step * (rhs[n] - self.operator(u, p))
        };
        self.each().into_iter().map(new).collect()
    }

    fn sweeps<T: RealScalar>(&self, mut u: Nodes<T>, rhs: &[T], sweeps: &[Relaxation]) -> Nodes<T> {
        let mut before = u.clone();
        for sweep in sweeps {
            let new = self.relax(&u, &before, rhs, *sweep);
            before = std::mem::replace(&mut u, new);
        }
        u
    }

    fn residual<T: RealScalar>(&self, u: &[T], rhs: &[T]) -> Nodes<T> {
        let at = |p: [usize; 3]| if self.unknown(p) { rhs[self.at(p)] - self.operator(u, p) } else { T::ZERO };
        self.each().into_iter().map(at).collect()
    }

    /// Restriction along axis `d`, coarse axis by coarse axis.
    fn restrict<T: RealScalar>(&self, fine: &[T], d: usize, transfer: &Transfer, coarse: &Axis) -> (Self, Nodes<T>) {
        let mut axes = self.axes.clone();
        axes[d] = coarse.clone();
        let out = Self { axes, scale: self.scale };
        let n = self.axes[d].nodes;
        let at = |p: [usize; 3]| {
            let value = |step: usize| {
                let mut q = p;
                q[d] = (transfer.child[p[d]] as usize + n + step - 1) % n;
                fine[self.at(q)]
            };
            let array_access = coarse.unknowns().contains(&p[d]);
            let [a, b, c] = transfer.restrict[p[d]].map(|w| T::from_f64(if array_access { w } else { 0.0 }));
            if transfer.coarsened { (a * value(0) + c * value(2)) + b * value(1) } else { value(1) }
        };
        let values = out.each().into_iter().map(at).collect();
        (out, values)
    }

    /// Interpolation along axis `d` of values on `self`.
    fn prolong<T: RealScalar>(&self, coarse: &[T], d: usize, transfer: &Transfer, fine: &Axis) -> (Self, Nodes<T>) {
        let mut axes = self.axes.clone();
        axes[d] = fine.clone();
        let out = Self { axes, scale: self.scale };
        let n = self.axes[d].nodes;
        let at = |p: [usize; 3]| {
            let (mut a, mut b) = (p, p);
            a[d] = transfer.parent[p[d]] as usize;
            b[d] = (a[d] + 1) % n;
            let (west, east) = (T::from_f64(transfer.west[p[d]]), T::from_f64(transfer.east[p[d]]));
            if east == T::ZERO { coarse[self.at(a)] } else { west * coarse[self.at(a)] + east * coarse[self.at(b)] }
        };
        let values = out.each().into_iter().map(at).collect();
        (out, values)
    }
}

/// The sides of x, y and z; nodes; lengths.
type Case = ([[Bc; 2]; 3], [usize; 3], [f64; 3]);

fn grid((sides, nodes, lengths): Case) -> Grid {
    common::grid(nodes, lengths, sides.map(|[lo, hi]| (lo, hi)))
}

fn cases() -> Vec<Case> {
    let flat = [N, N];
    vec![
        ([[D, D], [D, D], flat], [33, 33, 1], [1.0, 1.0, 0.0]),
        ([[D, N], [N, D], flat], [40, 27, 1], [1.0, 0.8, 0.0]),
        ([[N, N], [P, P], flat], [19, 24, 1], [1.0, 1.3, 0.0]),
        ([[P, P], [P, P], flat], [25, 15, 1], [1.0, 0.7, 0.0]),
        ([[P, P], [D, D], flat], [32, 21, 1], [1.0, 0.8, 0.0]),
        ([[D, D], [N, N], flat], [64, 9, 1], [1.0, 3.0, 0.0]),
        ([[D, D], [D, D], [D, D]], [17, 12, 9], [1.0, 0.7, 0.6]),
        ([[N, D], [P, P], [N, N]], [10, 9, 14], [1.0, 1.0, 1.2]),
        ([[P, P], [N, D], [P, P]], [12, 11, 7], [1.0, 1.0, 0.8]),
        ([[D, D], [P, P], [D, D]], [9, 12, 11], [1.0, 1.0, 1.0]),
        ([[N, N], [D, D], flat], [3, 40, 1], [0.04, 1.0, 0.0]),
        ([[D, D], [P, P], flat], [40, 3, 1], [1.0, 0.06, 0.0]),
        ([[D, N], [D, D], [N, N]], [14, 15, 2], [1.0, 1.0, 0.05]),
        ([[D, N], [N, N], [D, D]], [14, 3, 15], [1.0, 0.1, 1.0]),
        ([[D, D], [D, N], flat], [261, 203, 1], [1.0, 0.8, 0.0]),
        ([[P, P], [P, P], flat], [203, 262, 1], [1.0, 1.2, 0.0]),
    ]
}

fn large((_, nodes, _): Case) -> bool {
    nodes.iter().product::<usize>() > 10_000
}

fn smoothers() -> [Smoother; 3] {
    [Smoother::RedBlack { omega: 1.15 }, Smoother::Jacobi { omega: 0.8 }, Smoother::Chebyshev { ratio: 8.0 }]
}

/// One descend, ascend and correction of level 0 with noise everywhere, against [`ReferenceLevel`].
fn compare<T: RealScalar, U: RealScalar>(case: Case, smoother: Smoother, pre: u32, post: u32, start: Start, threads: usize, isa: Isa) {
    let grid = grid(case);
    let precision = if size_of::<T>() == 4 { Precision::Mixed } else { Precision::F64 };
    let setup = StageSetup::new(&grid, 1, precision, false);
    let cpu = Cpu::new(threads).expect("threads");
    let mut own = array_access(&setup, &cpu);
    let stages = &mut *own;
    stages.use_only(isa);
    let context = format!("{case:?} {smoother:?} {pre} {post} {start:?} {threads} {isa:?}");
    let mut off = Profiler::off();
    let off = &mut off;
    let levels = stages.ordered().to_vec();
    let (grid, coarse_grid, [scale, unit]) = (levels[0].grid.clone(), levels[1].grid.clone(), stages.units());
    let level = ReferenceLevel { axes: grid.axes.clone(), scale };
    fill(stages, 0, Array::Residual, 1);
    fill(stages, 1, Array::Residual, 5);
    fill(stages, 0, Array::Correction, 2);
    let r = values::<T>(stages, 0, Array::Residual);
    let stored = values::<T>(stages, 0, Array::Correction);
    let zero = vec![T::ZERO; r.len()];
    let e = level.sweeps(if start == Start::Current { stored } else { zero }, &r, &relaxations(smoother, pre));

    stages.descend(0, start, pre, smoother, off).expect("descend");
    let mut expected = (ReferenceLevel { axes: grid.axes.clone(), scale }, level.residual(&e, &r));
    let transfer = levels[0].transfer.clone().expect("a coarse level");
    for d in [2, 1, 0] {
        expected = expected.0.restrict(&expected.1, d, &transfer[d], &coarse_grid.axes[d]);
    }
    let coarse = expected.0;
    for (p, (found, wanted)) in coarse.each().iter().zip(values::<T>(stages, 1, Array::Residual).iter().zip(&expected.1)) {
        assert!(found == wanted, "restricted residual at {p:?}: {found:?}, not {wanted:?}; {context}");
    }

    fill(stages, 1, Array::Correction, 3);
    let mut added = (ReferenceLevel { axes: coarse_grid.axes.clone(), scale }, values::<T>(stages, 1, Array::Correction));
    for d in [2, 1, 0] {
        added = added.0.prolong(&added.1, d, &transfer[d], &grid.axes[d]);
    }
    let e: Vec<T> = e.iter().zip(&added.1).map(|(a, b)| *a + *b).collect();
    let e = level.sweeps(e, &r, &relaxations(smoother, post));
    let outer = ReferenceLevel { axes: grid.axes.clone(), scale: 1.0 };
    fill(stages, 0, Array::Solution, 7);
    fill(stages, 0, Array::RightHandSide, 8);
    let (u, f) = (values::<U>(stages, 0, Array::Solution), values::<U>(stages, 0, Array::RightHandSide));
    if start == Start::Current {
        stages.ascend(0, start, pre, post, smoother, off).expect("ascend");
        let found = values::<T>(stages, 0, Array::Correction);
        for (p, (found, wanted)) in level.each().iter().zip(found.iter().zip(&e)) {
            assert!(found == wanted, "correction at {p:?}: {found:?}, not {wanted:?}; {context}");
        }
        stages.correct(0, off).expect("correct");
    } else {
        stages.ascend_correct(pre, post, smoother, off).expect("ascend and correct");
    }
    let unit = U::from_f64(unit);
    let u: Vec<U> = u.iter().zip(&e).map(|(u, e)| *u + unit * U::from_f64(e.to_f64())).collect();
    for (p, (found, wanted)) in outer.each().iter().zip(values::<U>(stages, 0, Array::Solution).iter().zip(&u)) {
        assert!(found == wanted, "solution at {p:?}: {found:?}, not {wanted:?}; {context}");
    }
    if !grid.singular() {
        let wanted = outer.residual(&u, &f);
        for (p, (found, wanted)) in level.each().iter().zip(values::<T>(stages, 0, Array::Residual).iter().zip(&wanted)) {
            assert!(*found == T::from_f64(wanted.to_f64()), "residual at {p:?}: {found:?}, not {wanted:?}; {context}");
        }
    }
}

#[test]
fn passes_equal_the_definition_bit_for_bit() {
    for case in cases() {
        for smoother in smoothers() {
            // Large grids differ in strips and their borders, which one number of sweeps meets as well as another.
            let sweeps = if large(case) { &[(2, 1)][..] } else { &[(1, 1), (2, 1), (0, 2)] };
            for (pre, post) in sweeps {
                compare::<f32, f64>(case, smoother, *pre, *post, Start::Zero, 1, Isa::best());
            }
            if !large(case) {
                compare::<f64, f64>(case, smoother, 1, 1, Start::Current, 1, Isa::best());
            }
            compare::<f64, f64>(case, smoother, 6, 5, Start::Zero, 2, Isa::best());
        }
    }
}

#[test]
fn threads_and_instruction_sets_do_not_change_a_bit() {
    for case in cases() {
        for isa in Isa::all() {
            compare::<f32, f64>(case, smoothers()[0], 1, 1, Start::Zero, 2, isa);
            compare::<f32, f64>(case, smoothers()[0], 2, 1, Start::Current, 3, isa);
        }
    }
}

/// Sweeps of the solution itself with noise everywhere, against [`ReferenceLevel`].
fn compare_sweeps<U: RealScalar>(case: Case, smoother: Smoother, nu: u32, threads: usize, isa: Isa) {
    let precision = if size_of::<U>() == 4 { Precision::F32 } else { Precision::F64 };
    let cpu = Cpu::new(threads).expect("threads");
    let mut own = array_access(&StageSetup::new(&grid(case), 0, precision, false), &cpu);
    let stages = &mut *own;
    stages.use_only(isa);
    let level = ReferenceLevel { axes: stages.ordered()[0].grid.axes.clone(), scale: 1.0 };
    fill(stages, 0, Array::Solution, 7);
    fill(stages, 0, Array::RightHandSide, 8);
    // A fixed block of sweeps goes on where the last pass ended: a polynomial in one, half-sweeps in several passes.
    let (u, f) = (values::<U>(stages, 0, Array::Solution), values::<U>(stages, 0, Array::RightHandSide));
    let wanted = level.sweeps(u, &f, &relaxations(smoother, nu));
    stages.sweep(0, nu, smoother, &mut Profiler::off()).expect("sweeps");
    let found = values::<U>(stages, 0, Array::Solution);
    for (p, (found, wanted)) in level.each().iter().zip(found.iter().zip(&wanted)) {
        assert!(found == wanted, "at {p:?}: {found:?}, not {wanted:?}; {case:?} {smoother:?} {nu} {threads} {isa:?}");
    }
}

#[test]
fn sweeps_equal_the_definition_bit_for_bit() {
    for case in cases() {
        for smoother in smoothers() {
            compare_sweeps::<f64>(case, smoother, 6, 2, Isa::best());
        }
        for isa in Isa::all() {
            compare_sweeps::<f32>(case, smoothers()[0], 5, 1, isa);
            if !large(case) {
                compare_sweeps::<f32>(case, smoothers()[0], 12, 2, isa);
            }
            compare_sweeps::<f32>(case, smoothers()[0], 4, 3, isa);
            compare_sweeps::<f64>(case, smoothers()[0], 1, 1, isa);
        }
    }
}

#[test]
fn norms_after_sweeps_are_those_of_the_residual_whatever_the_threads() {
    fn check(case: Case, precision: Precision) {
        let mut first = None;
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(threads).expect("threads");
            let mut stages = array_access(&StageSetup::new(&grid(case), 0, precision, false), &cpu);
            let n = grid(case).len();
            let (u, f): (Vec<f64>, Vec<f64>) = (0..n).map(|i| (0.0, noise(i))).unzip();
            let off = &mut Profiler::off();
            stages.load(&u, &f).expect("values");
            stages.sweep_norms(7, smoothers()[0], off).expect("sweeps");
            let found = stages.norms().expect("norms");
            stages.residual(0, off).expect("residual");
            let wanted = stages.norms().expect("norms");
            // Sums of squares in the working precision over the 16 or 128 nodes of a lane, in another order.
            let tolerance = 64.0 * precision.eps();
            for (found, wanted) in [(found.l2, wanted.l2), (found.max, wanted.max), (found.u_l2, wanted.u_l2)] {
                assert!((found - wanted).abs() <= tolerance * wanted, "{found}, not {wanted}; {case:?}");
            }
            assert_eq!(*first.get_or_insert(found), found, "{threads} threads; {case:?}");
        }
    }
    for case in cases() {
        check(case, Precision::F32);
        check(case, Precision::F64);
    }
    // Wider than a strip, and tall enough for three bands.
    check(([[D, D], [D, D], [N, N]], [2100, 330, 1], [1.0, 0.2, 0.0]), Precision::F32);
}
