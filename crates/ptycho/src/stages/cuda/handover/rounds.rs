//! Sums that several parts of a run add to, and their way from part to part.
//!
//! A sum, of a section of a tile or of a part of the probes' sums, is added to by the parts that have views of it, in the order of
//! the views, which is that of the parts. The first of them does so in round 0, the next one in round 1. In each round a part takes
//! first what others wait for.

use std::ops::Range;

/// Slots that are copied to another part: own first one, the other's first one, and how many.
pub(super) type Copied = [usize; 3];

/// One round of a part; ranges are of its list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Round {
    /// Touches whose sums go on to other parts.
    pub(super) open: Range<usize>,
    /// Parts that these go to, and copies to each.
    pub(super) to: Vec<(usize, Vec<Copied>)>,
    /// Touches that complete their sums.
    pub(super) complete: Range<usize>,
    /// Parts that sums come from, for the next round.
    pub(super) from: Vec<usize>,
}

/// Rounds of a part, as far as it does anything.
pub(super) type Rounds = Vec<Round>;

/// A touch of a sum by a part.
pub(super) trait Touch {
    /// Number of the sum.
    fn sum(&self) -> usize;

    /// Returns true if nobody adds to the sum afterwards.
    fn completes(&self) -> bool;

    /// Takes the slot in which the sum waits, the next free one of the part, unless it has one of its own; gives it.
    fn wait_in(&mut self, free: usize) -> usize;
}

/// A link of the chain of parts that add to a sum.
#[derive(Clone, Copy)]
struct Link {
    part: usize,
    round: usize,
    slot: usize,
}

/// Rounds of all parts from what they add to, of `sums` in all; the touches of each part are sorted by its rounds.
pub(super) fn rounds<T: Touch>(touches: &mut [Vec<T>], sums: usize) -> Vec<Rounds> {
    let mut turn = vec![0; sums];
    let mut chains: Vec<Vec<Link>> = vec![Vec::new(); sums];
    let mut all = Vec::new();
    for (part, list) in touches.iter_mut().enumerate() {
        let numbered = std::mem::take(list).into_iter().map(|touch| {
            let turn = &mut turn[touch.sum()];
            *turn += 1;
            (*turn - 1, touch)
        });
        let mut numbered: Vec<(usize, T)> = numbered.collect();
        numbered.sort_by_key(|(round, touch)| (*round, touch.completes(), touch.sum()));
        let (mut own, mut free) = (Rounds::new(), 0);
        for (k, (round, touch)) in numbered.iter_mut().enumerate() {
            // A sum that one part alone adds to waits for nobody.
            if *round > 0 || !touch.completes() {
                chains[touch.sum()].push(Link { part, round: *round, slot: touch.wait_in(free) });
                free += 1;
            }
            while own.len() <= *round {
                own.push(Round { open: k..k, complete: k..k, ..Round::default() });
            }
            let now = &mut own[*round];
            if touch.completes() {
                now.complete.end = k + 1;
            } else {
                (now.open.end, now.complete) = (k + 1, k + 1..k + 1);
            }
        }
        list.extend(numbered.into_iter().map(|(_, touch)| touch));
        all.push(own);
    }
    // By round, sender, receiver and slot.
    let mut ways: Vec<(usize, usize, usize, usize, usize)> = Vec::new();
    for pair in chains.iter().flat_map(|links| links.windows(2)) {
        ways.push((pair[0].round, pair[0].part, pair[1].part, pair[0].slot, pair[1].slot));
    }
    ways.sort_unstable();
    for (round, sender, receiver, here, there) in ways {
        let to = &mut all[sender][round].to;
        if to.last().is_none_or(|(part, _)| *part != receiver) {
            to.push((receiver, Vec::new()));
        }
        if let Some((_, copies)) = to.last_mut() {
            match copies.last_mut() {
                Some([own, other, count]) if *own + *count == here && *other + *count == there => *count += 1,
                _ => copies.push([here, there, 1]),
            }
        }
        let from = &mut all[receiver][round].from;
        if from.last().is_none_or(|part| *part != sender) {
            from.push(sender);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::cuda::lists;
    use crate::stages::cuda::stream::tile_ranges::{TileRange, touches};

    /// Every sum goes through the parts that touch it in their order, and lies where the next one looks for it.
    #[test]
    fn sums_follow_the_views() {
        for (model, parts) in
            [2, 3, 5, 8].into_iter().flat_map(|parts| [(lists::tests::model(), parts), (lists::tests::sectioned(), parts)])
        {
            let of_tiles = lists::tiles(&model, &model.views);
            let (tiles, visits, cuts) = &of_tiles;
            let views = model.views.len();
            let ranges: Vec<(u32, u32)> = tiles.iter().flat_map(|tile| tile.sections(cuts)).collect();
            let bounds: Vec<usize> = (0..=parts).map(|part| part * views / parts).collect();
            let (mut lists, sums) = touches(&of_tiles, &bounds);
            assert_eq!(sums, ranges.len());
            let all = rounds(&mut lists, sums);
            // Parts that consist of sections have sums of their own.
            assert_eq!(lists.iter().flatten().all(TileRange::alone), views > 1024 && parts % 2 == 0 && parts < 8);
            // Visits that each sum holds, where it waits.
            let mut slots: Vec<Vec<Option<(u32, u32)>>> = vec![vec![None; sums]; parts];
            let mut complete = vec![false; sums];
            for round in 0..all.iter().map(Vec::len).max().unwrap() {
                let mut posted: Vec<(usize, usize)> = Vec::new();
                for part in 0..parts {
                    let Some(now) = all[part].get(round) else { continue };
                    assert_eq!(now.open.end, now.complete.start);
                    for touch in &lists[part][now.open.start..now.complete.end] {
                        let (first, end) = ranges[touch.sum as usize];
                        let waiting = if round > 0 { slots[part][touch.slot as usize].take() } else { Some((touch.sum, first)) };
                        let (begin, stop) = touch.visits();
                        assert_eq!(waiting, Some((touch.sum, begin)), "{parts} parts, part {part}, round {round}");
                        let own = bounds[part]..bounds[part + 1];
                        assert!(visits[begin as usize..stop as usize].iter().all(|v| own.contains(&(v.view() as usize))));
                        if touch.completes() {
                            assert!(stop == end && !std::mem::replace(&mut complete[touch.sum as usize], true));
                        } else {
                            slots[part][touch.slot as usize] = Some((touch.sum, stop));
                        }
                    }
                    for (to, copies) in &now.to {
                        posted.push((part, *to));
                        for (k, [here, there, _]) in copies.iter().flat_map(|copied| (0..copied[2]).map(move |k| (k, copied))) {
                            let waiting = slots[part][here + k].take();
                            assert!(waiting.is_some());
                            assert_eq!(std::mem::replace(&mut slots[*to][there + k], waiting), None);
                        }
                    }
                }
                for (part, rounds) in all.iter().enumerate() {
                    let heard = rounds.get(round).map_or(&[][..], |now| &now.from);
                    let mut sent: Vec<usize> = posted.iter().filter(|(_, to)| *to == part).map(|(from, _)| *from).collect();
                    sent.sort_unstable();
                    assert_eq!(heard, sent);
                }
            }
            assert!(complete.iter().all(|complete| *complete) && slots.iter().flatten().all(Option::is_none));
        }
    }

    /// All rounds end where a sender waits until the receiver is in the same round, with all that goes and comes in it at once.
    #[test]
    fn parts_do_not_wait_for_each_other() {
        let model = lists::tests::model();
        let tiles = lists::tiles(&model, &model.views);
        let views = model.views.len();
        for parts in [2, 3, 5, 8] {
            let bounds: Vec<usize> = (0..=parts).map(|part| part * views / parts).collect();
            let (mut lists, sums) = touches(&tiles, &bounds);
            let all = rounds(&mut lists, sums);
            let sent: Vec<(usize, usize, usize)> = all
                .iter()
                .enumerate()
                .flat_map(|(part, own)| own.iter().enumerate().flat_map(move |(k, now)| now.to.iter().map(move |(to, _)| (k, part, *to))))
                .collect();
            assert!(sent.len() >= parts - 1);
            let (mut at, mut waits) = (vec![0; parts], sent.clone());
            loop {
                let before = (at.clone(), waits.len());
                waits.retain(|(round, from, to)| {
                    let hears = all[*to].get(*round).is_some_and(|now| now.from.contains(from));
                    !(at[*from] == *round && at[*to] == *round && hears)
                });
                for (part, own) in all.iter().enumerate() {
                    let done = |from: &[usize], to: usize| from.iter().all(|from| !waits.contains(&(at[part], *from, to)));
                    let goes =
                        own.get(at[part]).is_some_and(|now| done(&now.from, part) && now.to.iter().all(|(to, _)| done(&[part], *to)));
                    at[part] += usize::from(goes);
                }
                if before == (at.clone(), waits.len()) {
                    break;
                }
            }
            assert_eq!(at, all.iter().map(Vec::len).collect::<Vec<_>>(), "{parts} parts, left: {waits:?}");
        }
    }
}
