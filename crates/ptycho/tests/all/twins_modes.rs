//! Products of modes and their change of basis on a GPU against those of the host: the same bits. Skipped without a GPU.

use num_complex::Complex;
use zellige_engine::testing;
use zellige_ptycho::{modes, stages};

use super::common::twins::{Case, PLAIN, model};

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn modes_are_made_orthogonal_to_the_same_bits() {
    let Some(cuda) = testing::gpu() else { return };
    for (case, double) in [
        (Case { modes: [4, 1], ..PLAIN }, false),
        (Case { modes: [4, 1], ..PLAIN }, true),
        (Case { frame: [128, 128], modes: [2, 1], sets: 2, views: 6, ..PLAIN }, false),
        // More than a block of pixels, and not a whole number of them.
        (Case { frame: [75, 63], modes: [3, 2], sets: 2, views: 6, ..PLAIN }, false),
        (Case { frame: [75, 63], modes: [3, 2], sets: 2, views: 6, ..PLAIN }, true),
    ] {
        let model = model(case);
        let (count, pixels) = (case.modes[0], model.pixels());
        let mut there = stages::cuda::new(&model, &cuda, double).unwrap();
        let before = there.probe().unwrap();
        let products = there.probe_products().unwrap();
        let expected: Vec<Complex<f64>> = before.chunks_exact(count * pixels).flat_map(|set| modes::products(set, count)).collect();
        assert!(products == expected, "{case:?}");
        let basis: Vec<Complex<f64>> = products.chunks_exact(count * count).flat_map(|set| modes::basis(set, count).0).collect();
        there.mix_probe(&basis).unwrap();
        let mixed = before.chunks_exact(count * pixels).zip(basis.chunks_exact(count * count));
        let mixed: Vec<Complex<f64>> = mixed.flat_map(|(set, basis)| modes::change(basis, set, count)).collect();
        let after = there.probe().unwrap();
        let rounded = |v: &Complex<f64>| if double { *v } else { Complex::new(f64::from(v.re as f32), f64::from(v.im as f32)) };
        assert!(after == mixed.iter().map(rounded).collect::<Vec<_>>(), "{case:?}");
        assert!(after != before, "{case:?}");
    }
}
