//! State of a gas on GPUs in a checkpoint, which is that of one part whatever the parts of the run.

use std::borrow::Cow;

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::Gas;
use super::arguments::Counters;
use crate::model::Scheme;
use crate::stages::cpu::collide::pair_count;
use crate::stages::{Ledger, Stages};

impl Gas {
    /// Pairs of species that collide.
    fn pairs(&self) -> usize {
        if self.model.collisions.scheme == Scheme::None { 0 } else { pair_count(self.model.species.len()) }
    }

    /// State besides particles and sums in double precision, of all parts, for a checkpoint: whole at the first part.
    pub(super) fn all_numbers(&mut self) -> Result<Vec<f64>> {
        let l = self.ledger()?;
        let counts = l.numbers(self.model.weighted());
        // One more number than the CPU's, whose tiles are others.
        let [places, layers] = [self.store.tiling.all[0] * self.store.tiling.all[1], self.store.tiling.layers];
        let mut extra: Vec<f64> = std::iter::once((places * layers) as f64).chain(counts).collect();
        let (cells, wide) = (self.store.config.cells(), |column: Vec<f32>| column.into_iter().map(f64::from).collect::<Vec<f64>>());
        for column in &self.majorants {
            let own = wide(self.cuda.download(column)?);
            extra.extend(self.of_all(own, self.pairs(), cells)?);
        }
        extra.extend(self.all_moving()?);
        // A part without tiles has no numbers, but takes part.
        if layers > 1 {
            let lengths = self.store.lengths()?;
            extra.extend(self.of_all(lengths, 1, 1)?);
        }
        let mut recent = self.averages.numbers()?;
        let held = recent.remove(0);
        extra.push(held);
        if held > 0.0 {
            extra.extend(self.of_all(recent, self.averages.kept(), self.averages.keys())?);
        }
        Ok(extra)
    }

    /// Takes it back: each part what is of its tiles.
    pub(super) fn set_all_numbers(&mut self, extra: &[f64]) -> Result<(), String> {
        self.flush(&mut Profiler::off()).map_err(|e| e.to_string())?;
        let tiles = self.store.tiling.all[0] * self.store.tiling.all[1] * self.store.tiling.layers;
        let (pairs, cells) = (self.pairs(), self.store.config.cells());
        let (column, counts) = (pairs * tiles * cells, 1 + Ledger::length(self.model.weighted()));
        let expected = counts + 3 * column + self.moving.len() + self.store.length_count();
        if !self.averages.lengths().map(|n| expected + n).contains(&extra.len()) || extra[0] != tiles as f64 {
            return Err(
                "the state of the collisions was written on the CPU or for other tiles; resume it on the device that wrote it".into()
            );
        }
        let word = |e: zellige_engine::error::Error| e.to_string();
        let first = self.beyond.as_ref().is_none_or(|beyond| beyond.links.is_first());
        let n = if first { Ledger::from_numbers(&extra[1..counts]) } else { Ledger::default() };
        let mut rest = &extra[counts..];
        for k in 0..self.majorants.len() {
            let values: Vec<f32> = self.of_own(&rest[..column], pairs, cells).iter().map(|v| *v as f32).collect();
            self.cuda.upload(&mut self.majorants[k], &values).map_err(word)?;
            rest = &rest[column..];
        }
        let (moving, rest) = rest.split_at(self.moving.len());
        let (lengths, recent) = rest.split_at(self.store.length_count());
        let lengths = if lengths.is_empty() { Cow::Borrowed(lengths) } else { self.of_own(lengths, 1, 1) };
        if !self.store.set_lengths(&lengths).map_err(word)? {
            return Err("particles are not as many as tiles that share a cell had".into());
        }
        self.cuda.upload(&mut self.moving, moving).map_err(word)?;
        let mut numbers = recent[..1].to_vec();
        if recent.len() > 1 {
            numbers.extend_from_slice(&self.of_own(&recent[1..], self.averages.kept(), self.averages.keys()));
        }
        self.averages.set_numbers(&numbers).map_err(word)?;
        let kept = self.store.counters().map_err(word)?;
        let counters = Counters {
            injected: n.injected,
            removed: n.removed,
            collisions: n.collisions,
            attempts: n.attempts,
            exceeded: n.exceeded,
            stuck: n.stuck,
            copied: n.copied,
            dropped: n.dropped,
            ..kept
        };
        (self.inserted, self.copied) = (0, n.copied + kept.received);
        self.cuda.upload(&mut self.store.counters, &[counters]).map_err(word)
    }
}
