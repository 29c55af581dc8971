//! Plasmas that break down between two measurements: no field or particle that is not finite leaves the run, in any parts.

use std::time::Duration;

use serde_json::{Value, json};
use zellige_engine::checkpoint::Reader;
use zellige_engine::error::{Error, Result};
use zellige_engine::links::{self, Links};
use zellige_engine::profile::Profiler;
use zellige_engine::run::{self, Options, Silent};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::Solver;
use zellige_pic::Pic;
use zellige_pic::stages::Component;

use crate::physics::{config, environment};

/// Squares of a field of 1e38 have no place in single precision. It is there in a strip, that of one part of several: what is not
/// finite comes up there. Energies are measured in the first step only.
fn table(steps: u64, fields: &[&str]) -> Value {
    json!({ "dt": 0.05, "steps": steps, "grid": { "cells": [16, 48], "size": [1.6, 4.8] },
        "species": [{ "name": "e", "particles_per_cell": 4 }], "initial": { "fields": { "bz": "1e38*exp(-((y - 0.8)/0.1)^2)" } },
        "diagnostics": { "energies_every": 1000, "charge_every": 1000, "phase_space": [], "particles": [],
            "fields": if fields.is_empty() { json!([]) } else { json!([{ "what": fields, "every": 1 }]) } } })
}

fn open(table: &Value, links: Links) -> Result<Pic> {
    Pic::setup(&config(table.clone()), &environment(1).of_part(links))
}

/// The step at which the first values are not finite; those are there in the state.
fn breaks_at() -> u64 {
    let mut pic = open(&table(1000, &[]), Links::default()).unwrap();
    for step in 1..10 {
        pic.step(&mut Profiler::off()).unwrap();
        let component = |c: &Component| pic.plasma().stages.component(*c).unwrap();
        if Component::ALL[..6].iter().flat_map(component).any(|v| !v.is_finite()) {
            return step;
        }
    }
    panic!("it does not break down");
}

/// Words of the error that all parts have of `work`.
fn refused(parts: usize, work: impl Fn(Links) -> Result<()> + Sync) -> String {
    let words = links::inside::run(parts, |links| match work(links) {
        Err(Error::Numerics { what, place, message }) => Ok(format!("{what} at {place}: {message}")),
        other => panic!("{other:?}"),
    });
    let words = words.unwrap();
    assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
    words[0].clone()
}

#[test]
fn no_record_is_made_of_a_state_that_has_broken_down() {
    let broken = breaks_at();
    for parts in [1, 3] {
        let words = refused(parts, |links| {
            let mut pic = open(&table(1000, &["ex", "ey", "ez", "bx", "by", "bz", "charge"]), links)?;
            for _ in 0..broken {
                pic.due(Duration::ZERO)?;
                pic.step(&mut Profiler::off())?;
            }
            assert!(pic.records().is_err(), "those of the end neither");
            pic.due(Duration::ZERO).map(drop)
        });
        assert!(words.contains(&format!("_x at step {broken}: a value is ")) && words.contains("smaller `dt`"), "{words}");
    }
}

#[test]
fn the_last_step_is_sound_though_nothing_is_written() {
    let broken = breaks_at();
    for parts in [1, 3] {
        let words = refused(parts, |links| {
            let mut pic = open(&table(broken, &[]), links)?;
            while pic.outcome().is_none() {
                pic.step(&mut Profiler::off())?;
            }
            Ok(())
        });
        assert!(words.starts_with(&format!("div E - rho at step {broken}: a value is NaN")), "{words}");
    }
}

#[test]
fn no_checkpoint_is_made_of_it_and_the_one_before_stays() {
    let broken = breaks_at();
    for (parts, every) in [(1, 1), (3, 1), (1, broken)] {
        let folder = tempfile::tempdir().unwrap();
        let words = refused(parts, |links| {
            let options = Options { checkpoint: Some(Schedule::Steps(every)), ..Options::new(folder.path()) };
            let environment = environment(1).of_part(links);
            run::run::<Pic>(&config(table(1000, &[])), &environment, &options, &mut Profiler::off(), &mut Silent).map(drop)
        });
        assert!(words.contains(&format!("at step {broken}: a value is ")), "{words}");
        let checkpoint = run::checkpoint_path(folder.path());
        if every < broken {
            assert_eq!(Reader::open(&checkpoint, "pic").unwrap().u64("step").unwrap(), broken - 1, "{parts} parts");
        } else {
            assert!(!checkpoint.parent().unwrap().exists(), "an empty folder is left");
        }
    }
}
