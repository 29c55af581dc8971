//! Plates with a gap of any Knudsen number against the linearised kinetic equation. Seed 20261121.
//!
//! Of Shakhov's model (Prandtl number 2/3; for the shear it is that of Bhatnagar, Gross and Krook), in units of the gap, of
//! `sqrt(2 k T/m)` and of the pressure, with `delta = L p/(mu sqrt(2 k T/m))` the only number:
//!
//! ```text
//! c_x dh/dx = delta (n + 2 c u + (c^2 - 3/2) t + (4/15) q c_x (c^2 - 5/2) - h)
//! ```
//!
//! with diffuse walls, solved by discrete ordinates and iteration. Boltzmann's equation of molecules between hard spheres and
//! Maxwell's gives fluxes within 1 % of these for the same viscosity (Sharipov and Seleznev, J. Phys. Chem. Ref. Data 27 (1998)
//! 657).

use crate::common::{K, close, flow, gap, on_plate, run};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::model::Partner;

/// Positions across the gap, denser at the walls, and speeds of a half range with their weights.
pub(crate) const POSITIONS: usize = 101;
pub(crate) const SPEEDS: usize = 16;

/// Speeds `5 t^2` and weights of the Gaussian, by the midpoint rule in t made as good as Gauss by the vanishing ends: here 16 nodes
/// of Gauss and Legendre by Newton's method.
pub(crate) fn speeds() -> [[f64; 2]; SPEEDS] {
    let n = SPEEDS as f64;
    std::array::from_fn(|k| {
        let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..50 {
            let (mut p, mut before) = (x, 1.0);
            for j in 2..=SPEEDS {
                let j = j as f64;
                (p, before) = (((2.0 * j - 1.0) * x * p - (j - 1.0) * before) / j, p);
            }
            slope = n * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        let weight = 2.0 / ((1.0 - x * x) * slope * slope);
        let t = 0.5 * (x + 1.0);
        let c = 5.0 * t * t;
        [c, 0.5 * weight * 10.0 * t * (-c * c).exp() / std::f64::consts::PI.sqrt()]
    })
}

/// From each position to the next at speed `c`: the part that gets there, and the mean of that over the way. The positions lie
/// symmetrically, so that it is the same from either wall.
pub(crate) fn ways(c: f64, delta: f64) -> Vec<[f64; 2]> {
    let x = positions();
    let way = |w: &[f64]| {
        let a = delta * (w[1] - w[0]) / c;
        [(-a).exp(), -(-a).exp_m1() / a]
    };
    x.windows(2).map(way).collect()
}

/// Distribution of molecules along `ways` away from a wall, where it is `first`; `source` by position, in the order of the flight,
/// linear between positions.
pub(crate) fn sweep(source: &[f64], ways: &[[f64; 2]], first: f64) -> Vec<f64> {
    let mut h = vec![first; POSITIONS];
    for (i, [e, g]) in ways.iter().enumerate() {
        h[i + 1] = h[i] * e + source[i + 1] * (1.0 - g) + source[i] * (g - e);
    }
    h
}

pub(crate) fn positions() -> Vec<f64> {
    (0..POSITIONS).map(|i| 0.5 - 0.5 * (std::f64::consts::PI * i as f64 / (POSITIONS - 1) as f64).cos()).collect()
}

/// Shear over that without collisions.
pub(crate) fn shear(delta: f64) -> f64 {
    let speeds = speeds().map(|[c, w]| (c, w, ways(c, delta)));
    let mut u: Vec<f64> = positions().iter().map(|x| 0.5 * (x - 0.5)).collect();
    loop {
        let (mut next, mut p, mut free) = (vec![0.0; POSITIONS], 0.0, 0.0);
        let back: Vec<f64> = u.iter().rev().copied().collect();
        for (c, w, ways) in &speeds {
            let (up, down) = (sweep(&u, ways, -0.5), sweep(&back, ways, 0.5));
            for i in 0..POSITIONS {
                next[i] += w * (up[i] + down[POSITIONS - 1 - i]);
            }
            p += w * c * (down[POSITIONS / 2] - up[POSITIONS / 2]);
            free += w * c;
        }
        let change = u.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        u = next;
        if change < 1e-7 {
            return p / free;
        }
    }
}

/// Heat over that without collisions.
pub(crate) fn heat(delta: f64) -> f64 {
    let speeds = speeds().map(|[c, w]| (c, w, ways(c, delta)));
    let (mut n, mut t, mut q) =
        (vec![0.0; POSITIONS], positions().iter().map(|x| 0.5 * (0.5 - x)).collect::<Vec<f64>>(), vec![0.0; POSITIONS]);
    // Density of what the walls send out, such that nothing stays on them; by symmetry that of the other is the negative.
    let mut wall = 0.0;
    loop {
        let mut next = [vec![0.0; POSITIONS], vec![0.0; POSITIONS], vec![0.0; POSITIONS]];
        let (mut incoming, mut flux, mut warm) = (0.0, 0.0, 0.0);
        for (c, w, ways) in &speeds {
            let (c, w, c2) = (*c, *w, c * c);
            // Parts h and h (c_y^2 + c_z^2 - 1), averaged over the other velocities; the sign is that of c_x.
            let source = |sign: f64, i: usize| {
                let drift = sign * 4.0 / 15.0 * q[i] * c;
                [n[i] + (c2 - 0.5) * t[i] + drift * (c2 - 1.5), t[i] + drift]
            };
            let (up, down): (Vec<_>, Vec<_>) = (0..POSITIONS).map(|i| (source(1.0, i), source(-1.0, POSITIONS - 1 - i))).unzip();
            let of = |k: usize| {
                let [up, down] = [&up, &down].map(|values| values.iter().map(|v| v[k]).collect::<Vec<f64>>());
                let first = if k == 0 { wall + 0.5 * (c2 - 0.5) } else { 0.5 };
                let mut back = sweep(&down, ways, -first);
                back.reverse();
                (sweep(&up, ways, first), back)
            };
            let ((f, g), (r, s)) = (of(0), of(1));
            for i in 0..POSITIONS {
                next[0][i] += w * (f[i] + g[i]);
                next[1][i] += w / 1.5 * ((c2 - 0.5) * (f[i] + g[i]) + r[i] + s[i]);
                next[2][i] += w * c * ((c2 - 1.5) * (f[i] - g[i]) + r[i] - s[i]);
            }
            incoming += w * c * g[0];
            flux += w * c;
            warm += w * c * 0.5 * (c2 - 0.5);
        }
        let change = (0..POSITIONS).map(|i| (next[0][i] - n[i]).abs().max((next[1][i] - t[i]).abs())).fold(0.0, f64::max);
        [n, t, q] = next;
        wall = (incoming - warm) / flux;
        if change < 1e-7 {
            return q[POSITIONS / 2] * std::f64::consts::PI.sqrt();
        }
    }
}

/// The solver itself: shear by published values of the same equation (Loyalka, Petrellis and Storvick 1979; Siewert 2002), to
/// their digits and the positions here; heat by its limits, `1/q = 1 + delta 8/(15 sqrt pi)` to first order in the jumps and 1
/// without collisions.
#[test]
fn the_kinetic_equation_has_its_known_fluxes() {
    for (delta, expected) in [(0.1, 0.9258), (1.0, 0.6008), (10.0, 0.1474)] {
        let found = shear(delta);
        assert!((found / expected - 1.0).abs() < 1e-3, "{delta}: {found}");
    }
    let free = heat(1e-3);
    assert!((free - 1.0).abs() < 2e-3, "{free}");
    // Conductivity 15/4 k/m mu, and a jump of temperature of 1.95 viscous lengths at each wall (that of the model; Boltzmann's 1.9 to 2.0).
    let continuum = 15.0 / 8.0 * std::f64::consts::PI.sqrt() / (10.0 + 2.0 * 1.95);
    let dense = heat(10.0);
    assert!((dense / continuum - 1.0).abs() < 5e-3, "{dense} {continuum}");
}

/// The gap's width in viscous lengths.
pub(crate) fn delta(gas: &Flow, length: f64, temperature: f64) -> f64 {
    let argon = &gas.model.species[0];
    let viscosity = Transport::new(argon, temperature).viscosity;
    length * 1e20 * K * temperature / (viscosity * argon.most_probable_speed(temperature))
}

/// Shear and heat at Knudsen numbers 0.1 to 2, both in one gas: they do not interact in first order. Four errors or 3 %, of which
/// 1 % for what the model is to Boltzmann's equation and 1 % each for what is left of second order in the differences of speed
/// (half a thermal speed: friction warms the gas by 4 K at most, which adds 1.2 % to its viscosity) and temperature (a seventh of
/// it to either side). The heat that friction makes goes to both plates alike and drops out of half of the difference of what they
/// get.
#[test]
fn plates_at_any_knudsen_number_have_the_fluxes_of_kinetic_theory() {
    let (t1, t2): (f64, f64) = (313.15, 233.15);
    for (kn, cells, steps) in [(0.1, 50, 68_000), (0.3, 30, 28_000), (2.0, 20, 8000)] {
        let (mut config, length) = gap(kn, cells, [t1, t2], [-80.0, 80.0]);
        // A fifth of a free path, or an eighth of the gap where that is less:
        // flights are straight, and hit the plates where they are.
        config.dt = (0.2 * kn * length).min(0.12 * length) / 380.0;
        // Cells of a fifth of a free path and less. They and the steps raise viscosity and conductivity as in `transport.rs`: by 0.7 and
        // 0.3 % at most.
        let [dx, step] = [1.0 / (cells as f64 * kn), 337.0 * config.dt / (kn * length)].map(|d| d * d / std::f64::consts::PI);
        let (viscous, conducting) = (1.0 + 16.0 / 45.0 * dx + 32.0 / 150.0 * step, 1.0 + 32.0 / 225.0 * dx + 64.0 / 675.0 * step);
        config.particles_per_cell = Some(if kn > 1.0 { 100.0 } else { 60.0 });
        config.steps = steps;
        config.sampling.start = Some(steps / 4);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let (m, delta) = (gas.model.species[0].mass, delta(&gas, length, 273.15));
        let [lower, upper] = [0, 1].map(|side| gas.samples.surface(&gas.model, side));
        // Without collisions as many molecules go either way, which is `n sqrt(k/(2 pi m))` times the harmonic mean of the roots.
        let root = 2.0 / (t1.sqrt().recip() + t2.sqrt().recip());
        let free = 1e20 * m * 160.0 * (K / (2.0 * std::f64::consts::PI * m)).sqrt() * root;
        let [found, error] = lower[2];
        close(&format!("shear at Kn {kn}"), found, free * shear(delta / viscous), 0.03, error / found.abs());
        let free = 2.0 * K * 1e20 * (2.0 * K / (std::f64::consts::PI * m)).sqrt() * (t1 * t2).sqrt() * (t1 - t2) / (t1.sqrt() + t2.sqrt());
        let (found, error) = (0.5 * (upper[4][0] - lower[4][0]), 0.5 * (upper[4][1] + lower[4][1]));
        close(&format!("heat at Kn {kn}"), found, free * heat(delta / conducting), 0.03, error / found.abs());
    }
}

/// Cells of two free paths: with any partner momentum jumps too far, by `1 + 16/(45 pi) (dx/lambda)^2` or 1.45 (Alexander, Garcia
/// and Alder 1998) where there are no walls; with a near one the shear is that of fine cells.
#[test]
fn nearest_partners_make_up_for_coarse_cells() {
    // So fast that shear stands out of the noise of 1000 particles: the gas between the
    // plates is up to 25 K warmer for it, and up to 6 % more viscous.
    let found = [(Partner::Random, 12_000), (Partner::NearestNeighbour, 120_000)].map(|(partner, steps)| {
        let (mut config, length) = gap(0.05, 10, [273.15; 2], [-200.0, 200.0]);
        config.collisions.partner = partner;
        config.dt = (length / 200.0) / 380.0;
        config.steps = steps;
        config.sampling.start = Some(steps / 4);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let m = gas.model.species[0].mass;
        let free = 1e20 * m * 400.0 * (K * 273.15 / (2.0 * std::f64::consts::PI * m)).sqrt();
        let (_, [found, error]) = on_plate(&gas);
        let expected = free * shear(delta(&gas, length, 273.15));
        [found / expected, error / expected]
    });
    let [[random, _], [near, error]] = found;
    println!("random {random}, near {near} +- {error}");
    assert!(random > 1.15, "{random}");
    // Half of the viscosity that the warmth may bring.
    close("shear with nearest-neighbour partners", near, 1.03, 0.03, error / near);
}
