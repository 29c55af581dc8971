use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, Result};
use crate::links::{Links, inside};

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
    let mut last = [0_u8];
    r.values_from("raw", 1, &mut last).unwrap();
    assert_eq!((last, r.count::<u8>("raw").unwrap()), ([0xff], 2));
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
        (r.values_from("raw", 2, &mut last).unwrap_err(), "`raw` has 2 values, expected 1 from 2 on"),
        (r.values::<u32>("raw").unwrap_err(), "2 bytes, which are not whole values"),
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
    assert!(Reader::open(&path, "toy").unwrap_err().to_string().contains("its end is not that of a whole one"));
    let mut newer = whole.clone();
    newer[8] = 3;
    std::fs::write(&path, newer).unwrap();
    assert!(Reader::open(&path, "toy").unwrap_err().to_string().contains("format version 3"));
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

/// A checkpoint of an array of some blocks, whose pieces go round the parts; pieces are as long as the number of each says.
fn shared(links: &Links, path: &Path, pieces: &[usize]) -> Result<u64> {
    let values: Vec<u32> = (0..pieces.iter().sum::<usize>() as u32).map(|k| k.wrapping_mul(2_654_435_761)).collect();
    let mut own = Vec::new();
    let mut first = 0;
    for (k, length) in pieces.iter().enumerate() {
        if k % links.size() == links.rank() {
            own.push((first, &values[first..first + length]));
        }
        first += length;
    }
    // In any order.
    own.reverse();
    let mut writer = Writer::of_parts(links, path, "toy")?;
    writer.u64("step", if links.is_first() { 7 } else { 0 })?;
    writer.joined("long", &own)?;
    writer.bytes("between", &vec![5; if links.is_first() { 1 << 19 } else { 0 }])?;
    writer.joined("again", &own)?;
    writer.joined::<f64>("none", &[])?;
    let k = links.rank();
    writer.joined("short", &[(k, &values[k..=k])])?;
    writer.finish()
}

#[test]
fn parts_write_the_bytes_that_one_writes_and_read_what_they_want() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    let per_block = BLOCK as usize / 4;
    for pieces in [&[3_usize, 0, 5][..], &[per_block + 7, 2 * per_block, 11, per_block - 1], &[20_000; 60], &[3 * per_block; 4]] {
        // Values of `short` are one for each part: as many parts as in one.
        let mut one: Option<Vec<u8>> = None;
        for parts in [1, 2, 3, 4] {
            let sizes = inside::run(parts, |links| shared(&links, &path, pieces)).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert!(sizes.iter().all(|size| *size == bytes.len() as u64));
            let reader = Reader::open(&path, "toy").unwrap();
            let long = reader.values::<u32>("long").unwrap();
            assert_eq!(long.len(), pieces.iter().sum::<usize>());
            assert!(long.iter().enumerate().all(|(k, v)| *v == (k as u32).wrapping_mul(2_654_435_761)));
            assert!(reader.values::<u32>("again").unwrap() == long && reader.u64("step").unwrap() == 7);
            assert_eq!(reader.values::<u32>("short").unwrap(), long[..parts]);
            let mut some = vec![0; long.len() / 2];
            reader.values_from("again", long.len() / 3, &mut some).unwrap();
            assert!(some == long[long.len() / 3..][..some.len()]);
            // But for `short`, which is the last section.
            let body = |bytes: &[u8]| bytes[..reader.count::<u32>("long").unwrap() * 8 + (1 << 19)].to_vec();
            match &one {
                None => one = Some(body(&bytes)),
                Some(one) => assert!(*one == body(&bytes), "{parts} parts, {} pieces", pieces.len()),
            }
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn damage_is_found_where_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    inside::run(3, |links| shared(&links, &path, &[600_000, 500_000, 400_000])).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in (20..whole.len()).step_by(99_991) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let read = Reader::open(&path, "toy").and_then(|r| r.names().map(|name| r.raw(name).map(drop)).collect::<Result<Vec<_>>>());
        let error = read.unwrap_err().to_string();
        assert!(error.contains("damaged after it was written"), "byte {at}: {error}");
    }
}

#[test]
fn pieces_that_leave_a_gap_are_refused_by_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    let refused = inside::run(2, |links| {
        let mut writer = Writer::of_parts(&links, &path, "toy")?;
        let joined = writer.joined("long", &[(3 * links.rank(), &[1.0_f32, 2.0])]);
        Ok(joined.unwrap_err().to_string())
    });
    assert!(refused.unwrap().iter().all(|error| error.contains("do not fit together at byte 8")));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_part_that_cannot_write_leaves_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.zck");
    sample(&path);
    let failed = inside::run(3, |links| {
        let mut writer = Writer::of_parts(&links, &path, "toy")?;
        if links.rank() == 2 {
            writer.deny_writes();
        }
        let values = vec![links.rank() as f64; 1 << 18];
        writer.joined("long", &[(links.rank() << 18, &values[..])])?;
        Ok(writer.finish().unwrap_err().to_string())
    });
    let messages = failed.unwrap();
    assert!(messages[2].starts_with("cannot write `"), "{messages:?}");
    assert!(messages[..2].iter().all(|message| message.starts_with("part 2 ended the run: cannot write `")), "{messages:?}");
    assert_eq!(Reader::open(&path, "toy").unwrap().u64("step").unwrap(), 7);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..200), magic in any::<bool>(), sealed in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.zck");
        let mut bytes = if magic { [&MAGIC[..], &VERSION.to_le_bytes(), &0_u32.to_le_bytes()].concat() } else { Vec::new() };
        bytes.extend(tail);
        // With right checksums, which nobody finds by chance.
        let (hash, body) = (*blake3::hash(&bytes).as_bytes(), bytes.len() as u64);
        if sealed {
            bytes.extend([&hash[..], &body.to_le_bytes(), &seal(&[hash], body)].concat());
        }
        std::fs::write(&path, bytes).unwrap();
        if let Ok(reader) = Reader::open_any(&path) {
            prop_assert!(magic && sealed && reader.names().all(|name| reader.raw(name).is_ok()));
        }
    }
}
