use zellige_engine::device::Cpu;
use zellige_engine::links::inside;

use super::*;
use crate::method::{Method, Options};
use crate::problem::Problem;
use crate::status::{Criteria, ExpectedConvergence, Norm};

#[test]
fn cycles_follow_a_direct_solution_that_missed_its_goal_and_say_so() {
    let (n, off) = (65, &mut Profiler::off());
    let problem = Problem::plane([n, n], [1.0, 1.0], (0..n * n).map(|k| f64::from(k as u32 % 17) - 8.0).collect::<Vec<_>>());
    let device = Device::Cpu(Cpu::new(1).unwrap());
    let choose = |options: Options| options.choose(&problem.grid(), false, false).unwrap();
    let mut driver = Driver::new(&problem.grid(), choose(Options::default()), &device).unwrap();
    driver.load(problem.clone().fold().unwrap()).unwrap();
    assert_eq!((driver.run(off).unwrap(), driver.choice().scheme, driver.missed()), (Status::Converged, Scheme::Direct, false));
    let right = driver.solution().unwrap();
    for status in [Status::Stagnated, Status::Diverged, Status::MaxCycles] {
        let mut driver = Driver::new(&problem.grid(), choose(Options::default()), &device).unwrap();
        // Half of the right-hand side: the solution is wrong by as much.
        let mut folded = problem.clone().fold().unwrap();
        folded.f.to_mut().iter_mut().for_each(|f| *f *= 0.5);
        driver.load(folded).unwrap();
        driver.run(off).unwrap();
        driver.status = Some(status);
        assert!(driver.missed());
        driver.fall_back(problem.clone().fold().unwrap()).unwrap();
        assert_eq!(driver.run(off).unwrap(), Status::Converged);
        assert!(
            driver.steps() > 2 && driver.choice().description.contains("after the direct solver left"),
            "{}",
            driver.choice().description
        );
        let largest = right.iter().fold(0.0_f64, |m, u| m.max(u.abs()));
        let apart = driver.solution().unwrap().iter().zip(&right).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(apart < 1e-5 * largest, "{apart} of {largest}");
    }
    // A limit or a method of the user's own stays.
    let missed = |options| choose(options).missed(Status::MaxCycles);
    assert!(missed(Options::default()) && !missed(Options { max_cycles: Some(1), ..Options::default() }));
    assert!(!missed(Options { method: Method::Direct, ..Options::default() }));
}

#[test]
fn cycles_that_follow_in_parts_are_those_of_one() {
    let (m, n) = (129, 257);
    let problem = Problem::plane([m, n], [1.0, 2.0], (0..m * n).map(|k| f64::from(k as u32 % 17) - 8.0).collect::<Vec<_>>());
    let choice = Options::default().choose(&problem.grid(), false, false).unwrap();
    let solve = |links: Links| {
        let (device, off) = (Device::Cpu(Cpu::new(1)?), &mut Profiler::off());
        let mut driver = Driver::of_part(&problem.grid(), choice.clone(), &device, &links)?;
        let share = driver.share().clone();
        assert_eq!(share.divided(), !links.is_alone());
        let mut folded = problem.clone().fold_in(&share)?;
        folded.f.to_mut().iter_mut().for_each(|f| *f *= 0.5);
        driver.load(folded)?;
        driver.run(off)?;
        driver.status = Some(Status::Stagnated);
        driver.fall_back(problem.clone().fold_in(&share)?)?;
        assert_eq!(driver.share().own(n), share.own(n), "the problem is there on the slabs of the direct solver");
        driver.run(off)?;
        let u = driver.solution()?;
        Ok((driver.steps(), driver.monitor().history().to_vec(), share.at_first(u)?))
    };
    let one = inside::run(1, solve).unwrap().remove(0);
    assert!(one.0 > 2);
    for parts in [2, 3] {
        assert!(inside::run(parts, solve).unwrap().remove(0) == one, "{parts} parts");
    }
}

/// The last verdict on residuals of a solution of norm 1 under an operator of norm 1e6: the floor is at 4e-10.
fn direct(residuals: &[f64], max_steps: usize) -> Option<Status> {
    let criteria = Criteria { relative: 1e-13, absolute: 0.0, norm: Norm::L2, lowest: 0.0, max_steps };
    let mut monitor = ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), 1e-16, 1e6, Reference { l2: 1.0, max: 1.0 });
    monitor.push(Norms { l2: 1.0, max: 1.0, u_l2: 0.0 });
    residuals.iter().fold(None, |_, l2| direct_verdict(&mut monitor, Norms { l2: *l2, max: *l2, u_l2: 1.0 }))
}

#[test]
fn a_direct_solution_is_at_the_floor_only_where_its_residual_is_rounding() {
    assert_eq!(direct(&[1e-9, 2e-10], 6), None);
    assert_eq!(direct(&[1e-9, 2e-10, 1.5e-10], 6), Some(Status::PrecisionFloor));
    assert_eq!(direct(&[1e-5, 0.9e-5], 6), Some(Status::Stagnated));
    assert_eq!(direct(&[1e-5, 3e-6, 1e-6, 0.8e-6], 4), Some(Status::Stagnated));
    assert_eq!([1, 2].map(|limit| direct(&[1e-5, 1e-6][..limit], limit)), [Some(Status::MaxCycles); 2]);
    assert_eq!(direct(&[1e-9], 1), Some(Status::MaxCycles));
    assert_eq!(direct(&[1e-9, 1e-14], 2), Some(Status::Converged));
}
