//! Results to start from: any bytes as a `.ptyr` or NPZ file beside a sound scan give a problem whose probe and object have their
//! sizes, or an error. The first byte chooses the ending and whether the input names a scan of the file.
#![no_main]

use std::sync::OnceLock;

use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{ReadConfig, write};
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{self, Pair, SimulateConfig};

/// A folder with `scan.npz`, made once.
fn folder() -> &'static std::path::Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = || {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let small = SimulateConfig { frames: 4, size: Pair::Same(8), ..SimulateConfig::default() };
        let mut scan = simulate::simulate(&small, "s", folder.path(), 1).expect("a scan can be made");
        write::write_npz(folder.path().join("scan.npz"), &mut scan).expect("and written");
        folder
    };
    FOLDER.get_or_init(made).path()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, content)) = bytes.split_first() else { return };
    let name = ["start.ptyr", "start.npz"][usize::from(choice % 2)];
    std::fs::write(folder().join(name), content).expect("the folder can be written to");
    let start_label = (choice & 2 != 0).then(|| "scan00".to_owned());
    let read = ReadConfig { start: Some(name.into()), start_label, ..ReadConfig::default() };
    let scan = ScanConfig { file: Some("scan.npz".into()), read, ..ScanConfig::default() };
    let config = Config::new(scan, EngineConfig::new(EngineName::Dm, 1));
    match setup::scans(&config, folder(), 1).and_then(|mut scans| setup::model(&config, &mut scans, 1)) {
        Ok(model) => assert_eq!((model.start.probe.len(), model.start.object.len()), (model.probe_len(), model.object_len())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
