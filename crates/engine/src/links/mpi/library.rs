//! Choice of an MPI library: the file, and the table that it takes.
//!
//! `ZELLIGE_MPI` names a file. Otherwise the folders beside the launcher are looked at, then the loader's path, for the MPI ABI
//! first (`libmpi_abi.so`), then for Open MPI and MPICH by their own names. A library of another maker than the launcher's is
//! passed over: its processes would not find each other.

use std::ffi::c_int;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use super::launcher::{Launcher, Maker, folders};
use super::table::{self, Constants, Number, Pointer, Table};
use crate::cuda::library::{LibraryStatus, reason};
use crate::error::{Error, Result};

/// Files, the first that serves is used. Open MPI had number 12 before 40, so a name does not tell the maker.
const FILES: [&str; 8] = [
    "libmpi_abi.so",
    "libmpi_abi.so.1",
    "libmpi_abi.so.0",
    "libmpi.so.40",
    "libmpi.so.12",
    "libmpich.so.12",
    "libmpi.so",
    "libmpi_cray.so.12",
];
/// Variable that names a file, or switches MPI off.
const VARIABLE: &str = "ZELLIGE_MPI";

/// Binary interface of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    Abi,
    OpenMpi,
    Mpich,
}

/// Functions of a library, by its kind of handles.
#[derive(Debug)]
pub(super) enum Functions {
    Pointers(Table<Pointer>),
    Numbers(Table<Number>),
}

/// An opened library. It stays loaded: none is made to be unloaded after use.
#[derive(Debug)]
pub(super) struct Library {
    path: PathBuf,
    /// Name and version: `Open MPI v4.1.4`.
    pub(super) version: String,
    pub(super) functions: Functions,
}

/// User's word on MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    Off,
    File(PathBuf),
    Any,
}

fn wish() -> Wish {
    match std::env::var_os(VARIABLE) {
        Some(value) if value == "off" => Wish::Off,
        Some(value) if !value.is_empty() => Wish::File(value.into()),
        _ => Wish::Any,
    }
}

/// Returns true if the user has switched MPI off: processes of a launcher are then runs of their own.
pub(super) fn is_off() -> bool {
    wish() == Wish::Off
}

/// Opens the library for processes of this launcher.
pub(super) fn open(launcher: &Launcher) -> Result<Library> {
    search(Some(launcher)).map_err(|reasons| Error::Device {
        device: "mpi".into(),
        message: format!("{} started processes that MPI has to link, but {reasons}", launcher.name),
        hint: Some(format!(
            "load the module of the launcher's MPI or name its library in {VARIABLE}=FILE; with {VARIABLE}=off each process is a run of its \
             own"
        )),
    })
}

/// Looks for libraries without starting MPI, that which is taken without a launcher first; their versions are given apart.
pub fn found() -> Vec<(LibraryStatus, Option<String>)> {
    let status = |path, refusal: Option<String>, hint: &str| {
        let hint = refusal.is_some().then(|| hint.to_owned());
        LibraryStatus { name: "MPI", path, refusal, hint }
    };
    if is_off() {
        return vec![(status(None, Some(format!("{VARIABLE}=off")), "unset the variable"), None)];
    }
    let first = match search(None) {
        Ok(library) => library,
        Err(reasons) => {
            let hint = format!("for runs under `mpirun`: `apt install openmpi-bin`, a module, or name the library in {VARIABLE}");
            return vec![(status(None, Some(reasons), &hint), None)];
        }
    };
    // Those that the loader knows of other makers, which a launcher of theirs wants.
    let others = if matches!(wish(), Wish::File(_)) { &[][..] } else { &FILES[..] };
    let others = others.iter().filter_map(|file| opened(Path::new(file), None).ok()).map(|(library, handle)| {
        // Not every library bears to be closed.
        std::mem::forget(handle);
        library
    });
    let mut found: Vec<(LibraryStatus, Option<String>)> = Vec::new();
    for library in std::iter::once(first).chain(others) {
        let path = loaded(&library.path);
        if found.iter().all(|(status, _)| status.path.as_ref() != Some(&path)) {
            found.push((status(Some(path), None, ""), Some(library.version)));
        }
    }
    found
}

/// The file that the loader has taken for a name without a folder.
fn loaded(name: &Path) -> PathBuf {
    if name.components().count() > 1 {
        return name.canonicalize().unwrap_or_else(|_| name.to_owned());
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let file = name.to_string_lossy();
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    // `libmpi.so.40` is a link to `libmpi.so.40.30.4`, and `libmpi.so` to that.
    let of_name = |path: &&str| path.rsplit('/').next().is_some_and(|last| last.starts_with(&*file));
    paths.filter(of_name).map(PathBuf::from).next().unwrap_or_else(|| name.to_owned())
}

fn search(launcher: Option<&Launcher>) -> Result<Library, String> {
    if let Wish::File(file) = wish() {
        return attempt(&file, None).map_err(|reason| format!("`{}` ({VARIABLE}) cannot be used: {reason}", file.display()));
    }
    let beside = launcher.map(|_| folders()).unwrap_or_default();
    let beside = beside.iter().flat_map(|folder| FILES.iter().map(move |file| folder.join(file))).filter(|file| file.is_file());
    let mut reasons = Vec::new();
    for file in beside.chain(FILES.iter().map(PathBuf::from)) {
        match attempt(&file, launcher.and_then(|l| l.maker)) {
            Ok(library) => return Ok(library),
            Err(reason) if is_absent(&file, &reason) => {}
            Err(reason) => reasons.push(format!("`{}`: {reason}", file.display())),
        }
    }
    if reasons.is_empty() { Err(format!("no MPI library was found ({})", FILES.join(", "))) } else { Err(reasons.join("; ")) }
}

/// Returns true if the loader does not know the file, which is no fault; it says the same of another library that the file needs.
fn is_absent(file: &Path, reason: &str) -> bool {
    file.to_str().is_some_and(|name| reason.starts_with(name)) && reason.contains("No such file")
}

/// Opens a file for good, if it is a library of this maker.
fn attempt(file: &Path, maker: Option<Maker>) -> Result<Library, String> {
    let (library, handle) = opened(file, maker)?;
    // Plugins of a library look for its symbols among those of the program.
    // SAFETY: as when it was opened; it is open already.
    let shared = unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }.map_err(|e| reason(&e))?;
    std::mem::forget((handle, shared));
    Ok(library)
}

/// Opens a file for this process alone, if it is a library of this maker. Its functions are there as long as the handle is.
fn opened(file: &Path, maker: Option<Maker>) -> Result<(Library, Handle), String> {
    // Kept to itself until it is chosen: symbols of one library must not serve another.
    // SAFETY: only MPI libraries are named here, by the user or by their usual names; their initialisers have no preconditions.
    let handle = unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| reason(&e))?;
    let text = table::version(&handle)?;
    // SAFETY: the address of a variable is asked for, and nothing is read from there.
    let has_open_mpi = unsafe { handle.get::<*mut c_int>(b"ompi_mpi_comm_world") }.is_ok();
    let abi = has_abi_name(file) || !has_open_mpi;
    let interface = interface(if abi { table::abi_version(&handle) } else { 0 }, has_open_mpi, &text)?;
    if let (Some(wanted), Some(there)) = (maker, made_by(has_open_mpi, &text))
        && wanted != there
    {
        return Err(format!("it is made by {there}, the launcher by {wanted}"));
    }
    let functions = match interface {
        Interface::Abi => Functions::Pointers(Table::bind(&handle, Constants::of_abi())?),
        Interface::OpenMpi => Functions::Pointers(Table::bind(&handle, Constants::of_open_mpi(&handle)?)?),
        Interface::Mpich => Functions::Numbers(Table::bind(&handle, Constants::MPICH)?),
    };
    let abi = if interface == Interface::Abi { ", MPI ABI" } else { "" };
    Ok((Library { path: file.to_owned(), version: short(&text) + abi, functions }, handle))
}

fn has_abi_name(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains("mpi_abi"))
}

/// Interface by version of the ABI, the symbols of Open MPI and the version's text.
fn interface(abi: c_int, has_open_mpi: bool, text: &str) -> Result<Interface, String> {
    match abi {
        1 => return Ok(Interface::Abi),
        2.. => return Err(format!("it speaks version {abi} of the MPI ABI, this program version 1")),
        _ => {}
    }
    match made_by(has_open_mpi, text) {
        Some(Maker::OpenMpi) if has_open_mpi => Ok(Interface::OpenMpi),
        Some(Maker::Mpich) => Ok(Interface::Mpich),
        _ => Err(format!("`{}` has neither the MPI ABI nor the interface of Open MPI or MPICH", short(text))),
    }
}

/// Maker by the symbols of Open MPI and the version's text.
fn made_by(has_open_mpi: bool, text: &str) -> Option<Maker> {
    let is = |names: &[&str]| names.iter().any(|name| text.contains(name));
    if has_open_mpi || is(&["Open MPI"]) {
        Some(Maker::OpenMpi)
    } else if is(&["MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"]) {
        Some(Maker::Mpich)
    } else {
        None
    }
}

/// Name and version in a few words, of a text that may have many lines.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(',').next().unwrap_or_default().replace("Version:", "").replace(" for Linux* OS", "");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_MPI: &str = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
    const MPICH: &str = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\nMPICH ABI:\t14:2:2";
    const INTEL: &str = "Intel(R) MPI Library 2021.18.1 for Linux* OS\n";
    const CRAY: &str = "MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)\nMPI BUILD INFO : Tue May 23";

    #[test]
    fn tables_are_chosen_by_the_abi_then_by_the_maker() {
        for text in [MPICH, INTEL, CRAY, "MVAPICH2 Version      :\t2.3.7"] {
            assert_eq!(interface(0, false, text), Ok(Interface::Mpich), "{text}");
            assert_eq!(interface(1, false, text), Ok(Interface::Abi), "{text}");
            assert_eq!(made_by(false, text), Some(Maker::Mpich), "{text}");
        }
        assert_eq!(interface(0, true, OPEN_MPI), Ok(Interface::OpenMpi));
        assert_eq!(interface(0, true, "IBM Spectrum MPI 10.4"), Ok(Interface::OpenMpi));
        assert_eq!(interface(1, true, OPEN_MPI), Ok(Interface::Abi));
        assert_eq!(made_by(false, OPEN_MPI), Some(Maker::OpenMpi));
        // Neither its symbols nor the ABI: handles are unknown.
        assert!(interface(0, false, OPEN_MPI).is_err());
        assert!(interface(0, false, "HPE MPT 2.30").unwrap_err().contains("HPE MPT 2.30"));
        assert!(interface(2, false, MPICH).unwrap_err().contains("version 2"));
    }

    #[test]
    fn versions_are_told_in_a_few_words() {
        let texts = [OPEN_MPI, MPICH, INTEL, CRAY].map(short);
        assert_eq!(texts[..3], ["Open MPI v4.1.4", "MPICH 4.0.2", "Intel(R) MPI Library 2021.18.1"]);
        assert_eq!(texts[3], "MPI VERSION : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)");
    }

    #[test]
    fn a_file_that_is_no_mpi_is_refused() {
        let refusal = attempt(Path::new("libc.so.6"), None).unwrap_err();
        assert!(refusal.contains("MPI_Get_library_version"), "{refusal}");
        let absent = Path::new("libzellige-does-not-exist.so.1");
        assert!(is_absent(absent, &attempt(absent, None).unwrap_err()));
        let needs = "libfabric.so.1: cannot open shared object file: No such file or directory";
        assert!(!is_absent(Path::new("libmpi.so.40"), needs));
        assert!(has_abi_name(Path::new("/opt/lib/libmpi_abi.so.1")) && !has_abi_name(Path::new("/opt/mpi_abi/libmpi.so")));
    }
}
