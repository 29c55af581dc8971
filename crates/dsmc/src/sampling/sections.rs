//! Mass flow through sections of the domain: what crosses a line `x = const` or `y = const` in a second.
//!
//! The mean over a column of cells, `sum(m v_x)` of its particles by its width, is exact however bodies cut the column. Where the
//! flow is steady and nothing comes or goes in between, all columns have the same.

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
/// samples.
pub(super) fn flows(model: &Model, sums: &[f64], samples: u64) -> Vec<f64> {
    let (grid, species, lines) = (&model.grid, model.species.len(), lines(model));
    let mut out = vec![0.0; count(model) * lines];
    let mut first = 0;
    for axis in (0..2).filter(|axis| open(model, *axis)) {
        let scale = model.weight / (grid.h[axis] * samples as f64);
        // Row by row: a division for each cell took longer than all else.
        let (columns, one) = (grid.cells[0], species * model.collisions.sums());
        for (row, cells) in sums.chunks_exact(columns * one).enumerate() {
            for (column, sums) in cells.chunks_exact(one).enumerate() {
                let out = &mut out[(first + [column, row][axis]) * lines..][..lines];
                let scale = scale * model.relative(row * columns + column);
                for (s, (kind, sums)) in model.species.iter().zip(sums.chunks_exact(model.collisions.sums())).enumerate() {
                    let flow = scale * kind.mass * sums[1 + axis];
                    out[0] += flow;
                    if lines > 1 {
                        out[1 + s] += flow;
                    }
                }
            }
        }
        first += grid.cells[axis];
    }
    out
}
