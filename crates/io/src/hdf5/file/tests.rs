//! `kinds.h5` and `other.h5` were made by h5py 3.16 with HDF5 2.0: `a = arange(24, dtype="u2").reshape(2, 3, 4)` in many types
//! (`i4` less 5, `big` half in big-endian, `u4` plus 2^32 - 30, ...), packed in chunks, behind soft and external links and in a
//! virtual dataset.

use super::*;

fn open() -> (tempfile::TempDir, File) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kinds.h5"), include_bytes!("kinds.h5")).unwrap();
    std::fs::write(folder.path().join("other.h5"), include_bytes!("other.h5")).unwrap();
    let file = File::open(folder.path().join("kinds.h5")).unwrap();
    (folder, file)
}

fn ramp(f: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..24).map(|i| f(f64::from(i))).collect()
}

#[test]
fn every_type_of_h5py_is_read() {
    let (_folder, file) = open();
    let reals = |name: &str| {
        let tensor = file.read(name).unwrap();
        assert_eq!(tensor.shape, [2, 3, 4], "{name}");
        tensor.to_reals().unwrap()
    };
    assert_eq!(reals("deep/packed"), ramp(|v| v));
    assert_eq!(reals("/deep/i4"), ramp(|v| v - 5.0));
    assert_eq!(reals("deep/big"), ramp(|v| v / 2.0));
    assert_eq!(reals("deep/big2"), ramp(|v| v - 3.0));
    assert_eq!(reals("deep/u4"), ramp(|v| v + 4_294_967_266.0));
    assert_eq!(reals("deep/u1"), ramp(|v| v));
    assert_eq!(reals("deep/i8"), ramp(|v| v - 7.0));
    assert_eq!(reals("deep/f8"), ramp(|v| v / 4.0));
    assert_eq!(reals("deep/flag"), ramp(|v| f64::from(u8::from(v % 2.0 == 0.0))));
    let complex: Vec<Complex<f32>> = (0..24).map(|i| Complex::new(i as f32, ((i + 12) % 24) as f32)).collect();
    assert_eq!(file.read("deep/c8").unwrap().to_complex(), complex);
    let complex: Vec<Complex<f32>> = (0..24).map(|i| Complex::new(i as f32, -2.0 * i as f32)).collect();
    assert_eq!(file.read("deep/c16").unwrap().to_complex(), complex);
    assert_eq!(file.number("scalar").unwrap(), Some(7.25));
    assert_eq!(file.number("no/scalar").unwrap(), None);
    assert_eq!(file.text("name").unwrap().as_deref(), Some("beam line"));
    assert_eq!(file.text("fixed").unwrap().as_deref(), Some("fixed text"));
    assert_eq!(file.attribute("scalar", "units").unwrap().as_deref(), Some("keV"));
}

#[test]
fn links_are_followed_into_other_files() {
    let (folder, file) = open();
    assert_eq!(file.read("soft").unwrap().to_reals().unwrap(), ramp(|v| v));
    assert_eq!(file.read("external").unwrap().to_reals().unwrap(), ramp(|v| v + 100.0));
    assert_eq!(file.read("virtual").unwrap().to_reals().unwrap(), [ramp(|v| v), ramp(|v| v + 100.0)].concat());
    assert_eq!(file.external("", "external").unwrap(), Some((folder.path().join("other.h5"), "far/away".into())));
    assert_eq!(file.external("deep", "packed").unwrap(), None);
    assert!(file.children("deep").unwrap().contains(&"c8".to_owned()) && file.children("").unwrap().contains(&"lost".to_owned()));
}

#[test]
fn sources_elsewhere_must_be_there_whole() {
    let (folder, file) = open();
    let other = folder.path().join("other.h5");
    let whole = std::fs::read(&other).unwrap();
    std::fs::write(&other, &whole[..whole.len() - 8]).unwrap();
    for name in ["external", "virtual"] {
        let error = file.read(name).unwrap_err().to_string();
        assert!(error.contains("other.h5` is not a valid HDF5 file: it was cut off"), "{name}: {error}");
        assert!(file.part(name).is_err(), "{name}");
    }
    std::fs::remove_file(&other).unwrap();
    let error = file.read("virtual").unwrap_err().to_string();
    assert!(error.contains("other.h5`, which is not there"), "{error}");
}

#[test]
fn parts_are_parts_of_the_whole() {
    let (_folder, file) = open();
    for name in ["deep/packed", "deep/big", "deep/big2", "deep/i4", "deep/f8", "deep/u1", "soft", "external", "virtual"] {
        let whole = file.read(name).unwrap().to_reals().unwrap();
        let part = file.part(name).unwrap();
        let found = part.read(&[1, 1, 0], &[1, 2, 4]).unwrap();
        let found = Tensor { shape: vec![8], elements: found }.to_reals().unwrap();
        assert_eq!(found, whole[16..24], "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let (_folder, file) = open();
    for (name, said) in [
        ("frames", "it has no dataset `frames` (datasets: "),
        ("deep/half", "real numbers of 2 bytes are not supported"),
        ("record", "records other than complex numbers"),
        ("name", "are not supported"),
        ("dangling", "`/deep/nothing`"),
        ("lost", "`absent.h5`"),
    ] {
        let error = file.read(name).unwrap_err().to_string();
        assert!(error.contains(said), "{name}: {error}");
    }
}

/// Bytes set to 0xff, and cuts, all over a sound file: values or an error, never a panic or a huge allocation.
#[test]
fn damage_ends_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinds.h5");
    let whole = include_bytes!("kinds.h5");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let read_all = || {
        let Ok(file) = File::open(&path) else { return };
        for name in ["deep/packed", "deep/c8", "soft", "virtual", "name", "scalar"] {
            let _ = file.read(name);
            let _ = file.text(name);
            let _ = file.part(name).and_then(|p| p.read(&[0, 0, 0], &[1, 3, 4]));
        }
        let _ = (file.listing(), file.children("deep"));
    };
    for at in (0..whole.len()).step_by(whole.len() / 200 + 1) {
        let mut bytes = whole.to_vec();
        bytes[at] = 0xff;
        std::fs::write(&path, &bytes).unwrap();
        read_all();
        std::fs::write(&path, &whole[..at]).unwrap();
        read_all();
    }
    std::panic::set_hook(hook);
}

#[test]
fn a_tree_is_written_and_read() {
    use super::super::{Attribute, Node, Value, write_tree};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.h5");
    let counts = Tensor { shape: vec![3, 2, 2], elements: Elements::U16((0..12).collect()) };
    let probe = Tensor { shape: vec![2], elements: Elements::Complex(vec![Complex::new(1.0, -1.0), Complex::new(0.0, 2.5)]) };
    let mut entry = Node::new("entry_1", Value::Group).with("NX_class", "NXentry");
    entry.attributes.push(("indices", Attribute::Whole(vec![1, 2])));
    entry.attributes.push(("axes", Attribute::Texts(vec!["x".into(), ".".into()])));
    let nodes = [
        entry,
        Node::new("entry_1/data_1/data", Value::Packed(&counts)).with("units", "counts"),
        Node::new("entry_1/probe", Value::Array(&probe)),
        Node::text("entry_1/title", "a scan"),
        Node::number("entry_1/energy", 1.5e-15).with("units", "J"),
        Node::new("cxi_version", Value::Whole(160)),
        Node::new("entry_1/link", Value::Link("entry_1/data_1/data".into())),
    ];
    write_tree(&path, &nodes).unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.read("entry_1/data_1/data").unwrap(), counts);
    assert_eq!(file.read("entry_1/link").unwrap(), counts);
    assert_eq!(file.read("entry_1/probe").unwrap(), probe);
    assert_eq!(file.text("entry_1/title").unwrap().as_deref(), Some("a scan"));
    assert_eq!(file.number("entry_1/energy").unwrap(), Some(1.5e-15));
    assert_eq!(file.number("cxi_version").unwrap(), Some(160.0));
    assert_eq!(file.attribute("entry_1/energy", "units").unwrap().as_deref(), Some("J"));
}

/// `chunks.h5` and `chunks_latest.h5` were made by h5py 3.16: `a = 7 * arange(1, 1601, dtype="i4").reshape(40, 40)` in chunks of 16
/// x 16, in the oldest and in the latest layout of the format, `half` with only its first 16 rows written, `never` and `hollow`
/// without any.
const CHUNKED: [(&[u8], &[&str]); 2] =
    [(include_bytes!("chunks.h5"), &["gzip", "checked"]), (include_bytes!("chunks_latest.h5"), &["gzip", "growing", "free", "one"])];

fn sevens() -> Vec<f64> {
    (1..=1600).map(|i| 7.0 * f64::from(i)).collect()
}

fn put(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.h5");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn chunks_in_every_index_are_read() {
    for (bytes, names) in CHUNKED {
        let (_folder, path) = put(bytes);
        let file = File::open(&path).unwrap();
        for name in names {
            assert_eq!(file.read(name).unwrap().to_reals().unwrap(), sevens(), "{name}");
        }
    }
}

#[test]
fn what_was_never_written_is_no_data() {
    let (_folder, path) = put(CHUNKED[0].0);
    let file = File::open(&path).unwrap();
    let error = |name: &str| file.read(name).unwrap_err().to_string();
    assert!(error("half").contains("of the dataset `half`, 6 of 9 chunks hold no data, the first at [16, 0]"), "{}", error("half"));
    assert!(error("never").contains("9 of 9 chunks hold no data"), "{}", error("never"));
    assert!(error("hollow").contains("it was never written"), "{}", error("hollow"));
    // Zeros that somebody wrote are data, and so are parts that were written.
    assert_eq!(file.read("zeros").unwrap().to_reals().unwrap(), vec![0.0; 1600]);
    let part = file.part("half").unwrap();
    assert_eq!(Tensor { shape: vec![80], elements: part.read(&[2, 0], &[2, 40]).unwrap() }.to_reals().unwrap(), sevens()[80..160]);
    assert!(part.read(&[14, 0], &[4, 40]).is_err());
    let (_folder, path) = put(CHUNKED[1].0);
    assert!(File::open(&path).unwrap().read("half").is_err());
}

#[test]
fn a_file_that_was_cut_off_is_refused_at_every_length() {
    for (bytes, _) in CHUNKED {
        let (_folder, path) = put(bytes);
        for length in (1..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let error = File::open(&path).err().unwrap_or_else(|| panic!("opened with {length} of {} bytes", bytes.len()));
            assert!(matches!(error, Error::Format { .. }), "{error}");
        }
    }
}

/// One bit of a byte turned over: never zeros in the place of numbers, and no other numbers at all where chunks have checksums.
/// (Elsewhere other numbers can come of it: the format has no checksum for the index of its oldest layout, and one for chunks on
/// request. A damaged type or shape is for who knows what it should be.)
#[test]
fn a_damaged_index_does_not_read_as_zeros() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut found = Vec::new();
    for (bytes, names) in CHUNKED {
        let (_folder, path) = put(bytes);
        // Each bit of a byte in turn; the steps are for the time that it takes.
        for at in (0..bytes.len()).step_by(17) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            let Ok(file) = File::open(&path) else { continue };
            for name in names {
                let Some(tensor) = file.read(name).ok().filter(|t| t.shape == [40, 40] && t.elements.kind() == "i32") else { continue };
                let values = tensor.to_reals().unwrap();
                let zeros = values.iter().filter(|v| **v == 0.0).count();
                if zeros > 1 || *name == "checked" && values != sevens() {
                    found.push((at, *name, zeros));
                }
            }
        }
    }
    std::panic::set_hook(hook);
    assert!(found.is_empty(), "{found:?}");
}

/// Bytes of NumPy's `longdouble`: 1, -0.1, 2^-16445 and infinity.
#[test]
fn reals_of_eighty_bits_are_rounded() {
    let datatype = DatatypeMessage::FloatingPoint {
        size: 16,
        byte_order: ByteOrder::LittleEndian,
        sign_location: 79,
        bit_offset: 0,
        bit_precision: 80,
        exponent_location: 64,
        exponent_size: 15,
        mantissa_location: 0,
        mantissa_size: 64,
        exponent_bias: 16383,
    };
    let number = |mantissa: u64, head: u16| [&mantissa.to_le_bytes()[..], &head.to_le_bytes(), &[0; 6]].concat();
    let bytes = [number(1 << 63, 0x3fff), number(0xcccc_cccc_cccc_cccd, 0xbffb), number(1, 0), number(1 << 63, 0x7fff)];
    let values = super::decode(&bytes.concat(), &datatype).unwrap().into_reals().unwrap();
    assert_eq!(values, [1.0, -0.1, 0.0, f64::INFINITY]);
}
