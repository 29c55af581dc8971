//! Structs of kernels: what `#[device]` needs to state their layout in C++ and to write their bytes.

use super::launch::Argument;

/// Digits of a number in a text.
const DIGITS: usize = 4;

/// A text with each `####` replaced by the next of `numbers`.
///
/// # Panics
/// Where a number has more digits, or there are more or fewer of them.
pub const fn with_numbers<const N: usize, const K: usize>(mut text: [u8; N], numbers: [usize; K]) -> [u8; N] {
    let (mut at, mut k) = (0, 0);
    while at < N {
        if text[at] == b'#' {
            let (mut rest, mut digit) = (numbers[k], at + DIGITS);
            while digit > at {
                digit -= 1;
                text[digit] = if rest > 0 || digit + 1 == at + DIGITS { b'0' + (rest % 10) as u8 } else { b' ' };
                rest /= 10;
            }
            assert!(rest == 0, "a struct or an array is too large");
            at += DIGITS;
            k += 1;
        } else {
            at += 1;
        }
    }
    assert!(k == K, "every number has a place");
    text
}

/// Writes a field of a struct at its offset.
pub fn put<A: Argument>(bytes: &mut [u8], at: usize, field: A) {
    let value = field.value();
    bytes[at..][..size_of::<A::Value>()].copy_from_slice(bytemuck::bytes_of(&value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_their_places() {
        assert_eq!(&with_numbers(*b"a[####]; == ####", [0, 1234]), b"a[   0]; == 1234");
        assert_eq!(&with_numbers(*b"########", [90, 8]), b"  90   8");
    }

    #[test]
    #[should_panic(expected = "too large")]
    fn a_number_has_room() {
        with_numbers(*b"####", [10_000]);
    }

    #[test]
    #[should_panic(expected = "has a place")]
    fn no_number_is_left_over() {
        with_numbers(*b"####", [1, 2]);
    }
}
