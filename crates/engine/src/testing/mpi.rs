//! Launchers of MPI on this machine, for tests that start processes under them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `mpirun` of one MPI.
#[derive(Debug, Clone)]
pub struct Mpirun {
    /// `Open MPI` or `MPICH`.
    pub maker: &'static str,
    program: PathBuf,
}

impl Mpirun {
    /// A command that starts the program given as its next argument `processes` times, on however few cores, as whichever user.
    pub fn command(&self, processes: usize) -> Command {
        let mut command = Command::new(&self.program);
        if self.maker == "Open MPI" {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        }
        command.args(["-n", &processes.to_string()]);
        command
    }

    /// A command likewise, that starts as many on this host and as many on a [second](second_host) one.
    pub fn command_on_two_hosts(&self, each: usize, second_host: &Path) -> Command {
        let mut command = self.command(2 * each);
        if self.maker == "Open MPI" {
            command.arg("--host").arg(format!("localhost:{each},{SECOND_HOST}:{each}")).args(["--mca", "plm_rsh_agent"]).arg(second_host);
        } else {
            command.args(["-hosts", &format!("localhost,{SECOND_HOST}"), "-ppn", &each.to_string(), "-launcher", "ssh", "-launcher-exec"]);
            // It takes hosts with the same kernel for one host, whose processes share memory.
            command.arg(second_host).env("UCX_TLS", "tcp,self");
        }
        command
    }
}

/// Name of the second host.
pub const SECOND_HOST: &str = "second-host";

/// Writes a program that serves a launcher as `ssh` to a second host, which is this one by another name, with users of its own, so
/// that its processes share no memory with those of the first; and with a `folder` of its own, if one is given. `None`, which is
/// said, where this machine does not allow such a thing.
///
/// # Panics
/// If it cannot be written.
pub fn second_host(at: &Path, own_folder: Option<&Path>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;

    let apart = ["--user", "--map-root-user", "--uts", "--mount"];
    let mount = own_folder.map_or_else(String::new, |own| format!(" && mount -t tmpfs none '{0}' && cd '{0}'", own.display()));
    if !Command::new("unshare").args(apart).arg("true").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: no second host on this machine, `unshare {}` is not allowed", apart.join(" "));
        return None;
    }
    let script = format!(
        "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nhost=$1; shift\n\
         exec unshare {} sh -c \"hostname $host{mount} && exec sh -c \\\"\\$0\\\"\" \"$*\"\n",
        apart.join(" ")
    );
    let program = at.join("second-host.sh");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(program)
}

/// The launchers of Open MPI and of MPICH on the path, one of each; says `skipped: no mpirun` for one that is missing.
///
/// # Panics
/// If one is missing where `ZELLIGE_REQUIRE_MPI` is set.
pub fn launchers() -> Vec<Mpirun> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = BTreeMap::new();
    for folder in std::env::split_paths(&path) {
        for program in ["mpirun", "mpirun.openmpi", "mpirun.mpich"].map(|name| folder.join(name)).into_iter().filter(|file| file.is_file())
        {
            let Ok(output) = Command::new(&program).arg("--version").output() else { continue };
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let maker = if text.contains("Open MPI") {
                "Open MPI"
            } else if text.contains("HYDRA") {
                "MPICH"
            } else {
                continue;
            };
            found.entry(maker).or_insert(Mpirun { maker, program });
        }
    }
    for maker in ["Open MPI", "MPICH"].into_iter().filter(|maker| !found.contains_key(maker)) {
        assert!(!super::required("ZELLIGE_REQUIRE_MPI"), "ZELLIGE_REQUIRE_MPI is set, but there is no mpirun of {maker}");
        println!("skipped: no mpirun of {maker}");
    }
    found.into_values().collect()
}
