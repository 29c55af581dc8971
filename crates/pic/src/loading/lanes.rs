//! Random positions and normal momenta for many particles at a time, in registers of the best instruction set at hand. All give the
//! same bits.

#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;
use zellige_engine::real::Isa;
use zellige_engine::rng::Philox;

use crate::deviates::{direction, normal_length, open, uniform};
use crate::sampling::relativistic_candidate;

/// Keys of the random numbers of particles.
#[derive(Debug, Clone, Default)]
pub(super) struct Draws {
    /// Column of the cell, counted from the start of the run.
    pub(super) columns: Vec<u64>,
    /// First number of the cell's row.
    pub(super) rows: Vec<u64>,
    /// Number of the particle in its cell.
    pub(super) numbers: Vec<u32>,
}

impl Draws {
    pub(super) fn clear(&mut self) {
        self.columns.clear();
        self.rows.clear();
        self.numbers.clear();
    }

    pub(super) fn reserve(&mut self, n: usize) {
        self.columns.reserve(n);
        self.rows.reserve(n);
        self.numbers.reserve(n);
    }
}

/// A loop that is compiled for each instruction set.
pub(crate) trait Work {
    /// All of it, to be inlined.
    fn run(self);
}

/// Does `work` by the instructions of `isa`.
pub(crate) fn on(isa: Isa, work: impl Work) {
    match isa {
        // SAFETY: `Isa::all` asked the CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(work) },
        Isa::Baseline => work.run(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx512(work: impl Work) {
    if AVX512 { work.run() } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx2(work: impl Work) {
    work.run();
}

struct Positions<'a> {
    philox: Philox,
    draws: &'a Draws,
    s: &'a mut [f64],
    t: &'a mut [f64],
}

impl Work for Positions<'_> {
    #[inline(always)]
    fn run(self) {
        let n = self.s.len();
        let (columns, rows, numbers) = (&self.draws.columns[..n], &self.draws.rows[..n], &self.draws.numbers[..n]);
        let (s, t) = (&mut self.s[..n], &mut self.t[..n]);
        for p in 0..n {
            let [a, b, c, d] = self.philox.draw(columns[p], rows[p] + u64::from(numbers[p]));
            s[p] = open(a, b) - 0.5;
            t[p] = open(c, d) - 0.5;
        }
    }
}

/// Random offsets from the cell's centre.
pub(super) fn positions(isa: Isa, philox: Philox, draws: &Draws, s: &mut [f64], t: &mut [f64]) {
    on(isa, Positions { philox, draws, s, t });
}

struct Normals<'a> {
    philox: Philox,
    draws: &'a Draws,
    width: [f64; 3],
    shift: [f64; 3],
    u: [&'a mut [f64]; 3],
}

/// Particles that each loop of [`Normals`] takes together: their numbers stay in the first cache.
const SOME: usize = 64;

impl Work for Normals<'_> {
    #[inline(always)]
    fn run(self) {
        let [x, y, z] = self.u;
        let n = x.len();
        let (columns, rows, numbers) = (&self.draws.columns[..n], &self.draws.rows[..n], &self.draws.numbers[..n]);
        let (y, z) = (&mut y[..n], &mut z[..n]);
        // Loops of their own for words, lengths and directions: each is one long chain, of which a CPU then has several under way.
        let (mut lengths, mut angles) = ([[0.0; SOME]; 2], [[0.0; SOME]; 2]);
        for first in (0..n).step_by(SOME) {
            let some = SOME.min(n - first);
            let [length, other_length] = &mut lengths;
            let [angle, other_angle] = &mut angles;
            {
                let (columns, rows, numbers) = (&columns[first..][..some], &rows[first..][..some], &numbers[first..][..some]);
                for p in 0..some {
                    let number = rows[p] + 2 * u64::from(numbers[p]);
                    let [a, b, c, d] = self.philox.draw(columns[p], number);
                    (length[p], angle[p]) = (open(a, b), uniform(c, d));
                    let [a, b, c, d] = self.philox.draw(columns[p], number + 1);
                    (other_length[p], other_angle[p]) = (open(a, b), uniform(c, d));
                }
            }
            for p in 0..some {
                length[p] = normal_length(length[p]);
                other_length[p] = normal_length(other_length[p]);
            }
            let (x, y, z) = (&mut x[first..][..some], &mut y[first..][..some], &mut z[first..][..some]);
            for p in 0..some {
                let at = direction(angle[p]);
                x[p] = length[p] * at.x * self.width[0] + self.shift[0];
                y[p] = length[p] * at.y * self.width[1] + self.shift[1];
                z[p] = other_length[p] * direction(other_angle[p]).x * self.width[2] + self.shift[2];
            }
        }
    }
}

/// Width and shift with which [`normals`] leaves normal vectors unchanged.
pub(super) const AS_THEY_ARE: [[f64; 3]; 2] = [[1.0; 3], [-0.0; 3]];

/// Normal vectors, by component times a width and moved by a shift.
pub(super) fn normals(isa: Isa, philox: Philox, draws: &Draws, [width, shift]: [[f64; 3]; 2], u: &mut [Vec<f64>; 3]) {
    on(isa, Normals { philox, draws, width, shift, u: u.each_mut().map(|u| &mut u[..]) });
}

/// Cells whose relativistic particles are drawn together.
pub(super) const GROUP: usize = 16;

/// A try at a relativistic momentum in each of some cells, at the next numbers of their streams.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Candidates {
    /// Column of the cell.
    pub(super) columns: [u64; GROUP],
    /// Next number.
    pub(super) numbers: [u64; GROUP],
    /// Temperature.
    pub(super) theta: [f64; GROUP],
    /// The momentum.
    pub(super) u: [[f64; GROUP]; 3],
    /// True if it is kept.
    pub(super) kept: [bool; GROUP],
}

struct Relativistic<'a> {
    philox: Philox,
    tries: &'a mut Candidates,
}

impl Work for Relativistic<'_> {
    #[inline(always)]
    fn run(self) {
        let (philox, t) = (self.philox, self.tries);
        // Without `map` and closures, which are calls here, and without registers.
        let mut words = [[[0_u32; GROUP]; 4]; 5];
        for (k, words) in (0_u64..).zip(&mut words) {
            let [a, b, c, d] = words;
            for p in 0..GROUP {
                let drawn = philox.draw(t.columns[p], t.numbers[p] + k);
                (a[p], b[p], c[p], d[p]) = (drawn[0], drawn[1], drawn[2], drawn[3]);
            }
        }
        macro_rules! words {
            ($k:literal, $p:ident) => {
                [words[$k][0][$p], words[$k][1][$p], words[$k][2][$p], words[$k][3][$p]]
            };
        }
        for p in 0..GROUP {
            let found = relativistic_candidate(&[words!(0, p), words!(1, p), words!(2, p), words!(3, p), words!(4, p)], t.theta[p]);
            (t.u[0][p], t.u[1][p], t.u[2][p]) = (found.u[0], found.u[1], found.u[2]);
            t.kept[p] = found.kept;
            t.numbers[p] += found.drawn;
        }
    }
}

/// One try in each cell: numbers go on by what it drew.
pub(super) fn relativistic(isa: Isa, philox: Philox, tries: &mut Candidates) {
    on(isa, Relativistic { philox, tries });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{Purpose, Stream, purpose};

    /// Registers have the bits of the streams, which are drawn one by one.
    #[test]
    fn every_instruction_set_has_the_bits_of_the_streams() {
        let (seed, species, n) = (77, 3, 2 * SOME + 37);
        let mut draws = Draws::default();
        for k in 0..n as u64 {
            draws.columns.push((k * 17) << 30);
            draws.rows.push(Stream::first(k as usize * 1000));
            draws.numbers.push(k as u32 % 5);
        }
        let philox = |what| Philox::new(purpose::start(species, what), seed);
        for isa in Isa::all() {
            let (mut s, mut t, mut u) = (vec![0.0; n], vec![0.0; n], [(); 3].map(|()| vec![0.0; n]));
            positions(isa, philox(Purpose::Position), &draws, &mut s, &mut t);
            normals(isa, philox(Purpose::Momentum), &draws, AS_THEY_ARE, &mut u);
            for p in 0..n {
                let stream = |what| Stream::new(seed, species, what, draws.columns[p], p * 1000);
                let (mut position, mut momentum) = (stream(Purpose::Position), stream(Purpose::Momentum));
                let (mut at, mut vector) = ([0.0; 2], [0.0; 3]);
                for _ in 0..=draws.numbers[p] {
                    (at, vector) = (position.open(), momentum.normal_vector());
                }
                assert_eq!([s[p], t[p]], at.map(|x| x - 0.5), "{isa:?} {p}");
                assert_eq!([u[0][p], u[1][p], u[2][p]], vector, "{isa:?} {p}");
            }
        }
    }

    /// Cells that try together have the momenta of their streams.
    #[test]
    fn relativistic_momenta_are_those_of_the_streams() {
        let philox = Philox::new(purpose::start(2, Purpose::Momentum), 5);
        for isa in Isa::all() {
            let mut tries = Candidates::default();
            for p in 0..GROUP {
                (tries.columns[p], tries.numbers[p]) = (7 * p as u64, Stream::first(p));
                tries.theta[p] = 10_f64.powi(p as i32 % 5 - 3);
            }
            let mut streams: Vec<Stream> = (0..GROUP).map(|p| Stream::at(philox, tries.columns[p], tries.numbers[p])).collect();
            let mut kept = 0;
            for _ in 0..200 {
                relativistic(isa, philox, &mut tries);
                for p in (0..GROUP).filter(|p| tries.kept[*p]) {
                    let u = streams[p].maxwell_juttner(tries.theta[p]);
                    assert_eq!([0, 1, 2].map(|c| tries.u[c][p]), u, "{isa:?} {p}");
                    assert_eq!(streams[p].number(), tries.numbers[p]);
                    kept += 1;
                }
            }
            // Seven tenths at least.
            assert!(kept > 200 * GROUP * 2 / 3, "{kept}");
        }
    }
}
