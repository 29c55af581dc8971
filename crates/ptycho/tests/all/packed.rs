//! Frames behind the filters that detectors write with. `tests/data/make_packed.py` made the file with h5py and hdf5plugin: six
//! frames of 16 x 20 pixels on a raster of 2 x 3 positions.

use std::path::Path;

use zellige_ptycho::config::ScanConfig;
use zellige_ptycho::data::{self, ReadConfig};
use zellige_ptycho::scan::{Frames, Scan};
use zellige_ptycho::simulate::Pair;

const PIXELS: usize = 16 * 20;

fn load(frames: &str, stream: bool) -> Result<Scan, String> {
    let read = ReadConfig {
        frames: Some(frames.into()),
        positions_y: Some("y".into()),
        positions_x: Some("x".into()),
        positions_unit: 1e-6,
        energy: Some(8.0),
        distance: Some(2.0),
        pixel: Some(Pair::Same(55e-6)),
        stream,
        ..ReadConfig::default()
    };
    let config = ScanConfig { file: Some("packed.h5".into()), read, ..ScanConfig::default() };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptycho/tests/data");
    data::load(&config, "test", &folder, 1).map_err(|e| e.to_string())
}

fn expected(i: usize) -> f32 {
    if i.is_multiple_of(5) { (i * 7 % 301) as f32 } else { 0.0 }
}

#[test]
fn packed_frames_are_unpacked() {
    let filters =
        ["gzip", "lzf", "lz4", "bitshuffle_lz4", "bitshuffle", "blosc_lz4", "blosc_lz4hc", "blosc_blosclz", "blosc_zlib", "blosc_snappy"];
    let other = ["u4", "f4"].iter().flat_map(|kind| ["lz4", "bitshuffle_lz4", "blosc_lz4"].map(|f| format!("{kind}/{f}")));
    for name in filters.map(|f| format!("u2/{f}")).into_iter().chain(other) {
        for stream in [false, true] {
            let mut scan = load(&name, stream).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!((scan.shape, scan.positions.len()), ([16, 20], 6), "{name}");
            assert_eq!(matches!(scan.frames, Frames::Stored(_)), stream, "{name}");
            // All at once, and a part that begins in the middle of a chunk of two frames.
            for (first, count) in [(0, 6), (3, 2)] {
                let mut found = vec![0.0; count * PIXELS];
                scan.frames.read(first, PIXELS, &mut found).unwrap();
                let right = found.iter().enumerate().all(|(i, v)| *v == expected(first * PIXELS + i));
                assert!(right, "{name}, {count} frames from {first}, streamed: {stream}");
            }
        }
    }
}

#[test]
fn what_cannot_be_unpacked_is_named_with_the_way_out() {
    for (filter, said) in [
        ("zstd", "Zstandard (filter 32015"),
        ("blosc_zstd", "Blosc with Zstandard (filter 32001"),
        ("bitshuffle_zstd", "bitshuffle with Zstandard (filter 32008"),
        ("blosc2", "Blosc2 (filter 32026"),
        ("bzip2", "bzip2 (filter 307"),
        ("zfp", "ZFP (filter 32013"),
    ] {
        for stream in [false, true] {
            let error = load(&format!("u2/{filter}"), stream).err().unwrap_or_else(|| panic!("{filter} was read"));
            assert!(error.contains(said) && error.contains("h5repack -f GZIP=1 packed.h5"), "{filter}: {error}");
        }
    }
}
