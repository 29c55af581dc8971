//! Kernels on the CPU: what a GPU would run, compiled by the system's C++ compiler and run by fibers (`host.hpp`). Slow, but
//! there without a GPU, so that every run of the tests sees a kernel's indices, barriers and arithmetic. What it does not see:
//! races that no order of whole stretches between barriers shows, limits of a device, and its rounding.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cuda::{PRELUDE, Recipe};

type Body = unsafe extern "C" fn(*mut c_void);
type Launch = unsafe extern "C" fn(*const u32, *const u32, Body, *mut c_void);

/// A program whose kernels are all `extern "C"`.
pub struct Host {
    loaded: libloading::Library,
    /// Held by a launch: the threads' indices are globals.
    running: Mutex<()>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Host {
    /// Compiles a program, or says `skipped: no C++ compiler`.
    ///
    /// # Panics
    /// With the compiler's log where it does not compile.
    pub fn compile(recipe: &Recipe) -> Option<Self> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("zellige-host-{}-{}-{number}", recipe.name, std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let library = build(&folder, recipe);
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        Some(Self { loaded: library?, running: Mutex::new(()) })
    }

    /// A kernel as an `unsafe extern "C" fn` of its parameters, to be called in [`Host::launch`] alone.
    ///
    /// # Safety
    /// `F` is a function pointer with the kernel's parameters.
    pub unsafe fn kernel<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller's.
        unsafe { *self.loaded.get::<F>(name.as_bytes()).expect("the program has the kernel") }
    }

    /// Runs `body`, which calls one kernel, for every thread of every block.
    pub fn launch(&self, blocks: [u32; 3], threads: [u32; 3], body: &dyn Fn()) {
        unsafe extern "C" fn call(data: *mut c_void) {
            // SAFETY: the address of the body, which outlives the launch.
            unsafe { (*data.cast::<&dyn Fn()>())() }
        }
        let _alone = self.running.lock().expect("no launch has panicked");
        let mut data = body;
        // SAFETY: `host.hpp` declares it so; the fibers have ended when it returns.
        unsafe {
            let launch = self.loaded.get::<Launch>(b"host_launch").expect("the program has it");
            launch(blocks.as_ptr(), threads.as_ptr(), call, (&raw mut data).cast());
        }
    }
}

/// The program's text with shared memory of a launch's size as one array.
fn source(recipe: &Recipe) -> String {
    let all =
        [&[include_str!("host.hpp"), PRELUDE], &recipe.sources.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat().join("\n");
    let mut parts = all.split("extern __shared__ ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (declared, rest) = part.split_once("[];").expect("an array of shared memory has no size");
        let (kind, name) = declared.rsplit_once(' ').expect("an array of shared memory has a type");
        let _ = write!(text, "{kind} *{name} = ({kind} *)host::shared;{rest}");
    }
    text
}

fn build(folder: &Path, recipe: &Recipe) -> Option<libloading::Library> {
    let (file, binary) = (folder.join("program.cpp"), folder.join("program.so"));
    std::fs::write(&file, source(recipe)).expect("the temporary folder can be written");
    let defines = recipe.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
    let fixed = ["-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-o"];
    let Ok(compiled) = Command::new("c++").args(defines).args(fixed).arg(&binary).arg(&file).output() else {
        println!("skipped: no C++ compiler");
        return None;
    };
    assert!(compiled.status.success(), "{} as C++ for the processor:\n{}", recipe.name, String::from_utf8_lossy(&compiled.stderr));
    // SAFETY: what it runs on loading are constructors of empty vectors.
    Some(unsafe { libloading::Library::new(&binary) }.expect("what the compiler has made can be loaded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: &str = r#"
extern "C" __global__ void sums(const double *x, double *to) {
    extern __shared__ double room[];
    __shared__ double scratch[2];
    room[threadIdx.x] = x[thread_index()];
    __syncthreads();
    double sum = block_reduce<Sum<double>>(room[63 - threadIdx.x], scratch);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
}
"#;

    #[test]
    fn barriers_and_shuffles_are_those_of_a_gpu() {
        let Some(host) = Host::compile(&Recipe::new("host-sums", &[SUMS], &[], &["sums"])) else { return };
        let x: Vec<f64> = (0..192).map(f64::from).collect();
        let mut to = [0.0; 3];
        // SAFETY: the parameters of `sums`, whose three blocks of 64 stay within both arrays.
        let (sums, out) = unsafe { (host.kernel::<unsafe extern "C" fn(*const f64, *mut f64)>("sums"), to.as_mut_ptr()) };
        host.launch([3, 1, 1], [64, 1, 1], &|| unsafe { sums(x.as_ptr(), out) });
        assert_eq!(to, [2016.0, 6112.0, 10208.0]);
    }
}
