//! Files of bodies (SPARTA's surfaces, the older geometry files) and of sources: any text gives curves, a source, or a message.
#![no_main]

use std::io::Write;

use zellige_dsmc::geometry::Gas;
use zellige_dsmc::geometry::read::{Label, read};
use zellige_dsmc::grid::Grid;
use zellige_dsmc::start::source;

libfuzzer_sys::fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let ending = if choice % 4 == 3 { ".yaml" } else { ".surf" };
    let mut file = tempfile::Builder::new().suffix(ending).tempfile().expect("a temporary file can be made");
    file.write_all(bytes).expect("and written");
    let found = match choice % 4 {
        3 => source::read(file.path(), None, 4.65e-26).map(drop),
        gas => {
            let grid = Grid { cells: [12, 8], h: [0.25, 0.5], origin: [-1.0, 0.0], dimensions: 2 };
            let gas = if gas == 0 { Gas::Inside } else { Gas::Outside };
            read(file.path(), &grid, Label { name: "body", origin: "fuzz", gas, wall: 0, types: &[("2", 1)] }).map(drop)
        }
    };
    if let Err(error) = found {
        assert!(!error.to_string().is_empty());
    }
});
