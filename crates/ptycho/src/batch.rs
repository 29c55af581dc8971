//! Views of a batch by the parts of a run that have them.
//!
//! The views of a batch are drawn from all parts, and its sums follow the order in which they were drawn: handed on from part to
//! part as those over all views are (`relay`), they would wait for another part at almost every view. So each part makes the waves
//! of its own views, all tell each other theirs, and each takes the sums over the whole batch, in the order of one part.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::Result;

use crate::share::Share;

/// Places of the views of a batch, part by part.
#[derive(Debug)]
pub(crate) struct BatchShare<'a> {
    share: &'a Share,
    /// Slots in the batch: those of the first part, then those of the next one, each part's in the order of the batch.
    slots: Vec<u32>,
    /// First of each part, and the end.
    first: Vec<usize>,
}

impl<'a> BatchShare<'a> {
    /// Parts of these views.
    pub(crate) fn new(share: &'a Share, batch: &[u32]) -> Self {
        let mut slots: Vec<u32> = (0..batch.len() as u32).collect();
        let part_of = |slot: &u32| share.part_of(batch[*slot as usize] as usize);
        if !share.is_alone() {
            slots.sort_by_key(part_of);
        }
        let parts = 0..share.links().size();
        let before = |part: usize| if share.is_alone() { 0 } else { slots.partition_point(|slot| part_of(slot) < part) };
        let first = parts.map(before).chain([batch.len()]).collect();
        Self { share, slots, first }
    }

    /// Number of views.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Range of a part's slots among those of all parts.
    pub(crate) fn range(&self, part: usize) -> Range<usize> {
        self.first[part]..self.first[part + 1]
    }

    /// That of this part's.
    pub(crate) fn own_range(&self) -> Range<usize> {
        self.range(self.share.links().rank())
    }

    /// Slots of own views, in the order of the batch.
    pub(crate) fn own(&self) -> &[u32] {
        &self.slots[self.own_range()]
    }

    /// Place of the view in each slot among the views part by part.
    pub(crate) fn places(&self) -> Vec<u32> {
        let mut places = vec![0; self.slots.len()];
        (0..).zip(&self.slots).for_each(|(place, slot)| places[*slot as usize] = place);
        places
    }

    /// Chunks of `size` values for own views out of those for all views of the batch, each with its slot.
    pub(crate) fn own_of<'v, V>(&self, values: &'v mut [V], size: usize) -> Vec<(usize, &'v mut [V])> {
        let mut own = self.own().iter().copied().peekable();
        let chunks = values.chunks_exact_mut(size).take(self.slots.len()).enumerate();
        chunks.filter(|(slot, _)| own.next_if_eq(&(*slot as u32)).is_some()).collect()
    }

    /// Tells all other parts the values for own views, `size` for each, and takes theirs: all have those of the whole batch, in its
    /// order.
    pub(crate) fn tell<V: Pod>(&self, values: &mut [V], size: usize) -> Result<()> {
        if self.share.is_alone() {
            return Ok(());
        }
        let (links, me) = (self.share.links(), self.share.links().rank());
        let of = |slot: &u32| *slot as usize * size..(*slot as usize + 1) * size;
        let others = || (0..links.size()).filter(|part| *part != me);
        let mut message = Vec::with_capacity(self.own().len() * size * size_of::<V>());
        self.own().iter().for_each(|slot| message.extend_from_slice(bytemuck::cast_slice(&values[of(slot)])));
        let to = others().filter(|_| !message.is_empty());
        let from: Vec<usize> = others().filter(|part| !self.range(*part).is_empty()).collect();
        let found = links.exchange(to.map(|part| (part, message.clone())), &from)?;
        for (part, message) in from.into_iter().zip(found) {
            let chunks = message.chunks_exact(size * size_of::<V>());
            for (slot, bytes) in self.slots[self.range(part)].iter().zip(chunks) {
                bytemuck::cast_slice_mut::<V, u8>(&mut values[of(slot)]).copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::links::inside;

    use super::*;

    /// A batch as it was drawn, one without views of some parts, and one of a single view.
    #[test]
    fn all_parts_have_the_whole_batch_in_its_order() {
        for batch in [&[7, 2, 9, 0, 4, 8, 1, 3][..], &[9, 8], &[5]] {
            for parts in [1, 2, 3, 5] {
                let all = inside::run(parts, |links| {
                    let share = Share::even(&links, 10)?;
                    let of_batch = BatchShare::new(&share, batch);
                    let mut values = vec![[0.0_f32; 2]; 3 * batch.len()];
                    let mut own = Vec::new();
                    for (slot, values) in of_batch.own_of(&mut values, 3) {
                        own.push(batch[slot]);
                        (0..).zip(values).for_each(|(k, value)| *value = [batch[slot] as f32, k as f32]);
                    }
                    assert!(own.iter().all(|j| share.own(10).contains(&(*j as usize))));
                    assert_eq!(own.len(), of_batch.own_range().len());
                    of_batch.tell(&mut values, 3)?;
                    let places = of_batch.places();
                    assert!(of_batch.slots.iter().enumerate().all(|(place, slot)| places[*slot as usize] as usize == place));
                    Ok((own.len(), values))
                });
                let all = all.unwrap();
                assert_eq!(all.iter().map(|(own, _)| own).sum::<usize>(), batch.len());
                let expected: Vec<[f32; 2]> = batch.iter().flat_map(|j| [0.0, 1.0, 2.0].map(|k| [*j as f32, k])).collect();
                assert!(all.iter().all(|(_, values)| *values == expected), "{parts} parts of {batch:?}");
            }
        }
    }
}
