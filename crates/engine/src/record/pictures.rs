//! Pictures of a moment of a run under way ([`Pictures`]).

use super::Record;
use crate::error::Result;

/// Waits for copies that are on their way from a device, and makes records of them; on any thread.
pub type MakeRecords = Box<dyn FnOnce() -> Result<Vec<Record>> + Send>;

/// Records that show how a run stands: those that are there, and those made of copies on their way from a device, for which the run
/// does not wait.
#[derive(Default)]
pub struct Pictures(Vec<Item>);

enum Item {
    There(Vec<Record>),
    Coming(MakeRecords),
}

impl std::fmt::Debug for Pictures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        for item in &self.0 {
            match item {
                Item::There(records) => list.entries(records.iter().map(Record::name)),
                Item::Coming(_) => list.entry(&"(coming)"),
            };
        }
        list.finish()
    }
}

impl From<Vec<Record>> for Pictures {
    fn from(records: Vec<Record>) -> Self {
        let mut all = Self::default();
        all.extend(records);
        all
    }
}

impl Extend<Record> for Pictures {
    fn extend<I: IntoIterator<Item = Record>>(&mut self, records: I) {
        records.into_iter().for_each(|record| self.push(record));
    }
}

impl Pictures {
    /// Adds a record.
    pub fn push(&mut self, record: Record) {
        match self.0.last_mut() {
            Some(Item::There(records)) => records.push(record),
            _ => self.0.push(Item::There(vec![record])),
        }
    }

    /// Adds records that are made when copies have come.
    pub fn push_coming(&mut self, make: impl FnOnce() -> Result<Vec<Record>> + Send + 'static) {
        self.0.push(Item::Coming(Box::new(make)));
    }

    /// Returns true if nothing has changed since the last pictures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if some are on their way.
    pub fn are_coming(&self) -> bool {
        self.0.iter().any(|item| matches!(item, Item::Coming(_)))
    }

    /// All records in their order. Waits for those on their way.
    pub fn records(self) -> Result<Vec<Record>> {
        let mut all = Vec::new();
        for item in self.0 {
            match item {
                Item::There(records) => all.extend(records),
                Item::Coming(make) => all.extend(make()?),
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::record::{Axis, Centring, Field, Values};

    fn record(name: &str) -> Record {
        Record::Field(Field::bare(name, vec![Axis::bare(0, 0.0, 1.0, 1)], Centring::Cell, Values::F32(vec![0.0])))
    }

    #[test]
    fn records_keep_their_order_whenever_they_come() {
        let mut pictures = Pictures::from(vec![record("a")]);
        assert!(!pictures.are_coming());
        let (send, receive) = std::sync::mpsc::channel();
        pictures.push_coming(move || Ok(receive.recv().into_iter().collect()));
        pictures.push_coming(|| Ok(Vec::new()));
        pictures.push(record("c"));
        assert!(pictures.are_coming());
        let waits = std::thread::spawn(|| pictures.records().unwrap());
        send.send(record("b")).unwrap();
        let names: Vec<String> = waits.join().unwrap().iter().map(|r| r.name().to_owned()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn a_copy_that_fails_is_told() {
        let mut pictures = Pictures::default();
        assert!(pictures.is_empty());
        pictures.push_coming(|| Err(Error::Device { device: "toy".into(), message: "a copy failed".into(), hint: None }));
        assert!(!pictures.is_empty() && pictures.records().is_err());
    }
}
