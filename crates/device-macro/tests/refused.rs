//! Code that the attribute refuses, each case at its token with what to write instead: the compiler on every case of
//! `tests/refused`, whose `.stderr` holds the expected output. The macro is the one that was built for this program: nothing else
//! is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The macro, beside this program. Of several, built for other sets of crates, the last one: those that are older and were not
/// built anew are of the same sources.
fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let entries = std::fs::read_dir(program.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let name = name.strip_prefix(std::env::consts::DLL_PREFIX).and_then(|n| n.strip_suffix(std::env::consts::DLL_SUFFIX));
        name.is_some_and(|n| n.starts_with("zellige_device_macro-"))
    };
    let age = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
    entries.filter(library).max_by_key(age).expect("cargo builds the macro before its tests")
}

/// Output of the compiler for a case, without its final count of errors.
fn printed(case: &Path, macros: &Path, out: &Path) -> String {
    let mut external = std::ffi::OsString::from("zellige_device_macro=");
    external.push(macros);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "--color=never", "--emit=metadata", "-Awarnings", "--extern"]).arg(external);
    let output = command.arg("-o").arg(out).arg(case).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("the compiler runs");
    assert!(!output.status.success(), "{} was compiled", case.display());
    let text = String::from_utf8(output.stderr).unwrap();
    text.split("error: aborting due to").next().unwrap().trim_end().to_owned()
}

#[test]
fn every_refusal_says_what_and_where() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root.join("tests/refused")).unwrap().map(|entry| entry.unwrap().path());
    let cases: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect();
    assert!(cases.len() >= 18, "{cases:?}");
    let (macros, out) = (built(), std::env::temp_dir().join(format!("zellige-refused-{}", std::process::id())));
    std::fs::create_dir_all(&out).unwrap();
    // Two at a time.
    let found: Vec<(PathBuf, String)> = std::thread::scope(|scope| {
        let halves = cases.chunks(cases.len().div_ceil(2)).map(|half| {
            let (macros, out) = (&macros, &out);
            scope.spawn(move || {
                let of = |path: &PathBuf| {
                    let case = path.strip_prefix(root).unwrap();
                    (path.clone(), printed(case, macros, &out.join(path.file_stem().unwrap())))
                };
                half.iter().map(of).collect::<Vec<_>>()
            })
        });
        let halves: Vec<_> = halves.collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&out).unwrap();
    for (path, text) in found {
        let expected = std::fs::read_to_string(path.with_extension("stderr")).unwrap();
        assert_eq!(text, expected.trim_end(), "{}", path.display());
    }
}
