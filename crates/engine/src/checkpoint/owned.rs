//! Particles of a checkpoint that lie in the cells of a part of a run: each part looks through an equal piece of their list, and
//! tells the others which are theirs.

use std::ops::Range;

use crate::error::{Error, Problem, Result};
use crate::links::{Links, values};

/// Particles that are looked at together.
const BATCH: usize = 1 << 18;

/// Ranges, in rising order, of those of `n` particles that lie in the cells `own` of this part. Cells of different parts are apart.
/// `cells_of` gives the cells of the particles from a number on, one for each place. All parts call it together.
///
/// # Errors
/// Those of `cells_of`; another part has failed.
pub fn own_ranges(
    links: &Links,
    n: usize,
    own: &[Range<usize>; 2],
    mut cells_of: impl FnMut(usize, &mut [[usize; 2]]) -> Result<()>,
) -> Result<Vec<Range<usize>>> {
    let (rank, parts) = (links.rank(), links.size());
    let all = links.all_say(own)?;
    let bound = |part: usize| (n as u128 * part as u128 / parts as u128) as usize;
    let mine = bound(rank)..bound(rank + 1);
    let mut found: Vec<Vec<Range<usize>>> = vec![Vec::new(); parts];
    let mut cells = vec![[0; 2]; mine.len().min(BATCH)];
    // Particles of a part follow each other for the most part.
    let mut last = rank;
    for first in mine.clone().step_by(BATCH) {
        let some = &mut cells[..(mine.end - first).min(BATCH)];
        cells_of(first, some)?;
        for (k, cell) in (first..).zip(&*some) {
            let is_in = |part: usize| (0..2).all(|axis| all[part][axis].contains(&cell[axis]));
            if !is_in(last) {
                let Some(part) = (0..parts).find(|part| is_in(*part)) else { continue };
                last = part;
            }
            add(&mut found[last], k..k + 1);
        }
    }
    let others: Vec<usize> = (0..parts).filter(|part| *part != rank).collect();
    let message = |ranges: &[Range<usize>]| ranges.iter().flat_map(|r| [r.start as u64, r.end as u64]).flat_map(u64::to_le_bytes).collect();
    let told = links.exchange(others.iter().map(|part| (*part, message(&found[*part]))), &others)?;
    // Those of this part come between those of the parts before and after it.
    let ends = |message: &Vec<u8>| values::<[u64; 2]>(message).into_iter().map(|[start, end]| start as usize..end as usize);
    let (before, after) = told.split_at(rank);
    let own = std::mem::take(&mut found[rank]);
    let mut ranges = Vec::new();
    for range in before.iter().flat_map(ends).chain(own).chain(after.iter().flat_map(ends)) {
        add(&mut ranges, range);
    }
    if ranges.last().is_some_and(|range: &Range<usize>| range.end > n) {
        return Err(Error::input("parts of a run", Problem::new("", format!("another part tells of more than {n} particles"))));
    }
    Ok(ranges)
}

/// Adds a range to others, which come in rising order.
fn add(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut().filter(|last| last.end == range.start) {
        Some(last) => last.end = range.end,
        None => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::links::inside;

    /// Particles whose cells jump, among others of every part.
    #[test]
    fn each_part_looks_through_its_piece_and_has_what_lies_in_its_cells() {
        const N: usize = 2 * BATCH + 12_345;
        let cell = |k: usize| [(k / 1000) % 7, if k.is_multiple_of(97) { k % 12 } else { 12 * k / N }];
        for parts in [1, 2, 5] {
            let own = |part: usize| [0..7, 12 * part / parts..12 * (part + 1) / parts];
            let looked = Mutex::new(Vec::new());
            let found = inside::run(parts, |links| {
                own_ranges(&links, N, &own(links.rank()), |first, cells| {
                    looked.lock().unwrap().push(first..first + cells.len());
                    cells.iter_mut().zip(first..).for_each(|(to, k)| *to = cell(k));
                    Ok(())
                })
            });
            for (part, ranges) in found.unwrap().into_iter().enumerate() {
                assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "part {part} of {parts}");
                let expected = (0..N).filter(|k| own(part)[1].contains(&cell(*k)[1]));
                assert!(ranges.into_iter().flatten().eq(expected), "part {part} of {parts}");
            }
            let mut looked = looked.into_inner().unwrap();
            looked.sort_by_key(|range| range.start);
            assert!(looked.into_iter().flatten().eq(0..N), "{parts} parts look at everything once");
        }
    }

    #[test]
    fn a_part_that_cannot_read_its_piece_ends_all() {
        let done = inside::run(3, |links| {
            let own = [0..1, links.rank()..links.rank() + 1];
            own_ranges(&links, 30, &own, |first, _| {
                if first == 10 { Err(Error::input("parts of a run", Problem::new("", "no such cell"))) } else { Ok(()) }
            })
        });
        assert!(done.unwrap_err().to_string().contains("no such cell"));
    }
}
