//! Heat maps: one panel for two axes, the three middle slices for three, with axes, a colour bar and a line of figures.

use std::fmt::Write as _;

use zellige_engine::ops::plane::Plane;
use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_engine::record::{Axis, Centring, Extremes, Field};

use super::canvas::{Anchor, Area, Canvas, Rgb, text_width};
use super::scale::Scale;
use super::ticks::{self, Ticks, number};
use super::{Options, contour, label};

pub(super) const PAPER: Rgb = [255, 255, 255];
const INK: Rgb = [34, 34, 38];
const SOFT: Rgb = [110, 110, 118];
const TITLE: f32 = 36.0;
const LABEL: f32 = 29.0;
const SMALL: f32 = 25.0;
/// Length of a tick in pixels.
const TICK: usize = 9;
/// Pixels of the widest single panel and of its height.
const PANEL: (f64, f64) = (1210.0, 1100.0);
/// Pixels of three panels together and of the highest.
const PANELS: (f64, f64) = (1380.0, 900.0);
/// Ratio of the sides beyond which the panel is stretched, or it would be a line.
const SLIMMEST: f64 = 7.0;

/// Offset of the first value on an axis, in spacings.
pub(super) fn first_value(field: &Field) -> f64 {
    match field.centring {
        Centring::Node => 0.0,
        Centring::Cell => 0.5,
    }
}

/// Both ends of an axis as drawn: the outer nodes, or the outer faces of the cells.
fn ends(axis: &Axis, centring: Centring) -> (f64, f64) {
    let count = if centring == Centring::Node { axis.len.saturating_sub(1).max(1) } else { axis.len };
    (axis.origin, axis.origin + count as f64 * axis.spacing)
}

struct Panel {
    plane: Plane,
    /// The axes to the right and upwards.
    axes: (usize, usize),
    caption: Option<String>,
    values: Vec<f64>,
    area: Area,
}

/// Pixels that a picture shows of a field of two or three axes.
pub(super) fn pixels(field: &Field) -> usize {
    panels(field).iter().map(|panel| panel.area.width * panel.area.height).sum()
}

/// Draws a field of two or three axes, whose values need not be there: their extremes are given, and means over pixels as they are
/// asked for.
pub(super) fn draw<E>(
    field: &Field,
    options: &Options,
    extremes: Extremes,
    mut means: impl FnMut(&Plane, [usize; 2]) -> Result<Vec<f64>, E>,
) -> Result<Canvas, E> {
    let mut panels = panels(field);
    let contours = options.contours;
    for panel in &mut panels {
        panel.values = means(&panel.plane, [panel.area.width, panel.area.height])?;
    }
    let shown: Vec<&[f64]> = panels.iter().map(|p| p.values.as_slice()).collect();
    let scale = Scale::new(field, &shown, options);

    // Left to right: panels, each with its axis to the left; bar; its labels; its title.
    let mut left = 0;
    let top = if panels[0].caption.is_some() { 140 } else { 104 };
    for panel in &mut panels {
        let vertical = axis_ticks(field, panel.axes.1, panel.area.height);
        left += 76 + widest(&vertical) + TICK;
        panel.area.left = left;
        panel.area.top = top;
        left += panel.area.width + 22;
    }
    let tallest = panels.iter().map(|p| p.area.height).max().unwrap_or(0);
    let bar = bar_ticks(&scale, tallest);
    let bar_area = Area { left: left + 22, top, width: 38, height: tallest };
    let bar_labels = widest(&bar).max(bar.factor.as_ref().map_or(0, |f| text_width(f, SMALL) as usize));
    let width = bar_area.right() + TICK + bar_labels + 84;
    let height = top + tallest + 156;

    let mut canvas = Canvas::new(width, height, PAPER);
    for panel in &panels {
        paint(&mut canvas, panel, &scale);
        let ordered = scale.map != super::ColourMap::Cyclic && !scale.log;
        if contours.unwrap_or_else(|| field.centring == Centring::Node && ordered && contour::is_smooth(&panel.values, panel.area.width)) {
            let zero = scale.map != super::ColourMap::Balance;
            contour::draw(&mut canvas, panel.area, &panel.values, ticks::contour_step(scale.low, scale.high), zero);
        }
        axes(&mut canvas, field, panel);
    }
    colour_bar(&mut canvas, bar_area, &scale, &bar, &label(symbol(field), &field.unit));
    let centre = f32::midpoint(panels[0].area.left as f32, (left - 22) as f32);
    canvas.text((centre, 62.0), &field.title, TITLE, INK, Anchor::Middle);
    canvas.text((panels[0].area.left as f32, height as f32 - 26.0), &figures(field, extremes), SMALL, SOFT, Anchor::Start);
    Ok(canvas)
}

/// The symbol for the scale: a title such as `potential u` ends in it, or has it after a colon.
pub fn symbol(field: &Field) -> &str {
    let colon = field.title.rsplit_once(": ").map(|(_, symbol)| symbol);
    // The number of `solution u, k = 1` is no symbol, the one before it is.
    let head = field.title.split_once(", ").map_or(&*field.title, |(head, _)| head);
    let word = || head.rsplit(' ').next().filter(|word| word.chars().count() <= 3);
    colon.or_else(word).unwrap_or_else(|| field.name.trim_start_matches('/'))
}

/// The exact extremes, and the shape as x by y.
fn figures(field: &Field, Extremes { low, high, unknown }: Extremes) -> String {
    let what = if field.centring == Centring::Node { "nodes" } else { "cells" };
    let shape: Vec<String> = field.axes.iter().map(|a| a.len.to_string()).collect();
    let mut text = format!("{} {what}", shape.join(" × "));
    if low <= high {
        let _ = write!(text, "    min {}    max {}", number(low), number(high));
    }
    if unknown > 0 {
        let _ = write!(text, "    {unknown} without a value (grey)");
    }
    text
}

fn panels(field: &Field) -> Vec<Panel> {
    let pairs: &[(usize, usize)] = if field.axes.len() == 2 { &[(0, 1)] } else { &[(0, 1), (0, 2), (1, 2)] };
    let extents: Vec<f64> = field.axes.iter().map(|a| ends(a, field.centring)).map(|(a, b)| b - a).collect();
    let sizes: Vec<(f64, f64)> = pairs.iter().map(|&(i, j)| (extents[i], extents[j])).collect();
    let room = if pairs.len() == 1 { PANEL } else { PANELS };
    let wide: f64 = sizes.iter().map(|s| s.0).sum();
    let high = sizes.iter().map(|s| s.1).fold(0.0, f64::max);
    let same_unit = field.axes.windows(2).all(|a| a[0].unit == a[1].unit);
    let in_proportion = same_unit && sizes.iter().all(|(x, y)| (1.0 / SLIMMEST..=SLIMMEST).contains(&(x / y)));
    let per_unit = (room.0 / wide).min(room.1 / high);
    let pixels = |(x, y): (f64, f64)| {
        if in_proportion {
            ((x * per_unit).round().max(2.0) as usize, (y * per_unit).round().max(2.0) as usize)
        } else {
            let width = room.0 / pairs.len() as f64;
            (width as usize, (width * 0.62) as usize)
        }
    };
    let cut = |&(i, j): &(usize, usize), size: (f64, f64)| {
        let rest = (0..field.axes.len()).find(|a| *a != i && *a != j);
        let at = rest.map_or(0, |a| field.axes[a].len / 2);
        let caption = rest.map(|a| {
            let axis = &field.axes[a];
            let place = axis.origin + (at as f64 + first_value(field)) * axis.spacing;
            let unit = if axis.unit.is_empty() { String::new() } else { format!(" {}", axis.unit) };
            format!("{} = {}{unit}", axis.name, number(place))
        });
        let (width, height) = pixels(size);
        let (axes, area) = ((i, j), Area { left: 0, top: 0, width, height });
        Panel { plane: Plane::of(field, axes, at), axes, caption, values: Vec::new(), area }
    };
    pairs.iter().zip(sizes).map(|(pair, size)| cut(pair, size)).collect()
}

fn paint(canvas: &mut Canvas, panel: &Panel, scale: &Scale) {
    let Area { left, top, width, height } = panel.area;
    let across = canvas.width;
    let rows = chunks_mut(&mut canvas.pixels[top * across..(top + height) * across], across);
    each((rows, chunks(&panel.values, width)), |_, (row, values)| {
        for (pixel, &value) in row[left..left + width].iter_mut().zip(values) {
            *pixel = scale.colour(value);
        }
    });
    canvas.frame(panel.area, 2, INK);
}

fn axis_ticks(field: &Field, axis: usize, pixels: usize) -> Ticks {
    let (low, high) = ends(&field.axes[axis], field.centring);
    ticks::linear(low, high, (pixels / 110).clamp(3, 8))
}

fn widest(ticks: &Ticks) -> usize {
    ticks.marks.iter().map(|m| text_width(&m.1, SMALL).ceil() as usize).max().unwrap_or(0)
}

/// An axis label with the common factor of its ticks.
fn axis_label(axis: &Axis, ticks: &Ticks) -> String {
    let unit = match (&ticks.factor, axis.unit.as_str()) {
        (None, unit) => unit.to_owned(),
        (Some(factor), "") => factor.clone(),
        (Some(factor), unit) => format!("{factor} {unit}"),
    };
    label(&axis.name, &unit)
}

fn axes(canvas: &mut Canvas, field: &Field, panel: &Panel) {
    let area = panel.area;
    let (ix, iy) = panel.axes;
    let horizontal = axis_ticks(field, ix, area.width);
    let (low, high) = ends(&field.axes[ix], field.centring);
    for (value, text) in &horizontal.marks {
        let x = area.left as f64 + (value - low) / (high - low) * area.width as f64;
        canvas.fill(Area { left: (x - 1.0).round() as usize, top: area.bottom() + 2, width: 2, height: TICK }, INK);
        canvas.text((x as f32, (area.bottom() + TICK) as f32 + SMALL + 4.0), text, SMALL, INK, Anchor::Middle);
    }
    let middle = area.left as f32 + area.width as f32 / 2.0;
    let below = (area.bottom() + TICK) as f32 + SMALL + LABEL + 14.0;
    canvas.text((middle, below), &axis_label(&field.axes[ix], &horizontal), LABEL, INK, Anchor::Middle);

    let vertical = axis_ticks(field, iy, area.height);
    let (low, high) = ends(&field.axes[iy], field.centring);
    for (value, text) in &vertical.marks {
        let y = area.bottom() as f64 - (value - low) / (high - low) * area.height as f64;
        canvas.fill(Area { left: area.left - 2 - TICK, top: (y - 1.0).round() as usize, width: TICK, height: 2 }, INK);
        let at = (area.left as f32 - TICK as f32 - 8.0, y as f32 + 0.36 * SMALL);
        canvas.text(at, text, SMALL, INK, Anchor::End);
    }
    let aside = (area.left - TICK - widest(&vertical)) as f32 - 24.0;
    let middle = area.top as f32 + area.height as f32 / 2.0;
    canvas.text_up((aside, middle), &axis_label(&field.axes[iy], &vertical), LABEL, INK, Anchor::Middle);
    if let Some(caption) = &panel.caption {
        let at = (area.left as f32 + area.width as f32 / 2.0, area.top as f32 - 16.0);
        canvas.text(at, caption, SMALL, SOFT, Anchor::Middle);
    }
}

fn bar_ticks(scale: &Scale, pixels: usize) -> Ticks {
    if scale.log {
        ticks::logarithmic(scale.low, scale.high, pixels / 60)
    } else if scale.high == std::f64::consts::PI && scale.low == -scale.high {
        ticks::turn()
    } else {
        ticks::linear(scale.low, scale.high, (pixels / 90).clamp(3, 10))
    }
}

fn colour_bar(canvas: &mut Canvas, area: Area, scale: &Scale, ticks: &Ticks, title: &str) {
    for row in 0..area.height {
        let t = 1.0 - (row as f64 + 0.5) / area.height as f64;
        canvas.fill(Area { top: area.top + row, height: 1, ..area }, scale.map.colour(t));
    }
    canvas.frame(area, 2, INK);
    for (value, text) in &ticks.marks {
        let y = area.bottom() as f64 - scale.place(*value) * area.height as f64;
        canvas.fill(Area { left: area.right() + 2, top: (y - 1.0).round() as usize, width: TICK, height: 2 }, INK);
        let at = ((area.right() + TICK) as f32 + 9.0, y as f32 + 0.36 * SMALL);
        canvas.text(at, text, SMALL, INK, Anchor::Start);
    }
    if let Some(factor) = &ticks.factor {
        canvas.text((area.left as f32, area.top as f32 - 14.0), factor, SMALL, INK, Anchor::Start);
    }
    let at = ((canvas.width - 28) as f32, area.top as f32 + area.height as f32 / 2.0);
    canvas.text_up(at, title, LABEL, INK, Anchor::Middle);
}
