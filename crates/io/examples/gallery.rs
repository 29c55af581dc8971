//! Draws one picture of each kind into a folder: `cargo run -p zellige-io --example gallery -- out/gallery`.

use std::f64::consts::TAU;
use std::path::PathBuf;
use std::time::Instant;

use zellige_engine::error::Result;
use zellige_engine::files::create_dir;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};
use zellige_io::picture::{Options, write};

fn axis(name: &str, unit: &str, origin: f64, length: f64, len: usize) -> Axis {
    Axis { name: name.into(), unit: unit.into(), origin, spacing: length / (len as f64 - 1.0), len }
}

fn field(name: &str, title: &str, unit: &str, axes: Vec<Axis>, palette: Palette, f: impl Fn(&[f64; 3]) -> f64) -> Field {
    let count: usize = axes.iter().map(|a| a.len).product();
    let values = (0..count).map(|mut i| {
        let mut place = [0.0; 3];
        for (x, a) in place.iter_mut().zip(&axes) {
            *x = a.origin + (i % a.len) as f64 * a.spacing;
            i /= a.len;
        }
        f(&place) as f32
    });
    let values = Values::F32(values.collect());
    let (name, title, unit) = (name.into(), title.into(), unit.into());
    Field { name, title, unit, dimension: [0.0; 7], axes, centring: Centring::Node, values, share: None, palette }
}

fn well(x: f64, y: f64) -> f64 {
    (-(x * x + y * y)).exp() / (0.3 + x * x + y * y)
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "out/gallery".into()));
    create_dir(&folder)?;
    let square = |n| vec![axis("x", "", 0.0, 32.0, n), axis("y", "", 0.0, 32.0, n)];
    let dipole = |p: &[f64; 3]| {
        let r = |cx: f64| ((p[0] - cx).powi(2) + (p[1] - 16.0).powi(2) + 1.0).ln();
        0.02 * (r(20.0) - r(12.0)) * (p[0] * (32.0 - p[0]) * p[1] * (32.0 - p[1])) / 65536.0
    };
    let mut cells = field(
        "n",
        "number density n",
        "1/m³",
        vec![axis("x", "mm", -2.0, 4.0, 12), axis("y", "mm", 0.0, 2.0, 7)],
        Palette::Sequential,
        |p| 3e20 * (-(p[0] * p[0]) - (p[1] - 1.0).powi(2)).exp(),
    );
    cells.centring = Centring::Cell;
    let noise = |p: &[f64; 3]| (p[0] * 12.9898 + p[1] * 78.233).sin() * 43758.547;
    let cube = vec![axis("x", "m", 0.0, 1.0, 65), axis("y", "m", 0.0, 1.0, 65), axis("z", "m", 0.0, 0.5, 33)];
    let long = vec![axis("x", "µm", 0.0, 60.0, 900), axis("y", "µm", -6.0, 12.0, 180)];
    let pictures = [
        (field("dipole", "potential u of two opposite charges", "", square(4096), Palette::Diverging, dipole), Options::default()),
        (field("phase", "phase φ", "rad", square(512), Palette::Cyclic, |p| (p[1] - 16.0).atan2(p[0] - 16.0)), Options::default()),
        (cells, Options::default()),
        (field("noise", "electric field E", "V/m", square(300), Palette::Diverging, |p| noise(p).fract() * 1e6), Options::default()),
        (field("cube", "potential u", "V", cube, Palette::Sequential, |p| (TAU * p[0]).sin() * p[1] + p[2]), Options::default()),
        (
            field("wake", "charge density ρ", "C/m³", long, Palette::Diverging, |p| {
                -2e-3 * (-p[1] * p[1] / 6.0).exp() * (p[0] * 0.9).sin() * (1.0 - p[0] / 80.0)
            }),
            Options::default(),
        ),
        (
            field("log", "distance from the solution", "", square(400), Palette::Sequential, |p| {
                1e-9 + well((p[0] - 10.0) / 3.0, (p[1] - 20.0) / 3.0)
            }),
            Options { log: true, map: Some(zellige_io::picture::ColourMap::Inferno), ..Options::default() },
        ),
        (field("flat", "zero everywhere", "", square(9), Palette::Diverging, |_| 0.0), Options::default()),
        (
            field("line", "a profile", "K", vec![axis("x", "m", 0.0, 1.0, 200)], Palette::Sequential, |p| {
                300.0 + 20.0 * (9.0 * p[0]).sin()
            }),
            Options::default(),
        ),
    ];
    for (field, options) in pictures {
        let path = folder.join(format!("{}.png", field.name));
        let start = Instant::now();
        write(&path, &Record::Field(field), &options)?;
        println!("{} in {:.0} ms", path.display(), start.elapsed().as_secs_f64() * 1e3);
    }
    let cycles: Vec<f64> = (0..12).map(f64::from).collect();
    let fall = |rate: f64, floor: f64| cycles.iter().map(|c| 0.7 * rate.powf(*c) + floor).collect();
    let residual = Curve {
        name: "residual".into(),
        title: "residual history".into(),
        x_label: "cycle".into(),
        y_label: "relative residual ‖f − Au‖ / ‖f‖".into(),
        x: cycles.clone(),
        lines: vec![("mixed, V(1,1)".into(), fall(0.08, 0.0)), ("f32, V(1,1)".into(), fall(0.08, 3e-4)), ("SOR".into(), fall(0.7, 0.0))],
        log_y: true,
    };
    write(&folder.join("residual.png"), &Record::Curve(residual), &Options::default())
}
