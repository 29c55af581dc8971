//! Poisson's equation `u_xx + u_yy (+ u_zz) = rho` on regular grids in the plane and in space, by multigrid, by plain
//! relaxation, and directly.
//!
//! [`solve()`] is the entry point of a program, [`Plan`] for many right-hand sides; [`Poisson`] is the solver that the run loop
//! drives. The pages in the order of a solve:
//!
//! | page | what |
//! |---|---|
//! | [`config`] | the input table as typed, and its checks |
//! | [`setup`] | conversion of the input to arrays |
//! | [`solver`], `batch` | one problem and a stack of right-hand sides as the run loop sees them; what is solved together |
//! | [`problem`], [`fold`] | the problem as physics states it, folded into `A u = f` |
//! | [`method`], [`spectrum`] | the choice of the method, and the numbers behind it |
//! | [`driver`] | a system on a device, one step at a time |
//! | [`step`], [`smoothing`] | the cycles and how much each level is smoothed, written once against [`stages`], which `cpu` and `cuda` implement |
//! | [`direct`] | transforms along the axes |
//! | [`status`], [`truncation`] | stopping criteria and status, the truncation error |
//! | [`operator`] | the definition in double precision that checks go back to |
//! | [`estimate`] | the cost of the methods: the automatic choice |
//! | [`output`], [`cost`], [`mod@bench`] | records, the traffic model, the benchmark cases |

mod batch;
pub mod bench;
pub mod config;
pub mod cost;
pub mod direct;
pub mod driver;
pub mod estimate;
pub mod fold;
pub mod grid;
mod isa;
pub mod method;
mod on_gpu;
pub mod operator;
pub mod output;
pub mod physics;
pub mod plan;
pub mod problem;
pub mod setup;
pub mod smoothing;
pub mod solve;
pub mod solver;
pub mod spectrum;
pub mod stages;
pub mod status;
pub mod step;
pub mod truncation;

pub use config::Config;
pub use method::{Method, Options, Relaxation, Tolerance};
pub use plan::Plan;
pub use problem::{Precision, Problem, Side, SideValues};
pub use solve::{Report, Solution, solve, solve_batch};
pub use solver::Poisson;
pub use status::{Norm, Status};
