//! Locations of the GPU libraries: the driver, NVRTC (the kernel compiler), cuFFT, and NCCL.
//!
//! Nothing of CUDA is needed to build. The driver is looked for by the system's loader alone, since it has to fit the
//! kernel module. The others are looked for in `ZELLIGE_NVRTC` (a file or a folder; for all), `CUDA_PATH`, the
//! loader's path, `/usr/local/cuda`, the conda prefix, the virtual environment, and last the `nvidia/*/lib` folders of
//! the Python at hand. What is found is opened by absolute path, so that which file is used is known and shown.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use libloading::Library as Handle;
use serde::Serialize;

use crate::times::{self, Phase};

/// A library that was opened, or the reason why there is none.
#[derive(Debug, Clone, Serialize)]
pub struct LibraryStatus {
    /// `driver`, `NVRTC`, `cuFFT`, `NCCL`, `MPI`.
    pub name: &'static str,
    /// The file, or the bare name where the loader's path had it.
    pub path: Option<PathBuf>,
    /// Reason why the library is not used; `None` when it is.
    pub refusal: Option<String>,
    /// The command that fixes it.
    pub hint: Option<String>,
}

impl LibraryStatus {
    /// Returns true if the library is in use.
    pub fn usable(&self) -> bool {
        self.refusal.is_none()
    }
}

/// An opened library together with where it came from.
pub(super) struct OpenLibrary {
    pub(super) found: LibraryStatus,
    pub(super) handle: Option<Handle>,
}

/// The CUDA driver.
pub fn driver() -> &'static LibraryStatus {
    static DRIVER: OnceLock<LibraryStatus> = OnceLock::new();
    DRIVER.get_or_init(|| {
        // SAFETY: opening the driver's library runs its initialisers, which have no preconditions.
        let present = unsafe { cudarc::driver::sys::is_culib_present() };
        LibraryStatus {
            name: "driver",
            path: present.then(|| PathBuf::from("libcuda.so.1")),
            refusal: (!present).then(|| "libcuda.so.1 is not on the loader's path".to_owned()),
            hint: (!present).then(|| {
                "install the NVIDIA driver (Debian, Ubuntu: `apt install nvidia-driver`; containers: `docker run --gpus all ..`)".to_owned()
            }),
        }
    })
}

/// The newest CUDA that the driver serves, major and minor; `None` without a driver.
pub fn driver_version() -> Option<(i32, i32)> {
    if !driver().usable() {
        return None;
    }
    let mut version = 0;
    // SAFETY: the library is there, the pointer is to a live integer, and this call needs no initialisation.
    let status = unsafe { cudarc::driver::sys::cuDriverGetVersion(&raw mut version) };
    (status == cudarc::driver::sys::CUresult::CUDA_SUCCESS).then_some((version / 1000, version % 1000 / 10))
}

/// NVRTC, opened once.
pub(super) fn nvrtc() -> &'static OpenLibrary {
    static NVRTC: OnceLock<OpenLibrary> = OnceLock::new();
    NVRTC.get_or_init(|| {
        // A driver of CUDA 12 does not load what a compiler of CUDA 13 makes; the other way round is fine.
        let (files, mend) = match driver_version() {
            Some((12, _)) => (["libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"], "pip install nvidia-cuda-nvrtc-cu12"),
            _ => (["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"], "pip install nvidia-cuda-nvrtc"),
        };
        open("NVRTC", &files, "libnvrtc-builtins.so", mend)
    })
}

/// NVRTC, as found.
pub fn compiler() -> &'static LibraryStatus {
    &nvrtc().found
}

/// cuFFT, opened once; `cudarc` then finds the loaded file by its name.
pub fn cufft() -> &'static LibraryStatus {
    static CUFFT: OnceLock<OpenLibrary> = OnceLock::new();
    let opened = CUFFT.get_or_init(|| {
        let (files, mend) = match driver_version() {
            Some((12, _)) => (["libcufft.so.11", "libcufft.so", "libcufft.so.12"], "pip install nvidia-cufft-cu12"),
            _ => (["libcufft.so.12", "libcufft.so.11", "libcufft.so"], "pip install nvidia-cufft"),
        };
        let mut opened = open("cuFFT", &files, "libnvJitLink.so", mend);
        // SAFETY: as for the driver.
        if opened.found.usable() && !unsafe { cudarc::cufft::sys::is_culib_present() } {
            opened.found.refusal = Some("found, but not under a name that the loader knows".into());
        }
        opened
    });
    &opened.found
}

/// NCCL, which links GPUs of several processes. Its version is given apart.
pub fn nccl() -> (&'static LibraryStatus, Option<String>) {
    let (library, version) = nccl_library();
    (&library.found, version.clone())
}

/// Returns true if `ZELLIGE_NCCL=off` keeps NCCL from being used.
pub(crate) fn nccl_is_off() -> bool {
    std::env::var("ZELLIGE_NCCL").is_ok_and(|value| value == "off")
}

/// The opened NCCL; nothing where it is not usable, or turned off.
pub(super) fn nccl_handle() -> Option<&'static Handle> {
    let (library, _) = nccl_library();
    library.handle.as_ref().filter(|_| library.found.usable() && !nccl_is_off())
}

fn nccl_library() -> &'static (OpenLibrary, Option<String>) {
    static NCCL: OnceLock<(OpenLibrary, Option<String>)> = OnceLock::new();
    NCCL.get_or_init(|| {
        let mend = if let Some((12, _)) = driver_version() { "pip install nvidia-nccl-cu12" } else { "pip install nvidia-nccl-cu13" };
        let mut library = open("NCCL", &["libnccl.so.2", "libnccl.so"], "libnccl-", mend);
        let version = library.handle.as_ref().and_then(nccl_version);
        if library.found.usable() && version.is_none() {
            (library.found.path, library.found.hint) = (None, Some(format!("`{mend}`")));
            library.found.refusal = Some("it does not tell its version".into());
        }
        (library, version)
    })
}

fn nccl_version(handle: &Handle) -> Option<String> {
    let mut number = 0;
    // SAFETY: the name is asked for with the type that nccl.h declares for it, and the pointer is to a live integer.
    let status = unsafe { handle.get::<unsafe extern "C" fn(*mut i32) -> i32>(b"ncclGetVersion").ok()?(&raw mut number) };
    (status == 0).then(|| version_text(number))
}

/// Version of NCCL by its number: 22703 is 2.27.3, before 2.9 it was 2708 for 2.7.8.
fn version_text(number: i32) -> String {
    let major = if number < 10_000 { 1000 } else { 10_000 };
    format!("{}.{}.{}", number / major, number % major / 100, number % 100)
}

/// Opens the first of `files` that some folder has. A `companion` in the same folder is opened first: the library asks
/// for it by bare name later, which the loader answers with the file that is already open.
fn open(name: &'static str, files: &[&str], companion: &str, mend: &str) -> OpenLibrary {
    let begun = Instant::now();
    let opened = times::within(Phase::Loading, || search(name, files, companion, mend));
    tracing::debug!("looking for {name} took {:.0} ms", 1e3 * begun.elapsed().as_secs_f64());
    opened
}

fn search(name: &'static str, files: &[&str], companion: &str, mend: &str) -> OpenLibrary {
    let mut failures = Vec::new();
    let mut attempt = |folders: Vec<PathBuf>| {
        for file in files {
            for (folder, file) in folders.iter().map(|f| (f, f.join(file))).filter(|(_, f)| f.is_file()) {
                for beside in beginning_with(folder, companion) {
                    if let Ok(handle) = load(&beside) {
                        // It has to stay for as long as the library that asks for it: for ever.
                        std::mem::forget(handle);
                    }
                }
                match load(&file) {
                    Ok(handle) => return Some((file, handle)),
                    Err(error) => failures.push(format!("{}: {}", file.display(), reason(&error))),
                }
            }
        }
        None
    };
    let by_name = || files.iter().find_map(|f| load(*f).ok().map(|handle| (PathBuf::from(f), handle)));
    let found = attempt(named_folders()).or_else(by_name).or_else(|| attempt(usual_folders())).or_else(|| attempt(python_folders()));
    match found {
        Some((path, handle)) => {
            OpenLibrary { found: LibraryStatus { name, path: Some(path), refusal: None, hint: None }, handle: Some(handle) }
        }
        None => OpenLibrary {
            found: LibraryStatus {
                name,
                path: None,
                refusal: Some(if failures.is_empty() { format!("{} was not found", files[0]) } else { failures.join("; ") }),
                hint: Some(format!("`{mend}`, or name its folder in ZELLIGE_NVRTC or CUDA_PATH")),
            },
            handle: None,
        },
    }
}

fn load(file: impl libloading::AsFilename) -> Result<Handle, libloading::Error> {
    // SAFETY: only NVIDIA's libraries are named here; their initialisers have no preconditions.
    unsafe { Handle::new(file) }
}

/// The loader's own words, which `libloading` keeps behind its error.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn beginning_with(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let fits = |p: &PathBuf| p.file_name().and_then(OsStr::to_str).is_some_and(|n| n.starts_with(start));
    entries.flatten().map(|e| e.path()).filter(fits).collect()
}

/// Folders named by the user: searched before the loader's path.
fn named_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(path) = std::env::var_os("ZELLIGE_NVRTC").map(PathBuf::from) {
        folders.extend(if path.is_file() { path.parent().map(Path::to_owned) } else { Some(path) });
    }
    if let Some(root) = std::env::var_os("CUDA_PATH").map(PathBuf::from) {
        folders.extend(toolkit(&root));
    }
    folders
}

/// Folders where packages install the library: searched after the loader's path.
fn usual_folders() -> Vec<PathBuf> {
    let mut folders = toolkit(Path::new("/usr/local/cuda"));
    for variable in ["CONDA_PREFIX", "VIRTUAL_ENV"] {
        if let Some(prefix) = std::env::var_os(variable).map(PathBuf::from) {
            folders.push(prefix.join("lib"));
            folders.extend(toolkit(&prefix));
            for python in beginning_with(&prefix.join("lib"), "python3") {
                folders.extend(wheels(&python.join("site-packages")));
            }
        }
    }
    folders
}

/// The wheels of the Python at hand; asked last, since starting Python takes longer than all the rest.
fn python_folders() -> Vec<PathBuf> {
    let asked = Command::new("python3").args(["-c", "import sys; print('\\n'.join(sys.path))"]).output();
    let Ok(output) = asked else { return Vec::new() };
    String::from_utf8_lossy(&output.stdout).lines().filter(|l| !l.is_empty()).flat_map(|l| wheels(Path::new(l))).collect()
}

fn toolkit(root: &Path) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"].iter().map(|l| root.join(l)).collect()
}

/// `nvidia/*/lib` under a `site-packages` folder: where the wheels of NVIDIA put their libraries.
fn wheels(site: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = beginning_with(&site.join("nvidia"), "").into_iter().map(|p| p.join("lib")).filter(|p| p.is_dir()).collect();
    // One order on every machine, cu13 before cu12.
    folders.sort();
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_listed_newest_first() {
        let site = tempfile::tempdir().unwrap();
        for name in ["cuda_nvrtc", "cu12", "cu13"] {
            std::fs::create_dir_all(site.path().join("nvidia").join(name).join("lib")).unwrap();
        }
        std::fs::create_dir_all(site.path().join("nvidia/headers_only")).unwrap();
        let names: Vec<_> =
            wheels(site.path()).iter().map(|p| p.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(names, ["cuda_nvrtc", "cu13", "cu12"]);
    }

    #[test]
    fn numbers_of_nccl_are_versions() {
        assert_eq!([22_703, 2708, 20_903].map(version_text), ["2.27.3", "2.7.8", "2.9.3"]);
    }

    #[test]
    fn an_absent_library_is_refused_with_the_command_that_mends_it() {
        let opened = open("none", &["libzellige-does-not-exist.so.1"], "libnone", "pip install none");
        assert!(opened.handle.is_none());
        assert_eq!(opened.found.refusal.as_deref(), Some("libzellige-does-not-exist.so.1 was not found"));
        assert!(opened.found.hint.unwrap().contains("pip install none"));
    }

    #[test]
    fn a_file_that_is_no_library_is_named_in_the_refusal() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libbroken.so"), b"not a library").unwrap();
        // SAFETY of the claim: `load` refuses anything that is not a shared object before running any of it.
        let refusal = load(folder.path().join("libbroken.so")).unwrap_err();
        assert!(reason(&refusal).contains("libbroken.so"), "{}", reason(&refusal));
    }
}
