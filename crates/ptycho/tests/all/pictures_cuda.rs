//! Pictures of a reconstruction on a GPU, made of copies while the next iterations run, against those of its records. Skipped
//! without a GPU.

use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Field, Pictures, Record, Values, Wave};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, Precision};
use zellige_ptycho::simulate::SimulateConfig;

use super::physics::input;

/// Pictures of probe, object and a frame, as bits.
fn drawn(records: &[Record]) -> Vec<(String, Vec<u32>)> {
    let of_field = |f: &Field| match &f.values {
        Values::F32(values) => values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        Values::F64(_) => panic!("{} is in double precision", f.name),
    };
    let of_wave = |w: &Wave| w.values.iter().flat_map(|v| [v.re.to_bits(), v.im.to_bits()]).collect::<Vec<_>>();
    let of = |record: &Record| match record {
        Record::Field(f) => Some((f.name.clone(), of_field(f))),
        Record::Wave(w) => Some((w.name.clone(), of_wave(w))),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn pictures_from_a_gpu_are_those_of_the_records_while_iterations_go_on() {
    use EngineName::{Dm, Epie, Ml};
    let Some(cuda) = testing::gpu() else { return };
    let case = |name: &str, frames: usize, modes: usize, engine: EngineName, change: &dyn Fn(&mut Config)| {
        let mut config = input(SimulateConfig { noise: false, ..SimulateConfig::case(frames, 128, modes) }, EngineConfig::new(engine, 4));
        config.probe.modes = modes;
        change(&mut config);
        (name.to_owned(), config)
    };
    let cases = [
        case("difference map", 120, 2, Dm, &|_| ()),
        case("view to view", 120, 1, Epie, &|_| ()),
        case("likelihood", 120, 1, Ml, &|_| ()),
        case("in doubles", 120, 1, Dm, &|config| config.precision = Precision::F64),
        case("in blocks", 1000, 1, Dm, &|config| config.memory.device = Some("192 MiB".into())),
    ];
    for (name, config) in cases {
        let mut ptycho = Ptycho::setup(&config, &Environment::new(Device::Cuda(cuda.clone()), ".", 1)).unwrap();
        let mut before: Option<(Pictures, Vec<Record>)> = None;
        let end = |(pictures, records): (Pictures, Vec<Record>)| {
            assert!(pictures.are_coming(), "{name}");
            let (found, expected) = (drawn(&pictures.records().unwrap()), drawn(&records));
            assert!(expected.len() >= 5 && expected.len() == found.len(), "{name}: {} of {}", found.len(), expected.len());
            let different = found.iter().zip(&expected).filter(|(a, b)| a != b).map(|((name, _), _)| name);
            assert_eq!(different.collect::<Vec<_>>(), [""; 0], "{name}");
        };
        while ptycho.outcome().is_none() {
            ptycho.step(&mut Profiler::off()).unwrap();
            let look = (ptycho.pictures().unwrap(), ptycho.records().unwrap());
            // Shown when the iteration after it is done.
            before.replace(look).into_iter().for_each(&end);
        }
        before.into_iter().for_each(&end);
    }
}

/// Looks change no bit of what follows, and neither does when they are taken.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_reconstruction_that_is_watched_has_the_same_bits() {
    let Some(cuda) = testing::gpu() else { return };
    let run = |watched: bool| {
        let config = input(SimulateConfig::case(120, 128, 1), EngineConfig::new(EngineName::Dm, 12));
        let mut ptycho = Ptycho::setup(&config, &Environment::new(Device::Cuda(cuda.clone()), ".", 1)).unwrap();
        let mut looks = Vec::new();
        while ptycho.outcome().is_none() {
            ptycho.step(&mut Profiler::off()).unwrap();
            if watched {
                looks.push(ptycho.pictures().unwrap());
                // Some are dropped without having been looked at.
                looks.truncate(3);
            }
        }
        drawn(&ptycho.records().unwrap())
    };
    assert!(run(true) == run(false));
}
