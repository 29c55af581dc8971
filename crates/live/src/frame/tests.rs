//! Tests of the reduction of records.

use std::sync::Arc;

use num_complex::Complex;
use zellige_engine::record::{Component, LazyPatches, Mesh};

use super::*;

fn axis(i: usize, len: usize) -> Axis {
    Axis { unit: "m".into(), ..Axis::bare(i, 1.0, 0.5, len) }
}

fn field(axes: Vec<Axis>, centring: Centring, value: impl Fn(usize) -> f64) -> Field {
    let len = axes.iter().map(|a| a.len).product();
    Field::bare("u", axes, centring, Values::F64((0..len).map(value).collect()))
}

fn only(field: Field) -> Content {
    let mut all = frames(&[Record::Field(field)]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn small_fields_are_shown_as_they_are_from_the_top() {
    let content = only(field(vec![axis(0, 3), axis(1, 2)], Centring::Cell, |i| i as f64));
    assert_eq!(content.values, [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
    assert_eq!((content.head.extent, content.head.full), ([1.0, 2.5, 1.0, 2.0], [3, 2]));
    // Nodes are in the middle of their pixels.
    let content = only(field(vec![axis(0, 3), axis(1, 2)], Centring::Node, |i| i as f64));
    assert_eq!(content.head.extent, [0.75, 2.25, 0.75, 1.75]);
}

#[test]
fn large_fields_are_averaged_over_each_pixel() {
    let (nx, ny) = (4 * MOST, 2 * MOST);
    let content = only(field(vec![axis(0, nx), axis(1, ny)], Centring::Cell, |i| (i % nx) as f64 + 1e4 * (i / nx) as f64));
    assert_eq!((content.head.nx, content.head.ny, content.head.full), (MOST, MOST, [nx, ny]));
    // The middle of four columns and two rows; the first row of pixels is the highest.
    let expected = |x: usize, y: usize| 4.0 * x as f64 + 1.5 + 1e4 * (2.0 * (MOST - 1 - y) as f64 + 0.5);
    for (x, y) in [(0, 0), (MOST - 1, 0), (7, MOST - 1), (100, 300)] {
        let found = f64::from(content.values[y * MOST + x]);
        assert!((found / expected(x, y) - 1.0).abs() < 1e-6, "{found} at {x}, {y}");
    }
}

#[test]
fn three_axes_give_three_planes_through_the_middle() {
    let all = frames(&[Record::Field(field(vec![axis(0, 4), axis(1, 2), axis(2, 3)], Centring::Cell, |i| i as f64))]);
    let names: Vec<&str> = all.iter().map(|c| &*c.head.name).collect();
    assert_eq!(names, ["u_xy", "u_xz", "u_yz"]);
    // Index 1 of z, then 1 of y, then 2 of x.
    assert_eq!(all[0].values, [12.0, 13.0, 14.0, 15.0, 8.0, 9.0, 10.0, 11.0]);
    assert_eq!(all[1].values[..4], [20.0, 21.0, 22.0, 23.0]);
    assert_eq!(all[2].values[..2], [18.0, 22.0]);
    assert_eq!(all[0].head.title, "u, z = 1.75 m");
}

#[test]
fn lines_are_curves_of_a_bounded_number_of_points() {
    let content = only(field(vec![axis(0, 5000)], Centring::Cell, |i| i as f64));
    assert_eq!((content.head.kind, content.head.nx), (Kind::Curve, 1667));
    assert_eq!((content.values[0], content.values[1], content.values[1667], content.values[1668]), (1.25, 2.75, 0.0, 3.0));
}

#[test]
fn components_of_a_mesh_are_fields_unless_they_are_there_already() {
    let component = |name: &str| Component { name: name.into(), position: vec![0.5, 0.0], values: Values::F32(vec![1.0; 6]) };
    let mesh = Mesh {
        name: "u".into(),
        title: "flow".into(),
        unit: String::new(),
        dimension: [0.0; 7],
        unit_si: 1.0,
        axes: vec![axis(0, 3), axis(1, 2)],
        length_si: 1.0,
        time_si: 1.0,
        time_offset: 0.0,
        components: vec![component("x"), component("y")],
        share: None,
        palette: Palette::Diverging,
    };
    let there = Field { name: "u_x".into(), ..field(vec![axis(0, 3), axis(1, 2)], Centring::Cell, |_| 0.0) };
    let all = frames(&[Record::Mesh(mesh), Record::Field(there)]);
    let names: Vec<&str> = all.iter().map(|c| &*c.head.name).collect();
    assert_eq!(names, ["u_y", "u_x"]);
    assert_eq!(all[0].head.extent, [1.0, 2.5, 0.75, 1.75]);
}

#[test]
fn waves_keep_both_parts_and_their_layers() {
    let wave = |layers: usize, side: usize| Wave {
        name: "probe".into(),
        title: "probe".into(),
        shape: [layers, side, side],
        axes: [axis(0, side), axis(1, side)],
        values: (0..layers * side * side).map(|i| Complex::new(i as f32, -1.0)).collect(),
        brightest: None,
        live: false,
    };
    let small = frames(&[Record::Wave(wave(2, 2))]).remove(0);
    assert_eq!((small.head.layers, small.values[..4].to_vec()), (2, vec![0.0, -1.0, 1.0, -1.0]));
    assert_eq!(small.head.extent, [1.0, 2.0, 2.0, 1.0]);
    let large = frames(&[Record::Wave(wave(4, 1024))]).remove(0);
    assert_eq!((large.head.nx, large.head.layers), (256, 4));
    // Sixteen pixels around row and column 1.5.
    assert_eq!(large.values[..2], [1.5 * 1024.0 + 1.5, -1.0]);
}

#[test]
fn outlines_are_segments_and_what_is_drawn_on_request_is_left_out() {
    let make = |_: &[Record]| Patches {
        name: "walls".into(),
        title: "walls".into(),
        points: vec![[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]],
        corners: vec![0, 1, 1, 2],
        ends: vec![2, 4],
        values: Vec::new(),
    };
    let walls = Record::Patches(LazyPatches { name: "walls".into(), segments: true, make: Arc::new(make) });
    let hidden = Field { palette: Palette::Undrawn, ..field(vec![axis(0, 3), axis(1, 2)], Centring::Cell, |_| 0.0) };
    let all = frames(&[walls, Record::Field(hidden)]);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].head.kind, all[0].values.clone()), (Kind::Outline, vec![0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 2.0]));
}

#[test]
fn planes_that_were_made_elsewhere_are_shown_like_the_field() {
    let shapes: [&[usize]; 5] = [&[700, 3], &[40, 31], &[513, 515], &[600, 5, 520], &[1, 4, 6]];
    for shape in shapes {
        for centring in [Centring::Node, Centring::Cell] {
            let axes = shape.iter().enumerate().map(|(i, n)| axis(i, *n)).collect();
            let whole = field(axes, centring, |i| ((i * 7919) % 1009) as f64);
            let [of_field, of_planes] = [Record::Field(whole.clone()), Record::Planes(picture::planes(whole))].map(|r| frames(&[r]));
            assert_eq!(of_field.len(), of_planes.len());
            assert!(!of_field.is_empty());
            for (a, b) in of_field.iter().zip(&of_planes) {
                assert_eq!(serde_json::to_string(&a.head).unwrap(), serde_json::to_string(&b.head).unwrap());
                assert!(a.values == b.values && a.values.len() == a.head.nx * a.head.ny, "{shape:?}, {centring:?}");
            }
        }
    }
}
