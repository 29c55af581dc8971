//! Loads on walls: pressure, shear and heat flux of segments, forces and moments of bodies, and their coefficients.

use crate::geometry::{Body, Segment};
use crate::model::Model;
use crate::walls::BOLTZMANN;

/// Fluxes to a surface per area and time, in the order of the sums of a surface: molecules (1/(m^2 s)), momentum along x, y, z
/// (Pa), energy (W/m^2), and pressure times the position along a segment, -1 to 1 (Pa).
pub type Flux = [f64; crate::stages::SURFACE_SUMS];

/// Loads on a stretch of wall.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Molecules that come, 1/(m^2 s).
    pub flux: f64,
    /// Pressure: the force against the normal, Pa.
    pub pressure: f64,
    /// Shear along the segment from its first end to its second, the gas to the right, Pa.
    pub shear: f64,
    /// Shear along z, Pa.
    pub shear_z: f64,
    /// Heat into the wall, W/m^2.
    pub heat: f64,
}

impl Load {
    /// The load on a segment.
    pub fn new(flux: &Flux, segment: &Segment) -> Self {
        let [count, x, y, z, heat, _] = *flux;
        let [nx, ny] = segment.normal;
        // The normal is to the right of the segment's direction, which is (-ny, nx).
        Self { flux: count, pressure: 0.0 - (x * nx + y * ny), shear: y * nx - x * ny, shear_z: z, heat }
    }
}

/// A free stream, by which loads are made coefficients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Mass density, kg/m^3.
    pub rho: f64,
    /// Speed, m/s, above 0.
    pub speed: f64,
    /// Pressure, Pa.
    pub pressure: f64,
    /// Direction of the stream in the plane.
    pub direction: [f64; 2],
}

impl Reference {
    /// The stream of a run: the first side's gas that moves. None where all gas enters at rest or as the gas within demands.
    pub fn of(model: &Model) -> Option<Self> {
        let sides = model.inflow.iter().zip(&model.given).filter(|(_, given)| given.is_none());
        let gas = sides.filter_map(|(gas, _)| gas.as_ref()).find(|g| g.velocity[0].hypot(g.velocity[1]) > 0.0)?;
        let mass: f64 = model.species.iter().zip(&gas.fractions).map(|(s, f)| s.mass * f).sum();
        let speed = gas.velocity[0].hypot(gas.velocity[1]);
        let direction = [gas.velocity[0] / speed, gas.velocity[1] / speed];
        Some(Self { rho: gas.density * mass, speed, pressure: gas.density * BOLTZMANN * gas.temperature, direction })
    }

    /// For errors, which have no pressure of the stream to be taken off.
    #[must_use]
    pub fn still(&self) -> Self {
        Self { pressure: 0.0, ..*self }
    }

    /// `rho u^2 / 2`, Pa.
    pub fn dynamic(&self) -> f64 {
        0.5 * self.rho * self.speed * self.speed
    }

    /// `[Cp, Cf, Ch]`: pressure less that of the stream, and shear, over `rho u^2 / 2`; heat over `rho u^3 / 2`.
    pub fn coefficients(&self, load: &Load) -> [f64; 3] {
        let dynamic = self.dynamic();
        [(load.pressure - self.pressure) / dynamic, load.shear / dynamic, load.heat / (dynamic * self.speed)]
    }

    /// A force along the stream and to its left.
    pub fn turned(&self, force: [f64; 3]) -> [f64; 2] {
        let [c, s] = self.direction;
        [force[0] * c + force[1] * s, force[1] * c - force[0] * s]
    }

    /// `[Cd, Cl]` of a force (N/m) for a width (m): along the stream and to its left.
    pub fn drag(&self, force: [f64; 3], width: f64) -> [f64; 2] {
        self.turned(force).map(|f| f / (self.dynamic() * width))
    }
}

/// Loads on a body, per metre of depth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BodyLoad {
    /// Force, N/m.
    pub force: [f64; 3],
    /// Moment about a point, along z, positive counter-clockwise, N.
    pub moment: f64,
    /// Heat into the body, W/m.
    pub heat: f64,
    /// Force along the stream and to its left, N/m; 0 where there is no stream.
    pub stream: [f64; 2],
}

impl BodyLoad {
    /// Number of its values.
    pub const NUMBERS: usize = 7;

    /// The sum over a body's segments, `flux` that of all segments. The moment is taken about `pivot`, m: forces act where
    /// molecules hit.
    pub fn new(segments: &[Segment], flux: impl Fn(usize) -> Flux, body: &Body, pivot: [f64; 2]) -> Self {
        let mut all = Self::default();
        for k in body.segments.clone() {
            let (segment, [_, x, y, z, heat, tilt]) = (&segments[k], flux(k));
            let (length, middle) = (segment.length(), segment.middle());
            for (sum, f) in all.force.iter_mut().zip([x, y, z]) {
                *sum += f * length;
            }
            // Of the whole force in the middle of the segment, and of the pressure about that.
            all.moment += ((middle[0] - pivot[0]) * y - (middle[1] - pivot[1]) * x + 0.5 * length * tilt) * length;
            all.heat += heat * length;
        }
        all
    }

    /// With the force in the directions of a stream. Where the body lies on a side of the domain (`closing`, [`closing`]) it is
    /// taken to feel the stream's pressure, which a whole body would feel all around.
    #[must_use]
    pub fn along(mut self, stream: Option<&Reference>, closing: [f64; 2]) -> Self {
        let [x, y, z] = self.force;
        self.stream = stream.map_or([0.0; 2], |s| s.turned([x + s.pressure * closing[0], y + s.pressure * closing[1], z]));
        self
    }

    /// As numbers: force, moment, heat, along the stream and to its left.
    pub fn numbers(&self) -> [f64; Self::NUMBERS] {
        let ([x, y, z], [along, left]) = (self.force, self.stream);
        [x, y, z, self.moment, self.heat, along, left]
    }

    /// From [`BodyLoad::numbers`].
    pub fn from_numbers([x, y, z, moment, heat, along, left]: [f64; Self::NUMBERS]) -> Self {
        Self { force: [x, y, z], moment, heat, stream: [along, left] }
    }
}

/// The force of a unit of pressure on those segments of a body that lie on a side of the domain, m.
pub fn closing(segments: &[Segment], body: &Body) -> [f64; 2] {
    let buried = || segments[body.segments.clone()].iter().filter(|s| s.buried);
    [0, 1].map(|d| buried().map(|s| -s.normal[d] * s.length()).sum())
}

impl Body {
    /// The middle of the box about it, m.
    pub fn centre(&self) -> [f64; 2] {
        [0, 1].map(|d| 0.5 * (self.bounds[0][d] + self.bounds[1][d]))
    }

    /// Its width across a direction, by the box about it, m.
    pub fn width(&self, direction: [f64; 2]) -> f64 {
        let size = [0, 1].map(|d| self.bounds[1][d] - self.bounds[0][d]);
        size[0] * direction[1].abs() + size[1] * direction[0].abs()
    }
}
