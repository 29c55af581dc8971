//! The gases that come with the program.
//!
//! Diameters, exponents and masses: Bird, Molecular Gas Dynamics and the Direct Simulation of Gas Flows (1994), appendix A, at
//! 273.15 K. Characteristic temperatures of vibration: of diatomic molecules the same, table A.4; of the others the fundamental
//! frequencies of Shimanouchi, Tables of Molecular Vibrational Frequencies, NSRDS-NBS 39 (1972). Parker's constants: Lumpkin, Haas
//! and Boyd, Phys. Fluids A 3 (1991) 2282 for N2 and O2. The viscosities and heat capacities that follow are tested against
//! measured ones in [`super::transport`].

use super::vibration::{Mode, Vibration};
use super::{Relaxation, Scatter, Species};

/// Temperature that diameters belong to, K.
pub const T_REF: f64 = 273.15;
/// Collision number of rotation where nothing better is known.
pub const Z_ROTATION: f64 = 5.0;

/// A molecular model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Hard spheres, of equal viscosity at 273.15 K.
    Hs,
    /// Variable hard spheres.
    Vhs,
    /// Variable soft spheres.
    #[default]
    Vss,
}

/// A line of the table: name, mass (1e-27 kg), VHS diameter (1e-10 m), omega, VSS diameter, alpha, degrees of freedom of rotation,
/// vibration (K).
struct Line(&'static str, f64, f64, f64, f64, f64, u32, f64);

const LINES: [Line; 15] = [
    Line("He", 6.65, 2.33, 0.66, 2.30, 1.26, 0, 0.0),
    Line("Ne", 33.5, 2.77, 0.66, 2.72, 1.31, 0, 0.0),
    Line("Ar", 66.3, 4.17, 0.81, 4.11, 1.40, 0, 0.0),
    Line("Kr", 139.1, 4.76, 0.80, 4.70, 1.32, 0, 0.0),
    Line("Xe", 218.0, 5.74, 0.85, 5.65, 1.44, 0, 0.0),
    Line("H2", 3.34, 2.92, 0.67, 2.88, 1.35, 2, 6159.0),
    Line("N2", 46.5, 4.17, 0.74, 4.11, 1.36, 2, 3371.0),
    Line("O2", 53.12, 4.07, 0.77, 4.01, 1.40, 2, 2256.0),
    Line("CO", 46.5, 4.19, 0.73, 4.12, 1.49, 2, 3103.0),
    Line("NO", 49.88, 4.20, 0.79, 4.20, 1.00, 2, 2719.0),
    // Of these three gases see SEVERAL.
    Line("CO2", 73.1, 5.62, 0.93, 5.54, 1.61, 2, 0.0),
    Line("CH4", 26.63, 4.83, 0.84, 4.78, 1.60, 3, 0.0),
    Line("NH3", 28.27, 5.94, 1.10, 5.90, 1.33, 3, 0.0),
    Line("O", 26.58, 3.00, 0.80, 3.00, 1.00, 0, 0.0),
    Line("N", 23.25, 3.00, 0.80, 3.00, 1.00, 0, 0.0),
];

/// `h c/k`, cm K.
const PER_CENTIMETRE: f64 = 1.438_777;

/// Fundamental frequencies (1/cm) with their degeneracies, the softest first.
const SEVERAL: [(&str, &[(f64, u32)]); 3] = [
    ("CO2", &[(667.0, 2), (1333.0, 1), (2349.0, 1)]),
    ("CH4", &[(1306.0, 3), (1534.0, 2), (2917.0, 1), (3019.0, 3)]),
    ("NH3", &[(950.0, 1), (1627.0, 2), (3337.0, 1), (3444.0, 2)]),
];

/// The modes of a gas; `theta` is that of a diatomic molecule, 0 of others.
fn modes(name: &str, theta: f64) -> Vibration {
    let mode = |&(per_cm, degeneracy): &(f64, u32)| Mode { theta: per_cm * PER_CENTIMETRE, degeneracy, z: f64::INFINITY };
    match SEVERAL.iter().find(|s| s.0 == name) {
        Some((_, all)) => Vibration::new(&all.iter().map(mode).collect::<Vec<_>>()).unwrap_or(Vibration::NONE),
        None if theta > 0.0 => Vibration::single(theta),
        None => Vibration::NONE,
    }
}

/// Names of all gases.
pub fn names() -> Vec<&'static str> {
    LINES.iter().map(|l| l.0).collect()
}

/// A gas by its name.
pub fn find(name: &str, model: Model) -> Option<Species> {
    let Line(name, mass, vhs, omega, vss, alpha, rotation, vibration) = *LINES.iter().find(|l| l.0 == name)?;
    let scatter = |diameter: f64, omega, alpha| Scatter { diameter: diameter * 1e-10, omega, t_ref: T_REF, alpha };
    let scatter = match model {
        Model::Vss => scatter(vss, omega, alpha),
        Model::Vhs => scatter(vhs, omega, 1.0),
        // Of equal viscosity: d^2 goes as 1/((5 - 2 omega)(7 - 2 omega)), which is 24 for hard spheres.
        Model::Hs => scatter(vhs * ((5.0 - 2.0 * omega) * (7.0 - 2.0 * omega) / 24.0).sqrt(), 0.5, 1.0),
    };
    let z_rotation = match name {
        "N2" => Relaxation::Parker { z_inf: 18.1, t_star: 91.5 },
        "O2" => Relaxation::Parker { z_inf: 16.5, t_star: 113.5 },
        _ => Relaxation::Constant(Z_ROTATION),
    };
    let (vibration, left_out) = (modes(name, vibration), Vibration::NONE);
    Some(Species { name: name.into(), mass: mass * 1e-27, scatter, rotation, z_rotation, vibration, left_out })
}
