//! Properties of the modes, and compilation of the kernels. The solver itself is verified from outside (`tests/all/direct.rs`),
//! where it is compiled anyway.

use std::f64::consts::PI;

use rustfft::num_complex::Complex;
use zellige_engine::testing;

use super::pairs::Pairs;
use super::transform::Scalar;
use super::*;
use crate::isa::Isa;

const PAIRS: [(Bc, Bc); 5] = [
    (Bc::Dirichlet, Bc::Dirichlet),
    (Bc::Neumann, Bc::Neumann),
    (Bc::Dirichlet, Bc::Neumann),
    (Bc::Neumann, Bc::Dirichlet),
    (Bc::Periodic, Bc::Periodic),
];

#[test]
fn every_mode_has_its_place_once() {
    for (bc, (lo, hi)) in PAIRS.into_iter().enumerate() {
        for nodes in [3, 4, 5, 16, 17, 33, 34, 35, 36, 65, 129, 101, 22, 28, 46, 56, 78, 106, 136, 151, 70] {
            let axis = Axis::new(nodes, 1.0, lo, hi);
            let n = axis.intervals();
            let mut found = transform::angles(transform::TransformType::of(&axis), n, transform::SMALL);
            assert_eq!(found.len(), axis.unknowns().len(), "{lo:?} {hi:?} {nodes}");
            found.sort_by(f64::total_cmp);
            for (k, found) in found.into_iter().enumerate() {
                let part = match bc {
                    0 => k as f64 + 1.0,
                    1 => k as f64,
                    4 => 2.0 * (k / 2 + k % 2) as f64,
                    _ => k as f64 + 0.5,
                };
                // A few roundings of angles up to pi.
                assert!((found - PI * part / n as f64).abs() < 8.0 * f64::EPSILON, "{lo:?} {hi:?} {nodes} mode {k}: {found}");
            }
        }
    }
}

#[test]
fn kernels_compile_for_every_architecture() {
    for (bc, (lo, hi)) in PAIRS.into_iter().enumerate() {
        let (long, short, flat) = (Axis::new(4097, 1.0, lo, hi), Axis::new(513, 1.0, lo, hi), Axis::flat());
        // A plane whose lines do not fit, and space where all does: by turns in single and double precision.
        let [plane, space] = if bc % 2 == 0 { ["float", "double"] } else { ["double", "float"] };
        testing::compiles(&cuda::recipe(plane, [&long, &flat, &long], false, false));
        testing::compiles(&cuda::recipe(space, [&short, &short, &short], true, true));
    }
}

/// A loop with every operation of a register, forwards and backwards.
struct Everything<'a, T> {
    a: &'a [Complex<T>],
    b: &'a [Complex<T>],
    out: &'a mut [[Complex<T>; 8]],
}

impl<T: Scalar> pairs::Work<T> for Everything<'_, T> {
    #[inline(always)]
    unsafe fn run<P: Pairs<T>>(self) {
        let zero = Complex::new(T::ZERO, T::ZERO);
        for i in (0..self.a.len()).step_by(P::LEN) {
            // SAFETY: lengths are multiples of the widest register.
            let all = unsafe {
                let (a, b) = (P::load(&raw const self.a[i]), P::load(&raw const self.b[i]));
                [a.add(b), a.sub(b), a.by(b), a.by_conjugate(b), a.times_i(), a.sub_add(b), a.add_sub(b), a.scaled(T::of(0.3))]
            };
            for (q, value) in all.into_iter().enumerate() {
                let (mut plain, mut negate_re) = ([zero; 8], [zero; 8]);
                // SAFETY: a register has eight at most.
                unsafe {
                    value.store(plain.as_mut_ptr());
                    value.reversed().store(negate_re.as_mut_ptr());
                }
                for k in 0..P::LEN {
                    assert_eq!(plain[k], negate_re[P::LEN - 1 - k]);
                    self.out[i + k][q] = plain[k];
                }
            }
        }
    }
}

fn registers_equal_numbers<T: Scalar>() {
    let number = |i: usize| T::of(((i * 7919) % 1000) as f64 / 7.0 - 71.0);
    let list = |from: usize| (0..64).map(|i| Complex::new(number(2 * i + from), number(2 * i + 1 + from))).collect::<Vec<_>>();
    let (a, b) = (list(0), list(1001));
    let results = |isa: Isa| {
        let mut out = vec![[Complex::new(T::ZERO, T::ZERO); 8]; a.len()];
        pairs::run(isa, Everything { a: &a, b: &b, out: &mut out });
        out
    };
    let plain: Vec<_> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| {
            let i = |z: Complex<T>| Complex::new(-z.im, z.re);
            [a + b, a - b, a * b, a * b.conj(), i(*a), a + b.conj().scale(-T::ONE), a + b.conj(), a.scale(T::of(0.3))]
        })
        .collect();
    for isa in Isa::all() {
        assert_eq!(results(isa), plain, "{isa:?}");
    }
}

#[test]
fn every_register_gives_the_bits_of_plain_numbers() {
    registers_equal_numbers::<f32>();
    registers_equal_numbers::<f64>();
}

/// Compares the transforms of every instruction set, forward and back, at lengths that leave a part of a register.
fn transforms_equal<T: Scalar>() {
    for (lo, hi) in PAIRS {
        for nodes in [17, 33, 41, 65, 101, 129, 257, 1023] {
            let axis = Axis::new(nodes, 1.0, lo, hi);
            let results = Isa::all().into_iter().map(|isa| {
                let mut transform = transform::Transform::<T>::new(&axis);
                transform.compile_for(isa);
                let mut scratch = transform::Scratch::default();
                transform.reserve(&mut scratch);
                let zero = Complex::new(T::ZERO, T::ZERO);
                let number = |i: usize| T::of(((i * 7919 + nodes) % 1000) as f64 / 500.0 - 1.0);
                let line: Vec<_> = (0..transform.len()).map(|i| Complex::new(number(i), number(i + 31))).collect();
                let (mut used, mut modes, mut back) = (line.clone(), vec![zero; line.len()], vec![zero; line.len()]);
                transform.forward(&mut used, &mut modes, 1.0, &mut scratch);
                let forward = modes.clone();
                transform.backward(&mut modes, &mut back, &mut scratch);
                // Some dozen roundings of values of order one, in each of the splits.
                let error = line.iter().zip(&back).map(|(a, b)| (a - b).norm_sqr().to_f64().sqrt()).fold(0.0, f64::max);
                let eps = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
                assert!(error < 64.0 * eps, "{lo:?} {hi:?} {nodes} {isa:?}: {error}");
                (forward, back)
            });
            let results: Vec<_> = results.collect();
            assert!(results.iter().all(|r| *r == results[0]), "{lo:?} {hi:?} {nodes}");
        }
    }
}

#[test]
fn transforms_have_the_same_bits_on_every_instruction_set() {
    transforms_equal::<f32>();
    transforms_equal::<f64>();
}

#[test]
fn sweeps_on_borrowed_arrays_give_the_bits_of_sweeps_on_own_ones() {
    let grid = Grid::plane(Axis::new(40, 1.0, Bc::Dirichlet, Bc::Neumann), Axis::new(33, 1.5, Bc::Periodic, Bc::Periodic));
    let f: Vec<f64> = (0..grid.len()).map(|i| (0.7 * i as f64).sin()).collect();
    let device = Device::Cpu(zellige_engine::device::Cpu::new(2).unwrap());
    let off = &mut Profiler::off();
    let [mut own, mut borrowed] = [0; 2].map(|_| Direct::new(&grid, Precision::F64, &device).unwrap());
    own.load(&vec![0.0; grid.len()], &f).unwrap();
    let mut u = vec![0.0; grid.len()];
    assert_eq!(Some(own.solve_measured(off).unwrap()[0]), borrowed.solve_borrowed(&f, &mut u, off).unwrap());
    for _ in 0..3 {
        assert_eq!(Some(own.polish(&[true], off).unwrap()[0]), borrowed.polish_borrowed(&f, &mut u, off).unwrap());
        assert_eq!(own.solution().unwrap(), u);
    }
}
