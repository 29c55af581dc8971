//! Runs in several parts on one GPU: the same particles, averages, rows and checkpoints as in one part, bit for bit. Skipped
//! without a GPU.

use std::path::Path;
use std::time::Instant;

use zellige_dsmc::config::Value;
use zellige_dsmc::flow::Flow;
use zellige_dsmc::model::Model;
use zellige_dsmc::particles::Particles;
use zellige_dsmc::{Config, Dsmc};
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::links::{Links, inside};
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_engine::testing::parts::same_in_parts_of_a_gpu;

use crate::common::argon;
use crate::parts::{EXAMPLES, example, far, mixture};

fn same(name: &str, config: &Config) {
    if testing::gpu().is_none() {
        return;
    }
    assert_eq!(config.check(), []);
    same_in_parts_of_a_gpu::<Dsmc>(&format!("gpu-{name}"), config, Path::new(EXAMPLES), &[2, 3, 8], 13);
}

/// A part of a flow, on one of the first `gpus` GPUs.
fn flow(config: &Config, links: &Links, gpus: usize) -> Result<Flow> {
    let device = Device::Cuda(Cuda::open(links.rank() % gpus)?);
    Flow::of(Model::new(config, Path::new(EXAMPLES), 7)?, config, &device, links)
}

/// The first particle that differs, in words.
fn difference(one: &Particles, other: &Particles) -> Option<String> {
    if one.len() != other.len() {
        return Some(format!("{} particles and {}", one.len(), other.len()));
    }
    let of = |p: &Particles, k: usize| {
        format!("{} {} {:?} {:?}", p.cell[k], p.species[k], p.offset.each_ref().map(|c| c[k]), p.velocity.each_ref().map(|c| c[k]))
    };
    let all = (0..one.len()).filter(|k| of(one, *k) != of(other, *k)).collect::<Vec<_>>();
    let first = all.first().map(|k| format!("{} of {} differ, from {k} on: {} and {}", all.len(), one.len(), of(one, *k), of(other, *k)));
    first.or_else(|| (one != other).then(|| "rotation, levels or tags differ".into()))
}

/// Particles, counts and totals after 1, 2, 3 and 12 steps, of parts on all GPUs that there are.
fn particles_agree(name: &str, config: &Config) {
    if testing::gpu().is_none() {
        return;
    }
    assert_eq!(config.check(), []);
    let run = |links: &Links| {
        let mut flow = flow(config, links, Cuda::count()?)?;
        let mut found = vec![(flow.stages.particles()?, flow.ledger()?, flow.totals()?)];
        for step in 1..=12 {
            flow.advance(&mut Profiler::off())?;
            if step < 4 || step == 12 {
                let (ledger, totals) = (flow.ledger()?, flow.totals()?);
                found.push((flow.stages.particles()?, ledger, totals));
            }
        }
        Ok(found)
    };
    let one = run(&Links::default()).unwrap();
    assert!(one[0].0 != one[1].0, "{name}: nothing moves");
    let mut wrong = Vec::new();
    for parts in [2, 3, 8] {
        let found = inside::run(parts, |links| run(&links)).unwrap_or_else(|e| panic!("{name} in {parts} parts: {e}"));
        for (k, (a, b)) in one.iter().zip(&found[0]).enumerate() {
            if let Some(difference) = difference(&a.0, &b.0) {
                wrong.push(format!("{name} in {parts} parts, look {k}: {difference}"));
                break;
            }
            if a.1 != b.1 || a.2 != b.2 {
                wrong.push(format!("{name} in {parts} parts, look {k}: {:?} {:?}, and {:?} {:?}", a.1, a.2, b.1, b.2));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Argon whose density varies, so that the number of particles of a part changes.
fn uneven() -> Config {
    let mut config = argon(48, 20.0);
    (config.steps, config.sampling.start, config.sampling.batches, config.sampling.audit) = (24, Some(6), 3, Some(5));
    config.initial.density = Some(Value::Expression("7.07043e22 * (1 + 0.8 * sin(13000 * x) * cos(13000 * y))".into()));
    config
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn particles_of_parts() {
    particles_agree("box", &uneven());
    particles_agree("far", &far());
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn particles_of_parts_with_bodies() {
    particles_agree("cylinder", &example("cylinder.toml"));
    particles_agree("jet", &example("jet.toml"));
    particles_agree("mixture", &mixture());
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_box_in_parts_of_a_gpu() {
    same("box", &uneven());
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn flows_past_bodies_in_parts_of_a_gpu() {
    same("cylinder", &example("cylinder.toml"));
    same("jet", &example("jet.toml"));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn closed_flows_in_parts_of_a_gpu() {
    same("cavity", &example("cavity.toml"));
    same("couette", &example("couette.toml"));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn molecules_with_all_that_they_carry_in_parts_of_a_gpu() {
    same("mixture", &mixture());
}

/// Weights of cells, with copies of those that go to other parts.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn cells_of_weights_in_parts_of_a_gpu() {
    let mut config = example("nozzle.toml");
    config.particles_per_cell = Some(10.0);
    config.cell_weights = Some("if(x > 0, 0.5, 1) * (1 + floor(y / 0.004))".into());
    particles_agree("weights", &config);
    same("weights", &config);
}

/// Sides that follow the gas within, whose averages are those of the tiles beside them.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sides_that_follow_the_gas_in_parts_of_a_gpu() {
    let mut config = example("nozzle.toml");
    config.particles_per_cell = Some(10.0);
    same("nozzle", &config);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn molecules_that_fly_past_their_neighbours_in_parts_of_a_gpu() {
    same("far", &far());
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn averages_that_begin_by_themselves_in_parts_of_a_gpu() {
    let mut config = example("couette.toml");
    (config.steps, config.sampling.start, config.sampling.batches) = (600, Some(u64::MAX), 4);
    config.particles_per_cell = Some(30.0);
    if testing::gpu().is_some() {
        same_in_parts_of_a_gpu::<Dsmc>("gpu-steady", &config, Path::new(EXAMPLES), &[2, 3], 90);
    }
}

/// Cells of many particles, which several tiles share.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn tiles_that_share_cells_in_parts_of_a_gpu() {
    let mut config = argon(6, 6000.0);
    (config.steps, config.sampling.start, config.sampling.batches, config.sampling.audit) = (24, Some(6), 3, Some(5));
    same("dense", &config);
}

/// Seconds of a step, and of the host in it, where several parts share a GPU, and where each has one, if there are as many.
#[test]
#[ignore = "a minute on an idle GPU: seconds are measured"]
fn parts_on_one_gpu_are_nearly_as_fast_as_one() {
    if testing::gpu().is_none() {
        return;
    }
    let mut config = argon(1000, 20.0);
    config.sampling.start = Some(1 << 29);
    let all = Cuda::count().unwrap();
    let (mut one, cases) = (0.0, [(1, 1), (2, 1), (4, 1), (2, 2), (4, 4)]);
    for (parts, gpus) in cases.into_iter().filter(|(_, gpus)| *gpus <= all) {
        let times = inside::run(parts, |links| {
            let mut flow = flow(&config, &links, gpus)?;
            for _ in 0..130 {
                flow.advance(&mut Profiler::off())?;
            }
            // Few enough that none waits for room on the stream.
            flow.stages.wait()?;
            let begun = Instant::now();
            for _ in 0..20 {
                flow.advance(&mut Profiler::off())?;
            }
            let host = begun.elapsed().as_secs_f64() / 20.0;
            flow.stages.wait()?;
            links.all_gather(Vec::new())?;
            let begun = Instant::now();
            for _ in 0..200 {
                flow.advance(&mut Profiler::off())?;
            }
            flow.stages.wait()?;
            links.all_gather(Vec::new())?;
            let step = begun.elapsed().as_secs_f64() / 200.0;
            let mut profiler = Profiler::new();
            for _ in 0..40 {
                flow.advance(&mut profiler)?;
            }
            flow.stages.wait()?;
            if links.is_first() {
                let rows = profiler.table();
                let times = rows.iter().map(|row| format!("{} {:.1}", row.name, 1e6 * row.total / 40.0));
                println!("{parts} parts on {gpus} GPUs, us a step and stage: {}", times.collect::<Vec<_>>().join(", "));
            }
            links.all_gather(Vec::new())?;
            Ok([step, host])
        })
        .unwrap();
        one = if parts == 1 { times[0][0] } else { one };
        println!(
            "{parts} parts on {gpus} GPUs: {:.1} us a step, {:.3} times one part; launched in {:.1} us",
            1e6 * times[0][0],
            times[0][0] / one,
            1e6 * times[0][1]
        );
        assert!(times[0][0] < 1.3 * one, "{parts} parts take {:.3} times as long as one", times[0][0] / one);
    }
}
