//! The kernels' text for quadratic shapes, run on the CPU: continuity to the last unit.

use zellige_engine::cuda::Recipe;
use zellige_engine::real;
use zellige_engine::rng::Philox;
use zellige_engine::testing::host::Host;

use crate::integers::INTEGERS;
use crate::shapes::{SHAPES, esirkepov_across, esirkepov_along, nearest, quadratic};

/// Nodes per axis around a particle whose lower left node is (4, 4).
const N: usize = 10;
const NODES: usize = N * N;

/// Context of the deposit in the kernels, and one that does all of it for a path.
const BEFORE: &str = r"
typedef UnitOf<real> Unit;
#define JX 10
#define JN 100
struct Sums { fixed *near; };
int z_sums(real &qz, const Unit &) { return 2 * JN; }
void put(const Sums &j, int at, fixed v) { j.near[at] += v; }
";
const AFTER: &str = r#"
void charge(long long *to, int i, int j, real s, real t, const Unit &u) {
    real right = nearest(s), upper = nearest(t);
    Charges c = charges_of(quadratic(s + (real(0.5) - right)), quadratic(t + (real(0.5) - upper)), u);
    for (int b = -1; b <= 1; b++)
        for (int a = -1; a <= 1; a++) to[(j + int(upper) + b) * JX + i + int(right) + a] += charge_at(c, a, b);
}
extern "C" __global__ void path(const double *from, const double *to, int di, int dj, double qz, double k, long long *found) {
    Unit u = unit_known(real(k));
    fixed near[3 * JN] = {};
    charge(found, 4, 4, real(from[0]), real(from[1]), u);
    charge(found + JN, 4 + di, 4 + dj, real(to[0]), real(to[1]), u);
    deposit_path(Sums{near}, 4 * JX + 4, real(from[0]), real(from[1]), real(to[0]), real(to[1]), di, dj, real(qz), u);
    for (int n = 0; n < 3 * JN; n++) found[2 * JN + n] = near[n];
}
"#;

type Path = unsafe extern "C" fn(*const f64, *const f64, i32, i32, f64, f64, *mut i64);

/// Charges before and after a path, and its currents, on all nodes.
struct DepositedSums([i64; 5 * NODES]);

impl DepositedSums {
    fn of(host: &Host, [from, to]: [[f64; 2]; 2], [di, dj]: [i32; 2], qz: f64, k: f64) -> Self {
        let mut found = [0; 5 * NODES];
        // SAFETY: its parameters.
        let path = unsafe { host.kernel::<Path>("path") };
        let (at, end, out) = (from.as_ptr(), to.as_ptr(), found.as_mut_ptr());
        // SAFETY: two places and five arrays of nodes.
        host.launch([1, 1, 1], [1, 1, 1], &|| unsafe { path(at, end, di, dj, qz, k, out) });
        Self(found)
    }

    /// Before, after, or current in x, y, z.
    fn part(&self, part: usize) -> &[i64] {
        &self.0[part * NODES..(part + 1) * NODES]
    }
}

fn compiled(wide: bool) -> Option<Host> {
    let mut sources = vec![real::CUDA];
    sources.extend(SHAPES);
    sources.extend(INTEGERS);
    sources.extend([include_str!("fixed.cu"), BEFORE, include_str!("quadratic.cu"), AFTER]);
    let defines = [("REAL", if wide { "double" } else { "float" }), ("WIDE", if wide { "1" } else { "0" }), ("ORDER", "2")];
    Host::compile(&Recipe::new("host-quadratic", &sources, &defines.map(|(n, v)| (n.to_owned(), v.to_owned())), &["path"]))
}

/// Weights of all nodes of an axis for a place in the cell whose lower node is `node`, in double precision.
fn weights(s: f64, node: i32) -> [f64; N] {
    let right = nearest(s);
    let w = quadratic(s + (0.5 - right));
    let mut all = [0.0; N];
    let middle = (node + right as i32) as usize;
    all[middle - 1..=middle + 1].copy_from_slice(&[w.below, w.middle, w.above]);
    all
}

/// The change of charge is what flows in at every node, and all is right to the units that it is rounded to.
fn is_conserved(found: &DepositedSums, [from, to]: [[f64; 2]; 2], steps: [i32; 2], qz: f64, k: f64) {
    let [before, after, x, y, z] = [0, 1, 2, 3, 4].map(|part| found.part(part));
    let [x0, y0] = [0, 1].map(|d| weights(from[d], 4));
    let [x1, y1] = [0, 1].map(|d| weights(to[d], 4 + steps[d]));
    let described = format!("from {from:?} to {to:?} in {steps:?}, 4 K = {}", 4.0 * k);
    for charge in [before, after] {
        assert_eq!(charge.iter().sum::<i64>(), 4 * k as i64, "{described}: the whole charge");
    }
    let (mut row, mut column) = ([0.0; N], [0.0; N]);
    for j in 1..N {
        for i in 1..N {
            let n = j * N + i;
            assert_eq!(after[n] - before[n], x[n - 1] - x[n] + y[n - N] - y[n], "{described}: continuity at node ({i}, {j})");
            row[j] -= 4.0 * k * esirkepov_along(x0[i], x1[i], y0[j], y1[j]);
            column[i] -= 4.0 * k * esirkepov_along(y0[j], y1[j], x0[i], x1[i]);
            // Numbers of single precision bring a tenth of a unit, half a unit each rounding: nine of them for the node amid all, two and what they are
            // balanced with for a current.
            let near = |what: &str, v: i64, exact: f64, units: f64| {
                assert!((v as f64 - exact).abs() <= units, "{described}: {what} of node ({i}, {j}) is {v} for {exact}");
            };
            near("charge", before[n], 4.0 * k * x0[i] * y0[j], 4.2);
            near("charge", after[n], 4.0 * k * x1[i] * y1[j], 4.2);
            near("Jx", x[n], row[j], 3.2);
            near("Jy", y[n], column[i], 6.2);
            near("Jz", z[n], qz * esirkepov_across(x0[i], x1[i], y0[j], y1[j]), 0.8);
        }
    }
}

#[test]
fn charge_of_quadratic_shapes_is_conserved_to_the_last_unit() {
    for wide in [false, true] {
        let Some(host) = compiled(wide) else { return };
        let random = Philox::new(9, 1);
        let largest = if wide { 40.0_f64.exp2() } else { 20.0_f64.exp2() };
        // Places as the kernels keep them.
        let kept = |x: f64| if wide { x } else { f64::from(x as f32) };
        for k in [largest, largest / 4.0, 12_346.0, 2.0, 0.0] {
            for n in 0..3000 {
                let [a, b] = random.uniforms(k as u64, 2 * n).map(|x| kept(x - 0.5));
                // Also along one axis, and not at all.
                let reach = [[0.99; 2], [0.99, 0.0], [0.0, 0.3], [0.01; 2], [0.0; 2]][n as usize % 5];
                let moved = random.uniforms(k as u64, 2 * n + 1);
                let [x, y] = [0, 1].map(|d| kept([a, b][d] + reach[d] * (2.0 * moved[d] - 1.0)));
                let steps = [x, y].map(f64::round_ties_even);
                let (ends, steps) = ([[a, b], [kept(x - steps[0]), kept(y - steps[1])]], steps.map(|c| c as i32));
                let qz = 2.0 * k;
                let found = DepositedSums::of(&host, ends, steps, qz, k);
                is_conserved(&found, ends, steps, qz, k);
                // A wall sends a particle back to the mirror image of its place.
                let [s, t] = ends[0];
                let mirrored = DepositedSums::of(&host, [[-s, t], ends[1]], steps, qz, k);
                for j in 0..N {
                    for i in 0..N {
                        // Nodes 4 and 5 of its cell change places.
                        let there = if i < 9 { mirrored.part(0)[j * N + 9 - i] } else { 0 };
                        assert!(i == 0 || found.part(0)[j * N + i] == there, "mirror image of {s}, {t} at node ({i}, {j})");
                    }
                }
            }
        }
    }
}
