//! Small help for messages: the known name that was probably meant, and the position of a byte in a text.

/// The candidate closest to `name`, if it is close enough to be a slip of the hand: at most one edit in three letters.
/// Upper and lower case, `-` and `_` count as equal.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |s: &str| -> Vec<char> { s.chars().take(64).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect() };
    let wanted = plain(name);
    let scored = candidates.into_iter().map(|c| (distance(&wanted, &plain(c)), c));
    let (edits, best) = scored.min_by_key(|(edits, _)| *edits)?;
    (edits <= 1.max(wanted.len() / 3) && edits < wanted.len().max(1)).then_some(best)
}

/// Edits (insert, delete, replace, swap of neighbours) that make `b` out of `a`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, last, row] = &mut rows;
        row[0] = i;
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

/// `did you mean ...?`, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|best| format!("did you mean `{best}`?"))
}

/// Line and column, both from 1 and the column in characters, of byte `at` in `text`.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (1 + before.matches('\n').count(), 1 + before[start..].chars().count())
}

/// Bytes for people: `3.50 MiB`.
pub fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len() - 1).find(|p| n < 1024_f64.powi(*p as i32 + 1)).unwrap_or(units.len() - 1);
    let value = n / 1024_f64.powi(power as i32);
    if power == 0 { format!("{value:.0} B") } else { format!("{value:.2} {}", units[power]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = ["nodes", "length", "boundary", "max_cycles", "tol"];
        for (typed, meant) in [
            ("node", Some("nodes")),
            ("ndoes", Some("nodes")),
            ("Length", Some("length")),
            ("max-cycle", Some("max_cycles")),
            ("bondary", Some("boundary")),
            ("tlo", Some("tol")),
            ("precision", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
    }

    #[test]
    fn distances_are_those_of_the_definition() {
        let d = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!([d("", "abc"), d("abc", ""), d("kitten", "sitting"), d("ab", "ba"), d("abc", "abc")], [3, 3, 3, 1, 0]);
    }

    #[test]
    fn places_count_characters() {
        let text = "a\nbé = 1\n";
        assert_eq!([0, 2, 3, 4, 5, 99].map(|at| line_column(text, at)), [(1, 1), (2, 1), (2, 2), (2, 2), (2, 3), (3, 1)]);
    }
}
