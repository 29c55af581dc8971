//! The kernels' text for quadratic shapes, run on the CPU: continuity to the last unit.

use zellige_engine::cuda::Recipe;
use zellige_engine::rng::Philox;
use zellige_engine::testing::host::Host;

use super::program::FILES;
use crate::shapes::{esirkepov_across, esirkepov_along, nearest, quadratic};

/// Nodes per axis around a particle whose lower left node is (4, 4).
const N: usize = 10;
const NODES: usize = N * N;

/// Context of the deposit in the kernels, and one that does all of it for a path.
const BEFORE: &str = r"
typedef UnitOf<real> Unit;
#define JX 10
#define JN 100
struct Sums { fixed *near; };
struct Path { real s, t, s1, t1, qz; int n; };
int z_sums(real &qz, const Unit &) { return 2 * JN; }
template <int N> void put(const Sums &, fixed *const (&at)[N], const fixed (&v)[N]) { for (int k = 0; k < N; k++) *at[k] += v[k]; }
void carry(const Sums &j, int at, fixed v) { j.near[at] += v; }
";
const AFTER: &str = r#"
void charge(long long *to, int i, int j, real s, real t, const Unit &u) {
    real right = nearest(s), upper = nearest(t);
    Charges c = charges_of(quadratic(s + (real(0.5) - right)), quadratic(t + (real(0.5) - upper)), u);
    for (int b = -1; b <= 1; b++)
        for (int a = -1; a <= 1; a++) to[(j + int(upper) + b) * JX + i + int(right) + a] += charge_at(c, a, b);
}
// Tells if the path was deposited as one about the same node.
extern "C" __global__ void path(const double *from, const double *to, double qz, double k, long long *found, int *whole_path) {
    Unit u = unit_known(real(k));
    fixed near[3 * JN] = {}, any[3 * JN] = {};
    Path w{real(from[0]), real(from[1]), real(to[0]), real(to[1]), real(qz), 4 * JX + 4};
    real di = whole(w.s1), dj = whole(w.t1);
    charge(found, 4, 4, w.s, w.t, u);
    charge(found + JN, 4 + int(di), 4 + int(dj), w.s1 - di, w.t1 - dj, u);
    *whole_path = deposit_near(Sums{near}, w, u);
    deposit_any<true>(Sums{any}, w, u);
    if (!*whole_path) deposit_rest(Sums{near}, w, u);
    for (int n = 0; n < 3 * JN; n++) {
        found[2 * JN + n] = near[n];
        found[5 * JN + n] = any[n];
    }
}
"#;

type Path = unsafe extern "C" fn(*const f64, *const f64, f64, f64, *mut i64, *mut i32);

/// Charges before and after a path, and its currents, on all nodes; these once more as of a path that goes anywhere. True for
/// one that keeps its nearest node.
struct DepositedSums([i64; 8 * NODES], bool);

impl DepositedSums {
    /// Of a path to a place that is measured in the cell where it begins.
    fn of(host: &Host, [from, to]: [[f64; 2]; 2], qz: f64, k: f64) -> Self {
        let (mut found, mut near) = ([0; 8 * NODES], 0);
        // SAFETY: its parameters.
        let path = unsafe { host.kernel::<Path>("path") };
        let (at, end, out, told) = (from.as_ptr(), to.as_ptr(), found.as_mut_ptr(), &raw mut near);
        // SAFETY: two places, eight arrays of nodes and a flag.
        host.launch([1, 1, 1], [1, 1, 1], &|| unsafe { path(at, end, qz, k, out, told) });
        Self(found, near != 0)
    }

    /// Before, after, or current in x, y, z.
    fn part(&self, part: usize) -> &[i64] {
        &self.0[part * NODES..(part + 1) * NODES]
    }
}

fn compiled(wide: bool) -> Option<Host> {
    // Its context in place of the kernels'.
    let mut files = vec![
        ("sums.cu", &[][..]),
        ("deposit.cu", &["#include \"fixed.cu\"", BEFORE]),
        ("test", &["#include \"quadratic_rest.cu\"", AFTER]),
    ];
    files.extend(FILES);
    let defines = [("REAL", if wide { "double" } else { "float" }), ("WIDE", if wide { "1" } else { "0" }), ("ORDER", "2")];
    let defines = defines.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Host::compile(&Recipe::of_files("host-quadratic", &files, &["test"], &defines, &["path"]))
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
        let mut near = 0;
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
                let ends = [[a, b], [kept(x - steps[0]), kept(y - steps[1])]];
                let qz = 2.0 * k;
                let found = DepositedSums::of(&host, [[a, b], [x, y]], qz, k);
                is_conserved(&found, ends, steps.map(|c| c as i32), qz, k);
                assert!((2..5).all(|part| found.part(part) == found.part(part + 3)), "from {a}, {b} to {x}, {y}: two ways differ");
                near += usize::from(found.1);
                // A wall sends a particle back to the mirror image of its place.
                let [s, t] = ends[0];
                let mirrored = DepositedSums::of(&host, [[-s, t], [x, y]], qz, k);
                for j in 0..N {
                    for i in 0..N {
                        // Nodes 4 and 5 of its cell change places.
                        let there = if i < 9 { mirrored.part(0)[j * N + 9 - i] } else { 0 };
                        assert!(i == 0 || found.part(0)[j * N + i] == there, "mirror image of {s}, {t} at node ({i}, {j})");
                    }
                }
            }
        }
        // Both ways have been gone, thousands of times.
        assert!((5000..13_000).contains(&near), "{near} of 15 000 paths about one node");
    }
}
