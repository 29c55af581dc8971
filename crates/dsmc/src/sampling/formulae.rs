//! Values of the gas in a cell, or of one of its species, from its sums: numbers in, numbers out, for both devices.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::RealScalar;

use crate::walls::{BOLTZMANN, BOLTZMANN_CUDA};

/// Sums over all particles of some species in a cell; those of the motion by masses ([`crate::stages::MOMENTS`]).
#[device]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellSums<R> {
    /// Particles.
    pub number: R,
    /// Mass, kg, and momentum, kg m/s.
    pub mass: R,
    /// Along x.
    pub x: R,
    /// Along y.
    pub y: R,
    /// Along z.
    pub z: R,
    /// Products of components of the velocity, kg (m/s)^2.
    pub xx: R,
    /// Of y.
    pub yy: R,
    /// Of z.
    pub zz: R,
    /// Of x and y.
    pub xy: R,
    /// `(c^2 + 2 e/m) v` along x, kg (m/s)^3.
    pub flux_x: R,
    /// Along y.
    pub flux_y: R,
    /// Products with z, where something moves along it.
    pub xz: R,
    /// Of y and z.
    pub yz: R,
    /// `(c^2 + 2 e/m) v` along z.
    pub flux_z: R,
    /// Degrees of freedom of rotation, and its energy over k, K.
    pub freedom: R,
    /// That energy.
    pub rotational: R,
    /// Temperature of vibration of each particle that vibrates, K.
    pub vibration: R,
    /// Particles that vibrate.
    pub vibrating: R,
    /// Their degrees of freedom of vibration.
    pub vibrational: R,
    /// Twice the energy of internal modes, kg (m/s)^2.
    pub internal: R,
}

/// Values of a cell, in the order of `OF_SPECIES`.
#[device]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellValues<R> {
    /// Number density, 1/m^3.
    pub density: R,
    /// Velocity, m/s.
    pub ux: R,
    /// Along y.
    pub uy: R,
    /// Along z.
    pub uz: R,
    /// Temperatures, K: of all modes, translation, rotation, vibration.
    pub temperature: R,
    /// Of translation.
    pub translation: R,
    /// Of rotation.
    pub rotation: R,
    /// Of vibration.
    pub vibration: R,
    /// Pressure, Pa, and the momentum flux.
    pub pressure: R,
    /// `p_xx`.
    pub xx: R,
    /// `p_yy`.
    pub yy: R,
    /// `p_xy`.
    pub xy: R,
    /// Heat flux, W/m^2.
    pub heat_x: R,
    /// Along y.
    pub heat_y: R,
}

/// The further values where something moves along z, in the order of `WITH_Z`.
#[device]
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AlongZ<R> {
    /// `p_zz`, Pa.
    pub zz: R,
    /// `p_xz`.
    pub xz: R,
    /// `p_yz`.
    pub yz: R,
    /// Heat flux, W/m^2.
    pub heat_z: R,
}

/// Twice a component of the heat flux, from sums by masses:
/// `<(c^2 + 2 e/m) c_i> - 2 <c_i c_j> u_j - <c^2 + 2 e/m> u_i + 2 u^2 u_i`; `work` is `<c_i c_j> u_j`, `drift` `u^2`.
#[device]
#[inline(always)]
pub fn twice_heat<R: RealScalar>(flux: R, work: R, energy: R, mass: R, drift: R, u: R) -> R {
    flux - R::TWO * work - energy * u + R::TWO * mass * drift * u
}

/// Values from sums that hold a particle at least. `weight` is the number of molecules that a particle stands for, over the volume
/// of the cell and the number of samples. Mean and squares come from the same samples: one of them is spent on the mean.
#[device]
#[inline(always)]
pub fn values_of_sums<R: RealScalar>(s: CellSums<R>, weight: R, components: R, along_z: bool) -> CellValues<R> {
    let ux = s.x / s.mass;
    let uy = s.y / s.mass;
    let uz = s.z / s.mass;
    let drift = ux * ux + uy * uy + uz * uz;
    let squares = s.xx + s.yy + s.zz;
    let peculiar = R::max(squares - s.mass * drift, R::ZERO);
    let unbiased = s.number / R::max(s.number - R::ONE, R::ONE);
    let k = R::from_f64(BOLTZMANN);
    let translation = peculiar * unbiased / (components * k * s.number);
    let rotation = if s.freedom > R::ZERO { R::TWO * s.rotational / s.freedom } else { R::ZERO };
    let vibration = if s.vibrating > R::ZERO { s.vibration / s.vibrating } else { R::ZERO };
    let all = components * s.number + s.freedom + s.vibrational;
    let density = s.number * weight;
    // Elsewhere the mean of products with z is that of the gas as a whole, but for noise.
    let xz = if along_z { s.xz } else { s.mass * ux * uz };
    let yz = if along_z { s.yz } else { s.mass * uy * uz };
    let energy = squares + s.internal;
    let half = R::from_f64(0.5);
    let along_x = twice_heat(s.flux_x, s.xx * ux + s.xy * uy + xz * uz, energy, s.mass, drift, ux);
    let along_y = twice_heat(s.flux_y, s.xy * ux + s.yy * uy + yz * uz, energy, s.mass, drift, uy);
    CellValues::<R> {
        density,
        ux,
        uy,
        uz,
        temperature: (components * s.number * translation + s.freedom * rotation + s.vibrational * vibration) / all,
        translation,
        rotation,
        vibration,
        pressure: density * k * translation,
        xx: weight * (s.xx - s.mass * ux * ux) * unbiased,
        yy: weight * (s.yy - s.mass * uy * uy) * unbiased,
        xy: weight * (s.xy - s.mass * ux * uy) * unbiased,
        heat_x: half * weight * along_x,
        heat_y: half * weight * along_y,
    }
}

/// Those along z, likewise.
#[device]
#[inline(always)]
pub fn values_along_z<R: RealScalar>(s: CellSums<R>, weight: R) -> AlongZ<R> {
    let ux = s.x / s.mass;
    let uy = s.y / s.mass;
    let uz = s.z / s.mass;
    let drift = ux * ux + uy * uy + uz * uz;
    let scale = weight * s.number / R::max(s.number - R::ONE, R::ONE);
    let energy = s.xx + s.yy + s.zz + s.internal;
    let work = s.xz * ux + s.yz * uy + s.zz * uz;
    AlongZ::<R> {
        zz: scale * (s.zz - s.z * s.z / s.mass),
        xz: scale * (s.xz - s.x * s.z / s.mass),
        yz: scale * (s.yz - s.y * s.z / s.mass),
        heat_z: R::from_f64(0.5) * weight * twice_heat(s.flux_z, work, energy, s.mass, drift, uz),
    }
}

/// Their text in CUDA.
pub const VALUES_OF_SUMS: &[&str] = &device_source![BOLTZMANN, CellSums, CellValues, AlongZ, twice_heat, values_of_sums, values_along_z];
