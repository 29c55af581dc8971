//! Parts of the plan: forecasts, resolution, relaxation, keys without effect.

pub mod forecast;
pub(crate) mod relaxation;
mod shocked;
mod unused;
