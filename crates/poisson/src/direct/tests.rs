//! What is known of the modes, and the kernels through the compiler. The solver itself is verified from outside
//! (`tests/all/direct.rs`), where it is compiled anyway.

use std::f64::consts::PI;

use zellige_engine::testing;

use super::*;

const PAIRS: [(Bc, Bc); 5] = [
    (Bc::Dirichlet, Bc::Dirichlet),
    (Bc::Neumann, Bc::Neumann),
    (Bc::Dirichlet, Bc::Neumann),
    (Bc::Neumann, Bc::Dirichlet),
    (Bc::Periodic, Bc::Periodic),
];

#[test]
fn every_mode_has_its_place_once() {
    for (bc, (lo, hi)) in PAIRS.into_iter().enumerate() {
        for nodes in [3, 4, 5, 16, 17, 33, 34, 35, 36, 65, 129, 101, 22, 28, 46, 56, 78, 106, 136, 151, 70] {
            let axis = Axis::new(nodes, 1.0, lo, hi);
            let n = axis.intervals();
            let mut found = transform::angles(transform::Kind::of(&axis), n, transform::SMALL);
            assert_eq!(found.len(), axis.unknowns().len(), "{lo:?} {hi:?} {nodes}");
            found.sort_by(f64::total_cmp);
            for (k, found) in found.into_iter().enumerate() {
                let part = match bc {
                    0 => k as f64 + 1.0,
                    1 => k as f64,
                    4 => 2.0 * (k / 2 + k % 2) as f64,
                    _ => k as f64 + 0.5,
                };
                // A few roundings of angles up to pi.
                assert!((found - PI * part / n as f64).abs() < 8.0 * f64::EPSILON, "{lo:?} {hi:?} {nodes} mode {k}: {found}");
            }
        }
    }
}

#[test]
fn kernels_compile_for_every_architecture() {
    if !testing::compiler() {
        return;
    }
    for (arch, bc) in testing::ARCHITECTURES.into_iter().zip([0, 1, 2, 4]) {
        for (real, nodes) in [("float", 4097), ("double", 513)] {
            let (last, flat) = (Axis::new(nodes, 1.0, PAIRS[bc].0, PAIRS[bc].1), Axis::flat());
            let middle = if nodes == 513 { &last } else { &flat };
            cuda::recipe(real, [&last, middle, &last], nodes == 513, nodes == 513).compile_only(arch).unwrap();
        }
    }
}
