//! A small TrueType rasteriser for the embedded subset of DejaVu Sans: quadratic outlines, non-zero winding, exact area
//! coverage in x and sampled coverage in y, so text is smooth at any size and angle of 0 or 90 degrees.
//!
//! The font is trusted (it is part of this crate and a test walks every glyph); it is not a reader for outside fonts.

use std::collections::HashMap;
use std::sync::OnceLock;

static FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");

/// Scan lines per pixel row.
const ROWS: usize = 8;

/// The parsed font: tables, character map and advance widths in font units.
pub(super) struct Font {
    glyphs: HashMap<char, usize>,
    advances: Vec<u16>,
    offsets: Vec<usize>,
    glyf: usize,
    units_per_em: f32,
}

/// A glyph as coverage values, 0 to 1, placed relative to the pen: `left` to the right of it, `top` above the base line.
pub(super) struct Bitmap {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) coverage: Vec<f32>,
}

fn u16_at(at: usize) -> u16 {
    u16::from_be_bytes([FONT[at], FONT[at + 1]])
}

fn i16_at(at: usize) -> i16 {
    u16_at(at) as i16
}

fn u32_at(at: usize) -> usize {
    u32::from_be_bytes([FONT[at], FONT[at + 1], FONT[at + 2], FONT[at + 3]]) as usize
}

/// The font, parsed once.
pub(super) fn font() -> &'static Font {
    static CELL: OnceLock<Font> = OnceLock::new();
    CELL.get_or_init(Font::parse)
}

impl Font {
    fn parse() -> Self {
        let tables: HashMap<[u8; 4], usize> = (0..usize::from(u16_at(4)))
            .map(|i| {
                let entry = 12 + 16 * i;
                ([FONT[entry], FONT[entry + 1], FONT[entry + 2], FONT[entry + 3]], u32_at(entry + 8))
            })
            .collect();
        let head = tables[b"head"];
        let (loca, count) = (tables[b"loca"], usize::from(u16_at(tables[b"maxp"] + 4)));
        let long = u16_at(head + 50) == 1;
        let offsets = (0..=count).map(|g| if long { u32_at(loca + 4 * g) } else { 2 * usize::from(u16_at(loca + 2 * g)) }).collect();
        let metrics = usize::from(u16_at(tables[b"hhea"] + 34));
        let advances = (0..count).map(|g| u16_at(tables[b"hmtx"] + 4 * g.min(metrics - 1))).collect();
        let units_per_em = f32::from(u16_at(head + 18));
        Self { glyphs: character_map(tables[b"cmap"]), advances, offsets, glyf: tables[b"glyf"], units_per_em }
    }

    fn glyph(&self, c: char) -> usize {
        self.glyphs.get(&c).or_else(|| self.glyphs.get(&'?')).copied().unwrap_or(0)
    }

    /// Advance width of a character in pixels at a size in pixels per em.
    pub(super) fn advance(&self, c: char, size: f32) -> f32 {
        f32::from(self.advances[self.glyph(c)]) * size / self.units_per_em
    }

    /// Width of a line of text in pixels.
    pub(super) fn width(&self, text: &str, size: f32) -> f32 {
        text.chars().map(|c| self.advance(c, size)).sum()
    }

    /// Rasterises a character with the pen at the fraction `shift` of a pixel.
    pub(super) fn rasterise(&self, c: char, size: f32, shift: f32) -> Bitmap {
        let scale = size / self.units_per_em;
        let mut edges = Vec::new();
        self.outline(self.glyph(c), (0.0, 0.0), &mut edges);
        for edge in &mut edges {
            for point in edge {
                *point = (point.0 * scale + shift, point.1 * scale);
            }
        }
        fill(&edges)
    }

    /// Adds the outline of a glyph as straight edges in font units, y upwards.
    fn outline(&self, glyph: usize, origin: (f32, f32), edges: &mut Vec<[(f32, f32); 2]>) {
        let (start, end) = (self.offsets[glyph], self.offsets[glyph + 1]);
        if start == end {
            return;
        }
        let at = self.glyf + start;
        let contours = i16_at(at);
        if contours < 0 {
            self.composite(at + 10, origin, edges);
        } else {
            simple(at + 10, contours as usize, origin, edges);
        }
    }

    /// A glyph made of others (accented letters): offsets only, which is all the subset uses.
    fn composite(&self, mut at: usize, origin: (f32, f32), edges: &mut Vec<[(f32, f32); 2]>) {
        loop {
            let (flags, glyph) = (u16_at(at), usize::from(u16_at(at + 2)));
            let words = flags & 1 != 0;
            let (dx, dy) = if words {
                (f32::from(i16_at(at + 4)), f32::from(i16_at(at + 6)))
            } else {
                (f32::from(FONT[at + 4] as i8), f32::from(FONT[at + 5] as i8))
            };
            self.outline(glyph, (origin.0 + dx, origin.1 + dy), edges);
            let scale_bytes = match flags & 0b1100_1000 {
                0b0000_1000 => 2,
                0b0100_0000 => 4,
                0b1000_0000 => 8,
                _ => 0,
            };
            at += 4 + if words { 4 } else { 2 } + scale_bytes;
            if flags & 0b10_0000 == 0 {
                return;
            }
        }
    }
}

/// Reads the format 4 sub-table (the Basic Multilingual Plane), which every Unicode font has.
fn character_map(cmap: usize) -> HashMap<char, usize> {
    let table = (0..usize::from(u16_at(cmap + 2))).map(|i| cmap + u32_at(cmap + 4 + 8 * i + 4)).find(|&t| u16_at(t) == 4);
    let Some(table) = table else { return HashMap::new() };
    let double = usize::from(u16_at(table + 6));
    let (ends, starts) = (table + 14, table + 16 + double);
    let (deltas, ranges) = (starts + double, starts + 2 * double);
    let mut map = HashMap::new();
    for segment in (0..double).step_by(2) {
        let (first, last) = (u16_at(starts + segment), u16_at(ends + segment));
        let (delta, range) = (u16_at(deltas + segment), usize::from(u16_at(ranges + segment)));
        for code in (first..=last).filter(|&c| c != u16::MAX) {
            let glyph = if range == 0 {
                code.wrapping_add(delta)
            } else {
                match u16_at(ranges + segment + range + 2 * usize::from(code - first)) {
                    0 => 0,
                    found => found.wrapping_add(delta),
                }
            };
            if let Some(c) = char::from_u32(u32::from(code)).filter(|_| glyph != 0) {
                map.insert(c, usize::from(glyph));
            }
        }
    }
    map
}

/// Decodes the flags and coordinates of a simple glyph and flattens its curves.
fn simple(at: usize, contours: usize, origin: (f32, f32), edges: &mut Vec<[(f32, f32); 2]>) {
    let ends: Vec<usize> = (0..contours).map(|i| usize::from(u16_at(at + 2 * i))).collect();
    let count = ends.last().map_or(0, |e| e + 1);
    let mut cursor = at + 2 * contours;
    cursor += 2 + usize::from(u16_at(cursor));
    let mut flags = Vec::with_capacity(count);
    while flags.len() < count {
        let flag = FONT[cursor];
        cursor += 1;
        flags.push(flag);
        if flag & 8 != 0 {
            flags.extend(std::iter::repeat_n(flag, usize::from(FONT[cursor])));
            cursor += 1;
        }
    }
    let mut coordinates = |short: u8, same: u8, start: f32| -> Vec<f32> {
        let mut value = start;
        let mut step = |flag: &u8| {
            if flag & short != 0 {
                let delta = f32::from(FONT[cursor]);
                cursor += 1;
                value += if flag & same != 0 { delta } else { -delta };
            } else if flag & same == 0 {
                value += f32::from(i16_at(cursor));
                cursor += 2;
            }
            value
        };
        flags.iter().map(&mut step).collect()
    };
    let xs = coordinates(2, 16, origin.0);
    let ys = coordinates(4, 32, origin.1);
    let mut first = 0;
    for end in ends {
        let points: Vec<(f32, f32, bool)> = (first..=end).map(|i| (xs[i], ys[i], flags[i] & 1 != 0)).collect();
        flatten(&points, edges);
        first = end + 1;
    }
}

/// Turns one closed contour of on- and off-curve points into edges; two off-curve points imply one between them.
fn flatten(points: &[(f32, f32, bool)], edges: &mut Vec<[(f32, f32); 2]>) {
    let middle = |a: (f32, f32), b: (f32, f32)| (f32::midpoint(a.0, b.0), f32::midpoint(a.1, b.1));
    let n = points.len();
    let Some(start) = points.iter().position(|p| p.2) else { return };
    let mut pen = (points[start].0, points[start].1);
    let mut control: Option<(f32, f32)> = None;
    for k in 1..=n {
        let (x, y, on) = points[(start + k) % n];
        let to = match (control, on) {
            (None, true) => {
                edges.push([pen, (x, y)]);
                (x, y)
            }
            (Some(c), true) => {
                curve(pen, c, (x, y), edges);
                control = None;
                (x, y)
            }
            (None, false) => {
                control = Some((x, y));
                pen
            }
            (Some(c), false) => {
                let between = middle(c, (x, y));
                curve(pen, c, between, edges);
                control = Some((x, y));
                between
            }
        };
        pen = to;
    }
    if let Some(c) = control {
        curve(pen, c, (points[start].0, points[start].1), edges);
    }
}

/// A quadratic curve in eight straight edges: invisible below 100 pixels per em.
fn curve(from: (f32, f32), control: (f32, f32), to: (f32, f32), edges: &mut Vec<[(f32, f32); 2]>) {
    const STEPS: usize = 8;
    let mut last = from;
    for i in 1..=STEPS {
        let t = i as f32 / STEPS as f32;
        let s = 1.0 - t;
        let blend = |a: f32, b: f32, c: f32| s * s * a + 2.0 * s * t * b + t * t * c;
        let next = if i == STEPS { to } else { (blend(from.0, control.0, to.0), blend(from.1, control.1, to.1)) };
        edges.push([last, next]);
        last = next;
    }
}

/// Fills edges (pixels, y upwards) by scan lines with the non-zero rule.
fn fill(edges: &[[(f32, f32); 2]]) -> Bitmap {
    let bounds = edges
        .iter()
        .flatten()
        .fold((f32::MAX, f32::MAX, f32::MIN, f32::MIN), |b, p| (b.0.min(p.0), b.1.min(p.1), b.2.max(p.0), b.3.max(p.1)));
    if edges.is_empty() {
        return Bitmap { width: 0, height: 0, left: 0, top: 0, coverage: Vec::new() };
    }
    let (left, top) = (bounds.0.floor() as i32, bounds.3.ceil() as i32);
    let width = (bounds.2.ceil() as i32 - left).max(1) as usize;
    let height = (top - bounds.1.floor() as i32).max(1) as usize;
    let mut coverage = vec![0.0f32; width * height];
    let mut crossings: Vec<(f32, i32)> = Vec::new();
    for line in 0..height * ROWS {
        let y = top as f32 - (line as f32 + 0.5) / ROWS as f32;
        crossings.clear();
        for &[a, b] in edges {
            if (a.1 <= y) != (b.1 <= y) {
                let x = a.0 + (y - a.1) * (b.0 - a.0) / (b.1 - a.1) - left as f32;
                crossings.push((x, if b.1 > a.1 { 1 } else { -1 }));
            }
        }
        crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let row = &mut coverage[(line / ROWS) * width..][..width];
        let mut winding = 0;
        for pair in crossings.windows(2) {
            winding += pair[0].1;
            if winding != 0 {
                span(row, pair[0].0, pair[1].0);
            }
        }
    }
    Bitmap { width, height, left, top, coverage }
}

/// Adds the exact overlap of `[from, to]` with each pixel of a row.
fn span(row: &mut [f32], from: f32, to: f32) {
    let last = row.len() - 1;
    for (x, value) in row.iter_mut().enumerate().take((to as usize).min(last) + 1).skip(from.max(0.0) as usize) {
        *value += (to.min(x as f32 + 1.0) - from.max(x as f32)).max(0.0) / ROWS as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_has_an_outline_and_full_coverage_inside() {
        let font = font();
        assert!(font.glyphs.len() > 200, "{} characters", font.glyphs.len());
        for &c in font.glyphs.keys() {
            let bitmap = font.rasterise(c, 40.0, 0.0);
            let most = bitmap.coverage.iter().fold(0.0f32, |m, &v| m.max(v));
            assert!(most <= 1.0 + 1e-5, "`{c}` covers a pixel {most} times");
            if !c.is_whitespace() {
                assert!(most > 0.3, "`{c}` is blank");
            }
        }
    }

    /// The full stop of DejaVu Sans is a rectangle: its area in font units is the sum of the coverage.
    #[test]
    fn coverage_adds_up_to_the_area() {
        let font = font();
        let mut edges = Vec::new();
        font.outline(font.glyph('.'), (0.0, 0.0), &mut edges);
        let twice: f32 = edges.iter().map(|[a, b]| a.0 * b.1 - b.0 * a.1).sum();
        let size = 200.0;
        let area = twice.abs() / 2.0 * (size / font.units_per_em).powi(2);
        let sum: f32 = font.rasterise('.', size, 0.3).coverage.iter().sum();
        // Rows are sampled 8 times: at most 1/8 row of error over a width of about 25 pixels.
        assert!((sum - area).abs() < 25.0 / 8.0 + 1.0, "{sum} against {area}");
    }
}
