//! The transforms of lines on the CPU: forward against the definition in doubles, and there and back.

use num_complex::Complex;
use zellige_engine::cuda::{Files, Recipe};
use zellige_engine::testing::host::Host;

use super::*;
use crate::stages::Projection;
use crate::stages::cuda::arguments::ConstraintArgument;
use crate::stages::cuda::number::{C, Number, narrow, wide};
use crate::stages::cuda::program::{FrameProcessing, KernelConfig};
use crate::stages::cuda::recipes::frames_recipe;

/// Kernels around `lines` alone.
const THROUGH: &str = r#"
template <class X, int SIGN> __device__ void through(C* values, int count, int stride, int apart) {
  extern __shared__ C room[];
  lines<X, SIGN>(
      room,
      [&](C* v, int line, int i) {
        const int own = blockIdx.x * X::LINES + line < count ? blockIdx.x * X::LINES + line : 0;
        EACH_LOADED(X, a) v[a] = values[own * apart + (i + a * X::REST) * stride];
      },
      [&](const C* v, int line, int i) {
        const int own = blockIdx.x * X::LINES + line;
        if (own < count) EACH_STORED(X, j) values[own * apart + STORED(X, i, j) * stride] = v[j];
      });
}
extern "C" __global__ void rows_forward(C* values, int count) { through<Row, -1>(values, count, 1, NX); }
extern "C" __global__ void rows_inverse(C* values, int count) { through<Row, 1>(values, count, 1, NX); }
extern "C" __global__ void columns_forward(C* values, int count) { through<Column, -1>(values, count, NX, 1); }
extern "C" __global__ void columns_inverse(C* values, int count) { through<Column, 1>(values, count, NX, 1); }
"#;

/// Complex numbers in place of model.cu.
const COMPLEX: &str = "typedef NUMBER real;
struct C { real x, y; };
static C make_real2(real x, real y) { return {x, y}; }
static C operator+(C a, C b) { return {a.x + b.x, a.y + b.y}; }
static C operator-(C a, C b) { return {a.x - b.x, a.y - b.y}; }
static C operator*(C a, real s) { return {a.x * s, a.y * s}; }
static C operator*(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }";

type Through<T> = unsafe extern "C" fn(*mut C<T>, i32);

#[test]
fn transforms_of_lines_are_those_of_the_definition() {
    transforms::<f32>("float", false);
    transforms::<f64>("double", true);
}

fn transforms<T: Number>(number: &str, double: bool) {
    let epsilon = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    // Two and three passes, primes up to 13, lines that do not fill their tiles; every size of the bench.
    for frame in [[13, 7], [48, 100], [300, 200], [192, 66], [1024, 96], [40, 512], [6, 2048], [2028, 5], [1, 1]] {
        let tiles = Tiles::of(frame, Precision::of(double), 227 << 10).unwrap();
        let [ny, nx] = frame;
        let defines = tiles.defines().into_iter().chain([("NX", nx as u32), ("NY", ny as u32)]);
        let mut defines: Vec<_> = defines.map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        defines.push(("NUMBER".to_owned(), number.to_owned()));
        let files: &Files = &[
            ("model.cu", &[COMPLEX]),
            ("radix.cu", &[include_str!("../radix.cu")]),
            ("lines.cu", &[include_str!("../lines.cu")]),
            ("test", &["#include \"lines.cu\"", THROUGH]),
        ];
        let Some(host) = Host::compile(&Recipe::of_files("lines", files, &["test"], &defines, &["rows_forward"])) else { return };
        let values: Vec<_> = (0..nx * ny).map(|i| Complex::new((i as f64 * 1.7).sin(), (i as f64 * 0.3).cos())).collect();
        let values = wide(&narrow::<T>(&values));
        for (name, lines, n, count, stride, apart) in [("rows", tiles.rows, nx, ny, 1, nx), ("columns", tiles.columns, ny, nx, nx, 1)] {
            let mut found = narrow::<T>(&values);
            let mut run = |way: &str| {
                // SAFETY: the parameters of `through`'s kernels, whose lines lie in the array.
                let (kernel, at) = unsafe { (host.kernel::<Through<T>>(&format!("{name}_{way}")), found.as_mut_ptr()) };
                let blocks = (count as u32).div_ceil(lines.count);
                host.launch([blocks, 1, 1], [lines.threads, 1, 1], &|| unsafe { kernel(at, count as i32) });
                wide(&found)
            };
            let forward = run("forward");
            let back = run("inverse");
            let roots: Vec<Complex<f64>> = (0..n).map(|k| Complex::cis(-std::f64::consts::TAU * k as f64 / n as f64)).collect();
            let (mut worst, mut size) = (0.0, 1e-30);
            for line in (0..count).step_by(count.div_ceil(5)) {
                for k in 0..n {
                    let value = |i: usize| values[line * apart + i * stride];
                    let sum: Complex<f64> = (0..n).map(|i| value(i) * roots[i * k % n]).sum();
                    worst += (forward[line * apart + k * stride] - sum).norm_sqr();
                    size += sum.norm_sqr();
                }
            }
            // Rounding of log2 n additions and of products of up to five roots; the definition itself adds n values in doubles.
            let limit = if double { 2e-14 } else { 5.0 * epsilon };
            assert!((worst / size).sqrt() < limit, "{name} of {frame:?}: {:e}", (worst / size).sqrt());
            let off: f64 = back.iter().zip(&values).map(|(a, b)| (a / n as f64 - b).norm_sqr()).sum();
            assert!((off / (nx * ny) as f64).sqrt() < 9.0 * epsilon, "{name} of {frame:?} and back: {off:e}");
        }
    }
}

type Columns<T> =
    unsafe extern "C" fn(*mut C<T>, *mut C<T>, *const f32, *const [T; 2], *mut T, *mut T, *mut u32, u32, ConstraintArgument<T>, T);

#[test]
fn columns_are_constrained_as_the_formulae_say() {
    columns::<f32>([[300, 13], [512, 9], [1024, 8]], false, 1e-5);
    columns::<f64>([[256, 4], [144, 4], [128, 8]], true, 1e-12);
}

/// Compares to the formulae; `limit`: rounding of transforms and of differences, where the phase of a dark estimate is lost.
fn columns<T: Number>(frames: [[usize; 2]; 3], double: bool, limit: f64) {
    // One tile a frame, since blocks follow one another here; twice as many threads in one pass as in the other, and as many.
    for frame in frames {
        let config = KernelConfig {
            frame,
            bin: [1, 1],
            modes: [1, 1],
            several: false,
            near: false,
            atomic: false,
            registers: false,
            shifted: false,
            double,
            processing: FrameProcessing::Tiled { joined: true },
        };
        let Some(host) = Host::compile(&frames_recipe(&config)) else { return };
        let ([ny, nx], views) = (frame, 2);
        let random = |i: usize, by: f64| (i as f64 * by).sin();
        let values =
            |a: f64, b: f64| narrow::<T>(&(0..views * nx * ny).map(|i| Complex::new(random(i, a), random(i, b))).collect::<Vec<_>>());
        let (mut waves, mut exits) = (values(1.3, 2.9), values(0.7, 3.7));
        let mag: Vec<f32> = (0..views * nx * ny).map(|i| if i % 11 == 0 { -1.0 } else { (1.0 + random(i, 5.1)) as f32 }).collect();
        let weight = [[1.0 / (nx * ny) as f64, 0.0].map(T::from_wide); 2];
        // The bound lies below the error: a part of the deviation stays.
        let (bound, c) = (0.05, 2.0);
        let rule = ConstraintArgument::from(&Projection { a: -1.0, b: 1.0, c, bound, noise: 0.0, likelihood: true });
        let scale = 1.0 / ((nx * ny) as f64).sqrt();
        let (before_waves, before) = (wide(&waves), wide(&exits));
        let zero = T::from_wide(0.0);
        let (mut sums, mut changes, mut turns) = (vec![zero; 2 * views], vec![zero; views], vec![0; 2 * views]);
        let tiles = config.tiles().unwrap();
        assert_eq!(tiles.across(), 1);
        // SAFETY: the parameters of `columns`, whose arrays hold all views.
        let columns = unsafe { host.kernel::<Columns<T>>("columns") };
        let (w, x, s, d, t) = (waves.as_mut_ptr(), exits.as_mut_ptr(), sums.as_mut_ptr(), changes.as_mut_ptr(), turns.as_mut_ptr());
        host.launch([views as u32, 1, 1], [tiles.columns.threads, 1, 1], &|| unsafe {
            columns(w, x, mag.as_ptr(), weight.as_ptr(), s, d, t, 0, rule, T::from_wide(scale));
        });
        let root = |k: usize| Complex::cis(-std::f64::consts::TAU * (k % ny) as f64 / ny as f64);
        let roots: Vec<Complex<f64>> = (0..ny).map(root).collect();
        for n in 0..views {
            let at = |y: usize, x: usize| n * nx * ny + y * nx + x;
            let g = |k: usize, x: usize| (0..ny).map(|y| before[at(y, x)] * roots[y * k % ny]).sum::<Complex<f64>>() * scale;
            let pixels = || (0..ny).flat_map(|y| (0..nx).map(move |x| (y, x)));
            let g: Vec<Complex<f64>> = pixels().map(|(y, x)| g(y, x)).collect();
            let estimate: Vec<f64> = pixels().map(|(y, x)| (g[y * nx + x] * c + before_waves[at(y, x)] * (1.0 - c)).norm()).collect();
            let counted = |y: usize, x: usize| Some(f64::from(mag[at(y, x)])).filter(|m| *m >= 0.0);
            let misfit: f64 = pixels().filter_map(|(y, x)| counted(y, x).map(|m| (estimate[y * nx + x] - m).powi(2))).sum();
            let error = misfit * weight[n][0].wide();
            assert!(error > 2.0 * bound, "{error}");
            let pull = (bound / error).sqrt();
            let now: Vec<Complex<f64>> = pixels()
                .map(|(y, x)| {
                    let q = counted(y, x).map_or(1.0, |m| m / (estimate[y * nx + x] + 1e-10));
                    let (g, e) = (g[y * nx + x], before_waves[at(y, x)]);
                    g * -1.0 + e + (g * c + e * (1.0 - c)) * (pull + (1.0 - pull) * q)
                })
                .collect();
            let norm: f64 = now.iter().map(Complex::norm_sqr).sum();
            let (waves, exits) = (wide(&waves), wide(&exits));
            let off = |a: &dyn Fn(usize, usize) -> Complex<f64>, b: &[Complex<f64>]| {
                pixels().map(|(y, x)| (a(y, x) - b[at(y, x)]).norm_sqr()).sum::<f64>()
            };
            let waves_off = off(&|y, x| now[y * nx + x], &waves);
            assert!((waves_off / norm).sqrt() < limit, "{frame:?}: waves {:e}", (waves_off / norm).sqrt());
            let back = |y: usize, x: usize| (0..ny).map(|k| now[k * nx + x] * roots[k * y % ny].conj()).sum::<Complex<f64>>() * scale;
            let exits_off = off(&back, &exits);
            assert!((exits_off * nx as f64 / norm).sqrt() < limit, "{frame:?}: exits {:e}", (exits_off * nx as f64 / norm).sqrt());
            let change: f64 = pixels().map(|(y, x)| (now[y * nx + x] - before_waves[at(y, x)]).norm_sqr()).sum();
            assert!((changes[n].wide() / change - 1.0).abs() < limit, "{frame:?}: change {} for {change}", changes[n].wide());
            assert!((sums[2 * n + 1].wide() / misfit - 1.0).abs() < limit, "{frame:?}: misfit {} for {misfit}", sums[2 * n + 1].wide());
        }
    }
}

#[test]
fn radices_are_small() {
    let single = |n| radices(n, Precision::of(false).radix());
    assert_eq!(single(1024), Some([32, 32, 1]));
    assert_eq!(single(300), Some([20, 15, 1]));
    assert_eq!(single(2048), Some([16, 16, 8]));
    assert_eq!(single(7), Some([7, 1, 1]));
    assert_eq!(single(34), None, "17 is no small prime");
    assert_eq!(single(4099), None);
    // Half the registers for doubles.
    assert_eq!(radices(1024, Precision::of(true).radix()), Some([16, 8, 8]));
    // There 20 lines of 15, and back 15 of 21.
    assert_eq!(line_values([20, 15, 1]), 315);
}
