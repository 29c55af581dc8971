//! Keys named in the book, against the schema.

use std::collections::BTreeSet;

use serde_json::Value;
use zellige_ptycho::Ptycho;

/// Names of all properties of a schema.
fn properties(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(own)) = map.get("properties") {
                into.extend(own.keys().cloned());
            }
            map.values().for_each(|v| properties(v, into));
        }
        Value::Array(list) => list.iter().for_each(|v| properties(v, into)),
        _ => {}
    }
}

/// Checks that every key named in the page for users of PtyPy exists.
#[test]
fn keys_for_those_who_come_from_ptypy_exist() {
    let page = include_str!("../../../../docs/guide/from-ptypy.md");
    let mut known = BTreeSet::new();
    properties(&zellige_engine::config::schema::<Ptycho>(), &mut known);
    let mut seen = 0;
    // Rows of PtyPy's names, keys here, remarks.
    for row in page.lines().filter_map(|line| line.strip_prefix('|')) {
        let here = row.split('|').nth(1).unwrap_or_default();
        for span in here.split('`').skip(1).step_by(2) {
            // Values, options and commands, names of files.
            if span.starts_with(['"', '-']) || span.starts_with("zellige") || span == "views.csv" {
                continue;
            }
            let (key, value) = span.split_once(" = ").unwrap_or((span, ""));
            let inner = value.trim_start_matches('{').trim_end_matches('}').split(", ").map(str::trim);
            let inner = inner.filter(|_| value.starts_with('{'));
            for word in key.split('.').chain(inner) {
                assert!(known.contains(word), "`{span}`: the schema has no `{word}`");
                seen += 1;
            }
        }
    }
    assert!(seen > 80, "only {seen} keys were found on the page");
}
