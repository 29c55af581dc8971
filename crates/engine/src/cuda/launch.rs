//! Kernels and their launch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Pod;
use cudarc::driver::result;
use cudarc::driver::sys;

use super::context::Cuda;
use super::memory::{Address, Buffer, Mapped};
use super::program::Module;
use super::repeated::defer;
use crate::error::{Error, Result};

/// Bytes of arguments that a launch can carry here; the hardware takes 4096.
const ARGUMENT_WORDS: usize = 160;
const ARGUMENTS: usize = 48;
/// Bytes of shared memory that every kernel may use without asking.
const SHARED_DEFAULT: u32 = 48 * 1024;

/// Number of blocks or threads along x, y and z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent(pub u32, pub u32, pub u32);

impl From<u32> for Extent {
    fn from(x: u32) -> Self {
        Self(x, 1, 1)
    }
}

impl From<(u32, u32)> for Extent {
    fn from((x, y): (u32, u32)) -> Self {
        Self(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Extent {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self(x, y, z)
    }
}

impl From<[u32; 3]> for Extent {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self(x, y, z)
    }
}

/// Resources that a compiled kernel needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelResources {
    pub(super) shared: u32,
    pub(super) registers: u32,
    pub(super) local: u32,
    pub(super) max_threads: u32,
}

struct LoadedKernel {
    name: String,
    function: sys::CUfunction,
    module: Arc<Module>,
    needs: KernelResources,
    /// Dynamic shared memory that the function was last told to expect.
    raised: AtomicU32,
}

// SAFETY: the function belongs to the module, which is kept alive; the driver lets both be used from any thread.
unsafe impl Send for LoadedKernel {}
// SAFETY: as above.
unsafe impl Sync for LoadedKernel {}

/// A kernel on a device.
#[derive(Clone)]
pub struct Kernel(Arc<LoadedKernel>);

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.0.name).field("needs", &self.0.needs).finish_non_exhaustive()
    }
}

impl Kernel {
    pub(super) fn new(name: &str, function: sys::CUfunction, module: Arc<Module>, needs: KernelResources) -> Self {
        let raised = AtomicU32::new(SHARED_DEFAULT.saturating_sub(needs.shared));
        Self(Arc::new(LoadedKernel { name: name.to_owned(), function, module, needs, raised }))
    }

    /// Name of the kernel.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Registers a thread.
    pub fn registers(&self) -> u32 {
        self.0.needs.registers
    }

    /// Bytes of shared memory a block, without the dynamic part.
    pub fn shared(&self) -> u32 {
        self.0.needs.shared
    }

    /// Bytes of local memory a thread: anything but 0 means spilled registers or indexed arrays.
    pub fn local(&self) -> u32 {
        self.0.needs.local
    }

    /// The most threads a block can have.
    pub fn max_threads(&self) -> u32 {
        self.0.needs.max_threads
    }

    fn cuda(&self) -> Cuda {
        Cuda(self.0.module.inner.clone())
    }

    /// Number of blocks of `threads` threads with `shared` bytes of dynamic shared memory that fit on a multiprocessor: times the
    /// number of multiprocessors, the largest grid whose blocks may wait for each other.
    pub fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32> {
        let cuda = self.cuda();
        cuda.bind()?;
        self.raise(&cuda, shared)?;
        // SAFETY: the function belongs to a loaded module.
        unsafe { result::occupancy::max_active_block_per_multiprocessor(self.0.function, threads as i32, shared as usize) }
            .map(|n| n.max(0) as u32)
            .map_err(|e| cuda.failed(&format!("the occupancy of `{}` cannot be told", self.0.name), e))
    }

    /// Number of clusters of `cluster` blocks (of `threads` threads with `shared` bytes of dynamic shared memory each) that the
    /// device holds at once: fewer than the multiprocessors suggest, since a cluster stays within a group of them.
    pub fn clusters(&self, cluster: u32, threads: u32, shared: u32) -> Result<u32> {
        let cuda = self.cuda();
        cuda.bind()?;
        self.raise(&cuda, shared)?;
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster, y: 1, z: 1 };
        let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        let mut attribute = sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let config = sys::CUlaunchConfig {
            gridDimX: cluster,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: cuda.0.stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let mut count = 0;
        // SAFETY: function, stream and configuration are alive during the call.
        let status = unsafe { sys::cuOccupancyMaxActiveClusters(&raw mut count, self.0.function, &raw const config) };
        let doing = format!("the number of clusters of `{}` cannot be told", self.0.name);
        status.result().map_err(|e| cuda.failed(&doing, e))?;
        Ok(count.max(0) as u32)
    }

    /// Tells the driver to expect `shared` bytes of dynamic shared memory, if that is more than so far.
    fn raise(&self, cuda: &Cuda, shared: u32) -> Result<()> {
        if shared <= self.0.raised.load(Ordering::Relaxed) {
            return Ok(());
        }
        let limit = cuda.properties().shared_per_block;
        if self.0.needs.shared.saturating_add(shared) > limit {
            return Err(Error::Device {
                device: format!("cuda:{}", cuda.ordinal()),
                message: format!(
                    "kernel `{}` asks for {} + {shared} bytes of shared memory a block; this GPU has {limit}",
                    self.0.name, self.0.needs.shared
                ),
                hint: None,
            });
        }
        let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function belongs to a loaded module.
        unsafe { result::function::set_function_attribute(self.0.function, attribute, shared as i32) }
            .map_err(|e| cuda.failed(&format!("kernel `{}` cannot have {shared} bytes of shared memory", self.0.name), e))?;
        self.0.raised.fetch_max(shared, Ordering::Relaxed);
        Ok(())
    }

    /// A launch of `grid` blocks of `block` threads; give it the arguments in the kernel's order, then [`Launch::run`].
    pub fn launch(&self, grid: impl Into<Extent>, block: impl Into<Extent>) -> Launch<'_> {
        Launch {
            kernel: self,
            grid: grid.into(),
            block: block.into(),
            shared: 0,
            cooperative: false,
            cluster: None,
            early: false,
            words: [0; ARGUMENT_WORDS],
            used: 0,
            places: [0; ARGUMENTS],
            count: 0,
            overflow: false,
        }
    }
}

/// Value that can be passed to a kernel: numbers, buffers and the structs of `#[device]`.
pub trait Argument {
    /// The type as the kernel sees it: of structs, bytes with zeros between fields.
    type Value: Pod;
    /// The value.
    fn value(self) -> Self::Value;
}

macro_rules! plain_arguments {
    ($($t:ty),*) => {$(
        impl Argument for $t {
            type Value = $t;
            fn value(self) -> $t {
                self
            }
        }
    )*};
}
plain_arguments!(f32, f64, i8, u8, i16, u16, i32, u32, i64, u64, usize);

impl Argument for bool {
    type Value = u8;
    fn value(self) -> u8 {
        self.into()
    }
}

impl<A: Argument, const N: usize> Argument for [A; N] {
    type Value = [A::Value; N];
    fn value(self) -> [A::Value; N] {
        self.map(A::value)
    }
}

impl<T: Pod> Argument for &Buffer<T> {
    type Value = u64;
    fn value(self) -> u64 {
        self.address()
    }
}

impl<T: Pod> Argument for &mut Buffer<T> {
    type Value = u64;
    fn value(self) -> u64 {
        self.address()
    }
}

impl<T: Pod> Argument for &Mapped<T> {
    type Value = u64;
    fn value(self) -> u64 {
        self.from(0).0
    }
}

impl<T> Argument for Address<T> {
    type Value = u64;
    fn value(self) -> u64 {
        self.0
    }
}

/// A launch being put together.
#[must_use = "nothing happens before `run`"]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    grid: Extent,
    block: Extent,
    shared: u32,
    cooperative: bool,
    cluster: Option<Extent>,
    early: bool,
    words: [u64; ARGUMENT_WORDS],
    used: usize,
    places: [u16; ARGUMENTS],
    count: usize,
    overflow: bool,
}

impl Launch<'_> {
    /// Bytes of dynamic shared memory a block.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// All blocks run at once and may wait for each other; the grid must fit (see
    /// [`Kernel::blocks_per_multiprocessor`]).
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Blocks in clusters of this shape (compute capability 9.0 and up).
    pub fn cluster(mut self, cluster: impl Into<Extent>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// May start before the kernel ahead of it has ended, from compute capability 9.0 on; the kernel itself waits with
    /// `griddepcontrol.wait` (prelude: `wait_for_previous_kernel`) before it touches what that one writes.
    pub fn early(mut self) -> Self {
        self.early = self.kernel.cuda().properties().capability.0 >= 9;
        self
    }

    /// The next argument.
    pub fn arg<A: Argument>(self, argument: A) -> Self {
        self.plain(argument.value())
    }

    /// The next argument, a plain value laid out as in C. Alignments up to 8 bytes.
    pub fn plain<T: Pod>(mut self, value: T) -> Self {
        let words = size_of::<T>().div_ceil(8);
        if self.count == ARGUMENTS || self.used + words > ARGUMENT_WORDS || align_of::<T>() > 8 {
            self.overflow = true;
            return self;
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words[self.used..self.used + words]);
        bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        self.places[self.count] = self.used as u16;
        self.count += 1;
        self.used += words;
        self
    }

    /// Puts the launch on the stream (or into the graph under capture), without waiting. An empty grid does nothing.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, in number, order and type; the kernel stays inside the
    /// buffers; buffers that the kernel writes are given as `&mut` or are not read meanwhile by the host; buffers
    /// stay alive until the stream was waited for (dropping a [`Buffer`] waits).
    pub unsafe fn run(self) -> Result<()> {
        if [self.grid.0, self.grid.1, self.grid.2].contains(&0) {
            return Ok(());
        }
        let cuda = self.kernel.cuda();
        if self.overflow {
            return Err(cuda.defect(format!("too many or too large arguments for kernel `{}`", self.kernel.name())));
        }
        defer(&cuda, self, |launch| launch.prepared()).map_or(Ok(()), |launch| launch.put(&cuda))
    }

    /// Copies the launch with its present arguments, to be put on the stream later.
    fn prepared(&self) -> PreparedLaunch {
        PreparedLaunch {
            kernel: self.kernel.clone(),
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            cooperative: self.cooperative,
            cluster: self.cluster,
            early: self.early,
            words: self.words[..self.used].into(),
            places: self.places[..self.count].into(),
        }
    }

    fn put(mut self, cuda: &Cuda) -> Result<()> {
        cuda.bind()?;
        self.kernel.raise(cuda, self.shared)?;
        let mut pointers = [std::ptr::null_mut(); ARGUMENTS];
        for i in 0..self.count {
            pointers[i] = (&raw mut self.words[self.places[i] as usize]).cast();
        }
        let mut attributes = self.attributes();
        let mut config = sys::CUlaunchConfig {
            gridDimX: self.grid.0,
            gridDimY: self.grid.1,
            gridDimZ: self.grid.2,
            blockDimX: self.block.0,
            blockDimY: self.block.1,
            blockDimZ: self.block.2,
            sharedMemBytes: self.shared,
            hStream: cuda.0.stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        if attributes.is_empty() {
            config.attrs = std::ptr::null_mut();
        }
        let _turn = cuda.turn();
        // SAFETY: function, stream, configuration and argument storage are alive during the call, which copies the
        // arguments; what the kernel does with them is by the caller's promise.
        let status =
            unsafe { sys::cuLaunchKernelEx(&raw const config, self.kernel.0.function, pointers.as_mut_ptr(), std::ptr::null_mut()) };
        status.result().map_err(|e| {
            let (g, b) = (self.grid, self.block);
            cuda.failed(
                &format!(
                    "kernel `{}` cannot be launched with {}x{}x{} blocks of {}x{}x{} threads (at most {} threads) and {} bytes of shared memory",
                    self.kernel.name(), g.0, g.1, g.2, b.0, b.1, b.2, self.kernel.max_threads(), self.shared
                ),
                e,
            )
        })
    }

    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        use sys::CUlaunchAttributeID as Id;
        // An empty vector allocates nothing: the plain launch stays free of the heap.
        let mut list = Vec::new();
        let mut push = |id, set: &dyn Fn(&mut sys::CUlaunchAttributeValue)| {
            let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
            set(&mut value);
            list.push(sys::CUlaunchAttribute { id, pad: [0; 4], value });
        };
        if self.cooperative {
            push(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|v| v.cooperative = 1);
        }
        if let Some(Extent(x, y, z)) = self.cluster {
            push(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|v| {
                v.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            });
        }
        if self.early {
            push(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &|v| v.programmaticStreamSerializationAllowed = 1);
        }
        list
    }
}

/// A launch with its arguments, kept back.
#[derive(Debug, Clone)]
pub(super) struct PreparedLaunch {
    kernel: Kernel,
    grid: Extent,
    block: Extent,
    shared: u32,
    cooperative: bool,
    cluster: Option<Extent>,
    early: bool,
    words: Box<[u64]>,
    places: Box<[u16]>,
}

impl PartialEq for PreparedLaunch {
    fn eq(&self, other: &Self) -> bool {
        let attributes = |p: &Self| (p.grid, p.block, p.shared, p.cooperative, p.cluster, p.early);
        Arc::ptr_eq(&self.kernel.0, &other.kernel.0)
            && attributes(self) == attributes(other)
            && self.places == other.places
            && self.words == other.words
    }
}

impl PreparedLaunch {
    /// Puts it on the stream, by the promise that was given with `Launch::run`.
    pub(super) fn put(&self) -> Result<()> {
        let mut launch = self.kernel.launch([self.grid.0, self.grid.1, self.grid.2], [self.block.0, self.block.1, self.block.2]);
        (launch.shared, launch.cooperative, launch.cluster, launch.early) = (self.shared, self.cooperative, self.cluster, self.early);
        (launch.used, launch.count) = (self.words.len(), self.places.len());
        launch.words[..self.words.len()].copy_from_slice(&self.words);
        launch.places[..self.places.len()].copy_from_slice(&self.places);
        launch.put(&self.kernel.cuda())
    }
}
