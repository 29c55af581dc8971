//! Records of which each part of a run has a share.
//!
//! A share is a record whose values are those of this part: the first of them has a number among those of all parts, which follow
//! each other in the order of the parts. All parts have shares of the same records in the same order, or none has one. They come
//! together at the first part ([`Record::joined`]), or each part writes its own into files that the first one has laid out
//! ([`fill`]).

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use bytemuck::cast_slice;
use serde::{Deserialize, Serialize};

use super::{Entries, Record, Values};
use crate::error::{Error, Problem, Result};
use crate::links::{Links, SharedFile};

/// Place in a file for a column of a share: of a table, or a component of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Number among the shares of a moment.
    pub share: usize,
    /// Number of the column.
    pub column: usize,
    /// Byte at which the values of all parts begin.
    pub at: u64,
}

/// File that is whole but for the values of shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The name that it will take.
    pub path: PathBuf,
    /// The name until then.
    pub temporary: PathBuf,
    /// Places of the values.
    pub slots: Vec<Slot>,
}

/// Has all parts write their shares into files, whose records are given as the first part has them.
pub type Fill<'a> = dyn FnMut(&[Record], &[Outline]) -> Result<()> + 'a;

impl Values {
    /// The values as they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => cast_slice(values),
            Self::F64(values) => cast_slice(values),
        }
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        match self {
            Self::F32(_) => 4,
            Self::F64(_) => 8,
        }
    }

    fn joined(&mut self, links: &Links) -> Result<()> {
        match self {
            Self::F32(values) => *values = links.joined_at_first(std::mem::take(values))?,
            Self::F64(values) => *values = links.joined_at_first(std::mem::take(values))?,
        }
        Ok(())
    }
}

impl Entries {
    /// The values as they lie in memory, and bytes of each; nothing where they are the same for all lines.
    pub fn bytes(&self) -> Option<(&[u8], usize)> {
        match self {
            Self::Each(values) => Some((values.bytes(), values.width())),
            Self::Whole(values) => Some((cast_slice(values), 8)),
            Self::Same(_) => None,
        }
    }
}

impl Record {
    /// Number of the first value of a share among those of all parts; nothing where the record is whole.
    pub fn share(&self) -> Option<usize> {
        match self {
            Self::Table(table) => table.share,
            Self::Mesh(mesh) => mesh.share,
            _ => None,
        }
    }

    /// The whole record at the first part, and the record without values at the others: column by column, so that the values of
    /// one are there twice.
    pub fn joined(mut self, links: &Links) -> Result<Self> {
        if self.share().is_none() {
            return Ok(self);
        }
        match &mut self {
            Self::Table(table) => {
                table.share = None;
                for column in &mut table.columns {
                    match &mut column.values {
                        Entries::Each(values) => values.joined(links)?,
                        Entries::Whole(values) => *values = links.joined_at_first(std::mem::take(values))?,
                        Entries::Same(_) => {}
                    }
                }
            }
            Self::Mesh(mesh) => {
                mesh.share = None;
                mesh.components.iter_mut().try_for_each(|component| component.values.joined(links))?;
            }
            _ => {}
        }
        Ok(self)
    }

    /// Number of the first value of a share, number of its values, and of those of all parts.
    fn extent(&self) -> [usize; 3] {
        match self {
            Self::Table(table) => {
                let lines = table.columns.iter().find_map(|column| column.values.lines()).unwrap_or(0);
                [table.share.unwrap_or(0), lines, table.len]
            }
            Self::Mesh(mesh) => {
                let values = mesh.components.first().map_or(0, |component| component.values.len());
                [mesh.share.unwrap_or(0), values, mesh.axes.iter().map(|axis| axis.len).product()]
            }
            _ => [0; 3],
        }
    }

    /// The values of a column of a share as they lie in memory, and bytes of each.
    fn column(&self, number: usize) -> Option<(&[u8], usize)> {
        match self {
            Self::Table(table) => table.columns.get(number)?.values.bytes(),
            Self::Mesh(mesh) => {
                let values = &mesh.components.get(number)?.values;
                Some((values.bytes(), values.width()))
            }
            _ => None,
        }
    }
}

/// Refuses shares of all parts that leave a gap, or are of other records at another part: a fault of the program that no file
/// shows.
///
/// # Errors
/// It is the same at all parts.
pub(crate) fn must_join(links: &Links, shares: &[&Record]) -> Result<()> {
    let own: Vec<[usize; 3]> = shares.iter().map(|record| record.extent()).collect();
    let all = links.all_say(&own)?;
    let joined = |k: usize| {
        let mut parts = all.iter().map(|own| own.get(k).copied().unwrap_or_default());
        let end = parts.try_fold(0, |end, [first, count, total]| (first == end && total == own[k][2]).then_some(end + count));
        end == Some(own[k][2])
    };
    match (0..own.len()).find(|k| all.iter().any(|other| other.len() != own.len()) || !joined(*k)) {
        None => Ok(()),
        Some(k) => Err(misfit(format!("shares of the record `{}` do not fit together", shares[k].name()))),
    }
}

fn misfit(message: String) -> Error {
    Error::input("parts of a run", Problem::new("", message).hint("this is a fault of the program: please report it with the input"))
}

/// Writes the own values of shares into the files that the first part has laid out, if it has: all parts call this at the same
/// time, and learn from the first one what the files are.
///
/// # Errors
/// One part cannot write, or does not see a file of the first part: all have an error, which names it.
pub fn fill(links: &Links, records: &[Record], outlines: Option<&[Outline]>) -> Result<()> {
    let file = |o: &Outline| (SharedFile::new(links, &o.path, &o.temporary), o.slots.clone());
    let files: Option<Vec<_>> = outlines.map(|outlines| outlines.iter().map(file).collect());
    match links.first_says(files)? {
        Some(files) => links.together(write(records, &files)),
        None => Ok(()),
    }
}

fn write(records: &[Record], files: &[(SharedFile, Vec<Slot>)]) -> Result<()> {
    let shares: Vec<(&Record, usize)> = records.iter().filter_map(|record| Some((record, record.share()?))).collect();
    for (file, slots) in files {
        let handle = file.open()?;
        let failed = |e| Error::file("write", file.path(), e);
        for slot in slots {
            let found = shares.get(slot.share).and_then(|(record, first)| Some((record.column(slot.column)?, *first)));
            let Some(((bytes, width), first)) = found else {
                return Err(misfit("this part does not have all records of which the first part writes shares".into()));
            };
            handle.write_all_at(bytes, slot.at + (first * width) as u64).map_err(failed)?;
        }
        handle.sync_all().map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::inside;
    use crate::record::{Column, Table};

    /// Lines `first..end` of a table of `len` lines.
    fn lines(first: usize, end: usize, len: usize, share: Option<usize>) -> Record {
        let each = Column::numbers("position", "x", "", (first..end).map(|k| k as f64).collect());
        let whole = Column { values: Entries::Whole((first as u64..end as u64).collect()), ..Column::numbers("id", "", "", Vec::new()) };
        let same = Column { values: Entries::Same(2.0), ..Column::numbers("mass", "", "", Vec::new()) };
        let columns = vec![same, each, whole];
        Record::Table(Table { name: "ions".into(), title: "ions".into(), length_si: 1.0, time_si: 1.0, len, share, columns })
    }

    #[test]
    fn shares_come_together_at_the_first_part() {
        let found = inside::run(3, |links| {
            // The second one has none.
            let [first, end] = [[0, 5], [5, 5], [5, 9]][links.rank()];
            let share = lines(first, end, 9, Some(first));
            must_join(&links, &[&share])?;
            share.joined(&links)
        });
        let found = found.unwrap();
        assert!(found[0] == lines(0, 9, 9, None) && found.iter().all(|record| record.share().is_none()));
        assert_eq!(lines(0, 9, 9, None).joined(&Links::default()).unwrap(), lines(0, 9, 9, None));
    }

    #[test]
    fn shares_that_do_not_fit_together_are_refused_by_all() {
        for (second, more, len) in [([6, 9], 0, 9), ([4, 9], 0, 9), ([5, 9], 0, 10), ([5, 9], 1, 9)] {
            let refused = inside::run(2, |links| {
                let [first, end] = [[0, 5], second][links.rank()];
                let share = lines(first, end, len, Some(first));
                let all = vec![&share; 1 + more * links.rank()];
                Ok(must_join(&links, &all).unwrap_err().to_string())
            });
            assert!(refused.unwrap().iter().all(|error| error.contains("`ions` do not fit together")), "{second:?} of {len}");
        }
    }
}
