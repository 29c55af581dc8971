//! Fourier steps by the kernels in doubles, run on the CPU, against those of the CPU's own stages.

use num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_engine::ops::fft::Plan;
use zellige_engine::testing::host::Host;

use super::super::arguments::StorageArgument;
use super::super::lists::tests::model as scan;
use super::super::number::pairs;
use super::*;
use crate::model::{MASKED, Model, State, View};
use crate::noise;
use crate::stages::{Projection, cpu};

type Wave = C<f64>;
type Spread = unsafe extern "C" fn(ModelArgument, *mut Wave, u32);
type Measure = unsafe extern "C" fn(*const Wave, *const Wave, *const f32, *mut f64, *mut f64, u32, ConstraintArgument<f64>, f64);
type Constrain =
    unsafe extern "C" fn(*mut Wave, *mut Wave, *const f64, *const [f64; 2], *const f64, *mut f64, u32, ConstraintArgument<f64>, f64);
type FrameErrors = unsafe extern "C" fn(*const f64, *const f64, *const [f64; 2], *mut f64, *mut u32);

type Clustered = unsafe extern "C" fn(
    ModelArgument,
    *mut Wave,
    *mut Wave,
    *const f32,
    *const [f64; 2],
    *mut f64,
    u32,
    u32,
    ConstraintArgument<f64>,
    f64,
);

/// Two objects and two probes, and a state beside the one that waves begin with.
fn problem(frame: [usize; 2], bin: [usize; 2], modes: usize, views: usize) -> (Model, State) {
    let random = |i: usize, by: f64| (i as f64 * by).sin();
    let mut model = Model { frame, bin, modes: [modes, 1], shifts: vec![[0.0; 2]; views], ..scan() };
    let shape = [frame[0] + 24, frame[1] + 54];
    model.storages.iter_mut().enumerate().for_each(|(i, s)| (s.shape, s.offset) = (shape, i * shape[0] * shape[1]));
    model.views.truncate(views);
    model.views.iter_mut().for_each(|v| *v = View { row: v.row % 24, ..*v });
    let state = |a: f64| State {
        probe: (0..model.probe_len()).map(|i| Complex::new(2.0 + random(i, a), random(i, 2.3))).collect(),
        object: (0..model.object_len()).map(|i| Complex::from_polar(1.0 + 0.3 * random(i, a), random(i, 0.7))).collect(),
    };
    let (start, other) = (state(1.3), state(1.9));
    let count = |i: usize| if i.is_multiple_of(13) { MASKED } else { (3.0 + 2.0 * random(i, 5.1)) as f32 };
    let mag = (0..model.views.len() * model.counted()).map(count).collect();
    (Model { mag, start, ..model }, other)
}

/// Errors of the views after each of two steps by the kernels, and exit waves of the last, if it goes so far.
fn by_kernels(host: &Host, config: &KernelConfig, model: &Model, now: &State, rule: &Projection) -> (Vec<Vec<f64>>, Vec<Wave>) {
    let clustered = matches!(config.processing, FrameProcessing::Clustered { .. });
    let (views, pixels, exits) = (model.views.len(), model.pixels(), model.exits());
    let storages: Vec<StorageArgument> = model
        .storages
        .iter()
        .map(|s| StorageArgument { offset: s.offset as u64, height: s.shape[0] as u32, width: s.shape[1] as u32 })
        .collect();
    let argument = |state: &State| ModelArgument {
        probe: state.probe.as_ptr() as u64,
        object: state.object.as_ptr() as u64,
        views: model.views.as_ptr() as u64,
        storages: storages.as_ptr() as u64,
        near: 0,
        spectra: 0,
        shifts: 0,
    };
    let scale = 1.0 / (pixels as f64).sqrt();
    let mut plan = Plan::<f64>::new(Shape::frames(model.frame[0], model.frame[1], views * exits));
    let mut behind = vec![Wave::default(); views * exits * pixels];
    // SAFETY: the parameters of the kernels, whose arrays hold all views.
    let (spread, measure) = unsafe { (host.kernel::<Spread>("spread"), host.kernel::<Measure>("measure")) };
    // SAFETY: as above.
    let (constrain, errors) = unsafe { (host.kernel::<Constrain>("constrain"), host.kernel::<FrameErrors>("frame_errors")) };
    // SAFETY: as above.
    let project = clustered.then(|| unsafe { host.kernel::<Clustered>("project") });
    let spread = |state: &State, to: &mut [Wave]| {
        let (model, to) = (argument(state), to.as_mut_ptr());
        let grid = [(pixels as u32).div_ceil(256), (views * exits) as u32, 1];
        host.launch(grid, [256, 1, 1], &|| unsafe { spread(model, to, 0) });
    };
    spread(&model.start, &mut behind);
    plan.run(&mut behind, Direction::Forward);
    let mut waves: Vec<Wave> = behind.iter().map(|v| v * scale).collect();
    let weight = pairs::<f64>(&noise::of_frames(&model.mag, model.counted()));
    let [parts, all] = [config.parts(), views as u32];
    let mut ratios = vec![0.0; views * model.counted()];
    let (mut sums, mut changes) = (vec![0.0; 2 * parts as usize * views], vec![0.0; parts as usize * views]);
    let (rule, team) = (ConstraintArgument::from(rule), [TEAM, 1, 1]);
    let found = (0..2)
        .map(|_| {
            if let Some(project) = project {
                let mut found = vec![0.0; 3 * views];
                let (w, x, e) = (waves.as_mut_ptr(), behind.as_mut_ptr(), found.as_mut_ptr());
                let (model, mag, weight) = (argument(now), model.mag.as_ptr(), weight.as_ptr());
                host.launch([1; 3], [config.clustered_threads(), 1, 1], &|| unsafe {
                    project(model, w, x, mag, weight, e, 0, all, rule, scale);
                });
                return found;
            }
            spread(now, &mut behind);
            plan.run(&mut behind, Direction::Forward);
            let (w, x, q) = (waves.as_mut_ptr(), behind.as_mut_ptr(), ratios.as_mut_ptr());
            let (s, d, b) = (sums.as_mut_ptr(), changes.as_mut_ptr(), weight.as_ptr());
            host.launch([parts, all, 1], team, &|| unsafe { measure(w, x, model.mag.as_ptr(), q, s, 0, rule, scale) });
            host.launch([parts, all, 1], team, &|| unsafe { constrain(w, x, q, b, s, d, 0, rule, scale) });
            let (mut found, mut turns) = (vec![0.0; 3 * views], vec![1; 2 * views]);
            let (e, t) = (found.as_mut_ptr(), turns.as_mut_ptr());
            host.launch([all, 1, 1], team, &|| unsafe { errors(s, d, b, e, t) });
            assert!(turns.iter().all(|t| *t == 0));
            found
        })
        .collect();
    (found, if clustered { behind } else { Vec::new() })
}

#[test]
fn fourier_steps_in_doubles_are_those_of_the_cpu() {
    for bin in [[1, 1], [2, 3]] {
        agree(problem([40, 36], bin, 2, 6), FrameProcessing::MultiPass);
    }
}

/// Of one block, since blocks follow one another here: ranks lie in it.
#[test]
fn fourier_steps_over_clusters_are_those_of_the_cpu() {
    agree(problem([128, 128], [1, 1], 1, 3), FrameProcessing::Clustered { cluster: 0 });
}

fn agree((model, now): (Model, State), processing: FrameProcessing) {
    let config = KernelConfig {
        frame: model.frame,
        bin: model.bin,
        modes: model.modes,
        several: true,
        near: false,
        atomic: false,
        registers: false,
        shifted: false,
        double: true,
        processing,
    };
    let Some(host) = Host::compile(&frames_recipe(&config)) else { return };
    // A difference map that takes over the moduli, and one that lets a part of their deviation through.
    for (bound, noise) in [(0.0, 0.0), (0.5, 0.3)] {
        let rule = Projection { a: -1.0, b: 1.0, c: 2.0, bound, noise, likelihood: true };
        let mut stages = cpu::new(&model, &Cpu::new(2).unwrap(), true);
        stages.exits_from_product().unwrap();
        stages.set_state(&now).unwrap();
        let (errors, exits) = by_kernels(&host, &config, &model, &now, &rule);
        for found in errors {
            stages.project(&rule).unwrap();
            let expected = stages.errors().unwrap();
            for (n, (a, b)) in found.iter().zip(expected.as_flattened()).enumerate() {
                // Rounding of two transforms, doubled by the second step; what is added to moduli off zero is 1e-10 of them.
                assert!((a - b).abs() <= 1e-10 * b, "{processing:?}, {:?}, bound {bound}, number {n}: {a} and {b}", model.bin);
            }
        }
        for (n, (a, b)) in exits.iter().zip(stages.exit_waves().unwrap()).enumerate() {
            assert!((a - b).norm() <= 1e-9, "{processing:?}, bound {bound}, value {n}: {a} and {b}");
        }
    }
}
