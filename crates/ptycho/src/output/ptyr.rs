//! Results as PtyPy saves them (`save_run` of kind `minimal`), with what its own functions demand of such a file: `load_from_ptyr`
//! and `ptypy.plot` look at the header first and take errors from `runtime/iter_info`; `load_run` makes storages of probe and
//! object from their fields, and the rest from `pars`.

use std::path::Path;

use num_complex::Complex;
use zellige_engine::record::{Archive, Content, Leaf};

use super::{Results, owner, pair, plain, positions, probe_origin, probes, single};
use crate::config::ScanConfig;
use crate::data::{FileFormat, ReadConfig};
use crate::scan::{Beam, Propagation};

/// Group of the positions of each scan by its name, which PtyPy does not know: it keeps those of all scans of an object together.
pub(crate) const POSITIONS: &str = "content/scan_positions";

/// Leaf with the type mark that PtyPy gives what it stores.
fn typed(path: impl Into<String>, content: Content, kind: &str) -> Leaf {
    Leaf { path: path.into(), content, attributes: vec![("type", kind.to_owned())] }
}

fn group(path: impl Into<String>, kind: &str) -> Leaf {
    typed(path, Content::Group, kind)
}

fn text(path: impl Into<String>, text: &str) -> Leaf {
    typed(path, Content::Text(text.to_owned()), "string")
}

fn whole(path: impl Into<String>, value: usize) -> Leaf {
    typed(path, Content::Whole(value as i64), "scalar")
}

/// Storage of a probe or an object, as PtyPy keeps it.
struct Storage<'a> {
    /// `probe` or `obj`.
    kind: &'a str,
    /// Number among those of its kind.
    number: usize,
    /// First view's scan.
    scan: String,
    shape: [usize; 3],
    values: Vec<Complex<f32>>,
    origin: [f64; 2],
    fill: f64,
}

impl Storage<'_> {
    fn id(&self) -> String {
        format!("S{}G00", self.scan)
    }

    /// All fields: PtyPy makes an object of them without its constructor.
    fn leaves(self, pixel: [f64; 2], beam: Option<&Beam>, leaves: &mut Vec<Leaf>) {
        let id = self.id();
        let folder = format!("content/{}/{id}", self.kind);
        let path = |key: &str| format!("{folder}/{key}");
        let layers = self.shape[0];
        leaves.push(group(folder.clone(), "dict"));
        leaves.push(text(path("ID"), &id));
        leaves.push(whole(path("numID"), self.number + 1));
        leaves.push(typed(path("shape"), Content::Wholes(vec![3], self.shape.map(|n| n as i32).to_vec()), "arraytuple"));
        leaves.push(typed(path("data"), Content::Complex(self.shape.to_vec(), self.values), "array"));
        leaves.push(typed(path("layermap"), Content::Wholes(vec![layers], (0..layers as i32).collect()), "arraylist"));
        leaves.push(whole(path("nlayers"), layers));
        leaves.push(typed(path("_psize"), pair(pixel), "array"));
        leaves.push(typed(path("_origin"), pair(self.origin), "array"));
        leaves.push(typed(path("_center"), pair([0, 1].map(|d| -self.origin[d] / pixel[d])), "array"));
        leaves.push(typed(path("fill_value"), Content::Number(self.fill), "scalar"));
        leaves.push(whole(path("padding"), 0));
        for key in ["padonly", "DataTooSmall", "_is_scattered"] {
            leaves.push(whole(path(key), 0));
        }
        leaves.push(whole(path("model_initialized"), 1));
        leaves.extend(beam.map(|beam| typed(path("_energy"), Content::Number(beam.energy()), "scalar")));
        leaves.extend(["_pool", "_recs"].map(|key| group(path(key), "dict")));
    }
}

/// The file.
pub(super) fn ptyr(results: &Results) -> Archive {
    let model = results.model;
    let mut leaves = vec![
        group("header", "dict"),
        text("header/kind", "minimal"),
        text("header/description", "reconstruction by zellige in the format of PtyPy's .ptyr"),
        group("content", "param"),
    ];
    for kind in ["content/probe", "content/obj", "content/positions", POSITIONS] {
        leaves.push(group(kind, "dict"));
    }
    for (number, probe) in probes(results).into_iter().enumerate() {
        let storage = Storage {
            kind: "probe",
            number,
            scan: owner(model, |v| v.probe as usize == number),
            shape: [model.modes[0], model.frame[0], model.frame[1]],
            values: single(&probe),
            origin: probe_origin(model),
            fill: 0.0,
        };
        storage.leaves(model.pixel, results.beams.first(), &mut leaves);
    }
    let positions = positions(results);
    for (number, storage) in model.storages.iter().enumerate() {
        let object = Storage {
            kind: "obj",
            number,
            scan: owner(model, |v| v.object as usize == number),
            shape: [model.modes[1], storage.shape[0], storage.shape[1]],
            values: single(&results.state.object[storage.offset..][..model.modes[1] * storage.layer()]),
            origin: storage.origin,
            fill: results.config.object.fill,
        };
        let own = positions.iter().zip(&model.views).filter(|(_, v)| v.object as usize == number);
        let own: Vec<f64> = own.flat_map(|(position, _)| *position).collect();
        leaves.push(typed(format!("content/positions/{}", object.id()), Content::Reals(vec![own.len() / 2, 2], own), "array"));
        object.leaves(model.pixel, results.beams.first(), &mut leaves);
    }
    for (k, (name, first)) in model.scans.iter().enumerate() {
        let last = model.scans.get(k + 1).map_or(positions.len(), |s| s.1);
        let values = positions[*first..last].iter().flatten().copied().collect();
        leaves.push(typed(format!("{POSITIONS}/{}", plain(name)), Content::Reals(vec![last - first, 2], values), "array"));
    }
    runtime(results, &mut leaves);
    parameters(results, &mut leaves);
    Archive { name: "result".into(), ending: "ptyr", leaves }
}

/// Iterations that are written by themselves, at most: each takes six objects of a file, half a millisecond.
const INFOS: usize = 500;

/// The errors: of iterations by themselves, as PtyPy's plots take them, evenly among all where there are many; and in one array.
fn runtime(results: &Results, leaves: &mut Vec<Leaf>) {
    let history = results.history;
    leaves.push(group("content/runtime", "param"));
    leaves.push(whole("content/runtime/iterations", history.len()));
    let all = history.iter().flatten().copied().collect();
    leaves.push(typed("content/runtime/error", Content::Reals(vec![history.len(), 3], all), "array"));
    leaves.push(group("content/runtime/iter_info", "list"));
    let mut engines = results.config.engine.iter().flat_map(|e| (1..=e.iterations()).map(move |i| (e, i)));
    let every = history.len().div_ceil(INFOS).max(1);
    for (i, error) in history.iter().enumerate() {
        let engine = engines.next();
        if (i + 1) % every != 0 && i + 1 != history.len() {
            continue;
        }
        // Items of a list are in the order of their names.
        let path = format!("content/runtime/iter_info/{i:09}");
        let field = |key: &str| format!("{path}/{key}");
        leaves.push(group(path.clone(), "dict"));
        leaves.push(typed(field("error"), Content::Reals(vec![3], error.to_vec()), "array"));
        leaves.push(whole(field("iterations"), i + 1));
        if let Some((engine, iteration)) = engine {
            leaves.push(whole(field("iteration"), iteration as usize));
            leaves.push(whole(field("numiter"), engine.iterations() as usize));
            leaves.push(text(field("engine"), engine.name.as_str()));
        }
    }
}

/// Adds the parameters with which PtyPy begins a run: the scans, if it can open all of them as they were used here. It demands that
/// their files exist.
fn parameters(results: &Results, leaves: &mut Vec<Leaf>) {
    let (config, model) = (results.config, results.model);
    leaves.push(group("content/pars", "param"));
    leaves.push(text("content/pars/data_type", "single"));
    leaves.push(group("content/pars/scans", "param"));
    if !config.scan.iter().all(known_to_ptypy) {
        return;
    }
    for ((scan, (name, _)), beam) in config.scan.iter().zip(&model.scans).zip(results.beams) {
        let folder = format!("content/pars/scans/{}", plain(name));
        let path = |key: &str| format!("{folder}/{key}");
        leaves.push(group(folder.clone(), "param"));
        leaves.push(text(path("name"), "BlockFull"));
        let propagation = match beam.propagation {
            Propagation::Far => "farfield",
            Propagation::Near => "nearfield",
        };
        leaves.push(text(path("propagation"), propagation));
        leaves.push(whole(path("resample"), model.bin[0]));
        leaves.push(group(path("coherence"), "param"));
        leaves.push(whole(path("coherence/num_probe_modes"), model.modes[0]));
        leaves.push(whole(path("coherence/num_object_modes"), model.modes[1]));
        leaves.push(group(path("data"), "param"));
        leaves.push(text(path("data/name"), "PtydScan"));
        let file = results.folder.join(scan.file.as_deref().unwrap_or(Path::new("")));
        let file = std::path::absolute(&file).unwrap_or(file);
        leaves.push(text(path("data/dfile"), &file.to_string_lossy()));
    }
}

/// A whole `.ptyd` with probe and object of its own.
fn known_to_ptypy(scan: &ScanConfig) -> bool {
    let read = ReadConfig { format: None, stream: false, start: None, start_label: None, start_positions: true, ..scan.read.clone() };
    let ptyd = scan.file.as_ref().is_some_and(|f| f.extension().is_some_and(|e| e.eq_ignore_ascii_case("ptyd")));
    let whole = ScanConfig { name: scan.name.clone(), file: scan.file.clone(), ..ScanConfig::default() };
    ptyd && matches!(scan.read.format, None | Some(FileFormat::Ptyd)) && ScanConfig { read, ..scan.clone() } == whole
}
