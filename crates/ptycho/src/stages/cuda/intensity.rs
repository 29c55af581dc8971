//! Intensities of views by a state that a GPU had, on the host.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};

use crate::model::{Model, State, Transfer, View};
use crate::propagation::signed;

/// Intensities that the detector should count for a view, in double precision on the host.
pub(crate) fn intensity(model: &Model, state: &State, (view, shift): (View, [f64; 2])) -> Vec<f64> {
    let (frame, [probes, objects], pixels) = (model.frame, model.modes, model.pixels());
    let storage = &model.storages[view.object as usize];
    let mut plan = Plan::<f64>::new(Shape::frames(frame[0], frame[1], 1));
    let (bin, [_, columns]) = (model.bin, model.detector());
    let mut sum = vec![0.0; model.counted()];
    for (p, o) in (0..probes).flat_map(|p| (0..objects).map(move |o| (p, o))) {
        let mut probe = state.probe[(view.probe as usize * probes + p) * pixels..][..pixels].to_vec();
        let ramp = |i: usize| {
            let turns = |i: usize, d: usize| signed(i, frame[d]) * shift[d] / frame[d] as f64;
            Complex::cis(-std::f64::consts::TAU * (turns(i / frame[1], 0) + turns(i % frame[1], 1)))
        };
        if model.subpixel {
            plan.run(&mut probe, Direction::Forward);
            probe.iter_mut().enumerate().for_each(|(i, value)| *value *= ramp(i) / pixels as f64);
            plan.run(&mut probe, Direction::Inverse);
        }
        let corner = storage.offset + o * storage.layer() + view.row as usize * storage.shape[1] + view.col as usize;
        for (row, line) in probe.chunks_exact_mut(frame[1]).enumerate() {
            let object = &state.object[corner + row * storage.shape[1]..][..frame[1]];
            line.iter_mut().zip(object).for_each(|(p, o)| *p *= o);
        }
        let mut wave = probe;
        plan.run(&mut wave, Direction::Forward);
        let mut scale = 1.0 / pixels as f64;
        if let Transfer::Near(kernel) = &model.transfer {
            wave.iter_mut().zip(kernel).for_each(|(w, k)| *w *= k);
            if model.subpixel {
                wave.iter_mut().enumerate().for_each(|(i, w)| *w *= ramp(i).conj());
            }
            plan.run(&mut wave, Direction::Inverse);
            scale *= scale;
        }
        for (row, line) in wave.chunks_exact(frame[1]).enumerate() {
            let counted = &mut sum[row / bin[0] * columns..][..columns];
            for (column, together) in line.chunks_exact(bin[1]).enumerate() {
                for w in together {
                    counted[column] += w.norm_sqr() * scale;
                }
            }
        }
    }
    sum
}
