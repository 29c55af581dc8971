//! Arrays of ours in Python: memory that others see without a copy.

use num_complex::Complex;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyTuple};
use zellige_engine::record::{Axis, Centring, ValuesOnGpu};

use crate::dlpack;
use crate::errors::wrong_value;
use crate::memory::{Value, Values};
use crate::tuples::{Axes, AxisText, Lengths};

/// Reasons why an array lacks one of the interfaces.
const ON_GPU: &str = "the array is in the memory of a GPU: `cupy.asarray(a)` or `torch.from_dlpack(a)`";
const ON_HOST: &str = "the array is in the memory of the host: `numpy.asarray(a)`";

/// Values of an array, C order.
pub(crate) enum Data {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U64(Vec<u64>),
    Complex(Vec<Complex<f32>>),
    Complex128(Vec<Complex<f64>>),
    /// In the memory of a GPU; nothing is at work on it any more.
    OnGpu(ValuesOnGpu),
}

/// Type of the values of an array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// As NumPy spells it.
    pub(crate) name: &'static str,
    /// In the array interface, little-endian.
    pub(crate) code: &'static str,
    /// Code and bits of DLPack.
    pub(crate) dlpack: (u8, u8),
}

impl Data {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::Complex(v) => v.len(),
            Self::Complex128(v) => v.len(),
            Self::OnGpu(v) => v.len(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::F32(_) | Self::OnGpu(ValuesOnGpu::F32(_)) => Kind { name: "float32", code: "<f4", dlpack: (2, 32) },
            Self::F64(_) | Self::OnGpu(ValuesOnGpu::F64(_)) => Kind { name: "float64", code: "<f8", dlpack: (2, 64) },
            Self::U64(_) | Self::OnGpu(ValuesOnGpu::U64(_)) => Kind { name: "uint64", code: "<u8", dlpack: (1, 64) },
            Self::Complex(_) | Self::OnGpu(ValuesOnGpu::Complex(_)) => Kind { name: "complex64", code: "<c8", dlpack: (5, 64) },
            Self::Complex128(_) | Self::OnGpu(ValuesOnGpu::Complex128(_)) => Kind { name: "complex128", code: "<c16", dlpack: (5, 128) },
        }
    }

    /// Address of the first value, through which others may write.
    fn address(&mut self) -> usize {
        match self {
            Self::F32(v) => v.as_mut_ptr() as usize,
            Self::F64(v) => v.as_mut_ptr() as usize,
            Self::U64(v) => v.as_mut_ptr() as usize,
            Self::Complex(v) => v.as_mut_ptr() as usize,
            Self::Complex128(v) => v.as_mut_ptr() as usize,
            Self::OnGpu(v) => v.address() as usize,
        }
    }
}

/// Values of an array, its name, title, unit and axes.
type Pickled<'py> = (Bound<'py, PyAny>, String, String, String, Vec<AxisText>);

/// An array from values in C order, and what is said about it: the way back from a pickle.
#[pyfunction]
pub(crate) fn restored(values: &Bound<'_, PyAny>, name: &str, title: &str, unit: &str, axes: Vec<AxisText>) -> PyResult<Array> {
    fn of<T: Value>(values: &Bound<'_, PyAny>) -> PyResult<(Vec<T>, Vec<usize>)> {
        let array = Values::<T>::new(values)?;
        Ok((array.values().to_vec(), array.shape().to_vec()))
    }
    // Buffers of a pickle lie anywhere.
    let values = &values.py().import("numpy")?.call_method1("require", (values, values.py().None(), "CA"))?;
    let kind: String = values.getattr("__array_interface__")?.get_item("typestr")?.extract()?;
    let (data, shape) = match &kind[..] {
        <f32 as Value>::CODE => of(values).map(|(v, shape)| (Data::F32(v), shape)),
        <u64 as Value>::CODE => of(values).map(|(v, shape)| (Data::U64(v), shape)),
        <Complex<f32> as Value>::CODE => of(values).map(|(v, shape)| (Data::Complex(v), shape)),
        <Complex<f64> as Value>::CODE => of(values).map(|(v, shape)| (Data::Complex128(v), shape)),
        _ => of(values).map(|(v, shape)| (Data::F64(v), shape)),
    }?;
    Ok(Array { title: title.into(), unit: unit.into(), axes, ..Array::new(data, shape, name) })
}

/// An array of the package, C order. `numpy.asarray(a)`, `numpy.from_dlpack(a)` and `torch.from_dlpack(a)` share its memory, which
/// lives as long as any of them; one in the memory of a GPU is shared by `cupy.asarray(a)` and `torch.from_dlpack(a)`. Operators
/// and names of NumPy's arrays (`a.max()`, `a.T`) are those of `numpy.asarray(a)`. Results of a run are read-only on the host, as
/// it does not see what would be written into them; PyTorch, which knows no read-only memory, has to `clone()` them first.
#[pyclass(frozen, module = "zellige")]
pub(crate) struct Array {
    /// Owns the memory; after it was made, others read and write it through `address`.
    data: Data,
    address: usize,
    kind: Kind,
    shape: Vec<usize>,
    name: String,
    title: String,
    unit: String,
    axes: Vec<AxisText>,
    /// Nobody may write, on the host: the values are a copy of what a run has, and a write would be lost.
    read_only: bool,
}

impl Array {
    /// An array without axes.
    pub(crate) fn new(mut data: Data, shape: Vec<usize>, name: &str) -> Self {
        debug_assert_eq!(data.len(), shape.iter().product::<usize>());
        let (address, kind) = (data.address(), data.kind());
        Self { data, address, kind, shape, name: name.into(), title: name.into(), unit: String::new(), axes: Vec::new(), read_only: false }
    }

    /// Lets nobody write on the host.
    pub(crate) fn read_only(mut self) -> Self {
        self.read_only = self.place() == dlpack::HOST;
        self
    }

    /// Tells what the values are, and where: axes fastest first, as records have them.
    pub(crate) fn described(mut self, title: &str, unit: &str, axes: &[Axis], centring: Centring) -> Self {
        let half = if centring == Centring::Cell { 0.5 } else { 0.0 };
        let text = |a: &Axis| (a.name.clone(), a.unit.clone(), a.origin + half * a.spacing, a.spacing, a.len);
        (self.title, self.unit) = (title.into(), unit.into());
        self.axes = axes.iter().rev().map(text).collect();
        self
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.shape
    }

    /// Kind and number of the device in DLPack.
    pub(crate) fn place(&self) -> (i32, i32) {
        match &self.data {
            Data::OnGpu(values) => (dlpack::CUDA, values.gpu() as i32),
            _ => dlpack::HOST,
        }
    }

    /// Description of the memory, as both interfaces of arrays have it.
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("typestr", self.kind.code)?;
        interface.set_item("data", (self.address, self.read_only))?;
        Ok(interface)
    }

    /// The values as NumPy sees them.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().place() != dlpack::HOST {
            return Err(PyTypeError::new_err("the array is in the memory of a GPU: work on `cupy.asarray(a)` or `torch.from_dlpack(a)`"));
        }
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// Result of an operator. Of an array on a GPU the other operand may know, as those of CuPy do.
    fn operate<'py>(
        slf: &Bound<'py, Self>,
        work: impl FnOnce(Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().place() != dlpack::HOST {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        work(Self::numpy(slf)?)
    }

    /// A copy in the memory of the host, with all that is said about it.
    fn copied(slf: &Bound<'_, Self>) -> PyResult<Self> {
        let Self { name, title, unit, axes, .. } = slf.get();
        restored(&Self::numpy(slf)?, name, title, unit, axes.clone())
    }
}

#[pymethods]
impl Array {
    /// Lengths of the axes, slowest first.
    #[getter]
    fn shape(&self) -> Lengths<'_> {
        Lengths(&self.shape)
    }

    /// Type of the values, NumPy's.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("dtype", (self.kind.name,))
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of values.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Name, as in files.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Title for people.
    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// Unit of the values; empty where the problem has none.
    #[getter]
    fn units(&self) -> &str {
        &self.unit
    }

    /// Axes in the order of the shape, each a `zellige.Axis`; empty where nothing is known about them.
    #[getter]
    fn axes(&self) -> Axes<'_> {
        Axes(&self.axes)
    }

    /// Description of the memory for NumPy, which shares it; there is none on a GPU.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.place() != dlpack::HOST {
            return Err(PyAttributeError::new_err(ON_GPU));
        }
        self.interface(py)
    }

    /// Description of the memory on a GPU for CuPy, Numba and PyTorch, which share it; there is none on the host.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.place() == dlpack::HOST {
            return Err(PyAttributeError::new_err(ON_HOST));
        }
        let interface = self.interface(py)?;
        // Nothing is at work on it any more.
        interface.set_item("stream", py.None())?;
        Ok(interface)
    }

    /// Kind and number of the device of the memory by DLPack: (1, 0) is the host, (2, N) a GPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.place()
    }

    /// A capsule of DLPack that shares the memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The oldest form of capsule, which every reader takes, whatever it knows beside it.
        let _ = max_version;
        let place = slf.get().place();
        if dl_device.is_some_and(|device| device != place) {
            return Err(PyBufferError::new_err(format!("the array is on device {place:?} of DLPack: move it afterwards")));
        }
        // On a GPU the values are there for any stream.
        if stream.is_some() && place == dlpack::HOST {
            return Err(PyValueError::new_err("the array is in the memory of the host: leave `stream` out, and move it afterwards"));
        }
        match copy {
            Some(true) if place != dlpack::HOST => Err(PyBufferError::new_err("the array is shared, never copied: copy what you get")),
            Some(true) => dlpack::capsule(&Bound::new(slf.py(), Self::copied(slf)?)?),
            _ => dlpack::capsule(slf),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))
    }

    /// Value or view by NumPy's indexing, `numpy.asarray(a)[key]`.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.get_item(key)
    }

    /// Attribute of NumPy's arrays, where ours have none of that name.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match name {
            // Python asks here again for what these have refused.
            "__array_interface__" => return Err(PyAttributeError::new_err(ON_GPU)),
            "__cuda_array_interface__" => return Err(PyAttributeError::new_err(ON_HOST)),
            _ if name.starts_with('_') || slf.get().place() != dlpack::HOST => {
                return Err(PyAttributeError::new_err(format!("`zellige.Array` has no attribute `{name}`")));
            }
            _ => {}
        }
        Self::numpy(slf)?.getattr(name)
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.add(other))
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.add(own))
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.sub(other))
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.sub(own))
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.mul(other))
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.mul(own))
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.div(other))
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.div(own))
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.floor_div(other))
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.floor_div(own))
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.rem(other))
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.rem(own))
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.matmul(other))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.matmul(own))
    }

    fn __pow__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, modulus: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.pow(other, modulus))
    }

    fn __rpow__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, modulus: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| other.pow(own, modulus))
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.neg()
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.pos()
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf)?.abs()
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        Self::operate(slf, |own| own.rich_compare(other, op))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        Self::numpy(slf)?.try_iter()
    }

    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::numpy(slf)?.contains(value)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Self { name, read_only, .. } = slf.get();
        if *read_only {
            let message = format!("`{name}` is a copy of what the run has, which cannot be written in place");
            let hint = format!(
                "fields and particles are assigned whole, `run.fields[\"{name}\"] = ..` or `run.particles(..)[\"{name}\"] = ..`; \
                 `numpy.array(a)` is yours to write"
            );
            return Err(wrong_value(format!("{message}\n\nhint: {hint}")));
        }
        Self::numpy(slf)?.set_item(key, value)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::numpy(slf)?.is_truthy()
    }

    /// Values and all that is said about them, for `pickle` and `copy`.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let Self { name, title, unit, axes, .. } = slf.get();
        let back = slf.py().import("zellige._zellige")?.getattr("restored")?;
        Ok((back, (Self::numpy(slf)?, name.clone(), title.clone(), unit.clone(), axes.clone())))
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let unit = if self.unit.is_empty() { String::new() } else { format!(", units \"{}\"", self.unit) };
        format!("<zellige.Array {}: ({}) {}{unit}>", self.title, shape.join(", "), self.kind.name)
    }
}
