//! The gas at the start, gas that sources bring, and inputs of the older form.

pub mod loading;
pub mod seed;
pub mod source;
