//! A plasma on the CPU and on a GPU, and the comparison of both.

use super::apart;
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Cpu;
use zellige_engine::rng::Philox;
use zellige_pic::grid::{ABOVE, BELOW};
use zellige_pic::particles::Particles;
use zellige_pic::stages::cuda::{KernelConfig, new_with};
use zellige_pic::stages::{Component, Precision, Setup, Stages, cpu};

/// A pair of stages with the same particles and fields.
pub(crate) fn pair(
    setup: &Setup,
    particles: &[Particles],
    cuda: &Cuda,
    adapt: impl Fn(KernelConfig) -> KernelConfig,
) -> [Box<dyn Stages>; 2] {
    let random = Philox::new(9, 4);
    let mut both = [cpu::new(setup, &Cpu::new(2).unwrap()).unwrap(), new_with(setup, cuda, adapt).unwrap()];
    for stages in &mut both {
        for (k, p) in particles.iter().enumerate() {
            stages.inject(k, p).unwrap();
        }
        for (c, component) in Component::ALL[..6].iter().enumerate() {
            let values: Vec<f64> = (0..setup.grid.len()).map(|n| 0.3 * (random.uniforms(c as u64, n as u64)[0] - 0.5)).collect();
            stages.set_component(*component, &values).unwrap();
        }
    }
    both
}

pub(crate) fn tagged(mut p: Particles, weighted: bool) -> Particles {
    p.tag = (0..p.len() as u64).collect();
    if weighted {
        p.weight = (0..p.len()).map(|k| 0.25 + (k % 7) as f64 * 0.5).collect();
    }
    p
}

/// Tag, cell, position, momentum, weight; by tag.
pub(crate) fn sorted(p: &Particles) -> Vec<(u64, [u32; 2], [f64; 6])> {
    let weight = |k: usize| p.weight.get(k).copied().unwrap_or(1.0);
    let mut list: Vec<_> =
        (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight(k)])).collect();
    list.sort_by_key(|(tag, ..)| *tag);
    list
}

/// `tolerance` is for numbers of size 1: positions in cells and momenta.
pub(crate) fn agree(setup: &Setup, [a, b]: &mut [Box<dyn Stages>; 2], tolerance: f64, label: &str) {
    for s in 0..setup.species.len() {
        let (p, q) = (sorted(&a.particles(s).unwrap()), sorted(&b.particles(s).unwrap()));
        assert_eq!(p.len(), q.len(), "{label}: number of particles");
        for (x, y) in p.iter().zip(&q) {
            assert_eq!(x.0, y.0, "{label}: tags");
            for c in 0..6 {
                if c == 1 && setup.grid.dimensions == 1 {
                    // Across a line the CPU puts particles where they cross nothing: no physics depends on it.
                    continue;
                }
                // On a border the two may differ on which cell it belongs to.
                let cells = if c < 2 { f64::from(y.1[c]) - f64::from(x.1[c]) } else { 0.0 };
                let n = if c < 2 { setup.grid.cells[c] as f64 } else { 1.0 };
                let away = (y.2[c] - x.2[c] + cells).abs();
                let away = if c < 2 { away.min((away - n).abs()) } else { away };
                let size = if c < 2 { 1.0 } else { x.2[c].abs().max(1.0) };
                assert!(away <= tolerance * size, "{label}: particle {} column {c}: {:?} {:?}", x.0, x, y);
            }
        }
        // A position that is off by the tolerance moves that part of a charge to the next node; (2 r)^2 particles around a node.
        let (r, q) = (a.charge(s, false).unwrap(), b.charge(s, false).unwrap());
        let largest = r.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(apart(&r, &q) <= 8.0 * tolerance * largest.max(1.0), "{label}: charge {} of {largest}", apart(&r, &q));
    }
    for c in Component::ALL {
        let [mut x, mut y] = [a.component(c).unwrap(), b.component(c).unwrap()];
        // Behind the last guard of a row is nothing.
        let row = BELOW + setup.grid.cells[0] + ABOVE;
        for values in [&mut x, &mut y] {
            values.chunks_mut(setup.grid.pitch()).for_each(|values| values[row..].fill(0.0));
        }
        let largest = x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let worst = (0..x.len()).max_by(|a, b| (x[*a] - y[*a]).abs().total_cmp(&(x[*b] - y[*b]).abs())).unwrap();
        let (i, j) = (worst % setup.grid.pitch(), worst / setup.grid.pitch());
        let values = format!("{} here, {} there at ({i} - 2, {j} - 2), largest {largest}", x[worst], y[worst]);
        assert!(apart(&x, &y) <= 16.0 * tolerance * largest.max(1.0), "{label}: {}: {values}", c.name());
    }
    let (e, f) = (a.energies().unwrap(), b.energies().unwrap());
    assert_eq!(e.count, f.count, "{label}");
    for s in 0..setup.species.len() {
        let near = |x: f64, y: f64| (x - y).abs() <= 64.0 * tolerance * e.kinetic[s].max(1e-3);
        assert!(near(e.kinetic[s], f.kinetic[s]), "{label}: kinetic energy {} {}", e.kinetic[s], f.kinetic[s]);
        assert!((0..3).all(|c| near(e.momentum[s][c], f.momentum[s][c])), "{label}: momentum {:?} {:?}", e.momentum, f.momentum);
    }
    for (l, m) in a.ledger().unwrap().iter().zip(b.ledger().unwrap()) {
        assert_eq!((l.injected, l.removed), (m.injected, m.removed), "{label}");
        assert!((l.energy_out - m.energy_out).abs() <= 64.0 * tolerance * l.energy_out.abs().max(1e-3), "{label}: {l:?} {m:?}");
        assert!((l.charge_out - m.charge_out).abs() <= 64.0 * tolerance * l.charge_out.abs().max(1e-3), "{label}: {l:?} {m:?}");
    }
}

/// Rounding of a push and a move, some ten operations on numbers of size 1 to 3; the unit of the integers is 2^-20 and 2^-40.
pub(crate) fn tolerance(setup: &Setup) -> f64 {
    if setup.precision == Precision::F32 { 4e-6 } else { 4e-12 }
}

pub(crate) fn small(kind: KernelConfig) -> KernelConfig {
    KernelConfig { shift: 6, parts: 2, block: 128, ..kind }
}
