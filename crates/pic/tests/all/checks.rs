//! Checks of a run: they pass where the numerics are right, within a small factor of what is found, and fail where they are not; a
//! run that blows up ends.

use serde_json::{Value, json};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::Solver;
use zellige_pic::Pic;
use zellige_pic::stages::Component;

use crate::physics::{environment, finished, start};

fn charge(pic: &mut Pic) -> Option<Check> {
    pic.checks().unwrap().into_iter().find(|c| c.name.contains("continuity"))
}

fn energy(pic: &mut Pic) -> Option<Check> {
    pic.checks().unwrap().into_iter().find(|c| c.name.contains("energy"))
}

pub(crate) fn ended(table: Value) -> Pic {
    let mut pic = start(table, 1);
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
    }
    pic
}

fn antenna(polarisation: &str) -> Value {
    json!({
        "courant": 0.95, "t_end": 30.0, "grid": { "cells": [120, 80], "size": [12.0, 16.0] },
        "boundary": { "layer": 8, "x": "absorbing", "y": "absorbing" },
        "laser": [{ "a0": 0.5, "omega": 4.0, "source": "antenna", "delay": 10.0, "fwhm": 5.0, "waist": 3.0, "focus": [6.0, 8.0],
            "polarisation": polarisation }],
        "species": [{ "name": "electrons", "particles_per_cell": [2, 2], "density": { "slab": { "value": 1.0, "from": 5.0, "to": 8.0 } } }],
        "diagnostics": { "charge_every": 20 }
    })
}

/// A sheet of current in the plane has charge of its own while its pulse passes: it is no error, and none elsewhere is hidden by
/// it.
#[test]
fn a_focused_antenna_in_the_plane_raises_no_alarm() {
    for polarisation in ["y", "left"] {
        let mut pic = finished(antenna(polarisation));
        let found = charge(&mut pic).unwrap();
        assert!(found.value > 0.0 && found.limit < 1e-3, "{polarisation}: {found:?}");
    }
}

fn window() -> Value {
    json!({
        "courant": 0.95, "t_end": 60.0, "window": { "start": 0.0 }, "grid": { "cells": [48, 8], "size": [4.8, 0.8] },
        "boundary": { "layer": 8, "x": "absorbing" },
        "species": [{ "name": "electrons", "particles_per_cell": [2, 2], "positions": "random", "momentum": { "thermal": 0.1 } }]
    })
}

/// A window that goes ten times over its box is looked at all the way: something is found, it is rounding, and a fault is seen.
#[test]
fn charge_is_checked_in_long_window_runs() {
    let mut pic = finished(window());
    assert!(pic.plasma().moved > 500);
    let found = charge(&mut pic).unwrap();
    assert!(found.value > 0.0 && found.value > found.limit / 30.0, "{found:?}");
    let mut pic = start(window(), 1);
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
        if pic.plasma().step == 500 {
            let mut ex = pic.plasma().stages.component(Component::Ex).unwrap();
            let at = pic.plasma().setup.grid.index(24, 4);
            ex[at] += 1e-4;
            pic.plasma().stages.set_component(Component::Ex, &ex).unwrap();
        }
    }
    let found = charge(&mut pic).unwrap();
    assert!(!found.ok && found.value > 5e-4, "{found:?}");
}

/// The limit is rounding: what is found in sound runs of many kinds is below it, by no more than the estimate is above the truth.
///
/// The largest of 768 normal numbers is 3.2 standard deviations, of which ten pass: 0.32 of the limit where the estimate is exact.
/// It is above the truth by the roundings of a value between two powers of two, 1.5, by the fullest corner over the mean one,
/// 1.7, and by the partial sums of 16 particles, which it takes for those of a drift, 2.5: a thirtieth is left and more. Where
/// particles are slow, currents round by less than the charge, with which the estimate goes as if all moved at the speed of light:
/// 0.016 is found; and charge that rests besides halves that.
#[test]
fn the_limit_of_charge_is_that_of_rounding() {
    let electrons = |more: Value| {
        let mut s = json!({ "name": "electrons", "particles_per_cell": 16, "positions": "random", "momentum": { "thermal": 0.1 } });
        s.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        s
    };
    let base = |change: &dyn Fn(&mut Value)| {
        let mut table = json!({
            "dt": 0.06, "steps": 300, "grid": { "cells": [32, 24], "size": [3.2, 2.4] }, "species": [electrons(json!({}))]
        });
        change(&mut table);
        table
    };
    let (fast, slow, half) = (1.0 / 30.0, 1.0 / 100.0, 1.0 / 150.0);
    let cases: [(&str, f64, Value); 8] = [
        ("warm", slow, base(&|_| ())),
        ("hot", fast, base(&|t| t["species"] = json!([electrons(json!({ "momentum": { "thermal": 1.0 } }))]))),
        ("quadratic", slow, base(&|t| t["order"] = json!(2))),
        ("double", fast, base(&|t| t["precision"] = json!("f64"))),
        ("filter", fast, base(&|t| t["smoothing"] = json!({ "all": { "passes": 2, "compensated": true } }))),
        ("walls", slow, base(&|t| t["boundary"] = json!({ "x": "reflecting", "y": { "fields": "pmc", "particles": "thermal" } }))),
        (
            "ions",
            half,
            base(&|t| {
                let ions = electrons(json!({ "name": "ions", "charge": 1, "mass": 50, "momentum": {} }));
                t["species"].as_array_mut().unwrap().push(ions);
            }),
        ),
        ("weights", slow, base(&|t| t["species"] = json!([electrons(json!({ "density": "0.01 + x" }))]))),
    ];
    for (what, least, table) in cases {
        let mut pic = finished(table);
        let found = charge(&mut pic).unwrap();
        println!("{what}: {:.2e} of {:.2e}, a part of {:.3}", found.value, found.limit, found.value / found.limit);
        assert!(found.ok && found.value > least * found.limit, "{what}: {found:?}, at least {least:.4} of the limit expected");
    }
}

/// Currents of thousands of particles of one direction are rounded as often as they are added up: seen in the first step, before
/// anything else has been.
#[test]
fn dense_drifts_raise_no_alarm() {
    for (precision, order, momentum) in [
        ("f32", 1, json!({ "drift": [3, 0, 0], "thermal": 0.1 })),
        ("f64", 1, json!({ "drift": [3, 0, 0], "thermal": 0.1 })),
        ("f64", 2, json!({ "drift": [3, 0, 0], "thermal": 0.1 })),
        ("f32", 1, json!({ "drift": [3, 0, 0], "maxwell_juttner": 1.0 })),
    ] {
        let mut pic = finished(json!({
            "courant": 0.9, "steps": 1, "precision": precision, "order": order, "grid": { "cells": [64], "size": [6.4] },
            "species": [{ "name": "electrons", "particles_per_cell": 10_000, "positions": "random", "momentum": momentum }]
        }));
        let found = charge(&mut pic).unwrap();
        let of_one = 10.0 * 0.3 * if precision == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
        println!("{precision} {order}: {:.2e} of {:.2e}", found.value, found.limit);
        assert!(found.ok && found.value > of_one && found.value > found.limit / 30.0, "{precision} {order}: {found:?}");
    }
}

/// Cold electrons on cells of many Debye lengths heat up: it is seen beside ions whose drift holds a thousand times their energy,
/// and in a box that fields can leave. A fine lattice passes.
#[test]
fn heating_is_seen_beside_drifts_and_with_absorbing_sides() {
    for sides in ["periodic", "absorbing"] {
        for (thermal, passes) in [(0.002, false), (0.1, true)] {
            let table = json!({
                "dt": 0.05, "steps": 400, "precision": "f64", "grid": { "cells": [64], "size": [6.4] }, "boundary": { "layer": 8, "x": sides },
                "diagnostics": { "energy_limit": 0.05 },
                "species": [
                    { "name": "electrons", "particles_per_cell": 32, "positions": "random", "momentum": { "thermal": thermal, "drift": [0.05, 0, 0] } },
                    { "name": "ions", "charge": 1, "mass": 1836, "particles_per_cell": 32, "positions": "random", "momentum": { "drift": [0.05, 0, 0] } }
                ]
            });
            let found = energy(&mut ended(table)).unwrap();
            println!("{sides}, {thermal}: {:.2e}", found.value);
            assert_eq!(found.ok, passes, "{sides}, {thermal}: {found:?}");
        }
    }
}

/// The work that a pulse does on a plasma is what the plasma has more, whatever leaves through layers: 5 % of it at most in a run
/// of twenty cells a wave, with an antenna, a window or neither.
#[test]
fn the_energy_of_laser_runs_is_balanced() {
    let plasma = json!([{ "name": "electrons", "particles_per_cell": 16, "density": { "step": { "value": 0.5, "from": 12.0 } },
        "momentum": { "thermal": 0.01 } }]);
    let run = |laser: Value, change: &dyn Fn(&mut Value)| {
        let mut table = json!({
            "courant": 0.95, "t_end": 30.0, "grid": { "cells": [500], "size": [25.0] }, "boundary": { "x": "absorbing" },
            "laser": [laser], "species": plasma
        });
        change(&mut table);
        finished(table)
    };
    let antenna = json!({ "a0": 1.0, "omega": 5.0, "source": "antenna", "delay": 7.0, "fwhm": 4.0, "polarisation": "left" });
    let inside = json!({ "a0": 1.0, "omega": 5.0, "position": 6.0, "fwhm": 3.0 });
    for (what, mut pic) in [
        ("antenna", run(antenna, &|_| ())),
        ("box", run(inside.clone(), &|_| ())),
        ("window", run(inside, &|t| t["window"] = json!({ "start": 0.0 }))),
    ] {
        let found = energy(&mut pic).unwrap();
        let work = pic.diagnostics().series.column("work").iter().copied().fold(0.0, f64::max);
        println!("{what}: {:.2e}, work {work:.3}", found.value);
        assert!(found.value > 0.0 && found.value < 0.05 && work > 0.1, "{what}: {found:?}, work {work}");
    }
}

/// A step of more than two plasma periods over 2 pi: the run ends with the step, the energy, the cause and what to try.
#[test]
fn a_run_that_blows_up_ends_when_it_does() {
    let mut pic = start(
        json!({
            "dt": 0.06, "steps": 10_000, "grid": { "cells": [16, 16], "size": [1.6, 1.6] },
            "species": [{ "name": "electrons", "particles_per_cell": 4, "density": 2500.0, "positions": "random", "momentum": { "thermal": 0.01 } }]
        }),
        1,
    );
    let error = (0..10_000).find_map(|_| pic.step(&mut Profiler::off()).err()).expect("it must end").to_string();
    assert!(pic.plasma().step < 500, "{}", pic.plasma().step);
    for words in [
        "the energy of fields and particles",
        "at step",
        "times the content at the start",
        "the plasma frequency times the step is 3.00",
        "dt",
    ] {
        assert!(error.contains(words), "{error}");
    }
}

/// A run goes on with a later end, and is then the longer run bit for bit.
#[test]
fn a_finished_run_can_be_lengthened() {
    let table = |end: f64| {
        json!({ "dt": 0.06, "t_end": end, "grid": { "cells": [24], "size": [2.4] },
            "species": [{ "name": "electrons", "particles_per_cell": 8, "positions": "random", "momentum": { "thermal": 0.1 } }] })
    };
    assert!(Pic::may_change().contains(&"t_end") && Pic::may_change().contains(&"steps"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("end.zck");
    let mut short = ended(table(1.2));
    zellige_engine::run::save(&mut short, &crate::physics::config(table(1.2)), &path).unwrap();
    let config = crate::physics::config(table(2.4));
    let mut long = Pic::setup(&config, &environment(1)).unwrap();
    long.restore(&zellige_engine::checkpoint::Reader::open(&path, Pic::NAME).unwrap()).unwrap();
    while long.outcome().is_none() {
        long.step(&mut Profiler::off()).unwrap();
    }
    assert_eq!(crate::physics::state(&mut long), crate::physics::state(&mut ended(table(2.4))));
}
