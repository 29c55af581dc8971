//! Laser pulses, put into the box at the start or radiated by an antenna.
//!
//! A pulse of strength `a0 = e E / (m w0 c)` and frequency `w0` is written as two scalar potentials, so that both
//! divergences vanish on the grid to round-off wherever it stands:
//!
//! ```text
//! in the plane     E = curl (F z)   Bz = dF/dt        F = -a0 g sin(phi)
//! out of it        B = curl (A z)   Ez = -dA/dt       A =  a0 g sin(phi)
//! phi = k z - w0 (t - t0) + phase - atan(z/zR)/2 + (r/W0)^2 (z/zR)/(1 + (z/zR)^2)
//! g   = envelope(t - t0 - z/vg) (1 + (z/zR)^2)^(-1/4) exp(-(r/W0)^2 / (1 + (z/zR)^2))     zR = k W0^2 / 2
//! ```
//!
//! with `z` along the beam from the focus and `r` across it: the paraxial beam of two dimensions. A plane pulse has
//! neither `r` nor `zR`. Curl and d/dt are those of the grid, `k` and `vg` follow from its dispersion relation, and `a0`
//! is corrected for the differences: a pulse that is long beside its period starts without a wave in the other direction.
//!
//! The antenna is a sheet of current `K` on one line of nodes. It radiates `E = -K/2` to both sides at normal incidence;
//! the grid's factors for other angles are in [`Antenna::sheets`]. The half that goes outwards is for the absorbing layer
//! behind. `K` is a difference in time of a potential, so no charge is left on the sheet.

use std::f64::consts::{FRAC_PI_2, LN_2};

use crate::grid::{ABOVE, BELOW, Grid};
use crate::stages::{Component, Sheet};

/// The shape of a pulse in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Envelope {
    /// Gaussian with this full width at half maximum of the intensity; the reference point is the peak.
    Gaussian {
        /// Full width, `1/w_n`.
        fwhm: f64,
    },
    /// Rise as `sin^2`, flat top, fall as `sin^2`; the reference point is the front. All in `1/w_n`.
    Ramps {
        /// Length of the rise.
        rise: f64,
        /// Length of the flat top.
        flat: f64,
        /// Length of the fall.
        fall: f64,
    },
}

impl Envelope {
    /// Amplitude at `tau` after the reference point, 1 at most.
    pub fn at(self, tau: f64) -> f64 {
        match self {
            Self::Gaussian { fwhm } => (-2.0 * LN_2 * (tau / fwhm).powi(2)).exp(),
            Self::Ramps { rise, flat, fall } => {
                let end = rise + flat + fall;
                if tau <= 0.0 || tau >= end {
                    0.0
                } else if tau < rise {
                    (FRAC_PI_2 * tau / rise).sin().powi(2)
                } else if tau > rise + flat {
                    (FRAC_PI_2 * (end - tau) / fall).sin().powi(2)
                } else {
                    1.0
                }
            }
        }
    }
}

impl Envelope {
    /// The largest amplitude from `tau` after the reference point on.
    fn rest(self, tau: f64) -> f64 {
        let falls = match self {
            Self::Gaussian { .. } => 0.0,
            Self::Ramps { rise, flat, .. } => rise + flat,
        };
        if tau < falls { 1.0 } else { self.at(tau) }
    }
}

/// Direction of E across the beam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Polarisation {
    /// Linear, at this angle to the plane, in radians: 0 in the plane, pi/2 along z.
    Linear(f64),
    /// Circular with peak `|a| = a0` at all times; `true`: z is a quarter period ahead of the plane, so that E turns clockwise for
    /// an observer whom the pulse approaches.
    Circular(bool),
}

impl Polarisation {
    /// Amplitude and phase in the plane and out of it.
    fn parts(self) -> [(f64, f64); 2] {
        match self {
            Self::Linear(angle) => [(angle.cos(), 0.0), (angle.sin(), 0.0)],
            Self::Circular(ahead) => [(1.0, 0.0), (1.0, if ahead { -FRAC_PI_2 } else { FRAC_PI_2 })],
        }
    }
}

/// A laser pulse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pulse {
    /// Strength `e E / (m_e w0 c)`.
    pub a0: f64,
    /// Frequency `w0`, `w_n`.
    pub omega: f64,
    /// Phase at the focus, radians.
    pub phase: f64,
    /// Polarisation.
    pub polarisation: Polarisation,
    /// Shape in time.
    pub envelope: Envelope,
    /// Radius at the focus at which the field has fallen to 1/e, `c/w_n`; none for a plane pulse.
    pub waist: Option<f64>,
    /// Angle of the direction of travel to +x, radians.
    pub direction: f64,
    /// A point of the beam's axis: the focus of a beam.
    pub focus: [f64; 2],
    /// Time at which the envelope's reference point passes the focus, `1/w_n`.
    pub arrival: f64,
}

/// A pulse on the grid: wave number, group velocity and amplitude that belong to it.
#[derive(Debug, Clone, Copy)]
struct Wave {
    pulse: Pulse,
    k: f64,
    velocity: f64,
    amplitude: f64,
    flat: bool,
}

impl Wave {
    fn new(pulse: &Pulse, grid: &Grid) -> Self {
        let flat = grid.dimensions == 1;
        let along = [pulse.direction.cos(), if flat { 0.0 } else { pulse.direction.sin() }];
        let sine = 2.0 * (0.5 * pulse.omega * grid.dt).sin() / grid.dt;
        // Newton for the dispersion relation; the first guess is off by O((k h)^2) and the relation is monotonic.
        let mut k = pulse.omega;
        for _ in 0..30 {
            let (mut value, mut slope) = (-sine * sine, 0.0);
            for (c, h) in along.iter().zip(grid.h) {
                value += (2.0 * (0.5 * k * c * h).sin() / h).powi(2);
                slope += 2.0 * c * (k * c * h).sin() / h;
            }
            if slope.abs() > 0.0 {
                k = (k - value / slope).clamp(0.5 * pulse.omega, 2.0 * pulse.omega);
            }
        }
        let rate = (pulse.omega * grid.dt).sin() / grid.dt;
        let velocity = along.iter().zip(grid.h).map(|(c, h)| c * (k * c * h).sin() / h).sum::<f64>() / rate;
        Self { pulse: *pulse, k, velocity, amplitude: pulse.a0 * pulse.omega / sine, flat }
    }

    /// `a0 g` and `phi` at a point and time.
    fn at(&self, x: f64, y: f64, t: f64) -> (f64, f64) {
        let p = &self.pulse;
        let (sin, cos) = p.direction.sin_cos();
        let (dx, dy) = (x - p.focus[0], if self.flat { 0.0 } else { y - p.focus[1] });
        let z = dx * cos + dy * sin;
        let after = t - p.arrival;
        let mut size = self.amplitude * p.envelope.at(after - z / self.velocity);
        let mut phi = self.k * z - p.omega * after + p.phase;
        if let (Some(waist), false) = (p.waist, self.flat) {
            let zeta = 2.0 * z / (self.k * waist * waist);
            let spread = 1.0 + zeta * zeta;
            let r2 = ((dy * cos - dx * sin) / waist).powi(2);
            size *= spread.powf(-0.25) * (-r2 / spread).exp();
            phi += r2 * zeta / spread - 0.5 * zeta.atan();
        }
        (size, phi)
    }

    /// The potentials F and A at a point and time.
    fn potentials(&self, x: f64, y: f64, t: f64) -> [f64; 2] {
        let (size, phi) = self.at(x, y, t);
        let [(f, df), (a, da)] = self.pulse.polarisation.parts();
        [-size * f * (phi + df).sin(), size * a * (phi + da).sin()]
    }
}

impl Pulse {
    /// The arrival for which the reference point stands `distance` before the focus at t = 0 (negative: behind it).
    pub fn arrival_from(&self, distance: f64, grid: &Grid) -> f64 {
        distance / Wave::new(self, grid).velocity
    }

    /// Adds the pulse at time `t` to E and B over all corners with guards, as [`Grid::index`] lays them out.
    /// Both divergences stay as they were, to round-off, at every node whose neighbours are inside.
    pub fn add(&self, grid: &Grid, t: f64, fields: &mut [Vec<f64>; 6]) {
        let wave = Wave::new(self, grid);
        let [hx, hy] = grid.h;
        let dt = grid.dt;
        // One node around the domain on either side for the differences.
        let below = BELOW as isize - 1;
        let above = [0, 1].map(|axis| (grid.cells[axis] + ABOVE - 1) as isize);
        let table = |quantity: usize, stagger: f64, t: f64| -> Vec<f64> {
            let mut values = vec![0.0; grid.len()];
            for j in -below..above[1] {
                for i in -below..above[0] {
                    let x = grid.origin[0] + (i as f64 + stagger) * hx;
                    let y = grid.origin[1] + (j as f64 + stagger) * hy;
                    values[grid.index(i, j)] = wave.potentials(x, y, t)[quantity];
                }
            }
            values
        };
        // F at whole times: E of this time is its curl, B the mean of the differences before and after.
        let [f_before, f, f_after] = [t - dt, t, t + dt].map(|t| table(0, 0.5, t));
        // A at half times: E is its difference, B the mean of the curls.
        let [a_before, a_after] = [t - 0.5 * dt, t + 0.5 * dt].map(|t| table(1, 0.0, t));
        let [ex, ey, ez, bx, by, bz] = fields;
        let pitch = grid.pitch();
        for j in 0..grid.nodes(1) as isize {
            for i in 0..grid.nodes(0) as isize {
                let at = grid.index(i, j);
                ex[at] += (f[at] - f[at - pitch]) / hy;
                ey[at] -= (f[at] - f[at - 1]) / hx;
                bz[at] += (f_after[at] - f_before[at]) / (2.0 * dt);
                ez[at] -= (a_after[at] - a_before[at]) / dt;
                let mean = |position: usize| 0.5 * (a_before[position] + a_after[position]);
                bx[at] += (mean(at + pitch) - mean(at)) / hy;
                by[at] -= (mean(at + 1) - mean(at)) / hx;
            }
        }
    }
}

/// A pulse that is radiated into the box from a line of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Antenna {
    /// The pulse; its direction decides to which side it is radiated.
    pub pulse: Pulse,
    /// Axis that the line is normal to.
    pub axis: usize,
    /// Node of that axis.
    pub node: usize,
}

impl Antenna {
    /// The largest amplitude, in units of the peak, that is still to come at time `t`.
    pub fn rest(&self, grid: &Grid, t: f64) -> f64 {
        let along = [self.pulse.direction.cos(), self.pulse.direction.sin()][self.axis];
        let z = (grid.origin[self.axis] + self.node as f64 * grid.h[self.axis] - self.pulse.focus[self.axis]) * along;
        self.pulse.envelope.rest(t - self.pulse.arrival - z / Wave::new(&self.pulse, grid).velocity)
    }

    /// The sheets of current of the step from `n` to `n + 1`, at time `(n + 1/2) dt`. Empty while the pulse is not there.
    ///
    /// On the grid a sheet of `Jz` that drives `Ez` has `K = -2 Ez (sin(k_n h)/h) / (2 sin(w dt/2)/dt)`, one in the plane
    /// that drives `Bz` has `|K| = 2 Bz cos(k_n h/2)`, with `k_n` the wave number across the sheet: exact for plane waves.
    pub fn sheets(&self, grid: &Grid, n: u64) -> Vec<Sheet> {
        let wave = Wave::new(&self.pulse, grid);
        let (sin, cos) = self.pulse.direction.sin_cos();
        let (across, other) = ([cos, sin][self.axis], 1 - self.axis);
        let (h, dt) = (grid.h[self.axis], grid.dt);
        let kn = wave.k * across.abs();
        let sine = 2.0 * (0.5 * self.pulse.omega * dt).sin() / dt;
        // curl B = J: the jump of Bz is -Ky across x, and Kx across y.
        let side = if self.axis == 0 { -across.signum() } else { across.signum() };
        let in_plane = 2.0 * side * (0.5 * kn * h).cos() / h;
        let out_of_plane = -2.0 * (kn * h).sin() / (h * sine) / h;
        let at = |s: f64| grid.origin[other] + s * grid.h[other];
        let line = grid.origin[self.axis] + self.node as f64 * h;
        let change = |quantity: usize, s: f64| {
            let [x, y] = if self.axis == 0 { [line, at(s)] } else { [at(s), line] };
            let time = n as f64 * dt;
            (wave.potentials(x, y, time + dt)[quantity] - wave.potentials(x, y, time)[quantity]) / dt
        };
        let tangential = [Component::Jy, Component::Jx][self.axis];
        let sheet = |component: Component, count: usize, value: &dyn Fn(f64) -> f64| Sheet {
            component,
            axis: self.axis,
            node: self.node,
            values: (0..count).map(|k| value(k as f64)).collect(),
        };
        let sheets = [
            sheet(tangential, grid.cells[other], &|k| in_plane * change(0, k + 0.5)),
            // Ez = -dA/dt.
            sheet(Component::Jz, grid.nodes(other), &|k| -out_of_plane * change(1, k)),
        ];
        sheets.into_iter().filter(|sheet| sheet.values.iter().any(|v| *v != 0.0)).collect()
    }
}
