//! Small records that the tests of several formats share.

use num_complex::Complex;
use zellige_engine::record::{Axis, Centring, Column, Component, Curve, Entries, Field, Mesh, Method, Note, Palette, Table, Values, Wave};

fn axis(name: &str, origin: f64, spacing: f64, len: usize) -> Axis {
    Axis { name: name.into(), unit: "m".into(), origin, spacing, len }
}

fn field(name: &str, axes: Vec<Axis>, centring: Centring, double: bool) -> Field {
    let count: usize = axes.iter().map(|a| a.len).product();
    let value = |i: usize| (i as f64 * 0.7).sin() * 1e-3;
    let values =
        if double { Values::F64((0..count).map(value).collect()) } else { Values::F32((0..count).map(|i| value(i) as f32).collect()) };
    Field {
        name: name.into(),
        title: format!("potential {name}"),
        unit: "V".into(),
        dimension: [2.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0],
        axes,
        centring,
        values,
        share: None,
        palette: Palette::Sequential,
    }
}

/// 5 by 3 nodes in single precision.
pub(crate) fn plane() -> Field {
    field("u", vec![axis("x", -1.0, 0.5, 5), axis("y", 0.25, 1.5, 3)], Centring::Node, false)
}

/// Every kind: 1 to 3 axes, nodes and cells, single and double.
pub(crate) fn fields() -> Vec<Field> {
    vec![
        plane(),
        field("line", vec![axis("x", 0.0, 0.1, 7)], Centring::Node, true),
        field("cells", vec![axis("x", 0.0, 0.1, 4), axis("y", -2.0, 0.25, 6)], Centring::Cell, true),
        field("cube", vec![axis("x", 0.0, 1.0, 2), axis("y", 0.0, 1.0, 3), axis("z", 5.0, 2.0, 4)], Centring::Node, true),
        field("bricks", vec![axis("x", 0.0, 1.0, 3), axis("y", 0.0, 1.0, 2), axis("z", 0.0, 1.0, 1)], Centring::Node, false),
    ]
}

/// A residual history.
pub(crate) fn curve() -> Curve {
    Curve {
        name: "residual".into(),
        title: "residual history".into(),
        x_label: "cycle".into(),
        y_label: "relative residual".into(),
        x: vec![0.0, 1.0, 2.0],
        lines: vec![("relative residual".into(), vec![1.0, 0.05, 1.0 / 300.0])],
        log_y: true,
    }
}

/// Two layers of 3 rows of 4 columns.
pub(crate) fn wave() -> Wave {
    let axes = [axis("x", 0.0, 0.5, 4), axis("y", 0.0, 0.25, 3)];
    let values = (0..24).map(|i| Complex::new(i as f32, -0.5 * i as f32)).collect();
    Wave { name: "probe".into(), title: "probe".into(), shape: [2, 3, 4], axes, values, brightest: None, live: false }
}

/// A staggered vector on 4 by 3 cells.
pub(crate) fn mesh() -> Mesh {
    let component = |name: &str, position: [f64; 2]| Component {
        name: name.into(),
        position: position.into(),
        values: Values::F32((0..12).map(|i| (i as f32 + position[0] as f32).sin()).collect()),
    };
    Mesh {
        name: "E".into(),
        title: "electric field".into(),
        unit: "E0".into(),
        dimension: [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0],
        unit_si: 9.6e10,
        axes: vec![axis("x", -1.0, 0.5, 4), axis("y", 0.0, 0.25, 3)],
        length_si: 5.3e-6,
        time_si: 1.8e-14,
        time_offset: 0.0,
        components: vec![component("x", [0.5, 0.0]), component("y", [0.0, 0.5])],
        share: None,
        palette: Palette::Diverging,
    }
}

/// A scalar on the same cells.
pub(crate) fn density() -> Mesh {
    let mut mesh = mesh();
    (mesh.name, mesh.title, mesh.dimension) = ("rho".into(), "charge density".into(), [-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    mesh.components.truncate(1);
    mesh.components[0].name = String::new();
    mesh
}

/// Three particles with a position, a momentum, a weighting, and one charge and mass for all.
pub(crate) fn species() -> Table {
    let column = |quantity: &str, component: &str, dimension: [f64; 4], weighting_power: f64, values: Entries| {
        let [m, kg, s, a] = dimension;
        Column {
            quantity: quantity.into(),
            component: component.into(),
            unit: String::new(),
            dimension: [m, kg, s, a, 0.0, 0.0, 0.0],
            unit_si: 2.0,
            weighting_power,
            macro_weighted: quantity == "weighting",
            time_offset: 0.0,
            values,
        }
    };
    Table {
        name: "electrons".into(),
        title: "electrons".into(),
        length_si: 5.3e-6,
        time_si: 1.8e-14,
        len: 3,
        share: None,
        columns: vec![
            column("position", "x", [1.0, 0.0, 0.0, 0.0], 0.0, Entries::Each(Values::F64(vec![0.25, 0.5, 1.5]))),
            column("momentum", "x", [1.0, 1.0, -1.0, 0.0], 1.0, Entries::Each(Values::F32(vec![-1.0, 0.0, 1.0]))),
            column("weighting", "", [0.0; 4], 1.0, Entries::Each(Values::F32(vec![1.0, 2.0, 4.0]))),
            column("charge", "", [0.0, 0.0, 1.0, 1.0], 1.0, Entries::Same(-1.0)),
            column("mass", "", [0.0, 1.0, 0.0, 0.0], 1.0, Entries::Same(1.0)),
            // A double has no place for the last one.
            column("id", "", [0.0; 4], 0.0, Entries::Whole(vec![1, 1 << 53, (1 << 53) + 1])),
        ],
    }
}

/// Numerical methods of the sample meshes and particles.
pub(crate) fn method() -> Method {
    Method {
        fields: vec![("fieldBoundary", Note::Sides(vec![["open", "reflecting"], ["periodic"; 2]]))],
        species: vec![("electrons".into(), vec![("particlePush", Note::Text("Boris".into())), ("particleShape", Note::Number(1.0))])],
    }
}

/// Compares what every format keeps. A last axis of length one may be dropped, and a brick's spacing is a quotient.
pub(crate) fn assert_same(a: &Field, b: &Field) {
    assert_eq!((&a.name, a.centring, a.values.len()), (&b.name, b.centring, b.values.len()));
    assert!((0..a.values.len()).all(|i| a.values.get(i) == b.values.get(i)), "values of `{}`", a.name);
    for (p, q) in a.axes.iter().zip(&b.axes) {
        assert_eq!((p.len, p.origin), (q.len, q.origin), "`{}`", a.name);
        assert!((p.spacing - q.spacing).abs() <= 4.0 * f64::EPSILON * p.spacing, "`{}`", a.name);
    }
    assert!(a.axes.iter().skip(b.axes.len()).all(|axis| axis.len == 1));
}
