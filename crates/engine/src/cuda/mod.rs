//! NVIDIA GPUs through the driver, loaded at run time: nothing of CUDA is needed to build, and the same binary runs
//! where there is no GPU.
//!
//! * [`Cuda`]: a device with one stream; all work goes there in order, and nothing waits that does not say so.
//! * [`Buffer`], [`Pool`], [`Mapped`]: memory, with explicit copies.
//! * [`Recipe`], [`Program`], [`Kernel`], [`Launch`]: kernels from CUDA C++ sources, compiled by NVRTC for the device at
//!   hand and kept on disk, or taken from a pack that was made elsewhere.
//! * [`Stream`], [`Pinned`]: copies beside the kernels; [`Downloads`]: those to the host, for whoever waits for them.
//! * [`Graph`]: launches recorded once and replayed; [`RepeatedLaunches`]: the same of launches that come again by themselves.
//!   [`Event`]: marks in the stream.
//! * [`library`]: where driver, NVRTC, cuFFT and NCCL were found, or why not.
//!
//! ```no_run
//! use zellige_engine::cuda::{Cuda, Program};
//! # fn main() -> zellige_engine::error::Result<()> {
//! let cuda = Cuda::open(0)?;
//! let source = r#"extern "C" __global__ void scale(float* x, float a, u64 n) {
//!     u64 i = thread_index();
//!     if (i < n) x[i] *= a;
//! }"#;
//! let program = Program::compile(&cuda, "example", &[source], &[], &["scale"])?;
//! let mut x = cuda.buffer_from(&[1.0f32, 2.0, 3.0], "example")?;
//! // SAFETY: (float*, float, u64) are what `scale` declares, and it stays below n.
//! unsafe { program.kernel("scale")?.launch(1, 32).arg(&mut x).arg(2.0f32).arg(3u64).run()? };
//! assert_eq!(cuda.download(&x)?, [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```

mod cache;
mod compiling;
mod context;
mod downloads;
mod event;
mod graph;
mod include;
mod known;
mod launch;
mod layout;
pub mod library;
mod memory;
pub(crate) mod nccl;
mod nvrtc;
mod pack;
mod parts;
mod program;
mod repeated;
mod stream;
#[cfg(test)]
mod tests;

pub use compiling::end_if_compiling;
pub(crate) use compiling::hold_the_end;
pub use context::{Cuda, Properties};
pub use downloads::{Coming, Downloads};
pub use event::Event;
pub use graph::Graph;
pub(crate) use graph::no_captures;
pub use include::Files;
pub use launch::{Argument, Extent, Kernel, Launch};
pub use layout::{put, with_numbers};
pub(crate) use memory::Memory;
pub use memory::{Address, Behind, Buffer, BufferOf, Mapped, Pool};
pub use nvrtc::{Cubin, Image, compiler};
pub use pack::{kernel_pack, write_pack};
pub use program::{PRELUDE, Program, Recipe, cache_folder, compilations, compile_only, prepare};
pub use repeated::RepeatedLaunches;
pub use stream::{Pinned, Stream};
