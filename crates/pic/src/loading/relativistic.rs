//! Momenta of a relativistic gas: tries of many particles at a time, in registers. A particle that has one makes room for the next.

use zellige_engine::error::Result;
use zellige_engine::real::Isa;
use zellige_engine::rng::Philox;

use super::lanes::{Work, on};
use super::random::SOME;
use super::{Batch, Source};
use crate::relativistic::{Candidate, Frame, NUMBERS_OF_A_PARTICLE, boosted, frame_of, relativistic_candidate};
use crate::sampling::Purpose;
use crate::setup::Profile;

/// Particles to be given momenta. Its methods are to be inlined.
pub(super) trait Momenta {
    /// Column of the cell of particle `p`, and the first of its numbers: asked for one particle after the other.
    fn key(&mut self, p: usize) -> [u64; 2];

    /// Temperature and frame of particle `p`.
    fn gas(&self, p: usize) -> (f64, Frame);

    /// Takes the momentum of particle `p`.
    fn put(&mut self, p: usize, u: [f64; 3]);
}

/// Particles under way: one a lane.
struct Tries {
    particle: [usize; SOME],
    column: [u64; SOME],
    /// First number of the next try.
    number: [u64; SOME],
    theta: [f64; SOME],
    /// Frames by their numbers.
    frame: [[f64; SOME]; 5],
    u: [[f64; SOME]; 3],
    kept: [bool; SOME],
    drawn: [f64; SOME],
    limit: [f64; SOME],
}

impl Tries {
    fn new() -> Self {
        let (whole, numbers, real) = ([0; SOME], [0; SOME], [0.0; SOME]);
        let (frame, u, kept) = ([real; 5], [real; 3], [false; SOME]);
        Self { particle: whole, column: numbers, number: numbers, theta: real, frame, u, kept, drawn: real, limit: real }
    }

    /// Begins with a particle.
    #[inline(always)]
    fn begin(&mut self, lane: usize, p: usize, moving: bool, momenta: &mut impl Momenta) {
        self.particle[lane] = p;
        [self.column[lane], self.number[lane]] = momenta.key(p);
        let (theta, Frame { x, y, z, momentum, gamma }) = momenta.gas(p);
        self.theta[lane] = theta;
        if moving {
            for (to, value) in self.frame.iter_mut().zip([x, y, z, momentum, gamma]) {
                to[lane] = value;
            }
        }
    }

    /// Goes on with the particle of another lane.
    #[inline(always)]
    fn take(&mut self, lane: usize, from: usize) {
        self.particle[lane] = self.particle[from];
        (self.column[lane], self.number[lane]) = (self.column[from], self.number[from]);
        (self.theta[lane], self.kept[lane]) = (self.theta[from], self.kept[from]);
        for values in self.frame.iter_mut().chain(&mut self.u) {
            values[lane] = values[from];
        }
    }

    /// A try of each of the first `some` lanes.
    #[inline(always)]
    fn make(&mut self, philox: Philox, some: usize) {
        let some = some.min(SOME);
        // A loop of its own for words: the compiler then keeps both in registers.
        let mut words = [[0_u32; SOME]; 8];
        let [pick, keep, a, b, c, angle, d, turn] = &mut words;
        for p in 0..some {
            let drawn = philox.draw(self.column[p], self.number[p]);
            (pick[p], keep[p], a[p], b[p]) = (drawn[0], drawn[1], drawn[2], drawn[3]);
            let drawn = philox.draw(self.column[p], self.number[p] + 1);
            (c[p], angle[p], d[p], turn[p]) = (drawn[0], drawn[1], drawn[2], drawn[3]);
        }
        let [x, y, z] = &mut self.u;
        for p in 0..some {
            let found = relativistic_candidate(pick[p], keep[p], a[p], b[p], c[p], angle[p], d[p], turn[p], self.theta[p]);
            (x[p], y[p], z[p], self.kept[p]) = (found.x, found.y, found.z, found.drawn < found.limit);
            (self.drawn[p], self.limit[p]) = (found.drawn, found.limit);
        }
    }

    /// Momenta of the first `some` lanes, seen from where their frames move.
    #[inline(always)]
    fn boost(&mut self, some: usize) {
        let some = some.min(SOME);
        let ([x, y, z], [along_x, along_y, along_z, momentum, gamma]) = (&mut self.u, &self.frame);
        for p in 0..some {
            let frame = Frame { x: along_x[p], y: along_y[p], z: along_z[p], momentum: momentum[p], gamma: gamma[p] };
            let seen = boosted(Candidate { x: x[p], y: y[p], z: z[p], drawn: self.drawn[p], limit: self.limit[p] }, frame);
            (x[p], y[p], z[p]) = (seen.x, seen.y, seen.z);
        }
    }
}

/// Draws the momenta of particles 0 to `n`; frames are at rest unless they are `moving`. To be inlined where registers are chosen.
#[inline(always)]
pub(super) fn draw(philox: Philox, n: usize, moving: bool, momenta: &mut impl Momenta) {
    let (mut tries, mut busy) = (Tries::new(), n.min(SOME));
    let mut next = busy;
    for lane in 0..busy {
        tries.begin(lane, lane, moving, momenta);
    }
    while busy > 0 {
        tries.make(philox, busy);
        if moving {
            tries.boost(busy);
        }
        let mut lane = 0;
        while lane < busy {
            if tries.kept[lane] {
                momenta.put(tries.particle[lane], [tries.u[0][lane], tries.u[1][lane], tries.u[2][lane]]);
                if next == n {
                    // Lanes that nobody needs are the last ones; what came from there has yet to be looked at.
                    busy -= 1;
                    tries.take(lane, busy);
                    continue;
                }
                tries.begin(lane, next, moving, momenta);
                next += 1;
            } else {
                tries.number[lane] += 2;
            }
            lane += 1;
        }
    }
}

/// Particles of a batch.
struct OfBatch<'a> {
    columns: &'a [u64],
    rows: &'a [u64],
    numbers: &'a [u32],
    /// One for all particles, or one for each.
    gases: &'a [(f64, Frame)],
    u: [&'a mut [f64]; 3],
}

impl Momenta for OfBatch<'_> {
    #[inline(always)]
    fn key(&mut self, p: usize) -> [u64; 2] {
        [self.columns[p], self.rows[p] + u64::from(self.numbers[p]) * NUMBERS_OF_A_PARTICLE]
    }

    #[inline(always)]
    fn gas(&self, p: usize) -> (f64, Frame) {
        if let [gas] = self.gases { *gas } else { self.gases[p] }
    }

    #[inline(always)]
    fn put(&mut self, p: usize, u: [f64; 3]) {
        for (to, u) in self.u.iter_mut().zip(u) {
            to[p] = u;
        }
    }
}

struct Drawing<'a> {
    philox: Philox,
    batch: OfBatch<'a>,
}

impl Work for Drawing<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { philox, mut batch } = self;
        let (n, moving) = (batch.numbers.len(), batch.gases.len() > 1 || batch.gases[0].1.momentum > 0.0);
        draw(philox, n, moving, &mut batch);
    }
}

fn draw_batch(isa: Isa, philox: Philox, batch: OfBatch<'_>) {
    if !batch.numbers.is_empty() {
        on(isa, Drawing { philox, batch });
    }
}

impl Source<'_> {
    /// Momenta of a relativistic gas, seen from the box.
    pub(super) fn draw_relativistic(&self, temperature: &Profile, out: &mut Batch) -> Result<()> {
        let [x, y, z] = &self.load.drift;
        let gases = match (temperature, x, y, z) {
            (Profile::Number(t), Profile::Number(x), Profile::Number(y), Profile::Number(z)) if !out.is_empty() => {
                vec![(self.warm(*t, out, 0)?, frame_of(*x, *y, *z))]
            }
            _ => {
                let of = |p: usize| {
                    let position = self.at(out, p);
                    let [x, y, z] = [0, 1, 2].map(|c| self.load.drift[c].at(position));
                    Ok((self.warm(temperature.at(position), out, p)?, frame_of(x, y, z)))
                };
                (0..out.len()).map(of).collect::<Result<Vec<_>>>()?
            }
        };
        let Batch { draws, u, .. } = out;
        let u = u.each_mut().map(|u| &mut u[..]);
        let batch = OfBatch { columns: &draws.columns, rows: &draws.rows, numbers: &draws.numbers, gases: &gases, u };
        draw_batch(self.isa, self.philox(Purpose::Momentum), batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relativistic::relativistic_momentum;
    use crate::sampling::{Stream, purpose};

    /// Particles that are tried for together have the momenta of those by themselves, by every instruction set.
    #[test]
    fn momenta_are_those_of_single_particles() {
        let philox = Philox::new(purpose::start(2, Purpose::Momentum), 5);
        let mixed = |p: usize| {
            let theta = if p.is_multiple_of(7) { 0.0 } else { 10_f64.powi(p as i32 % 5 - 3) };
            (theta, frame_of(0.1 * p as f64, 0.0, -3.0))
        };
        let (warm, moving) = ((0.3, frame_of(0.0, 0.0, 0.0)), (2.0, frame_of(-0.7, 0.2, 1e-3)));
        for (n, isa) in [1, 5, SOME, 1000].into_iter().flat_map(|n| Isa::all().into_iter().map(move |isa| (n, isa))) {
            for gases in [vec![warm], vec![moving], (0..n).map(mixed).collect()] {
                let columns: Vec<u64> = (0..n as u64).map(|p| 7 * (p % 11)).collect();
                let rows: Vec<u64> = (0..n).map(|p| Stream::first(p % 3)).collect();
                let numbers: Vec<u32> = (0..n as u32).map(|p| p / 11).collect();
                let mut u = [(); 3].map(|()| vec![f64::NAN; n]);
                let to = u.each_mut().map(|u| &mut u[..]);
                draw_batch(isa, philox, OfBatch { columns: &columns, rows: &rows, numbers: &numbers, gases: &gases, u: to });
                for p in 0..n {
                    let (theta, frame) = gases[p % gases.len()];
                    let alone = relativistic_momentum(philox, columns[p], rows[p], numbers[p], theta, frame);
                    assert_eq!([0, 1, 2].map(|c| u[c][p]), alone, "{isa:?}, {p} of {n}");
                }
            }
        }
    }
}
