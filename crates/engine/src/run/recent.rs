//! The last rows of a run, for the one that breaks down between two that fall due.

use std::collections::VecDeque;

use super::Sink;
use crate::error::{Error, Result};
use crate::record::Row;
use crate::sim::Clock;

/// Rows kept in case the run breaks down: enough to see what grows.
const RECENT: usize = 8;

/// The last rows, and which of them were handed over.
#[derive(Default)]
pub(super) struct RecentRows(VecDeque<(Clock, Row, bool)>);

impl RecentRows {
    pub(super) fn push(&mut self, clock: Clock, row: Row, written: bool) {
        if self.0.len() == RECENT {
            self.0.pop_front();
        }
        self.0.push_back((clock, row, written));
    }

    /// The last row; empty before the first step.
    pub(super) fn row(&self) -> &Row {
        static NONE: Row = Row(Vec::new());
        self.0.back().map_or(&NONE, |(_, row, _)| row)
    }

    /// Hands over those of the last `n` rows that did not fall due.
    pub(super) fn write_rows(&mut self, n: usize, sink: &mut dyn Sink) -> Result<()> {
        let first = self.0.len().saturating_sub(n);
        // Behind the last one that the sink has: rows come in order.
        let first = self.0.iter().rposition(|(.., written)| *written).map_or(first, |last| first.max(last + 1));
        for (clock, row, written) in self.0.range_mut(first..) {
            sink.row(clock, row)?;
            *written = true;
        }
        Ok(())
    }

    /// Saves the diagnostics of a run that broke down in the step after `step`: its last rows, and a note on the failure.
    pub(super) fn write_last_rows(&mut self, error: Error, step: u64, name: &str, sink: &mut dyn Sink) -> Error {
        if matches!(error, Error::Interrupted { .. }) {
            return error;
        }
        match self.write_rows(RECENT, sink) {
            Ok(()) => sink.notice(&format!("the run stops after {name} {step}; the last {RECENT} rows are saved")),
            Err(more) => sink.notice(&format!("the run stops after {name} {step}; its last rows could not be saved: {more}")),
        }
        error
    }
}
