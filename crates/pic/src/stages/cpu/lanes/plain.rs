//! Plain arrays: of as many numbers as the CPU's registers hold, or they spill.

use zellige_engine::real::{LaneMask, Lanes as Array, Real, RealScalar};

use super::Lanes;

/// A whole number of less than 22 bits as such: next to 3/2 of the number whose last digit is 1, the last digits are those of the
/// whole number. Additions vectorise on every processor, conversions with their checks do not.
#[inline(always)]
fn whole<T: RealScalar>(x: T) -> u32 {
    if size_of::<T>() == size_of::<u32>() {
        bytemuck::cast::<T, u32>(x + T::from_f64(1.5 * f64::from(1 << 23))).wrapping_sub(0x4b40_0000)
    } else {
        bytemuck::cast::<T, u64>(x + T::from_f64(1.5 * (1_u64 << 52) as f64)) as u32
    }
}

/// The other way round.
#[inline(always)]
fn real<T: RealScalar>(i: u32) -> T {
    if size_of::<T>() == size_of::<u32>() {
        bytemuck::cast::<u32, T>(i.wrapping_add(0x4b40_0000)) - T::from_f64(1.5 * f64::from(1 << 23))
    } else {
        // 2^52 + 2^31 + i.
        bytemuck::cast::<u64, T>(0x4330_0000_0000_0000 | u64::from(i ^ (1 << 31)))
            - T::from_f64((1_u64 << 52) as f64 + f64::from(1_u32 << 31))
    }
}

impl<T: RealScalar, const N: usize> Lanes for Array<T, N> {
    type Index = [u32; N];

    const CELLS: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: as the trait demands.
        Self(unsafe { from.cast::<[T; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as the trait demands.
        unsafe { to.cast::<[T; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn load_cells(from: *const u8) -> [u32; N] {
        // SAFETY: as the trait demands.
        unsafe { from.cast::<[u8; N]>().read_unaligned() }.map(u32::from)
    }

    #[inline(always)]
    unsafe fn store_cells(i: [u32; N], to: *mut u8) {
        // SAFETY: as the trait demands.
        unsafe { to.cast::<[u8; N]>().write_unaligned(i.map(|i| i as u8)) }
    }

    #[inline(always)]
    unsafe fn load_index(from: *const u32) -> [u32; N] {
        // SAFETY: as the trait demands.
        unsafe { from.cast::<[u32; N]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store_index(i: [u32; N], to: *mut u32) {
        // SAFETY: as the trait demands.
        unsafe { to.cast::<[u32; N]>().write_unaligned(i) }
    }

    #[inline(always)]
    unsafe fn lookup(table: *const T, i: [u32; N]) -> Self {
        // SAFETY: as the trait demands.
        unsafe { Self::gather(table, i) }
    }

    #[inline(always)]
    unsafe fn gather(from: *const T, i: [u32; N]) -> Self {
        let mut out = [T::ZERO; N];
        for l in 0..N {
            // SAFETY: as the trait demands.
            out[l] = unsafe { *from.add(i[l] as usize) };
        }
        Self(out)
    }

    #[inline(always)]
    fn whole(self) -> [u32; N] {
        let mut out = [0; N];
        for l in 0..N {
            out[l] = whole(self.0[l]);
        }
        out
    }

    #[inline(always)]
    fn real(i: [u32; N]) -> Self {
        let mut out = [T::ZERO; N];
        for l in 0..N {
            out[l] = real(i[l]);
        }
        Self(out)
    }

    #[inline(always)]
    fn every(i: u32) -> [u32; N] {
        [i; N]
    }

    #[inline(always)]
    fn iota() -> [u32; N] {
        let mut i = [0; N];
        for l in 0..N {
            i[l] = l as u32;
        }
        i
    }

    #[inline(always)]
    fn plus(mut a: [u32; N], b: [u32; N]) -> [u32; N] {
        for l in 0..N {
            a[l] = a[l].wrapping_add(b[l]);
        }
        a
    }

    #[inline(always)]
    fn both(mut a: [u32; N], b: [u32; N]) -> [u32; N] {
        for l in 0..N {
            a[l] &= b[l];
        }
        a
    }

    #[inline(always)]
    fn left<const K: u32>(mut a: [u32; N]) -> [u32; N] {
        for l in 0..N {
            a[l] <<= K;
        }
        a
    }

    #[inline(always)]
    fn right<const K: u32>(mut a: [u32; N]) -> [u32; N] {
        for l in 0..N {
            a[l] >>= K;
        }
        a
    }

    #[inline(always)]
    fn first(n: usize) -> LaneMask<N> {
        let mut mask = [false; N];
        for l in 0..N {
            mask[l] = l < n;
        }
        LaneMask(mask)
    }

    #[inline(always)]
    fn keep(self, mask: LaneMask<N>) -> Self {
        Self::select(mask, self, Self::ZERO)
    }

    #[inline(always)]
    unsafe fn list(mask: LaneMask<N>, i: [u32; N], to: *mut u32) -> usize {
        let mut n = 0;
        for l in 0..N {
            // SAFETY: at most `l` entries were written before, and the trait demands room for all lanes.
            unsafe { *to.add(n) = i[l] };
            n += usize::from(mask.0[l]);
        }
        n
    }

    #[inline(always)]
    unsafe fn add_to_cells(values: [Self; 8], to: *mut T, at: *const u32) {
        for l in 0..N {
            // SAFETY: as the trait demands.
            let cell = unsafe { &mut *to.add(at.add(l).read_volatile() as usize).cast::<[T; 8]>() };
            for (k, v) in values.iter().enumerate() {
                cell[k] += v.0[l];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_survive_the_way_there_and_back() {
        for i in -300_i32..=300 {
            assert_eq!((whole(i as f32) as i32, whole(f64::from(i)) as i32), (i, i));
            assert_eq!((real::<f32>(i as u32), real::<f64>(i as u32)), (i as f32, f64::from(i)));
        }
    }
}
