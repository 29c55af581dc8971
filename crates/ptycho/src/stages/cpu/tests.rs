//! The transform against the engine's, on every instruction set.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan as LibraryTransform, Shape as Frames};
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
    let mut workspace = plan.workspace();
    let x = noise(frame[0] * frame[1]);
    let mut expected = x.clone();
    LibraryTransform::<f64>::new(Frames::frames(frame[0], frame[1], 1)).run(&mut expected, Direction::Forward);
    // Earlier content of the workspace and the output must not matter.
    let mut wave = vec![T::from_f64(7.0); 2 * shape.plane()];
    let mut back = wave.clone();
    for _ in 0..2 {
        let from = store::pack_frames::<T>(&x, shape);
        plan.forward(store::planes(&from), store::planes_mut(&mut wave), &mut workspace);
        let [re, im] = store::planes(&wave);
        let [re, im] = [re, im].map(|p| store::from_detector(p, shape, true));
        let found: Vec<_> = re.iter().zip(&im).map(|(a, b)| Complex::new(a.to_f64(), b.to_f64())).collect();
        let error = difference(&found, &expected);
        assert!(error < limit, "{frame:?} {isa:?}: {error:e}");
        plan.inverse(store::planes(&wave), store::planes_mut(&mut back), &mut workspace);
        let [re, im] = store::planes(&back);
        let stored = [&re[..shape.stored()], &im[..shape.stored()]].concat();
        let scaled: Vec<_> = x.iter().map(|v| v * x.len() as f64).collect();
        let error = difference(&store::unpack_frames(&stored, shape), &scaled);
        assert!(error < 2.0 * limit, "{frame:?} {isa:?} and back: {error:e}");
        // Padding stays nothing, or sums over rows would count it.
        let padded = stored.chunks_exact(shape.sx).all(|row| row[shape.nx..].iter().all(|v| *v == T::ZERO));
        assert!(padded, "{frame:?} {isa:?}");
    }
}

/// Rounding of a fast transform is about eps log2 n (Higham, Accuracy and Stability, ch. 24): 6e-8 and 1e-16 times 17, with
/// workspace.
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

/// Sub-pixel shifts of the probe: shifting is unitary, back is its adjoint, and a whole pixel is a whole pixel.
#[test]
fn shifts_are_unitary_and_go_back_by_their_adjoint() {
    use super::CpuStages;
    use crate::model::{Model, Power, State, Storage, Transfer, View};
    for frame in [[16, 16], [12, 20], [15, 21]] {
        let pixels = frame[0] * frame[1];
        let probe = noise(pixels);
        let model = Model {
            frame,
            bin: [1, 1],
            modes: [1, 1],
            probes: 1,
            storages: vec![Storage { shape: frame, offset: 0, origin: [0.0; 2] }],
            views: vec![View::default()],
            subpixel: true,
            shifts: vec![[0.0; 2]],
            mag: vec![1.0; pixels],
            transfer: Transfer::Far,
            pixel: [1.0; 2],
            filter: Vec::new(),
            power: Power::default(),
            start: State { probe: probe.clone(), object: noise(pixels) },
            begins: Vec::new(),
            scans: Vec::new(),
            share: crate::share::Share::default(),
        };
        let host = CpuStages::<f64>::new(&model, &zellige_engine::device::Cpu::new(1).unwrap(), Isa::best());
        let shape = Shape::new(frame);
        let moved = |values: &[Complex<f64>], by: [f64; 2]| {
            let mut wave = store::pack_frames::<f64>(values, shape);
            host.fixed.moved(&mut wave, by);
            let padded = wave.chunks_exact(shape.sx).all(|row| row[shape.nx..].iter().all(|v| *v == 0.0));
            assert!(padded, "{frame:?}: padding");
            store::unpack_frames(&wave, shape)
        };
        let dot = |a: &[Complex<f64>], b: &[Complex<f64>]| a.iter().zip(b).map(|(a, b)| a.conj() * b).sum::<Complex<f64>>();
        let other: Vec<_> = noise(2 * pixels)[pixels..].to_vec();
        let by = [0.37, -0.48];
        let (there, back) = (moved(&probe, by), moved(&other, by.map(|d| -d)));
        // Rounding of some transforms in doubles, as above.
        let limit = 1e-13 * dot(&probe, &probe).re;
        assert!((dot(&there, &other) - dot(&probe, &back)).norm() < limit, "{frame:?}: not the adjoint");
        assert!((dot(&there, &there) - dot(&probe, &probe)).norm() < limit, "{frame:?}: not unitary");
        // The one from the probe's transform is the same.
        let mut own = vec![0.0; host.fixed.probe_len()];
        let spectra = host.fixed.spectra(&host.state.probe);
        host.fixed.shifted(&spectra, &View::default(), by, None, &mut own, &mut host.fixed.scratch());
        assert!(difference(&store::unpack_frames(&own, shape), &there) < 1e-13, "{frame:?}");
        // Its derivative is that of central differences, whose error is h^2/6 times the cube of the highest frequency, pi.
        for d in 0..2 {
            host.fixed.shifted(&spectra, &View::default(), by, Some(d), &mut own, &mut host.fixed.scratch());
            let h = 1e-4;
            let at = |sign: f64| moved(&probe, [0, 1].map(|e| if e == d { by[e] + sign * h } else { by[e] }));
            let slope: Vec<_> = at(1.0).iter().zip(at(-1.0)).map(|(a, b)| (a - b) / (2.0 * h)).collect();
            assert!(difference(&store::unpack_frames(&own, shape), &slope) < 1e-7, "{frame:?}: axis {d}");
        }
        let turned = moved(&probe, [1.0, 0.0]);
        let rolled: Vec<_> = (0..pixels).map(|i| probe[(i + pixels - frame[1]) % pixels]).collect();
        assert!(difference(&turned, &rolled) < 1e-13, "{frame:?}: a whole pixel");
    }
}
