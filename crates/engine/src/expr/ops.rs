//! The operations of an expression: one table each for one, two and three operands. A row of a table gives the name in
//! the input and the formula; the forms for one value and for blocks of values both come from it.

/// One instruction of the flat program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    Number(f64),
    Variable(usize),
    One(One),
    Two(Two),
    Three(Three),
}

macro_rules! operations {
    ($(#[$doc:meta])* $kind:ident, $arity:ident: $($variant:ident $name:literal $formula:expr;)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $kind { $($variant),+ }

        impl $kind {
            /// All of them, with their names.
            pub(super) const ALL: &[(&'static str, $kind)] = &[$(($name, $kind::$variant)),+];

            /// The name in the input.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            operations!(@ $arity $($variant $formula;)+);
        }
    };
    (@ one $($variant:ident $formula:expr;)+) => {
        /// The value for one point.
        pub(super) fn apply(self, x: f64) -> f64 {
            match self { $(Self::$variant => ($formula as fn(f64) -> f64)(x)),+ }
        }

        /// Applies the function to a block of points, in place.
        pub(super) fn block(self, x: &mut [f64]) {
            match self { $(Self::$variant => for x in x { *x = ($formula as fn(f64) -> f64)(*x); }),+ }
        }
    };
    (@ two $($variant:ident $formula:expr;)+) => {
        /// The value for one point.
        pub(super) fn apply(self, x: f64, y: f64) -> f64 {
            match self { $(Self::$variant => ($formula as fn(f64, f64) -> f64)(x, y)),+ }
        }

        /// Applies the operation to a block of points, writing into the first operand.
        pub(super) fn block(self, x: &mut [f64], y: &[f64]) {
            let pairs = x.iter_mut().zip(y);
            match self { $(Self::$variant => for (x, y) in pairs { *x = ($formula as fn(f64, f64) -> f64)(*x, *y); }),+ }
        }
    };
    (@ three $($variant:ident $formula:expr;)+) => {
        /// The value for one point.
        pub(super) fn apply(self, x: f64, y: f64, z: f64) -> f64 {
            match self { $(Self::$variant => ($formula as fn(f64, f64, f64) -> f64)(x, y, z)),+ }
        }

        /// Applies the operation to a block of points, writing into the first operand.
        pub(super) fn block(self, x: &mut [f64], y: &[f64], z: &[f64]) {
            let triples = x.iter_mut().zip(y).zip(z);
            match self { $(Self::$variant => for ((x, y), z) in triples {
                *x = ($formula as fn(f64, f64, f64) -> f64)(*x, *y, *z);
            }),+ }
        }
    };
}

operations! {
    /// Operations on one value.
    One, one:
    Negate "-" |x| -x;
    Not "not" |x| truth(x == 0.0);
    Sin "sin" f64::sin;
    Cos "cos" f64::cos;
    Tan "tan" f64::tan;
    Asin "asin" f64::asin;
    Acos "acos" f64::acos;
    Atan "atan" f64::atan;
    Sinh "sinh" f64::sinh;
    Cosh "cosh" f64::cosh;
    Tanh "tanh" f64::tanh;
    Asinh "asinh" f64::asinh;
    Acosh "acosh" f64::acosh;
    Atanh "atanh" f64::atanh;
    Exp "exp" f64::exp;
    Expm1 "expm1" f64::exp_m1;
    Log "log" f64::ln;
    Log10 "log10" f64::log10;
    Log2 "log2" f64::log2;
    Log1p "log1p" f64::ln_1p;
    Sqrt "sqrt" f64::sqrt;
    Cbrt "cbrt" f64::cbrt;
    Abs "abs" f64::abs;
    Floor "floor" f64::floor;
    Ceil "ceil" f64::ceil;
    Round "round" f64::round;
    Trunc "trunc" f64::trunc;
    Sign "sign" |x| if x == 0.0 { x } else { x.signum() };
    Step "step" |x| if x.is_nan() { x } else { truth(x >= 0.0) };
    Erf "erf" erf;
    Erfc "erfc" erfc;
}

operations! {
    /// Operations on two values.
    Two, two:
    Or "or" |x, y| truth(x != 0.0 || y != 0.0);
    And "and" |x, y| truth(x != 0.0 && y != 0.0);
    Less "<" |x, y| truth(x < y);
    LessEqual "<=" |x, y| truth(x <= y);
    Greater ">" |x, y| truth(x > y);
    GreaterEqual ">=" |x, y| truth(x >= y);
    Equal "==" |x, y| truth(x == y);
    NotEqual "!=" |x, y| truth(x != y);
    Add "+" |x, y| x + y;
    Subtract "-" |x, y| x - y;
    Multiply "*" |x, y| x * y;
    Divide "/" |x, y| x / y;
    Power "^" power;
    Atan2 "atan2" f64::atan2;
    Hypot "hypot" f64::hypot;
    Modulo "mod" modulo;
    Min "min" |x, y| if x.is_nan() || x < y { x } else { y };
    Max "max" |x, y| if x.is_nan() || x > y { x } else { y };
}

operations! {
    /// Operations on three values.
    Three, three:
    If "if" |condition, then, other| if condition == 0.0 { other } else { then };
    Clamp "clamp" |x, low, high| if x < low { low } else if x > high { high } else { x };
    Gauss "gauss" |x, centre, sigma| { let t = (x - centre) / sigma; (-0.5 * t * t).exp() };
}

/// 1 for true and 0 for false.
fn truth(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// Squares and cubes are common and `powf` is slow.
fn power(x: f64, y: f64) -> f64 {
    if y == 2.0 {
        x * x
    } else if y == 3.0 {
        x * x * x
    } else {
        x.powf(y)
    }
}

/// The remainder with the sign of `y`: in [0, y) for positive `y`, so that it wraps a periodic coordinate.
fn modulo(x: f64, y: f64) -> f64 {
    let r = x % y;
    let r = if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r };
    // A tiny negative `x` rounds to `y` itself, which belongs to the next period.
    if r == y { 0.0 } else { r }
}

/// Argument at which the series gives way to the continued fraction; both converge quickly here.
const ERF_SPLIT: f64 = 2.5;

/// Error function: `2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!` (Abramowitz and Stegun 7.1.6, terms of one sign).
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > ERF_SPLIT {
        return x.signum() * (1.0 - erfc_fraction(a));
    }
    let mut term = x;
    let mut sum = x;
    let mut n = 1.0;
    while term.abs() > 0.25 * f64::EPSILON * sum.abs() {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// Complementary error function; beyond the split its relative error stays small where that of `1 - erf` grows.
pub fn erfc(x: f64) -> f64 {
    if x > ERF_SPLIT { erfc_fraction(x) } else { 1.0 - erf(x) }
}

/// `exp(-x^2) / sqrt(pi) * 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...))))` for `x > 0` (Abramowitz and Stegun 7.1.14).
fn erfc_fraction(x: f64) -> f64 {
    // From x = 2.5 on, 60 terms leave less than a rounding.
    let tail = (1..=60).rev().fold(x, |tail, n| x + 0.5 * f64::from(n) / tail);
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_function_against_tables() {
        // DLMF table 7.23 and Abramowitz and Stegun table 7.1, extended to 16 digits.
        for (x, value) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ] {
            // Three roundings of values of order one.
            assert!((erf(x) - value).abs() < 4.0 * f64::EPSILON, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        // exp(-x^2) costs x^2 roundings.
        for (x, value) in [(3.0, 2.209_049_699_858_544e-5), (5.0, 1.537_459_794_428_035e-12), (10.0, 2.088_487_583_762_545e-45)] {
            assert!((erfc(x) / value - 1.0).abs() < 1e-13, "erfc({x}) = {}", erfc(x));
        }
        assert!((erfc(-1.0) - 1.842_700_792_949_715).abs() < 4.0 * f64::EPSILON);
        // The two branches meet; the series adds some forty rounded terms.
        let (below, above) = (1.0 - erf(ERF_SPLIT), erfc_fraction(ERF_SPLIT));
        assert!((below - above).abs() < 8.0 * f64::EPSILON, "{below} {above}");
        assert!(erf(f64::NAN).is_nan() && erf(f64::INFINITY) == 1.0 && erfc(f64::INFINITY) == 0.0);
    }

    #[test]
    fn remainders_lie_in_their_period() {
        assert_eq!([modulo(5.5, 2.0), modulo(-0.5, 2.0), modulo(-4.0, 2.0), modulo(0.5, -2.0)], [1.5, 1.5, -0.0, -1.5]);
        assert_eq!(modulo(-1e-30, 1.0), 0.0);
    }
}
