//! Poisson's equation on the caller's arrays.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use zellige_engine::config::{Format, Input, Source};
use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::device::{Device, host_must_hold};
use zellige_engine::error::{Error, Result};
use zellige_engine::record::{Axis, Centring, ValuesOnGpu};
use zellige_engine::signal;
use zellige_poisson::{Config, Options, Plan, Poisson, Problem, Report, Side, Solution, Status, setup};

use crate::array::{Array, Data};
use crate::device;
use crate::errors::{ForPython, busy, wrong_value};
use crate::memory::{Doubles, OnGpu};

/// Name of the input in messages.
const ORIGIN: &str = "zellige.poisson";
/// Titles of the axes, fastest first.
const AXES: [&str; 3] = ["x", "y", "z"];

/// A plan for one grid, its sides and a method; `zellige.poisson.Plan` documents it.
#[pyclass(frozen, module = "zellige._zellige")]
pub(crate) struct PoissonPlan {
    plan: Mutex<Plan>,
    /// The method and why it was chosen: not asked of the plan, which may be at work.
    method: String,
    /// Problem without a right-hand side, for solves from a guess.
    problem: Problem<'static>,
    options: Options,
    device: Device,
    config: Config,
}

/// The checked input of a table in JSON.
fn typed(tables: &str) -> Result<Input<Config>> {
    let source = Source::parse(tables, Format::Json, ORIGIN)?.unseen();
    source.typed::<Poisson>()
}

/// Names the package where an error calls the input something else.
fn named(error: Error) -> Error {
    match error {
        Error::Input { problems, .. } => Error::Input { origin: ORIGIN.into(), problems },
        other => other,
    }
}

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    /// The last look for signals, and what Python's handler of one raised.
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
    /// A solve of this thread is under way, whose plan is locked.
    static SOLVING: Cell<bool> = const { Cell::new(false) };
}

/// Has Python's own handlers called, which raise `KeyboardInterrupt` as a rule.
fn raised() -> Option<&'static str> {
    if LOOKED.get().is_some_and(|then| then.elapsed() < LOOK) {
        return None;
    }
    LOOKED.set(Some(Instant::now()));
    let raised = Python::try_attach(|py| py.check_signals().err())??;
    RAISED.set(Some(raised));
    Some("SIGINT")
}

/// Mark of a solve of this thread, which goes with it, however it ends.
struct Solving;

impl Solving {
    fn begin() -> PyResult<Self> {
        if SOLVING.replace(true) {
            return Err(busy("a handler of a signal cannot solve while a solve of its thread is under way"));
        }
        Ok(Self)
    }
}

impl Drop for Solving {
    fn drop(&mut self) {
        SOLVING.set(false);
    }
}

/// Returns true in the thread that Python calls handlers of signals in.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main: u64 = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
    Ok(main == threading.call_method0("get_ident")?.extract::<u64>()?)
}

/// Solves without the interpreter's lock; in the main thread what a handler of a signal raises ends it between two steps.
fn interruptible<R: Send>(py: Python<'_>, solve: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    if !is_main_thread(py)? {
        return py.detach(|| solve().map_err(named)).for_python(py);
    }
    let _solving = Solving::begin()?;
    RAISED.set(None);
    let found = py.detach(|| signal::while_asking(raised, solve).map_err(named));
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => found.for_python(py),
    }
}

impl PoissonPlan {
    fn new_from(tables: &str, sides: &[(usize, usize, Vec<f64>)]) -> Result<Self> {
        let Input { config, run, folder, .. } = typed(tables)?;
        let device = device::open(ORIGIN, (run.device != "auto").then_some(run.device.as_str()), run.threads)?;
        let nodes: u64 = config.grid.nodes.iter().map(|n| *n as u64).fold(1, u64::saturating_mul);
        if let Device::Cpu(_) = device {
            // Right-hand side and solution at least.
            host_must_hold(nodes.saturating_mul(16), format!("a plan of {nodes} nodes"))?;
        }
        let mut problem = setup::problem(&config, &folder)?;
        problem.rhs = Vec::new().into();
        for (axis, end, values) in sides {
            let bc = problem.sides[*axis][*end].bc;
            problem.sides[*axis][*end] = Side { bc, values: zellige_poisson::SideValues::Nodes(values.clone().into()) };
        }
        let options = config.options();
        let plan = Plan::new(&problem, &options, &device)?;
        let method = plan.method().to_owned();
        Ok(Self { plan: Mutex::new(plan), method, problem, options, device, config })
    }

    fn work(&self, rhs: &[f64], guess: Option<&[f64]>) -> Result<Solution> {
        match guess {
            Some(guess) => {
                let mut problem = self.problem.clone().guess(guess);
                problem.rhs = rhs.into();
                zellige_poisson::solve(&problem, &self.options, &self.device)
            }
            None => self.plan.lock().unwrap_or_else(PoisonError::into_inner).solve(rhs),
        }
    }

    /// The solution with its axes.
    fn array(&self, u: Data, shape: &[usize]) -> Array {
        let grid = &self.config.grid;
        let steps = self.problem.grid();
        let axes: Vec<Axis> = (0..self.config.dimensions())
            .map(|d| Axis {
                name: AXES[d].into(),
                unit: String::new(),
                origin: grid.origin.get(d).copied().unwrap_or(0.0),
                spacing: steps.axes[d].h,
                len: grid.nodes[d],
            })
            .collect();
        Array::new(u, shape.to_vec(), "u").described("solution u", "", &axes, Centring::Node)
    }

    fn fits(&self, name: &str, lengths: &[usize]) -> PyResult<()> {
        let shape: Vec<usize> = self.config.grid.nodes.iter().rev().copied().collect();
        if lengths == shape {
            return Ok(());
        }
        Err(wrong_value(format!("`{name}` has the shape {lengths:?} where the plan is for {shape:?}")))
    }

    /// GPU of the plan.
    fn gpu(&self) -> PyResult<&Cuda> {
        match &self.device {
            Device::Cuda(cuda) => Ok(cuda),
            Device::Cpu(_) => Err(wrong_value(
                "`rho` is in the memory of a GPU, and the plan is for the CPU\n\nhint: make the plan with `device=\"cuda\"`, or copy `rho` to the host",
            )),
        }
    }

    /// Solves where the values are.
    fn work_on_gpu(&self, cuda: &Cuda, rhs: &Buffer<f64>) -> Result<(Buffer<f64>, Report)> {
        let mut u = cuda.pool().alloc_zeros(rhs.len(), "solution of `zellige.poisson`")?;
        let report = self.plan.lock().unwrap_or_else(PoisonError::into_inner).solve_on_gpu(rhs, &mut u)?;
        cuda.synchronize()?;
        Ok((u, report))
    }
}

#[pymethods]
impl PoissonPlan {
    /// From the tables of an input in JSON, whose right-hand side is not read, and values along sides: axis, end, values.
    #[new]
    fn new(py: Python<'_>, tables: &str, sides: Vec<(usize, usize, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let sides = sides.into_iter().map(|(axis, end, values)| Ok((axis, end, Doubles::new(&values)?.values().to_vec())));
        let sides = sides.collect::<PyResult<Vec<_>>>()?;
        py.detach(|| Self::new_from(tables, &sides).map_err(named)).for_python(py)
    }

    /// Solution and report (JSON) for a right-hand side, from a guess or from zero; in the memory of the plan's GPU where the
    /// right-hand side is there.
    #[pyo3(signature = (rhs, guess=None))]
    fn solve(&self, py: Python<'_>, rhs: &Bound<'_, PyAny>, guess: Option<&Bound<'_, PyAny>>) -> PyResult<(Array, bool, String)> {
        let (data, shape, report) = if let Some(rhs) = OnGpu::of(rhs, "rho")? {
            self.fits("rho", rhs.shape())?;
            if guess.is_some() {
                return Err(wrong_value("a `guess` is taken with arrays of the host\n\nhint: leave it out, or copy `rho` to the host"));
            }
            let cuda = self.gpu()?;
            let values = rhs.buffer(cuda)?;
            let (u, report) = interruptible(py, || self.work_on_gpu(cuda, &values))?;
            (Data::OnGpu(ValuesOnGpu::F64(u)), rhs.shape().to_vec(), report)
        } else {
            let rhs = Doubles::new(rhs)?;
            let guess = guess.map(Doubles::new).transpose()?;
            self.fits("rho", rhs.shape())?;
            if let Some(guess) = &guess {
                self.fits("guess", guess.shape())?;
            }
            let (values, from) = (rhs.values(), guess.as_ref().map(Doubles::values));
            let Solution { u, report } = interruptible(py, || self.work(values, from))?;
            (Data::F64(u), rhs.shape().to_vec(), report)
        };
        let converged = matches!(report.status, Status::Converged | Status::PrecisionFloor);
        let text = serde_json::to_string(&report).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        Ok((self.array(data, &shape), converged, text))
    }

    /// The method and why it was chosen.
    #[getter]
    fn method(&self) -> &str {
        &self.method
    }

    /// Model of the device.
    #[getter]
    fn device(&self) -> &str {
        self.device.name()
    }
}
