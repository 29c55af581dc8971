//! Complex Fourier transforms of one or two axes, many at once:
//!
//! ```text
//! forward:  X[k] = sum_j x[j] exp(-2 pi i j k / n)      inverse:  x[j] = sum_k X[k] exp(+2 pi i j k / n)
//! ```
//!
//! Neither is scaled: forward and inverse give `n` times the input (`n0 * n1` for two axes). Who calls has a pass to
//! fold the factor into. Data: `batch` frames one behind the other, each in C order, in place.
//!
//! The CPU uses rustfft (any length, fast where it has small factors), a GPU cuFFT; both keep plans, which is
//! where the time to set up goes. A plan of the CPU holds its own buffers, so a transform allocates nothing.

mod cpu;
mod cuda;

pub use self::cpu::{Plan, Real};
pub use self::cuda::{CudaPlan, CudaPlans, CudaReal};

/// Sign of the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Minus.
    Forward,
    /// Plus.
    Inverse,
}

/// Frames of one or two axes, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows: 1 for transforms of one axis.
    pub rows: usize,
    /// Values of a row, which lie together.
    pub columns: usize,
    /// Number of frames.
    pub batch: usize,
}

impl Shape {
    /// `batch` lines of `n` values.
    pub fn lines(n: usize, batch: usize) -> Self {
        Self { rows: 1, columns: n, batch }
    }

    /// `batch` frames of `rows` times `columns` values.
    pub fn frames(rows: usize, columns: usize, batch: usize) -> Self {
        Self { rows, columns, batch }
    }

    /// Values of a frame.
    pub fn frame(&self) -> usize {
        self.rows * self.columns
    }

    /// Values altogether.
    pub fn values(&self) -> usize {
        self.frame() * self.batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;
    use proptest::prelude::*;
    use std::f64::consts::TAU;

    fn noise(n: usize) -> Vec<Complex<f64>> {
        let philox = crate::rng::Philox::new(4, 14);
        (0..n as u64).map(|i| philox.uniforms(0, i)).map(|[a, b]| Complex::new(a - 0.5, b - 0.5)).collect()
    }

    /// The sum as it is written, frame by frame.
    fn plain(x: &[Complex<f64>], shape: Shape, sign: f64) -> Vec<Complex<f64>> {
        let (rows, columns) = (shape.rows, shape.columns);
        let mut out = Vec::with_capacity(x.len());
        for frame in x.chunks(shape.frame()) {
            for (p, q) in (0..rows).flat_map(|p| (0..columns).map(move |q| (p, q))) {
                let mut sum = Complex::new(0.0, 0.0);
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let turn = (i * p % rows) as f64 / rows as f64 + (j * q % columns) as f64 / columns as f64;
                    sum += frame[i * columns + j] * Complex::cis(sign * TAU * turn);
                }
                out.push(sum);
            }
        }
        out
    }

    fn distance<T: Real>(a: &[Complex<T>], b: &[Complex<f64>]) -> f64 {
        let wide = |v: &Complex<T>| Complex::new(v.re.wide(), v.im.wide());
        let norm = |d: f64| d.sqrt();
        let off = norm(a.iter().zip(b).map(|(a, b)| (wide(a) - b).norm_sqr()).sum());
        off / norm(b.iter().map(Complex::norm_sqr).sum()).max(1e-300)
    }

    fn narrow<T: Real>(x: &[Complex<f64>]) -> Vec<Complex<T>> {
        x.iter().map(|v| Complex::new(T::from_wide(v.re), T::from_wide(v.im))).collect()
    }

    /// The error of a fast transform is about eps log2 n (Higham, Accuracy and Stability, ch. 24); 4 leaves room for the
    /// input's rounding and for lengths with large prime factors.
    fn limit(eps: f64, shape: Shape) -> f64 {
        4.0 * eps * ((shape.frame() as f64).log2() + 2.0)
    }

    const SHAPES: [Shape; 8] = [
        Shape { rows: 1, columns: 1, batch: 3 },
        Shape { rows: 1, columns: 16, batch: 5 },
        Shape { rows: 1, columns: 17, batch: 1 },
        Shape { rows: 8, columns: 8, batch: 1 },
        Shape { rows: 12, columns: 7, batch: 4 },
        Shape { rows: 5, columns: 1, batch: 2 },
        Shape { rows: 31, columns: 24, batch: 1 },
        Shape { rows: 16, columns: 32, batch: 9 },
    ];

    fn check<T: Real>(shape: Shape, threads: usize) {
        let x = noise(shape.values());
        crate::device::Cpu::new(threads).unwrap().install(|| {
            let mut plan = Plan::<T>::new(shape);
            let mut data = narrow::<T>(&x);
            plan.run(&mut data, Direction::Forward);
            let error = distance(&data, &plain(&x, shape, -1.0));
            assert!(error < limit(T::EPSILON, shape), "{shape:?}: {error:e}");
            plan.run(&mut data, Direction::Inverse);
            let scaled: Vec<_> = x.iter().map(|v| v * shape.frame() as f64).collect();
            let error = distance(&data, &scaled);
            assert!(error < 2.0 * limit(T::EPSILON, shape), "{shape:?} and back: {error:e}");
        });
    }

    #[test]
    fn transforms_are_the_sums_they_stand_for() {
        for shape in SHAPES {
            for threads in [1, 3] {
                check::<f32>(shape, threads);
                check::<f64>(shape, threads);
            }
        }
    }

    #[test]
    fn nothing_is_fine() {
        Plan::<f64>::new(Shape::frames(4, 4, 0)).run(&mut [], Direction::Forward);
        Plan::<f32>::new(Shape::lines(0, 3)).run(&mut [], Direction::Inverse);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn power_is_conserved_and_threads_do_not_matter(rows in 1usize..40, columns in 1usize..40, batch in 1usize..5) {
            let shape = Shape::frames(rows, columns, batch);
            let x = noise(shape.values());
            let on = |threads| {
                let mut data = x.clone();
                crate::device::Cpu::new(threads).unwrap().install(|| Plan::<f64>::new(shape).run(&mut data, Direction::Forward));
                data
            };
            let (one, three) = (on(1), on(3));
            prop_assert_eq!(&one, &three);
            let power = |v: &[Complex<f64>]| v.iter().map(Complex::norm_sqr).sum::<f64>();
            // Parseval: sum |X|^2 = n sum |x|^2.
            let (have, want) = (power(&one), power(&x) * shape.frame() as f64);
            prop_assert!((have - want).abs() <= 2.0 * limit(f64::EPSILON, shape) * want);
        }
    }

    fn compare<T: CudaReal>(plans: &mut CudaPlans, cuda: &crate::cuda::Cuda, shape: Shape) {
        let x = noise(shape.values());
        let mut buffer = cuda.buffer_from(&narrow::<T>(&x), "frames").unwrap();
        let plan = plans.get::<T>(shape).unwrap();
        for direction in [Direction::Forward, Direction::Inverse] {
            let mut here: Vec<Complex<f64>> =
                cuda.download(&buffer).unwrap().iter().map(|v| Complex::new(v.re.wide(), v.im.wide())).collect();
            Plan::<f64>::new(shape).run(&mut here, direction);
            plan.run(&mut buffer, direction).unwrap();
            let error = distance(&cuda.download(&buffer).unwrap(), &here);
            assert!(error < limit(T::EPSILON, shape), "{shape:?} {direction:?}: {error:e}");
        }
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn the_gpu_agrees() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let mut plans = match CudaPlans::new(&cuda) {
            Ok(plans) => plans,
            Err(error) => {
                assert!(std::env::var_os("ZELLIGE_REQUIRE_GPU").is_none(), "{error}");
                println!("skipped: no cuFFT ({error})");
                return;
            }
        };
        for shape in SHAPES.into_iter().chain([Shape::frames(128, 128, 40), Shape::lines(4096, 100), Shape::frames(100, 243, 3)]) {
            compare::<f32>(&mut plans, &cuda, shape);
            compare::<f64>(&mut plans, &cuda, shape);
        }
        assert!(std::sync::Arc::ptr_eq(&plans.get::<f32>(SHAPES[3]).unwrap(), &plans.get::<f32>(SHAPES[3]).unwrap()));
    }
}
