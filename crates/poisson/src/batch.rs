//! Many right-hand sides on a GPU: those that the direct solver takes go through its kernels together.

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::cost;
use crate::direct::{Direct, SYSTEMS};
use crate::driver::{Driver, direct_verdict, shifted, verdict_before};
use crate::grid::{Grid, hierarchy};
use crate::method::{Choice, Options, Scheme};
use crate::operator;
use crate::problem::Problem;
use crate::solve::{Report, Solution, solve_with};
use crate::status::{Judge, Status};

/// Share of the free memory that a batch may take.
const SHARE: f64 = 0.8;

/// Solves all problems in order. Neighbours of one grid that the direct solver takes are solved together, as many as
/// the memory holds; the cycles of multigrid and plain relaxation end at a residual of their own, so such problems follow
/// one another.
pub(crate) fn solve_on_gpu(problems: &[Problem<'_>], options: &Options, device: &Device, cuda: &Cuda) -> Result<Vec<Solution>> {
    let (mut driver, mut plan) = (None::<Driver>, None::<Direct>);
    let mut solutions = Vec::with_capacity(problems.len());
    while let Some(first) = problems.get(solutions.len()) {
        let rest = &problems[solutions.len()..];
        let grid = first.grid();
        let choice = options.choose_on(&grid, device, first.guess.is_some())?;
        let alike = |p: &&Problem<'_>| p.grid() == grid && p.guess.is_some() == first.guess.is_some();
        let together = match choice.scheme {
            Scheme::Direct if !choice.truncation => rest.iter().take_while(alike).count(),
            _ => 1,
        };
        if together == 1 {
            plan = None;
            solutions.push(solve_with(&mut driver, first, options, device, &mut Profiler::off())?);
            continue;
        }
        driver = None;
        let fitting = |d: &Direct| d.grid() == &grid && d.precision_bytes() == choice.precision.outer_bytes() && d.systems() <= together;
        if !plan.as_ref().is_some_and(fitting) {
            // The old buffers go first, or both would have to fit.
            plan = None;
        }
        let direct = match &mut plan {
            Some(direct) => direct,
            None => {
                let each = cost::memory(&hierarchy(&grid, 0), choice.scheme, choice.precision, true) as f64;
                let room = cuda.memory_free().map_or(together, |free| (SHARE * free as f64 / each) as usize);
                plan.insert(Direct::batch(&grid, together.min(room).clamp(1, SYSTEMS), choice.precision, device)?)
            }
        };
        let count = direct.systems();
        solutions.extend(solve_together(&rest[..count], &grid, &choice, direct)?);
    }
    Ok(solutions)
}

/// As many problems as the plan has systems, step by step as [`Driver`] takes them one by one.
fn solve_together(problems: &[Problem<'_>], grid: &Grid, choice: &Choice, direct: &mut Direct) -> Result<Vec<Solution>> {
    let norm_a = operator::norm_bound(grid);
    let mut off = Profiler::off();
    let (mut runs, mut loaded) = (Vec::with_capacity(problems.len()), Vec::with_capacity(problems.len()));
    for (n, problem) in problems.iter().enumerate() {
        let folded = problem.clone().fold()?;
        direct.load_system(n, &folded.u, &folded.f)?;
        let judge = Judge::new(choice.criteria, choice.pace, choice.precision.eps(), norm_a, folded.reference);
        runs.push((judge, None::<Status>, folded.imbalance, folded.mean));
        loaded.push(folded.u);
    }
    let guesses = if choice.warm { Some(direct.norms(&mut off)?) } else { None };
    for (n, (judge, status, ..)) in runs.iter_mut().enumerate() {
        *status = match &guesses {
            Some(norms) => judge.push(norms[n]),
            None => verdict_before(judge),
        };
    }
    // What needs no solving keeps what was loaded.
    let before: Vec<_> = runs.iter().zip(loaded).map(|((_, status, ..), u)| status.map(|_| u)).collect();
    if runs.iter().any(|(_, status, ..)| status.is_none()) {
        let mut norms = direct.solve_measured(&mut off)?;
        loop {
            for ((judge, status, ..), norms) in runs.iter_mut().zip(&norms).filter(|((_, status, ..), _)| status.is_none()) {
                *status = direct_verdict(judge, *norms);
            }
            let active: Vec<_> = runs.iter().map(|(_, status, ..)| status.is_none()).collect();
            if !active.contains(&true) {
                break;
            }
            norms = direct.polish(&active, &mut off)?;
        }
    }
    let memory = direct.memory();
    let mut solutions = Vec::with_capacity(problems.len());
    for (n, ((judge, status, imbalance, mean), before)) in runs.into_iter().zip(before).enumerate() {
        let u = match before {
            Some(u) => u,
            None => direct.solution_of(n)?,
        };
        let Some(status) = status else { continue };
        let report = Report::new(&judge, choice, status, imbalance, None, 1, memory);
        solutions.push(Solution { u: shifted(grid, u, mean), report });
    }
    Ok(solutions)
}
