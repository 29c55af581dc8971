use proptest::prelude::*;

use super::*;

fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn types_and_orders_are_converted() {
    let be: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    assert_eq!(from_bytes(&file(">f4", "False", "(2,)", &be)).unwrap().values, [1.5, -2.0]);
    let int: Vec<u8> = [-3i16, 300].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(from_bytes(&file("<i2", "False", "(2,)", &int)).unwrap().values, [-3.0, 300.0]);
    let big: Vec<u8> = [-3i32].iter().flat_map(|v| v.to_be_bytes()).collect();
    assert_eq!(from_bytes(&file(">i4", "False", "()", &big)).unwrap(), Array { shape: vec![], values: vec![-3.0] });
    assert_eq!(from_bytes(&file("|u1", "False", "(2, 1)", &[200, 1])).unwrap().values, [200.0, 1.0]);
    let columns: Vec<u8> = [0.0f64, 10.0, 1.0, 11.0, 2.0, 12.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let array = from_bytes(&file("<f8", "True", "(2, 3)", &columns)).unwrap();
    assert_eq!(array, Array { shape: vec![2, 3], values: vec![0.0, 1.0, 2.0, 10.0, 11.0, 12.0] });
}

/// Rows are those of the whole array, in either order; no others are read.
#[test]
fn rows_are_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let values = |order: [usize; 2]| -> Vec<u8> {
        let value = |n: usize| if order[0] == 1 { n % 4 * 3 + n / 4 } else { n } as f64;
        (0..12).flat_map(|n| value(n).to_le_bytes()).collect()
    };
    for (fortran, order) in [("False", [3, 1]), ("True", [1, 4])] {
        std::fs::write(&path, file("<f8", fortran, "(4, 3)", &values(order))).unwrap();
        assert_eq!(read_rows(&path, 1..3).unwrap(), Array { shape: vec![2, 3], values: (3..9).map(f64::from).collect() }, "{fortran}");
        assert!(read_rows(&path, 4..4).unwrap().values.is_empty());
        let refused = read_rows(&path, 3..5).unwrap_err().to_string();
        assert!(refused.contains("it has 4 rows, those asked for are 3 to 5"), "{refused}");
    }
}

#[test]
fn versions_two_and_three_have_a_longer_length() {
    for version in [2, 3] {
        let text = "{\"shape\": (1,), 'fortran_order': False, 'descr': '<f8'}";
        let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(4.25f64.to_le_bytes());
        assert_eq!(from_bytes(&bytes).unwrap().values, [4.25]);
    }
}

#[test]
fn what_is_wrong_is_named() {
    let cases: &[(Vec<u8>, &str)] = &[
        (b"PK\x03\x04xxxx".to_vec(), "it starts with [50, 4b, 03, 04, 78, 78]"),
        (b"\x93NUM".to_vec(), "ends within the magic bytes"),
        (b"\x93NUMPY\x07\x00".to_vec(), "its version is 7.0"),
        (b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "ends within the header"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "claims 4294967295 bytes"),
        (file("<f8", "False", "(3,)", &[0; 16]), "needs 24 bytes of data, 16 are there"),
        (file("<f8", "False", "(1,)", &[0; 16]), "needs 8 bytes of data, 16 are there"),
        (file("<f8", "False", "(4294967296, 4294967296, 4)", &[]), "beyond any memory"),
        (file("<f8", "False", "(1000000000, 1000000000)", &[0; 8]), "needs 8000000000000000000 bytes"),
        (file("<f8", "False", "(99999999999999999999999,)", &[]), "beyond any memory"),
        (file("<c16", "False", "(1,)", &[0; 16]), "`<c16` is not supported"),
        (file("|O", "False", "(1,)", &[0; 8]), "`|O` is not supported"),
        (file("|f8", "False", "(1,)", &[0; 8]), "`|f8` is not supported"),
        (file("<f8", "Maybe", "(1,)", &[0; 8]), "expected `True` or `False`"),
        (file("<f8", "False", "(-1,)", &[0; 8]), "expected a length"),
        (file("<f8", "False", "1", &[0; 8]), "expected `(`"),
    ];
    for (bytes, message) in cases {
        let error = from_bytes(bytes).unwrap_err();
        assert!(error.contains(message), "{error}\nlacks {message}");
    }
}

#[test]
fn a_wrong_shape_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    assert!(write(&path, &[2, 2], &Values::F64(vec![0.0; 3])).is_err());
    assert!(!path.exists());
}

proptest! {
    // Each case waits for the disk.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_written_is_read(shape in prop::collection::vec(0usize..7, 0..4), single: bool, seed: u32) {
        let count = shape.iter().product::<usize>();
        let value = |i: usize| f64::from((i as u32).wrapping_mul(2_654_435_761) ^ seed) * 1e-3 - 7.0;
        let values = if single {
            Values::F32((0..count).map(|i| value(i) as f32).collect())
        } else {
            Values::F64((0..count).map(value).collect())
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        write(&path, &shape, &values).unwrap();
        prop_assert_eq!(std::fs::metadata(&path).unwrap().len() % 4, 0);
        let array = read(&path).unwrap();
        prop_assert_eq!(array.shape, shape);
        prop_assert!((0..count).all(|i| array.values[i] == values.get(i)));
    }

}

proptest! {
    #[test]
    fn any_bytes_end_in_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_bytes(&bytes);
    }

    /// Damage one byte of a sound file, or cut it off: an array of the file's size or an error.
    #[test]
    fn damage_ends_in_an_answer(at in 0usize..200, to: u8, cut in 0usize..200) {
        let mut bytes = header("<f8", &[3, 4]);
        bytes.extend([0u8; 96]);
        let at = at % bytes.len();
        bytes[at] = to;
        bytes.truncate(bytes.len() - cut.min(bytes.len()) * usize::from(cut % 3 == 0));
        if let Ok(array) = from_bytes(&bytes) {
            prop_assert!(array.values.len() <= bytes.len());
        }
    }

    #[test]
    fn any_header_text_ends_in_an_answer(text in "[{}'\":(),a-zA-Z0-9_<> ]{0,80}") {
        let _ = Header::parse(&text);
    }
}
