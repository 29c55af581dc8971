//! Loops in registers of the best instruction set at hand, and the tries of relativistic momenta in them. All give the same bits.

#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;
use zellige_engine::real::Isa;
use zellige_engine::rng::Philox;

use crate::sampling::{DRAWS_OF_A_TRY, relativistic_candidate};

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
        let mut words = [[[0_u32; GROUP]; 4]; DRAWS_OF_A_TRY];
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
            let found = relativistic_candidate(&[words!(0, p), words!(1, p)], t.theta[p]);
            (t.u[0][p], t.u[1][p], t.u[2][p]) = (found.u[0], found.u[1], found.u[2]);
            t.kept[p] = found.kept;
            t.numbers[p] += DRAWS_OF_A_TRY as u64;
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
