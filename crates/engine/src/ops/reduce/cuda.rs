//! Reduction on a GPU.

use super::Op;
use crate::cuda::{Address, Buffer, Cuda, Mapped, Program, Recipe};
use crate::error::Result;
use crate::ops::{Number, Total};

const THREADS: u32 = 256;
/// Blocks at most: enough to fill any device, the same on all of them, so that sums are.
const BLOCKS: u32 = 2048;

/// The program of all reductions.
pub fn recipe() -> Recipe {
    let mut kernels = Vec::new();
    for op in Op::ALL {
        kernels.extend([blocks::<f32>(op), blocks::<f64>(op), blocks::<u32>(op), blocks::<u64>(op), rest::<f64>(op), rest::<u64>(op)]);
    }
    let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
    Recipe::new("reduce", &[include_str!("reduce.cu")], &[("THREADS".into(), THREADS.to_string())], &names)
}

fn blocks<T: Number>(op: Op) -> String {
    let total = <T::Total as Total>::CUDA;
    format!("reduce_blocks<{}, {total}, {}<{total}>>", T::CUDA, op.functor())
}

fn rest<A: Total>(op: Op) -> String {
    format!("reduce_rest<{}, {}<{}>>", A::CUDA, op.functor(), A::CUDA)
}

/// Reduces buffers of one GPU; holds the buffers of partial values.
#[derive(Debug)]
pub struct Reducer {
    cuda: Cuda,
    program: Program,
    partial: Buffer<u64>,
    result: Mapped<u64>,
}

impl Reducer {
    /// Compiles the program and allocates the buffers.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let program = recipe().build(cuda)?;
        let partial = cuda.alloc_zeros(BLOCKS as usize, "partial values of reductions")?;
        Ok(Self { cuda: cuda.clone(), program, partial, result: cuda.mapped(1)? })
    }

    /// Puts `op` over `x[..n]` on the stream; the result goes to `out[at]`. Does not wait.
    ///
    /// # Panics
    /// If `n` or `at` lie outside their buffers.
    pub fn enqueue<T: Number>(&mut self, op: Op, x: &Buffer<T>, n: usize, out: &mut Buffer<T::Total>, at: usize) -> Result<()> {
        assert!(at < out.len(), "value {at} of a buffer of {}", out.len());
        let place = out.from(at);
        self.launch(op, x, n, place)
    }

    /// `op` over `x[..n]`. Waits for it.
    ///
    /// # Panics
    /// If `n` is beyond the buffer.
    pub fn reduce<T: Number>(&mut self, op: Op, x: &Buffer<T>, n: usize) -> Result<T::Total> {
        let place = self.result.from(0);
        self.launch(op, x, n, place)?;
        self.cuda.synchronize()?;
        Ok(bytemuck::cast(self.result.get(0)))
    }

    fn launch<T: Number, P>(&mut self, op: Op, x: &Buffer<T>, n: usize, place: Address<P>) -> Result<()> {
        assert!(n <= x.len(), "{n} values of a buffer of {}", x.len());
        let count = (n.div_ceil(THREADS as usize) as u64).clamp(1, u64::from(BLOCKS)) as u32;
        let (first, second) = (self.program.kernel(&blocks::<T>(op))?, self.program.kernel(&rest::<T::Total>(op))?);
        // SAFETY: (const T*, u64, A*) and (const A*, u32, A*) as declared; totals are 8 bytes, as the partial values and
        // `place` are; there are `count` <= BLOCKS partial values.
        unsafe {
            first.launch(count, THREADS).arg(x).arg(n as u64).arg(&mut self.partial).run()?;
            second.launch(1, THREADS).arg(&self.partial).arg(count).arg(place).run()
        }
    }
}
