//! Ptychographic phase retrieval: object and probe from overlapping diffraction frames.

pub mod scan;
pub mod simulate;

pub use scan::Scan;
