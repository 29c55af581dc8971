//! The transforms of lines on the CPU: forward against the definition in doubles, and there and back.

use num_complex::Complex;
use zellige_engine::cuda::{Files, Recipe};
use zellige_engine::testing::host::Host;

use super::*;
use crate::stages::Projection;
use crate::stages::cuda::arguments::ConstraintArgument;
use crate::stages::cuda::number;
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
const COMPLEX: &str = "typedef float2 C;
static C operator+(C a, C b) { return {a.x + b.x, a.y + b.y}; }
static C operator-(C a, C b) { return {a.x - b.x, a.y - b.y}; }
static C operator*(C a, float s) { return {a.x * s, a.y * s}; }
static C operator*(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }";

/// Values in single precision, as tiles have them.
type C = number::C<f32>;

type Through = unsafe extern "C" fn(*mut C, i32);

#[test]
fn transforms_of_lines_are_those_of_the_definition() {
    // Two and three passes, primes up to 13, lines that do not fill their tiles; every size of the bench.
    for frame in [[13, 7], [48, 100], [300, 200], [192, 66], [1024, 96], [40, 512], [6, 2048], [2028, 5], [1, 1]] {
        let tiles = Tiles::of(frame, 227 << 10).unwrap();
        let [ny, nx] = frame;
        let number = |name: &str, value: u32| (name.to_owned(), value.to_string());
        let defines: Vec<_> =
            tiles.defines().into_iter().chain([("NX", nx as u32), ("NY", ny as u32)]).map(|(name, value)| number(name, value)).collect();
        let files: &Files = &[
            ("model.cu", &[COMPLEX]),
            ("radix.cu", &[include_str!("../radix.cu")]),
            ("lines.cu", &[include_str!("../lines.cu")]),
            ("test", &["#include \"lines.cu\"", THROUGH]),
        ];
        let Some(host) = Host::compile(&Recipe::of_files("lines", files, &["test"], &defines, &["rows_forward"])) else { return };
        let values: Vec<C> = (0..nx * ny).map(|i| C::new((i as f32 * 1.7).sin(), (i as f32 * 0.3).cos())).collect();
        for (name, lines, n, count, stride, apart) in [("rows", tiles.rows, nx, ny, 1, nx), ("columns", tiles.columns, ny, nx, nx, 1)] {
            let mut found = values.clone();
            let mut run = |way: &str| {
                // SAFETY: the parameters of `through`'s kernels, whose lines lie in the array.
                let (kernel, at) = unsafe { (host.kernel::<Through>(&format!("{name}_{way}")), found.as_mut_ptr()) };
                let blocks = (count as u32).div_ceil(lines.count);
                host.launch([blocks, 1, 1], [lines.threads, 1, 1], &|| unsafe { kernel(at, count as i32) });
                found.clone()
            };
            let forward = run("forward");
            let back = run("inverse");
            let roots: Vec<Complex<f64>> = (0..n).map(|k| Complex::cis(-std::f64::consts::TAU * k as f64 / n as f64)).collect();
            let (mut worst, mut size) = (0.0, 1e-30);
            for line in (0..count).step_by(count.div_ceil(5)) {
                for k in 0..n {
                    let value = |i: usize| values[line * apart + i * stride];
                    let sum: Complex<f64> =
                        (0..n).map(|i| Complex::new(f64::from(value(i).re), f64::from(value(i).im)) * roots[i * k % n]).sum();
                    let own = forward[line * apart + k * stride];
                    worst += (Complex::new(f64::from(own.re), f64::from(own.im)) - sum).norm_sqr();
                    size += sum.norm_sqr();
                }
            }
            // Rounding of log2 n additions and of products of up to five roots.
            assert!((worst / size).sqrt() < 6e-7, "{name} of {frame:?}: {:e}", (worst / size).sqrt());
            let off: f64 = back.iter().zip(&values).map(|(a, b)| f64::from((a / n as f32 - b).norm_sqr())).sum();
            assert!((off / (nx * ny) as f64).sqrt() < 1e-6, "{name} of {frame:?} and back: {off:e}");
        }
    }
}

type Columns =
    unsafe extern "C" fn(*mut C, *mut C, *const f32, *const [f32; 2], *mut f32, *mut f32, *mut u32, u32, ConstraintArgument<f32>, f32);

#[test]
fn columns_are_constrained_as_the_formulae_say() {
    // One tile a frame, since blocks follow one another here; twice as many threads in one pass as in the other, and as many.
    for frame in [[300, 13], [512, 9], [1024, 8]] {
        let config = KernelConfig {
            frame,
            bin: [1, 1],
            modes: [1, 1],
            several: false,
            near: false,
            atomic: false,
            registers: false,
            shifted: false,
            double: false,
            processing: FrameProcessing::Tiled { joined: true },
        };
        let Some(host) = Host::compile(&frames_recipe(&config)) else { return };
        let ([ny, nx], views) = (frame, 2);
        let random = |i: usize, by: f64| (i as f64 * by).sin();
        let wide = |v: C| Complex::new(f64::from(v.re), f64::from(v.im));
        let mut waves: Vec<C> = (0..views * nx * ny).map(|i| C::new(random(i, 1.3) as f32, random(i, 2.9) as f32)).collect();
        let mut exits: Vec<C> = (0..views * nx * ny).map(|i| C::new(random(i, 0.7) as f32, random(i, 3.7) as f32)).collect();
        let mag: Vec<f32> = (0..views * nx * ny).map(|i| if i % 11 == 0 { -1.0 } else { (1.0 + random(i, 5.1)) as f32 }).collect();
        let weight = [[1.0 / (nx * ny) as f32, 0.0]; 2];
        // The bound lies below the error: a part of the deviation stays.
        let (bound, c) = (0.05_f32, 2.0_f64);
        let rule = ConstraintArgument::from(&Projection { a: -1.0, b: 1.0, c, bound: f64::from(bound), noise: 0.0, likelihood: true });
        let scale = 1.0 / ((nx * ny) as f64).sqrt();
        let (before_waves, before) = (waves.clone(), exits.clone());
        let (mut sums, mut changes, mut turns) = (vec![0.0; 2 * views], vec![0.0; views], vec![0; 2 * views]);
        let tiles = config.tiles().unwrap();
        assert_eq!(tiles.across(), 1);
        // SAFETY: the parameters of `columns`, whose arrays hold all views.
        let columns = unsafe { host.kernel::<Columns>("columns") };
        let (w, x, s, d, t) = (waves.as_mut_ptr(), exits.as_mut_ptr(), sums.as_mut_ptr(), changes.as_mut_ptr(), turns.as_mut_ptr());
        host.launch([views as u32, 1, 1], [tiles.columns.threads, 1, 1], &|| unsafe {
            columns(w, x, mag.as_ptr(), weight.as_ptr(), s, d, t, 0, rule, scale as f32);
        });
        let root = |k: usize| Complex::cis(-std::f64::consts::TAU * (k % ny) as f64 / ny as f64);
        let roots: Vec<Complex<f64>> = (0..ny).map(root).collect();
        for n in 0..views {
            let at = |y: usize, x: usize| n * nx * ny + y * nx + x;
            let g = |k: usize, x: usize| (0..ny).map(|y| wide(before[at(y, x)]) * roots[y * k % ny]).sum::<Complex<f64>>() * scale;
            let pixels = || (0..ny).flat_map(|y| (0..nx).map(move |x| (y, x)));
            let g: Vec<Complex<f64>> = pixels().map(|(y, x)| g(y, x)).collect();
            let estimate: Vec<f64> = pixels().map(|(y, x)| (g[y * nx + x] * c + wide(before_waves[at(y, x)]) * (1.0 - c)).norm()).collect();
            let counted = |y: usize, x: usize| Some(f64::from(mag[at(y, x)])).filter(|m| *m >= 0.0);
            let misfit: f64 = pixels().filter_map(|(y, x)| counted(y, x).map(|m| (estimate[y * nx + x] - m).powi(2))).sum();
            let error = misfit * f64::from(weight[n][0]);
            assert!(error > 2.0 * f64::from(bound), "{error}");
            let pull = (f64::from(bound) / error).sqrt();
            let now: Vec<Complex<f64>> = pixels()
                .map(|(y, x)| {
                    let q = counted(y, x).map_or(1.0, |m| m / estimate[y * nx + x]);
                    let (g, e) = (g[y * nx + x], wide(before_waves[at(y, x)]));
                    g * -1.0 + e + (g * c + e * (1.0 - c)) * (pull + (1.0 - pull) * q)
                })
                .collect();
            let norm: f64 = now.iter().map(Complex::norm_sqr).sum();
            let off = |a: &dyn Fn(usize, usize) -> Complex<f64>, b: &dyn Fn(usize, usize) -> C| {
                pixels().map(|(y, x)| (a(y, x) - wide(b(y, x))).norm_sqr()).sum::<f64>()
            };
            // Rounding of transforms and of differences: where the estimate is dark its phase is lost.
            let waves_off = off(&|y, x| now[y * nx + x], &|y, x| waves[at(y, x)]);
            assert!((waves_off / norm).sqrt() < 1e-5, "{frame:?}: waves {:e}", (waves_off / norm).sqrt());
            let back = |y: usize, x: usize| (0..ny).map(|k| now[k * nx + x] * roots[k * y % ny].conj()).sum::<Complex<f64>>() * scale;
            let exits_off = off(&back, &|y, x| exits[at(y, x)]);
            assert!((exits_off * nx as f64 / norm).sqrt() < 1e-5, "{frame:?}: exits {:e}", (exits_off * nx as f64 / norm).sqrt());
            let change: f64 = pixels().map(|(y, x)| (now[y * nx + x] - wide(before_waves[at(y, x)])).norm_sqr()).sum();
            assert!((f64::from(changes[n]) / change - 1.0).abs() < 1e-5, "{frame:?}: change {} for {change}", changes[n]);
            assert!((f64::from(sums[2 * n + 1]) / misfit - 1.0).abs() < 1e-5, "{frame:?}: misfit {} for {misfit}", sums[2 * n + 1]);
        }
    }
}

#[test]
fn radices_are_small() {
    assert_eq!(radices(1024), Some([32, 32, 1]));
    assert_eq!(radices(300), Some([20, 15, 1]));
    assert_eq!(radices(2048), Some([16, 16, 8]));
    assert_eq!(radices(7), Some([7, 1, 1]));
    assert_eq!(radices(34), None, "17 is no small prime");
    assert_eq!(radices(4099), None);
    // There 20 lines of 15, and back 15 of 21.
    assert_eq!(line_bytes([20, 15, 1]), 8 * 315);
}
