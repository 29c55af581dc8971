//! Functions in single precision that the compiler can vectorise and that give the same bits on every machine: polynomials, no
//! library calls. Also a row of Philox blocks at a time.

use zellige_engine::rng::Philox;

/// Base-2 logarithm of a positive normal number: error below 3e-7 absolutely or relatively.
///
/// `x = 2^e m` with m in `[sqrt(1/2), sqrt(2))`, `log2 m = (2/ln 2) atanh s`, `s = (m - 1)/(m + 1)`, `|s| < 0.1716`.
#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    let bits = x.to_bits().wrapping_sub(0x3F35_04F3);
    let exponent = (bits as i32) >> 23;
    let m = f32::from_bits((bits & 0x007F_FFFF).wrapping_add(0x3F35_04F3));
    let s = (m - 1.0) / (m + 1.0);
    let t = s * s;
    // (2/ln 2) (1 + t/3 + t^2/5 + t^3/7 + t^4/9): the next term is 4e-10 of the sum.
    let p = 2.885_39 + t * (0.961_796_7 + t * (0.577_078_04 + t * (0.412_198_6 + t * 0.320_598_9)));
    exponent as f32 + s * p
}

/// 2 to a power between -126 and 127: relative error below 2e-7.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    let x = x.clamp(-126.0, 127.0);
    // Rounding to nearest by the addition of 1.5 * 2^23: no instruction beyond the base set.
    const ROUND: f32 = 12_582_912.0;
    let n = (x + ROUND) - ROUND;
    let y = x - n;
    // Taylor's series of 2^y up to y^7, |y| <= 1/2: the rest is below 6e-9.
    let p = 1.0
        + y * (std::f32::consts::LN_2
            + y * (0.240_226_5 + y * (0.055_504_11 + y * (0.009_618_129 + y * (0.001_333_355_8 + y * (1.540_353e-4 + y * 1.525_273e-5))))));
    p * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

/// `x` to the power `y`, `x` positive or 0.
#[inline(always)]
pub(super) fn power(x: f32, y: f32) -> f32 {
    if x > 0.0 { exp2(y * log2(x.max(f32::MIN_POSITIVE))) } else { 0.0 }
}

/// Sine and cosine of `2 pi u`, `0 <= u <= 1`: error below 3e-7.
#[inline(always)]
pub(super) fn turn(u: f32) -> (f32, f32) {
    // u = q/4 + r with |r| <= 1/8; then the angle is at most pi/4.
    let q = (4.0 * u + 0.5) as i32;
    let r = u - 0.25 * q as f32;
    let (x, x2) = (std::f32::consts::TAU * r, (std::f32::consts::TAU * r) * (std::f32::consts::TAU * r));
    let s = x * (1.0 - x2 * (1.666_666_7e-1 - x2 * (8.333_333e-3 - x2 * (1.984_127e-4 - x2 * 2.755_731_9e-6))));
    let c = 1.0 - x2 * (0.5 - x2 * (4.166_666_8e-2 - x2 * (1.388_888_9e-3 - x2 * 2.480_158_7e-5)));
    let (a, b) = if q & 1 == 0 { (s, c) } else { (c, s) };
    (if q & 2 == 0 { a } else { -a }, if (q + 1) & 2 == 0 { b } else { -b })
}

/// Blocks of random words for many items of one step, word by word.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Upper and lower word of the items' indices.
    pub(super) items: [Vec<u32>; 2],
    /// The four words of each item.
    pub(super) words: [Vec<u32>; 4],
}

impl Words {
    /// Draws for all items: the words of `Philox::draw(step, index)`.
    #[inline(always)]
    pub(super) fn draw(&mut self, purpose: u32, seed: u64, step: u64) {
        let n = self.items[0].len();
        for w in &mut self.words {
            if w.len() < n {
                w.resize(n, 0);
            }
        }
        let high = ((step >> 32) as u32 & 0xFFFF) | (purpose << 16);
        let (item_high, item_low) = (&self.items[0][..n], &self.items[1][..n]);
        let [a, b, c, d] = &mut self.words;
        let (a, b, c, d) = (&mut a[..n], &mut b[..n], &mut c[..n], &mut d[..n]);
        let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
        // Rounds of `rng::philox`, over rows: blocks that stay in the first cache, so that every round vectorises.
        for i in 0..n {
            (a[i], b[i], c[i], d[i]) = (item_low[i], item_high[i], step as u32, high);
        }
        const BLOCK: usize = 256;
        let mut at = 0;
        while at < n {
            let end = (at + BLOCK).min(n);
            (k0, k1) = (seed as u32, (seed >> 32) as u32);
            for _ in 0..10 {
                round(&mut a[at..end], &mut b[at..end], &mut c[at..end], &mut d[at..end], k0, k1);
                k0 = k0.wrapping_add(0x9E37_79B9);
                k1 = k1.wrapping_add(0xBB67_AE85);
            }
            at = end;
        }
        let _ = (k0, k1);
    }
}

#[inline(always)]
fn round(a: &mut [u32], b: &mut [u32], c: &mut [u32], d: &mut [u32], k0: u32, k1: u32) {
    let n = a.len();
    let (b, c, d) = (&mut b[..n], &mut c[..n], &mut d[..n]);
    for i in 0..n {
        let x = 0xD251_1F53_u64 * u64::from(a[i]);
        let y = 0xCD9E_8D57_u64 * u64::from(c[i]);
        (a[i], b[i], c[i], d[i]) = ((y >> 32) as u32 ^ b[i] ^ k0, y as u32, (x >> 32) as u32 ^ d[i] ^ k1, x as u32);
    }
}

/// Steps between pages of a stream: runs have fewer than 2^40.
const NEXT_PAGE: u64 = 1 << 40;

/// Numbers one after the other for one item of a step.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    philox: Philox,
    step: u64,
    index: u64,
    words: [u32; 4],
    left: usize,
    blocks: u64,
}

impl Stream {
    /// For `item`, which has 2^12 words on a page.
    pub(crate) fn new(purpose: u32, seed: u64, step: u64, item: u64) -> Self {
        Self::with_room(purpose, seed, step, item, 10)
    }

    /// For `item`, which has `4 << bits` words on a page, and 256 pages.
    pub(crate) fn with_room(purpose: u32, seed: u64, step: u64, item: u64, bits: u32) -> Self {
        Self { philox: Philox::new(purpose, seed), step, index: item << bits, words: [0; 4], left: 0, blocks: 1 << bits }
    }

    /// A word.
    pub(crate) fn word(&mut self) -> u32 {
        if self.left == 0 {
            self.words = self.philox.draw(self.step, self.index);
            self.index += 1;
            self.left = 4;
            if self.index & (self.blocks - 1) == 0 {
                // Next indices belong to the next item. Upper bits of the step, to which no run comes, number the pages.
                self.index -= self.blocks;
                self.step += NEXT_PAGE;
            }
        }
        self.left -= 1;
        self.words[self.left]
    }

    /// Uniform in (0, 1).
    pub(crate) fn open(&mut self) -> f64 {
        let (a, b) = (self.word(), self.word());
        zellige_engine::rng::open_f64(a, b)
    }

    /// Two normal numbers.
    pub(crate) fn normals(&mut self) -> [f64; 2] {
        let (a, b) = (self.open(), self.open());
        zellige_engine::rng::normal_pair(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_as_good_as_they_say() {
        for i in 1..200_000 {
            let x = 1e-20_f32 * 1.000_4_f32.powi(i);
            let want = f64::from(x).log2();
            assert!((f64::from(log2(x)) - want).abs() < 3e-7 * want.abs().max(1.0), "log2 {x}");
            let y = -120.0 + i as f32 * 1.2e-3;
            assert!((f64::from(exp2(y)) / f64::from(y).exp2() - 1.0).abs() < 2e-7, "exp2 {y}");
            let u = i as f32 / 200_000.0;
            let (s, c) = (std::f64::consts::TAU * f64::from(u)).sin_cos();
            let (a, b) = turn(u);
            assert!((f64::from(a) - s).abs() < 3e-7 && (f64::from(b) - c).abs() < 3e-7, "turn {u}");
        }
        assert_eq!((power(0.0, 0.3), log2(1.0), exp2(3.0)), (0.0, 0.0, 8.0));
    }

    /// A particle between walls draws more than a page: none of it is its neighbour's.
    #[test]
    fn items_share_no_words() {
        let words = |item: u64| {
            let mut stream = Stream::new(4, 99, 7, item);
            (0..3 * 4096).map(|_| stream.word()).collect::<Vec<_>>()
        };
        let philox = Philox::new(4, 99);
        let first = |step: u64, index: u64| philox.draw(step, index)[3];
        let own = words(5);
        assert_eq!((own[0], own[4096], own[8192]), (first(7, 5 << 10), first(7 + (1 << 40), 5 << 10), first(7 + (2 << 40), 5 << 10)));
        let mut all: Vec<u32> = (4..8).flat_map(words).collect();
        all.sort_unstable();
        let twice = all.windows(2).filter(|w| w[0] == w[1]).count();
        // Of 49 152 words of 32 bits 0.3 pairs are equal by chance; a shared page would be 4096.
        assert!(twice < 10, "{twice} words are there twice");
    }

    #[test]
    fn rows_of_blocks_are_those_of_the_engine() {
        let mut words = Words::default();
        for i in 0..700_u32 {
            words.items[0].push(i * 7);
            words.items[1].push(i ^ 0x55);
        }
        let (seed, step) = (0x1234_5678_9ABC, (7 << 32) + 5);
        words.draw(9, seed, step);
        let philox = Philox::new(9, seed);
        for i in 0..700 {
            let index = u64::from(words.items[0][i]) << 32 | u64::from(words.items[1][i]);
            assert_eq!([0, 1, 2, 3].map(|w| words.words[w][i]), philox.draw(step, index));
        }
    }
}
