//! The vibration of a molecule: harmonic oscillators with levels, without zero-point energy.
//!
//! Modes of one characteristic temperature are one oscillator with a degeneracy d, whose level q has `C(q + d - 1, d - 1)` states.
//! The levels of a molecule are one word: that of the only oscillator, or, of several, a byte each, the first in the lowest.

/// Most oscillators of a molecule.
pub const MODES: usize = 4;
/// Largest degeneracy of one.
pub const DEGENERACY: u32 = 4;
/// Highest level of a lone oscillator in an exchange, and that of one of several, which has a byte.
pub(crate) const HIGHEST: [u32; 2] = [65_000, 255];

/// An oscillator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// Characteristic temperature, K.
    pub theta: f64,
    /// Number of modes of this temperature.
    pub degeneracy: u32,
    /// Collision number of their relaxation; infinity freezes them.
    pub z: f64,
}

impl Mode {
    /// Heat capacity over Boltzmann's constant (Einstein): `d (x/(2 sinh(x/2)))^2`, `x = theta/T`.
    pub fn capacity(&self, temperature: f64) -> f64 {
        let x = self.theta / temperature;
        f64::from(self.degeneracy) * (x / (2.0 * (0.5 * x).sinh())).powi(2)
    }
}

/// All oscillators of a molecule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vibration {
    modes: [Mode; MODES],
    count: usize,
}

impl Vibration {
    /// Of an atom, or where vibration is not computed.
    pub const NONE: Self = Self { modes: [Mode { theta: 0.0, degeneracy: 0, z: f64::INFINITY }; MODES], count: 0 };

    /// One oscillator without degeneracy, frozen until a collision number is given.
    pub fn single(theta: f64) -> Self {
        let mut one = Self::NONE;
        (one.modes[0], one.count) = (Mode { theta, degeneracy: 1, z: f64::INFINITY }, 1);
        one
    }

    /// Of some oscillators; those of one temperature and collision number are put together. Fails, in words, where there are too
    /// many.
    pub fn new(modes: &[Mode]) -> Result<Self, String> {
        let mut all = Self::NONE;
        for mode in modes {
            if let Some(same) = all.modes[..all.count].iter_mut().find(|m| m.theta == mode.theta && m.z == mode.z) {
                same.degeneracy += mode.degeneracy;
            } else if all.count < MODES {
                all.modes[all.count] = *mode;
                all.count += 1;
            } else {
                return Err(format!("{} different modes of vibration; at most {MODES} are computed", modes.len()));
            }
        }
        match all.modes().iter().find(|m| m.degeneracy > DEGENERACY) {
            Some(m) => Err(format!("{} modes of {} K; at most {DEGENERACY} of one temperature are computed", m.degeneracy, m.theta)),
            None => Ok(all),
        }
    }

    /// The oscillators.
    pub fn modes(&self) -> &[Mode] {
        &self.modes[..self.count]
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Replaces the collision numbers of all by one.
    #[must_use]
    pub fn relaxing(mut self, z: f64) -> Self {
        self.modes[..self.count].iter_mut().for_each(|m| m.z = z);
        self
    }

    /// Highest level of an oscillator.
    pub fn highest(&self) -> u32 {
        HIGHEST[usize::from(self.count > 1)]
    }

    /// The level of oscillator `m` in a word.
    #[inline(always)]
    pub fn level(&self, word: u32, m: usize) -> u32 {
        if self.count > 1 { word >> (8 * m) & 0xFF } else { word }
    }

    /// A word of levels; `level` gives one of an oscillator without degeneracy, by chance.
    pub fn word(&self, mut level: impl FnMut(&Mode) -> u32) -> u32 {
        let mut word = 0;
        for (m, mode) in self.modes().iter().enumerate() {
            // Those above the highest are not there: drawn again.
            let q = loop {
                let q = (0..mode.degeneracy).fold(0_u32, |sum, _| sum.saturating_add(level(mode)));
                if self.count == 1 {
                    break q.min(u32::from(u16::MAX));
                }
                if q <= self.highest() {
                    break q;
                }
            };
            word |= q << (8 * m);
        }
        word
    }

    /// A word of a gas in equilibrium.
    pub fn draw(&self, temperature: f64, uniform: &mut dyn FnMut() -> f64) -> u32 {
        self.word(|mode| (-temperature / mode.theta * uniform().ln()) as u32)
    }

    /// Energy of a word over Boltzmann's constant, K.
    #[inline(always)]
    pub fn energy(&self, word: u32) -> f64 {
        match self.count {
            0 => 0.0,
            1 => f64::from(word) * self.modes[0].theta,
            _ => (0..self.count).map(|m| f64::from(self.level(word, m)) * self.modes[m].theta).sum(),
        }
    }

    /// Energy of levels, or of sums of them, one an oscillator, over Boltzmann's constant, K.
    pub fn of_levels(&self, levels: &[f64]) -> f64 {
        self.modes().iter().zip(levels).map(|(m, q)| m.theta * q).sum()
    }

    /// Degrees of freedom at a temperature: `2 d (theta/T)/(exp(theta/T) - 1)` of each oscillator.
    pub fn freedom(&self, temperature: f64) -> f64 {
        let of = |m: &Mode| {
            let x = m.theta / temperature;
            f64::from(m.degeneracy) * (2.0 * x / x.exp_m1())
        };
        self.modes().iter().map(of).sum()
    }

    /// Heat capacity over Boltzmann's constant.
    pub fn capacity(&self, temperature: f64) -> f64 {
        self.modes().iter().map(|m| m.capacity(temperature)).sum()
    }

    /// Temperature of one oscillator of mean level `level`, K; 0 where all are at rest.
    pub fn mode_temperature(&self, m: usize, level: f64) -> f64 {
        let mode = &self.modes[m];
        if level > 0.0 && m < self.count { mode.theta / (f64::from(mode.degeneracy) / level).ln_1p() } else { 0.0 }
    }

    /// Temperature at which the oscillators together have the energy of these mean levels, K; 0 where all are at rest.
    ///
    /// Newton's method for the logarithm of the energy over 1/T, which is convex and falls: from a temperature that is too high (as
    /// `theta/(exp(theta/T) - 1) > T - theta/2`) it comes down to the root without passing it.
    pub fn temperature(&self, levels: &[f64]) -> f64 {
        if self.count < 2 {
            return if self.count == 0 { 0.0 } else { self.mode_temperature(0, levels[0]) };
        }
        let energy = self.of_levels(levels);
        if energy <= 0.0 {
            return 0.0;
        }
        let sum = |f: &dyn Fn(&Mode) -> f64| self.modes().iter().map(|m| f64::from(m.degeneracy) * f(m)).sum::<f64>();
        let mut beta = sum(&|_| 1.0) / (energy + 0.5 * sum(&|m| m.theta));
        for _ in 0..100 {
            let e = sum(&|m| m.theta / (m.theta * beta).exp_m1());
            let slope = sum(&|m| (0.5 * m.theta / (0.5 * m.theta * beta).sinh()).powi(2)) / e;
            let change = (e / energy).ln() / slope;
            beta += change;
            if change.abs() <= 1e-13 * beta {
                break;
            }
        }
        1.0 / beta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn co2() -> Vibration {
        let mode = |theta, degeneracy| Mode { theta, degeneracy, z: 20.0 };
        Vibration::new(&[mode(960.0, 1), mode(1918.0, 1), mode(960.0, 1), mode(3380.0, 1)]).unwrap()
    }

    #[test]
    fn equal_modes_are_one_oscillator_and_too_many_are_refused() {
        let found: Vec<_> = co2().modes().iter().map(|m| (m.theta, m.degeneracy)).collect();
        assert_eq!(found, [(960.0, 2), (1918.0, 1), (3380.0, 1)]);
        let many: Vec<_> = (1..6).map(|k| Mode { theta: 500.0 * f64::from(k), degeneracy: 1, z: 1.0 }).collect();
        assert!(Vibration::new(&many).unwrap_err().contains("at most 4"));
        assert!(Vibration::new(&[Mode { degeneracy: 5, ..many[0] }]).unwrap_err().contains("at most 4"));
        assert_eq!(Vibration::new(&[Mode { z: f64::INFINITY, ..many[1] }]).unwrap(), Vibration::single(1000.0));
    }

    #[test]
    fn words_hold_the_levels_of_all_oscillators() {
        let v = co2();
        let mut next = 0;
        // The bend is drawn twice, and 300 is too high for a byte: drawn again.
        let word = v.word(|_| {
            next += 1;
            [1, 2, 300, 7, 200][next - 1]
        });
        assert_eq!([0, 1, 2].map(|m| v.level(word, m)), [3, 7, 200]);
        assert_eq!(v.energy(word), 3.0 * 960.0 + 7.0 * 1918.0 + 200.0 * 3380.0);
        assert_eq!((Vibration::single(100.0).energy(60_000), Vibration::NONE.energy(7)), (6e6, 0.0));
    }

    #[test]
    fn the_temperature_is_that_of_the_energy_and_the_capacity_its_slope() {
        for v in [co2(), Vibration::single(3371.0)] {
            for t in [40.0, 150.0, 300.0, 1000.0, 8000.0, 1e5] {
                let levels: Vec<f64> = v.modes().iter().map(|m| f64::from(m.degeneracy) / (m.theta / t).exp_m1()).collect();
                // Rounding of a dozen operations, times the slope of 1/T over the logarithm of the energy, which is at most 1.
                assert!((v.temperature(&levels) / t - 1.0).abs() < 1e-11, "{t}: {}", v.temperature(&levels));
                assert!((v.freedom(t) * t / 2.0 / v.of_levels(&levels) - 1.0).abs() < 1e-12, "{t}");
                let h = 1e-4 * t;
                let energy = |t: f64| 0.5 * v.freedom(t) * t;
                // A central difference: its error goes with the square of the step and the third derivative.
                assert!((v.capacity(t) / ((energy(t + h) - energy(t - h)) / (2.0 * h)) - 1.0).abs() < 1e-4, "{t}");
            }
        }
        assert_eq!((co2().temperature(&[0.0; 4]), Vibration::NONE.temperature(&[0.0; 4])), (0.0, 0.0));
    }
}
