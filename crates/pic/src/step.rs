//! The time step: the page to read. Everything named here is a stage of [`crate::stages`].
//!
//! Sources: Birdsall and Langdon, Plasma Physics via Computer Simulation (1991), chapters 2 and 15; Villasenor and Buneman,
//! Comput. Phys. Commun. 69 (1992) 306; Yee, IEEE Trans. Antennas Propag. 14 (1966) 302.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::particles::Species;
use crate::stages::{Sheet, Stages};

/// From time n to n + 1. `measure` adds up energies and momenta on the way.
pub fn step(
    stages: &mut dyn Stages,
    species: &[Species],
    sheets: &[Sheet],
    step: u64,
    measure: bool,
    profiler: &mut Profiler,
) -> Result<()> {
    stages.begin(measure, profiler)?;
    for s in (0..species.len()).filter(|s| species[*s].mobile) {
        stages.advance(s, step, measure, profiler)?;
    }
    stages.current(sheets, profiler)?;
    stages.field(profiler)
}
