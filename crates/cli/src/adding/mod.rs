//! The solver of `docs/adding-a-solver.md` and the stage of `docs/adding-a-stage.md`, run as `zellige run` runs every
//! solver. The pages show parts of the code that is compiled here; the first test compares them.

mod damped;
mod oscillator;

use std::path::Path;

use zellige_engine::config::{Format, Source};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Result};
use zellige_engine::links::Links;
use zellige_engine::sim::Solver;

use crate::args::RunArgs;
use crate::solvers::{Entry, entry};

const SOLVER: &str = include_str!("../../../../docs/adding-a-solver.md");
const STAGE: &str = include_str!("../../../../docs/adding-a-stage.md");

/// The code blocks of a page in one language, without their fences.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let inside = |part: &'a str| part.split_once("```").map(|(code, _)| code);
    page.split(fence.as_str()).skip(1).filter_map(inside).collect()
}

/// A hunk before (without `+`) or after (without `-`) the change.
fn side(hunk: &str, other: char) -> String {
    let lines = hunk.lines().filter(|line| !line.starts_with(other));
    lines.flat_map(|line| [line.get(1..).unwrap_or_default(), "\n"]).collect()
}

#[test]
fn the_pages_show_the_code_that_is_compiled() {
    let (oscillator, damped) = (include_str!("oscillator.rs"), include_str!("damped.rs"));
    let (shown, hunks) = (blocks(SOLVER, "rust"), blocks(STAGE, "diff"));
    assert!(!shown.is_empty() && !hunks.is_empty());
    for part in shown {
        assert_eq!(oscillator.matches(part).count(), 1, "docs/adding-a-solver.md and oscillator.rs:\n{part}");
    }
    for hunk in hunks {
        assert_eq!(oscillator.matches(&side(hunk, '+')).count(), 1, "docs/adding-a-stage.md and oscillator.rs:\n{hunk}");
        assert_eq!(damped.matches(&side(hunk, '-')).count(), 1, "docs/adding-a-stage.md and damped.rs:\n{hunk}");
    }
}

/// The input of a page.
fn input(page: &str) -> String {
    let blocks = blocks(page, "toml");
    assert_eq!(blocks.len(), 1, "a page has one input");
    blocks[0].to_owned()
}

/// Runs an input as the command line does, and returns the exit code.
fn run<S: Solver>(text: &str, folder: &Path, overrides: &[&str], resume: Option<&Path>) -> Result<u8> {
    let mut source = Source::parse(text, Format::Toml, "oscillator.toml")?;
    let overrides = [&["run.device=cpu", "run.threads=1"], overrides].concat();
    source.set(&overrides.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let arguments = RunArgs { output: Some(folder.into()), resume: resume.map(Into::into), ..RunArgs::default() };
    entry::<S>().run(&source, &arguments, &Links::default())
}

/// A scalar of the last row of a run.
fn last(folder: &Path, column: &str) -> f64 {
    let rows = zellige_io::csv::read(folder.join("rows.csv")).expect("the run has rows");
    let i = rows.names.iter().position(|name| name.split(' ').next() == Some(column)).expect("the column");
    *rows.columns[i].last().expect("a row")
}

fn summary(folder: &Path) -> serde_json::Value {
    zellige_io::json::read(folder.join("summary.json")).expect("the run has a summary")
}

/// Position of the damped oscillation at time `t`, as one cosine with its phase.
fn closed_form(omega: f64, gamma: f64, t: f64) -> f64 {
    let w = (omega * omega - gamma * gamma).sqrt();
    (1.0 + (gamma / w).powi(2)).sqrt() * (-gamma * t).exp() * (w * t - (gamma / w).atan()).cos()
}

#[test]
fn the_solver_runs_and_follows_the_closed_form() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    assert_eq!(run::<oscillator::Oscillator>(&input(SOLVER), out, &[], None).unwrap(), 0);
    // omega 2, dt 0.05: the phase is ahead by (omega dt)^3/24 a step, after 200 steps 0.0083.
    let (found, exact) = (last(out, "position"), closed_form(2.0, 0.0, 10.0));
    assert!((found - exact).abs() < 200.0 * 0.1_f64.powi(3) / 24.0 * 1.01, "{found} {exact}");
    let told = summary(out);
    assert_eq!((told["solver"].as_str(), told["steps"].as_u64()), (Some("oscillator"), Some(200)));
    assert_eq!(told["checks"][0]["ok"].as_bool(), Some(true), "{told:#}");
    let stages: Vec<_> = told["stages"].as_array().unwrap().iter().map(|s| (s["name"].as_str(), s["calls"].as_u64())).collect();
    assert!(stages.contains(&(Some("kick"), Some(400))) && stages.contains(&(Some("drift"), Some(200))), "{stages:?}");
    let curve = zellige_io::csv::read(out.join("position.csv")).unwrap();
    assert_eq!((curve.columns[1].len(), curve.columns[1][200]), (201, found));
    assert!(out.join("position.png").exists() && out.join("resolved.toml").exists());
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    run::<damped::Oscillator>(&input(STAGE), &whole, &[], None).unwrap();
    let saving = ["oscillator.steps=77", "run.checkpoint_every=1000"];
    run::<damped::Oscillator>(&input(STAGE), &part, &saving, None).unwrap();
    assert_eq!(run::<damped::Oscillator>(&input(STAGE), &part, &[], Some(&part)).unwrap(), 0);
    for column in ["position", "velocity"] {
        assert_eq!(last(&whole, column).to_bits(), last(&part, column).to_bits(), "{column}");
    }
    let curve = |out: &Path| zellige_io::csv::read(out.join("position.csv")).unwrap().columns;
    assert_eq!(curve(&whole), curve(&part));
}

#[test]
fn the_stage_damps_as_the_closed_form_says() {
    let folder = tempfile::tempdir().unwrap();
    let (without, none, with) = (folder.path().join("without"), folder.path().join("none"), folder.path().join("with"));
    assert_eq!(run::<oscillator::Oscillator>(&input(SOLVER), &without, &[], None).unwrap(), 0);
    assert_eq!(run::<damped::Oscillator>(&input(STAGE), &none, &["oscillator.gamma=0.0"], None).unwrap(), 0);
    // Without damping results are bitwise identical.
    assert_eq!(last(&without, "position").to_bits(), last(&none, "position").to_bits());
    for (gamma, dt) in [(0.1, 0.05), (0.1, 0.025), (0.5, 0.05), (1.5, 0.05), (1.8, 0.4)] {
        let set = [format!("oscillator.gamma={gamma}"), format!("oscillator.dt={dt}"), format!("oscillator.steps={}", 10.0 / dt)];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        assert_eq!(run::<damped::Oscillator>(&input(STAGE), &with, &set, None).unwrap(), 0, "gamma {gamma}");
        let (found, exact) = (last(&with, "position"), closed_form(2.0, gamma, 10.0));
        let check = &summary(&with)["checks"][0];
        let (error, limit) = (check["value"].as_f64().unwrap(), check["limit"].as_f64().unwrap());
        // The check measures the error; rows have 17 digits.
        assert!((error - (found - exact).abs()).abs() < 1e-12 && error <= limit, "gamma {gamma}: {error} {limit}");
        // The stage changes far more than the bound lets pass.
        let change = (found - closed_form(2.0, 0.0, 10.0)).abs();
        assert!(change > 0.1 && limit < 0.05 * change, "gamma {gamma}: {change} {limit}");
    }
}

#[test]
fn problems_of_the_input_are_all_told() {
    let folder = tempfile::tempdir().unwrap();
    let bad = ["oscillator.omega=-1.0", "oscillator.dt=0.0", "oscillator.gamma=-0.5"];
    let problems = match run::<damped::Oscillator>(&input(STAGE), folder.path(), &bad, None) {
        Err(Error::Input { problems, .. }) => problems,
        other => panic!("{other:?}"),
    };
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn the_cases_are_timed_and_checked() {
    let device = Device::Cpu(Cpu::new(1).unwrap());
    let solvers: [&dyn Entry; 2] = [&entry::<oscillator::Oscillator>(), &entry::<damped::Oscillator>()];
    for solver in solvers {
        let result = solver.bench(&solver.cases()[0], &device, 0.0).unwrap();
        assert!(result.ok() && result.steps == 63, "{result:?}");
    }
}
