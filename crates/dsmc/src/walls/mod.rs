//! Reflection of particles by walls: specular, diffuse, Cercignani-Lampis-Lord; moving and heated. And the loads on walls, and
//! the inflow of gas through a surface.

pub mod formulae;
pub mod inflow;
pub mod subsonic;
pub mod tally;

use zellige_device_macro::device;
use zellige_engine::error::Problem;
use zellige_engine::expr::Expr;

use crate::gas::vibration::Vibration;
use crate::geometry::Geometry;
use formulae::{cll_normal, cll_tangential, diffuse_normal, diffuse_tangential, rotation_three, rotation_two, vibration_level};

/// A wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wall {
    /// Reflection model.
    pub model: Model,
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity, m/s; its part along the normal does not count.
    pub velocity: [f64; 3],
}

/// Reflection model of a wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// As light from a mirror.
    Specular,
    /// With the temperature of the wall, a part of them; the others as from a mirror. Rotation and vibration go with the rest.
    Diffuse {
        /// The part, `0..=1`.
        accommodation: f64,
    },
    /// Cercignani-Lampis-Lord (Lord, Phys. Fluids A 3 (1991) 706). Rotation is accommodated as the normal energy is; vibration in
    /// that part of all cases.
    Cll {
        /// Accommodation of the normal energy, `0..=1`.
        normal: f64,
        /// Accommodation of the tangential momentum, `0..=2`.
        tangential: f64,
    },
}

/// Properties of a species that a wall needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Molecule {
    /// Mass, kg.
    pub mass: f64,
    /// Degrees of freedom of the rotation: 0, 2 or 3.
    pub rotation: u32,
    /// The modes of its vibration.
    pub vibration: Vibration,
}

/// Motion and internal energy that a wall changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Energy of the rotation over Boltzmann's constant, K.
    pub rotation: f64,
    /// Levels of the vibration ([`crate::gas::vibration`]).
    pub level: u32,
}

impl Motion {
    /// Energy, J.
    pub fn energy(&self, molecule: &Molecule) -> f64 {
        let [x, y, z] = self.velocity;
        0.5 * molecule.mass * (x * x + y * y + z * z) + BOLTZMANN * (self.rotation + molecule.vibration.energy(self.level))
    }
}

impl Wall {
    /// True if it is a mirror, which has no temperature.
    pub fn is_mirror(&self) -> bool {
        self.model == Model::Specular
    }

    /// The motion after the wall, whose unit normal into the gas is `normal`. `uniform` gives numbers in (0, 1).
    pub fn reflect(&self, molecule: &Molecule, normal: [f64; 2], before: &Motion, uniform: &mut dyn FnMut() -> f64) -> Motion {
        let [x, y, z] = before.velocity;
        let across = x * normal[0] + y * normal[1];
        let (kind, tangential) = match self.model {
            Model::Specular => (0.0, 0.0),
            Model::Diffuse { accommodation } => (if uniform() < accommodation { 1.0 } else { 0.0 }, 1.0),
            Model::Cll { normal, tangential } => (normal, tangential),
        };
        if kind == 0.0 && (tangential == 0.0 || !matches!(self.model, Model::Cll { .. })) {
            // By the difference, which keeps the energy to round-off and every bit of the velocity along the wall.
            let mut after = *before;
            after.velocity = [x - 2.0 * across * normal[0], y - 2.0 * across * normal[1], z];
            return after;
        }
        // Parts along the wall are seen from it.
        let tangent = [-normal[1], normal[0]];
        let slide = [self.velocity[0] * tangent[0] + self.velocity[1] * tangent[1], self.velocity[2]];
        let along = [x * tangent[0] + y * tangent[1] - slide[0], z - slide[1]];
        let thermal = (2.0 * BOLTZMANN * self.temperature / molecule.mass).sqrt();
        let (away, [t, b]) = if matches!(self.model, Model::Cll { .. }) {
            let away = thermal * cll_normal(kind, -across / thermal, uniform(), uniform());
            let size = along[0].hypot(along[1]);
            // A particle without a direction along the wall leaves in all alike.
            let [p, q] = if size > 0.0 { along.map(|v| v / size) } else { [1.0, 0.0] };
            let v = cll_tangential(tangential, size / thermal, uniform(), uniform());
            (away, [thermal * (v.a * p - v.b * q), thermal * (v.a * q + v.b * p)])
        } else {
            let v = diffuse_tangential(uniform(), uniform());
            (thermal * diffuse_normal(uniform()), [thermal * v.a, thermal * v.b])
        };
        let mut after = *before;
        let t = t + slide[0];
        after.velocity = [away * normal[0] + t * tangent[0], away * normal[1] + t * tangent[1], b + slide[1]];
        if molecule.rotation > 0 {
            let energy = before.rotation / self.temperature;
            after.rotation = self.temperature
                * if molecule.rotation == 2 {
                    rotation_two(kind, energy, uniform(), uniform())
                } else {
                    rotation_three(kind, energy, uniform(), uniform(), uniform())
                };
        }
        if !molecule.vibration.is_empty() && (kind == 1.0 || uniform() < kind) {
            after.level = molecule.vibration.word(|mode| vibration_level(mode.theta / self.temperature, uniform()) as u32);
        }
        after
    }
}

/// Temperatures along a body's wall, K, in the order of its segments: an expression of the position of a segment's middle, `x`
/// and `y` in m, and of the way `s` along the body from its first vertex to there, m.
///
/// # Errors
/// A temperature that is not above 0, with the segment and its position.
pub fn temperatures(geometry: &Geometry, body: usize, expression: &Expr) -> Result<Vec<f64>, Problem> {
    let body = &geometry.bodies()[body];
    let mut way = 0.0;
    let along = body.segments.clone().map(|k| {
        let segment = &geometry.segments()[k];
        let ([x, y], length) = (segment.middle(), segment.length());
        let t = expression.eval(&[x, y, way + 0.5 * length]);
        way += length;
        if t > 0.0 && t.is_finite() {
            return Ok(t);
        }
        let position = format!("at ({x}, {y}), segment {} of `{}`", k - body.segments.start + 1, body.name);
        Err(Problem::new("", format!("the wall's temperature is {t} {position}")).allowed("above 0 K everywhere on the wall"))
    });
    along.collect()
}

/// Boltzmann's constant, J/K, exact in the SI.
#[device]
pub const BOLTZMANN: f64 = 1.380_649e-23;
