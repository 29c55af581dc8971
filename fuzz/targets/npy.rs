//! NPY: any bytes give an array whose shape fits its values, or a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match zellige_io::npy::from_bytes(bytes) {
        Ok(array) => assert_eq!(array.shape.iter().product::<usize>(), array.values.len()),
        Err(message) => assert!(!message.is_empty()),
    }
});
