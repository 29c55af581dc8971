//! What a wall does to a particle: specular, diffuse, Cercignani-Lampis-Lord; moving and heated.

/// A wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wall {
    /// How particles leave it.
    pub model: Model,
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity, m/s; its part along the normal does not count.
    pub velocity: [f64; 3],
}

/// How particles leave a wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// As light from a mirror.
    Specular,
    /// With the temperature of the wall, a part of them; the others as from a mirror.
    Diffuse {
        /// The part, `0..=1`.
        accommodation: f64,
    },
    /// Cercignani-Lampis-Lord.
    Cll {
        /// Accommodation of the normal energy, `0..=1`.
        normal: f64,
        /// Accommodation of the tangential momentum, `0..=2`.
        tangential: f64,
    },
}

/// What a wall needs to know of a species.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Molecule {
    /// Mass, kg.
    pub mass: f64,
    /// Degrees of freedom of the rotation: 0, 2 or 3.
    pub rotation: u32,
    /// Characteristic temperature of the vibration, K; 0 for none.
    pub vibration: f64,
}

/// What a wall changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Energy of the rotation over Boltzmann's constant, K.
    pub rotation: f64,
    /// Level of the vibration.
    pub level: u32,
}

impl Wall {
    /// The motion after the wall, whose unit normal into the gas is `normal`. `uniform` gives numbers in (0, 1).
    pub fn reflect(&self, molecule: &Molecule, normal: [f64; 2], before: &Motion, uniform: &mut dyn FnMut() -> f64) -> Motion {
        let mut after = *before;
        let along = |v: [f64; 3]| v[0] * normal[0] + v[1] * normal[1];
        let mirror = |v: &mut [f64; 3]| {
            let n = along(*v);
            v[0] -= 2.0 * n * normal[0];
            v[1] -= 2.0 * n * normal[1];
        };
        match self.model {
            Model::Specular => mirror(&mut after.velocity),
            Model::Diffuse { accommodation } if uniform() < accommodation => {
                let thermal = (BOLTZMANN * self.temperature / molecule.mass).sqrt();
                // The normal part has the distribution of the flux, the tangential ones are Gaussian about the wall's own.
                let n = thermal * (-2.0 * uniform().ln()).sqrt();
                let (r, (sin, cos)) = (thermal * (-2.0 * uniform().ln()).sqrt(), (std::f64::consts::TAU * uniform()).sin_cos());
                let t = r * cos + self.velocity[1] * normal[0] - self.velocity[0] * normal[1];
                after.velocity = [n * normal[0] - t * normal[1], n * normal[1] + t * normal[0], r * sin + self.velocity[2]];
                after.rotation = match molecule.rotation {
                    0 => 0.0,
                    2 => -self.temperature * uniform().ln(),
                    _ => {
                        let gauss = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
                        self.temperature * (0.5 * gauss * gauss - uniform().ln())
                    }
                };
                if molecule.vibration > 0.0 {
                    after.level = (-self.temperature / molecule.vibration * uniform().ln()) as u32;
                }
            }
            _ => mirror(&mut after.velocity),
        }
        after
    }
}

/// Boltzmann's constant, J/K, exact in the SI.
pub const BOLTZMANN: f64 = 1.380_649e-23;
