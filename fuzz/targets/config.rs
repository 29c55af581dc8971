//! Inputs: any text in any of the three formats gives a checked configuration or a list of problems, each with a place
//! in the text where it has one.
#![no_main]

use zellige_engine::config::{Format, Source};
use zellige_engine::error::Error;
use zellige_poisson::Poisson;

libfuzzer_sys::fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let format = [Format::Toml, Format::Yaml, Format::Json][usize::from(choice % 3)];
    let checked = Source::parse(text, format, "fuzz").and_then(|mut source| {
        // Values of the command line go through the same checks.
        source.set(&[text.lines().next().unwrap_or_default()]).ok();
        source.typed::<Poisson>()
    });
    match checked {
        Ok(input) => {
            input.check::<Poisson>();
        }
        Err(Error::Input { problems, .. }) => {
            assert!(!problems.is_empty());
            // A carriage return alone ends a line in YAML (1.2.2, 5.4), though not in the other two, and the end
            // of a text without a last line break lies on a line of its own there.
            let lines = text.chars().filter(|c| matches!(c, '\n' | '\r')).count() + 2;
            for (line, column) in problems.iter().filter_map(|p| p.position) {
                assert!((1..=lines).contains(&line) && column >= 1, "line {line}, column {column} of {lines} lines");
            }
        }
        Err(other) => panic!("{other}"),
    }
});
