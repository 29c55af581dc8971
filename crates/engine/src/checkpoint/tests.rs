use super::*;
use proptest::prelude::*;

fn sample(path: &Path) -> u64 {
    let mut w = Writer::create(path, "toy").unwrap();
    w.u64("step", 7).unwrap();
    w.f64("time", f64::NAN).unwrap();
    w.bytes("raw", b"\x00\xff").unwrap();
    w.f32s("u", &[1.5, f32::NEG_INFINITY]).unwrap();
    w.f64s("v", &[-0.0, 1e-310]).unwrap();
    w.json("meta", &("two", 2)).unwrap();
    assert!(w.u64("step", 8).is_err());
    w.finish().unwrap()
}

#[test]
fn gives_back_every_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    assert_eq!(sample(&path), std::fs::metadata(&path).unwrap().len());
    let r = Reader::open(&path, "toy").unwrap();
    assert_eq!(r.u64("step").unwrap(), 7);
    assert!(r.f64("time").unwrap().is_nan());
    assert_eq!(r.bytes("raw").unwrap(), b"\x00\xff");
    let mut last = [0];
    r.bytes_from("raw", 1, &mut last).unwrap();
    assert_eq!((last, r.bytes_len("raw").unwrap()), ([0xff], 2));
    assert_eq!(r.f32s("u").unwrap(), [1.5, f32::NEG_INFINITY]);
    let mut v = [0.0; 2];
    r.f64s_into("v", &mut v).unwrap();
    assert_eq!(v.map(f64::to_bits), [(-0.0_f64).to_bits(), 1e-310_f64.to_bits()]);
    assert_eq!(r.json::<(String, u32)>("meta").unwrap(), ("two".to_owned(), 2));
    assert_eq!(r.names().collect::<Vec<_>>(), ["meta", "raw", "step", "time", "u", "v"]);
    for (error, part) in [
        (r.u64("steps").unwrap_err(), "`steps` is missing"),
        (r.f64("step").unwrap_err(), "`step` is U64, expected F64"),
        (r.f32s_into("u", &mut [0.0; 3]).unwrap_err(), "2 values, expected 3"),
        (r.bytes_from("raw", 2, &mut last).unwrap_err(), "`raw` has 2 bytes"),
        (Reader::open(&path, "pic").unwrap_err(), "belongs to the solver `toy`, not to `pic`"),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn refuses_every_damaged_byte_and_every_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    sample(&path);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(Reader::open(&path, "toy"), Err(Error::Format { .. })), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(matches!(Reader::open(&path, "toy"), Err(Error::Format { .. })), "cut at {at}");
    }
    std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(Reader::open(&path, "toy").unwrap_err().to_string().contains("1 bytes follow"));
    let mut newer = whole.clone();
    newer[8] = 2;
    std::fs::write(&path, newer).unwrap();
    assert!(Reader::open(&path, "toy").unwrap_err().to_string().contains("format version 2"));
    assert!(matches!(Reader::open(folder.path(), "toy"), Err(Error::File { .. })));
}

#[test]
fn an_abandoned_writer_keeps_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    sample(&path);
    let mut w = Writer::create(&path, "toy").unwrap();
    w.f64s("v", &vec![1.0; 100_000]).unwrap();
    drop(w);
    assert_eq!(Reader::open(&path, "toy").unwrap().u64("step").unwrap(), 7);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.zck");
        let mut bytes = if magic { [&MAGIC[..], &VERSION.to_le_bytes(), &0_u32.to_le_bytes()].concat() } else { Vec::new() };
        bytes.extend(tail);
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(Reader::open_any(&path).is_err());
    }
}
