//! Pictures of complex images: hue is the phase, brightness the modulus; a panel for each layer, with its share of the power, a
//! scale bar and a wheel of the phases.

use num_complex::Complex;
use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::record::Wave;

use super::ColourMap;
use super::canvas::{Anchor, Area, Canvas, Rgb};
use super::heat::PAPER;
use super::ticks::number;

const INK: Rgb = [34, 34, 38];
const TITLE: f32 = 36.0;
const LABEL: f32 = 25.0;
/// Pixels that the panels share along x, and that one is high at most.
const ROOM: (f64, f64) = (1240.0, 1100.0);
/// Space between panels.
const GAP: usize = 26;
/// Panels in a row at most.
const ROW: usize = 4;
const WHEEL: usize = 150;

/// Draws the layers.
pub(super) fn draw(wave: &Wave) -> Result<Canvas, String> {
    let [layers, rows, columns] = wave.shape;
    if wave.values.len() != layers * rows * columns || wave.values.is_empty() {
        return Err(format!("`{}` has {} values for {layers} layers of {rows} x {columns}", wave.name, wave.values.len()));
    }
    let across = (layers as f64).sqrt().ceil().min(ROW as f64) as usize;
    let down = layers.div_ceil(across);
    let share = (ROOM.0 - (GAP * (across - 1)) as f64) / across as f64;
    // Pixels need not be square.
    let aspect = (rows as f64 * wave.axes[1].spacing) / (columns as f64 * wave.axes[0].spacing).max(f64::MIN_POSITIVE);
    let aspect = if aspect.is_finite() { aspect.clamp(0.05, 20.0) } else { 1.0 };
    let wide = share.min(ROOM.1 / aspect);
    let (width, height) = (wide.round().max(2.0) as usize, (wide * aspect).round().max(2.0) as usize);
    let caption = if layers > 1 { 40 } else { 0 };
    let (left, top) = (44, 104);
    let right = left + across * width + (across - 1) * GAP;
    let mut canvas = Canvas::new(right + WHEEL + 120, top + down * (height + caption + GAP) + 40, PAPER);
    let middle = f32::midpoint(left as f32, right as f32);
    canvas.text((middle, 62.0), &wave.title, TITLE, INK, Anchor::Middle);
    let power = |layer: usize| wave.values[layer * rows * columns..][..rows * columns].iter().map(|v| f64::from(v.norm_sqr())).sum::<f64>();
    let total: f64 = (0..layers).map(power).sum();
    for layer in 0..layers {
        let area =
            Area { left: left + layer % across * (width + GAP), top: top + layer / across * (height + caption + GAP), width, height };
        paint(&mut canvas, area, &wave.values[layer * rows * columns..][..rows * columns], [rows, columns], wave.brightest);
        canvas.frame(area, 2, INK);
        if layers > 1 {
            let text = format!("mode {}: {:.1} %", layer + 1, 100.0 * power(layer) / total.max(f64::MIN_POSITIVE));
            canvas.text(
                (f32::midpoint(area.left as f32, area.right() as f32), (area.bottom() + 34) as f32),
                &text,
                LABEL,
                INK,
                Anchor::Middle,
            );
        }
        if layer == 0 {
            scale_bar(&mut canvas, area, columns as f64 * wave.axes[0].spacing, &wave.axes[0].unit);
        }
    }
    wheel(&mut canvas, (right + 40, top + 40));
    Ok(canvas)
}

fn colour(value: Complex<f32>, brightest: f32) -> Rgb {
    if !(value.re.is_finite() && value.im.is_finite()) {
        return [176, 176, 176];
    }
    let turn = f64::from(value.arg()) / std::f64::consts::TAU + 0.5;
    let bright = (value.norm() / brightest).clamp(0.0, 1.0);
    // The map has one lightness: stretched a little so that the brightest is bright.
    ColourMap::Cyclic.colour(turn).map(|c| (f32::from(c) * 1.12 * bright).min(255.0) as u8)
}

fn paint(canvas: &mut Canvas, area: Area, values: &[Complex<f32>], [rows, columns]: [usize; 2], most: Option<f32>) {
    let mut moduli: Vec<f32> = values.iter().map(|v| v.norm()).filter(|v| v.is_finite()).collect();
    moduli.sort_unstable_by(f32::total_cmp);
    // A few hot pixels must not darken the rest.
    let brightest = moduli.get(moduli.len().saturating_sub(1 + moduli.len() / 1000)).copied().unwrap_or(1.0);
    let brightest = most.map_or(brightest, |most| brightest.min(most)).max(f32::MIN_POSITIVE);
    let across = canvas.width;
    let lines = chunks_mut(&mut canvas.pixels[area.top * across..area.bottom() * across], across);
    each(lines, |y, line| {
        let row = (y * rows / area.height).min(rows - 1);
        for (x, pixel) in line[area.left..area.right()].iter_mut().enumerate() {
            let column = (x * columns / area.width).min(columns - 1);
            *pixel = colour(values[row * columns + column], brightest);
        }
    });
}

/// A bar of a round length in the lower left corner.
fn scale_bar(canvas: &mut Canvas, area: Area, width: f64, unit: &str) {
    if !(width > 0.0 && width.is_finite()) {
        return;
    }
    let decade = 10f64.powf((width / 4.0).log10().floor());
    let length = [5.0, 2.0, 1.0].into_iter().map(|m| m * decade).find(|l| *l <= width / 4.0).unwrap_or(decade);
    let pixels = (length / width * area.width as f64).round() as usize;
    let text = if unit == "m" { metres(length) } else { format!("{} {unit}", number(length)) };
    let (x, y) = (area.left + 22, area.bottom() - 26);
    let back = Area { left: x - 10, top: y - 46, width: pixels.max(text.len() * 14) + 24, height: 62 };
    for row in back.top..back.bottom() {
        for column in back.left..back.right().min(area.right()) {
            canvas.blend(column as i32, row as i32, [0, 0, 0], 0.45);
        }
    }
    canvas.fill(Area { left: x, top: y, width: pixels, height: 7 }, [255, 255, 255]);
    canvas.text((x as f32, y as f32 - 12.0), &text, LABEL, [255, 255, 255], Anchor::Start);
}

/// A length with a prefix: `200 nm`.
fn metres(length: f64) -> String {
    let prefixes = [(1e-12, "pm"), (1e-9, "nm"), (1e-6, "µm"), (1e-3, "mm"), (1.0, "m")];
    let (unit, name) = prefixes.into_iter().rev().find(|(u, _)| length >= u * 0.999).unwrap_or(prefixes[0]);
    format!("{} {name}", number((length / unit).round()))
}

/// Phases around a circle, moduli from its middle.
fn wheel(canvas: &mut Canvas, (left, top): (usize, usize)) {
    let radius = WHEEL as f32 / 2.0;
    for y in 0..WHEEL {
        for x in 0..WHEEL {
            let (dx, dy) = (x as f32 + 0.5 - radius, radius - y as f32 - 0.5);
            let r = dx.hypot(dy) / radius;
            let alpha = ((1.0 - r) * radius).clamp(0.0, 1.0);
            canvas.blend((left + x) as i32, (top + y) as i32, colour(Complex::new(dx, dy) / radius, 1.0), alpha);
        }
    }
    let middle = (left as f32 + radius, top as f32 + radius);
    canvas.text((middle.0, top as f32 - 12.0), "π/2", LABEL, INK, Anchor::Middle);
    canvas.text((middle.0, (top + WHEEL) as f32 + 32.0), "−π/2", LABEL, INK, Anchor::Middle);
    canvas.text(((left + WHEEL) as f32 + 10.0, middle.1 + 9.0), "0", LABEL, INK, Anchor::Start);
    canvas.text((left as f32 - 8.0, middle.1 + 9.0), "π", LABEL, INK, Anchor::End);
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::Axis;

    use super::*;

    fn ramp(layers: usize) -> Wave {
        let value = |i: usize| Complex::from_polar((i % 7) as f32, 0.3 * i as f32);
        let axis = |d: usize, n: usize| Axis { unit: "m".into(), ..Axis::bare(d, 0.0, 2e-8, n) };
        let (name, title) = ("probe".into(), "probe".into());
        Wave {
            name,
            title,
            shape: [layers, 20, 30],
            axes: [axis(0, 30), axis(1, 20)],
            values: (0..layers * 600).map(value).collect(),
            brightest: None,
            live: false,
        }
    }

    #[test]
    fn what_is_beyond_the_brightest_does_not_darken_the_rest() {
        let (mut plain, mut rimmed) = (ramp(1), ramp(1));
        plain.brightest = Some(6.0);
        rimmed.brightest = plain.brightest;
        // A column of the border, more than a thousandth of the pixels.
        rimmed.values.iter_mut().step_by(30).for_each(|v| *v *= 50.0);
        let [plain, rimmed] = [plain, rimmed].map(|wave| draw(&wave).unwrap());
        let half = |c: &Canvas| (0..c.height).flat_map(|y| c.pixels[y * c.width..][c.width / 4..c.width / 2].to_vec()).collect::<Vec<_>>();
        assert_eq!(half(&plain), half(&rimmed));
    }

    #[test]
    fn every_number_of_layers_has_its_panels() {
        for layers in [1, 2, 3, 5, 9, 17] {
            let canvas = draw(&ramp(layers)).unwrap();
            assert_eq!(canvas.pixels.len(), canvas.width * canvas.height);
            let inked = canvas.pixels.iter().filter(|p| **p != PAPER).count();
            assert!(inked * 3 > canvas.pixels.len(), "{layers}: {inked} of {}", canvas.pixels.len());
        }
        assert!(draw(&Wave { values: Vec::new(), ..ramp(1) }).is_err());
    }

    #[test]
    fn phase_is_hue_and_modulus_brightness() {
        let at = |modulus: f32, phase: f32| colour(Complex::from_polar(modulus, phase), 1.0);
        assert_eq!(at(0.0, 1.0), [0, 0, 0]);
        let sum = |c: Rgb| c.iter().map(|v| u32::from(*v)).sum::<u32>();
        assert!(sum(at(0.5, 1.0)) < sum(at(1.0, 1.0)) && at(1.0, 1.0) != at(1.0, 2.0));
        // The circle closes: 8-bit steps of the map.
        let edge = std::f32::consts::PI - 1e-5;
        let (a, b) = (at(1.0, -edge), at(1.0, edge));
        assert!(a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 7), "{a:?} {b:?}");
        assert_eq!((metres(2e-7).as_str(), metres(1e-6).as_str()), ("200 nm", "1 µm"));
    }
}
