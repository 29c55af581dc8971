//! Times of all parts of a run, as the first one tells them.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::links::{Links, Traffic};
use crate::profile::{Clock, OfParts, StageRow};

/// One part of a run in the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartRow {
    /// Number of the part.
    pub part: usize,
    /// Host, where parts may be on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Time from the beginning of the first step to the end of the last, seconds.
    pub seconds: f64,
    /// Time of that in messages to and from other parts, and in waiting for them, seconds.
    pub exchange: f64,
    /// Messages sent in that time.
    pub messages: u64,
    /// Bytes sent in that time.
    pub bytes: u64,
}

/// Gathers the times of all parts, of which this one took `seconds` for all steps: a row for each part, none where there is one.
/// Fills in what the stages took in the slowest part and on average.
pub(super) fn gather(links: &Links, seconds: f64, traffic: Traffic, stages: &mut [StageRow]) -> Result<Vec<PartRow>> {
    if links.is_alone() {
        return Ok(Vec::new());
    }
    let Traffic { messages, bytes, seconds: exchange } = traffic;
    let own = PartRow { part: links.rank(), host: links.host(), seconds, exchange, messages, bytes };
    let totals: Vec<(String, Clock, f64)> = stages.iter().map(|row| (row.name.to_owned(), row.clock, row.total)).collect();
    let all = links.all_say(&(own, totals))?;
    for row in stages {
        // A stage that a part has not gone through took no time there.
        let of = |totals: &[(String, Clock, f64)]| {
            totals.iter().find(|(name, clock, _)| name == row.name && *clock == row.clock).map_or(0.0, |(.., total)| *total)
        };
        let seconds: Vec<f64> = all.iter().map(|(_, totals)| of(totals)).collect();
        let slowest = seconds.iter().copied().fold(0.0, f64::max);
        row.parts = Some(OfParts { slowest, mean: seconds.iter().sum::<f64>() / all.len() as f64 });
    }
    Ok(all.into_iter().map(|(row, _)| row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::inside;
    use crate::profile::Profiler;
    use crate::sim::Cost;

    #[test]
    fn the_first_part_knows_the_slowest() {
        let done = inside::run(3, |links| {
            let (mut profiler, rank) = (Profiler::new(), links.rank() as u64);
            let wait = |ms| std::thread::sleep(std::time::Duration::from_millis(ms));
            profiler.stage("push", Cost::default(), || wait(2 + 20 * rank));
            if rank == 0 {
                profiler.stage("speak", Cost::default(), || wait(3));
            }
            let mut stages = profiler.table();
            let before = links.traffic();
            links.all_gather(vec![0; 100])?;
            let rows = gather(&links, 1.0 + rank as f64, links.traffic().since(before), &mut stages)?;
            Ok((rows, stages))
        });
        let (rows, stages) = &done.unwrap()[0];
        assert_eq!(rows.iter().map(|row| (row.part, row.seconds)).collect::<Vec<_>>(), [(0, 1.0), (1, 2.0), (2, 3.0)]);
        // A gather, then a broadcast of all that with three lengths.
        assert_eq!(rows.iter().map(|row| (row.messages, row.bytes)).collect::<Vec<_>>(), [(2, 648), (1, 100), (1, 100)]);
        assert!(rows.iter().all(|row| row.exchange > 0.0));
        let [push, speak] = [0, 1].map(|k| stages[k].parts.unwrap());
        assert!(push.slowest >= 0.042 && push.mean >= 0.022 && push.mean < push.slowest, "{push:?}");
        assert!((speak.mean - speak.slowest / 3.0).abs() < 1e-12 && speak.slowest == stages[1].total, "{speak:?}");
        assert_eq!(gather(&Links::default(), 1.0, Traffic::default(), &mut stages.clone()).unwrap(), []);
    }
}
