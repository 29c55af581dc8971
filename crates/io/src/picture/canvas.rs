//! A canvas of 8-bit sRGB pixels with anti-aliased lines, dots and text.

use super::font::font;

/// A colour.
pub type Rgb = [u8; 3];

/// Position of text relative to its anchor point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The anchor is at the left (bottom) end.
    Start,
    /// The anchor is in the middle.
    Middle,
    /// The anchor is at the right (top) end.
    End,
}

/// Pixels in rows from the top.
#[derive(Debug, Clone)]
pub struct Canvas {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The pixels, `width * height` of them.
    pub pixels: Vec<Rgb>,
}

/// Blends `colour` over a pixel with the weight `alpha`.
pub(super) fn blend(pixel: &mut Rgb, colour: Rgb, alpha: f32) {
    let alpha = alpha.min(1.0);
    for (p, c) in pixel.iter_mut().zip(colour) {
        *p = (f32::from(*p) + (f32::from(c) - f32::from(*p)) * alpha).round() as u8;
    }
}

/// A rectangle in pixels, `right` and `bottom` excluded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    pub(super) fn right(&self) -> usize {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> usize {
        self.top + self.height
    }
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize, colour: Rgb) -> Self {
        Self { width, height, pixels: vec![colour; width * height] }
    }

    /// Blends `colour` over the pixel with the weight `alpha`; outside of the canvas nothing happens.
    pub(super) fn blend(&mut self, x: i32, y: i32, colour: Rgb, alpha: f32) {
        if x < 0 || y < 0 || x as usize >= self.width || y as usize >= self.height || alpha <= 0.0 {
            return;
        }
        blend(&mut self.pixels[y as usize * self.width + x as usize], colour, alpha);
    }

    pub(super) fn fill(&mut self, area: Area, colour: Rgb) {
        for y in area.top..area.bottom().min(self.height) {
            for x in area.left..area.right().min(self.width) {
                self.pixels[y * self.width + x] = colour;
            }
        }
    }

    /// The outline just outside of `area`, `thick` pixels wide.
    pub(super) fn frame(&mut self, area: Area, thick: usize, colour: Rgb) {
        let Area { left, top, width, height } = area;
        let wide = width + 2 * thick;
        self.fill(Area { left: left - thick, top: top - thick, width: wide, height: thick }, colour);
        self.fill(Area { left: left - thick, top: top + height, width: wide, height: thick }, colour);
        self.fill(Area { left: left - thick, top, width: thick, height }, colour);
        self.fill(Area { left: left + width, top, width: thick, height }, colour);
    }

    /// A line of `thick` pixels with round ends, cut off at `clip`.
    pub(super) fn line(&mut self, from: (f32, f32), to: (f32, f32), thick: f32, colour: Rgb, clip: Area) {
        let half = thick / 2.0;
        let pad = half + 1.0;
        let x0 = (from.0.min(to.0) - pad).floor().max(clip.left as f32) as i32;
        let x1 = (from.0.max(to.0) + pad).ceil().min(clip.right() as f32) as i32;
        let y0 = (from.1.min(to.1) - pad).floor().max(clip.top as f32) as i32;
        let y1 = (from.1.max(to.1) + pad).ceil().min(clip.bottom() as f32) as i32;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let square = (dx * dx + dy * dy).max(1e-12);
        // Only near the edge the distance itself is needed, whose square is right to a few roundings: the bits are those without the bounds.
        let (inner, outer) = ((half - 0.5).max(0.0).powi(2) * 0.9999, (half + 0.5).powi(2) * 1.0001);
        let columns = x0.clamp(0, self.width as i32)..x1.clamp(0, self.width as i32);
        for y in y0.max(0)..y1.min(self.height as i32) {
            let row = &mut self.pixels[y as usize * self.width..][..self.width];
            for x in columns.clone() {
                let (px, py) = (x as f32 + 0.5 - from.0, y as f32 + 0.5 - from.1);
                let t = ((px * dx + py * dy) / square).clamp(0.0, 1.0);
                let (ax, ay) = (px - t * dx, py - t * dy);
                let distance = ax * ax + ay * ay;
                if distance < inner {
                    row[x as usize] = colour;
                } else if distance < outer {
                    let alpha = half + 0.5 - ax.hypot(ay);
                    if alpha > 0.0 {
                        blend(&mut row[x as usize], colour, alpha);
                    }
                }
            }
        }
    }

    /// A filled dot.
    pub(super) fn dot(&mut self, at: (f32, f32), radius: f32, colour: Rgb, clip: Area) {
        self.line(at, at, 2.0 * radius, colour, clip);
    }

    /// A horizontal line of text; `at` is the anchor on the base line.
    pub(super) fn text(&mut self, at: (f32, f32), text: &str, size: f32, colour: Rgb, anchor: Anchor) {
        self.draw(at, text, size, colour, anchor, false);
    }

    /// A line of text that runs upwards; `at` is the anchor on the base line, which lies to the right of the letters.
    pub(super) fn text_up(&mut self, at: (f32, f32), text: &str, size: f32, colour: Rgb, anchor: Anchor) {
        self.draw(at, text, size, colour, anchor, true);
    }

    fn draw(&mut self, at: (f32, f32), text: &str, size: f32, colour: Rgb, anchor: Anchor, up: bool) {
        let font = font();
        let shift = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font.width(text, size) / 2.0,
            Anchor::End => font.width(text, size),
        };
        // The pen runs along x; upwards text exchanges the axes pixel by pixel.
        let (mut pen, base) = if up { (-(at.1 + shift), at.0) } else { (at.0 - shift, at.1) };
        let base = base.round() as i32;
        for c in text.chars() {
            let bitmap = font.rasterise(c, size, pen - pen.floor());
            let (x0, y0) = (pen.floor() as i32 + bitmap.left, base - bitmap.top);
            for row in 0..bitmap.height {
                for column in 0..bitmap.width {
                    let alpha = bitmap.coverage[row * bitmap.width + column];
                    let (x, y) = (x0 + column as i32, y0 + row as i32);
                    if up {
                        self.blend(y, -x - 1, colour, alpha);
                    } else {
                        self.blend(x, y, colour, alpha);
                    }
                }
            }
            pen += font.advance(c, size);
        }
    }
}

/// Width of a line of text in pixels.
pub(super) fn text_width(text: &str, size: f32) -> f32 {
    font().width(text, size)
}
