//! Launchers of MPI on this machine, for tests that start processes under them.

use std::collections::BTreeMap;
use std::path::PathBuf;
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
