//! Scans written in the formats that other programs read.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_io::hdf5::{Attribute, Node, Value, write_tree};
use zellige_io::tensor::{Elements, Tensor};
use zellige_io::{npz, tensor};

use crate::scan::{Frames, Image, Mask, Propagation, Scan};

/// Joules in a kiloelectronvolt.
const KEV: f64 = 1.602_176_634e-16;

/// Frames of a scan as an array; those left in a file are read.
fn frames(scan: &mut Scan) -> Result<Tensor> {
    let shape = vec![scan.positions.len(), scan.shape[0], scan.shape[1]];
    let elements = match &mut scan.frames {
        Frames::Counts(v) => Elements::U16(v.clone()),
        Frames::Real(v) => Elements::F32(v.clone()),
        Frames::Stored(source) => {
            let mut all = vec![0.0; shape.iter().product()];
            source.read(0, &mut all)?;
            let mut read = Frames::Real(all);
            read.mask_odd(&mut scan.mask, shape[1] * shape[2]);
            let Frames::Real(all) = read else { unreachable!("they were real") };
            Elements::F32(all)
        }
        Frames::Planned(_) => unreachable!("a plan writes no frames"),
    };
    Ok(Tensor { shape, elements })
}

fn mask(scan: &Scan) -> Tensor {
    let bits = |m: &[bool]| Elements::U16(m.iter().map(|v| u16::from(*v)).collect());
    let [rows, columns] = scan.shape;
    match &scan.mask {
        Mask::All => Tensor { shape: vec![rows, columns], elements: bits(&vec![true; rows * columns]) },
        Mask::Common(m) => Tensor { shape: vec![rows, columns], elements: bits(m) },
        Mask::Each(m) => Tensor { shape: vec![scan.positions.len(), rows, columns], elements: bits(m) },
    }
}

/// An image as an array.
pub(crate) fn array(image: &Image) -> Tensor {
    Tensor { shape: image.shape.to_vec(), elements: Elements::Complex(image.values.clone()) }
}

fn positions(all: &[[f64; 2]]) -> Tensor {
    Tensor::reals(&[all.len(), 2], all.iter().flatten().copied().collect())
}

/// Name of the propagation, in PtyPy's words.
fn propagation(scan: &Scan) -> &'static str {
    match scan.beam.propagation {
        Propagation::Far => "farfield",
        Propagation::Near => "nearfield",
    }
}

/// Writes an archive of NumPy, deflated, with the names that the reader knows; a simulated scan with what it was made from.
pub fn write_npz(path: impl AsRef<Path>, scan: &mut Scan) -> Result<()> {
    let frames = frames(scan)?;
    let mut arrays: Vec<(&str, Tensor)> = vec![
        ("intensity", frames),
        ("mask", mask(scan)),
        ("pos_m", positions(&scan.positions)),
        ("wavelength", tensor::Tensor::number(scan.beam.wavelength)),
        ("energy_keV", tensor::Tensor::number(scan.beam.energy())),
        ("distance", tensor::Tensor::number(scan.beam.distance)),
        ("det_pixel", Tensor::reals(&[2], scan.beam.pixel.to_vec())),
        ("near_field", tensor::Tensor::number(f64::from(u8::from(scan.beam.propagation == Propagation::Near)))),
        ("resolution", Tensor::reals(&[2], scan.beam.resolution(scan.shape).to_vec())),
    ];
    if let Some(probe) = &scan.probe {
        arrays.push(("probe_init", array(probe)));
    }
    if let Some(truth) = &scan.truth {
        arrays.push(("probe_true", array(&truth.probe)));
        arrays.push(("object_true", array(&truth.object)));
        arrays.push(("object_true_origin", Tensor::reals(&[2], truth.object.origin.to_vec())));
        arrays.push(("pos_true", positions(&truth.positions)));
    }
    let listed: Vec<(&str, &Tensor)> = arrays.iter().map(|(n, t)| (*n, t)).collect();
    npz::write(path, &listed, true)
}

/// Writes a CXI file that is an NXcxi_ptycho file as well.
pub fn write_cxi(path: impl AsRef<Path>, scan: &mut Scan) -> Result<()> {
    let frames = frames(scan)?;
    let count = scan.positions.len();
    let translation = Tensor::reals(&[count, 3], scan.positions.iter().flat_map(|p| [p[1], p[0], 0.0]).collect());
    let motor = |d: usize| Tensor::reals(&[count], scan.positions.iter().map(|p| p[d]).collect());
    let (x, y) = (motor(1), motor(0));
    // Rows run along -y and columns along -x: a larger translation of the sample moves the view down and right.
    let basis = Tensor::reals(&[2, 3], vec![0.0, -scan.beam.pixel[0], 0.0, -scan.beam.pixel[1], 0.0, 0.0]);
    let valid = mask(scan);
    let bad = Elements::I32(valid.to_reals().unwrap_or_default().iter().map(|v| i32::from(*v == 0.0)).collect());
    let bad = Tensor { shape: valid.shape, elements: bad };
    let energy = scan.beam.energy() * KEV;
    let probe = scan.probe.as_ref().map(array);
    let class = |path: &str, class: &str| Node::new(path, Value::Group).with("NX_class", class);
    let metres = |path: &str, value: f64| Node::number(path, value).with("units", "m");
    let with = |mut node: Node<'static>, name: &'static str, value: Attribute| {
        node.attributes.push((name, value));
        node
    };
    let texts = |all: &[&str]| Attribute::Texts(all.iter().map(|t| (*t).to_owned()).collect());
    let data = class("entry_1/data", "NXdata").with("signal", "data");
    let mut nodes = vec![
        Node::new("cxi_version", Value::Whole(160)),
        class("entry_1", "NXentry").with("default", "data"),
        Node::text("entry_1/title", scan.name.clone()),
        Node::text("entry_1/definition", "NXcxi_ptycho"),
        class("entry_1/instrument_1", "NXinstrument"),
        class("entry_1/instrument_1/source_1", "NXsource"),
        Node::text("entry_1/instrument_1/source_1/name", scan.name.clone()),
        Node::number("entry_1/instrument_1/source_1/energy", energy).with("units", "J"),
        Node::text("entry_1/instrument_1/source_1/probe", "x-ray"),
        class("entry_1/instrument_1/beam_1", "NXbeam"),
        Node::number("entry_1/instrument_1/beam_1/energy", energy).with("units", "J"),
        Node::number("entry_1/instrument_1/beam_1/incident_beam_energy", energy).with("units", "J"),
        class("entry_1/instrument_1/detector_1", "NXdetector").with("signal", "data"),
        Node::new("entry_1/instrument_1/detector_1/data", Value::Packed(&frames)).with("units", "counts").with("axes", "translation:y:x"),
        metres("entry_1/instrument_1/detector_1/x_pixel_size", scan.beam.pixel[1]),
        metres("entry_1/instrument_1/detector_1/y_pixel_size", scan.beam.pixel[0]),
        metres("entry_1/instrument_1/detector_1/distance", scan.beam.distance),
        Node::text("entry_1/instrument_1/detector_1/propagation", propagation(scan)),
        metres("entry_1/instrument_1/detector_1/beam_center_x", (scan.shape[1] / 2) as f64 * scan.beam.pixel[1]),
        metres("entry_1/instrument_1/detector_1/beam_center_y", (scan.shape[0] / 2) as f64 * scan.beam.pixel[0]),
        Node::new("entry_1/instrument_1/detector_1/basis_vectors", Value::Own(basis)),
        Node::new("entry_1/instrument_1/detector_1/mask", Value::Own(bad)),
        Node::new("entry_1/instrument_1/detector_1/translation", Value::Own(translation))
            .with("units", "m")
            .with("interpretation", "image"),
        class("entry_1/sample_1", "NXsample"),
        Node::text("entry_1/sample_1/name", scan.name.clone()),
        class("entry_1/sample_1/transformations", "NXtransformations"),
        Node::new("entry_1/sample_1/transformations/x", Value::Own(x)).with("units", "m").with("transformation_type", "translation"),
        Node::new("entry_1/sample_1/transformations/y", Value::Own(y)).with("units", "m").with("transformation_type", "translation"),
        class("entry_1/sample_1/geometry_1", "NXcollection"),
        Node::new("entry_1/sample_1/geometry_1/translation", Value::Link("entry_1/instrument_1/detector_1/translation".into())),
        class("entry_1/data_1", "NXcollection"),
        Node::new("entry_1/data_1/data", Value::Link("entry_1/instrument_1/detector_1/data".into())),
        Node::new("entry_1/data_1/translation", Value::Link("entry_1/instrument_1/detector_1/translation".into())),
        with(with(data, "axes", texts(&["x", ".", "."])), "x_indices", Attribute::Whole(vec![0])),
        Node::new("entry_1/data/data", Value::Link("entry_1/instrument_1/detector_1/data".into())),
        Node::new("entry_1/data/x", Value::Link("entry_1/sample_1/transformations/x".into())),
        Node::new("entry_1/data/y", Value::Link("entry_1/sample_1/transformations/y".into())),
    ];
    if let Some(probe) = &probe {
        nodes.push(Node::new("entry_1/instrument_1/source_1/illumination", Value::Array(probe)));
    }
    write_tree(path, &nodes)
}

/// Writes PtyPy's prepared data: one chunk.
pub fn write_ptyd(path: impl AsRef<Path>, scan: &mut Scan) -> Result<()> {
    let frames = frames(scan)?;
    let count = scan.positions.len();
    let valid = mask(scan);
    let [rows, columns] = scan.shape;
    let weights = valid.to_reals().unwrap_or_default().iter().cycle().take(count * rows * columns).map(|v| *v as u16).collect();
    let weights = Tensor { shape: vec![count, rows, columns], elements: Elements::U16(weights) };
    let position = positions(&scan.positions);
    let indices = Tensor { shape: vec![count], elements: Elements::I32((0..count as i32).collect()) };
    let pair = |v: [f64; 2]| Tensor::reals(&[2], v.to_vec());
    let kind = |node: Node<'static>, kind: &str| node.with("type", kind.to_owned());
    let own = |path: &str, tensor: Tensor| Node::new(path, Value::Own(tensor)).with("type", "array");
    let nodes = vec![
        kind(Node::new("chunks", Value::Group), "dict"),
        kind(Node::new("chunks/0", Value::Group), "dict"),
        Node::new("chunks/0/data", Value::Packed(&frames)).with("type", "array"),
        Node::new("chunks/0/weights", Value::Packed(&weights)).with("type", "array"),
        own("chunks/0/positions", position.clone()),
        own("chunks/0/indices", indices),
        kind(Node::new("meta", Value::Group), "dict"),
        kind(Node::text("meta/label", scan.name.clone()), "string"),
        kind(Node::number("meta/version", 0.1), "scalar"),
        kind(Node::new("meta/num_frames", Value::Whole(count as i64)), "scalar"),
        kind(Node::number("meta/energy", scan.beam.energy()), "scalar"),
        kind(Node::number("meta/distance", scan.beam.distance), "scalar"),
        own("meta/psize", pair(scan.beam.pixel)),
        // PtyPy makes an array of this shape.
        own("meta/shape", Tensor { shape: vec![2], elements: Elements::I32(scan.shape.map(|n| n as i32).to_vec()) }),
        own("meta/center", pair(scan.shape.map(|n| (n / 2) as f64))),
        kind(Node::new("info", Value::Group), "dict"),
        own("info/positions_scan", position),
        kind(Node::text("info/propagation", propagation(scan)), "string"),
    ];
    write_tree(path, &nodes)
}
