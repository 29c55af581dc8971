//! Checkpoints.

/// Writes named sections.
#[derive(Debug)]
pub struct Writer;

/// Reads named sections.
#[derive(Debug)]
pub struct Reader;
