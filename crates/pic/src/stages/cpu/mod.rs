//! The stages on the processor.

pub mod fields;
