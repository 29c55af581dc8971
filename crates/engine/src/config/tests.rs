use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::testing::toy::Toy;

/// A table with every shape that the checker must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Number of nodes.
    nodes: [usize; 2],
    #[serde(default)]
    length: Option<f64>,
    #[serde(default)]
    method: Option<Method>,
    #[serde(default)]
    side: Vec<Side>,
    #[serde(default)]
    end: Option<End>,
    #[serde(default)]
    tol: Option<Tol>,
    #[serde(default)]
    density: Option<Density>,
    #[serde(default)]
    names: std::collections::BTreeMap<String, f64>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 8))]
    levels: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "over_relaxation": "sor", "mg": "v_cycle" }))]
enum Method {
    /// Successive over-relaxation.
    Sor,
    Jacobi,
    /// V-cycles.
    VCycle,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(extend("x-synonyms" = { "fixed": "dirichlet" }))]
enum Side {
    Dirichlet { value: f64 },
    Neumann { flux: f64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum End {
    Steps(u64),
    Never,
    Time { t: f64 },
}

/// A shape by its only key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(extend("x-synonyms" = { "box": "slab" }))]
enum Shape {
    Slab { width: f64 },
    Ramp { end: f64 },
}

/// A number, or a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Density {
    Number(f64),
    Shape(Shape),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Tol {
    Number(f64),
    Text(String),
}

fn problems_of(toml: &str) -> Vec<String> {
    let source = Source::parse(toml, Format::Toml, "a.toml").unwrap();
    match source.problems(schema::check::<Table>(&source.value, "")) {
        Error::Input { problems, .. } => problems.iter().map(ToString::to_string).collect(),
        _ => unreachable!(),
    }
}

#[test]
fn good_values_of_every_shape_pass_and_deserialize() {
    let text = r#"
        nodes = [5, 5]
        length = 2
        method = "v_cycle"
        side = [{ type = "dirichlet", value = 1 }, { type = "neumann", flux = 0.5 }]
        end = { time = { t = 1.0 } }
        tol = "truncation"
        names.k = 2.0
        levels = 8
    "#;
    assert_eq!(problems_of(text), [""; 0]);
    for end in [r#""never""#, "{ steps = 3 }"] {
        assert_eq!(problems_of(&format!("nodes = [3, 3]\nend = {end}\ntol = 1e-6")), [""; 0]);
    }
    let source = Source::parse(text, Format::Toml, "a.toml").unwrap();
    let table: Table = serde_json::from_value(source.value).unwrap();
    assert_eq!(table.end, Some(End::Time { t: 1.0 }));
}

#[test]
fn every_problem_is_told_with_its_place() {
    let text = "node = [5, 5]\nlength = \"2\"\nmethod = \"v_cyle\"\nlevels = 9\nside = [{ type = \"robin\" }, { value = 1 }, { type = \"neumann\", flx = 1 }]\nend = { time = { s = 1 } }\ntol = true\nnames = { k = [] }";
    let found = problems_of(text);
    for wanted in [
        "1:1: `node`: unknown table or key\n    hint: did you mean `nodes`?",
        "`nodes`: the key is missing\n    hint: Number of nodes.",
        "2:1: `length`: expected a number, found `\"2\"`\n    hint: write the number alone: `2`",
        "3:1: `method`: unknown value `\"v_cyle\"` (allowed: `\"jacobi\"`, `\"sor\"`, `\"v_cycle\"`)\n    hint: did you mean `\"v_cycle\"`?",
        "4:1: `levels`: `9` is out of range (allowed: at least 1 and at most 8)",
        "5:11: `side[0].type`: the key that decides the kind: unknown value `\"robin\"` (allowed: `\"dirichlet\"`, `\"neumann\"`)",
        "5:29: `side[1].type`: the key that selects the variant is missing (allowed: `\"dirichlet\"`, `\"neumann\"`)",
        "5:64: `side[2].flx`: unknown key\n    hint: did you mean `flux`?",
        "5:44: `side[2].flux`: the key is missing",
        "6:18: `end.time.s`: unknown key (allowed: t)",
        "6:9: `end.time.t`: the key is missing",
        "7:1: `tol`: expected a number or a text, found `true`",
        "8:11: `names.k`: expected a number, found a list of 0",
    ] {
        assert!(found.iter().any(|f| f == wanted), "{wanted}\nnot in\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), 13, "{}", found.join("\n"));
    assert!(problems_of("nodes = [1, 2]\nlength = \"2e3 K\"")[0].ends_with("hint: write the number alone: `2e3`"));
    assert_eq!(
        problems_of("nodes = [1, 2]\nend = \"time\""),
        [
            "2:1: `end`: unknown value `\"time\"` (allowed: `\"never\"`, `{ steps = .. }`, `{ time = .. }`)\n    hint: it is a table here: `{ time = .. }`"
        ]
    );
    assert!(problems_of("nodes = [1, 2, 3]")[0].contains("(allowed: 2 entries)"));
    assert!(problems_of("nodes = [1, -2]")[0].starts_with("1:13: `nodes[1]`: `-2` is out of range (allowed: at least 0)"));
    assert!(
        problems_of("[end]\ntime = 3")[0].ends_with("expected a table, found `3`\n    hint: its keys: t"),
        "{:?}",
        problems_of("[end]\ntime = 3")
    );
    assert!(problems_of("nodes = [1, 2.5]")[0].contains("expected a whole number, found `2.5`"));
}

const SAME: [(&str, Format); 3] = [
    ("[a]\nx = 1\ny = [1.5, \"t\", true]\n[a.b]\n\"k k\" = 'é'\n", Format::Toml),
    ("# yes\na:\n  x: 1\n  y: [1.5, \"t\", true]\n  b:\n    k k: é\n", Format::Yaml),
    ("{\"a\": {\n\t\"x\": 1, \"y\": [1.5, \"t\", true],\n\t\"b\": {\"k k\": \"\\u00e9\"}}}", Format::Json),
];

/// Names that other programs have for a value, however deep it lies in options and choices.
#[test]
fn values_by_other_names_are_led_to_theirs() {
    for (text, answer) in [
        ("method = \"Over-Relaxation\"", "did you mean `\"sor\"`?"),
        // Letters that are nearer to something else do not matter.
        ("method = \"mg\"", "did you mean `\"v_cycle\"`?"),
        ("method = \"sir\"", "did you mean `\"sor\"`?"),
        ("side = [{ type = \"fixed\", value = 1 }]", "did you mean `\"dirichlet\"`?"),
        ("density = { box = { width = 1.0 } }", "`density.box`: unknown key (allowed: slab, ramp)\n    hint: did you mean `slab`?"),
        ("density = { rump = { end = 1.0 } }", "`density.rump`: unknown key\n    hint: did you mean `ramp`?"),
        ("density = { helix = 1.0 }", "`density.helix`: unknown key (allowed: slab, ramp)"),
        ("density = { ramp = { from = 1.0 } }", "`density.ramp.from`: unknown key (allowed: end)"),
    ] {
        let found = problems_of(&format!("nodes = [5, 5]\n{text}"));
        assert!(found.iter().any(|p| p.contains(answer)), "{text}: {found:?}");
    }
    let found = problems_of("nodes = [5, 5]\nmethod = \"magic\"");
    assert!(found.len() == 1 && !found[0].contains("hint"), "{found:?}");
}

#[test]
fn the_three_formats_give_the_same_values_and_their_places() {
    let want = serde_json::json!({ "a": { "x": 1, "y": [1.5, "t", true], "b": { "k k": "é" } } });
    for (text, format) in SAME {
        let source = Source::parse(text, format, "a").unwrap();
        assert_eq!(source.value, want, "{format:?}");
        let line = if format == Format::Yaml { 3 } else { 2 };
        assert_eq!(source.position("a.x").unwrap().0, line, "{format:?}");
        assert!(source.position("a.y[1]") > source.position("a.y[0]"), "{format:?}");
        assert_eq!(source.position("a.x.gone"), source.position("a.x"));
        assert_eq!(source.position("b"), None);
    }
}

#[test]
fn broken_text_is_placed() {
    let deep = format!("a = {}1{}", "[".repeat(60), "]".repeat(60));
    let deep_json = format!("{{\"a\": {}1{}}}", "[".repeat(60), "]".repeat(60));
    for (text, format, start, part) in [
        ("a = 1\nb = \n", Format::Toml, "2:", ""),
        ("a = 1\na = 2", Format::Toml, "2:1", "duplicate"),
        ("a = nan", Format::Toml, "1:5", "not a finite number"),
        ("a = 2026-01-01", Format::Toml, "1:5", "is a date"),
        ("a = 99999999999999999999", Format::Toml, "1:5", "too large"),
        (deep.as_str(), Format::Toml, "1:", "nesting"),
        ("a: 1\na: 2", Format::Yaml, "2:1: `a`", "twice"),
        ("a: [1", Format::Yaml, "", ""),
        ("a: &x 1\nb: *x", Format::Yaml, "1:", "anchors"),
        ("a: !!int 1", Format::Yaml, "1:", "tags"),
        ("a: .inf", Format::Yaml, "1:4", "not a finite number"),
        ("a: 1\n---\nb: 1", Format::Yaml, "2:1", "second document"),
        ("? [a]\n: 1", Format::Yaml, "1:3", "plain name"),
        ("{\"a\": 1,}", Format::Json, "1:9", ""),
        ("{\"a\": 1, \"a\": 2}", Format::Json, "1:10: `a`", "twice"),
        (deep_json.as_str(), Format::Json, "1:", "nesting"),
    ] {
        let Err(Error::Input { problems, .. }) = Source::parse(text, format, "a") else { panic!("{text} was taken") };
        let displayed = problems[0].to_string();
        assert!(displayed.starts_with(start) && displayed.contains(part) && problems[0].position.is_some(), "{text}: {displayed}");
    }
    for (text, format) in [("[1]", Format::Json), ("- 1", Format::Yaml), ("3", Format::Yaml)] {
        assert!(Source::parse(text, format, "a").unwrap_err().to_string().contains("must be a table"), "{text}");
    }
}

#[test]
fn yaml_scalars_follow_the_core_schema() {
    let text = "[no, ~, 0x10, 0o10, +3, -2.5, .5, 1e-6, 'null', nan, 1.2.3, 12e]";
    let source = Source::parse(&format!("a: {text}"), Format::Yaml, "a").unwrap();
    let want = serde_json::json!(["no", null, 16, 8, 3, -2.5, 0.5, 1e-6, "null", "nan", "1.2.3", "12e"]);
    assert_eq!(source.value["a"], want);
}

fn toy(text: &str) -> Result<Input<<Toy as Solver>::Config>> {
    Source::parse(text, Format::Toml, "a.toml").and_then(|s| s.solver(&["toy"]).and_then(|_| s.typed::<Toy>()))
}

#[test]
fn overrides_change_values_and_problems_say_so() {
    let mut source = Source::parse("[toy]\nsteps = 10\n", Format::Toml, "a.toml").unwrap();
    source.set(&["toy.steps = 20", "run.device=cpu", "run.checkpoint_every='5 min'", "output.formats=[\"png\"]"]).unwrap();
    let input = source.typed::<Toy>().unwrap();
    assert_eq!((input.config.steps, input.run.device.as_str()), (20, "cpu"));
    assert_eq!(input.output.formats, [FileFormat::Png]);
    source.set(&["toy.steps=many"]).unwrap();
    let displayed = source.typed::<Toy>().unwrap_err().to_string();
    assert!(displayed.contains("\n  `toy.steps`: expected a whole number, found `\"many\"` (given by `--set`)"), "{displayed}");
    let error = source.set(&["toy", "=1", "a..b=1", "toy.steps.x=1"]).unwrap_err().to_string();
    assert!(error.starts_with("--set: 4 problems") && error.contains("is neither a table nor a list"), "{error}");
    // One override sets one key, whatever its value looks like.
    source.set(&["toy.steps=1\nq=2"]).unwrap();
    assert_eq!(source.value["toy"]["steps"], "1\nq=2");
}

#[test]
fn overrides_reach_entries_of_lists() {
    let mut source = Source::parse("[toy]\nsteps = 10\n[output]\nformats = [\"npy\", \"png\"]\n", Format::Toml, "a.toml").unwrap();
    // Change, add, and make: a list, and a table in a new list.
    source.set(&["output.formats.0=vti", "output.formats[2]=bov", "new.0.x=1", "new.1.x=-2", "new[1].y[0][0]=3"]).unwrap();
    assert_eq!(source.value["output"]["formats"], serde_json::json!(["vti", "png", "bov"]));
    assert_eq!(source.value["new"], serde_json::json!([{ "x": 1 }, { "x": -2, "y": [[3]] }]));
    assert_eq!((source.position("output.formats[0]"), source.position("output.formats[1]")), (None, Some((4, 19))));
    source.set(&["output.formats.1=bmp"]).unwrap();
    let displayed = source.typed::<Toy>().unwrap_err().to_string();
    assert!(displayed.contains("`output.formats[1]`: unknown value `\"bmp\"` (given by `--set`) (allowed: "), "{displayed}");
    let before = source.value.clone();
    for (text, part) in [
        (
            "output.formats.4=png",
            "`output.formats.4`: `output.formats` is a list of 3 entries, and `4` is the number of none (allowed: 0 to 3; 3 adds one)",
        ),
        ("output.formats.first=png", "`first` is the number of none"),
        ("output.formats.+1=png", "`+1` is the number of none"),
        ("output.formats.0.x=png", "`output.formats[0]` is neither a table nor a list"),
        ("output.none.3=1", "`output.none.3`: there is no list `output.none` yet (allowed: `output.none.0`, its first entry)"),
        ("output.formats[x]=1", "is not the path of a key (allowed: names with dots"),
        ("output.formats[0=1", "is not the path of a key"),
        ("output.[0]=1", "is not the path of a key"),
    ] {
        let error = source.set(&[text]).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert_eq!(source.value, before, "a refused override left something behind");
}

#[test]
fn the_hint_of_a_missing_key_is_a_whole_sentence() {
    /// One that
    /// goes on, as `a.npy` or e.g. a number does. Another.
    ///
    /// And more.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Inner {
        x: f64,
    }
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Outer {
        inner: Inner,
    }
    let found = schema::check::<Outer>(&serde_json::json!({}), "");
    assert_eq!(found[0].hint.as_deref(), Some("One that goes on, as `a.npy` or e.g. a number does."));
}

#[test]
fn the_top_level_is_checked() {
    for (text, part) in [
        ("", "the input is empty (allowed: one of the tables [toy])"),
        ("[run]\n", "no table says which solver to run (allowed: one of [toy])"),
        ("[toi]\n", "1:2: `toi`: unknown table or key\n    hint: did you mean `toy`?"),
        ("[toy]\n[runn]\n", "2:2: `runn`: unknown table or key\n    hint: did you mean `run`?"),
        ("[toy]\nsteps = 0\n", "2:1: `toy.steps`: a run needs a step (allowed: at least 1)"),
        ("[toy]\n[run]\ndevice = \"gpu\"\nthreads = -1", "4:1: `run.threads`: `-1` is out of range"),
        ("[toy]\n[run]\ndevice = \"gpu\"", "3:1: `run.device`: `gpu` is not a device"),
        ("[toy]\n[run]\nwall_time = 10", "3:1: `run.wall_time`: `10 steps` is not a wall time"),
        ("[toy]\n[run]\nrows_every = \"1 parsec\"", "3:1: `run.rows_every`: `1 parsec` is not a schedule"),
        ("[toy]\n[output]\nformats = [\"npy\", \"npy\"]", "3:19: `output.formats[1]`: `npy` is there twice"),
        ("[toy]\n[output]\nformats = [\"bmp\"]", "3:12: `output.formats[0]`: unknown value `\"bmp\"` (allowed: `\"npy\"`, "),
    ] {
        let displayed = toy(text).unwrap_err().to_string();
        assert!(displayed.contains(part), "{text}: {displayed}");
    }
    let source = Source::parse("[toy]\n[pic]\n", Format::Toml, "a").unwrap();
    assert!(source.solver(&["toy", "pic"]).unwrap_err().to_string().contains("one input is for one solver"));
    assert!(source.solver(&["toy"]).is_err());
}

#[test]
fn files_are_read_by_their_ending_and_resolved_inputs_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, "[toy]\nsteps = 7\n").unwrap();
    let input = load::<Toy>(&path, &["run.seed=5".into()]).unwrap();
    assert_eq!((input.config.steps, input.run.seed, input.folder.as_path()), (7, 5, folder.path()));
    let resolved = input.resolved::<Toy>().unwrap();
    let again = toy(&resolved).unwrap();
    assert_eq!((again.config, again.run, again.output), (input.config, input.run, input.output), "{resolved}");
    assert!(matches!(load::<Toy>(folder.path(), &[]), Err(Error::File { .. })));
    assert!(matches!(load::<Toy>(folder.path().join("b.toml"), &[]), Err(Error::File { .. })));
    std::fs::write(folder.path().join("a.txt"), "").unwrap();
    assert!(load::<Toy>(folder.path().join("a.txt"), &[]).unwrap_err().to_string().contains(".toml, .yaml"));
    std::fs::write(&path, [0xff]).unwrap();
    assert!(matches!(load::<Toy>(&path, &[]), Err(Error::Format { .. })));
}

#[test]
fn the_schema_of_an_input_describes_its_tables() {
    let schema = schema::<Toy>();
    assert_eq!(schema["required"], serde_json::json!(["toy"]));
    assert!(schema["$defs"]["RunConfig"]["properties"]["seed"]["description"].as_str().unwrap().contains("Seed"));
}

/// Tables (one at the top, never empty) and lists of numbers.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = (10..99i64).prop_map(Value::from);
    let inner = leaf.prop_recursive(3, 24, 4, |inner| {
        let table = prop::collection::btree_map("[a-d]|[0-3]", inner.clone(), 0..4).prop_map(|m| Value::Object(m.into_iter().collect()));
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::Array), table]
    });
    prop::collection::btree_map("[a-d]", inner, 1..4).prop_map(|m| Value::Object(m.into_iter().collect()))
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[a-c:=\\[\\]{}\"',.#&*!|>?0-9 \\n\\t\\\\-]{0,60}", other in "\\PC{0,40}") {
        for text in [text, other] {
            for format in [Format::Toml, Format::Yaml, Format::Json] {
                match Source::parse(&text, format, "a") {
                    Ok(source) => prop_assert!(source.solver(&["toy"]).and_then(|_| source.typed::<Toy>()).is_err() || text.contains("toy")),
                    Err(e) => prop_assert!(matches!(e, Error::Input { .. }), "{e}"),
                }
            }
        }
    }

    /// An override of a path through any tables and lists changes that value and nothing else, in both spellings.
    #[test]
    fn an_override_sets_what_it_names(tree in tree(), turns in prop::collection::vec(any::<prop::sample::Index>(), 1..5), new in 0..9i64) {
        let mut source = Source::parse("", Format::Toml, "a").unwrap();
        source.value = tree;
        let (mut dots, mut brackets, mut pointer) = (String::new(), String::new(), String::new());
        for turn in turns {
            let (key, entry) = match source.value.pointer(&pointer) {
                Some(Value::Object(map)) if !map.is_empty() => (map.keys().nth(turn.index(map.len())).unwrap().clone(), false),
                // One past the last adds an entry.
                Some(Value::Array(entries)) => (turn.index(entries.len() + 1).to_string(), true),
                _ => break,
            };
            pointer = format!("{pointer}/{key}");
            brackets = if entry { format!("{brackets}[{key}]") } else { source::join(&brackets, &key) };
            dots = source::join(&dots, &key);
        }
        let (mut other, mut want) = (source.clone(), source.value.clone());
        if want.pointer(&pointer).is_none() {
            let (list, _) = pointer.rsplit_once('/').unwrap();
            want.pointer_mut(list).and_then(Value::as_array_mut).unwrap().push(Value::Null);
        }
        *want.pointer_mut(&pointer).unwrap() = Value::from(new);
        source.set(&[format!("{dots}={new}")]).unwrap();
        other.set(&[format!("{brackets} = {new}")]).unwrap();
        prop_assert_eq!(&source.value, &want);
        prop_assert_eq!(&other.value, &want);
        prop_assert!(source.is_override(&brackets), "{}", brackets);
    }

    #[test]
    fn arbitrary_overrides_never_panic(text in "\\PC{0,40}") {
        let mut source = Source::parse("[toy]\nsteps = 1", Format::Toml, "a").unwrap();
        if source.set(&[text]).is_ok() {
            prop_assert!(source.solver(&["toy"]).is_err() || source.typed::<Toy>().is_ok());
        }
    }
}

#[test]
fn what_an_input_names_and_is_there_are_its_data_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for name in ["data/a.h5", "b.surf", "c:d.npy"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let absolute = folder.path().join("b.surf").to_string_lossy().into_owned();
    let value = serde_json::json!({
        "rhs": { "file": "data/a.h5:/rho" }, "bodies": [{ "file": "b.surf" }, { "file": "none.surf" }, absolute, "c:d.npy"], "scratch": "data", "n": 3,
        "name": ""
    });
    let names: Vec<String> = data_files(&value, folder.path()).into_iter().collect();
    assert_eq!(names, [absolute.as_str(), "b.surf", "c:d.npy", "data/a.h5"]);
}
