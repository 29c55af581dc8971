//! The formulae of walls: their CUDA C++ against Rust.

use zellige_dsmc::walls::formulae::{
    WALLS, cll_normal, cll_tangential, diffuse_normal, diffuse_tangential, rotation_three, rotation_two, vibration_level,
};
use zellige_engine::real::RealScalar;
use zellige_engine::twins::Twin;

/// Uniform numbers never reach 0 or 1.
const OPEN: (f64, f64) = (1e-6, 0.999_999);

fn check<T: RealScalar>() {
    // A library's logarithm, sine and cosine may each be off in the last place; angles of a turn double that of the angle.
    Twin {
        name: "diffuse",
        sources: WALLS,
        columns: &[OPEN, OPEN],
        outputs: &["diffuse_normal<T>(x[0])", "diffuse_tangential<T>(x[0], x[1]).a", "diffuse_tangential<T>(x[0], x[1]).b"],
        ulps: 8.0,
        scale: 4.0,
    }
    .check::<T>(|x, out| {
        let v = diffuse_tangential(x[0], x[1]);
        (out[0], out[1], out[2]) = (diffuse_normal(x[0]), v.a, v.b);
    });
    Twin {
        name: "cll",
        sources: WALLS,
        columns: &[(0.0, 1.0), (0.0, 2.0), (0.0, 5.0), OPEN, OPEN],
        outputs: &[
            // The square, as the root of a difference of like terms magnifies its round-off.
            "cll_normal<T>(x[0], x[2], x[3], x[4]) * cll_normal<T>(x[0], x[2], x[3], x[4])",
            "cll_tangential<T>(x[1], x[2], x[3], x[4]).a",
            "cll_tangential<T>(x[1], x[2], x[3], x[4]).b",
        ],
        ulps: 16.0,
        scale: 64.0,
    }
    .check::<T>(|x, out| {
        let (n, v) = (cll_normal(x[0], x[2], x[3], x[4]), cll_tangential(x[1], x[2], x[3], x[4]));
        (out[0], out[1], out[2]) = (n * n, v.a, v.b);
    });
    Twin {
        name: "rotation",
        sources: WALLS,
        columns: &[(0.0, 1.0), (0.0, 20.0), OPEN, OPEN, OPEN],
        outputs: &["rotation_two<T>(x[0], x[1], x[2], x[3])", "rotation_three<T>(x[0], x[1], x[2], x[3], x[4])"],
        ulps: 16.0,
        scale: 64.0,
    }
    .check::<T>(|x, out| (out[0], out[1]) = (rotation_two(x[0], x[1], x[2], x[3]), rotation_three(x[0], x[1], x[2], x[3], x[4])));
    Twin {
        name: "vibration",
        sources: WALLS,
        columns: &[(0.5, 20.0), OPEN],
        outputs: &["vibration_level<T>(x[0], x[1])"],
        // Whole numbers: where a last place of the logarithm decides, the neighbour is right too.
        ulps: 1.0,
        scale: if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON }.recip(),
    }
    .check::<T>(|x, out| out[0] = vibration_level(x[0], x[1]));
}

#[test]
fn in_double_precision() {
    check::<f64>();
}

#[test]
fn in_single_precision() {
    check::<f32>();
}
