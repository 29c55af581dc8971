//! Pictures of a gas under way: of each batch once, the averages that its records have.

use std::path::Path;

use zellige_dsmc::Dsmc;
use zellige_dsmc::config::Config;
use zellige_engine::config::Source;
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Field, Palette, Pictures, Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;

use crate::common::device;

/// A coarse cylinder in a stream with two windows of three batches and a rest.
fn cylinder() -> Config {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsmc");
    let mut config = Source::read(folder.join("cylinder.toml")).unwrap().typed::<Dsmc>().unwrap().config;
    config.grid.cells = vec![40, 30];
    config.steps = 61;
    (config.sampling.start, config.sampling.window, config.sampling.batches, config.sampling.every) = (Some(10), Some(22), 3, 1);
    config
}

/// Everything that is drawn, as bits: names, and values of fields and curves.
fn drawn(records: &[Record]) -> Vec<(String, Vec<u64>)> {
    let of_field = |f: &Field| match &f.values {
        Values::F64(values) => values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        Values::F32(_) => panic!("{} is in single precision", f.name),
    };
    let of = |record: &Record| match record {
        Record::Field(f) if f.palette != Palette::Undrawn => Some((f.name.clone(), of_field(f))),
        Record::Measured(m) => Some((m.curve.name.clone(), m.curve.lines.iter().flat_map(|(_, y)| y).map(|v| v.to_bits()).collect())),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// Looks after every step, and leaves each look alone until the next one with something new was begun. Returns the steps with
/// something new, and the records whose pictures were others.
fn looks(device: Device, coming: bool) -> (Vec<u64>, Vec<String>) {
    let mut gas = Dsmc::setup(&cylinder(), &Environment::new(device, ".", 7)).unwrap();
    let (mut steps, mut different) = (Vec::new(), Vec::new());
    let mut before: Option<(Pictures, Vec<Record>)> = None;
    let mut end = |(pictures, records): (Pictures, Vec<Record>)| {
        assert_eq!(pictures.are_coming(), coming);
        let (found, expected) = (drawn(&pictures.records().unwrap()), drawn(&records));
        assert!(expected.len() > 15 && expected.len() == found.len(), "{} of {}", found.len(), expected.len());
        different.extend(found.iter().zip(&expected).filter(|(a, b)| a != b).map(|((name, _), _)| name.clone()));
    };
    while gas.outcome().is_none() {
        gas.step(&mut Profiler::off()).unwrap();
        let pictures = gas.pictures().unwrap();
        if !pictures.is_empty() {
            steps.push(gas.clock().step);
            let records = gas.records().unwrap();
            if let Some(before) = before.replace((pictures, records)) {
                end(before);
            }
        }
        assert!(gas.pictures().unwrap().is_empty(), "twice at step {}", gas.clock().step);
    }
    before.into_iter().for_each(end);
    (steps, different)
}

/// Batches of 7 of 22 samples from step 10 on: closed after steps 17, 24 and 31, and 22 later in each window.
const CLOSED: [u64; 7] = [17, 24, 31, 39, 46, 53, 61];

#[test]
fn each_batch_has_pictures_once_and_they_are_those_of_the_records() {
    let device = device(1);
    let on_gpu = matches!(device, Device::Cuda(_));
    let (steps, different) = looks(device, on_gpu);
    assert_eq!((&steps[..], &different[..]), (&CLOSED[..], &[][..]));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn pictures_from_a_gpu_come_while_the_next_batches_are_closed() {
    let Some(cuda) = testing::gpu() else { return };
    let (steps, different) = looks(Device::Cuda(cuda), true);
    assert_eq!((&steps[..], &different[..]), (&CLOSED[..], &[][..]));
}
