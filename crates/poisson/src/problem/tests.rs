//! Folding against problems whose solution is known.

use super::*;
use crate::fold::for_side;
use crate::operator;

type Function = fn([f64; 3]) -> f64;

/// Values of `u` over the nodes of the grid.
fn sample(grid: &Grid, u: Function) -> Vec<f64> {
    let [m, n, _] = grid.nodes();
    let at = |i: usize| [grid.axes[0].position(i % m), grid.axes[1].position(i / m % n), grid.axes[2].position(i / (m * n))];
    (0..grid.len()).map(|i| u(at(i))).collect()
}

/// A problem whose solution is `u`, with conditions of the given kinds made from `u` and its gradient.
fn made<'a>(nodes: [usize; 3], size: [f64; 3], kinds: [[Bc; 2]; 3], u: Function, gradient: [Function; 3], rho: Function) -> Problem<'a> {
    let mut problem = Problem::space(nodes, size, Vec::new());
    for d in 0..3 {
        problem.sides[d] = kinds[d].map(|bc| Side { bc, values: SideValues::Constant(0.0) });
    }
    let grid = problem.grid();
    let values = [sample(&grid, u), sample(&grid, gradient[0]), sample(&grid, gradient[1]), sample(&grid, gradient[2])];
    for d in (0..3).filter(|d| !grid.axes[*d].is_flat()) {
        for end in 0..2 {
            let mut side = vec![0.0; problem.side_nodes(d).iter().product()];
            let outward = if end == 0 { -1.0 } else { 1.0 };
            for_side(&grid, d, end, |node, n| {
                side[n] = if kinds[d][end] == Bc::Dirichlet { values[0][node] } else { outward * values[1 + d][node] };
            });
            problem.sides[d][end].values = SideValues::Nodes(side.into());
        }
    }
    problem.rhs = sample(&grid, rho).into();
    problem
}

#[test]
fn quadratics_solve_the_folded_system_exactly() {
    use Bc::{Dirichlet as D, Neumann as N};
    let u: Function = |[x, y, z]| 1.0 + 2.0 * x - 3.0 * y + z + x * x - 2.0 * y * y + 0.5 * z * z + x * y;
    let gradient: [Function; 3] = [|[x, y, _]| 2.0 + 2.0 * x + y, |[x, y, _]| -3.0 - 4.0 * y + x, |[_, _, z]| 1.0 + z];
    for kinds in [[[D, D], [D, N], [N, N]], [[N, D], [N, N], [N, D]], [[N, N], [D, D], [D, N]]] {
        for (nodes, size) in [([5, 4, 3], [1.0, 2.0, 0.7]), ([8, 3, 6], [0.3, 1.0, 1.0])] {
            let folded = made(nodes, size, kinds, u, gradient, |_| -1.0).fold().unwrap();
            let exact = sample(&folded.grid, u);
            let norms = operator::residual_norms(&folded.grid, &exact, &folded.f);
            // Rounding of u in the operator.
            let limit = 8.0 * f64::EPSILON * operator::norm_bound(&folded.grid) * norms.u_l2;
            assert!(norms.max <= limit, "{kinds:?}: {} > {limit}", norms.max);
            // Nodes of Dirichlet sides hold their values, others nothing yet.
            let unknown = operator::unknowns_only(&folded.grid, &vec![1.0; exact.len()]);
            for (i, u) in folded.u.iter().enumerate() {
                let expected = if unknown[i] == 0.0 { exact[i] } else { 0.0 };
                assert!(*u == expected, "{kinds:?}, node {i}: {u} for {expected}");
            }
            // The reference is the residual of the boundary values alone.
            assert!(folded.reference.max > 1.0);
        }
    }
}

#[test]
fn neumann_problems_lose_their_imbalance() {
    use Bc::Neumann as N;
    let u: Function = |[x, y, _]| x * x - y * y;
    let gradient: [Function; 3] = [|[x, _, _]| 2.0 * x, |[_, y, _]| -2.0 * y, |_| 0.0];
    let kinds = [[N, N], [N, N], [N, N]];
    let folded = made([6, 9, 1], [1.0, 2.0, 1.0], kinds, u, gradient, |_| 0.25).fold().unwrap();
    // Sums of 54 terms of order 10.
    assert!((folded.imbalance - 0.25).abs() < 1e-13, "{}", folded.imbalance);
    let norms = operator::residual_norms(&folded.grid, &sample(&folded.grid, u), &folded.f);
    assert!(norms.max < 1e-12, "{}", norms.max);
    assert!(operator::mean(&folded.grid, &folded.f).abs() < 1e-14);
}

#[test]
fn shared_nodes_have_one_owner() {
    let problem = Problem::plane([4, 5], [1.0, 1.0], vec![1.0; 20]).sides(0, Side::dirichlet(1.0), Side::dirichlet(2.0)).sides(
        1,
        Side::neumann(7.0),
        Side::dirichlet(4.0),
    );
    let folded = problem.fold().unwrap();
    assert_eq!(folded.u[16..], [1.0, 4.0, 4.0, 2.0]);
    assert_eq!(folded.u[0], 1.0);
    // Neumann at y = 0: f = 1 - 2 * 7 / (1/4).
    assert_eq!(folded.f[1..3], [-55.0, -55.0]);
}

#[test]
fn a_guess_changes_the_start_and_not_the_reference() {
    let plain = Problem::plane([5, 5], [1.0, 1.0], vec![1.0; 25]);
    let warm = plain.clone().guess(vec![3.0; 25]).fold().unwrap();
    let plain = plain.fold().unwrap();
    assert_eq!(plain.reference, warm.reference);
    assert_eq!(warm.u.iter().filter(|u| **u == 3.0).count(), 9);
    // f = 1 at every unknown: both norms are 1.
    assert!((plain.reference.l2 - 1.0).abs() < 1e-15 && plain.reference.max == 1.0);
}

#[test]
fn every_fault_of_a_statement_is_found() {
    let mut rhs = vec![0.0; 12];
    rhs[7] = f64::NAN;
    let problem = Problem::plane([4, 3], [1.0, -1.0], rhs)
        .sides(0, Side::periodic(), Side::dirichlet_nodes(vec![0.0; 2]))
        .guess(vec![0.0; 11])
        .mean(f64::INFINITY);
    let faults = problem.check();
    let paths: Vec<_> = faults.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["sides.x", "sides.x_hi", "size.y", "rhs", "guess", "mean"]);
    assert!(faults[3].message.contains("index (1, 3) of the shape (3, 4) is NaN"), "{}", faults[3]);
    assert!(problem.fold().is_err());
    assert_eq!(Problem::plane([2, 3], [1.0, 1.0], vec![0.0; 6]).check()[0].path, "nodes.x");
}
