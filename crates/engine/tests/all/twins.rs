//! The translation itself: functions that use all of it, in C++ on the CPU bit for bit and on the GPU within the
//! rounding of its library functions.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, RealScalar, select};
use zellige_engine::twins::Twin;

#[device]
#[derive(Debug, Clone, Copy)]
struct Vec3<R> {
    x: R,
    y: R,
    z: R,
}

#[device]
fn cross<R: Real>(a: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    Vec3 { z: a.x * b.y - a.y * b.x, x: a.y * b.z - a.z * b.y, y: a.z * b.x - a.x * b.z }
}

#[device]
fn scaled_sum<R: Real>(a: Vec3<R>, s: R, b: Vec3<R>) -> Vec3<R> {
    Vec3::<R> { x: s.mul_add(b.x, a.x), y: s.mul_add(b.y, a.y), z: s.mul_add(b.z, a.z) }
}

#[device]
fn norm2<R: Real>(a: Vec3<R>) -> R {
    a.x * a.x + a.y * a.y + a.z * a.z
}

/// A relativistic rotation of the momentum `u` in the field `b`: the shape of a particle push.
#[device]
fn rotated<R: Real>(u: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    let gamma = (R::ONE + norm2(u)).sqrt();
    let t = scaled_sum(Vec3::<R> { x: R::ZERO, y: R::ZERO, z: R::ZERO }, gamma.recip(), b);
    let s = R::TWO / (R::ONE + norm2(t));
    let halfway = scaled_sum(u, R::ONE, cross(u, t));
    scaled_sum(u, s, cross(halfway, t))
}

/// Masks, floor, min and max, with lanes in mind.
#[device]
fn folded<R: Real>(x: R, low: R, high: R) -> R {
    let width = (high - low).abs().max(R::from_f64(1e-3));
    let turns = ((x - low) / width).floor();
    let y = x - turns * width;
    let outside = y.lt(low) | !y.le(low + width) & y.gt(R::ZERO);
    select(outside, y.min(low).ceil(), -y)
}

/// Branches, a loop with its ways out, shadowing, blocks as values, library functions.
#[device]
fn wandering<R: RealScalar>(x: R, y: R) -> R {
    if x < y {
        return x.sqrt() - y;
    }
    let mut sum = R::ZERO;
    let x = x * R::HALF;
    for i in 0..20_u32 {
        if i % 3 == 1 {
            continue;
        }
        let x = x + R::from_f64(i as f64);
        sum += if x > y {
            let difference = x - y;
            difference * difference
        } else if i > 5 {
            x
        } else {
            y.abs()
        };
        if sum > R::from_f64(500.0) {
            break;
        }
    }
    sum
}

#[device]
fn library<R: RealScalar>(x: R, y: R) -> R {
    (x.sin() + x.cos()) * (-x * x).exp() + y.ln() + y.powf(x)
}

#[device]
const SCRAMBLE: u32 = 0x9E37_79B9;

/// Integers: wrapping products, bits, shifts, remainders of either sign, casts both ways.
#[device]
fn hashed(x: f64, y: f64, n: i32) -> f64 {
    let cell = (x * 3.7e5) as i32;
    let mut key = (y as i32 as u32).wrapping_mul(SCRAMBLE) ^ cell as u32;
    for round in 0..n {
        let product = key as u64 * 0xD251_1F53;
        key = (product >> 32) as u32 ^ !(product as u32) ^ round as u32 & 0xff | 1 << round;
    }
    let around = cell.rem_euclid(97) + cell % 13 - (cell >> 2).min(-40).abs();
    let low = key & 0xffff;
    let far = y as u32;
    let fraction = (low >> 1) as f64 / 32_768.0;
    if far == 0 && !(around < 3 || cell > 5) || key.is_multiple_of(2) { fraction + around as f64 } else { f64::from(key) }
}

fn vec3<R: Real>(x: &[R]) -> Vec3<R> {
    Vec3 { x: x[0], y: x[1], z: x[2] }
}

fn check_rotated<T: RealScalar>() {
    let args = "Vec3<T>{x[0], x[1], x[2]}, Vec3<T>{x[3], x[4], x[5]}";
    let outputs = [format!("rotated({args}).x"), format!("rotated({args}).y"), format!("rotated({args}).z")];
    let outputs = [&*outputs[0], &*outputs[1], &*outputs[2]];
    // Only sums, products, quotients and roots, which the GPU rounds as the CPU does.
    let sources = device_source![Vec3, cross, scaled_sum, norm2, rotated];
    let twin = Twin { name: "rotated", sources: &sources, columns: &[(-3.0, 3.0); 6], outputs: &outputs, ulps: 0.0, scale: 0.0 };
    twin.check::<T>(|x, out| {
        let u = rotated(vec3(&x[..3]), vec3(&x[3..]));
        out.copy_from_slice(&[u.x, u.y, u.z]);
    });
}

#[test]
fn rotated_f32() {
    check_rotated::<f32>();
}

#[test]
fn rotated_f64() {
    check_rotated::<f64>();
}

fn check_folded<T: RealScalar>() {
    let columns = [(-9.0, 9.0), (-1.0, 0.5), (-1.0, 2.0)];
    let outputs = ["folded(x[0], x[1], x[2])", "wandering(x[0], x[1])"];
    let sources = device_source![folded, wandering];
    let twin = Twin { name: "folded", sources: &sources, columns: &columns, outputs: &outputs, ulps: 0.0, scale: 0.0 };
    twin.check::<T>(|x, out| {
        out[0] = folded(x[0], x[1], x[2]);
        out[1] = wandering(x[0], x[1]);
    });
}

#[test]
fn folded_f32() {
    check_folded::<f32>();
}

#[test]
fn folded_f64() {
    check_folded::<f64>();
}

fn check_library<T: RealScalar>() {
    // The library of the GPU states 1 to 2 units for each of the five functions (powf 4); the terms are below 10.
    let sources = device_source![library];
    let (columns, outputs) = ([(-1.5, 1.5), (0.1, 4.0)], ["library(x[0], x[1])"]);
    let twin = Twin { name: "library", sources: &sources, columns: &columns, outputs: &outputs, ulps: 8.0, scale: 4.0 };
    twin.check::<T>(|x, out| out[0] = library(x[0], x[1]));
}

#[test]
fn library_f32() {
    check_library::<f32>();
}

#[test]
fn library_f64() {
    check_library::<f64>();
}

#[test]
fn integers() {
    let sources = device_source![SCRAMBLE, hashed];
    let columns = [(-9000.0, 9000.0), (-5e9, 5e9)];
    let outputs = ["hashed(x[0], x[1], 7)"];
    let twin = Twin { name: "hashed", sources: &sources, columns: &columns, outputs: &outputs, ulps: 0.0, scale: 0.0 };
    twin.check::<f64>(|x, out| out[0] = hashed(x[0], x[1], 7));
}
