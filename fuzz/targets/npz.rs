//! NPZ: any bytes give arrays whose shapes fit their values, or a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match zellige_io::npz::from_bytes(bytes) {
        Ok(arrays) => {
            for (_, tensor) in arrays {
                assert_eq!(tensor.shape.iter().product::<usize>(), tensor.elements.len());
            }
        }
        Err(message) => assert!(!message.is_empty()),
    }
});
