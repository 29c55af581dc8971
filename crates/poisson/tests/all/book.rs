//! Statements of the pages, checked against the program: their examples run, their keys are those of the input.

use std::collections::BTreeSet;

use serde_json::Value;
use zellige_engine::error::Result;
use zellige_poisson::Solution;
use zellige_poisson::solver::Poisson;
use zellige_poisson::status::Status;

const LIBRARY: &str = include_str!("../../../../docs/guide/library.md");
const README: &str = include_str!("../../README.md");

/// Example of the book.
fn of_the_book() -> Result<Solution> {
    use zellige_engine::device::{Cpu, Device};
    use zellige_poisson::{Options, Problem, Side, solve};

    let device = Device::Cpu(Cpu::new(0)?);
    let rho = vec![1.0; 129 * 65];
    let problem = Problem::plane([129, 65], [2.0, 1.0], &rho[..]) // zero on all sides unless said otherwise
        .sides(0, Side::dirichlet(0.0), Side::neumann(0.0)); // axis 0 is x: its lower and its upper side
    let solution = solve(&problem, &Options::default(), &device)?;
    println!("{:?}: {}", solution.report.status, solution.u[129 * 32 + 64]);
    Ok(solution)
}

/// Example of the book for many right-hand sides.
fn of_the_book_many() -> Result<Vec<f64>> {
    use zellige_engine::device::{Cpu, Device};
    use zellige_poisson::{Options, Plan, Problem, Side};

    let shape = Problem::plane([129, 65], [2.0, 1.0], vec![]).sides(0, Side::dirichlet(0.0), Side::neumann(0.0)); // without a right-hand side
    let mut plan = Plan::new(&shape, &Options::default(), &Device::Cpu(Cpu::new(1)?))?;
    let mut u = vec![0.0; 129 * 65];
    for step in 1..=3 {
        let rho = vec![f64::from(step); 129 * 65];
        let report = plan.solve_into(&rho, &mut u)?; // nothing is allocated
        println!("{:?}: {}", report.status, u[129 * 32 + 64]);
    }
    Ok(u)
}

/// Example of the crate's page.
fn of_the_readme() -> Result<Solution> {
    use zellige_engine::device::{Cpu, Device};
    use zellige_poisson::{Options, Problem, Side, solve};

    let rhs = vec![1.0; 257 * 129];
    let problem = Problem::plane([257, 129], [2.0, 1.0], &rhs[..]).sides(0, Side::periodic(), Side::periodic());
    let solution = solve(&problem, &Options::default(), &Device::Cpu(Cpu::new(0)?))?;
    println!("{:?}, relative residual {:.1e}", solution.report.status, solution.report.relative_residual);
    Ok(solution)
}

/// Code without comments and spaces.
fn bare(code: &str) -> String {
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).flat_map(|line| line.split_whitespace()).collect()
}

#[test]
fn the_examples_of_the_pages_are_those_that_run() {
    let here = bare(include_str!("book.rs"));
    for page in [LIBRARY, README] {
        let examples: Vec<_> = page.split("```rust\n").skip(1).filter_map(|t| t.split("```").next()).collect();
        assert!(!examples.is_empty(), "a page has its example");
        for code in examples {
            assert!(here.contains(&bare(code)), "this is not the code that runs:\n{code}");
        }
    }
    let book = of_the_book().unwrap();
    // The five-point formula at the node that the page prints, with u = 0 on three sides.
    let (u, h) = (|i: usize, j: usize| book.u[129 * j + i], 2.0 / 128.0);
    let laplacian = (u(63, 32) + u(65, 32) + u(64, 31) + u(64, 33) - 4.0 * u(64, 32)) / (h * h);
    // The tolerance of the default options.
    assert!((laplacian - 1.0).abs() < 1e-6, "{laplacian}");
    // Three times the right-hand side.
    let many = of_the_book_many().unwrap();
    let off = many.iter().zip(&book.u).fold(0.0_f64, |off, (three, one)| off.max((three - 3.0 * one).abs()));
    assert!(off < 1e-12, "{off}");
    let readme = of_the_readme().unwrap();
    assert_eq!([book.report.status, readme.report.status], [Status::Converged; 2]);
    // Nothing depends on x there: u = y (y - 1) / 2, which the formula has without error, and the direct solver, which is taken here, to rounding.
    assert!((readme.u[257 * 64 + 7] + 0.125).abs() < 1e-9, "{}", readme.u[257 * 64 + 7]);
}

/// Names of all properties of a schema.
fn properties(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(own)) = map.get("properties") {
                into.extend(own.keys().cloned());
            }
            map.values().for_each(|v| properties(v, into));
        }
        Value::Array(list) => list.iter().for_each(|v| properties(v, into)),
        _ => {}
    }
}

/// The words in code of the first cells of the table that begins with `head`.
fn keys(page: &str, head: &str) -> BTreeSet<String> {
    let table = page.split(head).nth(1).unwrap_or_else(|| panic!("the page has no table `{head}`"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.split('|').nth(1)).flat_map(|cell| cell.split('`').skip(1).step_by(2));
    cells.flat_map(|span| span.split('.')).map(str::to_owned).collect()
}

#[test]
fn the_page_of_the_crate_names_the_keys_that_there_are() {
    let mut known = BTreeSet::new();
    let schema = zellige_engine::config::schema::<Poisson>();
    properties(&schema["$defs"], &mut known);
    let own: BTreeSet<String> = schema["$defs"]["Config"]["properties"].as_object().expect("the table").keys().cloned().collect();
    let readme = keys(README, "| key | default | meaning |");
    let unknown: Vec<_> = readme.difference(&known).collect();
    assert!(unknown.is_empty() && readme.len() > 10, "the schema has no {unknown:?} of {readme:?}");
    let untold: Vec<_> = own.difference(&readme).collect();
    assert!(untold.is_empty(), "the page of the crate does not tell of {untold:?}");
}
