//! Nanoseconds per particle-step of the GPU's particle stages: `gpu_speed [CASE | KEY=VALUE]...`, cases as in `CASES` by how their
//! names begin; `bits=64`, `order=2`, `tile=16x8`, `block=128`, `resident=5`, `shift=7`, `parts=2`, `ahead=64`, `target=4096` hold
//! for what follows, `usual` takes them back. In `dense` all particles are in a hundredth of the domain.

use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::particles::{Particles, Pusher, Species};
use zellige_pic::stages::cuda::{Kind, new_with};
use zellige_pic::stages::{Component, Precision, Setup, Smoothing};
use zellige_pic::step::step;

/// Name, cells, particles per cell, species, thermal momentum, drift in z.
type Case = (&'static str, [usize; 2], usize, usize, f64, f64);

const CASES: &[Case] = &[
    ("log-weibel", [256, 256], 64, 2, 0.1, 0.6),
    ("kong-cold", [780, 700], 36, 1, 0.0, 0.0),
    ("kong-1kev", [780, 700], 36, 1, 0.04425, 0.0),
    ("kong-u10", [780, 700], 36, 1, 10.0, 0.0),
    ("mid-cold", [1024, 1024], 64, 1, 0.0, 0.0),
    ("mid-0.1", [1024, 1024], 64, 1, 0.1, 0.0),
    ("mid-10", [1024, 1024], 64, 1, 10.0, 0.0),
    ("large-cold", [2048, 2048], 64, 1, 0.0, 0.0),
    ("large-0.1", [2048, 2048], 64, 1, 0.1, 0.0),
    ("large-10", [2048, 2048], 64, 1, 10.0, 0.0),
    ("few", [2048, 2048], 4, 1, 0.1, 0.0),
    ("dense", [2048, 2048], 4, 1, 0.1, 0.0),
];

fn setup(case: &Case, precision: Precision, order: u32, tile: Option<[usize; 2]>) -> Setup {
    let (_, cells, ppc, species, ..) = *case;
    let grid = Grid {
        cells,
        h: [0.1; 2],
        origin: [0.0; 2],
        dt: 0.07,
        fields: [[FieldSide::Periodic; 2]; 2],
        particles: [[ParticleSide::Periodic; 2]; 2],
        dimensions: 2,
    };
    let one = |k: usize| Species {
        name: format!("species {k}"),
        charge: if k == 0 { -1.0 } else { 1.0 },
        mass: 1.0,
        weight: 1.0 / ppc as f64,
        weighted: false,
        tagged: false,
        mobile: true,
        pusher: Pusher::Boris,
        wall_thermal: [[0.1; 2]; 2],
    };
    Setup {
        species: (0..species).map(one).collect(),
        expected: vec![cells[0] * cells[1] * ppc; species],
        precision,
        order,
        smoothing: [Smoothing::default(); 2],
        absorbing_cells: 0,
        external: Default::default(),
        tile,
        deterministic: true,
        seed: 1,
        grid,
    }
}

/// Neighbours in the list lie in different cells. The generator is of the kind xorshift; quality does not matter here.
fn particles(case: &Case, part: usize, sign: f64) -> Particles {
    let (_, [nx, ny], _, _, u_th, drift) = *case;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(part as u64 + 1);
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let n = nx * ny;
    let mut p =
        Particles { i: (0..n).map(|c| (c % nx) as u32).collect(), j: (0..n).map(|c| (c / nx) as u32).collect(), ..Particles::default() };
    if case.0 == "dense" {
        p.i.iter_mut().for_each(|i| *i = (9 * nx / 20) as u32 + *i / 10);
        p.j.iter_mut().for_each(|j| *j = (9 * ny / 20) as u32 + *j / 10);
    }
    p.s = (0..n).map(|_| uniform() - 0.5).collect();
    p.t = (0..n).map(|_| uniform() - 0.5).collect();
    // A sum of four uniform numbers of the right spread.
    for c in 0..3 {
        let shift = if c == 2 { sign * drift } else { 0.0 };
        p.u[c] = (0..n).map(|_| shift + u_th * 3.0_f64.sqrt() * (uniform() + uniform() + uniform() + uniform() - 2.0)).collect();
    }
    p
}

fn measure(cuda: &Cuda, case: &Case, setup: &Setup, label: &str, adapt: impl Fn(Kind) -> Kind) -> Result<()> {
    let mut stages = new_with(setup, cuda, adapt)?;
    for k in 0..setup.species.len() {
        for part in 0..case.2 {
            stages.inject(k, &particles(case, 2 * part + k, if k == 0 { 1.0 } else { -1.0 }))?;
        }
    }
    for (c, component) in Component::ALL[..6].iter().enumerate() {
        let values: Vec<f64> = (0..setup.grid.len()).map(|n| 1e-3 * (0.37 * n as f64 + c as f64).sin()).collect();
        stages.set_component(*component, &values)?;
    }
    let n = setup.expected.iter().sum::<usize>() as f64;
    for (state, before, steps) in [("fresh", 3, 10), ("mixed", 60, 20)] {
        for k in 0..before {
            for s in 0..setup.species.len() {
                stages.advance(s, k, false, &mut Profiler::off())?;
            }
        }
        stages.wait()?;
        let clock = Instant::now();
        for k in 0..steps {
            for s in 0..setup.species.len() {
                stages.advance(s, k, false, &mut Profiler::off())?;
            }
        }
        stages.wait()?;
        let particles = clock.elapsed().as_secs_f64() * 1e9 / n / steps as f64;
        let mut profiler = Profiler::new();
        for k in 0..5 {
            for s in 0..setup.species.len() {
                stages.advance(s, k, false, &mut profiler)?;
            }
        }
        let rows = profiler.table();
        let each: Vec<_> = rows.iter().map(|r| format!("{} {:.4}", r.name, r.total * 1e9 / n / 5.0)).collect();
        stages.begin(false, &mut Profiler::off())?;
        stages.wait()?;
        let clock = Instant::now();
        for k in 0..steps {
            step(stages.as_mut(), &setup.species, &[], k, false, &mut Profiler::off())?;
        }
        stages.wait()?;
        let whole = clock.elapsed().as_secs_f64() * 1e9 / n / steps as f64;
        let bytes = stages.memory() as f64 / n;
        println!(
            "{:<11} {label:<28} {state}: particles {particles:.4} ns ({}), whole step {whole:.4} ns, {bytes:.1} B",
            case.0,
            each.join(", ")
        );
    }
    let count: u64 = stages.energies()?.count.iter().sum();
    assert_eq!(count as f64, n, "particles were lost");
    Ok(())
}

fn main() -> Result<()> {
    let cuda = Cuda::open(0)?;
    println!("{}, copy {:.2} TB/s", cuda.name(), cuda.bandwidth()? * 1e-12);
    let mut choices: Vec<(String, String)> = Vec::new();
    for word in std::env::args().skip(1) {
        if let Some((key, value)) = word.split_once('=') {
            choices.push((key.to_owned(), value.to_owned()));
            continue;
        }
        if word == "usual" {
            choices.clear();
            continue;
        }
        let number = |value: &str| value.parse::<u32>().unwrap_or_else(|_| panic!("`{value}` is no number"));
        let tile = choices.iter().rfind(|c| c.0 == "tile").map(|(_, v)| {
            let (x, y) = v.split_once('x').expect("a tile is given as 16x16");
            [number(x) as usize, number(y) as usize]
        });
        let chosen = |key: &str| choices.iter().rfind(|c| c.0 == key).map(|(_, v)| number(v));
        let precision = if chosen("bits") == Some(64) { Precision::F64 } else { Precision::F32 };
        let order = chosen("order").unwrap_or(1);
        let label = choices.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
        for case in CASES.iter().filter(|c| c.0.starts_with(word.as_str())) {
            measure(&cuda, case, &setup(case, precision, order, tile), &label, |mut kind| {
                for (key, value) in choices.iter().filter(|c| !["tile", "bits", "order"].contains(&c.0.as_str())) {
                    match key.as_str() {
                        "block" => kind.block = number(value),
                        "resident" => kind.resident = number(value),
                        "shift" => kind.shift = number(value),
                        "ahead" => kind.ahead = number(value),
                        "target" => kind.target = number(value) as usize,
                        "parts" => kind.parts = number(value) as usize,
                        _ => panic!("there is no choice `{key}`"),
                    }
                }
                kind
            })?;
        }
    }
    Ok(())
}
