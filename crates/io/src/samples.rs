//! Small records that the tests of several formats share.

use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Values};

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
