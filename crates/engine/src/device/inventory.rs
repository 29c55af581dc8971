//! Inventory shown by `zellige devices`: each device and library, with the reason where one is not used.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Cpu, cpu, one_line, usable};
use crate::cuda::{self, Cuda, library};
use crate::links::mpi;

/// One device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceInfo {
    /// Device as `--device` takes it: `cpu`, `cuda:0`.
    pub id: String,
    /// The model.
    pub name: String,
    /// Threads and vector instructions, or multiprocessors and compute capability.
    pub detail: String,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Bytes of memory free now.
    pub memory_free: Option<u64>,
    /// Reason why the device cannot be used, with the command that fixes it; `None` when it can.
    pub refusal: Option<String>,
}

/// All devices and libraries.
#[derive(Debug, Clone, Serialize)]
pub struct Inventory {
    /// The CPU, then the GPUs.
    pub devices: Vec<DeviceInfo>,
    /// Driver, NVRTC, cuFFT, NCCL, MPI.
    pub libraries: Vec<library::LibraryStatus>,
    /// CUDA version of the driver and versions of NVRTC, NCCL and MPI, where they are there.
    pub versions: Vec<(&'static str, String)>,
    /// Folder of compiled kernels; `None` when the cache is off.
    pub kernel_cache: Option<PathBuf>,
    /// Pack of kernels in use.
    pub kernel_pack: Option<PathBuf>,
}

/// Looks at everything. Opens each GPU in turn.
pub fn list() -> Inventory {
    let threads = Cpu::new(0).map_or(1, |c| c.threads());
    let mut devices = vec![DeviceInfo {
        id: "cpu".into(),
        name: cpu::name().into(),
        detail: format!("{threads} thread{}, {}", if threads == 1 { "" } else { "s" }, cpu::vectors()),
        memory: Some(cpu::memory()),
        memory_free: cpu::memory_free(),
        refusal: None,
    }];
    match Cuda::count() {
        Ok(count) => devices.extend((0..count).map(gpu)),
        Err(error) => devices.push(DeviceInfo {
            id: "cuda".into(),
            name: "NVIDIA GPUs".into(),
            detail: String::new(),
            memory: None,
            memory_free: None,
            refusal: Some(one_line(&error)),
        }),
    }
    let version = |(major, minor): (i32, i32)| format!("{major}.{minor}");
    let (nccl, nccl_version) = library::nccl();
    let mpi = mpi::found();
    let versions = [
        library::driver_version().map(|v| ("driver for CUDA", version(v))),
        cuda::compiler().ok().map(|(_, v)| ("NVRTC", version(v))),
        nccl_version.map(|v| ("NCCL", v)),
    ];
    let versions = versions.into_iter().flatten().chain(mpi.iter().filter_map(|(_, version)| Some(("MPI", version.clone()?))));
    Inventory {
        devices,
        versions: versions.collect(),
        libraries: [library::driver(), library::compiler(), library::cufft(), nccl]
            .into_iter()
            .cloned()
            .chain(mpi.into_iter().map(|m| m.0))
            .collect(),
        kernel_cache: cuda::cache_folder(),
        kernel_pack: cuda::kernel_pack().map(Path::to_owned),
    }
}

fn gpu(ordinal: usize) -> DeviceInfo {
    let id = format!("cuda:{ordinal}");
    let refusal = usable(ordinal).err().map(|e| one_line(&e));
    // Opened apart from the check above, so that a GPU without a compiler still shows what it is.
    match Cuda::look_at(ordinal) {
        Ok(cuda) => {
            let p = cuda.properties();
            let (major, minor) = p.capability;
            let detail = format!(
                "{} multiprocessors, compute capability {major}.{minor}, L2 {} MiB, shared memory {} KiB a block",
                p.multiprocessors,
                p.l2 >> 20,
                p.shared_per_block >> 10
            );
            DeviceInfo { id, name: p.name.clone(), detail, memory: Some(p.memory), memory_free: cuda.memory_free(), refusal }
        }
        Err(_) => DeviceInfo { id, name: "NVIDIA GPU".into(), detail: String::new(), memory: None, memory_free: None, refusal },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_holds_the_cpu_and_a_reason_for_every_refusal() {
        let inventory = list();
        assert_eq!(inventory.devices[0].id, "cpu");
        assert!(inventory.devices[0].refusal.is_none());
        // MPI libraries of several makers may be there.
        let mut names: Vec<_> = inventory.libraries.iter().map(|l| l.name).collect();
        names.dedup();
        assert_eq!(names, ["driver", "NVRTC", "cuFFT", "NCCL", "MPI"]);
        for library in &inventory.libraries {
            assert_eq!(library.usable(), library.path.is_some(), "{library:?}");
            assert_eq!(library.usable(), library.hint.is_none(), "{library:?}");
        }
        // A version for each of these that is there, and for no other.
        for name in ["NCCL", "MPI"] {
            let usable = inventory.libraries.iter().any(|l| l.name == name && l.usable());
            assert_eq!(usable, inventory.versions.iter().any(|(of, _)| *of == name), "{name}");
        }
        if Cuda::count().is_err() {
            assert!(inventory.devices[1].refusal.is_some());
        }
        serde_json::to_string(&inventory).unwrap();
    }
}
