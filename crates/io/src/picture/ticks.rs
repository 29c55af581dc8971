//! Ticks at round values, and their labels.

/// Marks of one axis: positions with labels, and a factor common to all labels, for example `×10⁻³`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ticks {
    pub(super) marks: Vec<(f64, String)>,
    pub(super) factor: Option<String>,
}

/// The smallest step of the form 1, 2 or 5 times a power of ten that yields at most `most` intervals.
fn round_step(span: f64, most: usize) -> f64 {
    let raw = span / most.max(1) as f64;
    let decade = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * decade).find(|&s| s >= raw * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
}

/// Ticks of a linear axis over `[low, high]`: about `most` intervals, at least three marks.
pub(super) fn linear(low: f64, high: f64, most: usize) -> Ticks {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return Ticks { marks: vec![(low, number(low))], factor: None };
    }
    let inside = |step: f64| ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
    // A coarse step may leave one mark only, which says nothing about the scale.
    let step = (most..3 * most).map(|m| round_step(span, m)).find(|&s| inside(s).1 - inside(s).0 >= 2.0);
    let step = step.unwrap_or_else(|| round_step(span, 3 * most.max(1) - 1));
    let (first, last) = inside(step);
    let count = (last - first).max(0.0) as usize;
    let values: Vec<f64> = (0..=count).map(|i| (first + i as f64) * step).collect();
    let largest = low.abs().max(high.abs());
    let exponent = largest.log10().floor() as i32;
    // Exponents from -2 to 4 read well as they are.
    let power = if (-2..=4).contains(&exponent) { 0 } else { exponent };
    let scale = 10f64.powi(power);
    let decimals = (power - (step * (1.0 + 1e-9)).log10().floor() as i32).max(0) as usize;
    let marks = values.iter().map(|&v| (v, minus(&format!("{:.*}", decimals.min(12), (v + 0.0) / scale)))).collect();
    Ticks { marks, factor: (power != 0).then(|| format!("×10{}", superscript(power))) }
}

/// Distance of contour lines over `[low, high]`: a dozen or so.
pub(super) fn contour_step(low: f64, high: f64) -> f64 {
    let raw = (high - low) / 18.0;
    let decade = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 2.5, 5.0].into_iter().map(|m| m * decade).find(|&s| s >= raw).unwrap_or(10.0 * decade)
}

/// Ticks of a logarithmic axis over `[low, high]`, both positive, at powers of ten; where fewer than two of these are inside, also
/// at 2 and 5 times them.
pub(super) fn logarithmic(low: f64, high: f64, most: usize) -> Ticks {
    let (first, last) = ((low.log10() - 1e-9).ceil() as i32, (high.log10() + 1e-9).floor() as i32);
    if last <= first {
        let values = (first - 1..=last).flat_map(|p| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(p)));
        let inside: Vec<f64> = values.filter(|v| (low..=high).contains(v)).collect();
        let shown = if inside.is_empty() { vec![low, high] } else { inside };
        return Ticks { marks: shown.into_iter().map(|v| (v, number(v))).collect(), factor: None };
    }
    let stride = ((last - first) as usize).div_ceil(most.max(1)).max(1);
    let marks =
        (first..=last).filter(|p| p.rem_euclid(stride as i32) == 0).map(|p| (10f64.powi(p), format!("10{}", superscript(p)))).collect();
    Ticks { marks, factor: None }
}

/// Ticks of a full turn.
pub(super) fn turn() -> Ticks {
    use std::f64::consts::{FRAC_PI_2, PI};
    let marks = [(-PI, "−π"), (-FRAC_PI_2, "−π/2"), (0.0, "0"), (FRAC_PI_2, "π/2"), (PI, "π")];
    Ticks { marks: marks.map(|(v, text)| (v, text.to_owned())).into(), factor: None }
}

/// An integer in superscript digits.
pub(super) fn superscript(n: i32) -> String {
    n.to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32(0x2070 + digit as u32 - '0' as u32).unwrap_or(digit),
        })
        .collect()
}

fn minus(text: &str) -> String {
    let text = if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-') } else { text };
    text.replace('-', "−")
}

/// A value in at most four significant digits, as text in a picture.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    if (-3..5).contains(&exponent) {
        let text = format!("{value:.*}", (3 - exponent).max(0) as usize);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return minus(text);
    }
    // Rust's own scientific notation rounds before it takes the exponent: 9.9999e-10 becomes 1.000e-9.
    let text = format!("{value:.3e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    minus(mantissa) + "×10" + &superscript(exponent.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.marks.iter().map(|m| m.1.as_str()).collect()
    }

    #[test]
    fn steps_are_round_and_labels_short() {
        assert_eq!(labels(&linear(0.0, 1.0, 6)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear(-0.3, 0.3, 7)), ["−0.3", "−0.2", "−0.1", "0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(&linear(-1.95, 1.95, 3)), ["−1", "0", "1"]);
        assert_eq!(labels(&linear(-0.02, 1.02, 1)), ["0", "1"]);
        let small = linear(-2.1e-7, 2.1e-7, 5);
        assert_eq!(labels(&small), ["−2", "−1", "0", "1", "2"]);
        assert_eq!(small.factor.as_deref(), Some("×10⁻⁷"));
        assert_eq!(labels(&linear(0.0, 4096.0, 5)), ["0", "1000", "2000", "3000", "4000"]);
        assert_eq!(labels(&linear(1000.0, 1000.25, 5)), ["1000.00", "1000.05", "1000.10", "1000.15", "1000.20", "1000.25"]);
    }

    #[test]
    fn powers_of_ten_are_thinned_out() {
        assert_eq!(labels(&logarithmic(1e-3, 1.0, 8)), ["10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(labels(&logarithmic(1e-12, 1.0, 6)), ["10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]);
        assert_eq!(labels(&logarithmic(188.5, 5622.0, 8)), ["200", "500", "1000", "2000", "5000"]);
        assert_eq!(labels(&logarithmic(2e-7, 6e-7, 8)), ["2×10⁻⁷", "5×10⁻⁷"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(-1.5), "−1.5");
        assert_eq!(number(1234.0), "1234");
        assert_eq!(number(6.02214e23), "6.022×10²³");
        assert_eq!(number(-1e-7), "−1×10⁻⁷");
        assert_eq!(number(9.9999e-10), "1×10⁻⁹");
    }
}
