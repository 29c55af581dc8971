//! Moments on bodies whose long segments are loaded unevenly, without collisions, against closed forms. Seed 20261121.

use std::f64::consts::PI;

use crate::common::{BOX, K, argon, flow, run};
use zellige_dsmc::config::sides::{SideConfig, SideWord};
use zellige_dsmc::config::{BodyConfig, Config, Value, WallConfig, WallModel};
use zellige_dsmc::diagnostics::surfaces;
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::output;
use zellige_engine::record::{Entries, Record, Values};

fn body(name: &str, outline: Shape, wall: WallConfig) -> BodyConfig {
    let outline = Some(outline);
    BodyConfig {
        name: name.into(),
        outline,
        file: None,
        max_segment_length: None,
        gas: Gas::Outside,
        wall,
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    }
}

/// A cold beam hits a plate of two points at 45 degrees, whose upper half another plate keeps in its shadow: all force acts on the
/// lower half.
#[test]
fn a_plate_half_in_the_shadow() {
    let mut config = argon(12, 10.0);
    config.collisions.scheme = Scheme::None;
    (config.gas.temperature, config.gas.velocity) = (0.5, [900.0, 0.0, 0.0]);
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    let mirror = || WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) };
    config.bodies = vec![
        body("plate", Shape::Plate { points: vec![[5.5e-5, 8e-5], [11.5e-5, 2e-5]] }, mirror()),
        body("shield", Shape::Plate { points: vec![[3.1e-5, 5e-5], [3.1e-5, 9.5e-5]] }, mirror()),
    ];
    (config.steps, config.sampling.start) = (2040, Some(40));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let [load, error] = surfaces::body(&gas, 0);
    // The mirror turns what comes on a height of 3e-5 m down: as much force along x as along y, whose middle is 1.5e-5 m beside and below
    // the plate's.
    let force = BOX.0 * gas.model.species[0].mass * 900.0 * 900.0 * 3e-5;
    let moment = force * 3e-5;
    // 18.9 molecules a step on three cells: 37 800 with levers of 1.5 +- 0.87. The beam spreads by 1 %, which shifts nothing but its edge.
    let sigma = (1.0 + (0.866_f64 / 1.5).powi(2)).sqrt() / 37_800.0_f64.sqrt();
    assert!((load.force[0] / force - 1.0).abs() < 4.0 * sigma, "{load:?}, {force} along x and y expected");
    assert!((load.moment / moment - 1.0).abs() < 4.0 * sigma, "{load:?}, a moment of {moment} +- {sigma} of it expected");
    // Sixteen batches know their scatter to 18 %.
    assert!((error.moment / (sigma * moment) - 1.0).abs() < 0.75, "{error:?}, {} expected", sigma * moment);
}

/// Loads on a convex body from molecules that enter through the side at x = 0, up to the height of the domain, at rest, and leave
/// a diffuse wall for the vacuum: force and moment about `pivot`; and the moment if all force on a segment acted in its middle.
fn effused(vertices: &[[f64; 2]], both_sides: bool, height: f64, wall: f64, mass: f64, pivot: [f64; 2]) -> [f64; 4] {
    const POINTS: usize = 400;
    let (density, temperature) = BOX;
    let mut sum = [0.0; 4];
    let mut segments: Vec<_> = (0..vertices.len()).map(|k| (vertices[k], vertices[(k + 1) % vertices.len()])).collect();
    if both_sides {
        segments = vec![(vertices[0], vertices[1]), (vertices[1], vertices[0])];
    }
    for (a, b) in segments {
        let way = [b[0] - a[0], b[1] - a[1]];
        let length = way[0].hypot(way[1]);
        let normal = [way[1] / length, -way[0] / length];
        let mut whole = [0.0; 2];
        for k in 0..POINTS {
            let at = [0, 1].map(|d| a[d] + way[d] * (k as f64 + 0.5) / POINTS as f64);
            // Directions from which it sees the side, and what comes from each: a part of 2 pi of the Maxwellian.
            let [low, high] = [-at[1], height - at[1]].map(|y| y.atan2(at[0]));
            let (mut force, mut flux) = ([0.0; 2], 0.0);
            for j in 0..POINTS {
                let angle = low + (high - low) * (j as f64 + 0.5) / POINTS as f64;
                let towards = [angle.cos(), -angle.sin()];
                let cosine = -(towards[0] * normal[0] + towards[1] * normal[1]);
                if cosine > 0.0 {
                    let part = density * (high - low) / POINTS as f64 / (2.0 * PI);
                    for d in 0..2 {
                        force[d] += part * 2.0 * K * temperature * cosine * towards[d];
                    }
                    flux += part * (PI * K * temperature / (2.0 * mass)).sqrt() * cosine;
                }
            }
            let back = flux * mass * (PI * K * wall / (2.0 * mass)).sqrt();
            let each = length / POINTS as f64;
            let force = [0, 1].map(|d| (force[d] - back * normal[d]) * each);
            for d in 0..2 {
                sum[d] += force[d];
                whole[d] += force[d];
            }
            sum[2] += (at[0] - pivot[0]) * force[1] - (at[1] - pivot[1]) * force[0];
        }
        let middle = [0, 1].map(|d| 0.5 * (a[d] + b[d]) - pivot[d]);
        sum[3] += middle[0] * whole[1] - middle[1] * whole[0];
    }
    sum
}

fn effusing(outline: Shape) -> Config {
    let mut config = argon(20, 20.0);
    config.collisions.scheme = Scheme::None;
    config.boundary.all = Some(SideConfig::Word(SideWord::Vacuum));
    config.boundary.x_lo = Some(SideConfig::Word(SideWord::Stream));
    config.initial.density = Some(Value::Number(0.0));
    config.bodies = vec![body("body", outline, WallConfig::diffuse(350.0, [0.0; 3]))];
    (config.dt, config.steps, config.sampling.start) = (3e-8, 4200, Some(200));
    config
}

/// A plate of two points, a thin wedge and a triangle, near a side from which gas effuses: the load falls along each of their
/// segments.
#[test]
fn plate_wedge_and_triangle_beside_an_effusing_side() {
    let plate = vec![[2e-5, 1.5e-5], [17e-5, 0.7e-5]];
    let wedge = vec![[2e-5, 5.1e-5], [17e-5, 3e-5], [17e-5, 5e-5]];
    let triangle = vec![[3e-5, 3e-5], [15e-5, 2.1e-5], [6.3e-5, 11e-5]];
    for (name, vertices) in [("plate", plate), ("wedge", wedge), ("triangle", triangle)] {
        let is_plate = vertices.len() == 2;
        let outline = if is_plate { Shape::Plate { points: vertices.clone() } } else { Shape::Polygon { vertices: vertices.clone() } };
        let config = effusing(outline);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let [load, error] = surfaces::body(&gas, 0);
        let pivot = gas.model.geometry.bodies()[0].centre();
        let [x, y, moment, in_middles] = effused(&vertices, is_plate, 20e-5, 350.0, gas.model.species[0].mass, pivot);
        println!("{name}: {load:?} +- {error:?}; {x} {y} {moment}, {in_middles} in middles");
        // The force acts at most half of the length away from the pivot.
        let size = x.hypot(y);
        let parts = [("force along x", 0, x, size), ("force along y", 1, y, size), ("moment", 3, moment, size * 7.5e-5)];
        for (what, at, expected, scale) in parts {
            let (found, error) = (load.numbers()[at], error.numbers()[at]);
            assert!((found - expected).abs() < 4.0 * error, "{name}, {what}: {found} +- {error}, {expected} expected");
            // So that the bound above is one: 60 000 molecules, of which each counts at most a few times as much as another.
            assert!(error < 0.005 * scale, "{name}, {what}: +- {error} of {scale}");
        }
        assert!((in_middles - moment).abs() > 5.0 * error.moment, "{name}: forces in middles make {in_middles}, {moment} is right");
    }
}

/// A plate across the whole domain between a warm side on its right and a cold one on its left: seen along the way through its
/// points, the first face is the one on the right, in tables and along the outline.
#[test]
fn the_right_face_of_a_plate_comes_first() {
    for (points, right) in [([[6e-5, 0.0], [6e-5, 12e-5]], 1.0), ([[6e-5, 12e-5], [6e-5, 0.0]], -1.0)] {
        let mut config = argon(12, 10.0);
        config.collisions.scheme = Scheme::None;
        let wall = |temperature: f64| Some(WallConfig::diffuse(temperature, [0.0; 3]).into());
        let [warm, cold] = [400.0, 200.0].map(wall);
        (config.boundary.x_lo, config.boundary.x_hi) = if right > 0.0 { (cold, warm) } else { (warm, cold) };
        config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
        config.bodies = vec![body("plate", Shape::Plate { points: points.to_vec() }, WallConfig::diffuse(300.0, [0.0; 3]))];
        // 24 times through a gap in which 720 molecules fly: 2e4 hits or more, and differences of temperature of a third.
        (config.dt, config.steps, config.sampling.start) = (2e-8, 400, Some(100));
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let normals: Vec<f64> = gas.model.geometry.segments().iter().map(|s| s.normal[0]).collect();
        assert_eq!(normals, [right, -right]);
        let records = output::records(&gas);
        let table = records.iter().find_map(|r| if let Record::Table(t) = r { (t.name == "surface").then_some(t) } else { None }).unwrap();
        let column = table.columns.iter().find(|c| c.quantity == "heat_flux").unwrap();
        let Entries::Each(Values::F64(heat)) = &column.values else { panic!("{:?}", column.values) };
        let curve =
            records.iter().find_map(|r| if let Record::Measured(m) = r { (m.curve.name == "surface_plate").then_some(m) } else { None });
        let curve = &curve.unwrap().curve;
        assert!(curve.x[0] < curve.x[1], "{:?}", curve.x);
        let drawn = &curve.lines.iter().find(|(name, _)| name.starts_with("heat_flux")).unwrap().1;
        for heat in [heat, drawn] {
            assert!(heat.len() == 2 && heat[0] > 0.0 && heat[1] < 0.0, "{heat:?}: the face on the warm side must come first");
        }
    }
}
