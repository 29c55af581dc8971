//! Pictures of a solution on a GPU, averaged there, against those of its records, averaged on the host. Skipped without a GPU.

use serde_json::{Value, json};
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Planes, Record};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_io::picture::planes;
use zellige_poisson::{Config, Poisson};

/// First pixel that is not that of the record.
fn difference(found: &Planes, expected: &Planes) -> Option<String> {
    assert_eq!(found.field, expected.field);
    assert_eq!(found.pixels.len(), expected.pixels.len());
    for (plane, (a, b)) in found.pixels.iter().zip(&expected.pixels).enumerate() {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().any(|v| *v != 0.0), "plane {plane} of {} is zero", found.field.name);
        if let Some(k) = (0..a.len()).find(|k| a[*k] != b[*k]) {
            return Some(format!("{}, plane {plane}, pixel {k} of {}: {:e}, not {:e}", found.field.name, a.len(), a[k], b[k]));
        }
    }
    None
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn pictures_made_on_a_gpu_are_those_of_the_records() {
    let Some(cuda) = testing::gpu() else { return };
    let table = |nodes: &[usize], method: &str, precision: &str| {
        let size: Vec<f64> = nodes.iter().map(|n| *n as f64).collect();
        json!({ "grid": { "nodes": nodes, "size": size }, "rhs": "1 + sin(x/7)*cos(y/5)", "method": method, "precision": precision,
            "boundary": { "x_lo": { "dirichlet": "1 + y/100" }, "x_hi": { "neumann": 0.1 } } })
    };
    let case = |name: &str, nodes: &[usize], method: &str, precision: &str, change: &dyn Fn(&mut Value)| {
        let mut table = table(nodes, method, precision);
        change(&mut table);
        (format!("{name} {precision}"), table)
    };
    let cases = [
        case("plane", &[1025, 641], "multigrid", "mixed", &|_| ()),
        case("plane", &[1025, 641], "multigrid", "f32", &|_| ()),
        case("odd", &[700, 33], "multigrid", "f64", &|_| ()),
        case("small", &[65, 33], "multigrid", "mixed", &|_| ()),
        case("direct", &[601, 515], "direct", "f64", &|_| ()),
        case("direct", &[601, 515], "direct", "f32", &|_| ()),
        case("three axes", &[65, 33, 41], "multigrid", "mixed", &|_| ()),
        case("three axes", &[530, 9, 17], "multigrid", "f32", &|_| ()),
        case("three axes, direct", &[33, 17, 20], "direct", "f64", &|_| ()),
    ];
    let mut differences = Vec::new();
    for (name, table) in cases {
        let config: Config = serde_json::from_value(table).unwrap();
        assert_eq!(config.check(), [], "{name}");
        let mut poisson = Poisson::setup(&config, &Environment::new(Device::Cuda(cuda.clone()), ".", 1)).unwrap();
        for _ in 0..2 {
            poisson.step(&mut Profiler::off()).unwrap();
            let (pictures, records) = (poisson.pictures().unwrap().records().unwrap(), poisson.records().unwrap());
            assert_eq!(pictures.len(), records.len(), "{name}");
            for (picture, record) in pictures.iter().zip(records) {
                match (picture, record) {
                    (Record::Planes(found), Record::Field(field)) => {
                        differences.extend(difference(found, &planes(field)).map(|d| format!("{name}: {d}")));
                    }
                    (Record::Curve(found), Record::Curve(expected)) => assert_eq!(*found, expected),
                    other => panic!("{name}: {other:?}"),
                }
            }
            if poisson.outcome().is_some() {
                break;
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}
