//! The transform against the engine's, on every instruction set.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan as Library, Shape as Frames};
use zellige_engine::rng::Philox;

use super::fft::{Plan, Shape};
use super::lanes::{Isa, Number};
use super::store;

fn noise(n: usize) -> Vec<Complex<f64>> {
    let philox = Philox::new(7, 3);
    (0..n as u64).map(|i| philox.normals(0, i)).map(|[a, b]| Complex::new(a, b)).collect()
}

fn difference(a: &[Complex<f64>], b: &[Complex<f64>]) -> f64 {
    let off: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
    (off / b.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt()
}

/// Forward against the library, and back to where it came from.
fn check<T: Number>(frame: [usize; 2], isa: Isa, limit: f64) {
    let shape = Shape::new(frame);
    let plan = Plan::<T>::new(shape, isa);
    let mut room = plan.room();
    let x = noise(frame[0] * frame[1]);
    let mut expected = x.clone();
    Library::<f64>::new(Frames::frames(frame[0], frame[1], 1)).run(&mut expected, Direction::Forward);
    // What stands in the room and in the output before must not matter.
    let mut wave = vec![T::from_f64(7.0); 2 * shape.plane()];
    let mut back = wave.clone();
    for _ in 0..2 {
        let from = store::frames_in::<T>(&x, shape);
        plan.forward(store::planes(&from), store::planes_mut(&mut wave), &mut room);
        let [re, im] = store::planes(&wave);
        let [re, im] = [re, im].map(|p| store::from_detector(p, shape, true));
        let found: Vec<_> = re.iter().zip(&im).map(|(a, b)| Complex::new(a.to_f64(), b.to_f64())).collect();
        let error = difference(&found, &expected);
        assert!(error < limit, "{frame:?} {isa:?}: {error:e}");
        plan.inverse(store::planes(&wave), store::planes_mut(&mut back), &mut room);
        let [re, im] = store::planes(&back);
        let stored = [&re[..shape.stored()], &im[..shape.stored()]].concat();
        let scaled: Vec<_> = x.iter().map(|v| v * x.len() as f64).collect();
        let error = difference(&store::frames_out(&stored, shape), &scaled);
        assert!(error < 2.0 * limit, "{frame:?} {isa:?} and back: {error:e}");
        // Padding stays nothing, or sums over rows would count it.
        let padded = stored.chunks_exact(shape.sx).all(|row| row[shape.nx..].iter().all(|v| *v == T::ZERO));
        assert!(padded, "{frame:?} {isa:?}");
    }
}

/// Rounding of a fast transform is some eps log2 n (Higham, Accuracy and Stability, ch. 24): 6e-8 and 1e-16 times 17, with room.
#[test]
fn transforms_are_those_of_the_library_on_every_instruction_set() {
    for isa in Isa::all() {
        for frame in [
            [4, 4],
            [8, 6],
            [16, 16],
            [64, 64],
            [96, 96],
            [128, 128],
            [32, 50],
            [30, 44],
            [22, 26],
            [34, 38],
            [46, 62],
            [256, 58],
            [250, 12],
            [15, 21],
            [63, 45],
        ] {
            check::<f32>(frame, isa, 2e-6);
            check::<f64>(frame, isa, 4e-15);
        }
    }
}
