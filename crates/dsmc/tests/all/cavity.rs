//! A driven cavity against a finer run of itself: `cargo test --test dsmc -- --ignored finer_cavity`.
//! Seed 20261121.

use crate::common::{close, flow, run};
use zellige_dsmc::config::{Config, WallConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::sampling::VALUES;

/// Speed of the lid, m/s. The heat goes as its square and the noise does not: at half of it the heat of the right wall would be
/// known to no better than 3 %, and runs nine times as long were needed.
const LID: f64 = 200.0;

/// Argon at Knudsen number 0.1 in a square of `cells` by `cells`.
fn cavity(cells: usize, dt: f64, [start, steps]: [u64; 2]) -> Flow {
    let mut config = Config::new(vec![cells; 2], vec![0.125; 2], "Ar", 1e20, 273.0);
    let wall = |speed: f64| Some(WallConfig::diffuse(273.0, [speed, 0.0, 0.0]).into());
    (config.boundary.all, config.boundary.y_hi) = (wall(0.0), wall(LID));
    config.particles_per_cell = Some(60.0);
    config.dt = dt;
    (config.steps, config.sampling.start) = (steps, Some(start));
    let mut gas = flow(&config, 2);
    run(&mut gas, steps);
    gas
}

/// Value `q` with its error at a position, each in 25ths of the side: of so many cells on average as lie there. Errors of
/// neighbours are taken for the same.
fn at(gas: &Flow, values: &[f64], q: usize, [x, y]: [usize; 2]) -> [f64; 2] {
    let cells = gas.model.grid.cells[0];
    let fine = cells / 25;
    let within = (0..fine * fine).map(|k| (y * fine + k / fine) * cells + x * fine + k % fine);
    let sum = within.fold([0.0; 2], |s, c| [s[0] + values[c * VALUES + q], s[1] + gas.samples.error(&gas.model, c, q)]);
    sum.map(|s| s / (fine * fine) as f64)
}

/// Figures of a cavity: u up the middle and v across it, as the literature has them, and the middle of the vortex, where the flow
/// below it is the largest, in parts of the side.
struct Figures {
    upward: Vec<[f64; 2]>,
    across: Vec<[f64; 2]>,
    vortex: [f64; 2],
    heat: [f64; 2],
}

fn figures(gas: &Flow) -> Figures {
    let values = gas.values();
    let stream = |x: usize| {
        let mut sum = 0.0;
        let below = (0..25).map(|y| {
            sum += at(gas, &values, 1, [x, y])[0];
            (sum, y)
        });
        below.collect::<Vec<_>>()
    };
    let all: Vec<(f64, [f64; 2])> =
        (0..25).flat_map(|x| stream(x).into_iter().map(move |(s, y)| (s, [(x as f64 + 0.5) / 25.0, (y as f64 + 1.0) / 25.0]))).collect();
    // The middle of what is within a fiftieth of the largest: one position alone is noise.
    let most = all.iter().map(|s| s.0).fold(0.0, f64::min);
    let near: Vec<[f64; 2]> = all.iter().filter(|s| s.0 < 0.98 * most).map(|s| s.1).collect();
    let vortex = [0, 1].map(|k| near.iter().map(|p| p[k]).sum::<f64>() / near.len() as f64);
    // Along the lid, between 0.6 and 0.8 of the height.
    let positions: Vec<[f64; 2]> = (5..20).flat_map(|x| (15..20).map(move |y| [x, y])).map(|p| at(gas, &values, 12, p)).collect();
    let n = positions.len() as f64;
    let heat = [positions.iter().map(|p| p[0]).sum::<f64>() / n, positions.iter().map(|p| p[1] * p[1]).sum::<f64>().sqrt() / n];
    Figures {
        upward: (0..25).map(|y| at(gas, &values, 1, [12, y])).collect(),
        across: (0..25).map(|x| at(gas, &values, 2, [x, 12])).collect(),
        vortex,
        heat,
    }
}

/// Half as wide cells, four times as many particles, half as long steps: the drag of the lid, the heat of the walls, the profiles
/// through the middle and the vortex stay as they are, within 2 % (of the lid's speed) and four errors. Heat flows from cold to
/// warm beneath the lid in both, from the corner where the gas expands to that where it is pressed together (John, Gu and Emerson,
/// Numer. Heat Transfer B 58 (2010) 287).
#[test]
#[ignore = "a minute"]
fn a_finer_cavity_is_the_same() {
    let runs = [cavity(25, 6e-6, [1500, 11_000]), cavity(50, 3e-6, [3000, 12_000])];
    let [coarse, fine] = &runs;
    for (what, side, value) in [("drag of the lid", 3, 1), ("heat of the lid", 3, 4), ("heat of the right wall", 1, 4)] {
        let [a, b] = [coarse, fine].map(|gas| gas.samples.surface(&gas.model, side)[value]);
        close(what, a[0], b[0], 0.02, a[1].hypot(b[1]) / b[0].abs());
    }
    let [a, b] = [coarse, fine].map(figures);
    println!("vortex about {:?} and {:?}, heat beneath the lid {:?} and {:?}", a.vortex, b.vortex, a.heat, b.heat);
    for (what, a, b) in [("u", &a.upward, &b.upward), ("v", &a.across, &b.across)] {
        let off: Vec<[f64; 2]> = a.iter().zip(b).map(|(a, b)| [(a[0] - b[0]) / LID, a[1].hypot(b[1]) / LID]).collect();
        let root = (off.iter().map(|o| o[0] * o[0]).sum::<f64>() / 25.0).sqrt();
        println!("{what}: off by {root:.4} on average, {:.4} at most", off.iter().map(|o| o[0].abs()).fold(0.0, f64::max));
        assert!(root < 0.02 && off.iter().all(|o| o[0].abs() < 0.02 + 4.0 * o[1]), "{what}: {off:?}");
    }
    assert!([0, 1].iter().all(|k| (a.vortex[*k] - b.vortex[*k]).abs() < 0.02), "{:?}, {:?}", a.vortex, b.vortex);
    // Errors of neighbours may be alike: those of the sum are twice as large at most here (a free path is two and a half cells).
    for heat in [a.heat, b.heat] {
        assert!(heat[0] > 4.0 * 2.0 * heat[1], "{heat:?}");
    }
}
