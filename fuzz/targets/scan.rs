//! Scans: any bytes as an NPZ, `.ptyd`, CXI or HDF5 file give a scan whose frames, positions and mask fit one another, or an error.
//! The first byte chooses the ending.
#![no_main]

use std::path::Path;

use zellige_ptycho::config::ScanConfig;
use zellige_ptycho::data::{self, ReadConfig};
use zellige_ptycho::scan::Mask;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, content)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let name = ["scan.npz", "scan.ptyd", "scan.cxi", "scan.h5"][usize::from(choice % 4)];
    std::fs::write(folder.path().join(name), content).expect("and written to");
    let mut read = ReadConfig { stream: choice & 64 != 0, ..ReadConfig::default() };
    if choice % 4 == 3 {
        read.frames = Some("data".into());
        read.positions = Some("positions".into());
        (read.energy, read.distance) = (Some(8.0), Some(1.0));
        read.pixel = Some(zellige_ptycho::simulate::Pair::Same(1e-4));
    }
    let config = ScanConfig { file: Some(name.into()), read, ..ScanConfig::default() };
    match data::load(&config, "fuzz", Path::new(folder.path()), 1) {
        Ok(mut scan) => {
            let pixels = scan.shape[0] * scan.shape[1];
            assert_eq!(scan.frames.len(pixels), scan.positions.len());
            match &scan.mask {
                Mask::All => {}
                Mask::Common(m) => assert_eq!(m.len(), pixels),
                Mask::Each(m) => assert_eq!(m.len(), pixels * scan.positions.len()),
            }
            let mut frame = vec![0.0; pixels];
            let _ = scan.frames.read(0, pixels, &mut frame);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
