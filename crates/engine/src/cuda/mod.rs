//! NVIDIA GPUs through the driver, loaded at run time.

/// One GPU: its context and the stream all work goes to.
#[derive(Debug, Clone)]
pub struct Cuda;
