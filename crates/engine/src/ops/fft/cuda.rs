//! Transforms on a GPU, by cuFFT.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use cudarc::cufft::{result, sys};
use num_complex::Complex;

use super::{Direction, Real, Shape};
use crate::cuda::{Buffer, Cuda, library, no_captures};
use crate::error::{Error, Result};
use crate::times::{self, Phase};

/// `f32` or `f64` on a GPU.
pub trait CudaReal: Real {
    #[doc(hidden)]
    const KIND: sys::cufftType;
    /// # Safety
    /// The plan is alive, of this type, and the address is that of all its frames.
    #[doc(hidden)]
    unsafe fn execute(plan: sys::cufftHandle, address: u64, sign: i32) -> std::result::Result<(), result::CufftError>;
}

impl CudaReal for f32 {
    const KIND: sys::cufftType = sys::cufftType::CUFFT_C2C;
    unsafe fn execute(plan: sys::cufftHandle, address: u64, sign: i32) -> std::result::Result<(), result::CufftError> {
        // SAFETY: by the caller's promise.
        unsafe { result::exec_c2c(plan, address as *mut _, address as *mut _, sign) }
    }
}

impl CudaReal for f64 {
    const KIND: sys::cufftType = sys::cufftType::CUFFT_Z2Z;
    unsafe fn execute(plan: sys::cufftHandle, address: u64, sign: i32) -> std::result::Result<(), result::CufftError> {
        // SAFETY: by the caller's promise.
        unsafe { result::exec_z2z(plan, address as *mut _, address as *mut _, sign) }
    }
}

/// Transforms of one shape and precision on the stream of one GPU.
pub struct CudaPlan {
    handle: sys::cufftHandle,
    kind: TypeId,
    shape: Shape,
    workspace: u64,
    cuda: Cuda,
}

impl std::fmt::Debug for CudaPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaPlan").field("shape", &self.shape).field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// Held to make or give up a plan, and shared to execute one. Kernels of plans of a part of a run, made while another part executed
/// its own, have read tables that were not there yet, in 1 of 10 runs on a busy H200.
static PLANNING: RwLock<()> = RwLock::new(());

fn planning() -> RwLockWriteGuard<'static, ()> {
    PLANNING.write().unwrap_or_else(PoisonError::into_inner)
}

/// The plans of one GPU, each made once.
#[derive(Debug)]
pub struct CudaPlans {
    cuda: Cuda,
    plans: HashMap<(TypeId, Shape), Arc<CudaPlan>>,
}

impl CudaPlans {
    /// Starts without plans. An error says why cuFFT is not there and what fixes it.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        let found = library::cufft();
        match &found.refusal {
            None => Ok(Self { cuda: cuda.clone(), plans: HashMap::new() }),
            Some(refusal) => Err(Error::Device {
                device: format!("cuda:{}", cuda.ordinal()),
                message: format!("the library of Fourier transforms cuFFT is missing: {refusal}"),
                hint: found.hint.clone(),
            }),
        }
    }

    /// The plan for `shape` in precision `T`.
    pub fn get<T: CudaReal>(&mut self, shape: Shape) -> Result<Arc<CudaPlan>> {
        let key = (TypeId::of::<T>(), shape);
        if let Some(plan) = self.plans.get(&key) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(times::within(Phase::Loading, || CudaPlan::new::<T>(&self.cuda, shape))?);
        self.plans.insert(key, plan.clone());
        Ok(plan)
    }
}

impl CudaPlan {
    fn new<T: CudaReal>(cuda: &Cuda, shape: Shape) -> Result<Self> {
        cuda.not_capturing("planning a Fourier transform")?;
        cuda.bind()?;
        let number = |n: usize| {
            i32::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| Error::Device {
                device: format!("cuda:{}", cuda.ordinal()),
                message: format!("a Fourier transform of {shape:?} is beyond what cuFFT takes (1 to 2^31 - 1 values a frame)"),
                hint: None,
            })
        };
        let mut axes = if shape.rows == 1 { vec![number(shape.columns)?] } else { vec![number(shape.rows)?, number(shape.columns)?] };
        let (frame, batch) = (number(shape.frame())?, number(shape.batch)?);
        let failed = |error| failure(cuda, "a Fourier transform cannot be planned", error);
        let none = std::ptr::null_mut;
        let handle = {
            let _alone = (no_captures(), planning());
            // SAFETY: the library is there, or there would be no `CudaPlans`; `axes` outlives the call; no embedding is given.
            unsafe { result::plan_many(axes.len() as i32, axes.as_mut_ptr(), none(), 1, frame, none(), 1, frame, T::KIND, batch) }
                .map_err(failed)?
        };
        let mut plan = Self { handle, kind: TypeId::of::<T>(), shape, workspace: 0, cuda: cuda.clone() };
        // SAFETY: the plan was made just now; the stream is kept alive by `cuda`.
        unsafe {
            result::set_stream(handle, cuda.stream().cast()).map_err(failed)?;
            plan.workspace = result::get_size(handle).map_err(failed)? as u64;
        }
        // Its tables may still be on their way.
        cuda.synchronize_default()?;
        Ok(plan)
    }

    /// Bytes of device memory that cuFFT keeps for this plan.
    pub fn workspace(&self) -> u64 {
        self.workspace
    }

    /// Puts the transform of all frames on the stream, in place. Allowed in a graph.
    ///
    /// # Panics
    /// If the buffer is shorter than the shape says or the plan was made for the other precision.
    pub fn run<T: CudaReal>(&self, data: &mut Buffer<Complex<T>>, direction: Direction) -> Result<()> {
        self.run_at(data, 0, direction)
    }

    /// Transforms the frames that begin at value `at`.
    ///
    /// # Panics
    /// If the frames do not lie in the buffer or the plan was made for the other precision.
    pub fn run_at<T: CudaReal>(&self, data: &mut Buffer<Complex<T>>, at: usize, direction: Direction) -> Result<()> {
        assert!(self.kind == TypeId::of::<T>(), "a plan for the other precision");
        assert!(data.len() >= at && data.len() - at >= self.shape.values(), "{} values, from {at}, for {:?}", data.len(), self.shape);
        self.cuda.bind()?;
        let sign = if direction == Direction::Forward { -1 } else { 1 };
        let _turn = self.cuda.turn();
        let _executing = PLANNING.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: type and length were checked.
        unsafe { T::execute(self.handle, data.address() + (at * size_of::<Complex<T>>()) as u64, sign) }
            .map_err(|e| failure(&self.cuda, "a Fourier transform cannot be launched", e))
    }
}

impl Drop for CudaPlan {
    fn drop(&mut self) {
        let _alone = (no_captures(), planning());
        if self.cuda.synchronize().is_ok() {
            // SAFETY: planned once, destroyed once, and the stream was waited for.
            unsafe { result::destroy(self.handle) }.ok();
        }
    }
}

fn failure(cuda: &Cuda, doing: &str, error: result::CufftError) -> Error {
    if error.0 == sys::cufftResult::CUFFT_ALLOC_FAILED {
        return Error::OutOfMemory {
            device: cuda.name().to_owned(),
            what: "the workspace of a Fourier transform".into(),
            requested: 0,
            free: cuda.memory_free(),
        };
    }
    Error::Device { device: format!("cuda:{}", cuda.ordinal()), message: format!("{doing}: cuFFT says {:?}", error.0), hint: None }
}
