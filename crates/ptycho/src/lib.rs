//! Ptychographic phase retrieval: object and probe from overlapping diffraction frames.

pub mod scan;

pub use scan::Scan;
