//! Stopping criteria, and the status of a solve at its end.
//!
//! With `r = f - A u`, a step ends the solve when `||r|| <= max(relative * ||f - A u_b||, absolute)`. Rounding `u` alone
//! makes a residual of about `eps ||A|| ||u||`, so no method gets far below it. The normwise backward error
//! `eta = ||r|| / (||A|| ||u|| + ||f||)` tells how near that is: at `eta <= 4 eps` the solution is as good as the
//! precision allows (Rigal and Gaches, J. ACM 14 (1967) 543).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fold::Reference;
use crate::stages::Norms;

/// The norm that the criteria are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// Root mean square weighted by control volumes.
    #[default]
    L2,
    /// Largest magnitude.
    Max,
}

impl Norm {
    /// Picks this norm of a residual.
    pub fn of(self, norms: Norms) -> f64 {
        if self == Self::L2 { norms.l2 } else { norms.max }
    }

    /// Picks this norm of the reference.
    pub fn reference(self, reference: Reference) -> f64 {
        if self == Self::L2 { reference.l2 } else { reference.max }
    }
}

/// Outcome of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tolerance was met.
    Converged,
    /// The residual is at the rounding error of the precision: the solution is as good as it gets.
    PrecisionFloor,
    /// The residual no longer falls, above the floor.
    Stagnated,
    /// The residual grew or is not finite.
    Diverged,
    /// The limit of cycles came first.
    MaxCycles,
}

impl Status {
    /// The word in the summary.
    pub fn word(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::PrecisionFloor => "precision_floor",
            Self::Stagnated => "stagnated",
            Self::Diverged => "diverged",
            Self::MaxCycles => "max_cycles",
        }
    }
}

/// Stopping criteria.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criteria {
    /// Residual relative to the reference norm.
    pub relative: f64,
    /// Residual itself; 0 leaves it out.
    pub absolute: f64,
    /// The norm of both.
    pub norm: Norm,
    /// Plain relaxation, which leaves the smooth part of the error for last: the least eigenvalue of `-A`, under which a residual
    /// may stand for an error of `relative` times the solution and no more. 0 for other methods.
    pub lowest: f64,
    /// Largest number of steps (cycles, or blocks of sweeps).
    pub max_steps: usize,
}

/// Expected speed of convergence of the method, which tells slow from stuck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedConvergence {
    /// Steps over which the residual must fall by more than 30 %.
    pub window: usize,
    /// Steps at the start that are not judged: optimal over-relaxation first lets the residual grow.
    pub patience: usize,
    /// A step with a larger factor than this at the floor ends the solve at once.
    pub slow: f64,
    /// Growth over the larger of the first residual and the reference that means divergence.
    pub growth: f64,
}

impl ExpectedConvergence {
    /// Multigrid cycles.
    pub fn cycles() -> Self {
        Self { window: 3, patience: 0, slow: 0.5, growth: 1e3 }
    }

    /// Steps of plain relaxation that are expected to reduce the residual by `factor` each.
    pub fn sweeps(factor: f64) -> Self {
        let window = (1.0 / -factor.clamp(1e-3, 1.0 - 1e-9).ln()).ceil().clamp(3.0, 1e9) as usize;
        Self { window, patience: 3 * window, slow: f64::INFINITY, growth: 1e6 }
    }

    /// Chebyshev polynomials of `pieces` steps each: each falls by as much as the first, until rounding is reached.
    pub fn polynomials(pieces: u32) -> Self {
        let whole = Self { growth: 1e6, ..Self::cycles() };
        // Pieces differ among each other.
        if pieces > 1 { Self { window: 3 * pieces as usize, slow: f64::INFINITY, ..whole } } else { whole }
    }
}

/// Relative reduction over [`ExpectedConvergence::window`] below which a solve stands still.
const STANDSTILL: f64 = 0.7;
/// Multiples of eps in the backward error that count as the floor.
const FLOOR: f64 = 4.0;

/// Follows the residual and says when it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvergenceMonitor {
    criteria: Criteria,
    expected: ExpectedConvergence,
    eps: f64,
    norm_a: f64,
    reference: Reference,
    history: Vec<f64>,
    last: Norms,
}

impl ConvergenceMonitor {
    /// A judge for rounding unit `eps`, an operator of norm `norm_a` and a problem of norm `reference`.
    pub fn new(criteria: Criteria, expected: ExpectedConvergence, eps: f64, norm_a: f64, reference: Reference) -> Self {
        Self { criteria, expected, eps, norm_a, reference, history: Vec::new(), last: Norms::default() }
    }

    /// Stopping criteria.
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// Takes the residual's norms after a step (the first time: before any) and gives the verdict, if there is one.
    pub fn push(&mut self, norms: Norms) -> Option<Status> {
        let residual = self.criteria.norm.of(norms);
        self.last = norms;
        self.history.push(residual);
        let step = self.history.len() - 1;
        let reference = self.reference();
        if !(residual.is_finite() && norms.u_l2.is_finite()) {
            return Some(Status::Diverged);
        }
        if residual <= (self.relative_goal() * reference).max(self.criteria.absolute) {
            return Some(Status::Converged);
        }
        if step == 0 {
            return (self.criteria.max_steps == 0).then_some(Status::MaxCycles);
        }
        if residual > self.expected.growth * self.history[0].max(reference) {
            return Some(Status::Diverged);
        }
        let at_floor = self.at_floor();
        if at_floor && residual > self.expected.slow * self.history[step - 1] {
            return Some(Status::PrecisionFloor);
        }
        if step >= self.expected.window + self.expected.patience {
            let before = self.history[step - self.expected.window];
            if residual > STANDSTILL * before {
                let growing = residual > 2.0 * before;
                return Some(if at_floor {
                    Status::PrecisionFloor
                } else if growing {
                    Status::Diverged
                } else {
                    Status::Stagnated
                });
            }
        }
        (step >= self.criteria.max_steps).then_some(Status::MaxCycles)
    }

    /// Takes the last step's norms again, from a residual that was made afresh, and gives the verdict anew.
    pub fn push_again(&mut self, norms: Norms) -> Option<Status> {
        self.history.pop();
        self.push(norms)
    }

    /// Residual in the norm of the criteria, before the first step and after each.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Goes back to a saved history.
    pub fn restore(&mut self, history: Vec<f64>, last: Norms) {
        self.history = history;
        self.last = last;
    }

    /// The last residual in the norm of the criteria; 0 before any.
    pub fn last(&self) -> f64 {
        self.history.last().copied().unwrap_or(0.0)
    }

    /// The last norms.
    pub fn norms(&self) -> Norms {
        self.last
    }

    /// The last residual over the reference; the residual itself where the reference is zero.
    pub fn relative(&self) -> f64 {
        let (reference, residual) = (self.reference(), self.criteria.norm.of(self.last));
        if reference > 0.0 { residual / reference } else { residual }
    }

    /// Both norms of the reference.
    pub fn reference_norms(&self) -> Reference {
        self.reference
    }

    /// The reference in the norm of the criteria. Where it is zero, so is the solution, and the first residual replaces it.
    pub fn reference(&self) -> f64 {
        let reference = self.criteria.norm.reference(self.reference);
        if reference > 0.0 { reference } else { self.history.first().copied().unwrap_or(0.0) }
    }

    /// The tolerance, or what plain relaxation has to come down to for a smooth error of that share of the last solution.
    fn relative_goal(&self) -> f64 {
        let Criteria { relative, lowest, .. } = self.criteria;
        if lowest > 0.0 && self.reference.l2 > 0.0 { relative * (lowest * self.last.u_l2 / self.reference.l2).min(1.0) } else { relative }
    }

    /// Goal of the relative residual.
    pub fn goal(&self) -> f64 {
        let reference = self.reference();
        if reference > 0.0 { self.relative_goal().max(self.criteria.absolute / reference) } else { self.criteria.absolute }
    }

    /// The last step's factor.
    pub fn rate(&self) -> Option<f64> {
        let [.., before, after] = self.history[..] else { return None };
        (before > 0.0).then(|| after / before)
    }

    /// Normwise backward error of the last solution.
    pub fn backward_error(&self) -> f64 {
        let scale = self.norm_a * self.last.u_l2 + self.reference.l2;
        if scale > 0.0 { self.last.l2 / scale } else { 0.0 }
    }

    /// Returns true if the residual is rounding.
    pub(crate) fn at_floor(&self) -> bool {
        self.backward_error() <= FLOOR * self.eps
    }

    /// The relative residual at which rounding takes over, from the size of the last solution. Measured constant: 0.2
    /// (single-precision V-cycles at 256, 1024 and 2048 intervals).
    pub fn floor(&self) -> f64 {
        let floor = 0.2 * self.eps * (self.norm_a * self.last.u_l2 + self.reference.l2);
        let reference = if self.reference.l2 > 0.0 { self.reference.l2 } else { self.reference() };
        if reference > 0.0 { floor / reference } else { floor }
    }

    /// Share of the way to the goal, in decades.
    pub fn progress(&self) -> f64 {
        let (Some(first), goal) = (self.history.first(), self.goal() * if self.reference() > 0.0 { self.reference() } else { 1.0 }) else {
            return 0.0;
        };
        let now = self.criteria.norm.of(self.last);
        let decades = if *first > 0.0 && goal > 0.0 { (first / now.max(goal)).ln() / (first / goal).ln() } else { 0.0 };
        let steps = (self.history.len() - 1) as f64 / self.criteria.max_steps.max(1) as f64;
        if decades.is_finite() { decades.max(steps).clamp(0.0, 1.0) } else { steps.clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor(relative: f64, eps: f64) -> ConvergenceMonitor {
        let criteria = Criteria { relative, absolute: 0.0, norm: Norm::L2, lowest: 0.0, max_steps: 20 };
        ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), eps, 1e6, Reference { l2: 1.0, max: 2.0 })
    }

    /// Feeds residuals with `||u|| = 1` until a verdict.
    fn run(monitor: &mut ConvergenceMonitor, residuals: impl IntoIterator<Item = f64>) -> (Option<Status>, usize) {
        for (n, l2) in residuals.into_iter().enumerate() {
            let verdict = monitor.push(Norms { l2, max: 2.0 * l2, u_l2: 1.0 });
            if verdict.is_some() {
                return (verdict, n);
            }
        }
        (None, usize::MAX)
    }

    fn powers(factor: f64) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(1.0), move |r| Some(r * factor)).take(100)
    }

    /// `||r|| / (||A|| ||u|| + ||f||)`, here over `2 * 3 + 4`; four rounding units of it are the floor.
    #[test]
    fn the_backward_error_is_its_definition() {
        let criteria = Criteria { relative: 1e-9, absolute: 0.0, norm: Norm::L2, lowest: 0.0, max_steps: 20 };
        let mut monitor = ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), 1e-3, 2.0, Reference { l2: 4.0, max: 5.0 });
        for (l2, floor) in [(0.05, false), (0.041, false), (0.039, true)] {
            monitor.push(Norms { l2, max: 2.0 * l2, u_l2: 3.0 });
            assert!((monitor.backward_error() - l2 / 10.0).abs() < 1e-15, "{l2}: {}", monitor.backward_error());
            assert_eq!(monitor.at_floor(), floor, "{l2}");
        }
    }

    #[test]
    fn a_falling_residual_converges_where_the_tolerance_is_met() {
        assert_eq!(run(&mut monitor(1e-6, 1e-16), powers(0.05)), (Some(Status::Converged), 5));
        assert_eq!(run(&mut monitor(1e-6, 1e-16), [1e-7]), (Some(Status::Converged), 0));
    }

    #[test]
    fn the_absolute_tolerance_and_the_norm_count() {
        let mut monitor = monitor(1e-6, 1e-16);
        monitor.criteria.absolute = 1.5e-2;
        assert_eq!(run(&mut monitor.clone(), powers(0.1)), (Some(Status::Converged), 2));
        monitor.criteria.norm = Norm::Max;
        assert_eq!(run(&mut monitor, powers(0.1)), (Some(Status::Converged), 3));
    }

    #[test]
    fn a_right_hand_side_of_zero_is_judged_by_the_first_residual() {
        let criteria = Criteria { relative: 1e-3, absolute: 0.0, norm: Norm::L2, lowest: 0.0, max_steps: 20 };
        let mut monitor = ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), 1e-16, 1e6, Reference::default());
        assert_eq!(run(&mut monitor, powers(0.05).map(|r| 7.0 * r)), (Some(Status::Converged), 3));
        assert_eq!((monitor.reference(), monitor.goal()), (7.0, 1e-3));
        let mut monitor = ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), 1e-16, 1e6, Reference::default());
        assert_eq!(run(&mut monitor, [0.0]), (Some(Status::Converged), 0));
    }

    #[test]
    fn relaxation_goes_on_while_the_residual_may_stand_for_a_large_error() {
        // A solution of norm 1 under a least eigenvalue of 20 beside a reference of 1e3: an error of 1e-3 leaves 0.02.
        let criteria = Criteria { relative: 1e-3, absolute: 0.0, norm: Norm::L2, lowest: 20.0, max_steps: 20 };
        let mut monitor = ConvergenceMonitor::new(criteria, ExpectedConvergence::cycles(), 1e-16, 1e6, Reference { l2: 1e3, max: 1e3 });
        assert_eq!(run(&mut monitor, powers(0.1).map(|r| 900.0 * r)), (Some(Status::Converged), 5));
        assert_eq!(monitor.goal(), 1e-3 * 0.02);
    }

    #[test]
    fn rounding_ends_in_the_floor_and_not_in_stagnation() {
        // eta = r / (1e6 * 1 + 1): at most 4e-7 means r <= 0.4.
        let stall = [1.0, 0.3, 0.01, 0.009];
        assert_eq!(run(&mut monitor(1e-6, 1e-7), stall), (Some(Status::PrecisionFloor), 3));
        // Ten times the floor of 4e-3.
        let above = [1.0, 0.3, 0.04, 0.039, 0.038, 0.037];
        assert_eq!(run(&mut monitor(1e-6, 1e-9), above), (Some(Status::Stagnated), 5));
        let (verdict, step) = run(&mut monitor(1e-6, 1e-16), powers(0.95));
        assert_eq!((verdict, step), (Some(Status::Stagnated), 3));
    }

    #[test]
    fn a_residual_made_afresh_takes_back_a_verdict() {
        let mut monitor = monitor(1e-6, 1e-16);
        let norms = |l2: f64| Norms { l2, max: l2, u_l2: 1.0 };
        assert_eq!([1.0, 1e-3].map(|l2| monitor.push(norms(l2))), [None, None]);
        assert_eq!(monitor.push(norms(9e-7)), Some(Status::Converged));
        assert_eq!(monitor.push_again(norms(2e-6)), None);
        assert_eq!(monitor.history(), [1.0, 1e-3, 2e-6]);
        assert_eq!(monitor.norms().l2, 2e-6);
    }

    #[test]
    fn growth_nan_and_the_limit_have_their_words() {
        assert_eq!(run(&mut monitor(1e-6, 1e-16), powers(1.5)), (Some(Status::Diverged), 3));
        assert_eq!(run(&mut monitor(1e-6, 1e-16), [1.0, 2e3]), (Some(Status::Diverged), 1));
        assert_eq!(run(&mut monitor(1e-6, 1e-16), [1.0, f64::NAN]), (Some(Status::Diverged), 1));
        assert_eq!(run(&mut monitor(1e-30, 1e-40), powers(0.5)), (Some(Status::MaxCycles), 20));
    }

    #[test]
    fn over_relaxation_may_grow_at_first() {
        let expected = ExpectedConvergence::sweeps(0.9);
        let criteria = Criteria { relative: 1e-3, absolute: 0.0, norm: Norm::L2, lowest: 0.0, max_steps: 1000 };
        let mut monitor = ConvergenceMonitor::new(criteria, expected, 1e-16, 1e6, Reference { l2: 1.0, max: 1.0 });
        // k q^k: the Jordan block of optimal over-relaxation.
        let residuals = std::iter::once(1.0).chain((1..500).map(|k| (1.0 + k as f64) * 0.9_f64.powi(k)));
        assert_eq!(run(&mut monitor, residuals).0, Some(Status::Converged));
    }
}
