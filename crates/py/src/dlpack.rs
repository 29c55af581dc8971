//! Capsules of DLPack (dmlc/dlpack, `dlpack.h`, the form before version 1), which array libraries exchange memory by.

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::array::Array;

/// Memory of the host: kind and number of the device.
pub(crate) const HOST: (i32, i32) = (1, 0);

/// Memory of a GPU: kind of the device.
pub(crate) const CUDA: i32 = 2;

/// Name of a capsule that nobody has taken yet.
const FRESH: &CStr = c"dltensor";

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    axes: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// Owner of what a capsule points to.
struct Owner {
    shape: Vec<i64>,
    _array: Py<Array>,
}

/// Shares the memory of an array.
pub(crate) fn capsule<'py>(array: &Bound<'py, Array>) -> PyResult<Bound<'py, PyAny>> {
    let (py, it) = (array.py(), array.get());
    let shape = it.lengths().iter().map(|n| *n as i64).collect();
    let mut owner = Box::new(Owner { shape, _array: array.clone().unbind() });
    let (code, bits) = it.kind().dlpack;
    let tensor = Tensor {
        data: it.address() as *mut c_void,
        device: it.place().into(),
        axes: owner.shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: owner.shape.as_mut_ptr(),
        // Of C order.
        strides: ptr::null_mut(),
        offset: 0,
    };
    let managed = Box::into_raw(Box::new(Managed { tensor, context: Box::into_raw(owner).cast(), deleter: Some(delete) }));
    // SAFETY: the capsule owns `managed` until somebody takes it, and its destructor is given once; the name lives for ever.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed.cast(), FRESH.as_ptr(), Some(discard));
        if capsule.is_null() {
            delete(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Frees what a capsule pointed to; whoever took it calls this, on any thread.
///
/// # Safety
/// `managed` is of [`capsule`], and is not used any more.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both were made by `Box::into_raw` and are freed once.
    let owner: Box<Owner> = unsafe {
        let managed = Box::from_raw(managed);
        Box::from_raw(managed.context.cast::<Owner>())
    };
    // The reference to the array is given up with the interpreter attached; one that comes to its end has no use for it.
    let mut owner = Some(owner);
    Python::try_attach(|_| drop(owner.take()));
    std::mem::forget(owner);
}

/// Destructor of a capsule: frees what nobody took.
///
/// # Safety
/// Called by Python with a capsule of [`capsule`].
unsafe extern "C" fn discard(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is valid; one that was taken has another name and another owner.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr()).cast());
        }
    }
}
