//! Gas through a slit in a thin wall into a vacuum: without collisions everywhere by its closed form, with many as a dense gas
//! does. Seed 20261121.

use std::f64::consts::PI;

use crate::common::{K, close, flow, run};
use zellige_dsmc::config::sides::{InletConfig, SideConfig, SideInlet, SideWord};
use zellige_dsmc::config::{BodyConfig, Config, Value, WallConfig, WallModel};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::table::Model as Molecules;
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::sampling::VALUES;

/// Half of the slit, m.
const HALF: f64 = 0.005;

/// The upper half of a slit at x = 0 between the lips of a wall that is a mirror, gas from the left, vacuum behind. The reservoir
/// is `high` times as high as the half slit, and narrows to it in a slope, so that nothing shades the slit.
fn slit(cells: [usize; 2], size: [f64; 2], upstream: f64, high: f64, density: f64) -> Config {
    let mut config = Config::new(cells.to_vec(), size.to_vec(), "N2", density, 300.0);
    config.grid.origin = vec![-upstream, 0.0];
    config.boundary.x_lo = Some(SideConfig::Word(SideWord::Stream));
    config.boundary.y_lo = Some(SideConfig::Word(SideWord::Specular));
    (config.boundary.x_hi, config.boundary.y_hi) = (Some(SideConfig::Word(SideWord::Vacuum)), Some(SideConfig::Word(SideWord::Vacuum)));
    config.initial.density = Some(Value::Expression(format!("if(x < 0, {density:e}, 0)")));
    let (left, top, high) = (-upstream, size[1], high * HALF);
    config.bodies = vec![BodyConfig {
        name: "wall".into(),
        outline: Some(Shape::Polygon { vertices: vec![[left, high], [0.5 * (HALF - high), high], [0.0, HALF], [0.0, top], [left, top]] }),
        file: None,
        max_segment_length: None,
        gas: Gas::Outside,
        wall: WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) },
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    }];
    config
}

/// Mass flow through the sections before the slit over that of molecules which do not collide, `rho c/4` times the opening, with
/// its error.
fn passed(gas: &Flow) -> [f64; 2] {
    let (m, n) = (gas.model.species[0].mass, gas.model.inflow[0].as_ref().unwrap().density);
    let free = n * m * (8.0 * K * 300.0 / (PI * m)).sqrt() / 4.0 * HALF;
    let before = (-gas.model.grid.origin[0] / gas.model.grid.h[0]) as usize;
    let flows = &gas.samples.flows(&gas.model)[..before];
    // Particles across one section cross the next: their errors do not average out.
    [0, 1].map(|k| flows.iter().map(|f| f[k]).sum::<f64>() / before as f64 / free)
}

/// Part of all directions in the plane in which a position behind the slit sees it, and the same of the directions' cosines. So
/// much of a Maxwellian comes from there, and it is all that there is.
fn seen([x, y]: [f64; 2]) -> [f64; 2] {
    let [low, high] = [-HALF - y, HALF - y];
    [(high / x).atan() - (low / x).atan(), high / high.hypot(x) - low / low.hypot(x)].map(|v| v / (2.0 * PI))
}

/// With no collisions the density behind the slit is the part of all directions in which it is seen, and each direction brings
/// `sqrt(pi)/2` of the most probable speed. The flow is `n c/4` of the opening.
#[test]
fn molecules_that_do_not_collide_fan_out_from_a_slit() {
    let n = 1e18;
    let mut config = slit([32, 16], [0.04, 0.02], 0.01, 2.0, n);
    config.collisions.scheme = Scheme::None;
    config.particles_per_cell = Some(80.0);
    config.dt = 3e-6;
    // The slowest arrive last: of what has the distance d a part (d/(t c))^2 is missing, 0.1 % at the far end on average from step 300 on.
    (config.steps, config.sampling.start) = (1500, Some(300));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let [through, error] = passed(&gas);
    close("mass flow", through, 1.0, 0.003, error);
    assert!(error < 0.02, "the flow is known to {error}");
    let speed = PI.sqrt() / 2.0 * gas.model.species[0].most_probable_speed(300.0);
    let values = gas.values();
    let (mut squares, mut all, mut count, mut worst) = ([0.0; 2], [0.0; 2], 0.0, 0.0_f64);
    for (cell, v) in values.chunks_exact(VALUES).enumerate().filter(|(cell, _)| gas.model.grid.cell(*cell)[0] >= 8) {
        let at = gas.model.grid.cell(cell);
        let positions = (0..64).map(|k| gas.model.grid.position(at, [k % 8, k / 8].map(|i| (f64::from(i) + 0.5) / 8.0)));
        let [part, cosine] = positions.map(seen).fold([0.0; 2], |sum, s| [sum[0] + s[0] / 64.0, sum[1] + s[1] / 64.0]);
        for (q, expected) in [n * part, speed * cosine / part].into_iter().enumerate() {
            let off = (v[q] - expected) / gas.samples.error(&gas.model, cell, q);
            squares[q] += off * off;
            worst = worst.max(off.abs());
        }
        all = [all[0] + v[0], all[1] + n * part];
        count += 1.0;
    }
    close("molecules behind the wall", all[0], all[1], 0.015, error);
    let squares = squares.map(|s| s / count);
    // In errors of 16 batches: Student's t with 15 degrees of freedom has a mean square of 1.15, here of 384 cells, neighbours alike.
    // Molecules that take 30 and more of a batch's 75 steps to pass are in two batches: a correlation r makes the square 1 + 2r times as
    // large, 1.5 times for a quarter; on a GPU 1.69 was found. One of 768 exceeds 6.5 once in a hundred.
    assert!(squares.iter().all(|s| *s < 1.95) && worst < 6.5, "mean squares {squares:?}, worst {worst}");
}

/// Flow through the narrowest part of a jet of a gas without friction that has the speed of sound there, over that of as large an
/// opening without collisions, `n c/4`: 1.716 for nitrogen, 1.820 for argon.
fn choked(gamma: f64) -> f64 {
    (2.0 * PI * gamma).sqrt() * (2.0 / (gamma + 1.0)).powf((gamma + 1.0) / (2.0 * (gamma - 1.0)))
}

/// A slit of 25 free paths. No gas sends more than the opening times 1.716 through it. The jet is narrower than the opening: into a
/// vacuum by a part C of about 0.85 for flat lips, up to 0.95 for sloping ones, which are at 63 degrees from the axis here; the
/// reservoir is 5.8 times as high as the slit, not infinitely, which adds 1 to 2 % to C. Friction takes less than 1 % at the lips,
/// which are mirrors here. So 0.80 to 0.96 of 1.716, 1.37 to 1.65. Slits and orifices in flat diffuse walls that are known to send
/// 1.3 to 1.5 times as much have C of 0.75 to 0.87.
#[test]
#[ignore = "a minute"]
fn a_dense_gas_sends_more_through_a_slit() {
    let nitrogen = zellige_dsmc::gas::table::find("N2", Molecules::default()).unwrap();
    let density = Transport::new(&nitrogen, 300.0).free_path / (2.0 * HALF / 25.0);
    let mut config = slit([110, 60], [0.055, 0.03], 0.03, 5.8, density);
    // The reservoir keeps its pressure however fast the gas leaves.
    let inlet = InletConfig { temperature: 300.0, pressure: Some(density * K * 300.0), mass_flow: None, memory: 200.0 };
    config.boundary.x_lo = Some(SideConfig::Inlet(SideInlet { inlet }));
    config.particles_per_cell = Some(15.0);
    config.dt = 3e-7;
    (config.steps, config.sampling.start) = (13_000, Some(2500));
    let mut gas = flow(&config, 2);
    run(&mut gas, config.steps);
    let [through, error] = passed(&gas);
    let part = through / choked(1.4);
    println!("{through} +- {error} of the flow without collisions, {part} of the choked one");
    // Found: 1.545 and 1.543 of two seeds, a part of 0.90; with a plate for the lips, between mirrors, 1.512, 0.88.
    assert!((choked(1.4) - 1.716).abs() < 1e-3 && (choked(5.0 / 3.0) - 1.820).abs() < 1e-3);
    assert!(part > 0.80 && part < 0.96 && error < 0.02, "{through} +- {error}");
}
