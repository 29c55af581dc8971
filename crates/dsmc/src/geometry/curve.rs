//! Outlines as a person gives them: circle, ellipse, polygon, plate, airfoil; vertices in metres.

use std::f64::consts::TAU;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;

/// The outline of a body, or a plate.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name, for messages and results.
    pub name: String,
    /// Key of the input, for messages.
    pub origin: String,
    /// Vertices in order, m. A closed curve does not repeat the first one.
    pub vertices: Vec<[f64; 2]>,
    /// Closed or open: the last vertex is joined to the first, or not.
    pub form: Form,
    /// Side of the gas.
    pub gas: Gas,
    /// Number of the wall in the list of walls.
    pub wall: u32,
    /// Numbers of the segments in the file that they came from; empty for 1, 2, 3, ...
    pub numbers: Vec<u64>,
    /// Numbers of the walls of the segments, where they differ; empty for `wall`.
    pub walls: Vec<u32>,
}

impl Curve {
    /// Segments of at most this length, m, for a finite number above 0: longer ones in equal parts.
    ///
    /// # Errors
    /// More than a million segments.
    pub fn divided(&self, max_segment_length: f64) -> Result<Self, Problem> {
        let n = self.vertices.len();
        let open = usize::from(self.form != Form::Closed);
        let (mut vertices, mut numbers, mut walls) = (Vec::with_capacity(n), Vec::new(), Vec::new());
        for (k, a) in self.vertices.iter().enumerate() {
            let b = self.vertices[(k + 1) % n];
            let length = (b[0] - a[0]).hypot(b[1] - a[1]);
            // A length that is a whole number of parts but for rounding is that many.
            let parts = if k + open < n { (length / max_segment_length * (1.0 - 1e-12)).ceil().max(1.0) } else { 1.0 };
            if parts + vertices.len() as f64 > 1e6 {
                let message = format!("`{}` would have more than a million segments of {max_segment_length:e} m", self.name);
                return Err(Problem::new("", message).hint("a larger `max_segment_length`"));
            }
            for part in 0..parts as usize {
                let t = part as f64 / parts;
                vertices.push([0, 1].map(|d| a[d] + t * (b[d] - a[d])));
                numbers.extend(self.numbers.get(k));
                walls.extend(self.walls.get(k));
            }
        }
        Ok(Self { vertices, numbers, walls, ..self.clone() })
    }
}

/// End of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// At its beginning.
    Closed,
    /// At two sides of the domain; the solid is to the left of the way from the first vertex to the last.
    FromSideToSide,
    /// Anywhere: a plate without thickness, gas on both sides.
    Plate,
}

/// The side of a closed curve on which the gas is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gas {
    /// Around the body.
    #[default]
    Outside,
    /// In the curve (chamber, nozzle).
    Inside,
}

/// A shape in the input. Lengths in metres, angles in degrees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// Regular polygon.
    Circle {
        /// Centre, m.
        centre: [f64; 2],
        /// Radius, m: above 0.
        radius: f64,
        /// Number of segments.
        #[serde(default = "segments")]
        #[schemars(range(min = 3, max = MOST_SEGMENTS))]
        segments: u32,
    },
    /// Inscribed polygon.
    Ellipse {
        /// Centre, m.
        centre: [f64; 2],
        /// Half axes, m.
        radii: [f64; 2],
        /// Counter-clockwise turn, degrees.
        #[serde(default)]
        angle: f64,
        /// Number of segments.
        #[serde(default = "segments")]
        #[schemars(range(min = 3, max = MOST_SEGMENTS))]
        segments: u32,
    },
    /// Any sense.
    Polygon {
        /// Its corners, m.
        vertices: Vec<[f64; 2]>,
    },
    /// A line with gas on both sides. Tables and `s` follow its right face along the points, then the left one back.
    Plate {
        /// Two points or more, m.
        points: Vec<[f64; 2]>,
    },
    /// Four-digit NACA airfoil, its trailing edge closed.
    Airfoil {
        /// The digits, for example `0012`.
        naca: String,
        /// The leading edge, m.
        nose: [f64; 2],
        /// Chord, m.
        chord: f64,
        /// Angle of attack for a stream along x, degrees: the trailing edge goes down.
        #[serde(default)]
        angle: f64,
        /// Number of segments.
        #[serde(default = "segments")]
        #[schemars(range(min = 8, max = MOST_SEGMENTS))]
        segments: u32,
    },
}

/// Most segments of a shape.
const MOST_SEGMENTS: u32 = 1_000_000;

const fn segments() -> u32 {
    200
}

impl Shape {
    /// The outline, counter-clockwise; problems are stated at keys below `path`.
    pub fn curve(&self, name: &str, path: &str, gas: Gas, wall: u32) -> Result<Curve, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut demand = |holds: bool, key: &str, message: String, allowed: &str| {
            if !holds {
                problems.push(Problem::new(format!("{path}.{key}"), message).allowed(allowed));
            }
        };
        let mut form = Form::Closed;
        let vertices = match self {
            Self::Circle { centre, radius, segments } => {
                demand(*radius > 0.0 && radius.is_finite(), "radius", format!("the radius is {radius}"), "above 0");
                demand((3..=MOST_SEGMENTS).contains(segments), "segments", format!("{segments} segments"), "3 to 1000000");
                ellipse(*centre, [*radius; 2], 0.0, *segments)
            }
            Self::Ellipse { centre, radii, angle, segments } => {
                demand(radii.iter().all(|r| *r > 0.0 && r.is_finite()), "radii", format!("the half axes are {radii:?}"), "above 0");
                demand((3..=MOST_SEGMENTS).contains(segments), "segments", format!("{segments} segments"), "3 to 1000000");
                demand(angle.is_finite(), "angle", format!("the angle is {angle}"), "a number of degrees");
                ellipse(*centre, *radii, *angle, *segments)
            }
            Self::Polygon { vertices } => {
                demand(vertices.len() >= 3, "vertices", format!("{} vertices enclose nothing", vertices.len()), "3 or more");
                vertices.clone()
            }
            Self::Plate { points } => {
                demand(points.len() >= 2, "points", format!("{} points are no line", points.len()), "2 or more");
                demand(gas == Gas::Outside, "gas", "a plate has no inside".into(), "`outside`, or leave it out");
                form = Form::Plate;
                points.clone()
            }
            Self::Airfoil { naca, nose, chord, angle, segments } => {
                let digits = naca.len() == 4 && naca.bytes().all(|b| b.is_ascii_digit()) && &naca[2..] != "00";
                demand(digits, "naca", format!("`{naca}` is no airfoil of four digits"), "for example `0012` or `2412`");
                demand(*chord > 0.0 && chord.is_finite(), "chord", format!("the chord is {chord}"), "above 0");
                demand((8..=MOST_SEGMENTS).contains(segments), "segments", format!("{segments} segments"), "8 to 1000000");
                demand(angle.is_finite(), "angle", format!("the angle is {angle}"), "a number of degrees");
                if digits { airfoil(naca, *nose, *chord, *angle, *segments) } else { Vec::new() }
            }
        };
        if let Some((k, v)) = vertices.iter().enumerate().find(|(_, v)| !v.iter().all(|x| x.is_finite())) {
            problems.push(Problem::new(path, format!("vertex {} of `{name}` is at {v:?}", k + 1)).allowed("finite numbers"));
        }
        if problems.is_empty() {
            Ok(Curve { name: name.to_owned(), origin: path.to_owned(), vertices, form, gas, wall, numbers: Vec::new(), walls: Vec::new() })
        } else {
            Err(problems)
        }
    }
}

fn ellipse(centre: [f64; 2], radii: [f64; 2], angle: f64, segments: u32) -> Vec<[f64; 2]> {
    let (sin, cos) = angle.to_radians().sin_cos();
    let vertex = |k: u32| {
        let (s, c) = (TAU * f64::from(k) / f64::from(segments)).sin_cos();
        let (x, y) = (radii[0] * c, radii[1] * s);
        [centre[0] + cos * x - sin * y, centre[1] + sin * x + cos * y]
    };
    // A count out of range is refused by the caller, who must not wait for it.
    (0..segments.min(MOST_SEGMENTS)).map(vertex).collect()
}

/// Jacobs, Ward and Pinkerton, NACA report 460 (1933); the last coefficient is that of the closed trailing edge.
fn airfoil(naca: &str, nose: [f64; 2], chord: f64, angle: f64, segments: u32) -> Vec<[f64; 2]> {
    let digit = |k: usize| f64::from(naca.as_bytes()[k] - b'0');
    let (camber, position, thickness) = (digit(0) / 100.0, digit(1) / 10.0, (10.0 * digit(2) + digit(3)) / 100.0);
    let (sin, cos) = (-angle.to_radians()).sin_cos();
    let half = (segments.min(MOST_SEGMENTS) / 2).max(4);
    let point = |k: u32, upper: bool| {
        // Closer together at both ends, where the outline bends.
        let x = 0.5 * (1.0 - (0.5 * TAU * f64::from(k) / f64::from(half)).cos());
        let t = 5.0 * thickness * (0.2969 * x.sqrt() + x * (-0.1260 + x * (-0.3516 + x * (0.2843 - x * 0.1036))));
        let (line, slope) = if camber == 0.0 || position == 0.0 {
            (0.0, 0.0)
        } else if x < position {
            (camber / (position * position) * x * (2.0 * position - x), 2.0 * camber / (position * position) * (position - x))
        } else {
            let rest = (1.0 - position).powi(2);
            (camber / rest * (1.0 - 2.0 * position + x * (2.0 * position - x)), 2.0 * camber / rest * (position - x))
        };
        let (s, c) = slope.atan().sin_cos();
        let t = if upper { t } else { -t };
        let (x, y) = (chord * (x - t * s), chord * (line + t * c));
        [nose[0] + cos * x - sin * y, nose[1] + sin * x + cos * y]
    };
    // From the trailing edge over the upper side to the nose and back below: counter-clockwise, both ends once.
    (1..=half).rev().map(|k| point(k, true)).chain((0..half).map(|k| point(k, false))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(v: &[[f64; 2]]) -> f64 {
        (0..v.len()).map(|k| (v[k], v[(k + 1) % v.len()])).map(|(a, b)| 0.5 * (a[0] * b[1] - a[1] * b[0])).sum()
    }

    #[test]
    fn outlines_have_their_areas() {
        let n = 200.0_f64;
        let polygon = 0.5 * n * (TAU / n).sin();
        let e = Shape::Ellipse { centre: [1.0, 2.0], radii: [0.3, 0.1], angle: 30.0, segments: 200 };
        let e = e.curve("e", "e", Gas::Outside, 0).unwrap();
        assert!((area(&e.vertices) / (0.03 * polygon) - 1.0).abs() < 1e-12);
        // The integral of the thickness: 5 t (2/3 0.2969 - 0.126/2 - 0.3516/3 + 0.2843/4 - 0.1036/5), on both sides.
        let foil = Shape::Airfoil { naca: "2412".into(), nose: [0.0; 2], chord: 2.0, angle: 5.0, segments: 400 };
        let foil = foil.curve("f", "f", Gas::Outside, 0).unwrap();
        let exact = 4.0 * 10.0 * 0.12 * (0.2969 / 1.5 - 0.063 - 0.3516 / 3.0 + 0.2843 / 4.0 - 0.1036 / 5.0);
        // The chords of a polygon of 400 sides miss a part of about (pi / 200)^2; camber adds its slope squared.
        assert!((area(&foil.vertices) / exact - 1.0).abs() < 2e-3, "{} {exact}", area(&foil.vertices));
        assert!((foil.vertices[0][1] + 2.0 * 5.0_f64.to_radians().sin()).abs() < 1e-12);
    }

    #[test]
    fn long_segments_are_divided_and_keep_their_numbers() {
        let square = Shape::Polygon { vertices: vec![[0.0; 2], [1.0, 0.0], [1.0, 0.3], [0.0, 0.3]] };
        let mut square = square.curve("s", "s", Gas::Outside, 0).unwrap();
        square.numbers = vec![7, 8, 9, 10];
        let divided = square.divided(0.25).unwrap();
        assert_eq!(divided.numbers, [7, 7, 7, 7, 8, 8, 9, 9, 9, 9, 10, 10]);
        assert!(divided.vertices[..5] == [[0.0, 0.0], [0.25, 0.0], [0.5, 0.0], [0.75, 0.0], [1.0, 0.0]] && divided.vertices.len() == 12);
        assert!((area(&divided.vertices) - 0.3).abs() < 1e-15);
        let plate = Shape::Plate { points: vec![[0.0; 2], [0.1, 0.0], [1.0, 0.0]] }.curve("p", "p", Gas::Outside, 0).unwrap();
        assert_eq!(plate.divided(0.3).unwrap().vertices.len(), 5, "0.1 in one part, 0.9 in three");
        assert!(plate.divided(1e-9).unwrap_err().message.contains("more than a million"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_at_its_key() {
        for (shape, key) in [
            (Shape::Circle { centre: [0.0; 2], radius: -1.0, segments: 20 }, "b.radius"),
            (Shape::Circle { centre: [0.0; 2], radius: 1.0, segments: 2 }, "b.segments"),
            (Shape::Circle { centre: [f64::NAN; 2], radius: 1.0, segments: 20 }, "b"),
            (Shape::Polygon { vertices: vec![[0.0; 2], [1.0, 0.0]] }, "b.vertices"),
            (Shape::Plate { points: vec![[0.0; 2]] }, "b.points"),
            (Shape::Airfoil { naca: "24\u{e9}".into(), nose: [0.0; 2], chord: 1.0, angle: 0.0, segments: 20 }, "b.naca"),
            (Shape::Airfoil { naca: "0000".into(), nose: [0.0; 2], chord: 1.0, angle: 0.0, segments: 20 }, "b.naca"),
        ] {
            let problems = shape.curve("b", "b", Gas::Outside, 0).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].path, key);
        }
    }
}
