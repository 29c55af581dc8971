//! Agreement of all parts on their program, input and data.

use super::Links;
use crate::error::{Error, Problem, Result};

/// Parts that a message names at most.
const MOST_NAMED: usize = 8;

/// Bytes of a text that is compared as it is, others by their hash.
const LONGEST_COMPARED: usize = 80;

/// The first line of each of two texts in which they differ; empty where one has ended.
fn different_lines(a: &str, b: &str) -> [String; 2] {
    let (mut a, mut b) = (a.lines(), b.lines());
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (x, y) => return [x, y].map(|line| line.unwrap_or_default().trim().to_owned()),
        }
    }
}

impl Links {
    /// Refuses to go on unless all parts give the same text for `what`: the program, the input. The first part has the error, and
    /// the others end because of it.
    ///
    /// # Errors
    /// It names the parts that differ from the first, with their hosts and the first line in which they do.
    pub fn must_agree(&self, what: &str, text: &str) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let fingerprint = if text.len() > LONGEST_COMPARED { blake3::hash(text.as_bytes()).to_hex().to_string() } else { text.to_owned() };
        let all = self.all_say(&fingerprint)?;
        if all.iter().all(|theirs| *theirs == all[0]) {
            return Ok(());
        }
        let said = self.all_say(&(different_lines(text, &self.first_says(text.to_owned())?), self.host()))?;
        let named = |part: usize, line: &str| {
            let host = said[part].1.as_deref().map_or_else(String::new, |host| format!(" on {host}"));
            let line = if line.is_empty() { "nothing".to_owned() } else { format!("`{line}`") };
            format!("part {part}{host}: {line}")
        };
        let differ: Vec<usize> = (1..said.len()).filter(|part| all[*part] != all[0]).collect();
        let first = &said[differ[0]].0[1];
        let described = |part: &usize| {
            let [theirs, of_first] = &said[*part].0;
            let beside = if of_first == first { String::new() } else { format!(" (for `{of_first}`)") };
            format!("{}{beside}", named(*part, theirs))
        };
        let others: Vec<String> = differ.iter().take(MOST_NAMED).map(described).collect();
        let more = if differ.len() > MOST_NAMED { format!(" and {} more", differ.len() - MOST_NAMED) } else { String::new() };
        let problem = Problem::new("", format!("{what} is not the same everywhere: {}, but {}{more}", named(0, first), others.join(", ")));
        let error = Error::input(
            "parts of a run",
            problem.hint("start the same program on the same input, and from the same checkpoint, for all parts"),
        );
        // The first part tells it.
        self.follow_first(if self.is_first() { Err(error) } else { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::different_lines;
    use crate::links::inside;

    #[test]
    fn of_long_texts_the_lines_that_differ_are_told() {
        assert_eq!(different_lines("a\n b\nc", "a\n d\nc"), ["b", "d"]);
        assert_eq!(different_lines("a\nb", "a"), ["b", ""]);
        let input = |k: usize| format!("{}\nseed = {k}\n", "# The same for all.\n".repeat(10));
        let refused = inside::run(4, |links| Ok(links.must_agree("the input", &input(links.rank() % 2)).unwrap_err().to_string()));
        for refusal in refused.unwrap() {
            assert!(refusal.contains("part 0: `seed = 0`, but part 1: `seed = 1`, part 3: `seed = 1`"), "{refusal}");
        }
    }
}
