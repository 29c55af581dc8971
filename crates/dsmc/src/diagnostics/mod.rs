//! Quantities derived from averages, and the accounts that a run has to keep.

pub(crate) mod audit;
pub(crate) mod local;
pub(crate) mod patches;
pub mod surfaces;
