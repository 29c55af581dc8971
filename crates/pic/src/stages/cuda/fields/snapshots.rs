//! Components put aside on the device as they stand, so that what is sampled in each step of a small run does not wait for it.

use zellige_engine::cuda::Buffer;
use zellige_engine::error::Result;

use super::arrays::unpacked;
use super::{Fields, bytes};
use crate::stages::Component;
use crate::stages::cpu::fields::fill_guards;

/// Bytes of a list; larger components than half of that are not kept, since the host has then more to do than to wait.
const LIST: usize = 4 << 20;

/// A list of one component, one state behind the other.
pub(super) struct SnapshotList {
    component: Component,
    states: Buffer<u8>,
    count: usize,
}

impl Fields {
    /// Puts a component of E or B at the end of a list. False, and nothing done, where that has no room or is of another component.
    pub(in crate::stages::cuda) fn keep(&mut self, list: usize, component: Component) -> Result<bool> {
        let (c, n) = (component as usize, self.grid.len() * bytes(self.precision));
        if c >= 6 || 2 * n > LIST || self.grid.part.is_some() {
            return Ok(false);
        }
        while self.snapshots.len() <= list {
            self.snapshots.push(SnapshotList { component, states: self.pool.alloc_zeros(LIST / n * n, "pic: samples")?, count: 0 });
        }
        let snapshots = &mut self.snapshots[list];
        if snapshots.component != component || (snapshots.count + 1) * n > snapshots.states.len() {
            return Ok(false);
        }
        self.cuda.copy(&self.advancing[0][c], 0, &mut snapshots.states, snapshots.count * n, n)?;
        snapshots.count += 1;
        Ok(true)
    }

    /// Snapshots in a list, which is empty afterwards. Waits where there is something.
    pub(in crate::stages::cuda) fn kept(&mut self, list: usize) -> Result<Vec<Vec<f64>>> {
        let Some(snapshots) = self.snapshots.get_mut(list).filter(|a| a.count > 0) else { return Ok(Vec::new()) };
        let n = self.grid.len() * bytes(self.precision);
        let states = self.cuda.download_range(&snapshots.states, 0..std::mem::take(&mut snapshots.count) * n)?;
        let state = |bytes: &[u8]| {
            let mut values = unpacked(bytes, self.precision);
            fill_guards(&self.grid, snapshots.component, &mut values);
            values
        };
        Ok(states.chunks_exact(n).map(state).collect())
    }
}
