//! The operator and the transfers of each level as tables in device memory, and the arguments that point at them.

use bytemuck::NoUninit;
use zellige_engine::cuda::{Buffer, Pool};
use zellige_engine::error::Result;

use super::arguments;
use crate::grid::{Axis, Level, Transfer};

/// Entries that marching kernels may read before a table's first and after its last.
const BEFORE: usize = 16;
const AFTER: usize = 160;

/// A number format of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    F32,
    F64,
}

impl Number {
    pub(super) fn bytes(self) -> usize {
        if self == Self::F32 { 4 } else { 8 }
    }
}

/// Tables being laid out.
#[derive(Default)]
struct TableBuffer {
    bytes: Vec<u8>,
}

impl TableBuffer {
    fn put<T: NoUninit>(&mut self, values: &[T]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(values));
        at as u64
    }

    fn numbers(&mut self, number: Number, values: &[f64]) -> u64 {
        match number {
            Number::F32 => self.put(&values.iter().map(|v| *v as f32).collect::<Vec<_>>()),
            Number::F64 => self.put(values),
        }
    }

    /// A table of `width` values a node that may be read beyond its ends: zeros there, or wrapped.
    fn padded(&mut self, number: Number, width: usize, periodic: bool, values: &[f64]) -> u64 {
        let n = values.len() / width;
        let node = |i: usize| {
            let i = i as i64 - BEFORE as i64;
            let wrapped = if periodic { i.rem_euclid(n as i64) } else { i };
            (0..n as i64).contains(&wrapped).then_some(wrapped as usize)
        };
        let all: Vec<f64> =
            (0..BEFORE + n + AFTER).flat_map(|i| (0..width).map(move |c| node(i).map_or(0.0, |i| values[width * i + c]))).collect();
        self.numbers(number, &all) + (BEFORE * width * number.bytes()) as u64
    }
}

/// Interleaves two tables.
fn pairs(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect()
}

/// The tables of an axis' operator and, if `coarse` is given, of its transfers.
pub(super) struct AxisTables {
    /// Weights west and east.
    pub weights: Vec<f64>,
    /// Coarse node at or west of a node.
    pub parent: Vec<i32>,
    /// Weights of the coarse nodes `parent` and the next one.
    pub ends: Vec<f64>,
    /// Fine node under a coarse one.
    pub child: Vec<i32>,
    /// Weights of the fine nodes around `child`; zero where the coarse node is no unknown.
    pub shares: Vec<f64>,
}

impl AxisTables {
    pub(super) fn new(axis: &Axis, transfer: Option<(&Transfer, &Axis)>) -> Self {
        let weights = (0..axis.nodes).flat_map(|i| <[f64; 2]>::from(axis.weights(i))).collect();
        let Some((t, coarse)) = transfer else {
            return Self { weights, parent: Vec::new(), ends: Vec::new(), child: Vec::new(), shares: Vec::new() };
        };
        let share = |i: usize| if coarse.unknowns().contains(&i) { t.restrict[i] } else { [0.0; 3] };
        Self {
            weights,
            parent: t.parent.iter().map(|p| *p as i32).collect(),
            ends: pairs(&t.west, &t.east),
            child: t.child.iter().map(|c| *c as i32).collect(),
            shares: (0..coarse.nodes).flat_map(share).collect(),
        }
    }
}

/// Returns true if the marching kernels can transfer along this axis: coarsened by two, not collapsed.
pub(super) fn halves(t: &Transfer) -> bool {
    t.coarsened && t.child.len() > 1
}

/// Interpolation weights of coarse nodes `i/2` and `i/2 + 1`, also where the last node is a coarse node of its own.
fn line(t: &Transfer) -> Vec<f64> {
    let pair = |i: usize| if t.parent[i] as usize == i / 2 { [t.west[i], t.east[i]] } else { [0.0, t.west[i]] };
    (0..t.parent.len()).flat_map(pair).collect()
}

/// Restriction weights of fine nodes `2I-1`, `2I`, `2I+1`, also where the last coarse node sits on fine node `2I-1`.
fn full(t: &Transfer, coarse: &Axis) -> Vec<f64> {
    let row = |i: usize| match t.restrict[i] {
        _ if !coarse.unknowns().contains(&i) => [0.0; 3],
        weights if t.child[i] as usize == 2 * i => weights,
        weights => [weights[1], 0.0, 0.0],
    };
    (0..coarse.nodes).flat_map(row).collect()
}

/// Cubic interpolation to each fine node: the first of four coarse nodes and their weights (Lagrange, at the true
/// positions). Near an end the four nodes stay inside; an axis of fewer nodes takes the polynomial through all of them.
fn cubic(fine: &Axis, coarse: &Axis, t: &Transfer) -> (Vec<i32>, Vec<f64>) {
    let (n, nc) = (fine.nodes, coarse.nodes as i64);
    let (mut base, mut weights) = (vec![0; n], vec![0.0; 4 * n]);
    // A coarse period may be longer by a fraction of a cell.
    let length = coarse.position(coarse.intervals());
    let copy_state = |c: i64| {
        if coarse.periodic() {
            coarse.position(c.rem_euclid(nc) as usize) + length * c.div_euclid(nc) as f64
        } else {
            coarse.position(c as usize)
        }
    };
    for i in 0..n {
        let p = i64::from(t.parent[i]);
        if t.east[i] == 0.0 && (nc == 1 || fine.position(i) == coarse.position(p as usize)) {
            base[i] = p as i32;
            weights[4 * i] = 1.0;
            continue;
        }
        let (first, count) = if coarse.periodic() { (p - 1, 4) } else { ((p - 1).clamp(0, (nc - 4).max(0)), nc.min(4)) };
        base[i] = first as i32;
        let x = fine.position(i);
        for a in 0..count {
            let others = (0..count).filter(|b| *b != a);
            weights[4 * i + a as usize] =
                others.map(|b| (x - copy_state(first + b)) / (copy_state(first + a) - copy_state(first + b))).product();
        }
    }
    (base, weights)
}

/// The tables of all levels in one buffer, which must outlive the arguments.
pub(super) struct Tables {
    pub levels: Vec<arguments::Level>,
    _buffer: Buffer<u8>,
}

impl Tables {
    pub(super) fn new(pool: &Pool, levels: &[Level], inner: Number, outer: Number) -> Result<Self> {
        let mut blob = TableBuffer::default();
        let mut arguments = vec![arguments::Level::default(); levels.len()];
        for (l, level) in levels.iter().enumerate() {
            let pitch = level.grid.axes[0].nodes.next_multiple_of(32);
            arguments[l].pitch = pitch as i32;
            arguments[l].plane = (pitch * level.grid.axes[1].nodes) as i64;
            for d in 0..3 {
                let axis = &level.grid.axes[d];
                let coarse = levels.get(l + 1).map(|c| &c.grid.axes[d]);
                let transfer = level.transfer.as_ref().map(|t| &t[d]).zip(coarse);
                let t = AxisTables::new(axis, transfer);
                let a = &mut *arguments[l].axes_mut()[d];
                let (unknowns, periodic) = (axis.unknowns(), axis.periodic());
                (a.n, a.first, a.last, a.periodic) = (axis.nodes as i32, unknowns.start as i32, unknowns.end as i32, i32::from(periodic));
                (a.begin, a.end) = (0, axis.nodes as i32);
                a.w = blob.padded(inner, 2, periodic, &t.weights);
                a.ww = blob.padded(outer, 2, periodic, &t.weights);
                a.volume = blob.padded(outer, 1, periodic, &(0..axis.nodes).map(|i| axis.volume(i)).collect::<Vec<_>>());
                let Some((transfer, coarse)) = transfer else { continue };
                a.parent = blob.put(&t.parent);
                a.ends = blob.numbers(inner, &t.ends);
                a.child = blob.put(&t.child);
                a.shares = blob.numbers(inner, &t.shares);
                let (base, weights) = cubic(axis, coarse, transfer);
                a.base = blob.put(&base);
                a.cubic = blob.numbers(outer, &weights);
                if halves(transfer) {
                    a.line = blob.padded(inner, 2, periodic, &line(transfer));
                    arguments[l + 1].axes_mut()[d].full = blob.padded(inner, 3, false, &full(transfer, coarse));
                }
            }
        }
        let buffer = pool.buffer_from(&blob.bytes, "poisson tables")?;
        let start = buffer.address();
        for a in arguments.iter_mut().flat_map(super::arguments::Level::axes_mut) {
            // Tables that a kernel does not read have no place in the blob; their pointers stay inside it.
            for p in [&mut a.w, &mut a.ww, &mut a.volume, &mut a.line, &mut a.full, &mut a.parent] {
                *p += start;
            }
            for p in [&mut a.ends, &mut a.child, &mut a.shares, &mut a.base, &mut a.cubic] {
                *p += start;
            }
        }
        Ok(Self { levels: arguments, _buffer: buffer })
    }
}
