//! What the plan says: forecasts, resolution, relaxation, keys without effect.

pub mod forecast;
pub(crate) mod relaxation;
mod shocked;
mod unused;
