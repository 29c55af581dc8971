//! The near field against closed forms: a Gaussian beam and gratings.

use std::f64::consts::PI;

use num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_ptycho::model::{Model, Power, State, Storage, View};
use zellige_ptycho::propagation::transfer;
use zellige_ptycho::scan::{Beam, Propagation};
use zellige_ptycho::stages;

type C = Complex<f64>;

const N: [usize; 2] = [128, 96];

/// Intensities behind `distance`, as the stages in doubles see a probe in front of nothing or of `object`.
fn seen(beam: &Beam, probe: impl Fn(f64, f64) -> C, object: impl Fn(f64, f64) -> C) -> Vec<f64> {
    let position = |i: usize| [0, 1].map(|d| ([i / N[1], i % N[1]][d] as f64 - (N[d] / 2) as f64) * beam.pixel[d]);
    let plane = |of: &dyn Fn(f64, f64) -> C| (0..N[0] * N[1]).map(|i| of(position(i)[0], position(i)[1])).collect::<Vec<C>>();
    let model = Model {
        frame: N,
        bin: [1, 1],
        modes: [1, 1],
        probes: 1,
        storages: vec![Storage { shape: N, offset: 0, origin: [0.0; 2] }],
        views: vec![View::default()],
        subpixel: false,
        shifts: vec![[0.0; 2]],
        mag: vec![1.0; N[0] * N[1]],
        transfer: transfer(beam, N),
        pixel: beam.pixel,
        filter: vec![C::new(1.0, 0.0); N[0] * N[1]],
        power: Power::default(),
        start: State { probe: plane(&probe), object: plane(&object) },
        begins: Vec::new(),
        scans: vec![("one".into(), 0)],
        share: zellige_ptycho::share::Share::default(),
    };
    stages::cpu::new(&model, &Cpu::new(1).unwrap(), true).intensities(&[0]).unwrap().remove(0)
}

fn beam(distance: f64) -> Beam {
    Beam { wavelength: 1e-10, distance, pixel: [1e-6, 1.25e-6], propagation: Propagation::Near }
}

/// A beam that converges, exp(-r^2/w^2 - i pi r^2/(lambda R)), has the width `w sqrt((1 - z/R)^2 + (z/z_R)^2)` behind z, `z_R = pi
/// w^2/lambda` (Siegman, Lasers, ch. 17): narrower before its focus, wider than it was beyond twice as far. A kernel of the other
/// sign widens it from the start.
#[test]
fn a_gaussian_beam_has_its_width_and_curvature() {
    let (w, focus) = (14e-6, 3.0);
    for distance in [0.0, 1.5, 3.0, 4.5] {
        let beam = beam(distance);
        let wave = |y: f64, x: f64| {
            let r2 = y * y + x * x;
            C::from_polar((-r2 / (w * w)).exp(), -PI * r2 / (beam.wavelength * focus))
        };
        let rayleigh = PI * w * w / beam.wavelength;
        let grown = ((1.0 - distance / focus).powi(2) + (distance / rayleigh).powi(2)).sqrt();
        let found = seen(&beam, wave, |_, _| C::new(1.0, 0.0));
        let most = 1.0 / grown.powi(2);
        for (i, found) in found.iter().enumerate() {
            let [y, x] = [0, 1].map(|d| ([i / N[1], i % N[1]][d] as f64 - (N[d] / 2) as f64) * beam.pixel[d]);
            let expected = most * (-2.0 * (y * y + x * x) / (w * grown).powi(2)).exp();
            // The beam at the edges of the frame wraps to the other side: exp(-(60/14)^2) of its amplitude at most.
            assert!((found - expected).abs() < 1e-6 * most, "{distance}, pixel {i}: {found}, not {expected}");
        }
    }
}

/// A grating of period d comes back behind `2 d^2/lambda`, and half a period aside behind half of that (Talbot); a weak phase
/// grating `exp(i a cos)` is seen with the contrast `2 a sin(pi lambda z/d^2)`, brighter where the phase is advanced.
#[test]
fn gratings_come_back_and_phases_are_bright_behind_their_maxima() {
    let (d, a) = (16e-6, 1e-3);
    let at = |x: f64| (2.0 * PI * x / d).cos();
    let x_of = |i: usize| (i as f64 - (N[0] / 2) as f64) * 1e-6;
    let one = |_: f64, _: f64| C::new(1.0, 0.0);
    let talbot = 2.0 * d * d / 1e-10;
    for (part, aside) in [(1.0, 0.0), (0.5, 0.5 * d)] {
        let found = seen(&beam(part * talbot), one, |y, _| C::new(1.0 + 0.4 * at(y), 0.0));
        for (i, found) in found.iter().enumerate() {
            let expected = (1.0 + 0.4 * at(x_of(i / N[1]) - aside)).powi(2);
            assert!((found - expected).abs() < 1e-9, "{part}, pixel {i}: {found}, not {expected}");
        }
    }
    for part in [0.03, 0.125, 0.25, 0.4] {
        let found = seen(&beam(part * talbot), one, |y, _| C::cis(a * at(y)));
        let contrast = 2.0 * a * (2.0 * PI * part).sin();
        for (i, found) in found.iter().enumerate() {
            // Terms of the second order of the phase.
            assert!((found - 1.0 - contrast * at(x_of(i / N[1]))).abs() < 2.0 * a * a, "{part}, pixel {i}: {found}");
        }
    }
}
