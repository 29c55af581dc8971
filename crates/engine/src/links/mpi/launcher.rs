//! Programs that start the processes of a run: `mpirun` of Open MPI, `mpiexec` of MPICH, `srun` and others. They are known by the
//! variables that they set.

use std::fmt;
use std::path::{Path, PathBuf};

/// Makers of MPI libraries that differ in how their processes find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    OpenMpi,
    /// MPICH, and Intel's, Cray's and others made of it.
    Mpich,
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::OpenMpi { "Open MPI" } else { "MPICH" })
    }
}

/// Launcher of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Launcher {
    /// Name for messages.
    pub(super) name: &'static str,
    /// Maker whose library it takes; `None` for one that serves several.
    pub(super) maker: Option<Maker>,
    /// Processes that it started, where it tells.
    pub(super) size: Option<usize>,
    /// Number of this one.
    pub(super) rank: Option<usize>,
    /// True if it has left no word by which MPI could link the processes.
    silent: bool,
}

impl Launcher {
    /// The launcher by its variables; `None` where there is none, or it started this process alone.
    pub(super) fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
        let is_set = |name: &str| variable(name).is_some();
        // The innermost first: Slurm's are also set for what `mpirun` starts inside a job.
        let (name, maker, size, rank) = if is_set("OMPI_COMM_WORLD_SIZE") {
            ("mpirun of Open MPI", Some(Maker::OpenMpi), number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_RANK"))
        } else if is_set("PMI_SIZE") && (is_set("HYDI_CONTROL_FD") || is_set("MPI_LOCALNRANKS")) {
            ("mpiexec of MPICH", Some(Maker::Mpich), number("PMI_SIZE"), number("PMI_RANK"))
        } else if is_set("SLURM_STEP_NUM_TASKS") {
            // Not SLURM_NTASKS, which a batch script also has, where one process runs.
            ("srun", None, number("SLURM_STEP_NUM_TASKS"), number("SLURM_PROCID"))
        } else if is_set("PMI_SIZE") {
            ("a launcher with PMI", None, number("PMI_SIZE"), number("PMI_RANK"))
        } else if is_set("PMIX_RANK") {
            ("a launcher with PMIx", None, None, number("PMIX_RANK"))
        } else {
            return None;
        };
        let words = ["PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_CONTROL_PORT", "I_MPI_PMI_LIBRARY"];
        let silent = name == "srun" && !words.into_iter().any(is_set);
        (size != Some(1)).then_some(Self { name, maker, size, rank, silent })
    }

    /// Warning of a launcher after which MPI is likely to end the processes with words of its own, which do not tell what to do.
    pub(super) fn warning(&self) -> Option<&'static str> {
        let warned = self.silent && self.rank.unwrap_or(0) == 0;
        warned.then_some(
            "srun has not told MPI of the other processes: if MPI cannot start them, say `srun --mpi=pmix` for Open MPI or `srun --mpi=pmi2` \
             for MPICH and Intel MPI (`srun --mpi=list` has what there is)",
        )
    }

    /// Fault of an MPI library that does not see the processes which the launcher started: each would do the whole run.
    pub(super) fn contradiction(&self, rank: usize, size: usize) -> Option<String> {
        let counts = self.size.is_some_and(|started| started != size);
        let numbers = self.rank.is_some_and(|number| number != rank);
        let started = self.size.map_or_else(|| "processes".to_owned(), |n| format!("{n} processes"));
        let this = self.rank.map_or_else(String::new, |n| format!(", this is its number {n}"));
        (counts || numbers).then(|| format!("{} started {started}{this}, but MPI has process {rank} of {size} here", self.name))
    }
}

/// Folders of libraries beside the launcher whose child this process is, for an MPI that lies beside the loader's path.
pub(super) fn folders() -> Vec<PathBuf> {
    const NAMES: [&str; 8] = ["mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "orterun", "orted", "prterun", "prted"];
    let mut process = std::os::unix::process::parent_id();
    // A launcher may start a script that starts this program.
    for _ in 0..8 {
        let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        if program.file_name().and_then(|name| name.to_str()).is_some_and(|name| NAMES.contains(&name)) {
            let root = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
            return ["lib", "lib64"].iter().map(|folder| root.join(folder)).collect();
        }
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).and_then(|number| number.trim().parse().ok());
        match parent {
            Some(parent) if parent > 1 => process = parent,
            _ => break,
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(variables: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::detect(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let found = |variables: &[(&str, &str)]| detect(variables).map(|l| (l.name, l.maker, l.size, l.rank));
        let slurm = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4")];
        let open_mpi = [("OMPI_COMM_WORLD_SIZE", "8"), ("OMPI_COMM_WORLD_RANK", "2"), ("PMIX_RANK", "2")];
        let mpich = [("PMI_SIZE", "8"), ("PMI_RANK", "2"), ("HYDI_CONTROL_FD", "7"), ("MPI_LOCALNRANKS", "8")];
        assert_eq!(found(&open_mpi), Some(("mpirun of Open MPI", Some(Maker::OpenMpi), Some(8), Some(2))));
        assert_eq!(found(&mpich), Some(("mpiexec of MPICH", Some(Maker::Mpich), Some(8), Some(2))));
        // Inside a job of Slurm, the variables of both are there: the inner launcher is meant.
        assert_eq!(found(&[&slurm[..], &open_mpi].concat()), found(&open_mpi));
        assert_eq!(found(&[&slurm[..], &mpich].concat()), found(&mpich));
        // `srun --mpi=none`, the usual default.
        let warned = |variables: &[(&str, &str)]| detect(variables).unwrap().warning().is_some();
        let first = [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")];
        assert!(warned(&first) && !warned(&slurm));
        assert!(!warned(&[&first[..], &[("PMIX_RANK", "0")]].concat()) && !warned(&open_mpi) && !warned(&mpich));
        let srun = Some(("srun", None, Some(4), Some(3)));
        assert_eq!(found(&slurm), srun);
        assert_eq!(found(&[&slurm[..], &[("PMI_SIZE", "4"), ("PMI_RANK", "3"), ("PMI_FD", "9")]].concat()), srun);
        assert_eq!(found(&[&slurm[..], &[("PMIX_RANK", "3")]].concat()), srun);
        assert_eq!(found(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]), Some(("a launcher with PMI", None, Some(2), Some(1))));
        assert_eq!(found(&[("PMIX_RANK", "5")]), Some(("a launcher with PMIx", None, None, Some(5))));
    }

    #[test]
    fn a_process_alone_has_no_launcher() {
        assert_eq!(detect(&[]), None);
        // A batch script of Slurm, and one process of each launcher.
        assert_eq!(detect(&[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "1")]), None);
        assert_eq!(detect(&[("SLURM_STEP_NUM_TASKS", "1"), ("PMIX_RANK", "0")]), None);
        assert_eq!(detect(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0"), ("PMIX_RANK", "0")]), None);
        assert_eq!(detect(&[("PMI_SIZE", "1"), ("MPI_LOCALNRANKS", "1")]), None);
    }

    #[test]
    fn processes_that_do_not_see_each_other_are_told() {
        let launcher = detect(&[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "2")]).unwrap();
        assert_eq!(launcher.contradiction(2, 4), None);
        let alone = launcher.contradiction(0, 1).unwrap();
        assert_eq!(alone, "srun started 4 processes, this is its number 2, but MPI has process 0 of 1 here");
        assert!(launcher.contradiction(1, 4).is_some());
        // Of unknown size: all but the first see it.
        let launcher = detect(&[("PMIX_RANK", "1")]).unwrap();
        assert!(launcher.contradiction(0, 1).is_some() && launcher.contradiction(1, 2).is_none());
    }
}
