//! An engine on arrays, as another program hands them over, beside the same engine on the model of the same scan.

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_ptycho::arrays::{ArrayEngine, ArrayProblem, Propagator};
use zellige_ptycho::config::{Compatibility, Config, EngineConfig, EngineName, Precision, ScanConfig};
use zellige_ptycho::model::{State, View};
use zellige_ptycho::scan::Mask;

use super::common::{Bench, Reference, distance, mean};

/// The reference as PtyPy has it: frames with the axis in the middle, and the phase that leaves it there.
fn problem(reference: &mut Reference) -> ArrayProblem {
    let model = reference.model();
    let counts = reference.numbers("intensity").into_iter().map(|v| v as f32).collect();
    // Half a turn from pixel to pixel shifts the transform of an even number of pixels by half of them.
    let turned = |i: usize| if (i / 64 + i % 64).is_multiple_of(2) { 1.0 } else { -1.0 };
    let phase = model.filter.iter().enumerate().map(|(i, phase)| phase * turned(i)).collect();
    ArrayProblem {
        counts,
        mask: Mask::All,
        frame: [64; 2],
        modes: [1; 2],
        probes: 1,
        objects: vec![[116; 2]],
        views: model.views,
        propagator: Propagator::Far(phase),
        power: None,
    }
}

fn config(engine: EngineConfig) -> Config {
    Config { compatibility: Compatibility::Ptypy, ..Config::new(ScanConfig::default(), engine) }
}

fn device() -> Device {
    Device::Cpu(Cpu::new(2).unwrap())
}

fn engine(reference: &mut Reference, state: &State, config: &Config, first: u64) -> ArrayEngine {
    let model = problem(reference).model(&state.probe, state.object.clone()).unwrap();
    ArrayEngine::new(config, model, None, first, &device()).unwrap()
}

fn start(reference: &mut Reference) -> State {
    State { probe: reference.waves("probe_init"), object: reference.waves("object_init") }
}

#[test]
fn arrays_go_the_way_of_the_scan_that_they_are() {
    let mut reference = Reference::open();
    let (model, start) = (reference.model(), start(&mut reference));
    for name in [EngineName::Dm, EngineName::Epie, EngineName::Ml] {
        let config = config(EngineConfig::new(name, 5));
        let mut arrays = engine(&mut reference, &start, &config, 0);
        let mut bench = Bench::new(&model, &config.engine[0], Compatibility::Ptypy, 2, false);
        let order: Vec<u32> = (0..model.views.len() as u32).rev().collect();
        for k in 0..5 {
            arrays.iterate(1, Some(&order)).unwrap();
            let (found, expected) = (mean(&arrays.errors().unwrap()), bench.step(Some(&order)));
            for c in 0..3 {
                // Single precision, and five iterations of a map that makes differences 1.6 times as large.
                assert!((found[c] - expected[c]).abs() <= 1e-5 * expected[c], "{name:?}, iteration {k}: {found:?}, {expected:?}");
            }
        }
        let (found, expected) = (arrays.state().unwrap(), bench.stages.state().unwrap());
        assert!(distance(&found.object, &expected.object, |_| true) < 1e-5);
        // The probe comes back without the phase that it was given without.
        let bare: Vec<_> = expected.probe.iter().zip(&model.filter).map(|(p, f)| p * f.conj()).collect();
        assert!(distance(&found.probe, &bare, |_| true) < 1e-5);
    }
}

/// Waves, state and number of the iteration are all that a map has: another engine goes on with them.
#[test]
fn exit_waves_carry_an_engine_on() {
    let mut reference = Reference::open();
    let start = start(&mut reference);
    // All passes of the overlap loop: its end goes by the probe before as well.
    let config = config(EngineConfig { overlap_tolerance: Some(0.0), overlap_passes: Some(2), ..EngineConfig::new(EngineName::Dm, 6) });
    let mut whole = engine(&mut reference, &start, &config, 0);
    whole.iterate(3, None).unwrap();
    let (state, waves) = (whole.state().unwrap(), whole.exit_waves().unwrap());
    let apart = |mut second: ArrayEngine, whole: &State| {
        second.iterate(3, None).unwrap();
        distance(&second.state().unwrap().object, &whole.object, |_| true)
    };
    let mut second = engine(&mut reference, &state, &config, 3);
    second.set_exit_waves(&waves).unwrap();
    let fresh = engine(&mut reference, &state, &config, 3);
    whole.iterate(3, None).unwrap();
    let whole = whole.state().unwrap();
    let [with, without] = [apart(second, &whole), apart(fresh, &whole)];
    assert!(with < 1e-5 && without > 1e-2, "{with:e} with the waves, {without:e} without");
}

/// Probes and objects are written where the caller keeps them, in the precision of the run, and taken back where a bit has changed.
#[test]
fn the_state_goes_to_the_arrays_of_the_caller_and_back() {
    let mut reference = Reference::open();
    let start = start(&mut reference);
    for double in [true, false] {
        let mut config = config(EngineConfig::new(EngineName::Dm, 6));
        config.precision = if double { Precision::F64 } else { Precision::F32 };
        let mut engine = engine(&mut reference, &start, &config, 0);
        engine.iterate(2, None).unwrap();
        let (before, words) = (engine.state().unwrap(), if double { 2 } else { 1 });
        let (mut probe, mut object) = (vec![0; words * before.probe.len()], vec![0; words * before.object.len()]);
        engine.write_state(&mut [&mut probe, &mut object]).unwrap();
        let numbers = |bits: &[u64]| -> Vec<Complex<f64>> {
            if double {
                return bytemuck::cast_slice(bits).to_vec();
            }
            bytemuck::cast_slice::<_, Complex<f32>>(bits).iter().map(|v| Complex::new(v.re.into(), v.im.into())).collect()
        };
        // In single precision the phase of the sample plane is taken off with one more rounding.
        let near = |a: &[Complex<f64>], b: &[Complex<f64>]| distance(a, b, |_| true) <= if double { 0.0 } else { 1e-7 };
        assert!(near(&numbers(&probe), &before.probe) && near(&numbers(&object), &before.object), "double {double}");
        // The engine does not take what it has written itself.
        assert!(!engine.take_state(&[&probe, &object]).unwrap());
        assert_eq!(engine.state().unwrap(), before);
        // The last bit of the imaginary part of the last value.
        *object.last_mut().unwrap() ^= if double { 1 } else { 1 << 32 };
        assert!(engine.take_state(&[&probe, &object]).unwrap());
        assert_eq!(engine.state().unwrap().object.last(), numbers(&object).last());
        assert_ne!(engine.state().unwrap().object.last(), before.object.last());
        assert!(!engine.take_state(&[&probe, &object]).unwrap());
        let short = engine.write_state(&mut [&mut probe[1..], &mut object]).unwrap_err().to_string();
        assert!(short.contains("probes and objects"), "{short}");
    }
}

/// Frames within their own bound are let through, the others are not.
#[test]
fn bounds_are_those_of_each_view() {
    let mut reference = Reference::open();
    let start = start(&mut reference);
    let changes = |config: &Config, bounds: Option<&[f64]>, reference: &mut Reference| {
        let model = problem(reference).model(&start.probe, start.object.clone()).unwrap();
        let mut engine = ArrayEngine::new(config, model, bounds, 0, &device()).unwrap();
        engine.iterate(1, None).unwrap();
        engine.errors().unwrap().iter().map(|e| e[2]).collect::<Vec<f64>>()
    };
    let of = |bound: f64| config(EngineConfig { fourier_bound: Some(bound), ..EngineConfig::new(EngineName::Dm, 1) });
    let [none, all] = [0.0, 1e30].map(|bound| changes(&of(bound), None, &mut reference));
    let bounds: Vec<f64> = (0..none.len()).map(|j| if j % 2 == 0 { 0.0 } else { 1e30 }).collect();
    let found = changes(&of(0.0), Some(&bounds), &mut reference);
    for (j, change) in found.iter().enumerate() {
        assert_eq!(*change, if j % 2 == 0 { none[j] } else { all[j] }, "view {j}");
    }
    assert!(none.iter().zip(&all).all(|(none, all)| none > all));
}

/// A masked pixel has no say: any counts there give the same.
#[test]
fn masked_pixels_do_not_count() {
    let mut reference = Reference::open();
    let start = start(&mut reference);
    let config = config(EngineConfig::new(EngineName::Dm, 2));
    let mut of = |counts: f32, masked: bool| {
        let mut problem = problem(&mut reference);
        problem.counts.iter_mut().skip(2000).step_by(4096).for_each(|c| *c = counts);
        if masked {
            problem.mask = Mask::Common((0..4096).map(|i| i != 2000).collect());
        }
        let model = problem.model(&start.probe, start.object.clone()).unwrap();
        let mut engine = ArrayEngine::new(&config, model, None, 0, &device()).unwrap();
        engine.iterate(2, None).unwrap();
        engine.state().unwrap().object
    };
    let power = of(1e6, false);
    let [one, other] = [of(3.0, true), of(1e6, true)];
    assert_eq!(one, other);
    assert_ne!(one, power);
}

#[test]
fn faults_of_arrays_are_named() {
    let mut reference = Reference::open();
    let start = start(&mut reference);
    let mut fault = |change: &dyn Fn(&mut ArrayProblem)| {
        let mut problem = problem(&mut reference);
        change(&mut problem);
        problem.model(&start.probe, start.object.clone()).unwrap_err().to_string()
    };
    let outside = fault(&|p| p.views[3] = View { row: 60, ..p.views[3] });
    assert!(outside.contains("view 3") && outside.contains("row 60"), "{outside}");
    let short = fault(&|p| p.counts.truncate(7));
    assert!(short.contains("frames") && short.contains("7 values"), "{short}");
    let negative = fault(&|p| p.counts[70] = -2.0);
    assert!(negative.contains("-2 counts at frame 0, row 1, column 6"), "{negative}");
    let phase = fault(&|p| p.propagator = Propagator::Near(vec![Complex::new(1.0, 0.0); 3]));
    assert!(phase.contains("kernel"), "{phase}");
    let mut engine = engine(&mut reference, &start, &config(EngineConfig::new(EngineName::Epie, 1)), 0);
    let order = engine.iterate(1, Some(&vec![0; engine.model().views.len()])).unwrap_err().to_string();
    assert!(order.contains("permutation"), "{order}");
}
