//! Arrays with the type they have in the file.

use bytemuck::cast_slice;
use num_complex::Complex;

use super::{ElementType, Fault, Header, head, header};
use crate::tensor::{Elements, Tensor};

/// Shape of an array, from its header.
pub fn shape(mut bytes: &[u8]) -> Result<Vec<usize>, String> {
    head(&mut bytes).map(|h| h.0.shape).map_err(text)
}

fn text(fault: Fault) -> String {
    match fault {
        Fault::System(e) => e.to_string(),
        Fault::Content(message) => message,
    }
}

/// Reads an array from memory: reals, integers, truth values and complex numbers of either byte order.
pub fn tensor(mut bytes: &[u8]) -> Result<Tensor, String> {
    let (header, _) = head(&mut bytes).map_err(text)?;
    let Header { descr, fortran, shape } = header;
    let complex = descr.strip_suffix("c8").map(|order| (order, 4)).or_else(|| descr.strip_suffix("c16").map(|order| (order, 8)));
    let (kind, parts) = match complex {
        Some((order, width)) => (ElementType::parse(&format!("{order}f{width}"))?, 2),
        None => (ElementType::parse(&descr)?, 1),
    };
    let count = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let needed = count.and_then(|n| n.checked_mul(kind.bytes * parts));
    if needed != Some(bytes.len()) {
        let needed = needed.map_or("beyond any memory".into(), |n| n.to_string());
        return Err(format!("the shape {shape:?} of `{descr}` needs {needed} bytes of data, {} are there", bytes.len()));
    }
    let values = || bytes.chunks_exact(kind.bytes).map(|v| kind.value(v));
    let elements = match (kind.class, kind.bytes) {
        _ if parts == 2 => {
            let reals: Vec<f32> = values().map(|v| v as f32).collect();
            Elements::Complex(reals.chunks_exact(2).map(|v| Complex::new(v[0], v[1])).collect())
        }
        (b'u' | b'b', 1) | (b'u', 2) => Elements::U16(values().map(|v| v as u16).collect()),
        (b'i', 1 | 2 | 4) => Elements::I32(values().map(|v| v as i32).collect()),
        (b'f', 4) => Elements::F32(values().map(|v| v as f32).collect()),
        _ => Elements::F64(values().collect()),
    };
    let elements = if fortran { turned(elements, &shape) } else { elements };
    Ok(Tensor { shape, elements })
}

fn turned(elements: Elements, shape: &[usize]) -> Elements {
    match elements {
        Elements::U16(v) => Elements::U16(super::from_fortran(shape, &v)),
        Elements::I32(v) => Elements::I32(super::from_fortran(shape, &v)),
        Elements::F32(v) => Elements::F32(super::from_fortran(shape, &v)),
        Elements::F64(v) => Elements::F64(super::from_fortran(shape, &v)),
        Elements::Complex(v) => Elements::Complex(super::from_fortran(shape, &v)),
    }
}

/// An array as a file in memory.
pub fn bytes(tensor: &Tensor) -> Vec<u8> {
    let (descr, values): (&str, &[u8]) = match &tensor.elements {
        Elements::U16(v) => ("<u2", cast_slice(v)),
        Elements::I32(v) => ("<i4", cast_slice(v)),
        Elements::F32(v) => ("<f4", cast_slice(v)),
        Elements::F64(v) => ("<f8", cast_slice(v)),
        Elements::Complex(v) => ("<c8", cast_slice(v)),
    };
    let mut all = header(descr, &tensor.shape);
    all.extend_from_slice(values);
    all
}
