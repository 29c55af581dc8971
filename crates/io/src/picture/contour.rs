//! Contour lines on the raster of a picture: a pixel is as dark as it is near to a level, measured in pixels by the local
//! slope, which yields smooth lines of constant width without tracing them.

use zellige_engine::parallel::{chunks_mut, each};

use super::canvas::{Area, Canvas, blend};

/// Half width of a line in pixels.
const HALF: f64 = 0.75;
/// Weight of a line at its middle.
const STRENGTH: f64 = 0.45;

/// Returns true if contour lines would follow the field rather than its noise: slopes that persist over several pixels.
pub(super) fn is_smooth(values: &[f64], width: usize) -> bool {
    const STEP: usize = 4;
    let (mut slope, mut bend) = (0.0, 0.0);
    for start in (0..values.len()).step_by(STEP) {
        let (x, y) = (start % width, start / width);
        for stride in [STEP, STEP * width] {
            let fits = if stride == STEP { x + 2 * STEP < width } else { start + 2 * stride < values.len() };
            if fits && y % STEP == 0 {
                let (a, b, c) = (values[start], values[start + stride], values[start + 2 * stride]);
                if (a + b + c).is_finite() {
                    slope += (c - a).abs() / 2.0;
                    bend += (a - 2.0 * b + c).abs();
                }
            }
        }
    }
    slope > 0.0 && bend < 0.35 * slope
}

/// Draws the lines at the multiples of `step` over `area`, whose values (in rows from the top) are `values`; that of zero where
/// `zero` says so: around a field that has died away it would only follow noise, and a diverging map marks it anyway.
pub(super) fn draw(canvas: &mut Canvas, area: Area, values: &[f64], step: f64, zero: bool) {
    let (width, height, across) = (area.width, area.height, canvas.width);
    let rows = chunks_mut(&mut canvas.pixels[area.top * across..(area.top + height) * across], across);
    each(rows, |y, row| {
        if y == 0 || y + 1 >= height {
            return;
        }
        for x in 1..width.saturating_sub(1) {
            let at = |dx: usize, dy: usize| values[(y + dy - 1) * width + x + dx - 1];
            let value = at(1, 1);
            let slope = f64::hypot(at(2, 1) - at(0, 1), at(1, 2) - at(1, 0)) / 2.0;
            // Lines closer than a few pixels would be a smear; on a plateau the distance has no meaning.
            if !slope.is_finite() || slope < 1e-4 * step || slope > 0.2 * step {
                continue;
            }
            let nearest = (value / step).round() * step;
            if nearest == 0.0 && !zero {
                continue;
            }
            let distance = (value - nearest).abs() / slope;
            let steep = ((0.2 * step / slope - 1.0) / 2.0).clamp(0.0, 1.0);
            let flat = (slope / (2e-3 * step)).clamp(0.0, 1.0);
            let fade = steep * flat;
            let weight = (HALF + 0.5 - distance).clamp(0.0, 1.0) * STRENGTH * fade;
            if weight > 0.0 {
                let pixel = &mut row[area.left + x];
                let [r, g, b] = pixel.map(u32::from);
                let dark = 2 * r + 5 * g + b < 8 * 105;
                blend(pixel, if dark { [255; 3] } else { [20; 3] }, weight as f32);
            }
        }
    });
}
