//! Writes one field of each kind in every format into a folder, for the conformance readers:
//! `cargo run -p zellige-io --example samples -- out/samples && python tests/conformance/read_back.py out/samples`, and
//! meshes and particles of two steps as openPMD, for `python tests/conformance/openpmd.py out/samples/openpmd`.

use std::path::PathBuf;

use zellige_engine::error::Result;
use zellige_engine::files::create_dir;
use zellige_engine::record::{Axis, Centring, Column, Component, Curve, Entries, Field, Mesh, Palette, Record, Table, Values};
use zellige_io::{Format, Stamp, write_records};

fn field(name: &str, lengths: &[usize], centring: Centring, double: bool) -> Record {
    let axis = |(k, &len): (usize, &usize)| Axis {
        name: ["x", "y", "z"][k].into(),
        unit: "m".into(),
        origin: k as f64 - 1.0,
        spacing: 0.1 * (k + 1) as f64,
        len,
    };
    let count = lengths.iter().product();
    let value = |i: usize| (i as f64 * 0.37).sin();
    let values =
        if double { Values::F64((0..count).map(value).collect()) } else { Values::F32((0..count).map(|i| value(i) as f32).collect()) };
    Record::Field(Field {
        name: name.into(),
        title: format!("sample {name}"),
        unit: "V".into(),
        dimension: [2.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0],
        axes: lengths.iter().enumerate().map(axis).collect(),
        centring,
        values,
        share: None,
        palette: Palette::Diverging,
    })
}

/// Nodes of the meshes.
const NODES: [usize; 2] = [8, 6];
/// Particles.
const PARTICLES: usize = 50;

/// `x + 100 y` (in cells, at the values' own places) `+ step`, which the reader computes too.
fn mesh(name: &str, components: &[(&str, [f64; 2])], step: u64) -> Record {
    let component = |&(name, position): &(&str, [f64; 2])| {
        let value = |i: usize| {
            let (x, y) = ((i % NODES[0]) as f64 + position[0], (i / NODES[0]) as f64 + position[1]);
            (x + 100.0 * y + step as f64) as f32
        };
        let values = Values::F32((0..NODES[0] * NODES[1]).map(value).collect());
        Component { name: name.into(), position: position.into(), values }
    };
    let axis = |i: usize| Axis::bare(i, [-2.0, 1.0][i], [0.5, 0.25][i], NODES[i]);
    Record::Mesh(Mesh {
        name: name.into(),
        title: name.into(),
        unit: "V/m".into(),
        dimension: [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0],
        unit_si: 10.0,
        axes: vec![axis(0), axis(1)],
        length_si: 1e-6,
        time_si: 1e-15,
        time_offset: 0.0,
        components: components.iter().map(component).collect(),
        share: None,
        palette: Palette::Diverging,
    })
}

/// Particle `i` at `(i / 10, -i)` with momentum `(2 i, step, 0)` and weighting `1 + i`.
fn electrons(step: u64) -> Record {
    let column = |quantity: &str, component: &str, dimension: [f64; 4], values: Entries| {
        let [m, kg, s, a] = dimension;
        Column {
            quantity: quantity.into(),
            component: component.into(),
            unit: String::new(),
            dimension: [m, kg, s, a, 0.0, 0.0, 0.0],
            unit_si: match quantity {
                "position" => 1e-6,
                "momentum" => 2.730_924_5e-22,
                "charge" => 1.602_176_6e-19,
                "mass" => 9.109_384e-31,
                _ => 1.0,
            },
            weighting_power: if matches!(quantity, "momentum" | "charge" | "mass" | "weighting") { 1.0 } else { 0.0 },
            macro_weighted: quantity == "weighting",
            time_offset: 0.0,
            values,
        }
    };
    let each = |f: &dyn Fn(f64) -> f64| Entries::Each(Values::F64((0..PARTICLES).map(|i| f(i as f64)).collect()));
    let (length, momentum) = ([1.0, 0.0, 0.0, 0.0], [1.0, 1.0, -1.0, 0.0]);
    Record::Table(Table {
        name: "electrons".into(),
        title: "electrons".into(),
        length_si: 1e-6,
        time_si: 1e-15,
        len: PARTICLES,
        share: None,
        columns: vec![
            column("position", "x", length, each(&|i| 0.1 * i)),
            column("position", "y", length, each(&|i| -i)),
            column("momentum", "x", momentum, each(&|i| 2.0 * i)),
            column("momentum", "y", momentum, each(&|_| step as f64)),
            column("momentum", "z", momentum, Entries::Same(0.0)),
            column("weighting", "", [0.0; 4], each(&|i| 1.0 + i)),
            column("charge", "", [0.0, 0.0, 1.0, 1.0], Entries::Same(-1.0)),
            column("mass", "", [0.0, 1.0, 0.0, 0.0], Entries::Same(1.0)),
        ],
    })
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "out/samples".into()));
    create_dir(&folder)?;
    let curve = Curve {
        name: "residual".into(),
        title: "residual history".into(),
        x_label: "cycle".into(),
        y_label: "relative residual".into(),
        x: vec![0.0, 1.0, 2.0],
        lines: vec![("relative residual".into(), vec![1.0, 0.05, 0.003])],
        log_y: true,
    };
    let records = [
        field("line", &[17], Centring::Node, true),
        field("plane", &[33, 20], Centring::Node, false),
        field("cells", &[12, 9], Centring::Cell, true),
        field("cube", &[9, 8, 7], Centring::Node, true),
        field("bricks", &[5, 6, 4], Centring::Cell, false),
        Record::Curve(curve),
    ];
    for path in write_records(&folder, &records, &Format::ALL, Stamp::default())? {
        println!("{}", path.display());
    }
    for step in [0, 40] {
        let sides = [("x", [0.5, 0.0]), ("y", [0.0, 0.5]), ("z", [0.0, 0.0])];
        let records = [mesh("E", &sides, step), mesh("rho", &[("", [0.5, 0.5])], step), electrons(step)];
        let stamp = Stamp { step, time: Some(0.05 * step as f64), numbered: true };
        for path in write_records(&folder, &records, &[Format::Hdf5], stamp)? {
            println!("{}", path.display());
        }
    }
    Ok(())
}
