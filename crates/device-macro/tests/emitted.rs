//! The C++ that the attribute emits, word for word. What it computes is tested in `engine`, with compilers.

#![allow(dead_code, unused_mut, clippy::nonminimal_bool, reason = "here only the text matters")]

use zellige_device_macro::{device, device_source};

trait Real:
    Copy + std::ops::Add<Output = Self> + std::ops::Sub<Output = Self> + std::ops::Mul<Output = Self> + std::ops::Div<Output = Self>
{
    type Mask: std::ops::BitAnd<Output = Self::Mask> + std::ops::Not<Output = Self::Mask>;
    const HALF: Self;
    const ONE: Self;
    fn from_f64(x: f64) -> Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn lt(self, other: Self) -> Self::Mask;
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
}

fn select<R: Real>(mask: R::Mask, a: R, b: R) -> R {
    R::select(mask, a, b)
}

#[device]
#[derive(Clone, Copy)]
struct Pair<R> {
    first: R,
    double: R,
}

#[device]
#[derive(Clone, Copy)]
struct Particle {
    x: f32,
    cell: u32,
    weight: f64,
    alive: bool,
}

#[device]
const OMEGA: f32 = -1.15;

#[device]
fn relaxed<R: Real>(e: R, around: R, r: R, omega: f64) -> R {
    let e_new = (around - r) * R::from_f64(0.25);
    e + R::from_f64(omega) * (e_new - e)
}

#[test]
fn generic_functions_become_templates() {
    assert_eq!(
        RELAXED_CUDA,
        "\
template <typename R>
__device__ inline R relaxed(R e, R around, R r, double omega) {
    const R e_new = (around - r) * R(0.25);
    return e + R(omega) * (e_new - e);
}
"
    );
}

#[device]
fn parted<R: Real>(p: Pair<R>, x: R) -> Pair<R> {
    let inside: R::Mask = x.lt(R::ONE) & !p.first.lt(x);
    Pair { double: select(inside, p.first, R::mul_add(p.double, x, R::HALF)), first: x.min(p.first) }
}

#[test]
fn structs_masks_and_trait_methods() {
    assert_eq!(
        PAIR_CUDA,
        "\
template <typename R>
struct Pair {
    R first;
    R double_;
};
static_assert(sizeof(Pair<float>) ==    8, \"size of Pair<float> in Rust\");
static_assert(ZL_OFFSET(first, Pair<float>) ==    0, \"offset of Pair<float>::first in Rust\");
static_assert(ZL_OFFSET(double_, Pair<float>) ==    4, \"offset of Pair<float>::double_ in Rust\");
static_assert(sizeof(Pair<double>) ==   16, \"size of Pair<double> in Rust\");
static_assert(ZL_OFFSET(first, Pair<double>) ==    0, \"offset of Pair<double>::first in Rust\");
static_assert(ZL_OFFSET(double_, Pair<double>) ==    8, \"offset of Pair<double>::double_ in Rust\");
"
    );
    assert_eq!(
        PARTED_CUDA,
        "\
template <typename R>
__device__ inline Pair<R> parted(Pair<R> p, R x) {
    const bool inside = x < R(1) & !(p.first < x);
    return [&] { Pair<R> zl_s{}; zl_s.double_ = zl::select(inside, p.first, zl::mul_add(p.double_, x, R(0.5))); zl_s.first = zl::min(x, p.first); return zl_s; }();
}
"
    );
    let declaration = "struct Particle {\n    float x;\n    unsigned int cell;\n    double weight;\n    bool alive;\n};\nstatic_assert(";
    assert!(PARTICLE_CUDA.starts_with(declaration), "{PARTICLE_CUDA}");
}

/// Precedence: C++ binds comparisons tighter than `&`, Rust the other way round.
#[device]
fn bits(a: u32, b: u32, n: u32) -> bool {
    let mixed = a ^ b & 0xff | a << (n + 1) >> 2;
    let flipped = !mixed & !(a | b);
    flipped & 7 == 3 || !(a == b) && -(-(a as i64)) - (2 - b as i64) < 0
}

#[test]
fn precedence_is_that_of_rust() {
    assert_eq!(
        BITS_CUDA,
        "\
__device__ inline bool bits(unsigned int a, unsigned int b, unsigned int n) {
    const unsigned int mixed = a ^ b & 255u | a << n + 1u >> 2;
    const unsigned int flipped = ~mixed & ~(a | b);
    return (flipped & 7u) == 3u || !(a == b) && -(-static_cast<long long>(a)) - (2ll - static_cast<long long>(b)) < 0ll;
}
"
    );
}

#[device]
fn literals(x: f32, p: Particle) -> f64 {
    let half = 0.5 * x + 1e-3;
    let y = 2. * p.weight;
    let far: f64 = std::f64::consts::PI;
    let n = p.cell + 1;
    let z = (half * OMEGA - 3.0).abs();
    if p.alive && n > 0 { f64::from(z) } else { y.max(0.0) * far }
}

#[test]
fn literals_have_the_type_of_their_surroundings() {
    assert_eq!(OMEGA_CUDA, "static constexpr float OMEGA = -1.15f;\n");
    assert_eq!(
        LITERALS_CUDA,
        "\
__device__ inline double literals(float x, Particle p) {
    const float half = 0.5f * x + 1e-3f;
    const auto y = zl::like(p.weight, 2.0) * p.weight;
    const double far = 3.141592653589793e0;
    const auto n = p.cell + zl::like(p.cell, 1);
    const float z = zl::abs(half * OMEGA - 3.0f);
    if (p.alive && n > zl::like(n, 0)) {
        return static_cast<double>(z);
    } else {
        return zl::fmax(y, zl::like(y, 0.0)) * far;
    }
}
"
    );
}

#[device]
fn control(mut x: f64, n: u32) -> f64 {
    if x < 0.0 {
        return -x;
    }
    let x = x * 2.0;
    let mut sum = if n == 0 { 1.0 } else { x };
    for i in 0..n {
        let x = x - f64::from(i);
        if i == 7 {
            break;
        } else if i % 2 == 1 {
            continue;
        }
        sum += x.mul_add(x, 1.0);
    }
    let last: f64 = if sum > 9.0 {
        let half = sum * 0.5;
        half - 1.0
    } else {
        sum
    };
    last.sqrt()
}

#[test]
fn control_flow_and_shadowing() {
    assert_eq!(
        CONTROL_CUDA,
        "\
__device__ inline double control(double x, unsigned int n) {
    if (x < 0.0) {
        return -x;
    }
    const double x_2 = x * 2.0;
    double sum = n == 0u ? 1.0 : x_2;
    const unsigned int i_end = n;
    for (unsigned int i = 0u; i < i_end; ++i) {
        const double x_3 = x_2 - static_cast<double>(i);
        if (i == 7u) {
            break;
        } else if (i % 2u == 1u) {
            continue;
        }
        sum += zl::fma(x_3, x_3, 1.0);
    }
    const double last = [&]() -> double {
        if (sum > 9.0) {
            const double half = sum * 0.5;
            return half - 1.0;
        } else {
            return sum;
        }
    }();
    return zl::sqrt(last);
}
"
    );
}

/// One round of a counter-based generator.
#[device]
fn halved(x: f64) -> f64 {
    f64::from_bits(x.to_bits() - (1_u64 << 52))
}

#[test]
fn bits_of_numbers() {
    assert_eq!(halved(3.0), 1.5);
    assert!(HALVED_CUDA.contains("zl::from_bits(zl::to_bits(x) - (1ull << 52))"), "{HALVED_CUDA}");
}

#[device]
fn round(counter: u32, key: u32) -> u32 {
    let product = counter as u64 * 0xD251_1F53;
    (product >> 32) as u32 ^ key.wrapping_add(0x9E37_79B9) ^ round_helper(product as u32)
}

#[device]
fn round_helper(x: u32) -> u32 {
    x
}

#[test]
fn integers_and_calls() {
    assert_eq!(
        ROUND_CUDA,
        "\
__device__ inline unsigned int round(unsigned int counter, unsigned int key) {
    const unsigned long long product = static_cast<unsigned long long>(counter) * 3528531795ull;
    return static_cast<unsigned int>(product >> 32) ^ zl::wrapping_add(key, 2654435769u) ^ round_helper(static_cast<unsigned int>(product));
}
"
    );
}

#[test]
fn sources_are_collected_in_order() {
    mod inner {
        use super::device;
        #[device]
        pub(crate) fn one() -> i32 {
            1
        }
    }
    assert_eq!(device_source![Particle, OMEGA, inner::one, round_helper], [PARTICLE_CUDA, OMEGA_CUDA, inner::ONE_CUDA, ROUND_HELPER_CUDA]);
    assert_eq!(inner::ONE_CUDA, "__device__ inline int one() {\n    return 1;\n}\n");
    assert_eq!(inner::one(), 1);
}
