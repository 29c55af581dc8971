//! Colour maps of 256 entries: viridis, cividis, inferno and magma from 33 control points each (their tables are in the
//! public domain, CC0), a diverging and a cyclic map computed in the OKLab space, where equal steps look equal.

use std::str::FromStr;
use std::sync::OnceLock;

use serde::Serialize;
use zellige_engine::record::Palette;

use super::canvas::Rgb;

/// A colour map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColourMap {
    /// Dark blue, green, yellow; the default for ordered values.
    Viridis,
    /// Blue to yellow, the same to colour-blind eyes.
    Cividis,
    /// Black, red, yellow.
    Inferno,
    /// Black, purple, cream.
    Magma,
    /// Blue, white, red, with the same lightness on both sides.
    Balance,
    /// A circle of hues of one lightness, for angles.
    Cyclic,
}

/// All maps, in the order in which help texts list them.
pub const MAPS: [ColourMap; 6] =
    [ColourMap::Viridis, ColourMap::Cividis, ColourMap::Inferno, ColourMap::Magma, ColourMap::Balance, ColourMap::Cyclic];

impl ColourMap {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viridis => "viridis",
            Self::Cividis => "cividis",
            Self::Inferno => "inferno",
            Self::Magma => "magma",
            Self::Balance => "balance",
            Self::Cyclic => "cyclic",
        }
    }

    /// The 256 colours from the lowest value to the highest.
    pub fn table(self) -> &'static [Rgb; 256] {
        static TABLES: OnceLock<[[Rgb; 256]; 6]> = OnceLock::new();
        &TABLES.get_or_init(|| MAPS.map(Self::build))[self as usize]
    }

    /// The colour at `t` in `[0, 1]`, interpolated in the table; values outside take the end colours.
    pub fn colour(self, t: f64) -> Rgb {
        let table = self.table();
        let s = (t * 255.0).clamp(0.0, 255.0) as f32;
        let k = (s as usize).min(254);
        let f = s - k as f32;
        std::array::from_fn(|c| {
            let (a, b) = (f32::from(table[k][c]), f32::from(table[k + 1][c]));
            (a + (b - a) * f + 0.5) as u8
        })
    }

    fn build(self) -> [Rgb; 256] {
        let at = |f: &dyn Fn(f32) -> Rgb| std::array::from_fn(|i| f(i as f32 / 255.0));
        match self {
            Self::Viridis => at(&|t| spline(&VIRIDIS, t)),
            Self::Cividis => at(&|t| spline(&CIVIDIS, t)),
            Self::Inferno => at(&|t| spline(&INFERNO, t)),
            Self::Magma => at(&|t| spline(&MAGMA, t)),
            Self::Balance => at(&balance),
            // The last entry would repeat the first: a full turn has 256 steps.
            Self::Cyclic => at(&|t| from_oklch(0.72, 0.122, t * 255.0 / 256.0 * std::f32::consts::TAU)),
        }
    }
}

impl From<Palette> for ColourMap {
    fn from(palette: Palette) -> Self {
        match palette {
            Palette::Sequential | Palette::Density | Palette::Undrawn => Self::Viridis,
            Palette::Diverging => Self::Balance,
            Palette::Cyclic => Self::Cyclic,
        }
    }
}

impl FromStr for ColourMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        MAPS.into_iter()
            .find(|m| m.name() == text)
            .ok_or_else(|| format!("unknown colour map `{text}` (allowed: {})", MAPS.map(Self::name).join(", ")))
    }
}

/// Near-white in the middle; lightness falls linearly and equally to blue (below) and red (above).
fn balance(t: f32) -> Rgb {
    let side = (2.0 * t - 1.0).abs();
    let hue: f32 = if t < 0.5 { 258.0 } else { 28.0 };
    let lightness = 0.975 - 0.625 * side;
    let chroma = 0.17 * (std::f32::consts::PI * 0.72 * side.powf(0.85)).sin();
    from_oklch(lightness, chroma, hue.to_radians())
}

/// OKLCh (B. Ottosson, 2020) to sRGB; a chroma outside of the gamut is reduced, lightness and hue stay.
fn from_oklch(lightness: f32, chroma: f32, hue: f32) -> Rgb {
    let linear = |c: f32| {
        let (a, b) = (c * hue.cos(), c * hue.sin());
        let l = (lightness + 0.396_337_78 * a + 0.215_803_76 * b).powi(3);
        let m = (lightness - 0.105_561_346 * a - 0.063_854_17 * b).powi(3);
        let s = (lightness - 0.089_484_18 * a - 1.291_485_5 * b).powi(3);
        [
            4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
            -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
            -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
        ]
    };
    let fits = |c: f32| linear(c).iter().all(|v| (-1e-4..=1.0001).contains(v));
    let (mut low, mut high) = (0.0, chroma);
    if fits(chroma) {
        low = chroma;
    } else {
        for _ in 0..20 {
            let middle = f32::midpoint(low, high);
            if fits(middle) { low = middle } else { high = middle }
        }
    }
    linear(low).map(|v| {
        let v = v.clamp(0.0, 1.0);
        let encoded = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        (255.0 * encoded).round() as u8
    })
}

/// Catmull-Rom interpolation between equally spaced control points.
fn spline(points: &[u32; 33], t: f32) -> Rgb {
    let s = t * 32.0;
    let k = (s as usize).min(31);
    let f = s - k as f32;
    let channel = |shift: u32| {
        let at = |i: usize| ((points[i.min(32)] >> shift) & 255) as f32;
        let (a, b, c, d) = (at(k.saturating_sub(1)), at(k), at(k + 1), at(k + 2));
        let value = b + 0.5 * f * (c - a + f * (2.0 * a - 5.0 * b + 4.0 * c - d + f * (3.0 * (b - c) + d - a)));
        value.round().clamp(0.0, 255.0) as u8
    };
    [channel(16), channel(8), channel(0)]
}

#[rustfmt::skip]
const VIRIDIS: [u32; 33] = [
    0x440154, 0x470d60, 0x48186a, 0x482374, 0x472d7b, 0x453681, 0x424086, 0x3f4989, 0x3b528b, 0x375a8d, 0x33638d,
    0x2f6a8e, 0x2c728e, 0x297a8e, 0x26818e, 0x23898e, 0x21908c, 0x1f988b, 0x1f9f88, 0x21a685, 0x28ae80, 0x31b57b,
    0x3ebc74, 0x4cc26c, 0x5dc963, 0x6ece58, 0x82d34c, 0x96d83f, 0xabdc32, 0xc0df24, 0xd5e21a, 0xeae51a, 0xfde725,
];
#[rustfmt::skip]
const CIVIDIS: [u32; 33] = [
    0x00224e, 0x00285b, 0x002e6a, 0x043371, 0x1a386f, 0x273e6e, 0x32436d, 0x3b496c, 0x434e6c, 0x4b546c, 0x52596d,
    0x5a5f6e, 0x61656f, 0x686a71, 0x6f7073, 0x757676, 0x7c7b78, 0x848179, 0x8b8778, 0x938d78, 0x9b9376, 0xa39a75,
    0xaba072, 0xb3a670, 0xbbad6c, 0xc3b469, 0xccba64, 0xd4c15f, 0xddc958, 0xe6d051, 0xefd748, 0xf8df3c, 0xfee838,
];
#[rustfmt::skip]
const INFERNO: [u32; 33] = [
    0x000004, 0x040312, 0x0b0724, 0x150b37, 0x210c4a, 0x2e0a5a, 0x3c0965, 0x4a0c6b, 0x57106d, 0x63146e, 0x70196e,
    0x7d1e6d, 0x89226a, 0x962766, 0xa32b61, 0xaf315c, 0xbb3755, 0xc63e4d, 0xd14644, 0xdb4f3b, 0xe35932, 0xeb6528,
    0xf1711e, 0xf67f14, 0xf98d0a, 0xfb9c06, 0xfcab0f, 0xfbba1f, 0xf9ca32, 0xf5d949, 0xf2e865, 0xf3f586, 0xfcffa4,
];
#[rustfmt::skip]
const MAGMA: [u32; 33] = [
    0x000004, 0x030311, 0x0a0822, 0x130d33, 0x1d1146, 0x28115a, 0x36106a, 0x430f76, 0x50127c, 0x5d177f, 0x691c81,
    0x762181, 0x822681, 0x8f2a81, 0x9c2e7f, 0xa9327d, 0xb63779, 0xc33b75, 0xcf4170, 0xdb486a, 0xe65163, 0xee5c5e,
    0xf5695c, 0xf9785d, 0xfb8761, 0xfd9668, 0xfea571, 0xfeb47b, 0xfec387, 0xfed194, 0xfde0a2, 0xfceeb0, 0xfcfdbf,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// OKLab lightness of an sRGB colour.
    fn lightness(colour: Rgb) -> f64 {
        let [r, g, b] = colour.map(|v| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        });
        let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
        let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
        let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s
    }

    #[test]
    fn sequential_maps_grow_lighter() {
        for map in [ColourMap::Viridis, ColourMap::Cividis, ColourMap::Inferno, ColourMap::Magma] {
            let table = map.table();
            for i in 8..256 {
                assert!(lightness(table[i]) > lightness(table[i - 8]), "{} at {i}", map.name());
            }
        }
        assert_eq!(ColourMap::Viridis.colour(0.0), [0x44, 0x01, 0x54]);
        assert_eq!(ColourMap::Viridis.colour(1.0), [0xfd, 0xe7, 0x25]);
    }

    #[test]
    fn the_diverging_map_is_balanced_about_a_neutral_middle() {
        let table = ColourMap::Balance.table();
        for i in 0..128 {
            // One step of 8-bit rounding is about 0.004 in lightness.
            assert!((lightness(table[i]) - lightness(table[255 - i])).abs() < 0.008, "at {i}");
        }
        let middle = table[127];
        assert!(middle.iter().max().unwrap() - middle.iter().min().unwrap() < 8 && middle[0] > 235, "{middle:?}");
    }

    #[test]
    fn the_cyclic_map_closes_and_keeps_its_lightness() {
        let table = ColourMap::Cyclic.table();
        for i in 0..256 {
            assert!((lightness(table[i]) - 0.72).abs() < 0.006, "at {i}");
            for (a, b) in table[i].iter().zip(table[(i + 1) % 256]) {
                assert!(a.abs_diff(b) <= 6, "a jump after {i}");
            }
        }
    }
}
