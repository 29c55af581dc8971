//! Tables of a gas, SPARTA's `.species` and `.vss`: any text gives molecules that the solver can work with, or a message with the
//! line.
#![no_main]

use std::path::Path;

use zellige_dsmc::gas::sparta::{self, Relax};

libfuzzer_sys::fuzz_target!(|input: (bool, bool, &str)| {
    let (pairs, variable, text) = input;
    let path = Path::new("fuzz");
    // All that the text names: what a run does not use is passed over.
    let used = sparta::names(text);
    let relax = if variable { Relax::Variable } else { Relax::Constant };
    if pairs {
        match sparta::vss(path, text, &used, relax) {
            Ok(vss) => assert!(vss.species.iter().map(|s| &s.1).chain(vss.pairs.iter().map(|p| &p.1)).all(|s| sparta::fault(s).is_none())),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        return;
    }
    match sparta::species(path, text, &used) {
        Ok(all) => {
            assert!(!all.is_empty() && all.iter().map(|s| &s.species).all(|s| s.mass > 0.0 && s.mass.is_finite() && !s.name.is_empty()))
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
