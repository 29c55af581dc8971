//! Checkpoints: any file is refused with a message or read in full. A right checksum is put after half of the inputs,
//! since none would be found by chance.
#![no_main]

use std::io::Write;

use zellige_engine::checkpoint::Reader;

libfuzzer_sys::fuzz_target!(|input: (bool, &[u8])| {
    let (sealed, bytes) = input;
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let (hash, body) = (*blake3::hash(bytes).as_bytes(), (bytes.len() as u64).to_le_bytes());
    // Inputs of a fuzzer are shorter than a block.
    let seal = *blake3::hash(&[&hash[..], &body].concat()).as_bytes();
    let end = if sealed { [&hash[..], &body, &seal].concat() } else { Vec::new() };
    file.write_all(&[bytes, &end].concat()).expect("and written");
    let Ok(reader) = Reader::open_any(file.path()) else { return };
    for name in reader.names() {
        // Each of these either fits the section or says why not.
        assert!(reader.has(name));
        let _ = (reader.u64(name), reader.f64(name), reader.bytes(name), reader.f32s(name), reader.f64s(name));
        let _ = reader.f64s_into(name, &mut [0.0; 3]);
        let _ = reader.json::<zellige_poisson::Config>(name);
    }
});
