//! The text of a program from its source files and what they include.

/// Texts of kernels by file name: `.cu` files, and those made from Rust. [`crate::cuda_files!`] lists them.
pub type Files = [(&'static str, &'static [&'static str])];

/// Lists source files beside the Rust file, then texts that `#[device]` has made under names of their own:
/// `cuda_files!["common.cu", "advance.cu"; "physics.cuh" => PHYSICS]`.
#[macro_export]
macro_rules! cuda_files {
    ($($file:literal),+ $(,)? $(; $($made:literal => $text:expr),+ $(,)?)?) => {
        &[$(($file, &[include_str!($file)]),)+ $($(($made, $text)),+)?]
    };
}

/// The text of the files `roots` in their order: a line `#include "NAME"` stands for that file where it is the first to name it.
/// `#line` makes the compiler's log name files and lines as they are.
///
/// # Panics
/// Where a file is named that is not in `files`, or one includes itself.
pub(super) fn assembled(files: &Files, roots: &[&str]) -> String {
    let (mut text, mut seen) = (String::new(), Vec::new());
    for root in roots {
        include(files, root, &mut seen, &mut text);
    }
    text
}

/// Adds a file, unless it has been added; `seen`: whether it is complete.
fn include<'a>(files: &'a Files, name: &str, seen: &mut Vec<(&'a str, bool)>, text: &mut String) {
    if let Some((_, complete)) = seen.iter().find(|(file, _)| *file == name) {
        assert!(complete, "{name} includes itself");
        return;
    }
    let Some((file, parts)) = files.iter().find(|(file, _)| *file == name) else { panic!("there is no kernel source {name}") };
    let number = seen.len();
    seen.push((file, false));
    text.extend(["#line 1 \"", name, "\"\n"]);
    for (k, line) in parts.iter().flat_map(|part| part.lines()).enumerate() {
        if let Some(included) = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) {
            include(files, included, seen, text);
            text.extend(["#line ", &(k + 2).to_string(), " \"", name, "\"\n"]);
        } else {
            *text += line;
            text.push('\n');
        }
    }
    seen[number].1 = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &Files = &[
        ("a.cu", &["#include \"types.cuh\"\n#include \"b.cu\"\nint a;\n"]),
        ("b.cu", &["namespace n {\n#include \"types.cuh\"\n}\nint b;"]),
        ("types.cuh", &["int t;\n", "int u;"]),
        ("loop.cu", &["#include \"round.cu\""]),
        ("round.cu", &["#include \"loop.cu\""]),
    ];

    #[test]
    fn files_stand_where_they_are_first_named() {
        let text = assembled(FILES, &["a.cu", "b.cu"]);
        let code: Vec<_> = text.lines().filter(|l| !l.starts_with("#line")).collect();
        assert_eq!(code, ["int t;", "int u;", "namespace n {", "}", "int b;", "int a;"]);
        assert!(text.ends_with("#line 3 \"a.cu\"\nint a;\n"), "{text}");
    }

    #[test]
    #[should_panic(expected = "there is no kernel source c.cu")]
    fn an_unknown_file_is_named() {
        assembled(FILES, &["a.cu", "c.cu"]);
    }

    #[test]
    #[should_panic(expected = "loop.cu includes itself")]
    fn a_circle_is_named() {
        assembled(FILES, &["loop.cu"]);
    }
}
