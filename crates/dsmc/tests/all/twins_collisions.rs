//! The formulae of collisions: their CUDA C++ against Rust.

use zellige_dsmc::physics::{PHYSICS, Vec3, deflected, directed, in_plane, rotor_share};
use zellige_engine::real::RealScalar;
use zellige_engine::twins::Twin;

/// Uniform numbers never reach 0 or 1.
const OPEN: (f64, f64) = (1e-6, 0.999_999);
/// A component of a velocity, m/s; a cosine.
const SPEED: (f64, f64) = (-2000.0, 2000.0);
const COSINE: (f64, f64) = (-1.0, 1.0);

fn check<T: RealScalar>() {
    Twin {
        name: "deflected",
        sources: PHYSICS,
        columns: &[SPEED, SPEED, SPEED, (0.0, 4000.0), COSINE, COSINE, COSINE],
        outputs: &[
            "deflected<T>(Vec3<T>{x[0], x[1], x[2]}, x[3], x[4], x[5], x[6]).x",
            "deflected<T>(Vec3<T>{x[0], x[1], x[2]}, x[3], x[4], x[5], x[6]).y",
            "deflected<T>(Vec3<T>{x[0], x[1], x[2]}, x[3], x[4], x[5], x[6]).z",
            "directed<T>(x[3], x[4], x[5], x[6]).z",
            "in_plane<T>(x[3], x[5], x[6]).y",
        ],
        // A dozen roundings, in a sum of terms of the size of the speed times a ratio of components; `1 - cos^2` cancels near 1.
        ulps: 64.0,
        scale: 8192.0,
    }
    .check::<T>(|x, out| {
        let v = deflected(Vec3 { x: x[0], y: x[1], z: x[2] }, x[3], x[4], x[5], x[6]);
        (out[0], out[1], out[2]) = (v.x, v.y, v.z);
        out[3] = directed(x[3], x[4], x[5], x[6]).z;
        out[4] = in_plane(x[3], x[5], x[6]).y;
    });
    Twin {
        name: "rotor_share",
        sources: PHYSICS,
        columns: &[(0.0, 5000.0), OPEN, (0.4, 0.7)],
        outputs: &["rotor_share<T>(x[0], x[1], x[2])"],
        // A power of the library, then a difference that cancels where the power is near 1.
        ulps: 16.0,
        scale: 8192.0,
    }
    .check::<T>(|x, out| out[0] = rotor_share(x[0], x[1], x[2]));
}

#[test]
fn in_double_precision() {
    check::<f64>();
}

#[test]
fn in_single_precision() {
    check::<f32>();
}
