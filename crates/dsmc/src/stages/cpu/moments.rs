//! Sums of the velocities of a cell: x, y, z, xx, yy, zz, xy, `c^2 x`, `c^2 y`.
//!
//! In single precision, of up to 64 particles at a time: rounding is at random, and with a speed of a hundred times the thermal one
//! still some hundredths of a single particle's share of the temperature. Sixteen lanes take every sixteenth particle each; each of
//! the first eight gets the one eight further on, and these are added up as `((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))`: the same
//! bits with any instruction set.

use std::ops::Range;

use zellige_engine::real::Isa;

/// Number of sums.
const MOMENTS: usize = 9;
const LANES: usize = 16;
/// Particles that are added up in single precision.
const CHUNK: usize = 64;

/// Adds the number of particles of each range `start[k]..start[k + 1]` and the sums over their velocities to the first ten of the
/// `kept` entries of `sums` that are the range's. The columns have sixteen values behind the last range, or no particle at all.
///
/// # Panics
/// Where a range is not in the columns, or there are no ten entries.
pub(super) fn add(v: [&[f32]; 3], start: &[u32], sums: &mut [f32], kept: usize, isa: Isa) {
    let end = match start.last() {
        // Columns that never held a particle have no room behind it either.
        None | Some(0) => return,
        Some(end) => *end as usize + LANES,
    };
    let [x, y, z] = v;
    let v = [&x[..end], &y[..end], &z[..end]];
    let ranges = start.len().saturating_sub(1);
    assert!(kept > MOMENTS && ranges * kept <= sums.len() && start.is_sorted(), "{ranges} ranges of {kept} sums");
    match isa {
        // SAFETY: the CPU has what `isa` says; ranges end sixteen values before the columns do, and each has ten sums.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512::all(v, start, sums, kept) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::all(v, start, sums, kept) },
        Isa::Baseline => {
            for (range, total) in start.windows(2).zip(sums.chunks_exact_mut(kept)) {
                let (begin, end) = (range[0] as usize, range[1] as usize);
                (begin..end).step_by(CHUNK).for_each(|begin| plain(v, begin..(begin + CHUNK).min(end), total));
            }
        }
    }
}

/// The products xz and yz and `c^2 z`, behind those of [`add`]: only in runs where something moves along z, so that the sums of the
/// others stay as short. Lanes as there; the compiler makes registers of them.
#[inline(always)]
pub(super) fn add_along_z(v: [&[f32]; 3], start: &[u32], sums: &mut [f32], kept: usize) {
    for (range, total) in start.windows(2).zip(sums.chunks_exact_mut(kept)) {
        for begin in (range[0] as usize..range[1] as usize).step_by(CHUNK) {
            let end = (begin + CHUNK).min(range[1] as usize);
            let [x, y, z] = v.map(|v| v[begin..end].chunks(LANES));
            let mut sums = [[0.0_f32; LANES]; 3];
            for ((x, y), z) in x.zip(y).zip(z) {
                for (l, ((x, y), z)) in x.iter().zip(y).zip(z).enumerate() {
                    sums[0][l] += x * z;
                    sums[1][l] += y * z;
                    sums[2][l] += (x * x + y * y + z * z) * z;
                }
            }
            for (total, lanes) in total[1 + MOMENTS..].iter_mut().zip(sums) {
                let mut n = LANES;
                let mut lanes = lanes;
                while n > 1 {
                    n /= 2;
                    for l in 0..n {
                        lanes[l] += lanes[l + n];
                    }
                }
                *total += lanes[0];
            }
        }
    }
}

/// The sums of a chunk, without vector instructions.
fn plain(v: [&[f32]; 3], range: Range<usize>, total: &mut [f32]) {
    let mut sums = [[0.0_f32; MOMENTS]; LANES];
    total[0] += range.len() as f32;
    for (k, i) in range.enumerate() {
        let (x, y, z) = (v[0][i], v[1][i], v[2][i]);
        let (xx, yy, zz) = (x * x, y * y, z * z);
        let square = xx + yy + zz;
        for (sum, term) in sums[k % LANES].iter_mut().zip([x, y, z, xx, yy, zz, x * y, square * x, square * y]) {
            *sum += term;
        }
    }
    for (q, total) in total[1..=MOMENTS].iter_mut().enumerate() {
        let eighth = |i: usize| sums[i][q] + sums[i + LANES / 2][q];
        let two = |i: usize| eighth(i) + eighth(i + 1);
        *total += (two(0) + two(2)) + (two(4) + two(6));
    }
}

/// Sixteen lanes in one register.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    use super::{CHUNK, LANES, MOMENTS};

    /// 0, 1 to [`CHUNK`]: a load takes no time of the units that everything else here waits for, a conversion does.
    static NUMBERS: [f32; CHUNK + 1] = {
        let mut numbers = [0.0; CHUNK + 1];
        let mut n = 0;
        while n < numbers.len() {
            numbers[n] = n as f32;
            n += 1;
        }
        numbers
    };
    /// Cells that sums are asked for ahead.
    const AHEAD: usize = 16;

    /// Squares and products of a register of each component.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn terms(x: __m512, y: __m512, z: __m512) -> [__m512; MOMENTS] {
        let (xx, yy, zz) = (_mm512_mul_ps(x, x), _mm512_mul_ps(y, y), _mm512_mul_ps(z, z));
        let square = _mm512_add_ps(_mm512_add_ps(xx, yy), zz);
        [x, y, z, xx, yy, zz, _mm512_mul_ps(x, y), _mm512_mul_ps(square, x), _mm512_mul_ps(square, y)]
    }

    /// Sums of lanes eight apart of both: of `a` in the lower half, of `b` in the upper one.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn halves(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(_mm512_mask_blend_ps(0xff00, a, b), _mm512_shuffle_f32x4::<0b01_00_11_10>(a, b))
    }

    /// Sums of neighbours of both, in each four lanes two of `a` and two of `b`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn pairs(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(_mm512_shuffle_ps::<0b10_00_10_00>(a, b), _mm512_shuffle_ps::<0b11_01_11_01>(a, b))
    }

    /// # Safety
    /// The columns hold all of `x..x + n`, and `total` ten numbers.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,popcnt,bmi1,bmi2")]
    #[inline]
    unsafe fn chunk(x: *const f32, y: *const f32, z: *const f32, n: usize, total: *mut f32) {
        let part = |i: usize| {
            let mask = _bzhi_u32(0xffff, (n - i) as u32) as u16;
            // SAFETY: lanes from `n` on are not read.
            unsafe {
                let at = |v: *const f32| _mm512_maskz_loadu_ps(mask, v.add(i));
                terms(at(x), at(y), at(z))
            }
        };
        // Most cells have no more than one part.
        let mut sums = part(0);
        let mut i = LANES;
        while i < n {
            let more = part(i);
            for q in 0..MOMENTS {
                sums[q] = _mm512_add_ps(sums[q], more[q]);
            }
            i += LANES;
        }
        let [a, b, c, d, e, f, g, h, last] = sums;
        // Quarters of the register: a, b, c, d of lanes 0 to 3, then of 4 to 7; e, f, g, h likewise. The last one is in every lane of a quarter.
        let eight = pairs(pairs(halves(a, e), halves(b, f)), pairs(halves(c, g), halves(d, h)));
        let last = halves(last, last);
        let last = _mm512_add_ps(last, _mm512_permute_ps::<0b10_11_00_01>(last));
        let last = _mm512_add_ps(last, _mm512_permute_ps::<0b01_00_11_10>(last));
        // The other four of each, and of the last one in what is the fourth quarter.
        let own = _mm512_mask_blend_ps(0xf000, eight, last);
        let other = _mm512_shuffle_f32x4::<0b10_11_00_01>(eight, _mm512_mask_blend_ps(0x0f00, eight, last));
        let order = _mm512_setr_epi32(0, 0, 1, 2, 3, 8, 9, 10, 11, 12, 0, 0, 0, 0, 0, 0);
        let found = _mm512_permutexvar_ps(order, _mm512_add_ps(own, other));
        let found = _mm512_mask_blend_ps(1, found, _mm512_castps128_ps512(_mm_set_ss(NUMBERS[n])));
        // Eight and two: with masks the next cell's sums would wait for these, which lie beside them in the same lines.
        // SAFETY: ten numbers.
        unsafe {
            _mm256_storeu_ps(total, _mm256_add_ps(_mm256_loadu_ps(total), _mm512_castps512_ps256(found)));
            let before = _mm_castpd_ps(_mm_set_sd(total.add(8).cast::<f64>().read_unaligned()));
            let two = _mm_castps_pd(_mm_add_ps(before, _mm512_extractf32x4_ps::<2>(found)));
            total.add(8).cast::<f64>().write_unaligned(_mm_cvtsd_f64(two));
        }
    }

    /// # Safety
    /// AVX-512 is there, ranges are in the columns, and each has ten sums.
    // Indices and no closures: an iterator's `next` would be called for every cell, with the registers put away.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,popcnt,bmi1,bmi2")]
    pub(super) unsafe fn all(v: [&[f32]; 3], start: &[u32], sums: &mut [f32], kept: usize) {
        let (x, y, z, to) = (v[0].as_ptr(), v[1].as_ptr(), v[2].as_ptr(), sums.as_mut_ptr());
        for k in 1..start.len() {
            // Sums further on come from memory meanwhile.
            _mm_prefetch::<_MM_HINT_T0>(to.wrapping_add((k - 1 + AHEAD) * kept).cast());
            let (mut begin, end) = (start[k - 1] as usize, start[k] as usize);
            while begin < end {
                let n = (end - begin).min(CHUNK);
                // SAFETY: the caller's word.
                unsafe { chunk(x.add(begin), y.add(begin), z.add(begin), n, to.add((k - 1) * kept)) };
                begin += n;
            }
        }
    }
}

/// Eight of them in each of two registers.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    use super::{CHUNK, LANES, MOMENTS};

    /// Lanes of a register.
    const HALF: usize = LANES / 2;

    /// Squares and products of a register of each component.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn terms(x: __m256, y: __m256, z: __m256) -> [__m256; MOMENTS] {
        let (xx, yy, zz) = (_mm256_mul_ps(x, x), _mm256_mul_ps(y, y), _mm256_mul_ps(z, z));
        let square = _mm256_add_ps(_mm256_add_ps(xx, yy), zz);
        [x, y, z, xx, yy, zz, _mm256_mul_ps(x, y), _mm256_mul_ps(square, x), _mm256_mul_ps(square, y)]
    }

    /// Sums of neighbours of both: of `a` in the even lanes, of `b` in the odd ones. Blends where `hadd` would shuffle twice: a
    /// processor shuffles once a cycle and blends three times.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn pairs(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1010_1010>(a, b), _mm256_blend_ps::<0b1010_1010>(b, a));
        _mm256_add_ps(own, _mm256_permute_ps::<0b10_11_00_01>(other))
    }

    /// Sums of neighbouring pairs of lanes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn fours(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1100_1100>(a, b), _mm256_blend_ps::<0b1100_1100>(b, a));
        _mm256_add_ps(own, _mm256_permute_ps::<0b01_00_11_10>(other))
    }

    /// Sums of halves.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn halves(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1111_0000>(a, b), _mm256_blend_ps::<0b1111_0000>(b, a));
        _mm256_add_ps(own, _mm256_permute2f128_ps::<1>(other, other))
    }

    /// # Safety
    /// The columns hold `x..x + n` and sixteen values more, and `total` ten numbers.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn chunk(x: *const f32, y: *const f32, z: *const f32, n: usize, total: *mut f32) {
        // Sixteen at a time, so that most cells have no loop; what is behind the end is masked.
        let two = |i: usize| {
            let left = _mm256_set1_epi32((n - i) as i32);
            let first = _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
            let second = _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)));
            // SAFETY: begins below `n`, which all columns exceed by sixteen.
            unsafe {
                let and = |v: *const f32, i: usize, mask: __m256| _mm256_and_ps(mask, _mm256_loadu_ps(v.add(i)));
                let low = terms(and(x, i, first), and(y, i, first), and(z, i, first));
                let high = terms(and(x, i + HALF, second), and(y, i + HALF, second), and(z, i + HALF, second));
                (low, high)
            }
        };
        let (mut low, mut high) = two(0);
        let mut i = LANES;
        while i < n {
            let (a, b) = two(i);
            for q in 0..MOMENTS {
                (low[q], high[q]) = (_mm256_add_ps(low[q], a[q]), _mm256_add_ps(high[q], b[q]));
            }
            i += LANES;
        }
        for q in 0..MOMENTS {
            low[q] = _mm256_add_ps(low[q], high[q]);
        }
        let [a, b, c, d, e, f, g, h, last] = low;
        let eight = halves(fours(pairs(a, b), pairs(c, d)), fours(pairs(e, f), pairs(g, h)));
        let four = fours(pairs(last, last), pairs(last, last));
        let nine = _mm_add_ss(_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four));
        // SAFETY: ten numbers.
        unsafe {
            *total += n as f32;
            _mm256_storeu_ps(total.add(1), _mm256_add_ps(_mm256_loadu_ps(total.add(1)), eight));
            *total.add(9) += _mm_cvtss_f32(nine);
        }
    }

    /// # Safety
    /// AVX2 is there, ranges end sixteen values before the columns do, and each has ten sums.
    // Indices and no closures: an iterator's `next` would be called for every cell, with the registers put away.
    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) unsafe fn all(v: [&[f32]; 3], start: &[u32], sums: &mut [f32], kept: usize) {
        let (x, y, z, to) = (v[0].as_ptr(), v[1].as_ptr(), v[2].as_ptr(), sums.as_mut_ptr());
        for k in 1..start.len() {
            let (mut begin, end) = (start[k - 1] as usize, start[k] as usize);
            while begin < end {
                let n = (end - begin).min(CHUNK);
                // SAFETY: the caller's word.
                unsafe { chunk(x.add(begin), y.add(begin), z.add(begin), n, to.add((k - 1) * kept)) };
                begin += n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread whose first tile is empty has columns without any room.
    #[test]
    fn no_particles_need_no_columns() {
        for isa in Isa::all() {
            let mut sums = [1.0; 20];
            add([&[]; 3], &[0, 0, 0], &mut sums, 10, isa);
            assert_eq!(sums, [1.0; 20]);
        }
    }

    #[test]
    fn registers_give_the_bits_of_the_plain_sums() {
        let v = [0, 1, 2].map(|c| (0..700).map(|i| ((i * 7919 + c * 331) % 997) as f32 * 1.37 - 400.0).collect::<Vec<f32>>());
        let columns = [&v[0][..], &v[1][..], &v[2][..]];
        // Of three ranges the first and the last stay as they are; sums of two keep what is behind them.
        for (begin, kept) in (0..9).zip([10, 12, 10, 13, 10, 12, 10, 11, 10]) {
            for n in (0..40).chain([64, 65, 200]) {
                let start = [begin, begin, begin + n, begin + n].map(|k| k as u32);
                let sums = |isa| {
                    let mut sums = vec![1.0; 3 * kept];
                    add(columns, &start, &mut sums, kept, isa);
                    sums
                };
                let plain = sums(Isa::Baseline);
                for isa in Isa::all() {
                    assert_eq!(sums(isa), plain, "{n} from {begin}, {isa:?}");
                }
                let own = &plain[kept..2 * kept];
                let others = plain[..kept].iter().chain(&plain[2 * kept..]).chain(&own[10..]);
                assert!(others.copied().all(|s| s == 1.0) && own[0] == 1.0 + n as f32);
                let terms = |i: usize| {
                    let [x, y, z] = columns.map(|v| f64::from(v[i]));
                    let square = x * x + y * y + z * z;
                    [x, y, z, x * x, y * y, z * z, x * y, square * x, square * y]
                };
                for q in 0..MOMENTS {
                    let direct: f64 = 1.0 + (begin..begin + n).map(|i| terms(i)[q]).sum::<f64>();
                    let size: f64 = (begin..begin + n).map(|i| terms(i)[q].abs()).sum();
                    // A term rounds four times at most, four sums are in a lane and four across, and those of four chunks: 16 times half of
                    // 2^-23 of the sum of the sizes, and of the number before.
                    let found = f64::from(own[1 + q]);
                    assert!((found - direct).abs() <= 16.0 * 6e-8 * (size + 1.0), "{n} from {begin}, sum {q}: {found} {direct}");
                }
            }
        }
    }
}
