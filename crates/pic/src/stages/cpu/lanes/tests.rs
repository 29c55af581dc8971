//! Every register against the plain arrays: what the rows of a tile ask of lanes must not depend on the instruction set.

use zellige_engine::real::{AVX512, Lanes as Array, Real, RealScalar};
use zellige_engine::rng::Philox;

use super::{F32x4, F32x8, F32x16, F64x2, F64x4, F64x8, Lanes};
use crate::stages::cpu::Isa;

/// Numbers that fit a cache line's alignment, as cells of sums are kept.
#[repr(align(64))]
struct Aligned<T>([T; 512]);

/// All numbers of `x`.
unsafe fn numbers<X: Lanes>(x: X) -> Vec<f64> {
    let mut out = [X::Scalar::ZERO; 32];
    // SAFETY: room for the widest register; the caller's for instructions.
    unsafe { x.store(out.as_mut_ptr()) };
    out[..X::LANES].iter().map(|&x| x.to_f64()).collect()
}

/// All whole numbers of `i`.
unsafe fn wholes<X: Lanes>(i: X::Index) -> Vec<u32> {
    let mut out = [0_u32; 32];
    // SAFETY: as above.
    unsafe { X::store_index(i, out.as_mut_ptr()) };
    out[..X::LANES].to_vec()
}

/// Results of each operation for the inputs of a round: real numbers and whole ones.
#[inline(always)]
unsafe fn results<X: Lanes>(round: u64) -> (Vec<Vec<f64>>, Vec<Vec<u32>>) {
    let philox = Philox::new(7, 3);
    let real = |k: u64| philox.uniforms(round, k)[0];
    let a: Vec<X::Scalar> = (0..32).map(|k| X::Scalar::from_f64(2.98 * (real(k) - 0.5))).collect();
    let b: Vec<X::Scalar> = (32..64).map(|k| X::Scalar::from_f64(if real(k + 99) < 0.3 { 0.0 } else { 40.0 * (real(k) - 0.5) })).collect();
    let cells: Vec<u32> = (64..96).map(|k| (real(k) * 7.99) as u32).collect();
    // Multiples of 2^-8, of which sums are exact: registers add lanes up in orders of their own.
    let table: Vec<X::Scalar> = (0..512).map(|k| X::Scalar::from_f64((256.0 * real(k + 1000)).floor() / 256.0)).collect();
    // SAFETY: all buffers hold 32 elements or more; the caller's for instructions.
    unsafe {
        let (x, y, i) = (X::load(a.as_ptr()), X::load(b.as_ptr()), X::load_index(cells.as_ptr()));
        let positive = x.gt(X::ZERO);
        let mut bytes = [0_u8; 32];
        X::store_cells(i, bytes.as_mut_ptr());
        let mut listed = [[0_u32; 32]; 2];
        let counts = [X::list(positive, i, listed[0].as_mut_ptr()), X::list(x.either(X::ZERO), i, listed[1].as_mut_ptr())];
        let mut sums = Aligned([X::Scalar::ZERO; 512]);
        let places = cells.iter().map(|c| 8 * c).collect::<Vec<u32>>();
        let values = std::array::from_fn(|k| X::load(table[16 * k..].as_ptr()));
        X::add_to_cells(values, sums.0.as_mut_ptr(), places.as_ptr());
        let mut reals = vec![
            numbers(x + y),
            numbers(x - y),
            numbers(x * y),
            numbers(-x),
            numbers(y.abs()),
            numbers(y.abs().sqrt()),
            numbers(y.floor()),
            numbers(y.ceil()),
            numbers(X::select(x.lt(y), x, y)),
            numbers(X::select(!(x.le(y) & positive) | x.gt(y) ^ positive, x, y)),
            numbers(x.crossed()),
            numbers(x.keep(x.either(y))),
            numbers(X::real(i)),
            numbers(X::gather(table.as_ptr(), X::left::<3>(i))),
            sums.0[..64].iter().map(|&x| x.to_f64()).collect(),
        ];
        if X::CELLS == 8 {
            reals.push(numbers(X::lookup(table.as_ptr(), i)));
        }
        reals.extend(X::lookup_four(table.as_ptr(), X::left::<2>(i)).map(|four| numbers(four)));
        reals.extend((0..=X::LANES + 1).map(|n| numbers(x.keep(X::first(n)))));
        let mut whole = vec![
            wholes::<X>(y.floor().whole()),
            wholes::<X>(X::load_cells(bytes.as_ptr())),
            wholes::<X>(X::plus(X::every(5), X::iota())),
            wholes::<X>(X::both(X::right::<1>(i), X::every(1))),
        ];
        whole.extend((0..2).map(|k| listed[k][..counts[k]].to_vec()));
        (reals, whole)
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx512<X: Lanes>(round: u64) -> (Vec<Vec<f64>>, Vec<Vec<u32>>) {
    // SAFETY: the caller's.
    unsafe { results::<X>(round) }
}

#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
unsafe fn avx2<X: Lanes>(round: u64) -> (Vec<Vec<f64>>, Vec<Vec<u32>>) {
    // SAFETY: the caller's.
    unsafe { results::<X>(round) }
}

/// Names the first operation whose numbers differ.
fn same(found: &(Vec<Vec<f64>>, Vec<Vec<u32>>), plain: &(Vec<Vec<f64>>, Vec<Vec<u32>>), round: u64) {
    for (k, (a, b)) in found.0.iter().zip(&plain.0).enumerate() {
        assert_eq!(a, b, "real results {k}, round {round}");
    }
    for (k, (a, b)) in found.1.iter().zip(&plain.1).enumerate() {
        assert_eq!(a, b, "whole results {k}, round {round}");
    }
    assert_eq!((found.0.len(), found.1.len()), (plain.0.len(), plain.1.len()));
}

#[test]
fn every_register_gives_the_bits_of_plain_arrays() {
    for round in 0..200 {
        // SAFETY: the CPU is asked before registers beyond its baseline are used.
        unsafe {
            same(&results::<F32x4>(round), &results::<Array<f32, 4>>(round), round);
            same(&results::<F64x2>(round), &results::<Array<f64, 2>>(round), round);
            if Isa::all().contains(&Isa::Avx2) {
                same(&avx2::<F32x8>(round), &results::<Array<f32, 8>>(round), round);
                same(&avx2::<F64x4>(round), &results::<Array<f64, 4>>(round), round);
            }
            if AVX512 && Isa::all().contains(&Isa::Avx512) {
                let (mut plain, registers) = (results::<Array<f32, 16>>(round), avx512::<F32x16>(round));
                // Sixteen cells in its tables, eight in those of arrays.
                plain.0.remove(15);
                same(&registers, &plain, round);
                same(&avx512::<F64x8>(round), &results::<Array<f64, 8>>(round), round);
            }
        }
    }
}
