//! Arrays of others, by the array interface of the host and that of GPUs.

use std::marker::PhantomData;

use bytemuck::{Pod, PodCastError};
use num_complex::Complex;
use pyo3::prelude::*;
use zellige_engine::cuda::{Behind, Buffer, Cuda};
use zellige_engine::record::ValuesOnGpu;
use zellige_io::tensor::Elements;
use zellige_ptycho::data::CallersCounts;

use crate::errors::{ForPython, wrong_type, wrong_value};

/// A type of values, and its name in the array interface.
pub(crate) trait Value: Copy {
    /// Type and bytes.
    const CODE: &'static str;
    /// Name for people.
    const NAME: &'static str;
}

macro_rules! values {
    ($($kind:ty, $code:literal, $name:literal;)*) => {$(
        impl Value for $kind {
            const CODE: &'static str = $code;
            const NAME: &'static str = $name;
        }
    )*};
}
values! {
    f64, "<f8", "doubles";
    f32, "<f4", "single precision";
    i32, "<i4", "int32";
    u8, "|u1", "uint8";
    Complex<f64>, "<c16", "complex128";
    Complex<f32>, "<c8", "complex64";
    i8, "|i1", "int8";
    i16, "<i2", "int16";
    i64, "<i8", "int64";
    u16, "<u2", "uint16";
    u32, "<u4", "uint32";
    u64, "<u8", "uint64";
}

/// Doubles of another library.
pub(crate) type Doubles<'py> = Values<'py, f64>;

/// Values of another library, C order, read where they lie.
pub(crate) struct Values<'py, T> {
    at: *const T,
    shape: Vec<usize>,
    _owner: Bound<'py, PyAny>,
    _kind: PhantomData<T>,
}

impl<'py, T: Value> Values<'py, T> {
    /// Takes an array in C order. The package hands over what `numpy.ascontiguousarray` has made.
    pub(crate) fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let interface = object.getattr("__array_interface__")?;
        let item = |key: &str| interface.get_item(key);
        let kind: String = item("typestr")?.extract()?;
        let shape: Vec<usize> = item("shape")?.extract()?;
        let (address, _): (usize, bool) = item("data")?.extract()?;
        let strided = interface.call_method1("get", ("strides",))?;
        if kind != T::CODE || !strided.is_none() || !address.is_multiple_of(align_of::<T>()) {
            let message = format!("an array of {kind} where aligned {} in C order are needed (allowed: {})", T::NAME, T::CODE);
            return Err(wrong_type(message));
        }
        Ok(Self { at: address as *const T, shape, _owner: object.clone(), _kind: PhantomData })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Lengths of the axes, as many as are expected.
    pub(crate) fn lengths<const N: usize>(&self, name: &str) -> PyResult<[usize; N]> {
        let fault = |_| wrong_type(format!("`{name}` has {} axes (allowed: {N})", self.shape.len()));
        self.shape.clone().try_into().map_err(fault)
    }

    pub(crate) fn values(&self) -> &[T] {
        let count = self.shape.iter().product();
        if count == 0 {
            return &[];
        }
        // SAFETY: the interface promises so many aligned values of this type, any bits of which are one, and its owner, which is held,
        // keeps them. That nobody writes meanwhile is the caller's part, as with every library of arrays.
        unsafe { std::slice::from_raw_parts(self.at, count) }
    }
}

/// A type that counts come in.
trait Count: Value {
    /// Counts of 16 bits and int32, as they are: int32 has values that mark gaps of the detector. Others in single precision, which
    /// frames are reconstructed in.
    fn elements(counts: &[Self]) -> Elements;
}

macro_rules! counts {
    ($($kind:ty, $of:ident, $convert:expr;)*) => {
        $(impl Count for $kind {
            fn elements(counts: &[Self]) -> Elements {
                Elements::$of(counts.iter().map($convert).collect())
            }
        })*

        impl HeldCounts {
            /// Takes an array in C order, and tells its shape.
            pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<(Self, Vec<usize>)> {
                let code: String = object.getattr("__array_interface__")?.get_item("typestr")?.extract()?;
                match &code[..] {
                    $(<$kind as Value>::CODE => Self::of::<$kind>(object),)*
                    _ => {
                        let allowed = [$(<$kind as Value>::CODE),*].join(", ");
                        Err(wrong_type(format!("counts are an array of {code} (allowed: {allowed})")))
                    }
                }
            }
        }
    };
}
counts! {
    f32, F32, |v| *v;
    u16, U16, |v| *v;
    u8, U16, |v| u16::from(*v);
    f64, F32, |v| *v as f32;
    i8, F32, |v| f32::from(*v);
    i16, F32, |v| f32::from(*v);
    i32, I32, |v| *v;
    i64, F32, |v| *v as f32;
    u32, F32, |v| *v as f32;
    u64, F32, |v| *v as f32;
}

/// Counts of another library, C order, of any real type, which any thread reads where they lie.
pub(crate) struct HeldCounts {
    at: usize,
    len: usize,
    /// Reads at an address values from a number on, so many.
    read: unsafe fn(usize, usize, usize) -> Elements,
    owner: Option<Py<PyAny>>,
}

impl HeldCounts {
    fn of<T: Count>(object: &Bound<'_, PyAny>) -> PyResult<(Self, Vec<usize>)> {
        /// # Safety
        /// So many values of this type lie at `at`.
        unsafe fn read<T: Count>(at: usize, first: usize, count: usize) -> Elements {
            // SAFETY: as the caller says, and any bits are a value.
            T::elements(unsafe { std::slice::from_raw_parts((at as *const T).add(first), count) })
        }
        let found = Values::<T>::new(object)?;
        let held = Self { at: found.at as usize, len: found.values().len(), read: read::<T>, owner: Some(object.clone().unbind()) };
        Ok((held, found.shape))
    }
}

impl CallersCounts for HeldCounts {
    fn read(&self, first: usize, count: usize) -> Elements {
        assert!(first + count <= self.len, "frames within the array");
        // SAFETY: `of` has found so many values of the type that `read` is for; their owner is held. That nobody writes meanwhile is the
        // caller's part, as with every library of arrays.
        unsafe { (self.read)(self.at, first, count) }
    }
}

impl Drop for HeldCounts {
    fn drop(&mut self) {
        // Given up with the interpreter attached, at once; one that comes to its end has no use for it.
        let mut owner = self.owner.take();
        Python::try_attach(|_| drop(owner.take()));
        std::mem::forget(owner);
    }
}

/// Complex values of another library, C order, as 64-bit words that are read and written where they lie.
pub(crate) struct Words<'py> {
    at: *mut u64,
    len: usize,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Words<'py> {
    /// Takes arrays in this precision, aligned to whole words; only those that are `written` have to let it happen.
    pub(crate) fn of(arrays: Vec<Bound<'py, PyAny>>, double: bool, written: bool) -> PyResult<Vec<Self>> {
        let one = |array: Bound<'py, PyAny>| {
            let read_only: bool = array.getattr("__array_interface__")?.get_item("data")?.get_item(1)?.extract()?;
            if written && read_only {
                return Err(wrong_type("an array is read-only (allowed: arrays that can be written)"));
            }
            let words = |found: std::result::Result<&[u64], PodCastError>| found.map(|words| (words.as_ptr().cast_mut(), words.len()));
            let found = if double {
                words(bytemuck::try_cast_slice(Values::<Complex<f64>>::new(&array)?.values()))
            } else {
                words(bytemuck::try_cast_slice(Values::<Complex<f32>>::new(&array)?.values()))
            };
            let (at, len) = found.map_err(|_| wrong_type("an array does not begin at a multiple of 8 bytes"))?;
            Ok(Self { at, len, _owner: array })
        };
        arrays.into_iter().map(one).collect()
    }

    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: as for `Values`, whose values these are.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and the array can be written; that nobody reads meanwhile, and that no two of the arrays are one, is the
        // caller's part, as with every library of arrays.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

/// Values of another library in the memory of a GPU, C order, read where they lie.
pub(crate) struct OnGpu<'py, T> {
    at: u64,
    shape: Vec<usize>,
    /// Work behind which they are there.
    behind: Behind,
    owner: Bound<'py, PyAny>,
    _kind: PhantomData<T>,
}

impl<'py, T: Value + Pod + Send> OnGpu<'py, T> {
    /// Takes an array that offers `__cuda_array_interface__` in C order; nothing where it is no such array.
    pub(crate) fn of(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Self>> {
        if !object.hasattr("__cuda_array_interface__")? {
            return Ok(None);
        }
        let interface = object.getattr("__cuda_array_interface__")?;
        let item = |key: &str| interface.get_item(key);
        let other = |key: &str| interface.call_method1("get", (key,));
        let kind: String = item("typestr")?.extract()?;
        let shape: Vec<usize> = item("shape")?.extract()?;
        let (at, _): (u64, bool) = item("data")?.extract()?;
        let strides: Option<Vec<i64>> = other("strides")?.extract()?;
        // Version 3 names the stream where there is something to wait for; earlier ones, PyTorch's is one, say nothing of it.
        let behind = match (item("version")?.extract::<u32>()?, other("stream")?.extract()?) {
            (_, Some(stream)) => Behind::Stream(stream),
            (3.., None) => Behind::Nothing,
            (_, None) => Behind::All,
        };
        for (mark, hint) in [("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")] {
            if object.hasattr(mark)? && object.call_method0(mark)?.is_truthy()? {
                let message = format!("the values of `{name}` are not what lies in memory (`{name}.{mark}()`)");
                return Err(wrong_type(format!("{message}\n\nhint: give `{name}.{hint}()`")));
            }
        }
        if kind != T::CODE || strides.is_some_and(|strides| !dense::<T>(&shape, &strides)) || !other("mask")?.is_none() {
            let message = format!("`{name}` is an array of {kind} on a GPU where {} in C order are needed", T::NAME);
            let (cupy, torch) = if T::CODE == kind { (String::new(), "") } else { (", \"float64\"".to_owned(), ".double()") };
            let hint = format!("hint: `cupy.ascontiguousarray({name}{cupy})` or `{name}{torch}.contiguous()`");
            return Err(wrong_type(format!("{message} (allowed: {})\n\n{hint}", T::CODE)));
        }
        Ok(Some(Self { at, shape, behind, owner: object.clone(), _kind: PhantomData }))
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values for `cuda`, on whose GPU they must lie.
    pub(crate) fn buffer(&self, cuda: &Cuda) -> PyResult<Buffer<T>> {
        let (at, len, behind) = (self.at, self.shape.iter().product(), self.behind);
        let py = self.owner.py();
        // SAFETY: the interface promises so many aligned values of this type behind its stream, and its owner, which is held longer than
        // the buffer, keeps them. That nobody writes meanwhile is the caller's part, as with every library of arrays.
        py.detach(|| unsafe { cuda.lent(at, len, behind) }).for_python(py)
    }
}

/// Values of another library in the memory of the GPU of `cuda`, of any type that fields are set from, and their shape. The caller
/// holds `object` for longer than the values.
pub(crate) fn values_on_gpu(object: &Bound<'_, PyAny>, name: &str, cuda: &Cuda) -> PyResult<(ValuesOnGpu, Vec<usize>)> {
    let kind: String = object.getattr("__cuda_array_interface__")?.get_item("typestr")?.extract()?;
    match kind.as_str() {
        <f32 as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::F32),
        <f64 as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::F64),
        <Complex<f32> as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::Complex),
        <Complex<f64> as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::Complex128),
        _ => {
            let message = format!("`{name}` is an array of {kind} on a GPU (allowed: float32, float64, complex64, complex128)");
            Err(wrong_type(format!("{message}\n\nhint: `{name}.astype(\"float64\")`, or `{name}.double()`")))
        }
    }
}

/// Values as [`values_on_gpu`] takes them for a column of particles: real numbers, or whole ones as identities are, on one axis.
pub(crate) fn column_on_gpu(object: &Bound<'_, PyAny>, name: &str, cuda: &Cuda) -> PyResult<ValuesOnGpu> {
    let kind: String = object.getattr("__cuda_array_interface__")?.get_item("typestr")?.extract()?;
    let (values, shape) = match kind.as_str() {
        <f32 as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::F32),
        <f64 as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::F64),
        <u64 as Value>::CODE => lent(object, name, cuda, ValuesOnGpu::U64),
        _ => {
            let message = format!("`{name}` is an array of {kind} on a GPU (allowed: float32, float64; uint64 of `id`)");
            Err(wrong_type(format!("{message}\n\nhint: `{name}.astype(\"float64\")`, or `{name}.double()`")))
        }
    }?;
    if shape.len() != 1 {
        return Err(wrong_value(format!("`{name}` has {} axes (allowed: 1)", shape.len())));
    }
    Ok(values)
}

fn lent<T: Value + Pod + Send>(
    object: &Bound<'_, PyAny>,
    name: &str,
    cuda: &Cuda,
    values: impl FnOnce(Buffer<T>) -> ValuesOnGpu,
) -> PyResult<(ValuesOnGpu, Vec<usize>)> {
    let found = OnGpu::<T>::of(object, name)?.ok_or_else(|| wrong_type(format!("`{name}` is no array on a GPU")))?;
    Ok((values(found.buffer(cuda)?), found.shape))
}

/// Returns true if these strides, in bytes, are those of C order.
fn dense<T>(shape: &[usize], strides: &[i64]) -> bool {
    let mut step = size_of::<T>();
    shape.iter().zip(strides).rev().all(|(n, stride)| {
        let fits = *n <= 1 || *stride == step as i64;
        step *= n;
        fits
    })
}
