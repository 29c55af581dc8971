//! The formulae of `physics` on the GPU against Rust, on random inputs: sums and products only, so bit for bit.

use zellige_engine::real::RealScalar;
use zellige_engine::twins::Twin;
use zellige_poisson::physics::{self, PHYSICS};

fn formulae<T: RealScalar>() {
    let outputs = [
        "second_difference(x[0], x[1], x[2], x[3], x[4])",
        "residual(x[0], x[1])",
        "relax(x[0], x[1], x[3])",
        "relax_with_momentum(x[0], x[1], x[3], x[4], x[2])",
        "between(x[3], x[0], x[4], x[1])",
        "three(x[3], x[0], x[4], x[1], x[5], x[2])",
    ];
    let columns = [(-3.0, 3.0), (-3.0, 3.0), (-3.0, 3.0), (0.0, 2e3), (0.0, 2e3), (0.0, 1.0)];
    Twin { name: "formulae", sources: PHYSICS, columns: &columns, outputs: &outputs, ulps: 0.0, scale: 0.0 }.check::<T>(|x, out| {
        out[0] = physics::second_difference(x[0], x[1], x[2], x[3], x[4]);
        out[1] = physics::residual(x[0], x[1]);
        out[2] = physics::relax(x[0], x[1], x[3]);
        out[3] = physics::relax_with_momentum(x[0], x[1], x[3], x[4], x[2]);
        out[4] = physics::between(x[3], x[0], x[4], x[1]);
        out[5] = physics::three(x[3], x[0], x[4], x[1], x[5], x[2]);
    });
}

#[test]
fn formulae_f32() {
    formulae::<f32>();
}

#[test]
fn formulae_f64() {
    formulae::<f64>();
}
