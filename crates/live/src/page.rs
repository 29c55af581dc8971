//! The page: one file with its style, its scripts and the tables of the colour maps.

use std::fmt::Write;

use serde_json::Value;
use zellige_io::picture::MAPS;

const HTML: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
/// Scripts in their order.
const SCRIPTS: [&str; 5] = [
    include_str!("page/numbers.js"),
    include_str!("page/draw.js"),
    include_str!("page/panels.js"),
    include_str!("page/rows.js"),
    include_str!("page/main.js"),
];

/// Every so many colours of a map are sent; those between lie on straight lines, nowhere more than four levels of 256 off.
const EVERY: usize = 4;

/// A source without what only its readers need: indents, and lines that are comments.
fn bare(source: &str) -> String {
    let lines = source.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The colour maps as JSON: names, and every fourth of their colours with the last one, in hexadecimal digits.
fn maps() -> String {
    let mut text = String::from("{");
    for map in MAPS {
        let _ = write!(text, "{}\"{}\":\"", if text.len() > 1 { "," } else { "" }, map.name());
        let (table, last) = (map.table(), map.table().len() - 1);
        for [r, g, b] in (0..last).step_by(EVERY).chain([last]).map(|k| table[k]) {
            let _ = write!(text, "{r:02x}{g:02x}{b:02x}");
        }
        text.push('"');
    }
    text.push('}');
    text
}

/// The page, which asks its server for all it shows; with `data` it shows that, and needs no server.
pub fn page(data: Option<&Value>) -> String {
    // A text in the data must not end the script.
    let data = data.map_or_else(|| "null".into(), |data| data.to_string().replace('<', "\\u003c"));
    let script = format!("\"use strict\";\nconst MAPS = {};\nconst SAVED = {data};\n{}", maps(), SCRIPTS.map(bare).join("\n"));
    HTML.replace("/*style*/", &bare(STYLE)).replace("/*script*/", &script)
}

/// The page that lists the runs of a queue.
pub(crate) fn queue_page() -> String {
    let script = format!("\"use strict\";\n{}", bare(include_str!("page/queue.js")));
    include_str!("page/queue.html").replace("/*style*/", &bare(STYLE)).replace("/*script*/", &script)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page draws straight lines between the colours that it gets, as here.
    #[test]
    fn colours_between_those_that_are_sent_lie_on_straight_lines() {
        for map in MAPS {
            let table = map.table();
            for (i, colour) in table.iter().enumerate() {
                let from = i / EVERY * EVERY;
                let to = (from + EVERY).min(255);
                let t = if to > from { (i - from) as f64 / (to - from) as f64 } else { 0.0 };
                for (c, exact) in colour.iter().enumerate() {
                    let line = f64::from(table[from][c]) * (1.0 - t) + f64::from(table[to][c]) * t;
                    assert!((line - f64::from(*exact)).abs() <= 4.0, "{} {i}: {line} {exact}", map.name());
                }
            }
        }
    }

    #[test]
    fn the_pages_are_one_file_each_that_loads_nothing_from_elsewhere() {
        let page = page(None);
        let all = format!("{page}{}", queue_page());
        for outside in ["http://", "https://", "//cdn", "@import", "url(", "import("] {
            let found = all.find(outside).map(|at| &all[at..(at + 60).min(all.len())]);
            // A name space of SVG is no address.
            assert!(found.is_none_or(|text| text.starts_with("http://www.w3.org/")), "{found:?}");
        }
        assert!(page.len() < 58_000, "{} bytes", page.len());
        assert!(!all.contains("/*style*/") && !all.contains("/*script*/"));
        assert!(!queue_page().contains("innerHTML") && queue_page().len() < 10_000, "{} bytes", queue_page().len());
        let saved = super::page(Some(&serde_json::json!({ "title": "</script><b>" })));
        assert!(!saved.contains("</script><b>") && saved.contains("\\u003c/script>"));
    }
}
