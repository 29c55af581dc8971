//! The `[pic]` table: any text in any of the three formats, with the table's head put before half of the TOML texts, gives a
//! checked configuration or a list of problems.
#![no_main]

use zellige_engine::config::{Format, Source};
use zellige_engine::error::Error;
use zellige_pic::Pic;

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let format = [Format::Toml, Format::Yaml, Format::Json][usize::from(choice % 3)];
    let head = if choice >= 128 && choice % 3 == 0 { "[pic]\n" } else { "" };
    match Source::parse(&format!("{head}{text}"), format, "fuzz").and_then(|source| source.typed::<Pic>()) {
        Ok(input) => {
            input.check::<Pic>();
        }
        Err(Error::Input { problems, .. }) => assert!(!problems.is_empty()),
        Err(other) => panic!("{other}"),
    }
});
