//! Records of which each part of a run has a share.
//!
//! A share is a record whose values are those of this part: the first of them has a number among those of all parts, which follow
//! each other in the order of the parts. All parts have shares of the same records in the same order, or none has one. They come
//! together at the first part ([`Record::joined`]); or the first part leads the others ([`Lead`]), which [`follow`]:
//! each writes its own values into files that the first one has laid out, and gives their means over the pixels of pictures.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use bytemuck::cast_slice;
use serde::{Deserialize, Serialize};

use super::{Entries, Extremes, Field, Mesh, Record, Values};
use crate::error::{Error, Problem, Result};
use crate::links::{Links, SharedFile, values};
use crate::ops::plane::{Piece, Plane};

/// Place in a file for a column of a share: of a table, a component of a mesh, or the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Number among the shares of a moment.
    pub share: usize,
    /// Number of the column.
    pub column: usize,
    /// Byte at which the values of all parts begin.
    pub at: u64,
    /// Mark of a value that is not finite, where not the values stand there but a byte for each: 0 for the others.
    pub mark: Option<u8>,
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

/// Word of the first part on what all do with their shares.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Word {
    /// Write the values into files.
    Write(Vec<(SharedFile, Vec<Slot>)>),
    /// Give the means of a plane of a component, by the numbers of share and component, over so many pixels.
    Means([usize; 2], Plane, [usize; 2]),
    /// Give the extremes of a component.
    Extremes([usize; 2]),
    /// Nothing more comes.
    End,
}

impl Values {
    /// The values as they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => cast_slice(values),
            Self::F64(values) => cast_slice(values),
        }
    }

    /// A byte for each value: `mark` for those that are not finite, 0 for the others.
    pub fn marks(&self, mark: u8) -> Vec<u8> {
        let of = |finite: bool| if finite { 0 } else { mark };
        match self {
            Self::F32(values) => values.iter().map(|v| of(v.is_finite())).collect(),
            Self::F64(values) => values.iter().map(|v| of(v.is_finite())).collect(),
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
            Self::Field(field) => field.share,
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
            Self::Field(field) => {
                field.share = None;
                field.values.joined(links)?;
            }
            _ => {}
        }
        Ok(self)
    }

    /// Number of the first value of a share, number of its values, and of those of all parts; and values that no two parts divide
    /// between them, those of one index of the last axis of a mesh or field.
    fn extent(&self) -> [usize; 4] {
        match self {
            Self::Table(table) => {
                let lines = table.columns.iter().find_map(|column| column.values.lines()).unwrap_or(0);
                [table.share.unwrap_or(0), lines, table.len, 1]
            }
            Self::Mesh(Mesh { axes, share, .. }) | Self::Field(Field { axes, share, .. }) => {
                let all: usize = axes.iter().map(|axis| axis.len).product();
                let values = self.component(0).map_or(0, Values::len);
                [share.unwrap_or(0), values, all, all / axes.last().map_or(1, |axis| axis.len.max(1))]
            }
            _ => [0; 4],
        }
    }

    /// The values of a column of a share as they lie in memory, and bytes of each.
    fn column(&self, number: usize) -> Option<(&[u8], usize)> {
        match self {
            Self::Table(table) => table.columns.get(number)?.values.bytes(),
            _ => self.component(number).map(|values| (values.bytes(), values.width())),
        }
    }

    /// The values of a component of a share of a mesh, or of a field, which is one.
    fn component(&self, number: usize) -> Option<&Values> {
        match self {
            Self::Mesh(mesh) => Some(&mesh.components.get(number)?.values),
            Self::Field(field) if number == 0 => Some(&field.values),
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
    let own: Vec<[usize; 4]> = shares.iter().map(|record| record.extent()).collect();
    let all = links.all_say(&own)?;
    let joined = |k: usize| {
        let mut parts = all.iter().map(|own| own.get(k).copied().unwrap_or_default());
        let [.., total, whole] = own[k];
        let fits = |end, [first, count, all, _]: [usize; 4]| first == end && all == total && count.is_multiple_of(whole.max(1));
        let end = parts.try_fold(0, |end, extent| fits(end, extent).then_some(end + extent[1]));
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

/// The first part as it leads all parts in what they do with their shares of a moment. Records are given as it has them.
#[derive(Debug, Default)]
pub struct Lead(Links);

impl Lead {
    /// Leads the parts of a run; the others [`follow`] until [`Lead::end`].
    pub fn new(links: &Links) -> Self {
        Self(links.clone())
    }

    /// Has all parts write the values of their shares into files.
    ///
    /// # Errors
    /// A part cannot write, or does not see a file: it is named.
    pub fn write(&self, records: &[Record], outlines: &[Outline]) -> Result<()> {
        let file = |o: &Outline| (SharedFile::new(&self.0, &o.path, &o.temporary), o.slots.clone());
        self.all_do(records, Word::Write(outlines.iter().map(file).collect())).map(drop)
    }

    /// Means of a plane of a component over the pixels of a picture, of the values of all parts.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn means(&self, records: &[Record], component: [usize; 2], plane: Plane, size: [usize; 2]) -> Result<Vec<f64>> {
        self.all_do(records, Word::Means(component, plane, size))
    }

    /// Extremes of a component, given by the numbers of share and component, of the values of all parts.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn extremes(&self, records: &[Record], component: [usize; 2]) -> Result<Extremes> {
        let all = self.all_do(records, Word::Extremes(component))?;
        let of = |part: &[f64; 3]| Extremes { low: part[0], high: part[1], unknown: part[2] as usize };
        Ok(all.as_chunks().0.iter().map(of).fold(Extremes::NONE, Extremes::with))
    }

    /// Lets the other parts go.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn end(self) -> Result<()> {
        self.0.first_says(Word::End).map(drop)
    }

    fn all_do(&self, records: &[Record], word: Word) -> Result<Vec<f64>> {
        act(&self.0, records, &self.0.first_says(word)?)
    }
}

/// Does with the own shares as the first part says, until it has no more to say: all others call this at the same time.
///
/// # Errors
/// One part cannot write, or does not see a file of the first part: all have an error, which names it.
pub fn follow(links: &Links, records: &[Record]) -> Result<()> {
    let mut done = Ok(());
    loop {
        match links.first_says(Word::End) {
            Ok(Word::End) => return done,
            Ok(word) => done = done.and(act(links, records, &word).map(drop)),
            Err(error) => return done.and(Err(error)),
        }
    }
}

/// Does at one part as the first one says; it alone has an answer.
fn act(links: &Links, records: &[Record], word: &Word) -> Result<Vec<f64>> {
    match word {
        Word::Write(files) => links.together(write(records, files)).map(|()| Vec::new()),
        Word::Means(component, plane, size) => {
            let found = shared(records, component[0]).and_then(|(record, first)| Some((record.component(component[1])?, first)));
            let Piece { rows, means } =
                links.together(found.map(|(values, first)| plane.piece(values, first, *size)).ok_or_else(lacking))?;
            let message = [&[rows.start as f64, rows.end as f64], &means[..]].concat();
            drop(means);
            let all = links.gather(cast_slice(&message).to_vec())?;
            drop(message);
            if !links.is_first() {
                return Ok(Vec::new());
            }
            let piece = |message: Vec<u8>| {
                let mut means: Vec<f64> = values(&message);
                let rows: Vec<usize> = means.drain(..2).map(|row| row as usize).collect();
                Piece { rows: rows[0]..rows[1], means }
            };
            let pieces: Vec<Piece> = all.into_iter().map(piece).collect();
            plane.joined(&pieces, *size).ok_or_else(|| misfit("pixels of parts do not fit together".into()))
        }
        Word::Extremes(component) => {
            let found = shared(records, component[0]).and_then(|(record, _)| record.component(component[1]));
            let Extremes { low, high, unknown } = links.together(found.map(Values::extremes).ok_or_else(lacking))?;
            links.joined_at_first(vec![low, high, unknown as f64])
        }
        Word::End => Ok(Vec::new()),
    }
}

/// A share by its number, and the number of its first value.
fn shared(records: &[Record], number: usize) -> Option<(&Record, usize)> {
    records.iter().filter_map(|record| Some((record, record.share()?))).nth(number)
}

fn lacking() -> Error {
    misfit("this part does not have all records of which the first part writes shares".into())
}

fn write(records: &[Record], files: &[(SharedFile, Vec<Slot>)]) -> Result<()> {
    for (file, slots) in files {
        let handle = file.open()?;
        let failed = |e| Error::file("write", file.path(), e);
        for slot in slots {
            let (record, first) = shared(records, slot.share).ok_or_else(lacking)?;
            if let Some(mark) = slot.mark {
                let marks = record.component(slot.column).ok_or_else(lacking)?.marks(mark);
                handle.write_all_at(&marks, slot.at + first as u64).map_err(failed)?;
            } else {
                let (bytes, width) = record.column(slot.column).ok_or_else(lacking)?;
                handle.write_all_at(bytes, slot.at + (first * width) as u64).map_err(failed)?;
            }
        }
        handle.sync_all().map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::inside;
    use crate::record::{Axis, Column, Component, Palette, Table};

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

    /// Pictures are made of whole rows.
    #[test]
    fn shares_of_a_mesh_end_between_rows() {
        let found = |end: usize| {
            inside::run(2, |links| {
                let [first, end] = [[0, end], [end, 12]][links.rank()];
                let values = Values::F32(vec![0.0; end - first]);
                let mesh = Mesh {
                    name: "E".into(),
                    title: "electric field".into(),
                    unit: String::new(),
                    dimension: [0.0; 7],
                    unit_si: 1.0,
                    axes: vec![Axis::bare(0, 0.0, 1.0, 4), Axis::bare(1, 0.0, 1.0, 3)],
                    length_si: 1.0,
                    time_si: 1.0,
                    time_offset: 0.0,
                    components: vec![Component { name: String::new(), position: vec![0.0; 2], values }],
                    share: Some(first),
                    palette: Palette::Diverging,
                };
                Ok(must_join(&links, &[&Record::Mesh(mesh)]).err().map(|error| error.to_string()))
            })
            .unwrap()
        };
        assert_eq!(found(8), [None, None]);
        assert!(found(6).iter().all(|error| error.as_ref().is_some_and(|error| error.contains("`E` do not fit together"))));
    }
}
