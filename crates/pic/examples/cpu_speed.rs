//! Nanoseconds per particle and step of the whole loop on the processor: every instruction set, cold, warm and relativistic, one
//! thread and two. `cargo run --release -p zellige-pic --example cpu_speed -- [CELLS [PPC [STEPS [PATH]]]]`
//!
//! The set-up is that of the table in the book: 512 x 512 cells of 0.1, 36 electrons a cell, `dt` 0.07, single precision.
//! `cpu` is the time of all threads together. PATH picks the paths whose names begin with it; `stages` at the end tells the stages
//! apart.

use std::time::Instant;

use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;
use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::particles::{Particles, Pusher, Species};
use zellige_pic::stages::cpu::{Isa, Path, with_path};
use zellige_pic::stages::{Precision, Setup, Smoothing};
use zellige_pic::step::step;

/// Processor time of this process in seconds, in hundredths; `None` where the system does not tell.
fn cpu_time() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    Some(0.01 * (fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?))
}

fn setup(n: usize, ppc: usize, precision: Precision) -> Setup {
    let species = Species {
        name: "electrons".into(),
        charge: -1.0,
        mass: 1.0,
        weight: 1.0 / ppc as f64,
        weighted: false,
        tagged: false,
        mobile: true,
        pusher: Pusher::Boris,
        wall_thermal: [[0.0; 2]; 2],
    };
    Setup {
        grid: Grid {
            cells: [n, n],
            h: [0.1; 2],
            origin: [0.0; 2],
            dt: 0.07,
            fields: [[FieldSide::Periodic; 2]; 2],
            particles: [[ParticleSide::Periodic; 2]; 2],
            dimensions: 2,
        },
        species: vec![species],
        expected: vec![n * n * ppc],
        precision,
        order: 1,
        smoothing: [Smoothing::default(); 2],
        absorbing_cells: 0,
        external: Default::default(),
        tile: None,
        deterministic: true,
        seed: 1,
    }
}

fn particles(n: usize, ppc: usize, u_th: f64) -> Particles {
    let (place, kick) = (Philox::new(1, 1), Philox::new(2, 1));
    let mut p = Particles::default();
    for k in 0..(n * n * ppc) as u64 {
        let cell = k as usize / ppc;
        p.i.push((cell % n) as u32);
        p.j.push((cell / n) as u32);
        let [s, t] = place.uniforms(0, k);
        p.s.push(s - 0.5);
        p.t.push(t - 0.5);
        let ([x, y], [z, _]) = (kick.normals(0, k), kick.normals(1, k));
        for (u, v) in p.u.iter_mut().zip([x, y, z]) {
            u.push(u_th * v);
        }
    }
    p
}

fn main() -> Result<()> {
    let number = |k, default| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, ppc, steps) = (number(1, 512_usize), number(2, 36_usize), number(3, 20_usize) as u64);
    let wanted = std::env::args().nth(4).filter(|a| a != "stages").unwrap_or_default();
    let details = std::env::args().any(|a| a == "stages");
    println!("{n} x {n} cells, {ppc} particles each, {steps} steps after 10; ns per particle-step, whole loop");
    println!("path              threads   u_th     cpu    wall   bytes/particle");
    for u_th in [0.0, 0.1, 10.0] {
        let particles = particles(n, ppc, u_th);
        let mut cases: Vec<(Path, Precision)> = Isa::all().into_iter().map(|isa| (Path::Rows(isa), Precision::F32)).collect();
        cases.extend([(Path::Rows(Isa::all()[0]), Precision::F64), (Path::Single, Precision::F32)]);
        for (path, precision) in cases {
            let name = match path {
                Path::Rows(isa) => format!("{isa:?} {precision:?}"),
                Path::Single => format!("single {precision:?}"),
            };
            if !name.starts_with(&wanted) {
                continue;
            }
            for threads in [1, 2] {
                let setup = setup(n, ppc, precision);
                let mut stages = with_path(&setup, &Cpu::new(threads)?, path)?;
                stages.inject(0, &particles)?;
                let mut profiler = if details { Profiler::new() } else { Profiler::off() };
                for k in 0..10 {
                    step(&mut *stages, &setup.species, &[], k, false, &mut Profiler::off())?;
                }
                let (begin, cpu) = (Instant::now(), cpu_time());
                for k in 10..10 + steps {
                    step(&mut *stages, &setup.species, &[], k, false, &mut profiler)?;
                }
                let scale = 1e9 / (steps as f64 * particles.len() as f64);
                let wall = scale * begin.elapsed().as_secs_f64();
                let cpu = cpu_time().zip(cpu).map_or(f64::NAN, |(b, a)| scale * (b - a));
                let bytes = stages.memory() as f64 / particles.len() as f64;
                println!("{name:<18} {threads:>6} {u_th:>6} {cpu:>7.2} {wall:>7.2} {bytes:>8.1}");
                for row in profiler.table() {
                    println!("    {:<12} {:>7.2}", row.name, scale * row.own);
                }
            }
        }
    }
    Ok(())
}
