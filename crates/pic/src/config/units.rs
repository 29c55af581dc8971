//! Units of the input and of everything that is written: normalised, or SI by a reference density.
//!
//! `w_n = sqrt(n_0 e^2 / (eps_0 m_e))`; lengths `c/w_n`, times `1/w_n`, E `m_e c w_n/e`, B `m_e w_n/e`, current `e n_0 c`,
//! temperatures `m_e c^2`. Constants: CODATA 2018.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::record::UnitDimension;

use crate::stages::Component;

/// Speed of light, m/s.
pub const C: f64 = 299_792_458.0;
/// Elementary charge, C.
pub const E: f64 = 1.602_176_634e-19;
/// Mass of the electron, kg.
pub const M_E: f64 = 9.109_383_701_5e-31;
/// Permittivity of the vacuum, F/m.
pub const EPS_0: f64 = 8.854_187_812_8e-12;

/// The units of the input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum UnitsConfig {
    /// SI, with the reference density.
    Si(SiConfig),
    /// Normalised to the plasma frequency of the density 1.
    Word(Normalised),
}

impl Default for UnitsConfig {
    fn default() -> Self {
        Self::Word(Normalised::Normalised)
    }
}

/// The word for normalised units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Normalised {
    /// Times in `1/w_n`, lengths in `c/w_n`.
    Normalised,
}

/// SI units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiConfig {
    /// Reference density `n_0`, m^-3.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub density: f64,
}

impl UnitsConfig {
    /// The scales.
    pub fn scales(&self) -> Units {
        match self {
            Self::Si(si) => Units::si(si.density),
            Self::Word(_) => Units::NORMALISED,
        }
    }
}

/// Normalised units in units of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// True if those are SI.
    pub si: bool,
    /// Length.
    pub length: f64,
    /// Time.
    pub time: f64,
    /// Number density.
    pub density: f64,
    /// Electric field.
    pub electric: f64,
    /// Magnetic field.
    pub magnetic: f64,
    /// Current density.
    pub current: f64,
    /// Charge density.
    pub charge: f64,
    /// Energy density.
    pub energy: f64,
    /// Temperature, in eV where the units are SI.
    pub temperature: f64,
}

impl Units {
    /// Everything is 1.
    pub const NORMALISED: Self = Self {
        si: false,
        length: 1.0,
        time: 1.0,
        density: 1.0,
        electric: 1.0,
        magnetic: 1.0,
        current: 1.0,
        charge: 1.0,
        energy: 1.0,
        temperature: 1.0,
    };

    /// SI units for a reference density, m^-3.
    pub fn si(density: f64) -> Self {
        let omega = (density * E * E / (EPS_0 * M_E)).sqrt();
        Self {
            si: true,
            length: C / omega,
            time: 1.0 / omega,
            density,
            electric: M_E * C * omega / E,
            magnetic: M_E * omega / E,
            current: E * density * C,
            charge: E * density,
            energy: density * M_E * C * C,
            temperature: M_E * C * C / E,
        }
    }

    /// Unit of a component of E, B or J.
    pub fn of(&self, component: Component) -> f64 {
        match component as usize {
            0..3 => self.electric,
            3..6 => self.magnetic,
            _ => self.current,
        }
    }

    /// `in_si` where the units are SI, `otherwise` where they are not.
    pub fn label(&self, in_si: &'static str, otherwise: &'static str) -> &'static str {
        if self.si { in_si } else { otherwise }
    }

    /// A dimension where the units are SI, none where they are not.
    pub fn dimension(&self, dimension: UnitDimension) -> UnitDimension {
        if self.si { dimension } else { [0.0; 7] }
    }

    /// Factor of an energy that is summed over the domain: J/m^2 in one dimension, J/m in two.
    pub fn total_energy(&self, dimensions: usize) -> f64 {
        self.energy * self.length.powi(dimensions as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_familiar_density_has_its_familiar_scales() {
        let u = Units::si(1e24);
        // 5.641e13 1/s, 5.314 um, 96.16 GV/m, 320.7 T (NRL formulary: f_p = 8.98 kHz sqrt(n / cm^-3)).
        assert!((1.0 / u.time / 5.641_460e13 - 1.0).abs() < 1e-6);
        assert!((u.length / 5.314_095e-6 - 1.0).abs() < 1e-5);
        assert!((u.electric / u.magnetic / C - 1.0).abs() < 1e-15);
        assert!((u.electric / 9.6159e10 - 1.0).abs() < 1e-3);
        assert!((u.temperature / 510_998.95 - 1.0).abs() < 1e-8);
        // Ampere's law has the same form in both: E / t = J / eps_0.
        assert!((u.electric / u.time * EPS_0 / u.current - 1.0).abs() < 1e-12);
    }
}
