//! Nanoseconds per particle and step of the whole loop on the CPU: every instruction set, cold, warm and relativistic, one
//! thread and two. `cargo run --release -p zellige-pic --features measure --example plasma_speed -- [CELLS [PPC [STEPS [PATH
//! [U_TH]]]]]`
//!
//! The set-up is that of the table in the book: 512 x 512 cells of 0.1, 36 electrons a cell, `dt` 0.07, single precision.
//! `cpu` is the time of all threads together. PATH picks the paths whose names begin with it, U_TH one width; every time is the
//! least of three; `stages` at the end tells the stages apart,
//! `measure` adds energies up in each.

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

/// CPU time of the threads of this process in seconds; `None` where the system does not tell.
fn cpu_time() -> Option<f64> {
    let mut nanoseconds = 0.0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += text.split_whitespace().next()?.parse::<f64>().ok()?;
    }
    Some(1e-9 * nanoseconds)
}

fn setup(n: usize, ppc: usize, precision: Precision, order: u32) -> Setup {
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
        order,
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
        // As the loader deals them: neighbours in memory sit in different cells.
        let (row, k_row) = (k as usize / (n * ppc), k as usize % (n * ppc));
        let cell = row * n + k_row % n;
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
    let wanted = std::env::args().nth(4).filter(|a| a != "stages" && a != "measure").unwrap_or_default();
    let width: Option<f64> = std::env::args().nth(5).and_then(|a| a.parse().ok());
    let details = std::env::args().any(|a| a == "stages");
    let measure = std::env::args().any(|a| a == "measure");
    println!("{n} x {n} cells, {ppc} particles each, {steps} steps after 10; ns per particle-step, whole loop");
    println!("path              threads   u_th     cpu    wall   bytes/particle");
    for u_th in [0.0, 0.1, 10.0].into_iter().filter(|u| width.is_none_or(|w| w == *u)) {
        let particles = particles(n, ppc, u_th);
        let mut cases: Vec<(Path, Precision)> = Isa::all().into_iter().map(|isa| (Path::Rows(isa), Precision::F32)).collect();
        cases.extend(Isa::all().into_iter().map(|isa| (Path::Rows(isa), Precision::F64)));
        cases.push((Path::Single, Precision::F32));
        let cases: Vec<_> =
            [1, 2].into_iter().flat_map(|order| cases.iter().map(move |&(path, precision)| (path, precision, order))).collect();
        for (path, precision, order) in cases {
            let name = match path {
                Path::Rows(isa) => format!("{isa:?} {precision:?} {order}"),
                Path::Single => format!("single {precision:?} {order}"),
            };
            if !name.starts_with(&wanted) {
                continue;
            }
            for threads in [1, 2] {
                let setup = setup(n, ppc, precision, order);
                let mut stages = with_path(&setup, &Cpu::new(threads)?, path)?;
                stages.inject(0, &particles)?;
                let mut profiler = if details { Profiler::new() } else { Profiler::off() };
                for k in 0..10 {
                    step(&mut *stages, &setup.species, &[], k, false, &mut Profiler::off())?;
                }
                let scale = 1e9 / (steps as f64 * particles.len() as f64);
                let (mut wall, mut cpu) = (f64::INFINITY, f64::INFINITY);
                for k in 0..3 {
                    let (begin, before) = (Instant::now(), cpu_time());
                    for k in 10 + k * steps..10 + (k + 1) * steps {
                        step(&mut *stages, &setup.species, &[], k, measure, &mut profiler)?;
                    }
                    wall = wall.min(scale * begin.elapsed().as_secs_f64());
                    cpu = cpu_time().zip(before).map_or(f64::NAN, |(b, a)| (scale * (b - a)).min(cpu));
                }
                let bytes = stages.memory() as f64 / particles.len() as f64;
                println!("{name:<18} {threads:>6} {u_th:>6} {cpu:>7.2} {wall:>7.2} {bytes:>8.1}");
                for row in profiler.table() {
                    println!("    {:<12} {:>7.2}", row.name, scale / 3.0 * row.own);
                }
            }
        }
    }
    Ok(())
}
