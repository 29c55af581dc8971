//! The figures in the headers of examples: `cargo test --test dsmc -- --ignored header`. The cylinder's are
//! in `cylinder.rs`.

use std::path::Path;

use crate::common::{close, device, run};
use zellige_dsmc::Dsmc;
use zellige_dsmc::diagnostics::surfaces;
use zellige_dsmc::flow::Flow;
use zellige_dsmc::sampling::VALUES;
use zellige_engine::config::Source;

/// An example, run to its end with another seed than its own, and averaged so many times as long, where its own errors are too
/// large to say that a figure of its header is right: four of them should be two thirds of what `close` allows, since those of 16
/// batches are themselves known to a fifth, and a GPU draws other numbers.
fn whole(name: &str, times: u64) -> Flow {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsmc");
    let mut config = Source::read(folder.join(name)).unwrap().typed::<Dsmc>().unwrap().config;
    // Start of sampling; all steps count where it is searched for.
    let begin = config.sampling.start.filter(|start| *start < config.steps).unwrap_or(0);
    config.steps = begin + times * (config.steps - begin);
    let mut gas = Flow::new(&config, &folder, 20_261_121, &device(0)).unwrap();
    run(&mut gas, config.steps);
    gas
}

#[test]
#[ignore = "half a minute"]
fn fourier_flow_has_the_figures_of_its_header() {
    let gas = whole("fourier.toml", 10);
    let [low, high] = [0, 1].map(|side| gas.samples.surface(&gas.model, side)[4]);
    // Five runs of the example's length had 8.36, 8.17, 8.46, 8.22 and 8.57, each to 0.2 to 0.3 by its batches, two of eight times that 8.49 and
    // 8.30 to 0.07: 8.38 to 0.04 in all.
    close("heat of the cold wall", high[0], 8.38, 0.02, high[1] / 8.38);
    close("heat of the warm wall", -low[0], 8.38, 0.02, low[1] / 8.38);
    let values = gas.values();
    let temperature = |cell: usize| values[cell * VALUES + 4];
    for (wall, first, second) in [(350.0, temperature(0), temperature(1)), (250.0, temperature(59), temperature(58))] {
        // To the wall, half a cell further. A cell's temperature is known to 0.9 K.
        let jump = (wall - 1.5 * first + 0.5 * second).abs();
        assert!((jump - 8.0).abs() < 4.0, "a jump of {jump} K at {wall} K");
    }
}

#[test]
#[ignore = "minutes"]
fn the_cavity_has_the_figures_of_its_header() {
    let gas = whole("cavity.toml", 12);
    let walls = [0, 1, 2, 3].map(|side| gas.samples.surface(&gas.model, side));
    let drag = walls[3][1];
    close("drag of the lid", -drag[0], 0.0546, 0.005, drag[1] / 0.0546);
    for (side, heat) in [(3, 3.57), (1, 1.82)] {
        let [found, error] = walls[side][4];
        close(&format!("heat of side {side}"), found, heat, 0.02, error / heat);
    }
    let values = gas.values();
    let u = |i: usize, j: usize| values[(j * 50 + i) * VALUES + 1];
    // The vortex turns about where the flow below has been the largest: the stream function of each column.
    let stream = |i: usize| {
        let mut sum = 0.0;
        (0..50)
            .map(|j| {
                sum += u(i, j) / 50.0;
                (sum, j + 1)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap()
    };
    let (column, (_, row)) = (0..50).map(|i| (i, stream(i))).min_by(|a, b| a.1.0.total_cmp(&b.1.0)).unwrap();
    let [x, y] = [(column as f64 + 0.5) / 50.0, row as f64 / 50.0];
    assert!((x - 0.53).abs() < 0.06 && (y - 0.74).abs() < 0.04, "the vortex turns about ({x}, {y})");
    let under = 0.5 * (u(24, 49) + u(25, 49));
    assert!((under - 62.0).abs() < 3.0, "{under} m/s under the lid");
    let q = |j: usize| (10..40).map(|i| values[(j * 50 + i) * VALUES + 12]).sum::<f64>() / 30.0;
    let up = (30..40).map(q).sum::<f64>() / 10.0;
    assert!(up > 0.5, "{up} W/m^2 from the cold corner to the warm one");
}

/// Drag of a plate in the stream of Becker's experiment; without collisions Cf would be 1/(sqrt(pi) S) on each side, 0.138.
#[test]
#[ignore = "a minute"]
fn the_flat_plate_has_the_figures_of_its_header() {
    let gas = whole("flat_plate.toml", 1);
    let [load, error] = surfaces::body(&gas, 0);
    close("drag", load.force[0], 0.238, 0.01, error.force[0] / 0.238);
    close("heat", load.heat, 84.5, 0.015, error.heat / 84.5);
    assert!(load.force[1].abs() < 4.0 * error.force[1], "lift {} +- {}", load.force[1], error.force[1]);
    let segments = gas.model.geometry.segments();
    let dynamic = 0.5 * gas.model.species[0].mass * 5e20 * 1074.0_f64.powi(2);
    // Shear of both sides at the same position, the leading edge first.
    let friction = |lowest: f64| {
        let here: Vec<usize> = (0..segments.len()).filter(|s| (segments[*s].middle()[0] - lowest).abs() < 2.5e-3).collect();
        assert_eq!(here.len(), 2, "{lowest}");
        here.iter().map(|s| gas.samples.surface(&gas.model, 4 + s)[1][0]).sum::<f64>() / 2.0 / dynamic
    };
    close("Cf at the leading edge", friction(0.0028), 0.151, 0.04, 0.0);
    close("Cf at the end", friction(0.0978), 0.059, 0.06, 0.0);
}

#[test]
#[ignore = "half a minute"]
fn couette_flow_has_the_figures_of_its_header() {
    let gas = whole("couette.toml", 26);
    let values = gas.values();
    for (side, sign, cells) in [(0, 1.0, [0, 1]), (1, -1.0, [49, 48])] {
        let wall = gas.samples.surface(&gas.model, side);
        close(&format!("shear on side {side}"), sign * wall[2][0], 0.0264, 0.01, wall[2][1] / 0.0264);
        close(&format!("heat of side {side}"), wall[4][0], 2.64, 0.02, wall[4][1] / 2.64);
        let [first, second] = cells.map(|c| values[c * VALUES + 2]);
        // To the wall, half a cell further; the speed of a cell is known to 0.8 m/s.
        let slip = 100.0 + sign * (1.5 * first - 0.5 * second);
        assert!((slip - 20.0).abs() < 6.0, "a slip of {slip} m/s on side {side}");
    }
    let middle = (20..30).map(|c| values[c * VALUES + 4]).sum::<f64>() / 10.0 - 273.15;
    assert!((middle - 9.0).abs() < 2.0, "the middle is {middle} K warmer");
}

/// Mean of value `q` over some cells, and its error as if they were one: neighbours have particles in common.
fn about(gas: &Flow, q: usize, cells: &[[usize; 2]]) -> [f64; 2] {
    let (values, n) = (gas.values(), cells.len() as f64);
    let at = cells.iter().map(|c| gas.model.grid.index(*c));
    let pairs: Vec<[f64; 2]> = at.map(|c| [values[c * VALUES + q], gas.samples.error(&gas.model, c, q)]).collect();
    [0, 1].map(|k| pairs.iter().map(|p| p[k]).sum::<f64>() / n)
}

#[test]
#[ignore = "half a minute"]
fn the_jet_has_the_figures_of_its_header() {
    let gas = whole("jet.toml", 8);
    // Columns come first; those up to the wall.
    let flows = gas.samples.flows(&gas.model);
    let [mean, error] = [0, 1].map(|k| flows[..18].iter().map(|f| f[k]).sum::<f64>() / 18.0);
    close("mass flow", mean, 6.11e-5, 0.01, error / 6.11e-5);
    // On the axis behind the slit, at 40 and at 95 mm: density, temperatures of translation and rotation. The further, the more rows are as on the
    // axis: up to 4 degrees from it, where a jet's density is less by half a per cent. A molecule flies along its row and hardly into another one,
    // so rows do not share errors.
    let positions = [(22, 1, [4.6e20, 238.0, 266.0]), (60, 3, [7.5e19, 129.0, f64::NAN]), (115, 6, [2.86e19, 108.5, 194.0])];
    for (column, rows, expected) in positions {
        let cells: Vec<_> = (0..rows).flat_map(|j| [[column - 1, j], [column, j]]).collect();
        for (q, expected) in [0, 5, 6].into_iter().zip(expected).filter(|(_, e)| e.is_finite()) {
            let [found, error] = about(&gas, q, &cells);
            close(&format!("value {q} in column {column}"), found, expected, 0.03, error / (rows as f64).sqrt() / expected);
        }
    }
}

#[test]
#[ignore = "half a minute"]
fn the_nozzle_has_the_figures_of_its_header() {
    let gas = whole("nozzle.toml", 2);
    let flows = gas.samples.flows(&gas.model);
    // Up to the exit: 100 columns of 0.25 mm.
    let [mean, error] = [0, 1].map(|k| flows[..100].iter().map(|f| f[k]).sum::<f64>() / 100.0);
    close("mass flow", mean, 6.02e-5, 0.01, error / 6.02e-5);
    let mass = gas.model.species[0].mass;
    // Chamber, middle of the throat, exit, and 15 mm behind it.
    for (column, mach) in [(8, 0.19), (36, 0.66), (100, 1.3), (160, 2.1)] {
        let cells = [[column - 1, 0], [column, 0], [column - 1, 1], [column, 1]];
        let ([u, eu], [t, et]) = (about(&gas, 1, &cells), about(&gas, 4, &cells));
        let sound = (1.4 * crate::common::K * t / mass).sqrt();
        close(&format!("Mach number in column {column}"), u / sound, mach, 0.05, (eu / u).hypot(0.5 * et / t));
    }
    let [exit, error] = about(&gas, 4, &[[99, 0], [100, 0], [99, 1], [100, 1]]);
    close("temperature at the exit", exit, 230.0, 0.02, error / 230.0);
}

#[test]
#[ignore = "minutes"]
fn the_knudsen_pump_has_the_figures_of_its_header() {
    let gas = whole("knudsen_pump.toml", 1);
    // Rows between the walls, two columns at each end.
    let end = |columns: [usize; 2]| {
        let cells: Vec<_> = columns.into_iter().flat_map(|i| (2..12).map(move |j| [i, j])).collect();
        about(&gas, 8, &cells)
    };
    let ([cold, ec], [warm, ew]) = (end([0, 1]), end([58, 59]));
    close("pressure at the cold end", cold, 5.9, 0.015, ec / 5.9);
    close("pressure at the warm end", warm, 6.4, 0.015, ew / 6.4);
    assert!((warm / cold - 1.09).abs() < 0.025, "{cold} Pa to {warm} Pa");
}

/// Schaaf and Chambre's closed form, on the whole panel and on its front.
#[test]
#[ignore = "ten seconds"]
fn the_panel_has_the_figures_of_its_header() {
    let gas = whole("satellite_panel.toml", 1);
    let [load, error] = surfaces::body(&gas, 0);
    let [drag, lift] = surfaces::coefficients(&gas, 0, &[load, error]).unwrap().values;
    close("drag coefficient", drag[0], 2.084, 0.0, drag[1] / 2.084);
    close("lift coefficient", lift[0], -0.146, 0.005, lift[1] / 0.146);
    let segments = gas.model.geometry.segments();
    let (rho, speed) = (1e15 * gas.model.species[0].mass, 7500.0_f64);
    let dynamic = 0.5 * rho * speed * speed;
    for (front, expected) in [(true, [0.5844, 0.8660, 0.5175]), (false, [0.0; 3])] {
        let side: Vec<usize> = (0..segments.len()).filter(|s| (segments[*s].normal[0] < 0.0) == front).collect();
        assert_eq!(side.len(), 10);
        let mut found = [[0.0_f64; 2]; 3];
        for s in side {
            let (values, normal) = (gas.samples.surface(&gas.model, 4 + s), segments[s].normal);
            let (pressure, shear) =
                (-values[1][0] * normal[0] - values[2][0] * normal[1], values[2][0] * normal[0] - values[1][0] * normal[1]);
            let [ep, es] = gas.samples.segment_error(s);
            let parts = [(pressure, ep, dynamic), (shear.abs(), es, dynamic), (values[4][0], values[4][1], dynamic * speed)];
            for (found, (value, error, unit)) in found.iter_mut().zip(parts) {
                *found = [found[0] + value / unit / 10.0, found[1].hypot(error / unit / 10.0)];
            }
        }
        for (name, ([found, error], expected)) in ["Cp + p/q", "Cf", "Ch"].into_iter().zip(found.into_iter().zip(expected)) {
            println!("{name}: {found} +- {error}, expected {expected}");
            assert!((found - expected).abs() < 4.0 * error + 1e-3, "{name}: {found} +- {error}, expected {expected}");
        }
    }
}

#[test]
#[ignore = "ten seconds"]
fn relaxation_has_the_figures_of_its_header() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsmc");
    let config = Source::read(folder.join("relaxation.toml")).unwrap().typed::<Dsmc>().unwrap().config;
    let mut gas = Flow::new(&config, &folder, 20_261_121, &device(0)).unwrap();
    let mut states = vec![gas.totals().unwrap()];
    for steps in [30, config.steps - 30] {
        run(&mut gas, steps);
        states.push(gas.totals().unwrap());
    }
    let energy = |k: usize| states[k].translation + states[k].internal;
    assert!((energy(2) / energy(0) - 1.0).abs() < 1e-6, "{} and {}", energy(0), energy(2));
    // Rotation has its share of 2 in 5 after thirty steps, six collisions, or some of it; the rest is vibration.
    let share = [0, 1, 2].map(|k| states[k].internal / energy(k));
    assert!(share[0] < 0.01 && share[1] > 0.2 && share[2] > share[1] + 0.05, "{share:?}");
    let cells: Vec<_> = (0..400).map(|c| gas.model.grid.cell(c)).collect();
    let [translation, rotation, vibration] = [5, 6, 7].map(|q| about(&gas, q, &cells)[0]);
    // 20000 molecules: by the shares of their energy each is off by 0.6 % and some more.
    for (name, t) in [("rotation", rotation), ("vibration", vibration)] {
        close(name, t, translation, 0.02, 0.0);
    }
}
