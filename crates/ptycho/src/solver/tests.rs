//! Tests of the solver.

use zellige_engine::device::Cpu;
use zellige_engine::links::{Links, inside};

use super::*;

/// Two modes, half-scans too: what an engine leaves at its end is left when it is ended early.
#[test]
fn an_engine_that_is_ended_early_is_as_one_of_so_many_iterations() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho/mixed_state.toml");
    let mut config = zellige_engine::config::load::<Ptycho>(&file, &[]).unwrap().config;
    let made = config.scan[0].simulate.as_mut().unwrap();
    (made.frames, made.size) = (9, crate::simulate::Pair::Same(32));
    config.frc = true;
    let second = EngineConfig { iterations: Some(2), ..config.engine[0].clone() };
    config.engine.truncate(1);
    config.engine.push(second);
    assert_eq!(Ptycho::section(&config), Some("engine"));
    let run = |iterations: u64, end_after: Option<u64>| {
        let mut config = config.clone();
        config.engine[0].iterations = Some(iterations);
        let mut solver = Ptycho::setup(&config, &Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1)).unwrap();
        while solver.outcome().is_none() {
            solver.step(&mut Profiler::off()).unwrap();
            if Some(solver.clock().step) == end_after {
                assert!(solver.next_section().unwrap() && solver.progress() > 0.8);
            }
        }
        assert_eq!((solver.progress(), solver.next_section().unwrap()), (1.0, false));
        let state = solver.whole.state().unwrap();
        let rings = solver.half_sets.as_mut().unwrap().rings().unwrap();
        (solver.history.len(), state.object, state.probe, rings[0].1.curve("frc", "frc", true))
    };
    let (early, short) = (run(20, Some(3)), run(3, None));
    assert_eq!(early.0, 5);
    assert!(early == short, "the reconstructions differ");
    assert!(run(4, None).1 != short.1);
}

#[test]
fn loops_of_the_host_have_the_threads_of_the_device() {
    for asked in [1, 3] {
        assert_eq!(on(&Device::Cpu(Cpu::new(asked).unwrap()), threads), asked);
    }
}

/// As parts on GPUs do, on threads outside of any pool: none may wait for another on a thread that this one needs.
#[test]
fn parts_load_their_scans_outside_of_any_pool() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho/mixed_state.toml");
    let mut config = zellige_engine::config::load::<Ptycho>(&file, &[]).unwrap().config;
    let made = config.scan[0].simulate.as_mut().unwrap();
    (made.frames, made.size) = (40, crate::simulate::Pair::Same(32));
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..20 {
            let views = |links: Links| {
                let environment = Environment::new(Device::Cpu(Cpu::new(1)?), ".", 1).of_part(links);
                Ok(load(&config, &environment)?.0.views.len())
            };
            assert_eq!(inside::run(5, views).unwrap(), [40; 5]);
        }
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the parts wait for each other");
}
