//! Probes that are made from the frames, and openings of zone plates.

use std::path::Path;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::sim::{Environment, Solver};
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ProbeStart, ScanConfig};
use zellige_ptycho::model::Model;
use zellige_ptycho::scan::Propagation;
use zellige_ptycho::simulate::{Aperture, Optic, Pair, SimulateConfig};
use zellige_ptycho::{half_sets, setup};

use super::physics::run;

/// The scan of a zone plate: a central stop, so that the probe is an annulus as well where it is out of focus.
fn zone_plate(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    let mut made = SimulateConfig { photons: 1e7, ..SimulateConfig::case(100, 64, 1) };
    (made.illumination.aperture, made.illumination.inner) = (Aperture::Annular, 0.4);
    change(&mut made);
    made
}

/// The model of a scan that comes as from a file: nothing is known of its probe.
fn as_file(made: &SimulateConfig, change: impl FnOnce(&mut Config)) -> (Config, Model, zellige_ptycho::scan::Truth) {
    let simulated =
        Config::new(ScanConfig { simulate: Some(made.clone()), ..ScanConfig::default() }, EngineConfig::new(EngineName::Dm, 60));
    let mut scans = setup::scans(&simulated, Path::new(""), 7).unwrap();
    let mut config = Config { scan: vec![ScanConfig { file: Some("scan.ptyd".into()), ..ScanConfig::default() }], ..simulated };
    config.engine.push(EngineConfig::new(EngineName::Ml, 20));
    change(&mut config);
    assert_eq!(config.check(), []);
    let model = setup::model(&config, &mut scans, 7).unwrap();
    (config, model, scans.remove(0).truth.unwrap())
}

/// Relative distance of the object from the truth after the run, and what the start was.
fn off(made: &SimulateConfig, change: impl FnOnce(&mut Config)) -> (f64, String) {
    let (config, model, truth) = as_file(made, change);
    let begins = model.begins.join(", ");
    let mut done = run(&config, model, 2);
    (half_sets::distance_from_truth(&mut done, &truth).unwrap().unwrap(), begins)
}

/// The defocus that a start from the data was given or has found, metres.
fn defocus(begins: &str) -> f64 {
    begins.split("defocus ").nth(1).and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{begins}"))
}

/// An input that says nothing but where the frames are: photon noise leaves 0.5 % at 1e7 and 4.4 % at 1e5 photons; from the round
/// opening that such an input began with before, the object is not found at all.
#[test]
fn an_input_that_names_a_file_alone_finds_the_object_behind_a_zone_plate() {
    for (photons, most) in [(1e7, 0.01), (1e5, 0.07)] {
        let made = zone_plate(|m| m.photons = photons);
        let (found, begins) = off(&made, |_| ());
        assert!(found < most, "{found} off the truth with {photons:e} photons, {begins}");
    }
    let (plain, begins) = off(&zone_plate(|_| ()), |c| c.probe.start = ProbeStart::Opening);
    assert!(plain > 0.5, "{plain} off the truth, {begins}");
}

/// Neighbouring frames tell the defocus with its sign: within a third, which the reconstruction takes out. The image of the pupil
/// is 25 pixels wide.
#[test]
fn frames_tell_the_defocus() {
    for (z, beamstop) in [(4.1e-3, 0.0), (-4.1e-3, 0.0), (2.5e-3, 0.0), (4.1e-3, 8.0)] {
        let made = zone_plate(|m| (m.illumination.defocus, m.detector.beamstop) = (Some(z), beamstop));
        let found = defocus(&as_file(&made, |_| ()).1.begins[0]);
        assert!((0.75..1.33).contains(&(found / z)), "{found:e} m for {z:e} m");
    }
    // In focus there is nothing to be told, and a pinhole has no image of a pupil.
    let pinhole = zone_plate(|m| m.illumination.optic = Optic::Pinhole);
    for made in [zone_plate(|m| m.illumination.defocus = Some(0.0)), pinhole] {
        let begins = as_file(&made, |_| ()).1.begins.remove(0);
        assert!(begins.contains("show no defocus"), "{begins}");
    }
    let given = as_file(&zone_plate(|_| ()), |c| c.probe.defocus = Some(3e-3)).1.begins.remove(0);
    assert!(given.starts_with("from the mean frame") && (defocus(&given) - 3e-3).abs() < 1e-9, "{given}");
}

/// The optics as their maker describes them: opening, stop and edge in the plane of the zone plate.
#[test]
fn a_zone_plate_is_described_by_its_keys() {
    let made = zone_plate(|m| m.illumination.defocus = Some(4.1e-3));
    let pixel = made.beam().resolution([64; 2])[0];
    let (focal, wavelength) = (0.05, made.beam().wavelength);
    // The pupil of the simulation spans 0.4 of the detector.
    let size = 0.4 * focal * wavelength / pixel;
    let of = |stop: Option<f64>| {
        off(&made, |c| {
            let p = &mut c.probe;
            (p.size, p.focal_length, p.central_stop, p.soft_edge, p.defocus) =
                (Some(size), Some(focal), stop, Some(0.04 * size), Some(4.1e-3));
            c.engine.truncate(1);
            c.engine[0].iterations = Some(1);
        })
    };
    let ([with, without], begins) = ([of(Some(0.4 * size)).0, of(None).0], of(Some(0.4 * size)).1);
    assert!(begins == "of an opening" && with < 0.9 * without, "{begins}: {with} off the truth with the stop, {without} without");
}

/// Refuses inputs that cannot be meant, by their key; a plan without frames says where the probe will come from.
#[test]
fn starts_that_do_not_fit_are_refused() {
    let faults = |change: &dyn Fn(&mut Config)| {
        let mut config =
            Config::new(ScanConfig { file: Some("f.npz".into()), ..ScanConfig::default() }, EngineConfig::new(EngineName::Dm, 1));
        change(&mut config);
        config.check().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let data = faults(&|c| (c.probe.start, c.probe.central_stop) = (ProbeStart::Data, Some(1e-5)));
    assert!(data.starts_with("`probe.central_stop`: the start is made from the data") && data.contains("`start = \"opening\"`"), "{data}");
    let stop = faults(&|c| (c.probe.size, c.probe.central_stop) = (Some(1e-5), Some(1e-5)));
    assert!(stop.starts_with("`probe.central_stop`: ") && stop.contains("less than `size`"), "{stop}");
    let near = SimulateConfig { propagation: Propagation::Near, pixel: Pair::Same(1e-7), distance: 1e-3, ..SimulateConfig::case(9, 32, 1) };
    let mut config = Config::new(ScanConfig { simulate: Some(near), ..ScanConfig::default() }, EngineConfig::new(EngineName::Dm, 1));
    config.probe.start = ProbeStart::Data;
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    let refused = Ptycho::plan(&config, &environment).err().unwrap().to_string();
    assert!(refused.contains("`ptycho.probe.start`"), "{refused}");
    config.scan[0].simulate = Some(zone_plate(|_| ()));
    let plan = Ptycho::plan(&config, &environment).unwrap();
    assert!(plan.lines.contains(&("start".to_owned(), "probe from the mean frame".to_owned())), "{:?}", plan.lines);
}
