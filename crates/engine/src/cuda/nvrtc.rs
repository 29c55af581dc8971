//! NVRTC, the compiler of kernels: bound by hand to the file that [`library`](super::library) chose.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::library;
use crate::error::{Error, Result};

type Program = *mut std::ffi::c_void;
type Status = c_int;
const SUCCESS: Status = 0;

/// The functions of NVRTC that are used, by address.
pub(super) struct Nvrtc {
    version: (i32, i32),
    create: unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    add_name: unsafe extern "C" fn(Program, *const c_char) -> Status,
    lowered: unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> Status,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    error: unsafe extern "C" fn(Status) -> *const c_char,
}

/// Machine code of one program and the names of its kernels in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// Version of the compiler, major and minor.
    pub compiler: (i32, i32),
    /// Images that the driver loads, one or more.
    pub images: Vec<Image>,
}

/// An image and the kernels in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Machine code.
    pub code: Vec<u8>,
    /// Names of each kernel: as requested (`smooth<float>`) and in the image.
    pub names: Vec<(String, String)>,
}

impl Cubin {
    /// One program of several, in their order.
    pub(super) fn joined(parts: Vec<Self>) -> Self {
        let compiler = parts.first().map_or((0, 0), |part| part.compiler);
        Self { compiler, images: parts.into_iter().flat_map(|part| part.images).collect() }
    }
}

/// The compiler, or the error that says why there is none and what fixes it.
pub(super) fn nvrtc() -> Result<&'static Nvrtc> {
    static NVRTC: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
    let opened = library::nvrtc();
    let Some(handle) = &opened.handle else {
        return Err(Error::Device {
            device: "cuda".into(),
            message: format!("the kernel compiler NVRTC is missing: {}", opened.found.refusal.as_deref().unwrap_or("not found")),
            hint: opened.found.hint.clone(),
        });
    };
    NVRTC.get_or_init(|| Nvrtc::bind(handle)).as_ref().map_err(|message| Error::Device {
        device: "cuda".into(),
        message: format!("`{}` cannot be used as NVRTC: {message}", opened.found.path.clone().unwrap_or_default().display()),
        hint: Some("`pip install nvidia-cuda-nvrtc`".into()),
    })
}

/// File and version of the compiler in use.
pub fn compiler() -> Result<(PathBuf, (i32, i32))> {
    let nvrtc = nvrtc()?;
    Ok((library::nvrtc().found.path.clone().unwrap_or_default(), nvrtc.version))
}

impl Nvrtc {
    fn bind(handle: &'static libloading::Library) -> Result<Self, String> {
        fn symbol<T: Copy>(handle: &'static libloading::Library, name: &str) -> Result<T, String> {
            // SAFETY: each name is asked for with the type that NVIDIA's nvrtc.h declares for it.
            unsafe { handle.get::<T>(name.as_bytes()) }.map(|s| *s).map_err(|e| library::reason(&e))
        }
        let version_of: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = symbol(handle, "nvrtcVersion")?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        if unsafe { version_of(&raw mut major, &raw mut minor) } != SUCCESS {
            return Err("it does not tell its version".into());
        }
        Ok(Self {
            version: (major, minor),
            create: symbol(handle, "nvrtcCreateProgram")?,
            compile: symbol(handle, "nvrtcCompileProgram")?,
            destroy: symbol(handle, "nvrtcDestroyProgram")?,
            add_name: symbol(handle, "nvrtcAddNameExpression")?,
            lowered: symbol(handle, "nvrtcGetLoweredName")?,
            log_size: symbol(handle, "nvrtcGetProgramLogSize")?,
            log: symbol(handle, "nvrtcGetProgramLog")?,
            cubin_size: symbol(handle, "nvrtcGetCUBINSize")?,
            cubin: symbol(handle, "nvrtcGetCUBIN")?,
            error: symbol(handle, "nvrtcGetErrorString")?,
        })
    }

    /// Compiles `source` for `arch` (for example `sm_90`).
    pub(super) fn compile(&self, program: &str, source: &str, options: &[String], kernels: &[String], arch: &str) -> Result<Cubin> {
        let defect = |log: String| Error::Kernel { program: program.to_owned(), arch: arch.to_owned(), log };
        let text = |s: &str| CString::new(s).map_err(|_| defect(format!("a zero byte in `{}`", s.escape_debug())));
        let (source, name) = (text(source)?, text(&format!("{program}.cu"))?);
        let options = options.iter().map(|o| text(o)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
        let kernels = kernels.iter().map(|k| Ok((k.clone(), text(k)?))).collect::<Result<Vec<_>>>()?;

        let mut handle: Program = std::ptr::null_mut();
        // SAFETY: the strings live beyond the program's end, and no headers are given.
        let status = unsafe { (self.create)(&raw mut handle, source.as_ptr(), name.as_ptr(), 0, std::ptr::null(), std::ptr::null()) };
        if status != SUCCESS {
            return Err(defect(self.word(status)));
        }
        let guard = ProgramGuard { nvrtc: self, handle };
        for (_, kernel) in &kernels {
            // SAFETY: the program is alive and not yet compiled.
            let status = unsafe { (self.add_name)(handle, kernel.as_ptr()) };
            if status != SUCCESS {
                return Err(defect(self.word(status)));
            }
        }
        // SAFETY: the program and the options are alive.
        let status = unsafe { (self.compile)(handle, pointers.len() as c_int, pointers.as_ptr()) };
        if status != SUCCESS {
            return Err(defect(format!("{} (NVRTC {}.{})\n{}", self.word(status), self.version.0, self.version.1, guard.log())));
        }
        guard.take(&kernels).map_err(|status| defect(self.word(status)))
    }

    fn word(&self, status: Status) -> String {
        // SAFETY: the function returns a static string for every status.
        unsafe { CStr::from_ptr((self.error)(status)) }.to_string_lossy().into_owned()
    }
}

/// Destroys the program on every way out.
struct ProgramGuard<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl ProgramGuard<'_> {
    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is alive; the buffer has the size that was asked for.
        unsafe {
            if (self.nvrtc.log_size)(self.handle, &raw mut size) != SUCCESS {
                return String::new();
            }
            let mut log = vec![0u8; size];
            if (self.nvrtc.log)(self.handle, log.as_mut_ptr().cast()) != SUCCESS {
                return String::new();
            }
            String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned()
        }
    }

    fn take(&self, kernels: &[(String, CString)]) -> Result<Cubin, Status> {
        let check = |status| if status == SUCCESS { Ok(()) } else { Err(status) };
        let mut size = 0;
        // SAFETY: the program was compiled; the buffer has the size that was asked for.
        let image = unsafe {
            check((self.nvrtc.cubin_size)(self.handle, &raw mut size))?;
            let mut image = vec![0u8; size];
            check((self.nvrtc.cubin)(self.handle, image.as_mut_ptr().cast()))?;
            image
        };
        let mut names = Vec::with_capacity(kernels.len());
        for (kernel, expression) in kernels {
            let mut lowered = std::ptr::null();
            // SAFETY: the expression was registered before compiling; the answer lives as long as the program and is copied.
            let lowered = unsafe {
                check((self.nvrtc.lowered)(self.handle, expression.as_ptr(), &raw mut lowered))?;
                CStr::from_ptr(lowered).to_string_lossy().into_owned()
            };
            names.push((kernel.clone(), lowered));
        }
        Ok(Cubin { compiler: self.nvrtc.version, images: vec![Image { code: image, names }] })
    }
}

impl Drop for ProgramGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, destroyed once.
        unsafe { (self.nvrtc.destroy)(&raw mut self.handle) };
    }
}
