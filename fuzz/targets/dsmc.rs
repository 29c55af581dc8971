//! The `[dsmc]` table, and the older form of its inputs: any text in any of the three formats gives a checked configuration or
//! a list of problems.
#![no_main]

use zellige_dsmc::Dsmc;
use zellige_dsmc::start::seed;
use zellige_engine::config::{Format, Source};
use zellige_engine::error::Error;

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let format = [Format::Toml, Format::Yaml, Format::Json][usize::from(choice % 3)];
    let checked = Source::parse(text, format, "fuzz").and_then(|mut source| match seed::adopt(&mut source.value) {
        Ok(_) => source.typed::<Dsmc>(),
        Err(problems) => Err(source.problems(problems)),
    });
    match checked {
        Ok(input) => {
            input.check::<Dsmc>();
        }
        Err(Error::Input { problems, .. }) => assert!(!problems.is_empty()),
        Err(other) => panic!("{other}"),
    }
});
