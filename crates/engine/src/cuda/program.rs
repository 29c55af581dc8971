//! Programs: the prelude, generated physics and `.cu` sources, compiled for the device at hand with the run's sizes as
//! constants.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};

use super::cache::Cache;
use super::context::{Cuda, Inner, word};
use super::include::{self, Files};
use super::launch::{Kernel, KernelResources};
use super::nvrtc::{Cubin, nvrtc};
use super::parts::only;
use super::{compiling, library};
use crate::error::{Error, Result};
use crate::notice;
use crate::times::{self, Phase};

/// Source text in front of every program: integer types, reductions, barriers, Philox.
pub const PRELUDE: &str = include_str!("prelude.cuh");

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);

/// Number of programs that this process has compiled: 0 when the cache had them all.
pub fn compilations() -> u64 {
    COMPILATIONS.load(Ordering::Relaxed)
}

/// Folder of compiled programs; `None` when `ZELLIGE_CACHE=off` or there is no home folder.
pub fn cache_folder() -> Option<PathBuf> {
    Cache::from_environment().folder().map(Path::to_owned)
}

/// Description of a program: its sources and compile-time parameters.
#[derive(Debug, Clone, Default)]
pub struct Recipe {
    /// Name in messages.
    pub name: String,
    /// CUDA C++ after the prelude, in order.
    pub sources: Vec<String>,
    /// Compile-time constants, given as `-DNAME=VALUE`.
    pub defines: Vec<(String, String)>,
    /// Kernels: names of `extern "C"` functions, or instances of templates such as `smooth<float, 2>`.
    pub kernels: Vec<String>,
    /// Further options of the compiler, for example `--use_fast_math`.
    pub options: Vec<String>,
}

impl Recipe {
    /// A program of source files: `roots` in their order, and what these include.
    ///
    /// # Panics
    /// Where a file is named that is not in `files`, or one includes itself.
    pub fn of_files(name: &str, files: &Files, roots: &[&str], defines: &[(String, String)], kernels: &[&str]) -> Self {
        Self::new(name, &[&include::assembled(files, roots)], defines, kernels)
    }

    /// A program of texts, without further options.
    pub fn new(name: &str, sources: &[&str], defines: &[(String, String)], kernels: &[&str]) -> Self {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Self { name: name.to_owned(), sources: owned(sources), defines: defines.to_vec(), kernels: owned(kernels), options: Vec::new() }
    }

    /// Adds an option of the compiler.
    #[must_use]
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.to_owned());
        self
    }

    /// The whole source; `#line` makes the compiler's log count from the start of each part.
    fn source(&self) -> String {
        let mut all = vec!["#line 1 \"prelude.cuh\"".to_owned(), PRELUDE.to_owned()];
        for (i, source) in self.sources.iter().enumerate() {
            all.push(format!("#line 1 \"{}[{i}]\"", self.name));
            all.push(source.clone());
        }
        all.join("\n")
    }

    fn flags(&self, arch: &str) -> Vec<String> {
        let fixed = [format!("--gpu-architecture={arch}"), "--std=c++17".into(), "-lineinfo".into(), "-default-device".into()];
        let defines = self.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
        fixed.into_iter().chain(defines).chain(self.options.iter().cloned()).collect()
    }

    /// The machine code for `arch`, for example `sm_90`, from the compiler. Needs NVRTC, but no GPU.
    pub fn compile_only(&self, arch: &str) -> Result<Cubin> {
        COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        nvrtc()?.compile(&self.name, &self.source(), &self.flags(arch), &self.kernels, arch)
    }

    /// The machine code of kernel number `k` alone.
    pub(super) fn part(&self, k: usize, arch: &str) -> Result<Cubin> {
        if k == 0 {
            COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        }
        let source = only(&self.source(), &self.kernels[k]);
        nvrtc()?.compile(&self.name, &source, &self.flags(arch), &self.kernels[k..=k], arch)
    }

    /// Name of the machine code for `arch`, by all that it is made of.
    pub(super) fn key(&self, arch: &str) -> String {
        let (source, flags) = (self.source(), self.flags(arch));
        let counts = format!("{} {}", flags.len(), self.kernels.len());
        let parts = [counts.as_str(), &source].into_iter();
        Cache::key(parts.chain(flags.iter().map(String::as_str)).chain(self.kernels.iter().map(String::as_str)))
    }

    /// The machine code for `arch`, from the cache where it has it.
    pub(super) fn cubin(&self, arch: &str, cache: &Cache) -> Result<Arc<Cubin>> {
        let key = self.key(arch);
        let under_way = || times::within(Phase::Compiling, || compiling::wait(&key));
        if let Some(cubin) = under_way() {
            return Ok(cubin);
        }
        if let Some(cubin) = cache.get(&key) {
            return Ok(Arc::new(cubin));
        }
        compiling::begin(vec![(key.clone(), self.clone())], arch, cache);
        // A failed program is compiled once more for the compiler's log.
        under_way().map_or_else(|| times::within(Phase::Compiling, || self.compile_only(arch).map(Arc::new)), Ok)
    }

    /// Compiles (or takes from the cache) and loads the program on `cuda`.
    pub fn build(&self, cuda: &Cuda) -> Result<Program> {
        prepare(cuda, vec![self.clone()]);
        let cubin = self.cubin(&cuda.arch(), &Cache::from_environment())?;
        let begun = Instant::now();
        let program = times::within(Phase::Loading, || Program::load(cuda, &self.name, &cubin))?;
        tracing::debug!("loaded `{}` in {:.1} ms", self.name, 1e3 * begun.elapsed().as_secs_f64());
        Ok(program)
    }
}

/// Reports once per process that kernels are being compiled.
fn tell_once(arch: &str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| notice::tell(&format!("compiling kernels for {arch}, first run only")));
}

/// Begins to compile missing programs of `recipes` on all cores: [`Recipe::build`] then waits for the rest.
pub fn prepare(cuda: &Cuda, recipes: Vec<Recipe>) {
    let (arch, cache) = (cuda.arch(), Cache::from_environment());
    let missing: Vec<_> = recipes.into_iter().map(|r| (r.key(&arch), r)).filter(|(key, _)| !cache.has(key)).collect();
    if !missing.is_empty() && nvrtc().is_ok() {
        tell_once(&arch);
        compiling::begin(missing, &arch, &cache);
    }
}

/// Compiles for `arch` without a GPU: `.ci/run` and tests put every kernel through this.
pub fn compile_only(name: &str, sources: &[&str], defines: &[(String, String)], kernels: &[&str], arch: &str) -> Result<Vec<u8>> {
    Recipe::new(name, sources, defines, kernels).compile_only(arch).map(|c| c.images.into_iter().flat_map(|i| i.code).collect())
}

pub(super) struct Module {
    handle: sys::CUmodule,
    pub(super) inner: Arc<Inner>,
}

// SAFETY: the driver lets modules be used from any thread; this one is only read after loading.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            let _turn = self.inner.turn();
            // SAFETY: loaded once, unloaded once; waiting first, so that none of its kernels runs.
            unsafe {
                result::stream::synchronize(self.inner.stream).ok();
                result::module::unload(self.handle).ok();
            }
        }
    }
}

/// Kernels on a device, ready to be launched. Clones share them.
#[derive(Clone)]
pub struct Program {
    name: String,
    cuda: Cuda,
    kernels: Arc<Vec<(String, Kernel)>>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("name", &self.name).field("kernels", &self.kernels).finish_non_exhaustive()
    }
}

impl Program {
    /// Compiles prelude + `sources` with `defines` (or takes them from the disk cache) and loads `kernels`, each an
    /// `extern "C"` function or an instance of a template (`smooth<float>`).
    pub fn compile(cuda: &Cuda, name: &str, sources: &[&str], defines: &[(String, String)], kernels: &[&str]) -> Result<Self> {
        Recipe::new(name, sources, defines, kernels).build(cuda)
    }

    fn load(cuda: &Cuda, name: &str, cubin: &Cubin) -> Result<Self> {
        cuda.not_capturing("loading a program")?;
        cuda.bind()?;
        let mut kernels = Vec::new();
        for image in &cubin.images {
            // SAFETY: the image came whole from the compiler or, with its checksum, from the cache.
            let handle = unsafe { result::module::load_data(image.code.as_ptr().cast()) };
            let handle = handle.map_err(|e| not_loaded(cuda, name, cubin.compiler, e))?;
            let module = Arc::new(Module { handle, inner: cuda.0.clone() });
            for (kernel, lowered) in &image.names {
                kernels.push((kernel.clone(), get(cuda, name, &module, kernel, lowered)?));
            }
        }
        Ok(Self { name: name.to_owned(), cuda: cuda.clone(), kernels: Arc::new(kernels) })
    }

    /// The kernel called `name` in the list that the program was compiled with.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.kernels.iter().find(|(k, _)| k == name).map(|(_, kernel)| kernel.clone()).ok_or_else(|| {
            let known: Vec<_> = self.kernels.iter().map(|(k, _)| k.as_str()).collect();
            self.cuda.defect(format!("program `{}` has no kernel `{name}`, only {}", self.name, known.join(", ")))
        })
    }
}

/// Kernel `kernel` of program `name`, called `lowered` in its module.
fn get(cuda: &Cuda, name: &str, module: &Arc<Module>, kernel: &str, lowered: &str) -> Result<Kernel> {
    let symbol = CString::new(lowered).map_err(|_| cuda.defect(format!("the name of `{kernel}` has a zero byte")))?;
    // SAFETY: the module is loaded.
    let function = unsafe { result::module::get_function(module.handle, symbol) }
        .map_err(|e| cuda.failed(&format!("kernel `{kernel}` of `{name}` is not in its program"), e))?;
    let attribute = |a| {
        // SAFETY: the function belongs to a loaded module.
        unsafe { result::function::get_function_attribute(function, a) }
            .map(|v| v.max(0) as u32)
            .map_err(|e| cuda.failed(&format!("kernel `{kernel}` cannot be asked for its needs"), e))
    };
    let needs = KernelResources {
        shared: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        max_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
    };
    Ok(Kernel::new(kernel, function, module.clone(), needs))
}

fn not_loaded(cuda: &Cuda, name: &str, compiler: (i32, i32), error: DriverError) -> Error {
    let version = |v: Option<(i32, i32)>| v.map_or_else(|| "unknown".into(), |(a, b)| format!("{a}.{b}"));
    let compiler = version(Some(compiler));
    let driver = version(library::driver_version());
    Error::Device {
        device: format!("cuda:{}", cuda.ordinal()),
        message: format!("program `{name}` cannot be loaded: {} (NVRTC {compiler}, driver for CUDA {driver})", word(error)),
        hint: Some("use an NVRTC no newer than the driver: `pip install nvidia-cuda-nvrtc-cu12` or a newer driver".into()),
    }
}
