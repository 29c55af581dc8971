//! A batch by the input: every right-hand side gets what it gets alone, on each device, by each method, after a restart too.

use std::path::Path;

use serde_json::{Value, json};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::Device;
use zellige_engine::error::Error;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::sim::{Ending, Environment, Solver};
use zellige_poisson::{Config, Poisson, Solution, setup, solve};

use crate::common::{cpu, devices, scramble};

const COUNT: usize = 7;
const NODES: [usize; 2] = [33, 20];

fn environment(device: &Device, folder: &Path) -> Environment {
    Environment::new(device.clone(), folder, 0)
}

fn config(table: Value) -> Config {
    let config: Config = serde_json::from_value(table).unwrap();
    assert_eq!(config.check(), []);
    config
}

/// Sides of every kind and a guess, some of them another for each `k`.
fn table(method: &str) -> Value {
    json!({
        "batch": COUNT, "method": method, "tolerance": 1e-9, "precision": "f64",
        "grid": { "nodes": NODES, "size": [1.0, 0.7], "origin": [0.5, 0.0] },
        "rhs": "sin(3*x + k) + k*y",
        "boundary": { "x_lo": { "dirichlet": "0.1*k + y" }, "x_hi": { "neumann": 0.5 }, "y": { "dirichlet": "x" } },
    })
}

/// Solves the input for number `k` alone.
fn alone(table: &Value, k: usize, device: &Device) -> Solution {
    let text = |v: &Value| v.as_str().map_or(v.clone(), |t| json!(t.replace('k', &format!("({k}.0)"))));
    let mut one = table.clone();
    one.as_object_mut().unwrap().remove("batch");
    one["rhs"] = text(&one["rhs"]);
    one["boundary"]["x_lo"]["dirichlet"] = text(&one["boundary"]["x_lo"]["dirichlet"]);
    if let Some(guess) = one.get("guess") {
        one["guess"] = text(guess);
    }
    let one = config(one);
    solve(&setup::problem(&one, Path::new(".")).unwrap(), &one.options(), device).unwrap()
}

fn finished(config: &Config, device: &Device, folder: &Path) -> Poisson {
    let mut poisson = Poisson::setup(config, &environment(device, folder)).unwrap();
    while poisson.outcome().is_none() {
        assert!(poisson.records().unwrap().is_empty(), "records of half a batch");
        poisson.step(&mut Profiler::off()).unwrap();
        assert!(poisson.row().unwrap().get("solved").is_some());
    }
    poisson
}

/// Shape and values of the solutions.
fn solutions(poisson: &mut Poisson) -> (Vec<usize>, Vec<f64>) {
    let records = poisson.records().unwrap();
    let names: Vec<_> = records.iter().map(Record::name).collect();
    assert_eq!(names, ["solution", "rhs", "residual"]);
    let Record::Stack(stack) = &records[0] else { panic!("no stack") };
    let Values::F64(values) = &stack.values else { panic!("not in double precision") };
    (stack.shape(), values.clone())
}

/// Runs the GPU twin too where there is one: the direct solver takes all right-hand sides in one launch there, and each gets the
/// bits that it has alone.
#[test]
fn every_right_hand_side_gets_what_it_gets_alone() {
    for device in devices() {
        for (method, warm) in
            [("direct", false), ("direct", true), ("multigrid", false), ("multigrid", true), ("fmg", false), ("sor", false)]
        {
            let mut table = table(method);
            if warm {
                table["guess"] = json!("x*y + 0.2*k");
            }
            let mut poisson = finished(&config(table.clone()), &device, Path::new("."));
            let outcome = poisson.outcome().unwrap();
            assert_eq!((outcome.ending, outcome.status), (Ending::Finished, "converged"), "{}", outcome.message);
            let (shape, found) = solutions(&mut poisson);
            assert_eq!(shape, [COUNT, NODES[1], NODES[0]]);
            let details = poisson.details().unwrap();
            for (k, found) in found.chunks(NODES[0] * NODES[1]).enumerate() {
                let expected = alone(&table, k, &device);
                // Steps of the run loop carry no residual on, which is a rounding in the last cycles.
                let error = crate::common::max_error(found, &expected.u);
                let bound = if method == "direct" { 0.0 } else { 1e-9 };
                assert!(error <= bound, "{} {method} {warm} {k}: {error:e}", device.name());
                let told = &details["right_hand_sides"][k];
                assert_eq!((told["right_hand_side"].as_u64(), told["status"].as_str()), (Some(k as u64), Some("converged")));
                assert!(told["relative_residual"].as_f64().unwrap() <= 1e-9, "{told}");
            }
            let checks = poisson.checks().unwrap();
            assert!(checks.len() == 1 && checks[0].ok, "{checks:?}");
            assert_eq!(poisson.progress(), 1.0);
        }
    }
}

#[test]
fn the_automatic_choice_and_the_plan_say_how() {
    let plan = |method: &str, device: &Device| {
        let plan = Poisson::plan(&config(table(method)), &environment(device, Path::new("."))).unwrap();
        assert_eq!(plan.items, (COUNT * 32 * 18) as u64);
        let line = |name: &str| plan.lines.iter().find(|(label, _)| label == name).map(|(_, text)| text.clone()).unwrap();
        (line("method"), line("batch"), plan.memory)
    };
    let (method, batch, two) = plan("auto", &cpu(2));
    assert!(method.contains("direct solver") && method.contains("side by side"), "{method}");
    assert_eq!(batch, "7 right-hand sides, 2 at a time, one thread each");
    // Solution, right-hand side and the swept solution of one more; the host's right-hand sides and solutions once.
    assert_eq!(two - plan("auto", &cpu(1)).2, (3 * 8 * NODES[0] * NODES[1]) as u64);
    let (method, batch, _) = plan("multigrid", &cpu(2));
    assert!(method.contains("V(1,1)") && batch.contains("7 right-hand sides, one after another"), "{method}; {batch}");
    for device in &devices()[1..] {
        let (method, batch, memory) = plan("auto", device);
        assert!(method.contains("each launch works on all") && batch.contains("all of them in each launch"), "{method}; {batch}");
        assert_eq!(memory, (4 * 8 * COUNT * NODES[0] * NODES[1]) as u64);
    }
}

/// A stack in a file says by itself how many there are; guesses and sides may be stacks too, or one for all.
#[test]
fn stacks_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, shape: &[usize]| {
        let values = Values::F64(scramble(shape.iter().product()));
        zellige_io::npy::write(folder.path().join(name), shape, &values).unwrap();
        let axis = |(d, len): (usize, &usize)| zellige_engine::record::Axis::bare(d.min(2), 0.0, 1.0, *len);
        let axes = shape.iter().rev().enumerate().map(axis).collect();
        let field = zellige_engine::record::Field::bare("a", axes, zellige_engine::record::Centring::Node, values);
        zellige_io::hdf5::write(folder.path().join(name).with_extension("h5"), &[Record::Stack(field)]).unwrap();
    };
    let [m, n] = NODES;
    write("rho.npy", &[3, n, m]);
    write("space.npy", &[3, 5, 4, 6]);
    write("side.npy", &[3, n]);
    write("sides.npy", &[4, n]);
    write("guess.npy", &[n, m]);
    let input = |rhs: &str, side: &str, more: Value| {
        let mut table = json!({
            "grid": { "nodes": NODES, "size": [1, 1] }, "rhs": { "file": rhs }, "guess": { "file": "guess.npy" }, "precision": "f64",
            "boundary": { "x_lo": { "dirichlet": { "file": side } } },
        });
        table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(table)
    };
    let device = cpu(2);
    let [npy, hdf5] = ["rho.npy", "rho.h5:/a"].map(|rhs| {
        let mut poisson = finished(&input(rhs, "side.npy", json!({})), &device, folder.path());
        let (shape, u) = solutions(&mut poisson);
        assert_eq!(shape, [3, n, m]);
        u
    });
    assert!(npy == hdf5);
    // Values of the sides stand in the solutions as they were given.
    let given = scramble(3 * n);
    for k in 0..3 {
        assert!((1..n - 1).all(|j| npy[m * (n * k + j)] == given[n * k + j]), "{k}");
    }
    let space = config(json!({ "grid": { "nodes": [6, 4, 5], "size": [1, 1, 1] }, "rhs": { "file": "space.npy" }, "precision": "f64" }));
    let (shape, _) = solutions(&mut finished(&space, &device, folder.path()));
    assert_eq!(shape, [3, 5, 4, 6]);

    let refusal = |config: &Config| {
        let Err(Error::Input { mut problems, .. }) = Poisson::plan(config, &environment(&device, folder.path())) else { panic!() };
        problems.remove(0)
    };
    let fault = refusal(&input("rho.npy", "sides.npy", json!({})));
    assert!(fault.path == "poisson.boundary.x_lo.dirichlet.file" && fault.message.contains("(4, 20), expected (20) or (3, 20)"), "{fault}");
    let fault = refusal(&input("rho.npy", "side.npy", json!({ "batch": 5 })));
    assert!(fault.path == "poisson.rhs.file" && fault.message.contains("expected (20, 33) or (5, 20, 33)"), "{fault}");
    let fault = refusal(&input("guess.npy", "side.npy", json!({})));
    assert!(fault.hint.as_ref().unwrap().contains("`batch`"), "{fault}");
    let faults = serde_json::from_value::<Config>(json!({ "grid": { "nodes": NODES, "size": [1, 1] }, "rhs": "k*x" })).unwrap().check();
    assert!(faults.len() == 1 && faults[0].hint.as_ref().unwrap().contains("`batch`"), "{faults:?}");
    let mut none = config(table("auto"));
    none.batch = Some(0);
    assert_eq!(none.check()[0].path, "batch");
    let pole = config(json!({ "grid": { "nodes": NODES, "size": [1, 1] }, "batch": 3, "rhs": "x/(k - 2)" }));
    let Err(Error::Input { problems, .. }) = Poisson::setup(&pole, &environment(&device, folder.path())) else { panic!() };
    assert!(problems[0].message.contains("for k = 2"), "{}", problems[0]);
}

/// The run ends as the worst of its right-hand sides does, and the others have their solutions.
#[test]
fn the_worst_decides_how_a_batch_ends() {
    let device = cpu(2);
    for method in ["direct", "multigrid"] {
        let mut table = table(method);
        // Nothing to do for the first one but to find that out, and a floor that is in the way of the others.
        (table["rhs"], table["tolerance"]) = (json!("k*sin(3*x)"), json!(1e-300));
        table["boundary"] = json!({});
        let mut poisson = finished(&config(table.clone()), &device, Path::new("."));
        let outcome = poisson.outcome().unwrap();
        assert_eq!((outcome.ending, outcome.status), (Ending::Limited, "precision_floor"), "{}", outcome.message);
        assert!(
            outcome.message.contains("1 converged, 6 precision_floor") && outcome.message.contains("number 1 is the first"),
            "{}",
            outcome.message
        );
        assert_eq!(poisson.details().unwrap()["right_hand_sides"][0]["status"], "converged");
        assert!(solutions(&mut poisson).1[..NODES[0] * NODES[1]].iter().all(|u| *u == 0.0));
    }
    // A factor that makes it grow: every one fails, and all are tried.
    let mut table = table("sor");
    (table["omega"], table["max_cycles"]) = (json!(1.9999), json!(40));
    let poisson = finished(&config(table), &device, Path::new("."));
    assert_eq!(poisson.details().unwrap()["right_hand_sides"].as_array().unwrap().len(), COUNT);
    assert_eq!(poisson.outcome().unwrap().status, "max_cycles");
    // Nothing holds a value: means are taken off and told.
    let closed = json!({
        "batch": 3, "grid": { "nodes": NODES, "size": [1, 1] }, "rhs": "k + cos(pi*x)", "boundary": { "all": "neumann" }, "mean": 2.0
    });
    let mut poisson = finished(&config(closed), &device, Path::new("."));
    let message = poisson.outcome().unwrap().message;
    assert!(message.contains("do not balance") && message.contains("number 2"), "{message}");
    let imbalance = poisson.details().unwrap()["right_hand_sides"][1]["imbalance"].as_f64().unwrap();
    assert!((imbalance - 1.0).abs() < 1e-12, "{imbalance}");
    assert!(poisson.checks().unwrap().iter().all(|c| c.ok) && poisson.checks().unwrap().len() == 2);
}

#[test]
fn a_restored_batch_goes_on_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved");
    for device in devices() {
        for method in ["direct", "multigrid", "fmg", "sor"] {
            let c = config(table(method));
            let expected = solutions(&mut finished(&c, &device, Path::new(".")));
            let mut whole = Poisson::setup(&c, &environment(&device, Path::new("."))).unwrap();
            let mut saved = 0;
            while whole.outcome().is_none() && saved < 12 {
                let mut writer = Writer::create(&path, Poisson::NAME).unwrap();
                whole.save(&mut writer).unwrap();
                writer.finish().unwrap();
                let mut resumed = Poisson::setup(&c, &environment(&device, Path::new("."))).unwrap();
                resumed.restore(&Reader::open(&path, Poisson::NAME).unwrap()).unwrap();
                assert_eq!(resumed.clock(), whole.clock());
                while resumed.outcome().is_none() {
                    resumed.step(&mut Profiler::off()).unwrap();
                }
                assert!(solutions(&mut resumed) == expected, "{} {method} after {saved} steps", device.name());
                whole.step(&mut Profiler::off()).unwrap();
                saved += 1;
            }
            assert!(saved > 0);
        }
    }
}

/// Runs a batch as the command line does: files of all forms, and a figure of each in the summary.
#[test]
fn a_run_writes_all_solutions_and_tells_of_each() {
    use zellige_engine::record::Row;
    use zellige_engine::run::{Options, Progress, Sink, run};
    use zellige_engine::sim::Clock;

    struct Files(std::path::PathBuf, usize);

    impl Sink for Files {
        fn row(&mut self, _: &Clock, row: &Row) -> zellige_engine::error::Result<()> {
            self.1 += usize::from(row.get("solved").is_some());
            Ok(())
        }
        fn progress(&mut self, _: &Progress, _: &Row) {}
        fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> zellige_engine::error::Result<()> {
            let formats = [zellige_io::Format::Npy, zellige_io::Format::Vti, zellige_io::Format::Bov, zellige_io::Format::Hdf5];
            let stamp = zellige_io::Stamp { step: clock.step, time: clock.time, numbered: !last };
            zellige_io::write_records(&self.0, &records, &formats, stamp).map(|_| ())
        }
        fn notice(&mut self, _: &str) {}
    }

    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(folder.path());
    options.records = Some(zellige_engine::schedule::Schedule::Steps(1));
    let mut sink = Files(folder.path().into(), 0);
    let (c, environment) = (config(table("auto")), environment(&cpu(2), Path::new(".")));
    let summary = run::<Poisson>(&c, &environment, &options, &mut Profiler::new(), &mut sink).unwrap();
    // Two at a time.
    assert_eq!((summary.exit_code(), summary.steps, sink.1), (0, 4, 4));
    let told = serde_json::to_value(&summary).unwrap();
    let each = told["details"]["right_hand_sides"].as_array().unwrap();
    assert!(each.len() == COUNT && each.iter().all(|one| one["status"] == "converged" && one["cycles"] == 1.0), "{each:?}");
    let whole = zellige_io::npy::read(folder.path().join("solution.npy")).unwrap();
    assert_eq!(whole.shape, [COUNT, NODES[1], NODES[0]]);
    assert_eq!(zellige_io::hdf5::read(folder.path().join("results.h5"), "solution").unwrap().values, whole.values);
    let layer = zellige_io::vti::read(folder.path().join("rhs_0006.vti")).unwrap();
    // At the first node, x = 0.5 and y = 0, for k = 6.
    assert!((layer.values.get(0) - 7.5_f64.sin()).abs() < 1e-15, "{}", layer.values.get(0));
    for name in ["solution_0000.bov", "solution.pvd", "rhs.npy", "residual.csv"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    assert!(!folder.path().join("solution_0007.vti").exists());
}
