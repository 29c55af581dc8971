//! Words of the command line for those who drive a run from a language.

/// Options that calls have under another name, or that the package has words of its own for.
const WORDS: [(&str, &str); 8] = [
    ("`--device cpu`", "`device=\"cpu\"`"),
    ("`--device`", "`device`"),
    ("`--threads`", "`threads`"),
    ("`--resume`", "`resume`"),
    ("`-o DIR`", "`output`"),
    ("`--output`", "`output`"),
    ("(given by `--set`)", "(given by an override)"),
    ("command line: ", "the arguments: "),
];

/// Text of an error, or its hint, in which an option is an argument of a call of the Python package; options that only the command
/// has are named with it.
pub fn for_python(text: &str) -> String {
    let text = WORDS.iter().fold(text.to_owned(), |text, (option, argument)| text.replace(option, argument));
    text.replace("`--", "`zellige run --")
}

#[cfg(test)]
mod tests {
    use super::for_python;

    #[test]
    fn options_are_arguments_or_those_of_the_command() {
        for (text, python) in [
            ("a larger `weight`, or `--device cpu`", "a larger `weight`, or `device=\"cpu\"`"),
            ("use another `--device`, fewer `--threads`", "use another `device`, fewer `threads`"),
            ("choose another folder with `-o DIR`; `--force` writes", "choose another folder with `output`; `zellige run --force` writes"),
            ("`--resume`: there is no checkpoint in `out`", "`resume`: there is no checkpoint in `out`"),
            ("command line: 1 problem", "the arguments: 1 problem"),
            ("(given by `--set`)", "(given by an override)"),
            ("resume with `zellige run --resume out`", "resume with `zellige run --resume out`"),
        ] {
            assert_eq!(for_python(text), python);
        }
    }
}
