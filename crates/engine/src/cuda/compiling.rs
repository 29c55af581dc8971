//! Programs under way: compiled on all cores while the host does other things, each once in a process.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::nvrtc::Cubin;
use super::program::Recipe;
use crate::error::Result;

/// Progress of the compilation of a program.
#[derive(Default)]
enum State {
    #[default]
    UnderWay,
    Done(Arc<Cubin>),
    Failed,
}

/// A program that is being compiled, or was.
#[derive(Default)]
struct Pending {
    state: Mutex<State>,
    told: Condvar,
}

/// Compilations by key. Finished ones stay: a second species asks for the program of the first.
static UNDER_WAY: Mutex<BTreeMap<String, Arc<Pending>>> = Mutex::new(BTreeMap::new());

/// Groups of programs that are being compiled.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Mark of a group at work.
struct AtWork;

impl AtWork {
    fn begin() -> Self {
        AT_WORK.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The process ends: no further kernel is begun.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The process that has the threads at work; a fork of it has none.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The end of a process waits for kernels that were begun, each of which takes seconds at most.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits at the end of its thread until no thread is in the compiler.
struct WaitsAtEnd;

impl Drop for WaitsAtEnd {
    fn drop(&mut self) {
        if OWNER.load(Ordering::SeqCst) != std::process::id() {
            return;
        }
        if is_main_thread() {
            ENDING.store(true, Ordering::SeqCst);
        }
        let begun = Instant::now();
        while AT_WORK.load(Ordering::SeqCst) > 0 && begun.elapsed() < LONGEST {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_main_thread() -> bool {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: both only tell a number.
        unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// Has the end of this thread wait for kernels that are being compiled. That of the main thread comes before a process takes down
/// the compiler's own memory, under its threads.
pub(crate) fn hold_the_end() {
    thread_local!(static HELD: WaitsAtEnd = const { WaitsAtEnd });
    OWNER.store(std::process::id(), Ordering::SeqCst);
    HELD.with(|_| ());
}

/// Ends the process at once, without waiting for what would not be used, if programs are still being compiled. To be called last.
pub fn end_if_compiling(code: u8) {
    if AT_WORK.load(Ordering::SeqCst) > 0 {
        let _ = std::io::stdout().flush();
        // SAFETY: it does not come back, and nobody relies on what an ordinary end would run.
        unsafe { libc::_exit(code.into()) }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    /// The first word holds.
    fn tell(&self, cubin: Option<Arc<Cubin>>) {
        let mut state = held(&self.state);
        if matches!(*state, State::UnderWay) {
            *state = cubin.map_or(State::Failed, State::Done);
        }
        self.told.notify_all();
    }

    fn wait(&self) -> Option<Arc<Cubin>> {
        let state = self.told.wait_while(held(&self.state), |state| matches!(state, State::UnderWay));
        match &*state.unwrap_or_else(PoisonError::into_inner) {
            State::Done(cubin) => Some(cubin.clone()),
            _ => None,
        }
    }
}

/// The program under `key`, waited for if it is under way; none where nobody compiles it, or it failed.
pub(super) fn wait(key: &str) -> Option<Arc<Cubin>> {
    let pending = held(&UNDER_WAY).get(key).cloned();
    pending?.wait()
}

/// Begins to compile `recipes` for `arch`, each with its key, and puts them into `cache`. Does not wait. What is under way already
/// is left.
pub(super) fn begin(recipes: Vec<(String, Recipe)>, arch: &str, cache: &Cache) {
    let mut jobs = Vec::new();
    for (key, recipe) in recipes {
        let mut under_way = held(&UNDER_WAY);
        if !under_way.contains_key(&key) {
            let pending = Arc::new(Pending::default());
            under_way.insert(key.clone(), pending.clone());
            jobs.push(CompileJob { key, recipe, pending });
        }
    }
    if jobs.is_empty() {
        return;
    }
    if is_main_thread() {
        hold_the_end();
    }
    let (arch, cache, jobs) = (arch.to_owned(), cache.clone(), Arc::new(jobs));
    let work = {
        let (jobs, at_work) = (jobs.clone(), AtWork::begin());
        move || {
            compile(&jobs, &arch, &cache);
            drop(at_work);
        }
    };
    if thread::Builder::new().name("zellige-compile".into()).spawn(work).is_err() {
        // Without threads whoever waits compiles for himself.
        jobs.iter().for_each(|job| job.pending.tell(None));
    }
}

struct CompileJob {
    key: String,
    recipe: Recipe,
    pending: Arc<Pending>,
}

impl Drop for CompileJob {
    fn drop(&mut self) {
        // A thread that panicked leaves nobody waiting.
        self.pending.tell(None);
    }
}

/// All kernels of all jobs, in their order, on all cores.
fn compile(jobs: &[CompileJob], arch: &str, cache: &Cache) {
    let parts: Vec<(usize, usize)> =
        jobs.iter().enumerate().flat_map(|(i, job)| (0..job.recipe.kernels.len()).map(move |k| (i, k))).collect();
    let made: Vec<Mutex<Vec<Option<Result<Cubin>>>>> =
        jobs.iter().map(|job| Mutex::new(job.recipe.kernels.iter().map(|_| None).collect())).collect();
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let work = || {
        while let Some(&(i, k)) = parts.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !ENDING.load(Ordering::SeqCst)) {
            let job = &jobs[i];
            let part = job.recipe.part(k, arch);
            let mut all = held(&made[i]);
            all[k] = Some(part);
            if all.iter().all(Option::is_some) {
                let cubin = all.drain(..).flatten().collect::<Result<Vec<_>>>().map(Cubin::joined).ok().map(Arc::new);
                tracing::debug!("compiled `{}` for {arch} after {:.0} ms", job.recipe.name, 1e3 * begun.elapsed().as_secs_f64());
                // First, since the process may end as soon as nobody waits.
                if let Some(cubin) = &cubin {
                    cache.put(&job.key, cubin);
                }
                job.pending.tell(cubin);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(parts.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // With fewer threads it takes longer.
            let _ = thread::Builder::new().name("zellige-compile".into()).spawn_scoped(scope, work);
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Set in the process that ends while kernels are compiled.
    const CHILD: &str = "ZELLIGE_TEST_ENDS";

    /// Kernels that take the compiler some tenths of a second each.
    fn slow() -> Recipe {
        let loops = "x = x * 1.0001 + sin(x * I) * sqrt(fabs(x) + I);\n".repeat(100);
        let names: Vec<String> = (0..12).map(|k| format!("slow{k}")).collect();
        let kernel = |name: &String| {
            format!(
                "extern \"C\" __global__ void {name}(double* v) {{ double x = v[threadIdx.x]; {} v[threadIdx.x] = x; }}\n",
                loops.replace('I', &name[4..])
            )
        };
        let source: String = names.iter().map(kernel).collect();
        Recipe::new("slow", &[&source], &[], &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn a_process_that_ends_while_kernels_are_compiled_ends_well() {
        if std::env::var_os(CHILD).is_some() {
            let folder = tempfile::tempdir().unwrap();
            hold_the_end();
            begin(vec![("slow".into(), slow())], "sm_90", &Cache::at(folder.path()));
            thread::sleep(Duration::from_millis(300));
            assert!(AT_WORK.load(Ordering::SeqCst) > 0, "it was compiled too soon to tell");
            return;
        }
        if !testing::compiler() {
            return;
        }
        let name = "cuda::compiling::tests::a_process_that_ends_while_kernels_are_compiled_ends_well";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let done = child.args(["--exact", name]).env(CHILD, "1").output().unwrap();
        assert!(done.status.success(), "{:?}: {}", done.status, String::from_utf8_lossy(&done.stdout));
    }
}
