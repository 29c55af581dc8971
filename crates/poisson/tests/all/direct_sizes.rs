//! The direct solver on a GPU over sizes, sides and right-hand sides drawn at random: the factors of a line of up to 9000 intervals
//! decide which way it takes.

use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;
use zellige_engine::testing;

use crate::direct::{backward_error, boundary, grid, noise};
use zellige_poisson::direct::Direct;
use zellige_poisson::grid::Grid;
use zellige_poisson::{Options, Precision, Problem, Status, Tolerance, solve};

/// Numbers of one case of a test.
struct Draws {
    philox: Philox,
    case: u64,
    drawn: u64,
}

impl Draws {
    fn of(case: u64) -> Self {
        Self { philox: Philox::new(0xfffe, 19), case, drawn: 0 }
    }

    /// Below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        self.philox.draw(self.case, self.drawn)[0] as usize % n
    }

    /// Intervals of an axis, up to `most`: any number, or one of many small factors.
    fn intervals(&mut self, most: usize) -> usize {
        if self.below(3) == 0 {
            return 2 + self.below(most - 1);
        }
        // As many long ones as short ones.
        let (bound, mut n) = (most >> self.below(5).min((most.ilog2() as usize).saturating_sub(2)), 2);
        for _ in 0..20 {
            let factor = [2, 2, 2, 3, 3, 5, 7, 11, 13, 31][self.below(10)];
            if n * factor <= bound {
                n *= factor;
            }
        }
        n
    }

    /// Grid of up to 300 000 nodes.
    fn grid(&mut self) -> Grid {
        let space = self.below(4) == 0;
        let [most, all] = if space { [300, 300_000] } else { [9000, 300_000] };
        let mut nodes = [self.intervals(most) + 1, 1, 1];
        nodes[1] = self.intervals(most.min((all / nodes[0]).max(3) - 1)) + 1;
        if space {
            nodes[2] = self.intervals(most.min((all / (nodes[0] * nodes[1])).max(3) - 1)) + 1;
        } else if self.below(2) == 0 {
            nodes.swap(0, 1);
        }
        let ratio = [0.1, 0.7, 1.0, 1.3, 8.0][self.below(5)];
        grid(nodes, [1.0, ratio, 1.0], [self.below(5), self.below(5), if space { self.below(5) } else { 0 }])
    }

    /// White noise, a wave that does not vanish at the sides, a constant and a ripple, or one charge.
    fn rhs(&mut self, grid: &Grid) -> Vec<f64> {
        let [m, n, _] = grid.nodes();
        match self.below(4) {
            0 => noise(grid.len(), self.case),
            1 => {
                let along = |len: usize, value: &dyn Fn(f64) -> f64| (0..len).map(|i| value(i as f64 / len as f64)).collect::<Vec<_>>();
                let (x, y) = (along(m, &|x| (7.0 * x).sin()), along(n, &f64::exp));
                (0..grid.len()).map(|k| x[k % m] * y[k / m % n]).collect()
            }
            // Not a constant alone, of which a singular problem leaves nothing to compare with.
            2 => (0..grid.len()).map(|k| 1.0 + (k % 3) as f64).collect(),
            _ => {
                let mut f = vec![0.0; grid.len()];
                f[self.below(grid.len())] = 1.0;
                f
            }
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn any_size_and_right_hand_side_solves_to_rounding_on_the_gpu() {
    if testing::gpu().is_none() {
        return;
    }
    // Each size has kernels of its own: most of the time goes into compiling them, on all cores. Each thread has a stream of its own,
    // since what one records would take in what another launches.
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(16)) as u64;
    let errors: Vec<(u64, Grid, f64)> = std::thread::scope(|scope| {
        let own: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    let gpu = Device::Cuda(testing::gpu().unwrap());
                    (first..300).step_by(threads as usize).map(|case| solved(&gpu, case)).collect::<Vec<_>>()
                })
            })
            .collect();
        own.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let worst = errors.iter().map(|(.., error)| *error).fold(0.0, f64::max);
    println!("the largest backward error of {} cases: {worst:.1} eps", errors.len());
    // Rounding left 47 at most on an H200; a node that is wrong by a thousandth shows as 1e5 and more.
    let wrong: Vec<_> = errors
        .iter()
        .filter(|(.., error)| error.is_nan() || *error >= 250.0)
        .map(|(case, grid, error)| {
            let sides: Vec<_> = grid.axes.iter().map(|a| format!("{} {:?}-{:?}", a.nodes, a.lo, a.hi)).collect();
            format!("case {case}, {}: backward error {error:.1e} eps", sides.join(", "))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), errors.len(), wrong.join("\n"));
}

/// The backward error of a case in units of rounding.
fn solved(gpu: &Device, case: u64) -> (u64, Grid, f64) {
    let mut draws = Draws::of(case);
    let grid = draws.grid();
    let f = draws.rhs(&grid);
    let u = if draws.below(2) == 0 { vec![0.0; grid.len()] } else { boundary(&grid, case) };
    // Double precision: in single, rounding on lines as long would hide a wrong node.
    let mut direct = Direct::new(&grid, Precision::F64, gpu).unwrap();
    direct.load(&u, &f).unwrap();
    direct.solve(&mut Profiler::off()).unwrap();
    let (found, removed) = (direct.solution().unwrap(), direct.removed_mean().unwrap()[0]);
    let error = backward_error(&grid, &found, &f, removed, f64::EPSILON);
    (case, grid, error)
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn large_squares_that_went_wrong_on_the_gpu_are_right() {
    let Some(cuda) = testing::gpu() else { return };
    let gpu = Device::Cuda(cuda);
    for n in [4093, 6001, 8191] {
        let at = |i: usize| i as f64 / (n - 1) as f64;
        let (x, y): (Vec<_>, Vec<_>) = (0..n).map(|i| ((7.0 * at(i)).sin(), at(i).exp())).unzip();
        let rhs: Vec<f64> = y.iter().flat_map(|y| x.iter().map(move |x| x * y)).collect();
        for precision in [Precision::Mixed, Precision::F64] {
            let options = Options { precision, tolerance: Tolerance::Relative(1e-6), ..Options::default() };
            let report = solve(&Problem::plane([n, n], [1.0, 1.0], rhs.as_slice()), &options, &gpu).unwrap().report;
            println!("{n} {precision}: {}, residuals {:?}", report.method, report.history);
            assert_eq!(report.status, Status::Converged, "{n} {precision}: {report:?}");
            // Error of the transforms on the CPU: 4e-7 of the right-hand side at 8191.
            let reference = report.reference;
            assert!(report.history[1] < 1e-5 * reference, "{n} {precision}: {:?} of {reference}", report.history);
        }
    }
}
