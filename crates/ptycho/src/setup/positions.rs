//! Conversion of positions to pixels of the objects.

use crate::config::Compatibility;
use crate::model::{Storage, View};
use crate::scan::Scan;

/// PtyPy adds this part of a pixel before it rounds.
const NUDGE: f64 = 1e-5;

/// Views, their sub-pixel remainders, and storages without offsets.
///
/// The pixels of an object hang on the least of its positions along each axis; PtyPy's on the position of its first view, and what
/// is rounded is [`NUDGE`] larger. Where positions are no whole pixels apart, this decides which pixel is the nearest.
pub(super) fn positions(
    scans: &[Scan],
    [probe_of, object_of]: [&[usize]; 2],
    objects: usize,
    (margin, compatibility): (usize, Compatibility),
    (frame, pixel): ([usize; 2], [f64; 2]),
) -> (Vec<View>, Vec<[f64; 2]>, Vec<Storage>) {
    let ptypy = compatibility == Compatibility::Ptypy;
    let (nudge, ahead) = if ptypy { (NUDGE, 0.0) } else { (0.0, margin as f64) };
    let at = |p: &[f64; 2]| [0, 1].map(|d| p[d] / pixel[d]);
    let all = || scans.iter().zip(object_of).flat_map(|(scan, object)| scan.positions.iter().map(move |p| (at(p), *object)));
    // Origin of an object's pixels.
    let mut anchors: Vec<Option<[f64; 2]>> = vec![None; objects];
    for (position, object) in all() {
        let anchor = anchors[object].get_or_insert(position);
        if !ptypy {
            *anchor = [0, 1].map(|d| anchor[d].min(position[d]));
        }
    }
    let anchor = |object: usize| anchors[object].unwrap_or_default();
    let whole = |(position, object): ([f64; 2], usize)| {
        let exact = [0, 1].map(|d| position[d] - anchor(object)[d] + ahead);
        (exact, exact.map(|e| (e + nudge).round()))
    };
    // The first pixel that is seen: `margin` of them come before.
    let mut first = vec![[f64::INFINITY; 2]; objects];
    for (position, object) in all() {
        let (_, whole) = whole((position, object));
        first[object] = [0, 1].map(|d| first[object][d].min(whole[d]));
    }
    let before = |object: usize| first[object].map(|low| low - margin as f64);
    let mut storages: Vec<Storage> = (0..objects)
        .map(|object| {
            let (anchor, before) = (anchor(object), before(object));
            let origin = [0, 1].map(|d| (anchor[d] - (ahead - before[d] + (frame[d] / 2) as f64)) * pixel[d]);
            Storage { shape: [0; 2], offset: 0, origin }
        })
        .collect();
    let (mut views, mut shifts) = (Vec::new(), Vec::new());
    let probes = scans.iter().zip(probe_of).flat_map(|(scan, probe)| std::iter::repeat_n(*probe, scan.positions.len()));
    for ((position, object), probe) in all().zip(probes) {
        let (exact, whole) = whole((position, object));
        let [row, col] = [0, 1].map(|d| whole[d] - before(object)[d]);
        views.push(View { probe: probe as u32, object: object as u32, row: row as i32, col: col as i32 });
        shifts.push([exact[0] - whole[0], exact[1] - whole[1]]);
        let shape = &mut storages[object].shape;
        for (d, n) in [row, col].into_iter().enumerate() {
            shape[d] = shape[d].max(n as usize + frame[d] + margin);
        }
    }
    (views, shifts, storages)
}
