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

/// The colour maps as JSON: names, and their 256 colours in hexadecimal digits.
fn maps() -> String {
    let mut text = String::from("{");
    for map in MAPS {
        let _ = write!(text, "{}\"{}\":\"", if text.len() > 1 { "," } else { "" }, map.name());
        for [r, g, b] in map.table() {
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
    let script = format!("\"use strict\";\nconst MAPS = {};\nconst SAVED = {data};\n{}", maps(), SCRIPTS.join("\n"));
    HTML.replace("/*style*/", STYLE).replace("/*script*/", &script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_that_loads_nothing_from_elsewhere() {
        let page = page(None);
        for outside in ["http://", "https://", "//cdn", "@import", "url(", "import("] {
            let found = page.find(outside).map(|at| &page[at..(at + 60).min(page.len())]);
            // A name space of SVG is no address.
            assert!(found.is_none_or(|text| text.starts_with("http://www.w3.org/")), "{found:?}");
        }
        assert!(page.len() < 80_000, "{} bytes", page.len());
        assert!(!page.contains("/*style*/") && !page.contains("/*script*/"));
        let saved = super::page(Some(&serde_json::json!({ "title": "</script><b>" })));
        assert!(!saved.contains("</script><b>") && saved.contains("\\u003c/script>"));
    }
}
