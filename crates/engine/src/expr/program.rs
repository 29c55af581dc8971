//! Running the flat program: a stack of values for one point, a stack of blocks for many.

use super::Expr;
use super::ops::Op;

/// Points worked on at a time: the stack of a common expression then fits the first cache.
const BLOCK: usize = 256;
/// Stacks up to this depth need no memory from the heap.
const SMALL: usize = 16;

/// The values of one variable in [`Expr::eval_many`].
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// One value for all points, for example `y` along a row. Subexpressions of such variables alone are computed once.
    Constant(f64),
    /// One value a point.
    Values(&'a [f64]),
}

/// Largest number of values on the stack at a time.
pub(super) fn depth(ops: &[Op]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for op in ops {
        now = now + 1 - operands(op);
        most = most.max(now);
    }
    most
}

fn operands(op: &Op) -> usize {
    match op {
        Op::Number(_) | Op::Variable(_) => 0,
        Op::One(_) => 1,
        Op::Two(_) => 2,
        Op::Three(_) => 3,
    }
}

/// One step on a stack whose top is `top`: returns the new top.
fn step(op: &Op, stack: &mut [f64], top: usize, variables: impl Fn(usize) -> f64) -> usize {
    let at = top - operands(op);
    stack[at] = match op {
        Op::Number(value) => *value,
        Op::Variable(i) => variables(*i),
        Op::One(op) => op.apply(stack[at]),
        Op::Two(op) => op.apply(stack[at], stack[at + 1]),
        Op::Three(op) => op.apply(stack[at], stack[at + 1], stack[at + 2]),
    };
    at + 1
}

impl Expr {
    fn demand(&self, found: usize) {
        assert!(found >= self.variables.len(), "{} variables in the expression, {found} given", self.variables.len());
    }

    /// The value at one point, its variables in the order in which they were named.
    ///
    /// # Panics
    /// Where fewer values than variables are given.
    pub fn eval(&self, variables: &[f64]) -> f64 {
        self.demand(variables.len());
        let (mut small, mut large) = ([0.0; SMALL], Vec::new());
        let stack = if self.depth <= SMALL {
            &mut small[..]
        } else {
            large.resize(self.depth, 0.0);
            &mut large
        };
        let mut top = 0;
        for op in &self.ops {
            top = step(op, stack, top, |i| variables[i]);
        }
        stack[0]
    }

    /// The values at `out.len()` points, the same bits as [`Expr::eval`] gives.
    ///
    /// ```
    /// use zellige_engine::expr::{Column, Expr};
    /// let f = Expr::parse("x + 10*y", &["x", "y"]).unwrap();
    /// let mut row = [0.0; 3];
    /// f.eval_many(&[Column::Values(&[1.0, 2.0, 3.0]), Column::Constant(0.5)], &mut row);
    /// assert_eq!(row, [6.0, 7.0, 8.0]);
    /// ```
    ///
    /// # Panics
    /// Where fewer columns than variables are given or a column is shorter than `out`.
    pub fn eval_many(&self, columns: &[Column<'_>], out: &mut [f64]) {
        self.demand(columns.len());
        let mut blocks = vec![[0.0; BLOCK]; self.depth];
        // The value of a stack entry that is the same at every point, whose block is then not filled.
        let mut uniform: Vec<Option<f64>> = vec![None; self.depth];
        for (b, out) in out.chunks_mut(BLOCK).enumerate() {
            let (start, n) = (b * BLOCK, out.len());
            let mut top = 0;
            for op in &self.ops {
                top = step_block(op, columns, &mut blocks, &mut uniform, top, start..start + n);
            }
            match uniform[0] {
                Some(value) => out.fill(value),
                None => out.copy_from_slice(&blocks[0][..n]),
            }
        }
    }
}

/// One step on a stack of blocks whose top is `top`, for the points in `range`: returns the new top.
fn step_block(
    op: &Op,
    columns: &[Column<'_>],
    blocks: &mut [[f64; BLOCK]],
    uniform: &mut [Option<f64>],
    top: usize,
    range: std::ops::Range<usize>,
) -> usize {
    let (at, n) = (top - operands(op), range.len());
    let mut scalars = [0.0; 3];
    let known = &uniform[at..top];
    // An operation on uniform values, or a number, or a constant column: one value for the whole block.
    let scalar = match op {
        Op::Variable(i) => match columns[*i] {
            Column::Constant(value) => Some(value),
            Column::Values(values) => {
                blocks[at][..n].copy_from_slice(&values[range]);
                None
            }
        },
        _ if known.iter().all(Option::is_some) => {
            for (slot, value) in scalars.iter_mut().zip(known) {
                *slot = value.unwrap_or_default();
            }
            step(op, &mut scalars, operands(op), |_| 0.0);
            Some(scalars[0])
        }
        _ => {
            for (block, value) in blocks[at..top].iter_mut().zip(known) {
                if let Some(value) = value {
                    block[..n].fill(*value);
                }
            }
            if let [x, rest @ ..] = &mut blocks[at..top] {
                let x = &mut x[..n];
                match (op, rest) {
                    (Op::One(op), _) => op.block(x),
                    (Op::Two(op), [y, ..]) => op.block(x, &y[..n]),
                    (Op::Three(op), [y, z, ..]) => op.block(x, &y[..n], &z[..n]),
                    _ => unreachable!("an operation has as many operands as its kind says"),
                }
            }
            None
        }
    };
    uniform[at] = scalar;
    at + 1
}
