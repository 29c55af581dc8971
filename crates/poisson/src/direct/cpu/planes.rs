//! Planes of nodes into planes of modes and back: what one task of the direct solver does on the CPU.

use std::ops::Range;

use rustfft::num_complex::Complex;

use super::super::relax::{LANES, prefetch_block};
use super::super::transform::{Scalar, Scratch};
use super::{PAIRS, Solver, ThreadBuffers};

impl<T: Scalar> Solver<T> {
    /// Stage: right-hand sides of some planes into modes.
    pub(super) fn analyse(&self, u: &mut [T], f: &[T], new_buffers: &mut ThreadBuffers<T>) {
        let x = self.unknowns[0].clone();
        let ThreadBuffers { scratch, lines, modes } = new_buffers;
        let (line, mode) = (&mut lines[..x.len()], &mut modes[..x.len()]);
        let mut rows = self.rows(u);
        for pair in rows.chunks_mut(2) {
            let from = |row: usize| &f[row * self.nodes[0]..][x.clone()];
            let first = from(pair[0].0);
            match pair.get(1) {
                Some((second, _)) => pack(first, from(*second), line),
                None => line.iter_mut().zip(first).for_each(|(z, a)| *z = Complex::new(*a, T::ZERO)),
            }
            self.x.forward(line, mode, self.scale, scratch);
            unpack(mode, pair, &x);
        }
        if self.nodes[1] > 1 {
            self.across(u, lines, modes, scratch, false);
        }
    }

    /// Stage: modes of some planes into the solution.
    pub(super) fn synthesise(&self, u: &mut [T], new_buffers: &mut ThreadBuffers<T>) {
        let x = self.unknowns[0].clone();
        let ThreadBuffers { scratch, lines, modes } = new_buffers;
        if self.nodes[1] > 1 {
            self.across(u, modes, lines, scratch, true);
        }
        let (line, mode) = (&mut lines[..x.len()], &mut modes[..x.len()]);
        let mut rows = self.rows(u);
        for pair in rows.chunks_mut(2) {
            match pair {
                [(_, a), (_, b)] => pack(&a[x.clone()], &b[x.clone()], mode),
                [(_, a)] => mode.iter_mut().zip(&a[x.clone()]).for_each(|(z, a)| *z = Complex::new(*a, T::ZERO)),
                _ => {}
            }
            self.x.backward(mode, line, scratch);
            unpack(line, pair, &x);
        }
    }

    /// The rows of unknowns of some planes, with their number.
    fn rows<'a>(&self, u: &'a mut [T]) -> Vec<(usize, &'a mut [T])> {
        let (nodes, unknowns) = (self.nodes[1], self.unknowns[1].clone());
        u.chunks_mut(self.nodes[0]).enumerate().filter(|(row, _)| unknowns.contains(&(row % nodes))).collect()
    }

    /// Transforms the lines of the middle axis of a plane, neighbouring pairs of them as complex lines; `back`: modes into nodes.
    fn across(&self, plane: &mut [T], from: &mut [Complex<T>], to: &mut [Complex<T>], scratch: &mut Scratch<T>, back: bool) {
        let (stride, len) = (self.nodes[0], self.middle.len());
        let start = self.unknowns[1].start * stride;
        let x = self.unknowns[0].clone();
        let mut at = x.start;
        while at < x.end {
            let columns = (2 * PAIRS).min(x.end - at);
            for l in 0..len {
                let row = &plane[start + l * stride + at..][..columns];
                for (p, pair) in row.chunks(2).enumerate() {
                    from[p * len + l] = Complex::new(pair[0], *pair.get(1).unwrap_or(&T::ZERO));
                }
            }
            for (from, to) in from.chunks_mut(len).zip(to.chunks_mut(len)).take(columns.div_ceil(2)) {
                if back {
                    self.middle.backward(from, to, scratch);
                } else {
                    self.middle.forward(from, to, 1.0, scratch);
                }
            }
            for l in 0..len {
                let row = &mut plane[start + l * stride + at..][..columns];
                for (p, pair) in row.chunks_mut(2).enumerate() {
                    let z = to[p * len + l];
                    pair[0] = z.re;
                    if let Some(second) = pair.get_mut(1) {
                        *second = z.im;
                    }
                }
            }
            at += columns;
        }
    }
}

#[inline(always)]
fn pack<T: Scalar>(a: &[T], b: &[T], z: &mut [Complex<T>]) {
    let (a, b) = (&a[..z.len()], &b[..z.len()]);
    let (blocks, rest) = z.as_chunks_mut::<LANES>();
    let at = LANES * blocks.len();
    for (k, z) in blocks.iter_mut().enumerate() {
        let (a, b) = (&a[LANES * k..][..LANES], &b[LANES * k..][..LANES]);
        prefetch_block(a);
        prefetch_block(b);
        for i in 0..LANES {
            z[i] = Complex::new(a[i], b[i]);
        }
    }
    for (i, z) in rest.iter_mut().enumerate() {
        *z = Complex::new(a[at + i], b[at + i]);
    }
}

#[inline(always)]
fn unpack<T: Scalar>(z: &[Complex<T>], rows: &mut [(usize, &mut [T])], x: &Range<usize>) {
    match rows {
        [(_, a), (_, b)] => {
            let (a, b) = (&mut a[x.clone()][..z.len()], &mut b[x.clone()][..z.len()]);
            for i in 0..z.len() {
                (a[i], b[i]) = (z[i].re, z[i].im);
            }
        }
        [(_, a)] => z.iter().zip(&mut a[x.clone()]).for_each(|(z, a)| *a = z.re),
        _ => {}
    }
}
