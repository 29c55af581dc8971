//! Mass flow through sections of the domain: what crosses a line `x = const` or `y = const` in a second.
//!
//! The mean over a column of cells, `sum(m v_x)` of its particles by its width, is exact however bodies cut the column. Where the
//! flow is steady and nothing comes or goes in between, all columns have the same.

use std::ops::Range;

use zellige_engine::error::Result;

use crate::model::{Edge, Model};

/// Lines of a section: the gas, and each species of a mixture.
pub fn lines(model: &Model) -> usize {
    let species = model.species.len();
    if species > 1 { 1 + species } else { 1 }
}

/// True if gas can flow in or out across an axis.
pub fn open(model: &Model, axis: usize) -> bool {
    axis < model.grid.dimensions && [0, 1].iter().any(|upper| model.edges[2 * axis + upper] == Edge::Open)
}

/// Sections of the axes that are open: columns, then rows.
pub fn count(model: &Model) -> usize {
    (0..2).filter(|axis| open(model, *axis)).map(|axis| model.grid.cells[axis]).sum()
}

/// Mass flow along the axis, kg/s per metre of depth (per m^2 in one dimension), `[section][line]`, of the sums of `samples`
/// samples; `regions` gives them over even regions along each axis, `[region][species][sum]`.
pub(super) fn flows(
    model: &Model,
    samples: u64,
    regions: &mut dyn FnMut([usize; 2], Range<usize>) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let (grid, lines) = (&model.grid, lines(model));
    let mut out = Vec::with_capacity(count(model) * lines);
    for axis in (0..2).filter(|axis| open(model, *axis)) {
        let scale = model.weight / (grid.h[axis] * samples as f64);
        let columns = if axis == 0 { [grid.cells[0], 1] } else { [1, grid.cells[1]] };
        let sums = regions(columns, 1 + axis..2 + axis)?;
        for sums in sums.chunks_exact(model.species.len()) {
            let each = || model.species.iter().zip(sums).map(|(kind, sum)| scale * kind.mass * sum);
            out.push(each().sum());
            if lines > 1 {
                out.extend(each());
            }
        }
    }
    Ok(out)
}
