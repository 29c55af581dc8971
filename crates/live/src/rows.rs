//! Rows of scalars so far, thinned so that a run of any length keeps and sends a bounded number.

use serde_json::{Value, json};
use zellige_engine::record::Row;
use zellige_engine::sim::Clock;

/// Rows kept at most; every other one is dropped when there are more.
const MOST: usize = 4096;

/// Rows of a run, evenly thinned.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: Vec<(String, String)>,
    kept: Vec<(Clock, Vec<f64>)>,
    /// Rows offered so far.
    offered: u64,
    /// One row in this many is kept.
    every: u64,
    /// Number of times that rows were dropped or columns came: who has rows of before has to begin anew.
    generation: u64,
}

impl Rows {
    /// Adds a row.
    pub(crate) fn push(&mut self, clock: Clock, row: &Row) {
        self.push_values(clock, row.0.iter().map(|s| (s.name, s.unit, s.value)));
    }

    /// Adds a row of names, units and values.
    pub(crate) fn push_values<'a>(&mut self, clock: Clock, scalars: impl Iterator<Item = (&'a str, &'a str, f64)>) {
        let number = self.offered;
        self.offered += 1;
        self.every = self.every.max(1);
        if !number.is_multiple_of(self.every) {
            return;
        }
        let mut values = vec![f64::NAN; self.columns.len()];
        for (i, (name, unit, value)) in scalars.enumerate() {
            // Mostly in the same order.
            let same = |c: &(String, String)| c.0 == name;
            let at = if self.columns.get(i).is_some_and(same) { Some(i) } else { self.columns.iter().position(same) };
            if let Some(at) = at {
                values[at] = value;
            } else {
                self.columns.push((name.to_owned(), unit.to_owned()));
                values.push(value);
                self.generation += 1;
            }
        }
        self.kept.push((clock, values));
        if self.kept.len() > MOST {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
            self.generation += 1;
        }
    }

    /// The rows after those that a client `has` (generation, count), for the page; `None` where there are none.
    pub(crate) fn after(&self, has: &mut (u64, usize)) -> Option<Value> {
        let from = if has.0 == self.generation { has.1 } else { 0 };
        if from == self.kept.len() {
            return None;
        }
        *has = (self.generation, self.kept.len());
        let width = self.columns.len();
        let rows: Vec<Value> = self.kept[from..]
            .iter()
            .map(|(clock, values)| {
                let padded = values.iter().copied().chain(std::iter::repeat(f64::NAN)).take(width);
                json!([clock.step, clock.time, padded.collect::<Vec<_>>()])
            })
            .collect();
        Some(json!({ "from": from, "columns": self.columns, "rows": rows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64) -> Row {
        let mut row = Row::default();
        row.push("energy", "J", value);
        row
    }

    #[test]
    fn a_long_run_keeps_evenly_spaced_rows_and_tells_clients_to_begin_anew() {
        let (mut rows, mut has) = (Rows::default(), (0, 0));
        for step in 0..10 {
            rows.push(Clock { step, time: None }, &row(step as f64));
        }
        let first = rows.after(&mut has).unwrap();
        assert_eq!((first["from"].as_u64(), first["rows"].as_array().unwrap().len()), (Some(0), 10));
        assert_eq!(rows.after(&mut has), None);
        rows.push(Clock { step: 10, time: None }, &row(f64::INFINITY));
        let more = rows.after(&mut has).unwrap();
        assert_eq!((more["from"].as_u64(), &more["rows"][0]), (Some(10), &json!([10, null, [null]])));
        for step in 11..50_000 {
            rows.push(Clock { step, time: None }, &row(step as f64));
        }
        let all = rows.after(&mut has).unwrap();
        assert_eq!(all["from"], 0);
        let steps: Vec<u64> = all["rows"].as_array().unwrap().iter().map(|r| r[0].as_u64().unwrap()).collect();
        assert!(steps.len() <= MOST && steps.len() > MOST / 2, "{}", steps.len());
        assert!(steps.windows(2).all(|w| w[1] - w[0] == 16), "{:?}", &steps[..4]);
    }

    #[test]
    fn columns_may_come_and_go() {
        let (mut rows, mut has) = (Rows::default(), (0, 0));
        rows.push(Clock { step: 1, time: None }, &row(1.0));
        rows.after(&mut has);
        let mut other = Row::default();
        other.push("moved", "px", 0.5);
        rows.push(Clock { step: 2, time: None }, &other);
        let all = rows.after(&mut has).unwrap();
        assert_eq!(all["columns"], json!([["energy", "J"], ["moved", "px"]]));
        assert_eq!(all["rows"], json!([[1, null, [1.0, null]], [2, null, [null, 0.5]]]));
    }
}
