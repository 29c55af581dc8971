//! Trials and slopes of positions on a GPU against those on the CPU. Tolerances as in [`super::twins_cuda`].

use zellige_engine::testing;
use zellige_ptycho::stages;

use super::common::twins::{Case, PLAIN, model, part};

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn places_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in [
        PLAIN,
        Case { frame: [128, 128], ..PLAIN },
        Case { frame: [32, 128], modes: [2, 2], sets: 2, ..PLAIN },
        Case { frame: [256, 256], modes: [2, 1], views: 5, ..PLAIN },
        Case { frame: [64, 64], near: true, ..PLAIN },
        Case { frame: [96, 100], modes: [2, 2], sets: 2, ..PLAIN },
        Case { frame: [64, 96], near: true, ..PLAIN },
        Case { bin: [2, 2], modes: [2, 1], sets: 2, ..PLAIN },
        Case { bin: [2, 3], frame: [96, 96], near: true, ..PLAIN },
        Case { between: true, ..PLAIN },
        Case { between: true, frame: [45, 63], modes: [2, 2], sets: 2, ..PLAIN },
        Case { between: true, near: true, frame: [45, 64], modes: [2, 1], ..PLAIN },
    ] {
        agree_in(case, &cuda, false);
    }
}

/// Trials and slopes on both.
pub(super) fn agree_in(case: Case, cuda: &zellige_engine::cuda::Cuda, double: bool) {
    let model = model(case);
    let cpu = zellige_engine::device::Cpu::new(2).unwrap();
    let mut here = stages::cpu::new(&model, &cpu, true);
    let mut there = stages::cuda::new(&model, cuda, double).unwrap();
    let still = vec![[0; 2]; case.views];
    // Towards the middle of an object that is 37 by 45 pixels larger than a frame.
    let inward: Vec<[i32; 2]> = model.views.iter().map(|v| [if v.row > 18 { -3 } else { 2 }, if v.col > 22 { -1 } else { 4 }]).collect();
    for moved in [&still, &inward] {
        let (a, b) = (there.trial(moved).unwrap(), here.trial(moved).unwrap());
        for (n, (a, b)) in a.iter().zip(&b).enumerate() {
            assert!((a - b).abs() <= 2e-5 * part(double) * b, "{case:?}, view {n}: {a} and {b}");
        }
    }
    assert_ne!(there.trial(&still).unwrap(), there.trial(&inward).unwrap());
    // Terms of both signs: relative to what a change by a pixel would cost.
    for (n, (a, b)) in there.slope().unwrap().iter().zip(&here.slope().unwrap()).enumerate() {
        for i in 0..5 {
            let size = [b[2].sqrt(), b[3].sqrt(), b[2], b[3], (b[2] * b[3]).sqrt()][i];
            let size = if i < 2 { size * b[2].max(b[3]).sqrt() } else { size };
            assert!((a[i] - b[i]).abs() <= 1e-4 * part(double) * (size + b[i].abs()), "{case:?}, view {n}, {i}: {a:?} and {b:?}");
        }
    }
    let mut views = model.views.clone();
    views.iter_mut().zip(&inward).for_each(|(v, by)| (v.row, v.col) = (v.row + by[0], v.col + by[1]));
    there.set_views(&views, &model.shifts).unwrap();
    here.set_views(&views, &model.shifts).unwrap();
    let (a, b) = (there.trial(&still).unwrap(), here.trial(&inward.iter().map(|_| [0; 2]).collect::<Vec<_>>()).unwrap());
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() <= 2e-5 * part(double) * b, "{case:?}: {a} and {b}"));
}
