//! `zellige view` of what users have: arrays, files of other programs, folders with and without results.

use std::path::Path;

use num_complex::Complex;
use zellige_io::hdf5::{self, Node, Value};
use zellige_io::npy;
use zellige_io::tensor::{Elements, Tensor};

use crate::common::{Outcome, zellige};

fn here() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn view(folder: &Path, arguments: &[&str]) -> Outcome {
    zellige(folder, &[&["view"], arguments].concat())
}

/// Width and height of a picture.
fn size(picture: &Path) -> Option<[u32; 2]> {
    let bytes = std::fs::read(picture).ok().filter(|b| b.starts_with(b"\x89PNG"))?;
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Some([number(16), number(20)])
}

fn array(shape: &[usize], kind: &str) -> Tensor {
    let n = shape.iter().product::<usize>();
    let wave = |i: usize| (0.3 * i as f64).sin() * i as f64;
    let elements = match kind {
        "f64" => Elements::F64((0..n).map(wave).collect()),
        "f32" => Elements::F32((0..n).map(|i| wave(i) as f32).collect()),
        "u16" => Elements::U16((0..n).map(|i| (i % 1000) as u16).collect()),
        "i32" => Elements::I32((0..n).map(|i| i as i32 - 7).collect()),
        _ => Elements::Complex((0..n).map(|i| Complex::from_polar(1.0 + i as f32, 0.2 * i as f32)).collect()),
    };
    Tensor { shape: shape.to_vec(), elements }
}

#[test]
fn arrays_of_one_to_four_axes_have_pictures() {
    let folder = here();
    for kind in ["f64", "f32", "u16", "i32", "complex"] {
        for shape in [&[40][..], &[12, 20], &[3, 12, 20], &[4, 3, 12, 20]] {
            if kind == "complex" && shape.len() == 1 {
                continue;
            }
            let name = format!("{kind}_{}.npy", shape.len());
            npy::write_tensor(folder.path().join(&name), &array(shape, kind)).unwrap();
            let result = view(folder.path(), &[&name]);
            assert_eq!(result.code, 0, "{name}: {}", result.err);
            assert!(size(&folder.path().join(&name).with_extension("png")).is_some(), "{name}");
        }
    }
    // Of four axes the first of the slowest: as many panels as that one has.
    let [three, four] = ["complex_3.png", "complex_4.png"].map(|p| size(&folder.path().join(p)));
    assert_eq!(three, four);
    let all = view(folder.path(), &[".", "--map", "magma"]);
    assert_eq!((all.code, all.err.matches("picture ").count()), (0, 19), "{}", all.err);
}

/// A picture that a run has drawn stays, where its data are named or a folder of it: it knows more than they do.
#[test]
fn a_file_of_a_run_is_drawn_beside_its_picture() {
    let folder = here();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("resolved.toml"), "").unwrap();
    std::fs::write(path("t.csv"), "time,a,a error\n0,-1,0.1\n1,1000,0.1\n2,5,0.1\n").unwrap();
    assert_eq!(view(folder.path(), &["t.csv"]).code, 0);
    assert!(size(&path("t.png")).is_some() && !path("t_view.png").exists());
    let drawn = std::fs::read(path("t.png")).unwrap();
    assert_eq!(view(folder.path(), &["t.csv", "--log"]).code, 0);
    assert!(size(&path("t_view.png")).is_some() && std::fs::read(path("t.png")).unwrap() == drawn);
    // Tables of places and of bodies are no curves, those of a field are one.
    std::fs::write(path("bodies.csv"), "body,drag\n0,1\n0,2\n").unwrap();
    std::fs::write(path("p.csv"), "x [m],y [m],p [Pa]\n0,0,1\n1,0,2\n0,2,3\n1,2,4\n").unwrap();
    assert_eq!(view(folder.path(), &["."]).code, 0);
    assert!(!path("bodies.png").exists() && size(&path("p.png")).is_some());
}

#[test]
fn arrays_that_cannot_be_drawn_say_why() {
    let folder = here();
    let path = |name: &str| folder.path().join(name);
    npy::write_tensor(path("one.npy"), &array(&[], "f64")).unwrap();
    npy::write_tensor(path("five.npy"), &array(&[2, 2, 2, 2, 2], "f64")).unwrap();
    npy::write_tensor(path("none.npy"), &array(&[0, 4], "f64")).unwrap();
    npy::write_tensor(path("cut.npy"), &array(&[9, 9], "f64")).unwrap();
    let whole = std::fs::read(path("cut.npy")).unwrap();
    std::fs::write(path("cut.npy"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(path("empty.npy"), b"").unwrap();
    std::fs::write(path("head.csv"), "a,b\n").unwrap();
    hdf5::write_tree(path("cut.h5"), &[Node::new("a", Value::Array(&array(&[64, 64], "f64")))]).unwrap();
    let whole = std::fs::read(path("cut.h5")).unwrap();
    std::fs::write(path("cut.h5"), &whole[..whole.len() / 2]).unwrap();
    for (name, says) in [
        ("one.npy", "it is one number, 0; arrays of 1 to 4 axes"),
        ("five.npy", "[2, 2, 2, 2, 2]; arrays of 1 to 4 axes"),
        ("none.npy", "[0, 4]; arrays of 1 to 4 axes that are not empty"),
        ("cut.npy", "needs 648 bytes of data"),
        ("empty.npy", "the file ends within the magic bytes"),
        ("head.csv", "no lines below the names"),
        ("cut.h5", "cut off"),
        ("absent.npy", "No such file"),
    ] {
        let result = view(folder.path(), &[name]);
        assert!(result.code != 0 && result.err.contains(says), "{name}: {} {}", result.code, result.err);
        assert!(!path(name).with_extension("png").exists(), "{name}");
    }
    // Together they are notes, and the error of the first.
    let all = view(folder.path(), &["."]);
    assert!(all.code != 0 && all.err.matches("note: not drawn").count() >= 6, "{}", all.err);
    // Complex numbers along a line are drawn as a row, beside what cannot be.
    npy::write_tensor(path("line.npy"), &array(&[9], "complex")).unwrap();
    assert_eq!(view(folder.path(), &["."]).code, 0);
    assert_eq!(view(folder.path(), &["line.npy"]).code, 0);
}

#[test]
fn folders_without_results_say_what_is_there() {
    let folder = here();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("empty")).unwrap();
    std::fs::create_dir_all(path("runs/first")).unwrap();
    std::fs::write(path("runs/notes.txt"), "").unwrap();
    npy::write_tensor(path("runs/first/u.npy"), &array(&[4, 4], "f32")).unwrap();
    for (name, says) in [
        ("empty", "`empty` holds nothing that can be drawn: it is empty"),
        ("runs", "its files are `notes.txt`, its folders `first`"),
        ("runs", "there are results in `first`: name one of them"),
        ("absent", "No such file"),
    ] {
        let result = view(folder.path(), &[name]);
        assert!(result.code == 2 || name == "absent", "{name}: {}", result.code);
        assert!(result.code != 0 && result.err.contains(says), "{name}: {}", result.err);
        let live = view(folder.path(), &[name, "--live"]);
        assert!(live.code != 0, "{name}");
    }
}

#[test]
fn hdf5_of_others_is_drawn_by_dataset_and_group() {
    let folder = here();
    let path = folder.path().join("foreign.h5");
    let arrays = [array(&[3, 5], "f32"), array(&[8, 9], "i32"), array(&[2, 3, 4, 5], "u16"), array(&[6], "f64")];
    let nodes = ["a/first", "a/second", "deep", "line"].iter().zip(&arrays).map(|(name, a)| Node::new(*name, Value::Array(a)));
    let scalar = [Node::new("title", Value::Text("words".into()))];
    hdf5::write_tree(&path, &nodes.chain(scalar).collect::<Vec<_>>()).unwrap();
    let result = view(folder.path(), &["foreign.h5"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.err.contains("drawn: `deep`; also there: `a/second` [8, 9], `a/first` [3, 5], `line` [6]"), "{}", result.err);
    assert!(size(&folder.path().join("foreign.png")).is_some());
    let result = view(folder.path(), &["foreign.h5:/a"]);
    assert!(result.code == 0 && result.err.matches("picture ").count() == 2, "{}", result.err);
    assert!(size(&folder.path().join("foreign_a_second.png")).is_some(), "{}", result.err);
    let result = view(folder.path(), &["foreign.h5:/b"]);
    assert!(result.code != 0 && result.err.contains("it has no dataset `b` (datasets: "), "{}", result.err);
    let result = view(folder.path(), &["foreign.h5:/title"]);
    assert!(result.code != 0, "{}", result.err);
}

#[test]
fn openpmd_is_drawn_by_component_and_what_it_lacks_is_named() {
    let folder = here();
    let path = folder.path().join("other.h5");
    let arrays = [array(&[6, 8], "f32"), array(&[6, 8], "f64"), array(&[5], "f32")];
    let names = ["data/3/meshes/B/x", "data/3/meshes/rho", "data/3/particles/ions/position/x"];
    let nodes: Vec<Node> = names.iter().zip(&arrays).map(|(name, a)| Node::new(*name, Value::Array(a))).collect();
    hdf5::write_tree(&path, &nodes).unwrap();
    let result = view(folder.path(), &["other.h5"]);
    assert_eq!(result.code, 0, "{}", result.err);
    for says in [
        "picture      other_B_x.png",
        "picture      other_rho.png",
        "`data/3/meshes/rho` lacks `gridSpacing`",
        "the file lacks the attribute `openPMD`",
        "not drawn: particles `ions` of iteration 3",
    ] {
        assert!(result.err.contains(says), "{says}:\n{}", result.err);
    }
}

/// A run that writes openPMD alone: its meshes lie in a folder of their own, and have the names of the run's pictures.
#[test]
fn a_run_with_openpmd_alone_has_pictures_of_its_meshes() {
    let folder = here();
    let text = "[pic]\ndt = 0.05\nsteps = 20\n[pic.grid]\ncells = [16, 8]\nsize = [1.6, 0.8]\n[[pic.species]]\nname = \"electrons\"\n\
        particles_per_cell = [2, 2]\nmomentum = { drift = [\"1e-3*sin(2*pi*x/lx)\", 0, 0] }\n\
        [pic.diagnostics]\nfields = [{ what = [\"ex\", \"ey\", \"ez\", \"bx\", \"by\", \"bz\"], every = \"10 steps\" }]\nparticles = [{ species = \"electrons\" }]\n\
        [output]\nformats = [\"hdf5\"]\n";
    std::fs::write(folder.path().join("plasma.toml"), text).unwrap();
    let run = zellige(folder.path(), &["run", "plasma.toml", "-o", "out", "--device", "cpu"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let result = view(folder.path(), &["out"]);
    assert_eq!(result.code, 0, "{}", result.err);
    for picture in ["E_x.png", "B_z.png", "E_x_000000.png", "energies.png"] {
        assert!(size(&folder.path().join("out").join(picture)).is_some(), "{picture}:\n{}", result.err);
    }
    assert!(!result.err.contains("lacks"), "{}", result.err);
    assert!(result.err.contains("particles `electrons` of iteration 20"), "{}", result.err);
}
