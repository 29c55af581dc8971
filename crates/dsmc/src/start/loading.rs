//! The gas at the start.

use zellige_engine::error::Result;
use zellige_engine::parallel::{indices, map};

use crate::gas::Species;
use crate::model::{Model, purpose};
use crate::particles::Particles;
use crate::stages::cpu::Stream;
use crate::walls::BOLTZMANN;

/// Gas at a place: number density (1/m^3), temperature (K), velocity (m/s).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Number density, 1/m^3.
    pub density: f64,
    /// Temperature of the motion along each axis, K.
    pub temperature: [f64; 3],
    /// Temperature of rotation and vibration, K.
    pub internal: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
}

/// Energy of rotation (K) and levels of vibration of a molecule in equilibrium.
pub(crate) fn internal(species: &Species, temperature: f64, uniform: &mut dyn FnMut() -> f64) -> (f32, u32) {
    let rotation = match species.rotation {
        0 => 0.0,
        2 => -temperature * uniform().ln(),
        _ => {
            let gauss = zellige_engine::rng::normal_pair(uniform(), uniform())[0];
            temperature * (0.5 * gauss * gauss - uniform().ln())
        }
    };
    (rotation as f32, species.vibration.draw(temperature, uniform))
}

/// Particles of a piece: 26 to 34 bytes each beside those that are in place.
pub(crate) const PIECE: f64 = 500_000.0;
/// Cells of a task.
const TASK: usize = 4096;

/// Gas at each position of the start.
pub(crate) type Start<'a> = &'a (dyn Fn([f64; 2]) -> State + Sync);

/// Fills the cells of `share`, or all, piece by piece in their order. `state` gives the gas at a position.
pub(crate) fn fill(model: &Model, state: Start<'_>, share: Option<&[u32]>, mut take: impl FnMut(Particles) -> Result<()>) -> Result<()> {
    let cells = share.map_or(model.grid.len(), <[u32]>::len);
    let piece = ((PIECE / (model.expected / model.grid.len() as f64).max(1.0)) as usize).max(1);
    for first in (0..cells).step_by(piece) {
        take(fill_cells(model, state, piece.min(cells - first), |k| share.map_or(first + k, |share| share[first + k] as usize)))?;
    }
    Ok(())
}

/// Fills `n` cells, the `k`-th of which is `cell(k)`.
pub(crate) fn fill_cells(model: &Model, state: Start<'_>, n: usize, cell: impl Fn(usize) -> usize + Sync) -> Particles {
    let task = TASK.min(n.div_ceil(64)).max(1);
    let parts = map(indices(n.div_ceil(task)), |_, t| {
        let mut particles = Particles::default();
        (t * task..((t + 1) * task).min(n)).for_each(|k| fill_cell(model, state, cell(k), &mut particles));
        particles
    });
    Particles::joined(parts)
}

fn fill_cell(model: &Model, state: Start<'_>, cell: usize, into: &mut Particles) {
    if model.geometry.fraction(cell) <= 0.0 {
        return;
    }
    let at = model.grid.cell(cell);
    let centre = state(model.grid.position(at, [0.5; 2]));
    for (s, species) in model.species.iter().enumerate() {
        let mut stream = Stream::with_room(purpose::FILL, model.seed, s as u64, cell as u64, 30);
        // Of the whole cell; positions inside bodies are not filled, so that what is left has the density.
        let mean = centre.density * model.fractions[s] * model.grid.volume() / model.weight_of(cell);
        let count = (mean + stream.open()) as u64;
        for _ in 0..count {
            let offset = [stream.open(), stream.open()].map(|x| (x as f32).min(crate::geometry::BELOW_ONE));
            let wide = offset.map(f64::from);
            let gas = state(model.grid.position(at, wide));
            let (n, m) = (stream.normals(), stream.normals());
            let (rotation, level) = internal(species, gas.internal, &mut || stream.open());
            if !model.geometry.in_gas(at, wide) {
                continue;
            }
            let thermal = |c: usize, n: f64| ((BOLTZMANN * gas.temperature[c] / species.mass).sqrt() * n + gas.velocity[c]) as f32;
            let velocity = [thermal(0, n[0]), thermal(1, n[1]), if model.planar() { 0.0 } else { thermal(2, m[0]) }];
            let c = &model.collisions;
            into.push(cell as u32, s as u16, offset, velocity, c.rotation.then_some(rotation), c.vibration.then_some(level));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gas::table::{Model as Molecules, find};

    /// The energy of a rotor with k degrees of freedom has the mean `k/2` and the mean square `k/2 (k/2 + 1)`, in units of `k T`.
    #[test]
    fn rotors_have_the_energy_of_their_freedoms() {
        for (name, half) in [("N2", 1.0), ("CH4", 1.5)] {
            let species = find(name, Molecules::Vss).unwrap();
            let mut stream = Stream::with_room(purpose::FILL, 5, 0, 0, 30);
            let (n, mut sums) = (200_000, [0.0; 2]);
            for _ in 0..n {
                let e = f64::from(internal(&species, 300.0, &mut || stream.open()).0) / 300.0;
                sums = [sums[0] + e, sums[1] + e * e];
            }
            let [mean, square] = sums.map(|s| s / f64::from(n));
            // Five standard errors: variances half and, of squares, below 40.
            assert!((mean - half).abs() < 5.0 * (half / f64::from(n)).sqrt(), "{name}: {mean}");
            assert!((square - half * (half + 1.0)).abs() < 5.0 * (40.0 / f64::from(n)).sqrt(), "{name}: {square}");
        }
    }
}
