//! A run between its steps.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use num_complex::Complex;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use zellige_cli::session::{self, Address, InputText, Settings, Told};
use zellige_engine::cuda::Cuda;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{FieldOnGpu, GivenValues, Record, Row};
use zellige_engine::sim::Clock;

use crate::array::{Array, Data};
use crate::errors::{ForPython, busy, wrong_type};
use crate::memory::{Doubles, Value, Values, column_on_gpu, values_on_gpu};
use crate::ptycho::{self, ScanArguments};
use crate::record;

/// Time from one word on the progress to the next at least: each takes the interpreter.
const BETWEEN: Duration = Duration::from_millis(200);

type Work = Box<dyn session::Session>;
/// A row: step, time, and names, units and values of the scalars.
type StepRow = (u64, Option<f64>, Vec<(&'static str, &'static str, f64)>);

/// A run; `zellige.Run` documents it.
#[pyclass(frozen, module = "zellige._zellige")]
pub(crate) struct Session {
    run: Mutex<Work>,
    solver: &'static str,
    device: String,
    plan: Vec<(String, String)>,
    warnings: Vec<String>,
    /// Next word on the progress, in whichever call.
    next_word: Arc<Mutex<Instant>>,
}

impl Session {
    /// The run, unless another thread of Python is at it: waiting for that one with the interpreter held would never end.
    fn take(&self) -> PyResult<MutexGuard<'_, Work>> {
        match self.run.try_lock() {
            Ok(run) => Ok(run),
            Err(TryLockError::Poisoned(run)) => Ok(run.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy("another thread is working on this run: wait until it is done")),
        }
    }

    /// Does `work` on the run while other threads of Python go on.
    fn apart<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Work) -> Result<T> + Send) -> PyResult<T> {
        let mut run = self.take()?;
        let run: &mut Work = &mut run;
        py.detach(|| work(run)).for_python(py)
    }

    /// The GPU of the run, in whose memory `name` is given.
    fn gpu_of(&self, py: Python<'_>, name: &str) -> PyResult<Cuda> {
        let found = self.take()?.gpu().for_python(py)?;
        found.ok_or_else(|| {
            let message = format!("`{name}` is in the memory of a GPU, and the run computes on the CPU");
            wrong_type(format!("{message}\n\nhint: give it in host memory, `cupy.asnumpy(..)`, or make the run with `device=\"cuda\"`"))
        })
    }

    /// [`Session::apart`], while `progress` is called now and then with the step, the part done and the wall time in seconds.
    fn told<T: Send>(&self, py: Python<'_>, progress: Option<Py<PyAny>>, work: impl FnOnce(&mut Work) -> Result<T> + Send) -> PyResult<T> {
        let pressed = Arc::new(Mutex::new(None));
        let told = progress.map(|progress| teller(progress, self.next_word.clone(), pressed.clone()));
        let result = self.apart(py, |run| {
            run.tell(told);
            let result = work(run);
            run.tell(None);
            result
        });
        // Python's own handler of the signal was called within `progress`, and is not called again.
        let pressed = pressed.lock().unwrap_or_else(PoisonError::into_inner).take();
        pressed.map_or(result, Err)
    }
}

/// Caller of a function of Python. A bar that fails ends no run; Ctrl-C in it reaches the run by its own way, and is put into
/// `pressed`.
fn teller(progress: Py<PyAny>, next: Arc<Mutex<Instant>>, pressed: Arc<Mutex<Option<PyErr>>>) -> Told {
    Box::new(move |told| {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < *next {
            return;
        }
        *next = Instant::now() + BETWEEN;
        drop(next);
        Python::attach(|py| match progress.call1(py, (told.clock.step, told.fraction, told.wall.as_secs_f64())) {
            Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
                *pressed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            Err(error) => error.write_unraisable(py, None),
            Ok(_) => {}
        });
    })
}

#[pymethods]
impl Session {
    /// Sets a run up: from the name of a file, or from its tables in JSON, to which scans in memory may belong.
    #[new]
    #[pyo3(signature = (file, json, overrides, device, threads, output, resume, scans=None))]
    fn new(
        py: Python<'_>,
        file: Option<PathBuf>,
        json: Option<String>,
        overrides: Vec<String>,
        device: Option<String>,
        threads: Option<usize>,
        output: Option<PathBuf>,
        resume: Option<PathBuf>,
        scans: Option<Vec<ScanArguments<'_>>>,
    ) -> PyResult<Self> {
        let scans = scans.map(|scans| scans.into_iter().map(ptycho::scan).collect::<PyResult<Vec<_>>>()).transpose()?;
        let input = match (file, json) {
            (Some(file), _) => InputText::File(file),
            (None, json) => InputText::Json(json.unwrap_or_default()),
        };
        let settings = Settings { device, threads, overrides, output, resume };
        let set_up = || match (scans, &input) {
            (Some(scans), InputText::Json(tables)) => session::open_scans(tables, scans, &settings),
            _ => session::open(&input, &settings),
        };
        let run = py.detach(set_up).for_python(py)?;
        let (plan, warnings) = (run.plan().lines.clone(), run.plan().warnings.clone());
        let (solver, device) = (run.solver(), run.device().to_owned());
        Ok(Self { run: Mutex::new(run), solver, device, plan, warnings, next_word: Arc::new(Mutex::new(Instant::now())) })
    }

    /// Name of the solver.
    #[getter]
    fn solver(&self) -> &'static str {
        self.solver
    }

    /// Model of the device.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// Lines of the plan: label and text.
    #[getter]
    fn plan(&self) -> Vec<(String, String)> {
        self.plan.clone()
    }

    /// Warnings of the plan.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Finished steps, and physical time where there is one.
    fn clock(&self) -> PyResult<(u64, Option<f64>)> {
        let Clock { step, time } = self.take()?.clock();
        Ok((step, time))
    }

    /// Ending, status and message of a run that is at its end.
    fn outcome(&self) -> PyResult<Option<(String, &'static str, String)>> {
        Ok(self.take()?.outcome().map(|o| (format!("{:?}", o.ending).to_lowercase(), o.status, o.message)))
    }

    /// Serves the live page, in place of an earlier one; returns its address, and the command that brings it to another machine.
    #[pyo3(signature = (port=None, address="127.0.0.1", steer=false))]
    fn live(&self, py: Python<'_>, port: Option<u16>, address: &str, steer: bool) -> PyResult<(String, Option<String>)> {
        let fault = |message: String| Error::input("the live page", Problem::new("address", message));
        let own: Address = address.parse().map_err(fault).for_python(py)?;
        let own = Address { port: port.or(own.port), ..own };
        self.apart(py, move |run| run.live(&own, steer))
    }

    /// Makes steps and returns how many; `progress` is called now and then with the step, the part of the run and the seconds.
    #[pyo3(signature = (n, progress=None))]
    fn step(&self, py: Python<'_>, n: u64, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        self.told(py, progress, |run| run.step(n))
    }

    /// Rows from number `first` on: step, time, and names, units and values of the scalars.
    fn rows(&self, first: usize) -> PyResult<Vec<StepRow>> {
        let run = self.take()?;
        let row = |(clock, row): &(Clock, Row)| (clock.step, clock.time, row.0.iter().map(|s| (s.name, s.unit, s.value)).collect());
        Ok(run.rows().iter().skip(first).map(row).collect())
    }

    /// Results as they stand: kind, name and content of each.
    fn records(&self, py: Python<'_>) -> PyResult<Vec<record::Named>> {
        let records = self.apart(py, |run| run.records())?;
        record::all(py, records)
    }

    /// A field by its name, also where it is no result of the run.
    #[pyo3(signature = (name) -> "Array | None")]
    fn field(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let found = self.apart(py, |run| run.field(name))?;
        Ok(record::all(py, found.into_iter().collect())?.pop().map(|(_, _, field)| field))
    }

    /// A copy of a field in the memory of the run's GPU.
    fn field_on_gpu(&self, py: Python<'_>, name: &str) -> PyResult<Array> {
        let FieldOnGpu { field, values } = self.apart(py, |run| run.field_on_gpu(name))?;
        Ok(record::array(Data::OnGpu(values), &field))
    }

    /// Copies of the columns of the particles of a species in the memory of the run's GPU.
    #[pyo3(signature = (species) -> "dict[str, Array] | None")]
    fn particles_on_gpu(&self, py: Python<'_>, species: &str) -> PyResult<Option<Py<PyAny>>> {
        let found = self.apart(py, |run| run.particles_on_gpu(species))?;
        found.map(|table| record::columns_on_gpu(py, table)).transpose()
    }

    /// Columns of the particles of a species.
    #[pyo3(signature = (species) -> "dict[str, Array] | None")]
    fn particles(&self, py: Python<'_>, species: &str) -> PyResult<Option<Py<PyAny>>> {
        match self.apart(py, |run| run.particles(species))? {
            Some(Record::Table(table)) => record::columns(py, table).map(Some),
            _ => Ok(None),
        }
    }

    /// Sets a field of the state, from real or complex numbers of double precision in C order.
    fn set_field(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let kind: String = values.getattr("__array_interface__")?.get_item("typestr")?.extract()?;
        if kind == <Complex<f64> as Value>::CODE {
            let array = Values::<Complex<f64>>::new(values)?;
            let (shape, values) = (array.shape().to_vec(), array.values());
            return self.apart(py, |run| run.set_field(name, &shape, GivenValues::Complex(values)));
        }
        let array = Doubles::new(values)?;
        let (shape, values) = (array.shape().to_vec(), array.values());
        self.apart(py, |run| run.set_field(name, &shape, GivenValues::Real(values)))
    }

    /// Sets a field of the state from values in the memory of the run's GPU.
    fn set_field_on_gpu(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let cuda = self.gpu_of(py, name)?;
        let (values, shape) = values_on_gpu(values, name, &cuda)?;
        self.apart(py, |run| run.set_field_on_gpu(name, &shape, &values))
    }

    /// Sets columns of the particles of a species, each doubles in C order.
    fn set_particles(&self, py: Python<'_>, species: &str, columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
        let doubles = |(name, values): (String, Bound<'_, PyAny>)| Ok((name, Doubles::new(&values)?.values().to_vec()));
        let columns: Vec<(String, Vec<f64>)> = columns.into_iter().map(doubles).collect::<PyResult<_>>()?;
        self.apart(py, |run| run.set_particles(species, &columns))
    }

    /// Sets columns of the particles of a species from values in the memory of the run's GPU.
    fn set_particles_on_gpu(&self, py: Python<'_>, species: &str, columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
        let cuda = self.gpu_of(py, species)?;
        // Held until values are not read any more.
        let (names, arrays): (Vec<String>, Vec<_>) = columns.into_iter().unzip();
        let lent = |(name, values): (String, _)| column_on_gpu(values, &name, &cuda).map(|values| (name, values));
        let lent: Vec<_> = names.into_iter().zip(&arrays).map(lent).collect::<PyResult<_>>()?;
        self.apart(py, |run| run.set_particles_on_gpu(species, &lent))
    }

    /// Saves a checkpoint and returns its path.
    fn save(&self, py: Python<'_>, folder: Option<PathBuf>) -> PyResult<PathBuf> {
        self.apart(py, move |run| run.save(folder.as_deref()))
    }

    /// Runs to the end and returns the folder of the results, or nothing where it pauses after the step of this number; `progress`
    /// as in `step`.
    #[pyo3(signature = (progress=None, pause=None))]
    fn to_end(&self, py: Python<'_>, progress: Option<Py<PyAny>>, pause: Option<u64>) -> PyResult<Option<PathBuf>> {
        self.told(py, progress, |run| run.to_end(pause))
    }

    /// Ends the way to the end that pauses, with the files so far, and a checkpoint if it is to `save`.
    fn break_off(&self, py: Python<'_>, save: bool) -> PyResult<()> {
        self.apart(py, move |run| run.break_off(save))
    }
}
