//! Outlines and files that are refused, and what is said of them; files that are read.

use std::fmt::Write as _;

use super::read::{Label, cells, surf};
use super::*;

const LABEL: Label = Label { name: "b", origin: "surfaces", gas: Gas::Outside, wall: 2, types: &[] };

fn grid() -> Grid {
    Grid { cells: [10, 10], h: [0.1, 0.1], origin: [0.0; 2], dimensions: 2 }
}

pub(super) fn curve(name: &str, vertices: &[[f64; 2]]) -> Curve {
    Curve {
        name: name.into(),
        origin: "surfaces".into(),
        vertices: vertices.to_vec(),
        form: Form::Closed,
        gas: Gas::Outside,
        wall: 0,
        numbers: Vec::new(),
        walls: Vec::new(),
    }
}

pub(super) fn plate(name: &str, vertices: &[[f64; 2]]) -> Curve {
    Curve { form: Form::Plate, ..curve(name, vertices) }
}

const SQUARE: [[f64; 2]; 4] = [[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.6]];

#[test]
fn broken_outlines_are_refused_with_segments_and_point() {
    let open = |v: &[[f64; 2]]| Curve { form: Form::FromSideToSide, ..curve("b", v) };
    let inside = |c: Curve| Curve { gas: Gas::Inside, ..c };
    let moved = |d: f64| SQUARE.map(|p| [p[0] + d, p[1] + d]);
    let shrunk = SQUARE.map(|p| [0.3 + 0.2 * p[0], 0.3 + 0.2 * p[1]]);
    for (curves, expected) in [
        (vec![curve("b", &SQUARE[..2])], "`b` has 2 vertices"),
        (vec![curve("b", &[[0.0, f64::NAN], [0.1, 0.1], [0.2, 0.1]])], "vertex 1 of `b` is at (0, NaN)"),
        (
            vec![curve("b", &[[0.2, 0.2], [0.2, 0.2], [0.6, 0.6], [0.2, 0.6]])],
            "segment 1 of `b` from (0.2, 0.2) to (0.2, 0.2) has no length",
        ),
        (
            vec![curve("b", &[[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.2, 0.2]])],
            "segment 4 of `b` from (0.2, 0.2) to (0.2, 0.2) has no length",
        ),
        (
            vec![curve("b", &[[0.2, 0.2], [1.2, 0.2], [0.6, 0.6]])],
            "`b` leaves the domain at (1.2, 0.2), vertex 2 (1 of its 3 vertices are outside)",
        ),
        (vec![curve("b", &[[0.2, 0.2], [1e300, 0.2], [0.6, 0.6]])], "`b` leaves the domain at"),
        (vec![curve("b", &[[0.2, 0.2], [0.6, 0.2], [0.4, 0.2]])], "`b` encloses nothing"),
        (vec![curve("b", &[[0.2, 0.2], [0.6, 0.6], [0.6, 0.2], [0.2, 0.6]])], "`b` crosses itself at (0.4, 0.4)"),
        (
            vec![curve("b", &[[0.2, 0.2], [0.6, 0.6], [0.6, 0.2], [0.2, 0.4]])],
            "`b` crosses itself at (0.3333333333, 0.3333333333): segment 3 of `b` from (0.2, 0.4) to (0.6, 0.2) and segment 1 of `b` from (0.6, 0.6) to (0.2, 0.2)",
        ),
        (
            vec![curve("b", &[[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.4, 0.2], [0.2, 0.6]])],
            "`b` touches itself at (0.4, 0.2): segment 1 of `b`",
        ),
        (vec![curve("b", &[[0.2, 0.2], [0.6, 0.2], [0.4, 0.2], [0.2, 0.6]])], "`b` touches itself at"),
        (vec![curve("b", &[[0.2, 0.2], [0.6, 0.2], [0.6, 0.6], [0.6, 0.2], [0.2, 0.6]])], "`b` touches itself at"),
        (vec![plate("p", &[[0.2, 0.2], [0.6, 0.6], [0.6, 0.2], [0.2, 0.4]])], "`p` crosses itself at"),
        (vec![plate("p", &[[0.2, 0.2], [0.6, 0.2], [0.4, 0.2]])], "`p` touches itself at"),
        (vec![open(&[[0.2, 0.2], [0.6, 0.2], [0.6, 0.6]])], "`b` is open at (0.2, 0.2): segment 1 of `b`"),
        (
            vec![curve("a", &SQUARE), curve("b", &moved(0.1))],
            "`a` and `b` cross at (0.6, 0.3): segment 2 of `a` from (0.6, 0.2) to (0.6, 0.6) and",
        ),
        (vec![curve("a", &SQUARE), curve("b", &SQUARE)], "`a` and `b` lie on each other at (0.2, 0.2): segment 1 of `a`"),
        (vec![curve("a", &SQUARE), curve("b", &shrunk)], "`b` lies in `a` at"),
        // Overlapping only between vertices on each other's sides.
        (vec![curve("a", &SQUARE), curve("b", &[[0.4, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.4]])], "`b` lies in `a` at"),
        (vec![curve("a", &SQUARE), plate("p", &[[0.3, 0.3], [0.4, 0.4]])], "`p` lies in `a` at"),
        (vec![curve("a", &SQUARE), plate("p", &[[0.1, 0.1], [0.4, 0.45]])], "`a` and `p` cross at"),
        (vec![inside(curve("a", &SQUARE)), curve("b", &[[0.7, 0.7], [0.8, 0.7], [0.7, 0.8]])], "`b` lies outside of `a` at (0.7, 0.7)"),
        (vec![inside(curve("a", &SQUARE)), inside(curve("b", &shrunk))], "`b` lies in `a` at"),
    ] {
        let problems = Outlines::new(&curves, &grid()).expect_err(expected);
        assert!(problems[0].message.contains(expected), "{}\n  is not\n{expected}", problems[0]);
        assert!(problems[0].hint.is_some() && problems[0].path == "surfaces");
    }
}

/// A whole circle about a point of a plane of symmetry: the remedy is an outline of its half.
#[test]
fn a_body_across_a_plane_of_symmetry_is_told_how_half_of_it_is_given() {
    let circle = |y: f64| Shape::Circle { centre: [0.5, y], radius: 0.2, segments: 40 }.curve("c", "surfaces", Gas::Outside, 0).unwrap();
    for y in [0.0, 1.0] {
        let problems = Outlines::new(&[circle(y)], &grid()).unwrap_err();
        assert!(problems[0].message.contains("`c` leaves the domain at"), "{problems:?}");
        assert!(
            problems[0].hint.as_ref().unwrap().contains("half a body on a plane of symmetry is a polygon of that half"),
            "{problems:?}"
        );
    }
    // The values it suggests are accepted.
    let half = curve("c", &[[0.3, 0.0], [0.7, 0.0], [0.64, 0.14], [0.5, 0.2], [0.36, 0.14]]);
    assert!(Outlines::new(&[half], &grid()).is_ok());
}

#[test]
fn what_touches_is_taken() {
    let beside = SQUARE.map(|p| [p[0] + 0.4, p[1]]);
    let far = SQUARE.map(|p| [p[0] + 0.4, p[1] + 0.4]);
    let curves = [curve("a", &SQUARE), curve("b", &beside), curve("c", &far), plate("fin", &[[0.2, 0.4], [0.0, 0.4], [0.0, 0.2]])];
    let outlines = Outlines::new(&curves, &grid()).unwrap();
    assert!(outlines.notes.is_empty());
    let geometry = Geometry::new(&grid(), [false; 2], &outlines);
    assert_eq!(geometry.segments().len(), 12 + 4);
    assert!(geometry.bodies().iter().zip([0.16, 0.16, 0.16, 0.0]).all(|(b, area)| (b.area - area).abs() < 1e-12));
    assert_eq!(geometry.segments()[0].normal, [0.0, -1.0]);
    assert_eq!(geometry.segments()[1].normal, [1.0, 0.0]);
}

#[test]
fn either_sense_is_turned_to_the_gas() {
    let backward: Vec<_> = SQUARE.into_iter().rev().collect();
    for (gas, vertices, normal) in [
        (Gas::Outside, backward.clone(), -1.0),
        (Gas::Outside, SQUARE.to_vec(), -1.0),
        (Gas::Inside, backward, 1.0),
        (Gas::Inside, SQUARE.to_vec(), 1.0),
    ] {
        let outlines = Outlines::new(&[Curve { gas, ..curve("a", &vertices) }], &grid()).unwrap();
        let lowest = outlines.segments.iter().find(|s| s.ends.iter().all(|e| e[1] == 0.2)).unwrap();
        assert_eq!(lowest.normal, [0.0, normal]);
    }
}

#[test]
fn overlapping_bodies_are_one_problem_and_fine_outlines_are_checked_in_a_moment() {
    let circle = |name: &str, x: f64, segments| {
        Shape::Circle { centre: [x, 0.5], radius: 0.2, segments }.curve(name, name, Gas::Outside, 0).unwrap()
    };
    let problems = Outlines::new(&[circle("a", 0.4, 100), circle("b", 0.5, 100)], &grid()).unwrap_err();
    assert!(problems.len() == 1 && problems[0].message.contains("`a` and `b` cross at"), "{problems:?}");
    assert!(problems[0].message.ends_with("and so 1 more pair of their segments"), "{}", problems[0]);
    // Hundreds of segments in a cell.
    let outlines = Outlines::new(&[circle("a", 0.4, 20_000)], &grid()).unwrap();
    assert_eq!(outlines.segments.len(), 20_000);
}

/// A half circle on the lower side of the domain, as SPARTA's `clip` leaves it.
fn half_circle(turned: bool) -> String {
    let mut text = String::from("half a circle\n\n5 points\n4 lines\n\nPoints\n\n");
    for k in 0..5 {
        let angle = f64::from(k) * std::f64::consts::FRAC_PI_4;
        let _ = writeln!(text, "{} {} {}", k + 1, 0.5 + 0.2 * angle.cos(), if k % 4 == 0 { 0.0 } else { 0.2 * angle.sin() });
    }
    text += "\nLines # gas on the left\n\n";
    for k in 1..5 {
        let _ = if turned { writeln!(text, "{k} {k} {}", k + 1) } else { writeln!(text, "{k} 7 {} {k}", k + 1) };
    }
    text
}

#[test]
fn sparta_surfaces_are_read() {
    let text =
        "a square\n\n4 points\n4 lines\n\nPoints\n\n1 0.2 0.2\n2 0.6 0.2\n3 0.6 0.6\n4 0.2 0.6\n\nLines\n\n1 1 4\n2 4 3\n3 3 2\n4 2 1\n";
    let curves = surf(text, LABEL).unwrap();
    assert_eq!(curves.len(), 1);
    assert_eq!((curves[0].form, curves[0].wall, curves[0].numbers.len()), (Form::Closed, 2, 4));
    let outlines = Outlines::new(&curves, &grid()).unwrap();
    assert!((outlines.bodies[0].area - 0.16).abs() < 1e-12 && outlines.notes.is_empty());
    // Square without points, and inside out: turned, and said.
    let direct = "a square\n\n4 lines\n\nLines\n\n1 0.2 0.2 0.6 0.2\n2 0.6 0.2 0.6 0.6\n3 0.6 0.6 0.2 0.6\n4 0.2 0.6 0.2 0.2\n";
    let curves = surf(direct, LABEL).unwrap();
    let outlines = Outlines::new(&curves, &grid()).unwrap();
    assert_eq!(outlines.notes, ["`b` was turned: the gas is outside of it"]);
    assert!((outlines.bodies[0].area - 0.16).abs() < 1e-12);
    // An octagon's half has the area r^2 sin 45 deg sin(180 - 45)... four triangles of r^2 sin(45 deg) / 2.
    let outlines = Outlines::new(&surf(&half_circle(false), LABEL).unwrap(), &grid()).unwrap();
    assert!((outlines.bodies[0].area - 2.0 * 0.04 * 0.5_f64.sqrt()).abs() < 1e-12, "{}", outlines.bodies[0].area);
    // With the gas on the other side all around it is solid.
    let outlines = Outlines::new(&surf(&half_circle(true), LABEL).unwrap(), &grid()).unwrap();
    assert!((outlines.bodies[0].area - 1.0 + 2.0 * 0.04 * 0.5_f64.sqrt()).abs() < 1e-12, "{}", outlines.bodies[0].area);
}

#[test]
fn broken_surfaces_are_refused() {
    let good = "t\n4 points\n4 lines\nPoints\n1 0.2 0.2\n2 0.6 0.2\n3 0.6 0.6\n4 0.2 0.6\nLines\n1 1 4\n2 4 3\n3 3 2\n4 2 1\n";
    assert!(surf(good, LABEL).is_ok());
    for (from, to, expected) in [
        ("4 lines", "", "no line `N lines`"),
        ("4 lines", "4 triangles", "line 3 counts triangles"),
        ("4 lines", "5 lines", "it ends after 4 of 5 lines"),
        ("4 points", "x points", "`x` in line 2 is no count"),
        ("Lines", "Rows", "line 9 is `Rows` where a section"),
        ("2 0.6 0.2", "2 0.6 nan", "`nan` in line 6 is no number"),
        ("2 0.6 0.2", "2 0.6", "line 6 ends after 2 of 3 numbers"),
        ("2 4 3", "2 4 9", "`9` in line 11 is no point: there are 4"),
        ("2 4 3", "2 4", "line 11 has 2 entries"),
        ("2 4 3", "2 3 4", "both"),
        (
            "1 1 4\n2 4 3\n3 3 2\n4 2 1",
            "1 1 1 4\n2 1 4 3\n3 2 3 2\n4 2 2 1",
            "line 1 is of type 1 and line 3 of type 2, and `wall` is for one type: give the others in `walls`",
        ),
        ("1 1 4\n2 4 3", "1 5 1 4\n2 5 4 3 6", "line 11 has 5 entries"),
        ("Lines\n1 1 4\n2 4 3\n3 3 2\n4 2 1\n", "", "no section `Lines`"),
    ] {
        let message = surf(&good.replace(from, to), LABEL).expect_err(expected);
        assert!(message.contains(expected), "{message}\n  is not\n{expected}");
    }
    // A line less is an open curve: refused once the domain is known.
    let open = good.replace("4 lines", "3 lines").replace("4 2 1\n", "");
    let problems = Outlines::new(&surf(&open, LABEL).unwrap(), &grid()).unwrap_err();
    assert!(problems[0].message.contains("`b` is open at (0.6, 0.2): segment 3 of `b`"), "{}", problems[0]);
}

#[test]
fn geometry_files_of_cells_are_read() {
    // An octagon about a corner of cells, as the generator writes it: cut at faces, six digits, any order.
    let v: Vec<[f64; 2]> = (0..8)
        .map(|k| f64::from(k).mul_add(std::f64::consts::FRAC_PI_4, 0.3))
        .map(|a| [0.5 + 0.23 * a.cos(), 0.5 + 0.23 * a.sin()])
        .collect();
    let g = grid();
    let mut records = Vec::new();
    for k in 0..8 {
        let (a, b) = (v[k], v[(k + 1) % 8]);
        let mut cuts: Vec<f64> = vec![0.0, 1.0];
        for d in 0..2 {
            cuts.extend((1..10).map(|i| (f64::from(i) * 0.1 - a[d]) / (b[d] - a[d])).filter(|s| *s > 0.0 && *s < 1.0));
        }
        cuts.sort_by(f64::total_cmp);
        let at = |s: f64| [a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1])];
        for w in cuts.windows(2) {
            let (p, q, m) = (at(w[0]), at(w[1]), at(0.5 * (w[0] + w[1])));
            let cell = (m[1] * 10.0) as usize * 10 + (m[0] * 10.0) as usize;
            let n = [q[1] - p[1], p[0] - q[0]];
            let (p, q) = if records.len() % 2 == 0 { (p, q) } else { (q, p) };
            records.push(format!("{cell} 0 {:.6} {:.6} {:.6} {:.6} {:.6} {:.6}", p[0], p[1], q[0], q[1], n[0], n[1]));
        }
    }
    records.reverse();
    let text = format!("# an octagon\n10 10 1.0 1.0\n{}\n44 1\n55 1\n", records.join("\n"));
    let curves = cells(&text, &g, LABEL).unwrap();
    assert_eq!(curves.len(), 1);
    let outlines = Outlines::new(&curves, &g).unwrap();
    let exact = 4.0 * 0.23 * 0.23 * 0.5_f64.sqrt();
    // Six digits of 1.5 m of outline.
    assert!((outlines.bodies[0].area - exact).abs() < 1.5e-6, "{}", outlines.bodies[0].area);
    for (from, to, expected) in [
        ("10 10 1.0 1.0".to_owned(), "10 12 1.0 1.0", "line 2 is for 10 x 12 cells on 1 m x 1 m, the input has 10 x 10"),
        ("44 1".to_owned(), "444 1", "`444` in line"),
        ("44 1".to_owned(), "44 2", "is neither `cell 0"),
        ("44 1".to_owned(), "11 1", "says that cell 11 is solid, but no segments go around it"),
        (records[3].clone(), "33 0 0.1 0.2 0.3", "line 6 ends after 3 of 6 numbers"),
    ] {
        let message = cells(&text.replace(&from, to), &g, LABEL).expect_err(expected);
        assert!(message.contains(expected), "{message}\n  is not\n{expected}");
    }
    let message = cells(&text.replace(&records[3], ""), &g, LABEL).unwrap_err();
    assert!(
        message.starts_with("the outline is open: the segment in line ") && message.contains("; the nearest that is free"),
        "{message}"
    );
}

/// A circle as the seed's generator writes it, whose segments are down to a unit of the last digit long.
#[test]
fn circles_in_fine_grids_are_read() {
    let g = Grid { cells: [500; 2], h: [2e-5; 2], origin: [0.0; 2], dimensions: 2 };
    for (r, c) in [(0.001, [0.005; 2]), (0.0015, [0.005, 0.00503]), (0.00312, [0.00501, 0.00497]), (0.004, [0.005; 2])] {
        let mut cuts = vec![0.0, std::f64::consts::TAU];
        for d in 0..2 {
            for cosine in (0..=500).map(|k| (f64::from(k) * 2e-5 - c[d]) / r).filter(|x: &f64| x.abs() < 1.0) {
                let angle = if d == 0 { cosine.acos() } else { cosine.asin() };
                let other = if d == 0 { -angle } else { std::f64::consts::PI - angle };
                cuts.extend([angle, other].map(|a| a.rem_euclid(std::f64::consts::TAU)));
            }
        }
        cuts.sort_by(f64::total_cmp);
        let mut text = String::from("500 500 0.01 0.01\n");
        for w in cuts.windows(2) {
            let ([p, q], m) = ([w[0], w[1]].map(|a| [c[0] + r * a.cos(), c[1] + r * a.sin()]), 0.5 * (w[0] + w[1]));
            let cell = [0, 1].map(|d| ((0.5 * (p[d] + q[d])) / 2e-5) as usize);
            let n = [m.cos(), m.sin()];
            let cell = cell[1] * 500 + cell[0];
            let _ = writeln!(text, "{cell} 0 {:.6} {:.6} {:.6} {:.6} {:.6} {:.6}", p[0], p[1], q[0], q[1], n[0], n[1]);
        }
        let curves = cells(&text, &g, LABEL).unwrap();
        assert_eq!(curves.len(), 1);
        let outlines = Outlines::new(&curves, &g).unwrap();
        // Half a digit all around at most.
        let exact = std::f64::consts::PI * r * r;
        assert!((outlines.bodies[0].area - exact).abs() < std::f64::consts::TAU * r * 0.5e-6 && outlines.notes.is_empty());
    }
    // Missing pieces are reported with line, cell and point; a segment is not joined to itself, and two that go there and back are
    // no body.
    let one = "500 500 0.01 0.01\n75000 0 0.001000 0.003001 0.001001 0.003001 0 -1\n";
    let message = cells(one, &g, LABEL).unwrap_err();
    assert!(message.contains("line 2, cell 75000 ends at (0.001001, 0.003001)"), "{message}");
    let back = "500 500 0.01 0.01\n75000 0 0.001000 0.003001 0.001011 0.003001 0 -1\n75000 0 0.001000 0.003001 0.001011 0.003001 0 1\n";
    let message = cells(back, &g, LABEL).unwrap_err();
    assert!(message.contains("line 2, cell 75000") && message.contains("encloses nothing"), "{message}");
}

proptest::proptest! {
    /// Nothing that stands in a file may panic: good files with lines cut, doubled, exchanged and words put in.
    #[test]
    fn torn_files_are_refused_or_read(changes in proptest::collection::vec((0_usize..60, 0_usize..5, 0_usize..10), 1..6)) {
        let words = ["-1", "nan", "1e400", "0", "points", "Lines", "18446744073709551616", "0.2", "#", "\u{e9}"];
        let text = half_circle(false);
        let cell = "10 10 1.0 1.0\n22 0 0.25 0.25 0.3 0.25 0 -1\n23 0 0.3 0.25 0.35 0.25 0 -1\n23 0 0.35 0.25 0.3 0.3 1 1\n22 0 0.3 0.3 0.25 0.25 -1 1\n";
        for (text, seed) in [(text.as_str(), false), (cell, true)] {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (at, what, word) in &changes {
                let at = at % lines.len();
                match what {
                    0 => { lines.remove(at); }
                    1 => lines.insert(at, lines[at].clone()),
                    2 => lines.swap(0, at),
                    3 => lines[at] = format!("{} {}", lines[at], words[*word]),
                    _ => lines[at] = format!("{} {}", words[*word], lines[at].split_once(' ').map_or("", |l| l.1)),
                }
                if lines.is_empty() {
                    break;
                }
            }
            let text = lines.join("\n");
            let curves = if seed { cells(&text, &grid(), LABEL) } else { surf(&text, LABEL) };
            if let Ok(curves) = curves && let Ok(outlines) = Outlines::new(&curves, &grid()) {
                let geometry = Geometry::new(&grid(), [false; 2], &outlines);
                let gas: f64 = (0..100).map(|c| geometry.fraction(c)).sum();
                let solid: f64 = geometry.bodies().iter().map(|b| b.area).sum::<f64>() / 0.01;
                proptest::prop_assert!((gas + solid - 100.0).abs() < 1e-9, "{} {}", gas, solid);
            }
        }
    }
}
