//! The profile as a table for people.

use std::fmt;

use super::ledger::{Clock, OfParts, StageRow};

/// Rows as a table, the longest first, in the manner of `nvprof`: share, total, calls, average, shortest and longest
/// call, GB/s and the share of the measured copy bandwidth. A `*` marks stages timed by events on a GPU. Of a run in several parts
/// all that is of the first one; the total of the slowest part and the mean over all parts stand behind it.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a>(pub &'a [StageRow]);

/// Formats a time with three or four digits and a suitable unit.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.3} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

fn optional(value: Option<f64>, scale: f64, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{:.digits$}", v * scale))
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<&StageRow> = self.0.iter().collect();
        rows.sort_by(|a, b| b.own.total_cmp(&a.own));
        let width = rows.iter().map(|r| r.name.chars().count() + 2).max().unwrap_or(0).max(5);
        let in_parts = rows.iter().any(|row| row.parts.is_some());
        let line = |cells: [&str; 11]| {
            let [name, percent, total, calls, average, min, max, rate, share, slowest, mean] = cells;
            let parts = if in_parts { format!(" {slowest:>11} {mean:>11}") } else { String::new() };
            format!("{name:width$} {percent:>7} {total:>11} {calls:>8} {average:>11} {min:>11} {max:>11} {rate:>8} {share:>7}{parts}")
        };
        let head = ["stage", "time %", "total", "calls", "average", "min", "max", "GB/s", "% of bw", "slowest", "mean"];
        write!(f, "{}", line(head))?;
        for row in rows {
            let name = format!("{}{}", row.name, if row.clock == Clock::Device { " *" } else { "" });
            let of_parts = |of: fn(&OfParts) -> f64| row.parts.as_ref().map_or_else(|| "-".into(), |parts| time(of(parts)));
            let cells = [
                &name,
                &format!("{:.2}", row.percent),
                &time(row.total),
                &row.calls.to_string(),
                &time(row.average),
                &time(row.min),
                &time(row.max),
                &optional(row.gb_per_s, 1.0, 1),
                &optional(row.fraction, 100.0, 1),
                &of_parts(|parts| parts.slowest),
                &of_parts(|parts| parts.mean),
            ];
            write!(f, "\n{}", line(cells.map(String::as_str)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stage_comes_first_and_columns_line_up() {
        let row = StageRow {
            name: "restrict",
            clock: Clock::Host,
            calls: 12,
            timed: 12,
            total: 0.012,
            own: 0.012,
            percent: 25.0,
            average: 1e-3,
            min: 9.5e-7,
            max: 2e-8,
            bytes: 0.0,
            flops: 0.0,
            gb_per_s: None,
            gflop_per_s: None,
            fraction: None,
            ns_per_item: None,
            bytes_per_item: None,
            parts: None,
        };
        let long = StageRow {
            name: "smooth",
            clock: Clock::Device,
            own: 0.036,
            percent: 75.0,
            gb_per_s: Some(3123.45),
            fraction: Some(0.7298),
            ..row.clone()
        };
        let text = Table(&[row.clone(), long.clone()]).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("smooth *") && lines[1].ends_with("3123.4    73.0"), "{text}");
        assert!(lines[2].starts_with("restrict ") && lines[2].contains("12.000 ms") && lines[2].ends_with('-'), "{text}");
        assert!(lines[2].contains(" 950 ns ") && lines[2].contains(" 20 ns "), "{text}");
        assert!(lines.iter().all(|l| l.chars().count() == lines[0].chars().count()), "{text}");
        let slow = StageRow { parts: Some(OfParts { slowest: 0.05, mean: 0.04 }), ..long };
        let text = Table(&[row, slow]).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("slowest        mean") && lines[1].ends_with("50.000 ms   40.000 ms"), "{text}");
        assert!(lines.iter().all(|l| l.chars().count() == lines[0].chars().count()), "{text}");
    }
}
