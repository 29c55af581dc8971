//! Line plots: curves over a shared abscissa, with grid lines, an optional logarithmic ordinate and a legend.

use zellige_engine::record::{Curve, Measured};

use super::Options;
use super::canvas::{Anchor, Area, Canvas, Rgb, text_width};
use super::ticks::{self, Ticks};

const PAPER: Rgb = [255, 255, 255];
const INK: Rgb = [34, 34, 38];
const GRID: Rgb = [226, 226, 230];
const FAINT: Rgb = [242, 242, 245];
/// The colours of Okabe and Ito (2008), told apart by colour-blind eyes.
const LINES: [Rgb; 7] = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233], [60, 60, 60]];
const TITLE: f32 = 36.0;
const LABEL: f32 = 29.0;
const SMALL: f32 = 25.0;
const TICK: usize = 9;
const SIZE: (usize, usize) = (1600, 1000);
const THICK: f32 = 3.6;
/// Number of points of a line up to which each of all lines gets a dot.
const DOTS: usize = 60;
/// Number of lines up to which they are named: more would cover them.
const NAMED: usize = 12;

/// Mapping from values to positions on the canvas.
struct Frame {
    area: Area,
    x: (f64, f64),
    y: (f64, f64),
    log: bool,
}

impl Frame {
    fn place(&self, x: f64, y: f64) -> (f32, f32) {
        let u = (x - self.x.0) / (self.x.1 - self.x.0);
        let v = if self.log { (y / self.y.0).ln() / (self.y.1 / self.y.0).ln() } else { (y - self.y.0) / (self.y.1 - self.y.0) };
        let (w, h) = (self.area.width as f64, self.area.height as f64);
        ((self.area.left as f64 + u * w) as f32, (self.area.bottom() as f64 - v * h) as f32)
    }
}

/// Draws the curves.
pub(super) fn draw(curve: &Curve, options: &Options) -> Canvas {
    with_bars(curve, &[], options)
}

/// Draws curves with their error bars.
pub(super) fn draw_measured(measured: &Measured, options: &Options) -> Canvas {
    with_bars(&measured.curve, &measured.errors, options)
}

fn with_bars(curve: &Curve, errors: &[Vec<f64>], options: &Options) -> Canvas {
    let mut canvas = Canvas::new(SIZE.0, SIZE.1, PAPER);
    let log = curve.log_y || options.log;
    let usable = |v: f64| v.is_finite() && (!log || v > 0.0);
    let x = padded(extremes(curve.x.iter().copied().filter(|v| v.is_finite())), false, 0.02);
    // Bars count for the range, those of a value that is all noise but little.
    let error = |k: usize, i: usize| errors.get(k).and_then(|e| e.get(i)).copied().filter(|e| e.is_finite()).unwrap_or(0.0);
    let shown = extremes(curve.lines.iter().flat_map(|l| l.1.iter().copied()).filter(|v| usable(*v)));
    let room = shown.map_or(0.0, |(low, high)| 0.5 * (high - low));
    let reach = |(k, l): (usize, &(String, Vec<f64>))| {
        let ends = |(i, v): (usize, &f64)| [-1.0, 0.0, 1.0].map(|s| v + s * error(k, i).min(room));
        l.1.iter().enumerate().flat_map(ends).collect::<Vec<_>>()
    };
    let y = if errors.is_empty() { shown } else { extremes(curve.lines.iter().enumerate().flat_map(reach).filter(|v| usable(*v))) };
    let y = options.range.unwrap_or_else(|| padded(y, log, 0.05));
    let vertical = if log { ticks::logarithmic(y.0, y.1, 10) } else { ticks::linear(y.0, y.1, 8) };
    // Cycles and steps come whole.
    let whole = curve.x.iter().all(|v| v.fract() == 0.0);
    let horizontal = ticks::linear(x.0, x.1, if whole { ((x.1 - x.0) as usize).clamp(1, 10) } else { 10 });
    let labels = vertical.marks.iter().map(|m| text_width(&m.1, SMALL) as usize).max().unwrap_or(0);
    let left = 88 + labels + TICK;
    let area = Area { left, top: 104, width: SIZE.0 - left - 56, height: SIZE.1 - 104 - 124 };
    let frame = Frame { area, x, y, log };
    grid(&mut canvas, &frame, &horizontal, &vertical);
    let points = |values: &Vec<f64>| -> Vec<(f32, f32)> {
        curve.x.iter().zip(values).filter(|(x, y)| x.is_finite() && usable(**y)).map(|(&x, &y)| frame.place(x, y)).collect()
    };
    let lines: Vec<_> = curve.lines.iter().map(|l| points(&l.1)).collect();
    let dots = lines.iter().all(|points| points.len() <= DOTS);
    for (k, ((_, values), points)) in curve.lines.iter().zip(lines).enumerate() {
        stroke(&mut canvas, area, &points, LINES[k % LINES.len()], dots);
        let measured = errors.get(k).map_or(0, |errors| errors.len().min(values.len()));
        for (i, (&x, &value)) in curve.x.iter().zip(&values[..measured]).enumerate().filter(|(_, (x, v))| x.is_finite() && usable(**v)) {
            let error = error(k, i);
            if error > 0.0 {
                let low = if usable(value - error) { value - error } else { frame.y.0 };
                bar(&mut canvas, area, frame.place(x, low), frame.place(x, value + error), LINES[k % LINES.len()]);
            }
        }
    }
    canvas.frame(area, 2, INK);
    let middle = (area.left + area.width / 2) as f32;
    canvas.text((middle, 62.0), &curve.title, TITLE, INK, Anchor::Middle);
    let x_label = with_factor(&curve.x_label, &horizontal);
    canvas.text((middle, (SIZE.1 - 34) as f32), &x_label, LABEL, INK, Anchor::Middle);
    let y_label = with_factor(&curve.y_label, &vertical);
    canvas.text_up((48.0, (area.top + area.height / 2) as f32), &y_label, LABEL, INK, Anchor::Middle);
    if (2..=NAMED).contains(&curve.lines.len()) {
        legend(&mut canvas, &frame, curve);
    }
    canvas
}

fn with_factor(label: &str, ticks: &Ticks) -> String {
    ticks.factor.as_ref().map_or_else(|| label.to_owned(), |f| format!("{label}  ({f})"))
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| Some(range.map_or((v, v), |(a, b): (f64, f64)| (a.min(v), b.max(v)))))
}

/// A range with some air; whole decades on a logarithmic axis.
fn padded(range: Option<(f64, f64)>, log: bool, share: f64) -> (f64, f64) {
    match range {
        None if log => (0.1, 1.0),
        None => (0.0, 1.0),
        Some((low, high)) if log => {
            // Values further down are the first bits of a start from nothing; the rest would be squeezed.
            let low = low.max(high * 1e-16);
            let (first, last) = ((low.log10() + 0.02).floor(), (high.log10() - 0.02).ceil());
            (10f64.powf(first) * 0.7, 10f64.powf(last.max(first + 1.0)) * 1.4)
        }
        Some((low, high)) if low == high => {
            let pad = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
            (low - pad, high + pad)
        }
        Some((low, high)) => (low - share * (high - low), high + share * (high - low)),
    }
}

fn grid(canvas: &mut Canvas, frame: &Frame, horizontal: &Ticks, vertical: &Ticks) {
    let area = frame.area;
    let level = |canvas: &mut Canvas, y: f32, colour: Rgb| {
        canvas.fill(Area { top: (y - 1.0).round() as usize, height: 2, ..area }, colour);
    };
    if frame.log && vertical.marks.len() <= 8 {
        let decades = (frame.y.0.log10().floor() as i32)..=(frame.y.1.log10().ceil() as i32);
        for value in decades.flat_map(|d| (2..10).map(move |m| f64::from(m) * 10f64.powi(d))) {
            if value > frame.y.0 && value < frame.y.1 {
                level(canvas, frame.place(frame.x.0, value).1, FAINT);
            }
        }
    }
    for (value, text) in &vertical.marks {
        let y = frame.place(frame.x.0, *value).1;
        level(canvas, y, GRID);
        canvas.fill(Area { left: area.left - 2 - TICK, top: (y - 1.0).round() as usize, width: TICK, height: 2 }, INK);
        canvas.text((area.left as f32 - TICK as f32 - 8.0, y + 0.36 * SMALL), text, SMALL, INK, Anchor::End);
    }
    for (value, text) in &horizontal.marks {
        let x = frame.place(*value, frame.y.0).0;
        let left = (x - 1.0).round() as usize;
        canvas.fill(Area { left, width: 2, ..area }, GRID);
        canvas.fill(Area { left, top: area.bottom() + 2, width: 2, height: TICK }, INK);
        canvas.text((x, (area.bottom() + TICK) as f32 + SMALL + 4.0), text, SMALL, INK, Anchor::Middle);
    }
}

fn stroke(canvas: &mut Canvas, area: Area, points: &[(f32, f32)], colour: Rgb, dots: bool) {
    let points = thinned(points, 4 * area.width);
    for pair in points.windows(2) {
        canvas.line(pair[0], pair[1], THICK, colour, area);
    }
    if dots {
        for &point in &points {
            canvas.dot(point, 6.5, colour, area);
        }
    }
}

/// A bar from below to above with a stroke at both ends.
fn bar(canvas: &mut Canvas, area: Area, low: (f32, f32), high: (f32, f32), colour: Rgb) {
    const HALF: f32 = 4.0;
    let inside = |y: f32| y.clamp(area.top as f32, area.bottom() as f32);
    let (low, high) = ((low.0, inside(low.1)), (high.0, inside(high.1)));
    canvas.line(low, high, 1.6, colour, area);
    for (x, y) in [low, high] {
        canvas.line((x - HALF, y), (x + HALF, y), 1.6, colour, area);
    }
}

/// Keeps the first, lowest, highest and last point of each pixel column: the same picture from far fewer points.
fn thinned(points: &[(f32, f32)], limit: usize) -> Vec<(f32, f32)> {
    if points.len() <= limit {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    // Places are inside the canvas, so that cutting off is rounding down.
    for column in points.chunk_by(|a, b| a.0 as i32 == b.0 as i32) {
        let by_height = |a: &&(f32, f32), b: &&(f32, f32)| a.1.total_cmp(&b.1);
        kept.extend(column.first());
        kept.extend(column.iter().min_by(by_height));
        kept.extend(column.iter().max_by(by_height));
        kept.extend(column.last());
    }
    kept
}

/// The names of the lines, where they hide the fewest points: in a corner, or between two.
fn legend(canvas: &mut Canvas, frame: &Frame, curve: &Curve) {
    let area = frame.area;
    let widest = curve.lines.iter().map(|l| text_width(&l.0, SMALL)).fold(0.0, f32::max) as usize;
    let (width, row) = (widest + 110, 40);
    let height = row * curve.lines.len() + 22;
    let (near, far) = (area.left + 24, area.right().saturating_sub(width + 24));
    let (high, low) = (area.top + 24, area.bottom().saturating_sub(height + 24));
    let hidden = |&(left, top): &(usize, usize)| {
        let inside =
            |(x, y): (f32, f32)| (left as f32..(left + width) as f32).contains(&x) && (top as f32..(top + height) as f32).contains(&y);
        curve.lines.iter().flat_map(|l| curve.x.iter().zip(&l.1)).filter(|(x, y)| inside(frame.place(**x, **y))).count()
    };
    let (centre, middle) = (near.midpoint(far), high.midpoint(low));
    let corners = [(far, high), (near, high), (far, low), (near, low)];
    let places = corners.into_iter().chain([(far, middle), (near, middle), (centre, high), (centre, low)]);
    let (left, top) = places.min_by_key(hidden).unwrap_or((far, high));
    let place = Area { left, top, width, height };
    canvas.fill(place, PAPER);
    canvas.frame(place, 1, [190, 190, 196]);
    for (k, (name, _)) in curve.lines.iter().enumerate() {
        let y = (top + 11 + row * k + row / 2) as f32;
        canvas.line((left as f32 + 20.0, y), (left as f32 + 68.0, y), THICK, LINES[k % LINES.len()], place);
        canvas.text((left as f32 + 86.0, y + 0.36 * SMALL), name, SMALL, INK, Anchor::Start);
    }
}
