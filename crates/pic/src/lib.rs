//! Relativistic electromagnetic particle-in-cell in one and two dimensions with three velocity components.
//!
//! Maxwell's equations on a Yee grid, the Lorentz force on macro-particles, and a current that conserves charge to
//! round-off. One time step, of which [`step`] is the page to read:
//!
//! ```text
//! E^n B^n on the grid, x^n, u^(n-1/2) of the particles
//!   push      u^(n+1/2) from E, B gathered at x^n                 Boris, Vay, Higuera-Cary
//!   move      x^(n+1) = x^n + dt u/gamma
//!   deposit   J^(n+1/2) of the path from x^n to x^(n+1)           Villasenor-Buneman, Esirkepov
//!   exchange  particles that left their tile
//!   smooth    binomial filter of J
//!   field     B half a step, E a step, B half a step              Yee
//!   window    everything one cell back, new plasma in front
//! ```
//!
//! # Units
//!
//! Normalised to a reference plasma frequency `w_n` of density `n_0`: time `1/w_n`, length `c/w_n`, momentum per mass
//! `u = p/(mc) = gamma v/c`, fields `m_e c w_n/e`, density `n_0`, current `e n_0 c`, energy density `n_0 m_e c^2`.
//! Maxwell: `dE/dt = curl B - J`, `dB/dt = -curl E`, `div E = rho`. A species has a charge in `e` and a mass in `m_e`.
//! Input in SI units is converted on reading.
//!
//! # Grid
//!
//! Charge sits at the corners `(i, j)` of the cells; `Ex`, `Jx` at `(i+1/2, j)`, `Ey`, `Jy` at `(i, j+1/2)`, `Ez`, `Jz` at
//! `(i, j)`, `Bx` at `(i, j+1/2)`, `By` at `(i+1/2, j)`, `Bz` at `(i+1/2, j+1/2)`. One dimension is a plane one cell wide and
//! periodic in y.
//!
//! # Particles
//!
//! A particle's place is the cell and the offset from the cell's centre, `-1/2 <= s, t <= 1/2` in units of the cell: the
//! same precision anywhere in a domain of any size, and round-off that is symmetric about the centre.

pub mod bench;
pub mod config;
pub mod deviates;
pub mod diagnostics;
mod division;
pub mod gauss;
pub mod grid;
pub mod initial;
pub mod integers;
pub mod laser;
pub mod loading;
pub mod output;
pub mod particles;
pub mod physics;
pub mod plasma;
pub mod relativistic;
pub mod samples;
pub mod sampling;
pub mod setup;
pub mod shapes;
pub mod solver;
pub mod stability;
pub mod stages;
pub mod step;
mod warnings;

pub use config::Config;
pub use solver::Pic;
