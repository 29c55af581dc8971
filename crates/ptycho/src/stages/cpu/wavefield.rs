//! The wavefield preconditioner: a slot over the root of what stands against it, light on the object and transmission in the probe.

use zellige_engine::error::Result;

use super::lanes::Number;
use super::overlap::BAND;
use super::{CpuStages, Pair};
use crate::relay::sum_pieces;

impl<T: Number> CpuStages<T> {
    /// Divides the probe's part of `pair` by `sqrt(sum |O|^2 + damping)` and the object's by `sqrt(sum |P|^2 + damping)`, sums over
    /// all views. The probe counts as it stands on whole pixels. Every sum has the order of the views, whatever the number of
    /// threads.
    pub(super) fn wavefield_divide(&self, pair: &mut Pair<T>, damping: [f64; 2]) -> Result<()> {
        let Self { fixed, views, bands, all, adders, state, .. } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let probes = state.probe.chunks_exact(fixed.probe_len());
        let light: Vec<Vec<T>> =
            probes.map(|set| power(set.chunks_exact(2 * stored).map(|mode| mode.split_at(stored).into()), stored)).collect();
        let layers = |storage: &super::StoragePlanes| (0..fixed.modes[1]).map(|o| storage.layer(&state.object, o)).collect::<Vec<_>>();
        let passed: Vec<Vec<T>> = fixed.storages.iter().map(|storage| power(layers(storage).into_iter(), storage.model.layer())).collect();
        fixed.cpu.install(|| {
            let mut weights: Vec<Vec<T>> = fixed.storages.iter().map(|storage| vec![T::ZERO; storage.model.layer()]).collect();
            let mut pieces = Vec::new();
            for (number, (weights, storage)) in weights.iter_mut().zip(&fixed.storages).enumerate() {
                pieces.extend(weights.chunks_mut(BAND * storage.shape[1]).enumerate().map(|(band, rows)| (number, band, rows)));
            }
            sum_pieces(
                &fixed.share,
                &mut pieces,
                |(number, band, _)| &adders.bands[*number][*band],
                |(.., rows)| rows.len(),
                |(number, band, _), rows| {
                    let (first, width) = (band * BAND, fixed.storages[*number].shape[1]);
                    for [j, _] in &bands[*number][*band] {
                        let view = &views[*j as usize];
                        let top = view.row as usize;
                        for y in first.max(top)..(first + rows.len() / width).min(top + shape.ny) {
                            let to = (y - first) * width + view.col as usize;
                            let from = (y - top) * shape.sx;
                            add(&mut rows[to..to + shape.nx], &light[view.probe as usize][from..from + shape.nx]);
                        }
                    }
                },
                |(.., rows), sums| invert(rows, sums, damping[1]),
            )?;
            for (storage, weights) in fixed.storages.iter().zip(&weights) {
                for o in 0..fixed.modes[1] {
                    storage.layer_mut(&mut pair.object, o).into_iter().for_each(|plane| multiply(plane, weights));
                }
            }
            for (set, probe) in pair.probe.chunks_exact_mut(fixed.probe_len()).enumerate() {
                let mut weights = vec![T::ZERO; stored];
                let mut pieces: Vec<(usize, &mut [T])> = weights.chunks_mut(shape.sx).enumerate().collect();
                sum_pieces(
                    &fixed.share,
                    &mut pieces,
                    |_| &adders.sets[set],
                    |(_, row)| row.len(),
                    |(y, _), row| {
                        for view in all.iter().map(|[j, _]| &views[*j as usize]).filter(|view| view.probe as usize == set) {
                            let from = fixed.storages[view.object as usize].at(view, *y);
                            add(&mut row[..shape.nx], &passed[view.object as usize][from..from + shape.nx]);
                        }
                    },
                    |(_, row), sums| invert(row, sums, damping[0]),
                )?;
                probe.chunks_exact_mut(stored).for_each(|plane| multiply(plane, &weights));
            }
            Ok(())
        })
    }
}

/// Squared moduli of a plane's worth of numbers, summed over layers.
fn power<'a, T: Number>(layers: impl Iterator<Item = [&'a [T]; 2]>, len: usize) -> Vec<T> {
    let mut sum = vec![T::ZERO; len];
    for [re, im] in layers {
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum += re[i] * re[i] + im[i] * im[i];
        }
    }
    sum
}

fn add<T: Number>(to: &mut [T], from: &[T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += *from;
    }
}

/// `1 / sqrt(sums + damping)`.
fn invert<T: Number>(to: &mut [T], sums: &[T], damping: f64) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to = T::from_f64(1.0 / (sum.to_f64() + damping).sqrt());
    }
}

/// Multiplies values by weights, as far as there are weights.
fn multiply<T: Number>(plane: &mut [T], weights: &[T]) {
    for (value, weight) in plane.iter_mut().zip(weights) {
        *value *= *weight;
    }
}
