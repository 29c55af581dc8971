use std::sync::LazyLock;

use zellige_io::{Format, Stamp};

use super::*;
use crate::config::{EngineConfig, EngineName, ScanConfig};
use crate::model::{Power, View};

/// Twelve views of 8 x 6 pixels on an object of 20 x 18 whose phase is a ramp with a bump.
fn model() -> (Model, State) {
    let frame = [8, 6];
    let views: Vec<View> = (0..12).map(|i| View { probe: 0, object: 0, row: 3 * (i / 4), col: 3 * (i % 4) }).collect();
    let storage = Storage { shape: [20, 18], offset: 0, origin: [1e-6, -2e-6] };
    let object: Vec<_> = (0..360)
        .map(|i| {
            let (y, x) = ((i / 18) as f64, (i % 18) as f64);
            let bump = 0.4 * (-((y - 7.0).powi(2) + (x - 8.0).powi(2)) / 6.0).exp();
            Complex::from_polar(1.0 - bump, 0.3 * x - 0.2 * y + bump + 1.0)
        })
        .collect();
    let filter: Vec<_> = (0..48).map(|i| Complex::from_polar(1.0, 0.1 * i as f64)).collect();
    let probe = (0..96).map(|i| Complex::new(1.0 + f64::from(i / 48), 0.0) * filter[i as usize % 48]).collect();
    let mag: Vec<f32> = (0..12 * 48).map(|i| if i % 48 == 5 { crate::model::MASKED } else { (i % 7) as f32 }).collect();
    let state = State { probe, object };
    let model = Model {
        frame,
        bin: [1, 1],
        modes: [2, 1],
        probes: 1,
        storages: vec![storage],
        subpixel: false,
        shifts: vec![[0.0; 2]; views.len()],
        views,
        mag,
        transfer: Transfer::Far,
        pixel: [1e-8, 2e-8],
        filter,
        power: Power::default(),
        start: state.clone(),
        begins: Vec::new(),
        scans: vec![("a scan".into(), 0)],
        share: crate::share::Share::default(),
    };
    (model, state)
}

fn results<'a>(model: &'a Model, state: &'a State, intensity: &'a [f64], history: &'a [[f64; 3]], errors: &'a [[f64; 3]]) -> Results<'a> {
    static CONFIG: LazyLock<Config> = LazyLock::new(|| {
        let scan = ScanConfig { name: Some("a scan".into()), file: Some("../scan.ptyd".into()), ..ScanConfig::default() };
        Config::new(scan, EngineConfig::new(EngineName::Dm, 2))
    });
    Results {
        config: &CONFIG,
        folder: Path::new("/data/inputs"),
        model,
        state,
        history,
        local: &[],
        errors,
        views: (&model.views, &model.shifts),
        frame: Some((4, model.moduli(4), intensity)),
        beams: &[],
    }
}

#[test]
fn a_ramp_and_a_constant_are_taken_out_of_the_phase() {
    let (model, state) = model();
    let found = IlluminatedPart::new(&results(&model, &state, &[0.0; 48], &[], &[]), 0);
    // Views reach rows 0 to 14 and columns 0 to 15.
    assert_eq!((found.rows.clone(), found.columns.clone()), (0..14, 0..15));
    let phases: Vec<f64> = found.values.iter().map(|v| v.arg()).collect();
    let (low, high) = phases.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    // The bump of 0.4 is left; the mean slope that it adds across the picture is a few hundredths.
    assert!((0.3..0.5).contains(&(high - low)), "{low} {high}");
}

#[test]
fn everything_is_written_and_probes_lose_the_filter() {
    let (model, state) = model();
    let history = [[3.0, 20.0, 0.5], [2.0, 10.0, 0.25]];
    let errors = [[1.0, 2.0, 3.0]; 12];
    let intensity: Vec<f64> = (0..48).map(f64::from).collect();
    let config = OutputConfig { files: vec![ResultFile::Ptyr, ResultFile::Cxi], ..OutputConfig::default() };
    let local: Vec<[f32; 3]> = (0..24).map(|i| [i as f32 + 1.0, 2.0, 0.0]).collect();
    let results = Results { local: &local, ..results(&model, &state, &intensity, &history, &errors) };
    let mut records = records(&results, &config);
    let names: Vec<&str> = records.iter().map(Record::name).collect();
    let local = ["local_error_fourier", "local_error_likelihood"];
    let before = ["object_phase", "object_amplitude", "object", "probe", "diffraction", "errors"];
    assert_eq!(names, [&before[..], &local[..], &["views", "result", "result"]].concat());
    let Record::Field(field) = &records[6] else { panic!("errors of frames are a field") };
    // Two iterations of twelve frames; that of the exit waves was never measured.
    assert_eq!((field.shape(), field.values.get(12)), (vec![2, 12], 13.0));
    let Record::Wave(probe) = &records[3] else { panic!("the probe is a wave") };
    // Rounding of a product of two numbers of modulus 1 or 2.
    assert!(probe.values.iter().enumerate().all(|(i, v)| (v - Complex::new(1.0 + (i / 48) as f32, 0.0)).norm() < 1e-6));
    records.extend(live(&results));
    let folder = tempfile::tempdir().unwrap();
    for step in [1, 2] {
        let stamp = Stamp { step, time: None, numbered: true };
        zellige_io::write_records(folder.path(), &records, &[Format::Npy, Format::Png, Format::Hdf5], stamp).unwrap();
    }
    for name in ["object_phase_000002.png", "probe_000002.png", "probe_000001.npy", "live.png", "result_000002.ptyr", "result_000001.cxi"] {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
    let read = crate::data::ReadConfig { start: Some("result_000002.ptyr".into()), ..crate::data::ReadConfig::default() };
    assert!(!read.is_default());
    let file = zellige_io::hdf5::File::open(folder.path().join("result_000002.ptyr")).unwrap();
    let object = file.read("content/obj/Sa_scanG00/data").unwrap();
    assert_eq!(object.shape, [1, 20, 18]);
    assert_eq!(file.read("content/runtime/error").unwrap().to_reals().unwrap(), [3.0, 20.0, 0.5, 2.0, 10.0, 0.25]);
    let cxi = zellige_io::hdf5::File::open(folder.path().join("result_000001.cxi")).unwrap();
    assert_eq!(cxi.read("entry_1/data_1/data").unwrap(), object);
    let positions = cxi.read("entry_1/sample_1/geometry_1/translation").unwrap().to_reals().unwrap();
    // View 5 begins at row 3, column 3: its middle is 7 rows and 6 columns into the object.
    assert!((positions[15] - (-2e-6 + 6.0 * 2e-8)).abs() < 1e-18 && (positions[16] - (1e-6 + 7.0 * 1e-8)).abs() < 1e-18);
}

/// The optical axis of the measured half and of the modelled one lie in the middle of each; masked pixels are not numbers.
#[test]
fn a_frame_stands_beside_its_model() {
    let (model, state) = model();
    let mut intensity = vec![0.0; 48];
    intensity[0] = 9.0;
    let Some(Record::Field(field)) = diffraction(&results(&model, &state, &intensity, &[], &[])) else { panic!("no picture") };
    assert_eq!((field.axes[0].len, field.axes[1].len), (13, 8));
    // Row 4 from the top is row 3 from below.
    assert_eq!(field.values.get(3 * 13 + 7 + 3), 9.0);
    let masked = (0..field.values.len()).filter(|i| i % 13 < 6 && field.values.get(*i).is_nan()).count();
    assert_eq!(masked, 1);
}
