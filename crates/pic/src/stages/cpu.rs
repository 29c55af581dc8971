//! The stages on the processor.
