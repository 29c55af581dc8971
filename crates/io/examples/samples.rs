//! Writes one field of each kind in every format into a folder, for the conformance readers:
//! `cargo run -p zellige-io --example samples -- out/samples && python tests/conformance/read_back.py out/samples`.

use std::path::PathBuf;

use zellige_engine::error::Result;
use zellige_engine::files::create_dir;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};
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
        palette: Palette::Diverging,
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
    Ok(())
}
