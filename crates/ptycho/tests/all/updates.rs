//! rPIE and LSQML against the published updates, written here once more and plainly: fields as arrays, sums as loops, a library's
//! transform.

use num_complex::Complex;
use rustfft::FftPlanner;
use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName, NoiseName};
use zellige_ptycho::model::Model;

use super::common::Bench;
use super::physics::{from_truth, input, made};

type C = Complex<f64>;

/// Object, probe and frames of one mode each.
struct MultiPass {
    model: Model,
    probe: Vec<C>,
    object: Vec<C>,
    /// Changes follow Poisson's likelihood in place of the moduli.
    poisson: bool,
    /// Steps of the probe go by the largest value of the whole object.
    whole: bool,
}

impl MultiPass {
    fn new(model: &Model) -> Self {
        Self { probe: model.start.probe.clone(), object: model.start.object.clone(), model: model.clone(), poisson: false, whole: false }
    }

    fn n(&self) -> usize {
        self.model.frame[0]
    }

    /// Index of pixel `i` of view `j` in the object.
    fn at(&self, j: usize, i: usize) -> usize {
        let view = self.model.views[j];
        (view.row as usize + i / self.n()) * self.model.storages[0].shape[1] + view.col as usize + i % self.n()
    }

    fn patch(&self, of: &[C], j: usize) -> Vec<C> {
        (0..self.n() * self.n()).map(|i| of[self.at(j, i)]).collect()
    }

    /// Largest `|O|^2` that the step of the probe goes by, given what a view sees.
    fn clearest(&self, patch: &[C]) -> f64 {
        largest(if self.whole { &self.object } else { patch }.iter().map(C::norm_sqr))
    }

    /// Unitary transform of a square.
    fn transform(&self, wave: &[C], back: bool) -> Vec<C> {
        let n = self.n();
        let mut planner = FftPlanner::new();
        let plan = if back { planner.plan_fft_inverse(n) } else { planner.plan_fft_forward(n) };
        let mut out = wave.to_vec();
        for _ in 0..2 {
            plan.process(&mut out);
            out = (0..n * n).map(|i| out[i % n * n + i / n]).collect();
        }
        out.iter().map(|v| v / n as f64).collect()
    }

    /// `psi' - psi` of a view, where `psi'` has the measured moduli `m`; or, of Poisson's likelihood, half of `(m^2 - I)/(I + 1)`
    /// times the wave at the detector, whose counts are `I`: the same to first order near the solution.
    fn change(&self, j: usize) -> Vec<C> {
        let psi: Vec<C> = self.patch(&self.object, j).iter().zip(&self.probe).map(|(o, p)| o * p).collect();
        let far = self.transform(&psi, false);
        let pixels = far.len();
        let mag = &self.model.mag[j * pixels..(j + 1) * pixels];
        let factor = |f: &C, m: f64| {
            let counts = f.norm_sqr();
            if self.poisson { 1.0 + 0.5 * (m * m - counts) / (counts + 1.0) } else { m / f.norm() }
        };
        let moved: Vec<C> = far.iter().zip(mag).map(|(f, m)| if *m < 0.0 { *f } else { f * factor(f, f64::from(*m)) }).collect();
        self.transform(&moved, true).iter().zip(&psi).map(|(a, b)| a - b).collect()
    }
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

/// A sweep after which the probe has the power from before.
fn of_kept_power(plain: &mut MultiPass, sweep: impl FnOnce(&mut MultiPass)) {
    let power = |plain: &MultiPass| plain.probe.iter().map(C::norm_sqr).sum::<f64>();
    let before = power(plain);
    sweep(plain);
    let factor = (before / power(plain)).sqrt();
    plain.probe.iter_mut().for_each(|p| *p *= factor);
}

/// Maiden, Johnson and Li, Optica 4 (2017) 736, eq. 12: `O += conj(P) D / ((1 - a) |P|^2 + a max |P|^2)`, and the probe with the
/// object in its place; here with the object that the first has made, as the book says.
fn rpie(plain: &mut MultiPass, alpha: f64, step: f64, order: &[u32]) {
    for j in order.iter().map(|j| *j as usize) {
        let change = plain.change(j);
        let most = largest(plain.probe.iter().map(C::norm_sqr));
        for (i, d) in change.iter().enumerate() {
            let (p, at) = (plain.probe[i], plain.at(j, i));
            plain.object[at] += p.conj() * d * step / ((1.0 - alpha) * p.norm_sqr() + alpha * most);
        }
        let patch = plain.patch(&plain.object, j);
        let most = plain.clearest(&patch);
        for ((p, o), d) in plain.probe.iter_mut().zip(&patch).zip(&change) {
            *p += o.conj() * d * step / ((1.0 - alpha) * o.norm_sqr() + alpha * most);
        }
    }
}

/// Odstrcil, Menzel and Guizar-Sicairos, Opt. Express 26 (2018) 3108: directions (eqs. 24 and 25) as sums over the batch over the
/// illumination and `damping` of its largest value, the 2 x 2 system of each view (eq. 22) with the squares a thousandth longer,
/// `part` of the mean steps (eq. 27).
fn lsqml(plain: &mut MultiPass, damping: f64, part: f64, order: &[u32], batch: usize) {
    for list in order.chunks(batch) {
        let list: Vec<usize> = list.iter().map(|j| *j as usize).collect();
        let changes: Vec<Vec<C>> = list.iter().map(|j| plain.change(*j)).collect();
        let (mut object, mut light) = (vec![C::default(); plain.object.len()], vec![0.0; plain.object.len()]);
        let (mut probe, mut passed) = (vec![C::default(); plain.probe.len()], vec![0.0; plain.probe.len()]);
        for (j, change) in list.iter().zip(&changes) {
            for (i, d) in change.iter().enumerate() {
                let (at, p) = (plain.at(*j, i), plain.probe[i]);
                let o = plain.object[at];
                object[at] += p.conj() * d;
                light[at] += p.norm_sqr();
                probe[i] += o.conj() * d;
                passed[i] += o.norm_sqr();
            }
        }
        let divided = |sum: Vec<C>, norm: Vec<f64>| -> Vec<C> {
            let most = largest(norm.iter().copied());
            sum.iter().zip(&norm).map(|(s, n)| s / (n + damping * most)).collect()
        };
        let (object, probe) = (divided(object, light), divided(probe, passed));
        let mut steps = [0.0; 2];
        for (j, change) in list.iter().zip(&changes) {
            let a: Vec<C> = plain.patch(&object, *j).iter().zip(&plain.probe).map(|(d, p)| d * p).collect();
            let b: Vec<C> = plain.patch(&plain.object, *j).iter().zip(&probe).map(|(o, d)| o * d).collect();
            let dot = |x: &[C], y: &[C]| x.iter().zip(y).map(|(x, y)| (x.conj() * y).re).sum::<f64>();
            let (aa, bb, ab) = (1.001 * dot(&a, &a), 1.001 * dot(&b, &b), dot(&a, &b));
            let (ac, bc, det) = (dot(&a, change), dot(&b, change), aa * bb - ab * ab);
            steps[0] += (ac * bb - bc * ab) / det;
            steps[1] += (bc * aa - ac * ab) / det;
        }
        let [s, t] = steps.map(|s| part * s / list.len() as f64);
        plain.object.iter_mut().zip(&object).for_each(|(o, d)| *o += d * s);
        plain.probe.iter_mut().zip(&probe).for_each(|(p, d)| *p += d * t);
    }
}

/// ePIE by batches, as the book has it: the views of a batch see the same object and probe. The object takes their updates one
/// after the other, the probe at last the mean of theirs, each with the object as it is then.
fn epie(plain: &mut MultiPass, step: f64, order: &[u32], batch: usize) {
    for list in order.chunks(batch) {
        let changes: Vec<Vec<C>> = list.iter().map(|j| plain.change(*j as usize)).collect();
        let most = largest(plain.probe.iter().map(C::norm_sqr));
        let mut mean = vec![C::default(); plain.probe.len()];
        for (j, change) in list.iter().map(|j| *j as usize).zip(&changes) {
            for (i, d) in change.iter().enumerate() {
                let (p, at) = (plain.probe[i], plain.at(j, i));
                plain.object[at] += p.conj() * d * step / most;
            }
            let patch = plain.patch(&plain.object, j);
            let most = plain.clearest(&patch);
            mean.iter_mut().zip(&patch).zip(change).for_each(|((m, o), d)| *m += o.conj() * d * step / most / list.len() as f64);
        }
        plain.probe.iter_mut().zip(&mean).for_each(|(p, m)| *p += m);
    }
}

/// Relative distance.
fn off(a: &[C], b: &[C]) -> f64 {
    let d: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
    (d / b.iter().map(C::norm_sqr).sum::<f64>()).sqrt()
}

#[test]
fn rpie_and_lsqml_make_the_published_updates() {
    let lsq = EngineConfig {
        batch: Some(4),
        damping: Some(0.2),
        object_step: Some(0.8),
        probe_step: Some(0.8),
        ..EngineConfig::new(EngineName::Lsqml, 3)
    };
    let rule = |alpha| EngineConfig {
        alpha: Some(alpha),
        object_step: Some(0.7),
        probe_step: Some(0.7),
        ..EngineConfig::new(EngineName::Rpie, 3)
    };
    for engine in [rule(0.05), rule(0.3), lsq.clone(), EngineConfig { noise: Some(NoiseName::Euclid), ..lsq }] {
        let config = input(made(|m| (m.frames, m.noise) = (16, true)), engine.clone());
        let (start, _) = from_truth(&config, 0.1);
        let mut plain = MultiPass::new(&start);
        let mut bench = Bench::new(&start, &engine, Compatibility::None, 1, true);
        let order: Vec<u32> = (0..16).map(|j| (5 * j + 3) % 16).collect();
        for k in 0..3 {
            bench.step(Some(&order));
            match engine.name {
                EngineName::Rpie => of_kept_power(&mut plain, |plain| rpie(plain, engine.alpha.unwrap(), 0.7, &order)),
                _ => lsqml(&mut plain, 0.2, 0.8, &order, 4),
            }
            let state = bench.stages.state().unwrap();
            // Rounding, and 1e-10 in the modulus' denominator, where pixels are nearly dark.
            for (what, a, b) in [("object", &state.object, &plain.object), ("probe", &state.probe, &plain.probe)] {
                assert!(off(a, b) < 1e-8, "{:?} {what} after {}: {:e}", engine.name, k + 1, off(a, b));
            }
        }
    }
}

/// Steps of the probe by the largest value of the whole object, which falls.
#[test]
fn the_whole_object_gives_the_step_of_the_probe() {
    let steps = |name| EngineConfig {
        object_step: Some(0.7),
        probe_step: Some(0.7),
        object_norm_is_global: Some(true),
        ..EngineConfig::new(name, 2)
    };
    let batches = EngineConfig { batch: Some(5), ..steps(EngineName::Epie) };
    for engine in [steps(EngineName::Epie), batches, EngineConfig { alpha: Some(0.3), ..steps(EngineName::Rpie) }] {
        let config = input(made(|m| (m.frames, m.noise) = (16, true)), engine.clone());
        let (mut start, _) = from_truth(&config, 0.1);
        let mut plain = MultiPass { whole: true, ..MultiPass::new(&start) };
        // Bright at the best lit pixel that half of the views do not see.
        let (mut seen, mut light) = (vec![0; plain.object.len()], vec![0.0; plain.object.len()]);
        for (j, i) in (0..16).flat_map(|j| (0..plain.probe.len()).map(move |i| (j, i))) {
            let at = plain.at(j, i);
            seen[at] += 1;
            light[at] += plain.probe[i].norm_sqr();
        }
        let bright = (0..seen.len()).filter(|at| seen[*at] <= 8).max_by(|a, b| light[*a].total_cmp(&light[*b])).unwrap();
        let value = plain.object[bright];
        plain.object[bright] = value * (3.0 / value.norm());
        start.start.object[bright] = plain.object[bright];
        let mut found = Vec::new();
        let mut bench = Bench::new(&start, &engine, Compatibility::None, 1, true);
        let order: Vec<u32> = (0..16).map(|j| (5 * j + 3) % 16).collect();
        for k in 0..3 {
            let patches = (0..16).map(|j| largest(plain.patch(&plain.object, j).iter().map(C::norm_sqr)));
            let (least, most) = (patches.fold(f64::INFINITY, f64::min), plain.clearest(&[]));
            assert!(least < 0.9 * most, "every view sees the largest value: {least} of {most}");
            found.push(most);
            bench.step(Some(&order));
            of_kept_power(&mut plain, |plain| match engine.name {
                EngineName::Rpie => rpie(plain, 0.3, 0.7, &order),
                _ => epie(plain, 0.7, &order, engine.batch.unwrap_or(1)),
            });
            let state = bench.stages.state().unwrap();
            // As above.
            for (what, a, b) in [("object", &state.object, &plain.object), ("probe", &state.probe, &plain.probe)] {
                assert!(off(a, b) < 1e-8, "{:?} {what} after {}: {:e}", engine.name, k + 1, off(a, b));
            }
        }
        assert!(found[2] < found[0], "{found:?}");
    }
}

/// Batches of ePIE, of which the last one is smaller, and LSQML with Poisson's likelihood.
#[test]
fn batches_and_poissons_likelihood_make_their_updates() {
    let steps = |name| EngineConfig { object_step: Some(0.7), probe_step: Some(0.7), ..EngineConfig::new(name, 2) };
    let batches = EngineConfig { batch: Some(5), ..steps(EngineName::Epie) };
    let lsq = EngineConfig { batch: Some(4), damping: Some(0.2), noise: Some(NoiseName::Poisson), ..steps(EngineName::Lsqml) };
    for engine in [batches, lsq] {
        let config = input(made(|m| (m.frames, m.noise) = (16, true)), engine.clone());
        let (start, _) = from_truth(&config, 0.1);
        let mut plain = MultiPass { poisson: engine.name == EngineName::Lsqml, ..MultiPass::new(&start) };
        let mut bench = Bench::new(&start, &engine, Compatibility::None, 1, true);
        let order: Vec<u32> = (0..16).map(|j| (5 * j + 3) % 16).collect();
        for k in 0..2 {
            bench.step(Some(&order));
            match engine.name {
                EngineName::Epie => of_kept_power(&mut plain, |plain| epie(plain, 0.7, &order, 5)),
                _ => lsqml(&mut plain, 0.2, 0.7, &order, 4),
            }
            let state = bench.stages.state().unwrap();
            // As above.
            for (what, a, b) in [("object", &state.object, &plain.object), ("probe", &state.probe, &plain.probe)] {
                assert!(off(a, b) < 1e-8, "{:?} {what} after {}: {:e}", engine.name, k + 1, off(a, b));
            }
        }
    }
}
