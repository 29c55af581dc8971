//! A timeline of the stages as a Chrome trace: open it in <https://ui.perfetto.dev> or `chrome://tracing`.
//!
//! One row for the host and one for each device; times in microseconds since the profiler was made.

use std::io::{self, Write};

/// Spans kept at most (about 40 MB); later ones are counted and left out.
const LIMIT: usize = 1_000_000;

#[derive(Debug, Clone, Copy)]
struct Span {
    name: &'static str,
    row: usize,
    start: f64,
    duration: f64,
}

/// Named spans of time on named rows.
#[derive(Debug, Default)]
pub struct Trace {
    rows: Vec<String>,
    spans: Vec<Span>,
    left_out: u64,
}

impl Trace {
    /// Adds a span of `duration` seconds that began `start` seconds after the profiler was made.
    pub fn add(&mut self, row: &str, name: &'static str, start: f64, duration: f64) {
        if self.spans.len() >= LIMIT {
            self.left_out += 1;
            return;
        }
        let row = self.rows.iter().position(|r| r == row).unwrap_or_else(|| {
            self.rows.push(row.to_owned());
            self.rows.len() - 1
        });
        self.spans.push(Span { name, row, start, duration });
    }

    /// Number of spans.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if there are no events.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Writes the trace as JSON, one event a line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let text = |s: &str| serde_json::Value::from(s).to_string();
        writeln!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"spans_left_out\":{}}},\"traceEvents\":[", self.left_out)?;
        write!(out, "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{{\"name\":\"zellige\"}}}}")?;
        for (row, name) in self.rows.iter().enumerate() {
            write!(out, ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{row},\"args\":{{\"name\":{}}}}}", text(name))?;
        }
        for span in &self.spans {
            let (start, duration) = (span.start * 1e6, span.duration * 1e6);
            let name = text(span.name);
            write!(out, ",\n{{\"name\":{name},\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{start:.3},\"dur\":{duration:.3}}}", span.row)?;
        }
        writeln!(out, "\n]}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_json_with_a_row_for_each_device() {
        let mut trace = Trace::default();
        trace.add("host", "load \"x\"", 0.5, 0.25);
        trace.add("NVIDIA H200", "smooth", 1.0, 1e-6);
        trace.add("host", "store", 2.0, 0.125);
        let mut bytes = Vec::new();
        trace.write(&mut bytes).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let spans: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
        assert_eq!(spans.len(), 3);
        assert_eq!(spans[0]["name"], "load \"x\"");
        assert_eq!((spans[0]["ts"].as_f64(), spans[0]["dur"].as_f64()), (Some(5e5), Some(2.5e5)));
        assert_eq!(spans[1]["dur"].as_f64(), Some(1.0));
        assert_eq!(spans[0]["tid"], spans[2]["tid"]);
        let names: Vec<_> = events.iter().filter(|e| e["name"] == "thread_name").map(|e| e["args"]["name"].clone()).collect();
        assert_eq!(names, ["host", "NVIDIA H200"]);
    }

    #[test]
    fn an_empty_trace_is_json() {
        let mut bytes = Vec::new();
        Trace::default().write(&mut bytes).unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
    }
}
