//! Share of the views that a part of a run has.
//!
//! Object, probe, positions and lists of views are whole on every part; frames and waves are there for own views alone. A part owns
//! a range of views: sums over views have their order, and so go from part to part (`relay`), and values of single views
//! are gathered in it.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;

/// Views of this part, and links to the parts that have the others. By default there is one part, which has all.
#[derive(Debug, Clone, Default)]
pub struct Share {
    links: Links,
    /// Number of the first view of each part, and that of all views; nothing where there is one part.
    bounds: Vec<usize>,
}

impl Share {
    /// Shares views out evenly: each costs the same.
    ///
    /// # Errors
    /// There are fewer views than parts.
    pub fn even(links: &Links, views: usize) -> Result<Self> {
        let parts = links.size();
        if parts == 1 {
            return Ok(Self::default());
        }
        if views < parts {
            let problem = Problem::new("", format!("{views} frames cannot be shared out over {parts} parts"));
            return Err(Error::input("ptycho", problem.hint("use fewer parts")));
        }
        Ok(Self { links: links.clone(), bounds: (0..=parts).map(|part| part * views / parts).collect() })
    }

    /// The share of those views that are kept, numbered anew.
    #[must_use]
    pub fn of_kept(&self, kept: impl Fn(usize) -> bool) -> Self {
        let before = |bound: &usize| (0..*bound).filter(|j| kept(*j)).count();
        Self { links: self.links.clone(), bounds: self.bounds.iter().map(before).collect() }
    }

    /// Refuses parts without a view, which kernels would be started for in vain: few frames, halves of which are reconstructed.
    pub(crate) fn must_all_have_views(&self) -> Result<()> {
        if self.bounds.windows(2).all(|ends| ends[0] < ends[1]) {
            return Ok(());
        }
        let views = self.bounds.last().copied().unwrap_or(0);
        let problem = Problem::new("--parts", format!("{} parts of a half of the scan, which has {views} frames", self.links.size()));
        Err(Error::input("ptycho", problem.hint("use fewer parts, or leave `frc` out")))
    }

    /// Number of parts that share the memory of a host with this one, which all ask for at the same time.
    pub fn parts_of_host(links: &Links) -> Result<usize> {
        if links.shares_memory() {
            return Ok(links.size());
        }
        let own = links.host();
        Ok(links.all_say(&own)?.iter().filter(|host| **host == own).count())
    }

    /// Links to the other parts.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Number of the first view of each part, and that of all views; nothing where there is one part.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// Returns true if there is one part.
    pub fn is_alone(&self) -> bool {
        self.links.is_alone()
    }

    /// Numbers of the own views among `views` in all.
    pub fn own(&self, views: usize) -> Range<usize> {
        self.of_part(self.links.rank(), views)
    }

    /// Numbers of the views of a part.
    fn of_part(&self, part: usize, views: usize) -> Range<usize> {
        if self.is_alone() { 0..views } else { self.bounds[part]..self.bounds[part + 1] }
    }

    /// The part that has a view.
    pub(crate) fn part_of(&self, view: usize) -> usize {
        self.bounds.partition_point(|first| *first <= view).saturating_sub(1)
    }

    /// The parts that have some of these views, which come in their order.
    pub(crate) fn parts_of(&self, views: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut parts: Vec<usize> = views.map(|j| self.part_of(j)).collect();
        parts.dedup();
        parts
    }

    /// Values of all views from those of own ones, in their order.
    pub fn gathered<V: Pod>(&self, own: Vec<V>) -> Result<Vec<V>> {
        self.links.joined(own)
    }

    /// Sums of counts over all parts.
    pub fn summed<const N: usize>(&self, counts: [usize; N]) -> Result<[usize; N]> {
        let mut counts = counts.map(|n| n as u64);
        if !self.is_alone() {
            self.links.sum(&mut counts)?;
        }
        Ok(counts.map(|n| n as usize))
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::links::inside;

    use super::*;

    #[test]
    fn a_half_leaves_some_to_every_part_or_is_refused() {
        let found = inside::run(3, |links| {
            let share = |views: usize| Share::even(&links, views).map(|share| share.of_kept(|j| j % 2 == 0));
            assert!(share(6)?.must_all_have_views().is_ok());
            Ok(share(4)?.must_all_have_views().unwrap_err().to_string())
        });
        assert!(found.unwrap().iter().all(|error| error.contains("3 parts of a half of the scan, which has 2 frames")));
        assert!(Share::default().must_all_have_views().is_ok());
    }
}
