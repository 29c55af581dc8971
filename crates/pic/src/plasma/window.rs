//! The moving window: what comes in ahead, and antennas, which stand still while it goes past them.

use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::parallel::alone;
use zellige_engine::profile::Profiler;

use super::lasers::{antennas, margin};
use super::{Plasma, on_host};
use crate::config::Config;
use crate::grid::{ABOVE, BELOW, FieldSide, Grid};
use crate::loading::{Source, joined};
use crate::particles::Particles;
use crate::setup::{Model, Profile};
use crate::stages::{Component, Setup, Sheet};

/// Amplitude of a pulse, in units of its peak, that may be missing without a word.
const NEGLIGIBLE: f64 = 0.01;

/// Particles of a column that one thread of a GPU's host makes sooner than all of them.
const FEW: usize = 4096;

/// The fields that the input gives at the start, as a window finds them ahead of it.
#[derive(Default)]
pub(super) struct InitialFields {
    /// Those that are not zero, with their paths in the input.
    profiles: Vec<(Component, Profile, String)>,
    /// E and B in and around the last column of cells, external fields included; empty where there are no profiles.
    total_field: [Vec<f64>; 6],
}

impl InitialFields {
    pub(super) fn new(config: &Config, model: &Model, setup: &Setup) -> Result<Self> {
        let (Some(_), Some(values)) = (model.window, &config.initial.fields) else { return Ok(Self::default()) };
        let profiles = model.profiles(config, "initial.fields", values)?;
        let mut total_field = if profiles.is_empty() { Default::default() } else { setup.external.clone() };
        for (component, ..) in &profiles {
            total_field[*component as usize].resize(setup.grid.len(), 0.0);
        }
        Ok(Self { profiles, total_field })
    }

    /// Fields that act on particles which enter.
    fn total_field<'a>(&'a self, setup: &'a Setup) -> &'a [Vec<f64>; 6] {
        if self.profiles.is_empty() { &setup.external } else { &self.total_field }
    }

    /// The fields on the nodes that have entered, the box having moved by `moved` cells.
    fn reach(&mut self, model: &Model, setup: &Setup, moved: u64) -> Result<Vec<Sheet>> {
        let grid = &setup.grid;
        let last = grid.cells[0] as isize;
        let mut sheets = Vec::new();
        for (component, profile, path) in &self.profiles {
            let at = |i: isize, j: isize| model.value(profile, *component, path, [i, j], moved);
            let total_field = &mut self.total_field[*component as usize];
            let external = &setup.external[*component as usize];
            for j in -(BELOW as isize)..(grid.cells[1] + ABOVE) as isize {
                // As far as quadratic shapes in the last column reach.
                for i in (last - 3).max(0)..last + ABOVE as isize {
                    let place = grid.index(i, j);
                    total_field[place] = at(i, j)? + external.get(place).copied().unwrap_or(0.0);
                }
            }
            let node = newest(grid, *component);
            let values = (0..grid.nodes(1) as isize).map(|j| at(node as isize, j)).collect::<Result<_>>()?;
            sheets.push(Sheet { component: *component, axis: 0, node, values });
        }
        Ok(sheets)
    }
}

/// The node in x of a component that a shift of the window has brought in. A conductor held those on it at zero, so that the one
/// before is the first to have a value.
fn newest(grid: &Grid, component: Component) -> usize {
    let free = grid.fields[0][1] == FieldSide::Pmc && component.stagger()[0] == 0.0;
    grid.cells[0] - usize::from(!free)
}

impl Plasma {
    /// The sheets of current of this step. One that the window has left behind in its layer radiates no more.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let grid = &self.setup.grid;
        let first = margin(grid, self.setup.absorbing_cells, 0) as u64;
        let here = self.antennas.iter().filter(|a| a.node as u64 >= first + self.moved);
        here.flat_map(|a| a.sheets(grid, self.step)).map(|s| Sheet { node: s.node - self.moved as usize, ..s }).collect()
    }

    /// Everything one cell back, new plasma into the last column.
    pub(super) fn shift(&mut self, profiler: &mut Profiler) -> Result<()> {
        let column = self.setup.grid.cells[1] * self.model.loads.iter().map(|l| l.per_cell).sum::<usize>();
        match self.device {
            Device::Cuda(_) if column <= FEW => alone(|| self.shift_here(profiler)),
            _ => self.shift_here(profiler),
        }
    }

    /// [`Plasma::shift`] with such threads as there are.
    fn shift_here(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.moved += 1;
        let last = self.setup.grid.cells[0] - 1;
        let ahead = self.front.reach(&self.model, &self.setup, self.moved)?;
        let mut fresh = vec![Particles::default(); self.model.loads.len()];
        for (s, fresh) in fresh.iter_mut().enumerate() {
            let Self { model, setup, stages, moved, device, front, .. } = self;
            // Light has not been there yet.
            let source = Source::new(model, setup, s, *moved, front.total_field(setup));
            if stages.bring(s, &source)? {
                continue;
            }
            let mut parts = Vec::new();
            let give = |p| {
                parts.push(p);
                Ok(())
            };
            on_host(device, || source.portions(last..last + 1, give))?;
            *fresh = joined(&parts);
        }
        self.gauss.shift();
        self.stages.shift(&fresh, &ahead, profiler)
    }
}

/// Antennas that the window leaves behind before their pulses have passed, in words.
pub(crate) fn left_behind(config: &Config, model: &Model) -> Result<Vec<String>> {
    let (Some(start), grid, units) = (model.window, &model.grid, &model.units) else { return Ok(Vec::new()) };
    let first = margin(grid, config.boundary.layer, 0);
    let mut out = Vec::new();
    for (i, antenna) in antennas(config, model)? {
        let time = start + (antenna.node + 1 - first) as f64 * grid.h[0];
        let rest = antenna.rest(grid, time);
        if rest > NEGLIGIBLE && time < model.steps as f64 * grid.dt {
            out.push(format!(
                "the window leaves the antenna of `laser[{i}]` behind at t = {:.6e}, when {:.0} % of its peak amplitude is still to come: that part of the pulse is not in the window; a later `window.start`, or an `antenna` further to the right",
                time * units.time,
                100.0 * rest
            ));
        }
    }
    Ok(out)
}
