//! Registers of numbers for the rows of a tile: arithmetic as [`Real`], so that the formulae of [`crate::physics`] apply, and
//! what a row of cells needs besides: looking up a number per cell, listing lanes, adding eight numbers per lane to a cell.
//!
//! Implementations: 64-byte, 32-byte and 16-byte registers of x86 (`x86`), and on other processors plain arrays that the compiler
//! makes of whatever those have. The first two fuse `a b + c`: instruction sets agree to round-off, not bit for bit.

mod plain;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use zellige_engine::real::{Mask, Real};

#[cfg(target_arch = "x86_64")]
pub(super) use self::x86::{F32x4, F32x8, F32x16, F64x2, F64x4, F64x8};

/// Lanes of the widest register, twice: for buffers.
pub(super) const MOST: usize = 32;

/// A register and what a row of cells does with it.
///
/// # Safety
/// The functions that take pointers read or write `Real::LANES` elements there (`lookup`: [`Lanes::CELLS`]; `list`: `LANES`
/// whatever the mask says), and all of them may only run on a CPU that has the instructions of the type.
pub(super) trait Lanes: Real {
    /// A whole number of 32 bits per lane.
    type Index: Copy;

    /// Cells of a tile's row, entries of a look-up table: a power of two, and a multiple of one register's lanes.
    const CELLS: usize;
    /// True if tables are kept by cells, for [`Lanes::lookup_four`].
    const BY_CELL: bool = false;
    /// True if tables of linear shapes have slopes of halves, for [`Lanes::lookup_half`]: where one instruction does that. Not
    /// together with [`Lanes::BY_CELL`].
    const HALVES: bool = false;

    /// Numbers from anywhere.
    unsafe fn load(from: *const Self::Scalar) -> Self;
    /// Numbers to anywhere.
    unsafe fn store(self, to: *mut Self::Scalar);
    /// Bytes, as whole numbers.
    unsafe fn load_cells(from: *const u8) -> Self::Index;
    /// The lower bytes of whole numbers.
    unsafe fn store_cells(i: Self::Index, to: *mut u8);
    /// Whole numbers.
    unsafe fn load_index(from: *const u32) -> Self::Index;
    /// Whole numbers.
    unsafe fn store_index(i: Self::Index, to: *mut u32);
    /// `table[i]` for each lane; `i` below [`Lanes::CELLS`].
    unsafe fn lookup(table: *const Self::Scalar, i: Self::Index) -> Self;
    /// `table[i]` for each lane; `i` below twice [`Lanes::CELLS`], and as many numbers are read.
    #[inline(always)]
    unsafe fn lookup_half(table: *const Self::Scalar, i: Self::Index) -> Self {
        // SAFETY: the caller's.
        unsafe { Self::gather(table, i) }
    }
    /// `cell`, plus [`Lanes::CELLS`] where `self` is below 0; -0 may be taken for either.
    #[inline(always)]
    fn half(self, cell: Self::Index) -> Self::Index {
        let cells = Self::splat(Self::Scalar::from_f64(Self::CELLS as f64));
        Self::plus(cell, Self::select(self.lt(Self::ZERO), cells, Self::ZERO).whole())
    }
    /// `table[at]`, `table[at + 1]`, `table[at + 2]` and `table[at + 3]` for each lane.
    #[inline(always)]
    unsafe fn lookup_four(table: *const Self::Scalar, at: Self::Index) -> [Self; 4] {
        // SAFETY: the caller's.
        unsafe { [Self::gather(table, at), Self::gather(table.add(1), at), Self::gather(table.add(2), at), Self::gather(table.add(3), at)] }
    }
    /// `from[i]` for each lane.
    unsafe fn gather(from: *const Self::Scalar, i: Self::Index) -> Self;
    /// [`crate::shapes::crossed`], above -3/2 and below 3/2: the nearest whole number, halves towards 0.
    #[must_use]
    #[inline(always)]
    fn crossed(self) -> Self {
        crate::shapes::crossed(self)
    }
    /// Mask of lanes in which at least one of two numbers is not 0.
    #[inline(always)]
    fn either(self, other: Self) -> Self::Mask {
        self.abs().gt(Self::ZERO) | other.abs().gt(Self::ZERO)
    }
    /// `self`, a whole number of small size, as such.
    fn whole(self) -> Self::Index;
    /// The number `i` as a real one.
    fn real(i: Self::Index) -> Self;
    /// `i` in every lane.
    fn every(i: u32) -> Self::Index;
    /// 0, 1, 2 and so on.
    fn iota() -> Self::Index;
    /// Sum, modulo 2^32.
    fn plus(a: Self::Index, b: Self::Index) -> Self::Index;
    /// Bits in both.
    fn both(a: Self::Index, b: Self::Index) -> Self::Index;
    /// `a << N`.
    fn left<const N: u32>(a: Self::Index) -> Self::Index;
    /// `a >> N`, zeros coming in.
    fn right<const N: u32>(a: Self::Index) -> Self::Index;
    /// The first `n` lanes.
    fn first(n: usize) -> Self::Mask;
    /// `self` where `mask` holds, 0 elsewhere.
    #[must_use]
    fn keep(self, mask: Self::Mask) -> Self;
    /// Writes the lanes of `i` where `mask` holds one after the other, and how many those are.
    unsafe fn list(mask: Self::Mask, i: Self::Index, to: *mut u32) -> usize;
    /// Adds the eight values of lane `l` to `to[at[l]..][..8]`, lane after lane. `to` and all `at` are multiples of 8 numbers
    /// from a multiple of 32 bytes.
    unsafe fn add_to_cells(values: [Self; 8], to: *mut Self::Scalar, at: *const u32);
}

/// True if some lane of a mask holds.
#[inline(always)]
pub(super) fn any<M: Mask>(mask: M) -> bool {
    mask.any()
}
