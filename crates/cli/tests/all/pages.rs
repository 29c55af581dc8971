//! Input files that the pages of the guide show: each can be planned as it stands, but for data files that are not there.

use std::path::Path;

use crate::common::run_text;

/// Blocks of TOML of a page.
fn blocks(page: &str) -> Vec<String> {
    let begun = page.split("```toml\n").skip(1);
    begun.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Tables that a block leaves out, by its first key: pages show some alone.
fn rest(block: &str) -> &'static str {
    let poisson = "[poisson.grid]\nnodes = [33, 33]\nsize = [1.0, 1.0]\n";
    match block.trim_start() {
        text if text.starts_with("[poisson]") && !text.contains("[poisson.grid]") => poisson,
        text if text.starts_with("[pic.diagnostics]") => {
            "[pic]\ndt = 0.05\nt_end = 5.0\ngrid = { cells = [16, 16], size = [1.6, 1.6] }\n\
             [[pic.species]]\nname = \"electrons\"\nparticles_per_cell = 4\ntagged = true\n"
        }
        text if text.starts_with("[pic.initial.fields]") => {
            "[pic]\ndt = 0.05\nt_end = 5.0\ngrid = { cells = [16, 16], size = [1.6, 1.6] }\n"
        }
        text if text.starts_with("[[ptycho.scan]]") => "[[ptycho.engine]]\nname = \"DM\"\n",
        _ => "",
    }
}

#[test]
fn input_files_of_the_guide_can_be_planned() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let folder = tempfile::tempdir().unwrap();
    let mut planned = 0;
    for entry in std::fs::read_dir(guide).unwrap() {
        let path = entry.unwrap().path();
        for block in blocks(&std::fs::read_to_string(&path).unwrap()) {
            let found = run_text(folder.path(), &format!("{block}\n{}", rest(&block)), &["--dry-run"]);
            // A data file that it names is not there, and that is all.
            let file = ["1 problem", "put the file there"].iter().all(|words| found.err.contains(words));
            assert!(found.code == 0 || file, "{}: exit {}\n{block}\n{}", path.display(), found.code, found.err);
            planned += 1;
        }
    }
    assert!(planned >= 10, "{planned}");
}
