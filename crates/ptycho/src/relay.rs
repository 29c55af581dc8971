//! Sums over the views of all parts, in the order of the views.
//!
//! A sum of rounded numbers depends on the order of its terms. So that it does not depend on the number of parts, the first part
//! that has views of a piece of the sum adds them and sends what it has to the next, which goes on from there; the last one has the
//! total, which all receive. Pieces are many, and while one part works on one of them, the others work on others.

use std::cmp::Reverse;
use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::Result;
use zellige_engine::large::Aligned;
use zellige_engine::parallel::{each_task, items, items_mut, threads};

use crate::share::Share;

/// Messages for each part of a chain: where all parts add to all pieces, the last one begins when the first one has made as many
/// messages less one as there are parts, so that an eighth of the time is lost.
const MESSAGES: usize = 8;
/// Bytes from which on a message is worth its sending.
const LEAST: usize = 8 << 10;

/// Sums of pieces, as far as they have come.
pub(crate) struct Relay<T> {
    sums: Vec<Aligned<T>>,
}

/// Pieces to which the same parts add, which go together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group<'a> {
    pieces: Range<usize>,
    /// Those that add to them, in the order of their views.
    parts: &'a [usize],
}

impl Group<'_> {
    /// Place of `part` in the order in which it takes groups: first those that begin with it, and of these those that most others
    /// wait for. From one part of a group to the next the first number grows by one: both take what goes between them in one order.
    fn turn(&self, part: usize) -> Option<(usize, Reverse<usize>, usize)> {
        let place = self.parts.iter().position(|p| *p == part)?;
        Some((place, Reverse(self.parts.len()), self.pieces.start))
    }
}

impl<T: Pod + Send + Sync> Relay<T> {
    /// Sums of pieces of these lengths, nothing added.
    pub(crate) fn zeros(lengths: impl IntoIterator<Item = usize>) -> Self {
        Self { sums: lengths.into_iter().map(Aligned::zeros).collect() }
    }

    /// Forgets what was added.
    pub(crate) fn clear(&mut self) {
        self.sums.iter_mut().for_each(|sums| sums.fill(T::zeroed()));
    }

    /// The sums, piece by piece.
    pub(crate) fn sums(&self) -> &[Aligned<T>] {
        &self.sums
    }

    /// Takes the sums out.
    pub(crate) fn into_sums(self) -> Vec<Aligned<T>> {
        self.sums
    }

    /// Adds own views to each piece by `add(piece, sums)`. `parts(piece)` are those that have views of the piece: all of them add
    /// in one call, in their order, and all others receive the sums as well. In a run in one part there may be several calls, of
    /// some views each.
    pub(crate) fn add<'a>(
        &mut self,
        share: &Share,
        parts: impl Fn(usize) -> &'a [usize],
        add: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<()> {
        if share.is_alone() {
            each_task(items_mut(&mut self.sums), |piece, sums| add(piece, sums));
            return Ok(());
        }
        let (links, me) = (share.links(), share.links().rank());
        let groups = self.groups(parts);
        let of = |part: usize| {
            let mut own: Vec<_> = groups.iter().filter_map(|group| Some((group.turn(part)?, group))).collect();
            own.sort_unstable_by_key(|(turn, _)| *turn);
            own.into_iter().map(|((place, ..), group)| (place, group))
        };
        for (place, group) in of(me) {
            if place > 0 {
                self.receive(&group.pieces, &links.receive(group.parts[place - 1])?);
            }
            let first = group.pieces.start;
            each_task(items_mut(&mut self.sums[group.pieces.clone()]), |i, sums| add(first + i, sums));
            if let Some(next) = group.parts.get(place + 1) {
                links.send(*next, self.message(&group.pieces))?;
            }
        }
        // Totals after all that others wait for.
        let last = |part: usize| of(part).filter(move |(_, group)| group.parts.last() == Some(&part));
        for (_, group) in last(me) {
            let message = self.message(&group.pieces);
            for other in (0..links.size()).filter(|other| *other != me) {
                links.send(other, message.clone())?;
            }
        }
        for other in (0..links.size()).filter(|other| *other != me) {
            for (_, group) in last(other) {
                self.receive(&group.pieces, &links.receive(other)?);
            }
        }
        Ok(())
    }

    /// Pieces that follow one another and have the same parts, in groups worth a message. Pieces that nobody adds to are in none.
    fn groups<'a>(&self, parts: impl Fn(usize) -> &'a [usize]) -> Vec<Group<'a>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut first = 0;
        while first < self.sums.len() {
            let own = parts(first);
            let alike = (first..self.sums.len()).take_while(|piece| parts(*piece) == own).count();
            let size = match own.len() {
                0 | 1 => alike,
                many => {
                    let bytes = size_of_val(&self.sums[first][..]).max(1);
                    (alike / (MESSAGES * many)).max(threads()).max(LEAST.div_ceil(bytes)).min(alike)
                }
            };
            let cuts = (first..first + alike).step_by(size).map(|at| Group { pieces: at..(at + size).min(first + alike), parts: own });
            groups.extend(cuts.filter(|group| !group.parts.is_empty()));
            first += alike;
        }
        groups
    }

    /// The sums of some pieces, one behind the other.
    fn message(&self, pieces: &Range<usize>) -> Vec<u8> {
        let mut message = Vec::with_capacity(self.sums[pieces.clone()].iter().map(|sums| size_of_val(&sums[..])).sum());
        self.sums[pieces.clone()].iter().for_each(|sums| message.extend_from_slice(bytemuck::cast_slice(sums)));
        message
    }

    fn receive(&mut self, pieces: &Range<usize>, message: &[u8]) {
        let mut rest = message;
        for sums in &mut self.sums[pieces.clone()] {
            let (own, behind) = rest.split_at(size_of_val(&sums[..]));
            bytemuck::cast_slice_mut::<T, u8>(sums).copy_from_slice(own);
            rest = behind;
        }
    }
}

/// Sums over views for each of `pieces`: `add(piece, sums)` adds own ones to numbers as many as `len(piece)`, and
/// `finish(piece, sums)` uses the totals, on every part.
pub(crate) fn sum_pieces<'a, T: Pod + Send + Sync, P: Send + Sync>(
    share: &Share,
    pieces: &mut [P],
    parts: impl Fn(&P) -> &'a [usize],
    len: impl Fn(&P) -> usize + Sync,
    add: impl Fn(&P, &mut [T]) + Sync,
    finish: impl Fn(&mut P, &[T]) + Sync,
) -> Result<()> {
    if share.is_alone() {
        // While the sums are in the cache.
        each_task(items_mut(pieces), |_, piece| {
            let mut sums = Aligned::zeros(len(piece));
            add(piece, &mut sums);
            finish(piece, &sums);
        });
        return Ok(());
    }
    let mut relay = Relay::zeros(pieces.iter().map(&len));
    let fixed = &*pieces;
    relay.add(share, |i| parts(&fixed[i]), |i, sums| add(&fixed[i], sums))?;
    each_task((items_mut(pieces), items(relay.sums())), |_, (piece, sums)| finish(piece, sums));
    Ok(())
}

#[cfg(test)]
mod tests {
    use zellige_engine::links::inside;

    use super::*;

    /// Terms of very different sizes, so that another order is another sum.
    fn term(view: usize, piece: usize, i: usize) -> f64 {
        ((view * 7919 + piece * 31 + i) as f64).sin() * 10_f64.powi((view * 5 % 17) as i32)
    }

    const VIEWS: usize = 61;
    const PIECES: usize = 40;

    /// Views that see a piece, as a scan by rows, in rings, or all.
    fn sees(pattern: usize, view: usize, piece: usize) -> bool {
        match pattern {
            0 => (view * PIECES / VIEWS).abs_diff(piece) < 4,
            1 => PIECES.abs_diff(2 * piece) * VIEWS <= 2 * view * PIECES,
            2 => piece != 3,
            _ => view % 5 == piece % 7,
        }
    }

    fn summed(pattern: usize, parts: usize, backwards: bool) -> Vec<Vec<u64>> {
        let part = |links| {
            let share = Share::even(&links, VIEWS)?;
            let own = share.own(VIEWS);
            let adders: Vec<Vec<usize>> =
                (0..PIECES).map(|piece| share.parts_of((0..VIEWS).filter(|j| sees(pattern, *j, piece)))).collect();
            // Pieces of different lengths, some of several messages.
            let mut relay = Relay::<f64>::zeros((0..PIECES).map(|piece| 300 + piece));
            let add = |piece: usize, sums: &mut [f64]| {
                let mut seen: Vec<usize> = own.clone().filter(|j| sees(pattern, *j, piece)).collect();
                if backwards {
                    seen.reverse();
                }
                for view in seen {
                    sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += term(view, piece, i));
                }
            };
            relay.add(&share, |piece| &adders[piece], add)?;
            Ok(relay.into_sums().iter().map(|sums| sums.iter().map(|v| v.to_bits()).collect()).collect::<Vec<Vec<u64>>>())
        };
        let mut all = inside::run(parts, part).unwrap();
        let first = all.swap_remove(0);
        assert!(all.iter().all(|other| *other == first), "pattern {pattern}, {parts} parts");
        first
    }

    #[test]
    fn sums_have_the_order_of_the_views_on_any_number_of_parts() {
        for pattern in 0..4 {
            let expected: Vec<Vec<u64>> = (0..PIECES)
                .map(|piece| {
                    let sum = |i| (0..VIEWS).filter(|j| sees(pattern, *j, piece)).fold(0.0, |sum, j| sum + term(j, piece, i));
                    (0..300 + piece).map(|i| sum(i).to_bits()).collect()
                })
                .collect();
            for parts in [1, 2, 3, 4, 8, 61] {
                assert!(summed(pattern, parts, false) == expected, "pattern {pattern}, {parts} parts");
            }
            assert!(summed(pattern, 3, true) != expected, "pattern {pattern}: the order makes a difference");
        }
    }

    /// In a scan by rows a part begins with rows that the next one waits for, then has its own, then goes on where the one before
    /// has ended; where all see all, pieces go from part to part in several messages.
    #[test]
    fn nobody_waits_longer_than_needed() {
        let relay = Relay::<f64>::zeros((0..8).map(|_| 2000));
        let adders: [&[usize]; 8] = [&[0], &[0], &[0, 1], &[1], &[1], &[1, 2], &[2], &[2]];
        let groups = relay.groups(|piece| adders[piece]);
        let mut own: Vec<_> = groups.iter().filter_map(|group| Some((group.turn(1)?, group.pieces.clone()))).collect();
        own.sort_unstable_by_key(|(turn, _)| *turn);
        assert_eq!(own.into_iter().map(|(_, pieces)| pieces).collect::<Vec<_>>(), [5..6, 3..5, 2..3]);
        let dense = Relay::<f64>::zeros((0..64).map(|_| 2000));
        zellige_engine::parallel::alone(|| assert_eq!(dense.groups(|_| &[0, 1]).len(), 16));
    }
}
