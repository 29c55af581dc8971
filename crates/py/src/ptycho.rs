//! An engine of ptychography on the caller's arrays.

use std::sync::{Mutex, MutexGuard, TryLockError};

use num_complex::Complex;
use pyo3::prelude::*;
use zellige_engine::config::{Format, Input, Source};
use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_ptycho::Ptycho;
use zellige_ptycho::arrays::{ArrayEngine, ArrayProblem, Propagator};
use zellige_ptycho::config::Config;
use zellige_ptycho::data::{ScanArrays, UnreadCounts};
use zellige_ptycho::model::{Power, View};
use zellige_ptycho::scan::{Beam, Mask, Propagation};

use crate::array::{Array, Data};
use crate::device;
use crate::errors::{ForPython, busy, wrong_type};
use crate::memory::{Doubles, HeldCounts, Value, Values, Words};

/// Name of the input in messages.
const ORIGIN: &str = "zellige.ptycho";

type C = Complex<f64>;

/// Names the package where an error calls the input something else.
fn named(error: Error) -> Error {
    match error {
        Error::Input { problems, .. } => Error::Input { origin: ORIGIN.into(), problems },
        other => other,
    }
}

/// Complex numbers of either precision, with the shape.
fn waves(object: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<C>)> {
    fn of<T: Value>(object: &Bound<'_, PyAny>, wide: impl Fn(&T) -> C) -> PyResult<(Vec<usize>, Vec<C>)> {
        let found = Values::<T>::new(object)?;
        Ok((found.shape().to_vec(), found.values().iter().map(wide).collect()))
    }
    let kind: String = object.getattr("__array_interface__")?.get_item("typestr")?.extract()?;
    if kind == <Complex<f32> as Value>::CODE {
        return of(object, |v: &Complex<f32>| C::new(f64::from(v.re), f64::from(v.im)));
    }
    of(object, |v: &C| *v)
}

/// Views from rows of probe, object, first row and first column.
fn views(object: &Bound<'_, PyAny>) -> PyResult<Vec<View>> {
    let found = Values::<i32>::new(object)?;
    let [_, 4] = found.lengths("views")? else {
        return Err(wrong_type(format!("`views` has the shape {:?} (allowed: (n, 4))", found.shape())));
    };
    let one = |v: &[i32; 4]| View { probe: v[0] as u32, object: v[1] as u32, row: v[2], col: v[3] };
    Ok(found.values().as_chunks::<4>().0.iter().map(one).collect())
}

/// Arrays of a scan, the first and the third of which are there: frames, mask, positions, dark frame, response of the pixels and
/// probe; then wavelength, distance and pixels (y, x), and true for the near field.
pub(crate) type ScanArguments<'py> = ([Option<Bound<'py, PyAny>>; 6], [f64; 4], bool);

/// A scan of the caller's arrays.
pub(crate) fn scan((arrays, [wavelength, distance, py, px], near): ScanArguments<'_>) -> PyResult<ScanArrays> {
    let [Some(frames), mask, Some(positions), dark, flat, probe] = arrays else {
        return Err(wrong_type("a scan needs frames and positions"));
    };
    let (counts, shape) = HeldCounts::new(&frames)?;
    let [_, ny, nx] = shape[..] else {
        return Err(wrong_type(format!("`frames` has {} axes (allowed: 3)", shape.len())));
    };
    let mask = mask.map(|mask| Values::<u8>::new(&mask).map(|mask| mask.values().iter().map(|v| *v != 0).collect())).transpose()?;
    let probe = probe.map(|probe| Values::<Complex<f32>>::new(&probe)).transpose()?;
    let probe = probe.map(|probe| probe.lengths("probe").map(|shape| (shape, probe.values().to_vec()))).transpose()?;
    let plane = |plane: Option<Bound<'_, PyAny>>| plane.map(|plane| Values::<f32>::new(&plane).map(|v| v.values().to_vec())).transpose();
    let (dark, flat) = (plane(dark)?, plane(flat)?);
    let propagation = if near { Propagation::Near } else { Propagation::Far };
    let beam = Beam { wavelength, distance, pixel: [py, px], propagation };
    let positions = Doubles::new(&positions)?.values().as_chunks::<2>().0.to_vec();
    Ok(ScanArrays { counts: UnreadCounts::new(counts), shape: [ny, nx], mask, positions, beam, dark, flat, probe })
}

/// An engine between its iterations.
#[pyclass(frozen, module = "zellige._zellige")]
pub(crate) struct PtychoEngine {
    engine: Mutex<ArrayEngine>,
    device: String,
}

impl PtychoEngine {
    /// The engine, unless another thread of Python is at it.
    fn take(&self) -> PyResult<MutexGuard<'_, ArrayEngine>> {
        match self.engine.try_lock() {
            Ok(engine) => Ok(engine),
            Err(TryLockError::Poisoned(engine)) => Ok(engine.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy("another thread is working with this engine: wait until it is done")),
        }
    }

    /// Does `work` while other threads of Python go on.
    fn apart<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut ArrayEngine) -> Result<T> + Send) -> PyResult<T> {
        let mut engine = self.take()?;
        let engine: &mut ArrayEngine = &mut engine;
        py.detach(|| work(engine).map_err(named)).for_python(py)
    }

    /// Complex numbers in the precision of the engine.
    fn array(&self, values: &[C], shape: Vec<usize>, name: &str) -> PyResult<Array> {
        let data = if self.take()?.double() { Data::Complex128(values.to_vec()) } else { Data::Complex(narrowed(values)) };
        Ok(Array::new(data, shape, name))
    }
}

/// Values in single precision, by all cores.
fn narrowed(values: &[C]) -> Vec<Complex<f32>> {
    const PIECE: usize = 1 << 14;
    let mut narrow = vec![Complex::default(); values.len()];
    each((chunks_mut(&mut narrow, PIECE), chunks(values, PIECE)), |_, (to, from)| {
        to.iter_mut().zip(from).for_each(|(to, v)| *to = Complex::new(v.re as f32, v.im as f32));
    });
    narrow
}

/// The checked tables of an input in JSON.
fn typed(tables: &str) -> Result<Input<Config>> {
    Source::parse(tables, Format::Json, ORIGIN)?.unseen().typed::<Ptycho>()
}

#[pymethods]
impl PtychoEngine {
    /// Sets the engine of an input in JSON up on frames `(n, ny, nx)`.
    #[new]
    #[pyo3(signature = (tables, frames, mask, views, probe, objects, *, phase=None, kernel=None, power=None, bounds=None, first=0))]
    fn new(
        py: Python<'_>,
        tables: &str,
        frames: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        views: &Bound<'_, PyAny>,
        probe: &Bound<'_, PyAny>,
        objects: Vec<Bound<'_, PyAny>>,
        phase: Option<&Bound<'_, PyAny>>,
        kernel: Option<&Bound<'_, PyAny>>,
        power: Option<[f64; 3]>,
        bounds: Option<&Bound<'_, PyAny>>,
        first: u64,
    ) -> PyResult<Self> {
        let frames = Values::<f32>::new(frames)?;
        let [_, ny, nx] = frames.lengths("frames")?;
        let mask = mask.map(Values::<u8>::new).transpose()?.map_or(Mask::All, |mask| {
            let values = mask.values().iter().map(|v| *v != 0).collect();
            if mask.shape().len() == 3 { Mask::Each(values) } else { Mask::Common(values) }
        });
        let arrays: Vec<_> = std::iter::once(probe).chain(&objects).cloned().collect();
        let (shape, probe) = waves(probe)?;
        let &[probes, modes, ..] = &shape[..] else {
            return Err(wrong_type(format!("`probe` has the shape {shape:?} (allowed: (probes, modes, rows, columns))")));
        };
        let (mut shapes, mut object, mut layers) = (Vec::new(), Vec::new(), 0);
        for one in objects {
            let (shape, values) = waves(&one)?;
            let &[of_this, height, width] = &shape[..] else {
                return Err(wrong_type(format!("an object has the shape {shape:?} (allowed: (modes, rows, columns))")));
            };
            layers = of_this;
            shapes.push([height, width]);
            object.extend(values);
        }
        let propagator = match (phase, kernel) {
            (Some(phase), None) => Propagator::Far(waves(phase)?.1),
            (None, Some(kernel)) => Propagator::Near(waves(kernel)?.1),
            _ => return Err(wrong_type("one of `phase` (far field) and `kernel` (near field) is needed")),
        };
        let problem = ArrayProblem {
            counts: frames.values().to_vec(),
            mask,
            frame: [ny, nx],
            modes: [modes, layers],
            probes,
            objects: shapes,
            views: self::views(views)?,
            propagator,
            power: power.map(|[total, max, mean]| Power { total, max, mean, masked: 0.0 }),
        };
        let bounds = bounds.map(|bounds| Values::<f64>::new(bounds).map(|bounds| bounds.values().to_vec())).transpose()?;
        let set_up = || {
            let Input { config, run, .. } = typed(tables)?;
            let device = device::open(ORIGIN, (run.device != "auto").then_some(run.device.as_str()), run.threads)?;
            ArrayEngine::new(&config, problem.model(&probe, object)?, bounds.as_deref(), first, &device)
        };
        let mut engine = py.detach(|| set_up().map_err(named)).for_python(py)?;
        let arrays = Words::of(arrays, engine.double(), false)?;
        engine.remember_state(&arrays.iter().map(Words::words).collect::<Vec<_>>()).map_err(named).for_python(py)?;
        let device = engine.device().to_owned();
        Ok(Self { engine: Mutex::new(engine), device })
    }

    /// Model of the device.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// Makes iterations, with the views in this order where an engine goes from one to the next.
    #[pyo3(signature = (n=1, order=None))]
    fn iterate(&self, py: Python<'_>, n: u64, order: Option<Vec<u32>>) -> PyResult<()> {
        self.apart(py, move |engine| engine.iterate(n, order.as_deref()))
    }

    /// Numbers the iterations from `k` on: others have made those before it.
    fn number_from(&self, k: u64) -> PyResult<()> {
        self.take()?.number_from(k);
        Ok(())
    }

    /// Errors of each view in the last iteration, `(n, 3)`: moduli, likelihood, change of the exit waves.
    fn errors(&self, py: Python<'_>) -> PyResult<Array> {
        let errors = self.apart(py, ArrayEngine::errors)?;
        let shape = vec![errors.len(), 3];
        Ok(Array::new(Data::F64(errors.into_flattened()), shape, "errors"))
    }

    /// Writes probes, and then objects, each `(modes, rows, columns)`, into arrays in the precision of the engine, C order.
    fn write_state(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let mut arrays = Words::of(arrays, self.take()?.double(), true)?;
        let mut words: Vec<&mut [u64]> = arrays.iter_mut().map(Words::words_mut).collect();
        self.apart(py, |engine| engine.write_state(&mut words))
    }

    /// Takes probes and objects from such arrays where they differ in any bit from what was written last, or what the engine was
    /// made with; tells if so. Exit waves stay.
    fn take_state(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
        let arrays = Words::of(arrays, self.take()?.double(), false)?;
        let words: Vec<&[u64]> = arrays.iter().map(Words::words).collect();
        self.apart(py, |engine| engine.take_state(&words))
    }

    /// Exit waves `(n, modes, rows, columns)`, the object's modes fastest; `None` where the engine keeps none.
    fn exit_waves(&self, py: Python<'_>) -> PyResult<Option<Array>> {
        let (values, shape) = self.apart(py, |engine| {
            let values = engine.exit_waves()?;
            let model = engine.model();
            Ok((values, vec![model.views.len(), model.exits(), model.frame[0], model.frame[1]]))
        })?;
        if values.is_empty() { Ok(None) } else { self.array(&values, shape, "exit").map(Some) }
    }

    /// Puts exit waves in place of the products of probe and object that an engine begins with.
    fn set_exit_waves(&self, py: Python<'_>, exits: &Bound<'_, PyAny>) -> PyResult<()> {
        let (_, values) = waves(exits)?;
        self.apart(py, |engine| engine.set_exit_waves(&values))
    }

    /// Holds the probes to pixels that are not 0, in real space and in the order of the transform: `(rows, columns)`, or all.
    #[pyo3(signature = (real=None, fourier=None))]
    fn set_support(&self, py: Python<'_>, real: Option<&Bound<'_, PyAny>>, fourier: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let mask = |array: Option<&Bound<'_, PyAny>>| {
            let mask = array.map(Values::<u8>::new).transpose()?;
            Ok::<_, PyErr>(mask.map(|mask| mask.values().iter().map(|v| *v != 0).collect::<Vec<bool>>()))
        };
        let (real, fourier) = (mask(real)?, mask(fourier)?);
        self.apart(py, |engine| engine.set_support(real.as_deref(), fourier.as_deref()))
    }

    /// Lets the views look elsewhere: `(n, 4)` of probe, object, first row and first column.
    fn set_views(&self, py: Python<'_>, views: &Bound<'_, PyAny>) -> PyResult<()> {
        let views = self::views(views)?;
        self.apart(py, |engine| engine.set_views(&views))
    }
}
