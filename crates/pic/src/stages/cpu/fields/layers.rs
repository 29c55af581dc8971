//! The absorbing layers at work: what they add to the plain update of B and E. See [`crate::stages::layer`].
//!
//! `psi` is kept for each derivative and each side that has a layer: for derivatives along x `cells` values a row,
//! for those along y `cells` rows; index 0 is at the wall.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_engine::real::RealScalar;

use crate::grid::{BELOW, Grid};
use crate::stages::Component;
use crate::stages::images::Quantity;
use crate::stages::layer::{Layer, Memory, node};
use crate::stages::part::Part;

/// A derivative that enters an update: of `from` along `axis`, added to `to` with a sign.
struct Term {
    to: usize,
    from: usize,
    axis: usize,
    sign: f64,
}

const fn term(to: usize, from: usize, axis: usize, sign: f64) -> Term {
    Term { to, from, axis, sign }
}

/// `dB/dt = -curl E`.
const OF_B: [Term; 4] = [term(0, 2, 1, -1.0), term(1, 2, 0, 1.0), term(2, 0, 1, 1.0), term(2, 1, 0, -1.0)];
/// `dE/dt = curl B`.
const OF_E: [Term; 4] = [term(0, 2, 1, 1.0), term(1, 2, 0, -1.0), term(2, 1, 0, 1.0), term(2, 0, 1, -1.0)];

/// The memory of the layers and their coefficients, `[keep, feed, stretch]` from the wall.
#[derive(Debug, Clone)]
pub(super) struct Layers<T> {
    axes: [Layer; 2],
    pitch: usize,
    psi: Vec<(Memory, Vec<T>)>,
}

impl<T: RealScalar> Layers<T> {
    pub(super) fn new(grid: &Grid, cells: usize) -> Self {
        let axes = [0, 1].map(|axis| Layer::new(grid, axis, cells));
        let psi = Memory::all(&axes, grid).into_iter().map(|memory| (memory, vec![T::ZERO; memory.len])).collect();
        Self { axes, pitch: grid.pitch(), psi }
    }

    pub(super) fn len(&self) -> usize {
        self.psi.iter().map(|(_, values)| values.len()).sum()
    }

    /// Adds the layers' part to B after its plain half step.
    pub(super) fn add_to_b(&mut self, grid: &Grid, b: &mut [Vec<T>; 3], e: &[Vec<T>; 3], remember: bool, rows: &Range<usize>) {
        for (t, term) in OF_B.iter().enumerate() {
            let to = Quantity::Vector(Component::ALL[3 + term.to]);
            self.add(grid, [0, t], term, to, 0.5 * grid.dt, (&mut b[term.to], &e[term.from]), remember, rows);
        }
    }

    /// Adds the layers' part to E after its plain step.
    pub(super) fn add_to_e(&mut self, grid: &Grid, e: &mut [Vec<T>; 3], b: &[Vec<T>; 3], rows: &Range<usize>) {
        for (t, term) in OF_E.iter().enumerate() {
            let to = Quantity::Vector(Component::ALL[term.to]);
            self.add(grid, [1, t], term, to, grid.dt, (&mut e[term.to], &b[term.from]), true, rows);
        }
    }

    /// Some rows of a derivative's part; those of guards have no memory but where they are another part's.
    fn add(
        &mut self,
        grid: &Grid,
        [field, t]: [usize; 2],
        term: &Term,
        quantity: Quantity,
        dt: f64,
        (to, from): (&mut [T], &[T]),
        remember: bool,
        rows: &Range<usize>,
    ) {
        let layer = &self.axes[term.axis];
        let (n, half) = (grid.cells[term.axis], quantity.half(term.axis));
        let factor = T::from_f64(term.sign * dt);
        let inverse = T::from_f64(1.0 / grid.h[term.axis]);
        let coefficients: Vec<[T; 3]> = layer.at(half).iter().map(|c| [c.keep, c.feed, c.stretch].map(T::from_f64)).collect();
        for upper in [false, true] {
            let mut memories = self.psi.iter_mut().filter(|(m, _)| [m.field, m.term, m.side] == [field, t, usize::from(upper)]);
            let Some((_, psi)) = memories.next() else { continue };
            let nodes = (0..layer.cells).map(|s| node(n, half, upper, s));
            let one = |value: &mut T, psi: &mut T, difference: T, [keep, feed, stretch]: [T; 3]| {
                let derivative = inverse * difference;
                if remember {
                    *psi = keep * *psi + feed * derivative;
                }
                *value += factor * (stretch * derivative + *psi);
            };
            // A half node's derivative is forward, a corner's backward.
            let (ahead, behind) = if half { (1, 0) } else { (0, 1) };
            if term.axis == 0 {
                let nodes: Vec<usize> = nodes.map(|i| BELOW + i).collect();
                let some = |row: usize| rows.start * row..rows.end * row;
                let (to, from, psi) = (&mut to[some(self.pitch)], &from[some(self.pitch)], &mut psi[some(layer.cells)]);
                each((chunks_mut(to, self.pitch), chunks(from, self.pitch), chunks_mut(psi, layer.cells)), |_, (to, from, psi)| {
                    for (s, i) in nodes.iter().enumerate() {
                        one(&mut to[*i], &mut psi[s], from[i + ahead] - from[i - behind], coefficients[s]);
                    }
                });
            } else {
                let pitch = self.pitch;
                // Guards have no memory: a window would bring it in.
                let inside = BELOW..BELOW + if quantity.half(0) { grid.cells[0] } else { grid.nodes(0) };
                // Nodes by their rows in the arrays of this part.
                let places = nodes.map(|j| (j + BELOW).wrapping_sub(grid.held().start)).enumerate();
                for (s, j) in places.filter(|(_, j)| rows.contains(j)) {
                    let (to, psi) = (&mut to[j * pitch..(j + 1) * pitch], &mut psi[s * pitch..(s + 1) * pitch]);
                    let (next, last) = (&from[(j + ahead) * pitch..], &from[(j - behind) * pitch..]);
                    for i in inside.clone() {
                        one(&mut to[i], &mut psi[i], next[i] - last[i], coefficients[s]);
                    }
                }
            }
        }
    }

    /// The memory goes with the fields one cell towards lower x; new cells of a layer have none.
    pub(super) fn shift(&mut self) {
        for (memory, values) in &mut self.psi {
            for row in values.chunks_mut(memory.row) {
                if memory.moves_down() {
                    row.copy_within(1.., 0);
                    row[memory.row - 1] = T::ZERO;
                } else {
                    row.copy_within(..memory.row - 1, 1);
                    row[0] = T::ZERO;
                }
            }
        }
    }

    /// Memory of the whole domain, at the first part; nothing at the others.
    pub(super) fn auxiliary_state(&self, part: &Part, grid: &Grid) -> Result<Vec<(String, Vec<f64>)>> {
        let mut state = Vec::new();
        for (memory, values) in &self.psi {
            let values = memory.whole(part, grid, self.axes[1].cells, values)?;
            state.push((memory.name(), values.iter().map(|v| v.to_f64()).collect()));
        }
        Ok(state)
    }

    /// Takes that back.
    pub(super) fn set_auxiliary_state(&mut self, part: &Part, grid: &Grid, state: &[(String, Vec<f64>)]) {
        for (memory, values) in &mut self.psi {
            if let Some((_, saved)) = state.iter().find(|entry| entry.0 == memory.name()) {
                let own = memory.share(part, grid, saved);
                values.iter_mut().zip(own).for_each(|(value, saved)| *value = T::from_f64(saved));
            }
        }
    }
}
