//! Choices made, and options refused.

use super::*;
use crate::grid::{Axis, Bc};
use crate::solver::must_be_cut;

fn square(n: usize, bc: Bc) -> Grid {
    Grid::plane(Axis::new(n, 1.0, bc, bc), Axis::new(n, 1.0, bc, bc))
}

fn smoother(grid: &Grid) -> Smoother {
    match (Options { method: Method::Multigrid, ..Options::default() }).choose(grid, false, false).unwrap().scheme {
        Scheme::Cycles { plan, .. } => plan.smoother,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_smoother_follows_dimension_and_stretch() {
    let axis = |length| Axis::new(17, length, Bc::Dirichlet, Bc::Neumann);
    assert_eq!(smoother(&Grid::plane(axis(1.0), axis(1.4))), Smoother::RedBlack { omega: 1.15 });
    assert_eq!(smoother(&Grid::plane(axis(1.0), axis(2.0))), Smoother::RedBlack { omega: 1.0 });
    assert_eq!(smoother(&Grid { axes: [axis(1.0), axis(1.0), axis(1.0)] }), Smoother::RedBlack { omega: 1.2 });
}

#[test]
fn auto_takes_the_cheaper_method_and_says_why() {
    let mixed = |tolerance| Options { tolerance: Tolerance::Relative(tolerance), ..Options::default() };
    let single = |tolerance| Options { precision: Precision::F32, ..mixed(tolerance) };
    let cube = |n| Grid { axes: [0, 1, 2].map(|_| Axis::new(n, 1.0, Bc::Dirichlet, Bc::Dirichlet)) };
    let zero = Bc::Dirichlet;
    // (options, grid, GPU, from a guess, direct?)
    for (n, (options, grid, gpu, warm, direct)) in [
        (mixed(1e-6), square(4097, zero), true, false, true),
        (mixed(1e-6), square(4096, zero), true, false, true),
        (mixed(1e-10), square(4097, zero), true, false, true),
        (mixed(1e-6), square(1025, zero), true, false, true),
        (mixed(1e-6), cube(512), true, false, true),
        (mixed(1e-6), square(4097, zero), false, false, true),
        (mixed(1e-6), square(4097, Bc::Neumann), false, false, true),
        (mixed(1e-6), square(15, Bc::Periodic), false, false, true),
        // A prime number of intervals, one decade to go.
        (mixed(1e-1), square(4094, zero), true, false, false),
        // One cycle from the guess.
        (mixed(1e-2), square(4097, zero), true, true, false),
        (mixed(1e-10), square(4097, zero), false, true, true),
        // Below and above the rounding of the transforms in single precision.
        (single(1e-6), square(1025, zero), true, false, false),
        (single(1e-2), square(65, zero), true, false, true),
        (Options { tolerance: Tolerance::TRUNCATION, ..mixed(0.0) }, square(1025, zero), false, false, true),
        (Options { tolerance: Tolerance::TRUNCATION, ..single(0.0) }, square(1025, zero), true, false, false),
        (Options { cycle: Cycle::W, ..mixed(1e-6) }, square(4097, zero), true, false, false),
        (Options { method: Method::Multigrid, ..mixed(1e-6) }, square(4097, zero), true, false, false),
        (Options { method: Method::Direct, ..single(1e-6) }, square(1025, zero), true, false, true),
    ]
    .into_iter()
    .enumerate()
    {
        let choice = options.choose(&grid, gpu, warm).unwrap();
        assert_eq!(choice.scheme == Scheme::Direct, direct, "{n}: {}", choice.description);
        assert_eq!(options.method == Method::Auto, choice.description.contains(" ("), "{n}: {}", choice.description);
    }
    for (transforms, cut, stack, reason) in
        [(false, false, false, "cuFFT"), (true, true, false, "one part on GPUs"), (true, true, true, "one part on GPUs")]
    {
        let has = DeviceProperties { gpu: true, transforms, cut };
        let without = mixed(1e-6).choose_for(&square(4097, zero), has, false, stack).unwrap();
        assert!(without.scheme != Scheme::Direct && without.description.contains(reason), "{}", without.description);
        let asked = Options { method: Method::Direct, ..mixed(1e-6) }.choose_for(&square(4097, zero), has, false, stack).unwrap();
        for (gpu, parts, refused) in [(true, 2, true), (true, 1, false), (false, 2, false)] {
            assert_eq!(must_be_cut(&asked, gpu, parts).is_err(), refused, "{gpu} {parts}");
            assert!(must_be_cut(&without, gpu, parts).is_ok());
        }
    }
}

#[test]
fn incompatible_options_are_refused_together() {
    let options = Options {
        method: Method::Direct,
        tolerance: Tolerance::TRUNCATION,
        omega: Some(2.5),
        cycle: Cycle::W,
        pre: Some(0),
        post: Some(0),
        absolute: f64::NAN,
        ..Options::default()
    };
    let paths: Vec<_> = options.check().into_iter().map(|f| f.path).collect();
    assert_eq!(paths, ["absolute", "omega", "post", "tolerance", "cycle", "pre", "post", "omega"]);
    let warm = Options { method: Method::Fmg, ..Options::default() };
    assert!(warm.choose(&square(17, Bc::Dirichlet), false, true).is_err());
}

#[test]
fn nothing_that_is_given_is_dropped() {
    let paths = |options: &Options| options.check().into_iter().map(|f| f.path).collect::<Vec<_>>();
    let given = Options { pre: Some(2), post: Some(1), smoother: Relaxation::Jacobi, coarse_levels: 3, ..Options::default() };
    for method in [Method::Auto, Method::Multigrid, Method::Fmg] {
        assert!(paths(&Options { method, ..given.clone() }).is_empty(), "{method:?}");
        let chebyshev = Options { method, smoother: Relaxation::Chebyshev, ..Options::default() };
        assert!(paths(&chebyshev).is_empty(), "{method:?}");
        assert_eq!(paths(&Options { omega: Some(1.0), ..chebyshev }), ["omega"], "{method:?}");
    }
    for method in [Method::Sor, Method::Jacobi, Method::GaussSeidel, Method::Chebyshev, Method::Direct] {
        assert_eq!(paths(&Options { method, ..given.clone() }), ["smoother", "pre", "post", "coarse_levels"], "{method:?}");
    }
}

#[test]
fn over_relaxation_gets_the_sweeps_that_it_needs() {
    // 129 nodes: omega 1.95209, rate 0.952, about 280 sweeps for 1e-6.
    let options = Options { method: Method::Sor, ..Options::default() };
    let choice = options.choose(&square(129, Bc::Dirichlet), false, false).unwrap();
    let Scheme::Sweeps { smoother: Smoother::RedBlack { omega }, block, rate, .. } = choice.scheme else { panic!("{choice:?}") };
    assert!((omega - 1.95209).abs() < 5e-6 && (rate - 0.95209).abs() < 5e-6, "{omega} {rate}");
    let sweeps = block as usize * choice.criteria.max_steps;
    assert!((560..2000).contains(&sweeps), "{sweeps}");
}

#[test]
fn blocks_of_sweeps_end_at_the_limit_and_within_the_work_of_a_step() {
    let sweeps = |choice: &Choice, step: usize| match choice.scheme.after(step) {
        Scheme::Sweeps { block, .. } => u64::from(block),
        other => panic!("{other:?}"),
    };
    for method in [Method::Sor, Method::GaussSeidel, Method::Jacobi, Method::Chebyshev] {
        for limit in [1, 7, 50, 94, 95, 1000] {
            let options = Options { method, max_cycles: Some(limit), ..Options::default() };
            let choice = options.choose(&square(129, Bc::Dirichlet), false, false).unwrap();
            let total: u64 = (0..choice.criteria.max_steps).map(|step| sweeps(&choice, step)).sum();
            assert_eq!(total, limit, "{method:?}: {choice:?}");
        }
        for n in [1025, 4097] {
            let grid = square(n, Bc::Dirichlet);
            let choice = Options { method, ..Options::default() }.choose(&grid, false, false).unwrap();
            // Ten sweeps at least, however many unknowns there are.
            let (sweeps, unknowns) = (sweeps(&choice, 0) as f64, grid.unknowns() as f64);
            assert!(sweeps * unknowns <= 1.01 * BLOCK_WORK || sweeps <= 10.0, "{method:?} {n}: {sweeps} sweeps of {unknowns:.1e}");
        }
        // Lines of five nodes, between which most of the time goes; the sides differ so much that 100 000 sweeps do little.
        let thin = Grid::plane(Axis::new(16, 169.9, Bc::Dirichlet, Bc::Neumann), Axis::new(5, 0.0137, Bc::Periodic, Bc::Periodic));
        let choice = Options { method, ..Options::default() }.choose(&thin, false, false).unwrap();
        assert!((1000..100_000).contains(&sweeps(&choice, 0)), "{method:?}: {}", choice.description);
    }
}
