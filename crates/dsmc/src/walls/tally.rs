//! What walls feel: momentum and energy per segment, pressure, shear and heat flux from them, forces and moments of bodies.

use std::ops::Range;

use crate::geometry::{Geometry, Segment};

/// Sums of one segment over simulated particles, each as one molecule: the weight comes in at the end.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Felt {
    /// Particles that came.
    pub count: f64,
    /// Momentum left with the wall, kg m/s.
    pub momentum: [f64; 3],
    /// Energy left with the wall, J.
    pub energy: f64,
    /// Angular momentum about the origin left with the wall, along z, kg m^2/s.
    pub spin: f64,
}

impl Felt {
    /// A particle that changed its momentum and energy at `place`, m.
    pub fn add(&mut self, place: [f64; 2], mass: f64, before: [f64; 3], after: [f64; 3], energy: f64) {
        self.count += 1.0;
        let p = [0, 1, 2].map(|k| mass * (before[k] - after[k]));
        for (sum, p) in self.momentum.iter_mut().zip(p) {
            *sum += p;
        }
        self.energy += energy;
        self.spin += place[0] * p[1] - place[1] * p[0];
    }

    /// Adds the sums of another part of the work.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for (sum, p) in self.momentum.iter_mut().zip(other.momentum) {
            *sum += p;
        }
        self.energy += other.energy;
        self.spin += other.spin;
    }
}

/// What a stretch of wall feels per area and time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Molecules that come, 1/(m^2 s).
    pub flux: f64,
    /// Pressure: the force along the inward normal, Pa.
    pub pressure: f64,
    /// Shear along the direction that has the gas to its right, Pa: from the segment's first end to its second.
    pub shear: f64,
    /// Shear along z, Pa.
    pub shear_z: f64,
    /// Heat into the wall, W/m^2.
    pub heat: f64,
}

impl Load {
    /// The load on a segment whose sums were gathered over `time` (s) with `weight` molecules a particle.
    pub fn new(felt: &Felt, segment: &Segment, weight: f64, time: f64) -> Self {
        let per = weight / (segment.length() * time);
        let [nx, ny] = segment.normal;
        let [x, y, z] = felt.momentum;
        // The normal is to the right of the segment's direction (-ny, nx).
        Self {
            flux: felt.count * per,
            pressure: -(x * nx + y * ny) * per,
            shear: (y * nx - x * ny) * per,
            shear_z: z * per,
            heat: felt.energy * per,
        }
    }

    /// `[Cp, Cf, Ch]` for a free stream of mass density `rho` (kg/m^3), speed `u` (m/s) and pressure `p` (Pa): pressure less `p`, and
    /// shear, over `rho u^2 / 2`; heat over `rho u^3 / 2`.
    pub fn coefficients(&self, rho: f64, u: f64, p: f64) -> [f64; 3] {
        let dynamic = 0.5 * rho * u * u;
        [(self.pressure - p) / dynamic, self.shear / dynamic, self.heat / (dynamic * u)]
    }
}

/// What a body feels, per metre of depth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BodyLoad {
    /// Force, N/m.
    pub force: [f64; 3],
    /// Moment about a point, along z, positive counter-clockwise, N m/m.
    pub moment: f64,
    /// Heat into the body, W/m.
    pub heat: f64,
}

impl BodyLoad {
    /// The sum over a body's segments, `felt` in the order of all segments, the moment taken about `pivot` (m).
    pub fn new(felt: &[Felt], segments: Range<usize>, pivot: [f64; 2], weight: f64, time: f64) -> Self {
        let mut all = Felt::default();
        felt[segments].iter().for_each(|f| all.merge(f));
        let per = weight / time;
        let force = all.momentum.map(|p| p * per);
        Self { force, moment: all.spin * per - (pivot[0] * force[1] - pivot[1] * force[0]), heat: all.energy * per }
    }

    /// Of all bodies, each about the centre of the box that holds it.
    pub fn all(geometry: &Geometry, felt: &[Felt], weight: f64, time: f64) -> Vec<Self> {
        let about = |b: &crate::geometry::Body| [0, 1].map(|d| 0.5 * (b.bounds[0][d] + b.bounds[1][d]));
        geometry.bodies().iter().map(|b| Self::new(felt, b.segments.clone(), about(b), weight, time)).collect()
    }
}
