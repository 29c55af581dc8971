use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::tensor::Elements;

fn samples() -> Vec<(&'static str, Tensor)> {
    let complex = (0..6).map(|i| Complex::new(i as f32, -0.5)).collect();
    vec![
        ("counts", Tensor { shape: vec![2, 3, 2], elements: Elements::U16((0..12).map(|i| i * 5000).collect()) }),
        ("offsets", Tensor { shape: vec![3], elements: Elements::I32(vec![-4, 0, 1 << 30]) }),
        ("probe", Tensor { shape: vec![1, 2, 3], elements: Elements::Complex(complex) }),
        ("single", Tensor { shape: vec![4], elements: Elements::F32(vec![0.0, 1.5, f32::INFINITY, -2.0]) }),
        ("wavelength", Tensor::number(1.7e-10)),
        ("empty", Tensor { shape: vec![0, 3], elements: Elements::F64(vec![]) }),
    ]
}

fn written(folder: &Path, deflate: bool) -> PathBuf {
    let path = folder.join(if deflate { "packed.npz" } else { "stored.npz" });
    let samples = samples();
    let arrays: Vec<(&str, &Tensor)> = samples.iter().map(|(n, t)| (*n, t)).collect();
    write(&path, &arrays, deflate).unwrap();
    path
}

/// An array that its archive says is larger than memory is refused before a byte of it is unpacked.
#[test]
fn arrays_beyond_the_free_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(written(folder.path(), true)).unwrap();
    for member in &mut archive.members {
        member.size = 1 << 50;
    }
    let error = archive.read("counts").unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::TooLarge { requested, .. } if requested == 1 << 51), "{text}");
    assert!(text.contains("array `counts` of `") && text.contains("packed.npz"), "{text}");
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for deflate in [false, true] {
        let mut archive = Archive::open(written(folder.path(), deflate)).unwrap();
        for (name, tensor) in samples() {
            assert_eq!(archive.shape(name).unwrap(), tensor.shape);
            assert_eq!(archive.read(name).unwrap(), tensor);
        }
        assert_eq!(archive.maybe("nothing").unwrap(), None);
        let error = archive.read("frames").unwrap_err().to_string();
        assert!(error.contains("it has no array `frames` (arrays: `counts` [2, 3, 2], "), "{error}");
    }
}

/// Made by `numpy.savez_compressed(path, a=numpy.arange(6, dtype=">i2").reshape(2, 3).T, flag=numpy.array([True, False]))` of NumPy
/// 2.4.
#[test]
fn an_archive_of_numpy_is_read() {
    let bytes = include_bytes!("numpy.npz");
    let found = from_bytes(bytes).unwrap();
    assert_eq!(found[0].0, "a");
    assert_eq!(found[0].1.shape, [3, 2]);
    assert_eq!(found[0].1.to_reals().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(found[1], ("flag".into(), Tensor { shape: vec![2], elements: Elements::U16(vec![1, 0]) }));
}

#[test]
fn damage_ends_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    for deflate in [false, true] {
        let whole = std::fs::read(written(folder.path(), deflate)).unwrap();
        let sound = from_bytes(&whole).unwrap();
        let mut refused = 0;
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                match from_bytes(&bytes) {
                    // Names, dates and fields that are there twice do not matter.
                    Ok(found) => assert!(found.iter().zip(&sound).all(|(a, b)| a.1.elements.len() == b.1.elements.len())),
                    Err(message) => {
                        assert!(!message.is_empty());
                        refused += 1;
                    }
                }
            }
            assert!(from_bytes(&whole[..at]).is_err());
        }
        assert!(refused > whole.len() / 2, "{refused} of {}", 3 * whole.len());
    }
    let missing = Archive::open(folder.path().join("no.npz"));
    assert!(matches!(missing, Err(Error::File { action: "read", .. })));
    std::fs::write(folder.path().join("text.npz"), "no archive at all, but long enough for a record at the end").unwrap();
    let error = Archive::open(folder.path().join("text.npz")).err().unwrap().to_string();
    assert!(error.contains("no directory at its end"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = from_bytes(&bytes);
        let mut signed = b"PK\x03\x04".to_vec();
        signed.extend(&bytes);
        signed.extend(b"PK\x05\x06");
        signed.extend(&bytes[..bytes.len().min(40)]);
        let _ = from_bytes(&signed);
    }
}
