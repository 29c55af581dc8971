//! Inputs that are refused: each with the key, what is allowed, what to do.

use std::path::Path;

use zellige_dsmc::Dsmc;
use zellige_dsmc::flow::Flow;
use zellige_engine::config::{Format, Source};
use zellige_engine::device::{Cpu, Device};

const SOUND: &str = r#"
[dsmc]
dt = 7e-9
steps = 10
particles_per_cell = 10
species = [{ name = "Ar" }]
[dsmc.grid]
cells = [10, 10]
size = [1e-4, 1e-4]
[dsmc.gas]
density = 7e22
temperature = 273.15
"#;

/// Everything that is said of an input, by its text or when it is set up; empty if it runs.
fn said(text: &str) -> String {
    let input = match Source::parse(text, Format::Toml, "input.toml").and_then(|source| source.typed::<Dsmc>()) {
        Ok(input) => input,
        Err(e) => return e.to_string(),
    };
    let device = Device::Cpu(Cpu::new(1).unwrap());
    match Flow::new(&input.config, Path::new("/nowhere"), 1, &device) {
        Ok(_) => String::new(),
        Err(e) => e.to_string(),
    }
}

/// A square of two types of lines, cut and turned, whose fourth line has a wall of its own.
#[test]
fn types_of_a_surface_file_have_walls() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b, c, d) = ("2.3e-5 2.3e-5", "6.3e-5 2.3e-5", "6.3e-5 6.3e-5", "2.3e-5 6.3e-5");
    let lines = [(1, 1, a, b), (2, 1, b, c), (3, 1, c, d), (4, 2, d, a)].map(|(n, kind, p, q)| format!("{n} {kind} {p} {q}\n")).concat();
    std::fs::write(folder.path().join("square.surf"), format!("square\n\n4 lines\n\nLines\n\n{lines}")).unwrap();
    let body = "\n[[dsmc.bodies]]\nname = \"s\"\nfile = \"square.surf\"\nmax_segment_length = 2.1e-5\nwall = { temperature = 300.0 }\n";
    let model = |more: &str| {
        let source = Source::parse(&format!("{SOUND}{body}{more}"), Format::Toml, "input.toml").unwrap();
        zellige_dsmc::model::Model::new(&source.typed::<Dsmc>().unwrap().config, folder.path(), 1)
    };
    let found = model("walls = { 2 = { temperature = 500.0 } }\n").unwrap();
    let warm = |s: &zellige_dsmc::geometry::Segment| found.walls[s.wall as usize].temperature;
    let segments = found.geometry.segments();
    assert_eq!(segments.len(), 8);
    for s in segments {
        assert_eq!(warm(s), if s.middle()[0] < 2.4e-5 { 500.0 } else { 300.0 }, "{s:?}");
    }
    for (more, expected) in [
        ("", "line 1 is of type 1 and line 4 of type 2, and `wall` is for one type: give the others in `walls`"),
        ("walls = { 2 = { temperature = 500.0 }, 3 = { temperature = 400.0 } }\n", "`walls` has a wall for type 3, of which no line is"),
    ] {
        let Err(error) = model(more) else { panic!("{expected}") };
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
    }
    let shape = "\n[[dsmc.bodies]]\nname = \"s\"\noutline = { shape = \"circle\", centre = [5e-5, 5e-5], radius = 2e-5 }\n";
    let wrong = said(&format!("{SOUND}{shape}wall = {{ temperature = 300.0 }}\nwalls = {{ 2 = {{ temperature = 500.0 }} }}\n"));
    assert!(wrong.contains("only a file has types of lines"), "{wrong}");
}

#[test]
fn a_sound_input_is_taken() {
    assert_eq!(said(SOUND), "");
}

#[test]
fn everything_else_is_refused_by_name() {
    let with = |from: &str, to: &str| SOUND.replace(from, to);
    let more = |text: &str| format!("{SOUND}{text}");
    let cases = [
        (with("\"Ar\"", "\"A\""), vec!["species[0].name", "`A` is not in the table", "He, Ne, Ar"]),
        (with("\"Ar\" }", "\"Ar\" }, { name = \"Ar\" }"), vec!["is there twice"]),
        (with("\"Ar\" }", "\"Ar\", fraction = 0.0 }"), vec!["species[0].fraction"]),
        (with("\"Ar\" }", "\"Ar\", rotation = 1 }"), vec!["rotation", "0, 2 or 3"]),
        (with("species = [{ name = \"Ar\" }]", "species = []"), vec!["1 to 255"]),
        (with("density = 7e22", "density = -7e22"), vec!["gas.density", "-7e22"]),
        (with("density = 7e22", "density = nan"), vec!["gas.density"]),
        (with("steps = 10", "steps = 10\ncell_weights = \"x/lx - 0.5\""), vec!["cell_weights", "a cell's weight would be -0.45"]),
        (with("steps = 10", "steps = 10\ncell_weights = \"1 + (x\""), vec!["cell_weights"]),
        (with("7e-9", "1e-3"), vec!["`dsmc.dt`", "a particle would collide 2.0e4 times at 7.000e22", "hint: `dt = "]),
        (with("7e22", "1e30"), vec!["`dsmc.dt`", "at most 1e4 times"]),
        (
            with("7e-9", "1").replace("steps = 10", "steps = 10\ncollisions = { scheme = \"none\" }"),
            vec!["`dsmc.dt`", "would cross 3.", "e7 cells", "at most 1e5 cells"],
        ),
        (with("steps = 10", "steps = 10\nvelocity_components = 4"), vec!["velocity_components", "2 or 3"]),
        (
            with("steps = 10", "steps = 10\nvelocity_components = 2").replace("\"Ar\"", "\"N2\""),
            vec!["velocity_components", "N2 rotates or vibrates", "`collisions.rotation = false`"],
        ),
        (
            with("steps = 10", "steps = 10\nvelocity_components = 2").replace("273.15", "273.15\nvelocity = [0.0, 0.0, 3.0]"),
            vec!["gas.velocity", "the z component is 3"],
        ),
        (with("dt = 7e-9", "dt = 0.0"), vec!["dsmc.dt"]),
        (with("particles_per_cell = 10", "particles_per_cell = 10\nweight = 1e10"), vec!["leave one of them out"]),
        (with("particles_per_cell = 10", ""), vec!["how many particles"]),
        (with("particles_per_cell = 10", "particles_per_cell = 2e7"), vec!["dsmc.particles_per_cell"]),
        (with("particles_per_cell = 10", "weight = 1e-9"), vec!["particles are asked for"]),
        // 2e9 in all, 2e7 in a cell.
        (with("particles_per_cell = 10", "weight = 3.5e5"), vec!["particles are asked for", "1e7 in a cell"]),
        (with("[10, 10]", "[10, 0]"), vec!["grid.cells[1]", "`0` is out of range"]),
        (with("[10, 10]", "[10, 10, 10]"), vec!["1 or 2"]),
        (with("[1e-4, 1e-4]", "[1e-4]"), vec!["1 numbers for 2 axes"]),
        (with("steps = 10", "steps = 10\nspecies_file = \"a.species\""), vec!["go together"]),
        (
            with("steps = 10", "steps = 10\nspecies_file = \"a.species\"\nvss_file = \"a.vss\""),
            vec!["`dsmc.species_file`", "cannot read", "a.species"],
        ),
        (
            more("[[dsmc.bodies]]\nname = \"b\"\nwall = {}\nfile = \"wing.surf\""),
            vec!["`dsmc.bodies[0].file`: cannot read `/nowhere/wing.surf`", "hint: there is no folder `/nowhere`"],
        ),
        (more("[[dsmc.sources]]\nfile = \"left.yaml\""), vec!["`dsmc.sources[0].file`: cannot read"]),
        (more("[dsmc.boundary]\nall = { wall = {}, temperature = \"300*(x\" }"), vec!["boundary.all.temperature"]),
        (more("[dsmc.boundary]\nall = { wall = {}, temperature = \"300 - 1e7*s\" }"), vec!["boundary.all.temperature", "above 0 K"]),
        (more("[dsmc.boundary]\nall = { wall = { model = \"specular\" }, temperature = \"300\" }"), vec!["a mirror has no temperature"]),
        (with("steps = 10", "steps = 10\nvibration_file = \"a.vib\""), vec!["goes with a `species_file`"]),
        (more("[dsmc.boundary]\nx_lo = \"specular\""), vec!["periodic on one side only"]),
        (more("[dsmc.boundary]\nall = \"mirror\""), vec!["boundary.all"]),
        (more("[dsmc.boundary]\nall = { wall = { temperature = -3.0 } }"), vec!["wall.temperature", "-3e0"]),
        (more("[dsmc.boundary]\nall = { wall = { temperature = 300.0, accommodation = 2.0 } }"), vec!["wall.accommodation"]),
        (more("[dsmc.initial]\ndensity = \"1e20*(x\""), vec!["initial.density"]),
        (more("[dsmc.initial]\ndensity = \"1e22*(x - 5e-5)\""), vec!["initial", "`max(0, ..)`"]),
        (more("[dsmc.initial]\ntemperature = \"1/x/0\""), vec!["initial"]),
        (more("[dsmc.sampling]\nbatches = 1"), vec!["at least 2 and at most 1000"]),
        (more("[dsmc.collisions]\nscheme = \"bird\""), vec!["collisions.scheme"]),
        (
            more("[[dsmc.collisions.pairs]]\nspecies = [\"Ar\", \"Xe\"]\ndiameter = 4e-10\nomega = 0.8"),
            vec!["`Xe` is not one of the species"],
        ),
        (more("[[dsmc.bodies]]\nname = \"b\"\nwall = {}"), vec!["has no outline"]),
        (
            more("[[dsmc.bodies]]\nname = \"b\"\nwall = {}\noutline = { shape = \"circle\", centre = [0.0, 0.0], radius = -1.0 }"),
            vec!["radius is -1"],
        ),
        (
            more("[[dsmc.bodies]]\nname = \"b\"\nwall = {}\noutline = { shape = \"circle\", centre = [5e-5, 5e-5], radius = 1.0 }"),
            vec!["dsmc.bodies"],
        ),
        (
            more(
                "[[dsmc.bodies]]\nname = \"b\"\nwall = {}\noutline = { shape = \"polygon\", vertices = [[2e-5, 2e-5], [6e-5, 6e-5], [6e-5, 2e-5], [2e-5, 7e-5]] }",
            ),
            vec!["segment", "cross"],
        ),
        (more("[dsmc.nonsense]\na = 1"), vec!["nonsense"]),
    ];
    for (text, words) in cases {
        let found = said(&text);
        assert!(!found.is_empty(), "was taken:\n{text}");
        for word in words {
            assert!(found.contains(word), "`{word}` is not in\n{found}\nof\n{text}");
        }
    }
}

#[test]
fn a_fault_of_all_sides_is_said_once() {
    let text = format!("{SOUND}[dsmc.boundary]\nall = {{ wall = {{ temperature = -5.0 }} }}");
    assert_eq!(said(&text).matches("-5e0").count(), 1, "{}", said(&text));
}
