//! Start of a run: the gas, sources that bring more, inputs of the older form.

pub mod loading;
pub mod seed;
pub mod source;
