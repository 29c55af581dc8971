//! Order by key: a stable counting sort from one row into another, whose work memory fits the first caches.

use super::column::{Key, Word};
use super::row::Row;
use crate::real::RealScalar;

/// `to[destinations[k]] = from[k]`. Destinations are a permutation of the slots, which `to` has.
fn scatter<V: Copy>(destinations: &[u32], from: &[V], to: &mut [V]) {
    for (destination, value) in destinations.iter().zip(from) {
        to[*destination as usize] = *value;
    }
}

impl<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key> Row<T, N, I, W, K> {
    /// Copies the particles into row `to` in the order of their keys, replacing its content; those of one key keep their
    /// order. Those of key `k` are put into the slots `starts[k]..starts[k + 1]`, of `keys` keys; what has no key below that, as
    /// free slots, is left out. Returns the number of particles. `destinations` is work memory: where each slot went, free ones
    /// behind all others.
    pub fn sort_into(&self, keys: usize, to: &mut Self, starts: &mut Vec<u32>, destinations: &mut Vec<u32>) -> usize {
        let own = self.keys();
        let n = own.len();
        starts.clear();
        // A particle without a key counts as the last one.
        starts.resize(keys + 2, 0);
        for key in own {
            starts[key.number().min(keys) + 1] += 1;
        }
        for k in 0..=keys {
            starts[k + 1] += starts[k];
        }
        let valid = starts[keys] as usize;
        if destinations.len() < n {
            destinations.resize(n + n / 8, 0);
        }
        let destinations = &mut destinations[..n];
        {
            let starts = &mut starts[..];
            for (destination, key) in destinations.iter_mut().zip(own) {
                let next = &mut starts[key.number().min(keys)];
                *destination = *next;
                *next += 1;
            }
        }
        // Each entry has become the next one's begin.
        for k in (0..keys).rev() {
            starts[k + 1] = starts[k];
        }
        starts[0] = 0;
        starts[keys] = valid as u32;
        starts.truncate(keys + 1);
        to.set_len(n);
        // Keys and numbers in one loop: one look at the slot and one check for all.
        match self.layout().width {
            0 => self.scatter::<0>(to, destinations),
            1 => self.scatter::<1>(to, destinations),
            2 => self.scatter::<2>(to, destinations),
            3 => self.scatter::<3>(to, destinations),
            4 => self.scatter::<4>(to, destinations),
            5 => self.scatter::<5>(to, destinations),
            _ => self.scatter::<6>(to, destinations),
        }
        for k in 6..self.layout().width {
            let ((from, a), (to, b)) = (self.values(), to.values_mut());
            scatter(destinations, &from[k * a..][..n], &mut to[k * b..][..n]);
        }
        for k in (0..W).filter(|k| self.layout().words[*k]) {
            scatter(destinations, self.word(k), to.columns_mut().words[k]);
        }
        to.set_len(valid);
        valid
    }

    /// Moves the keys and the first `M` columns of numbers, which are held.
    fn scatter<const M: usize>(&self, to: &mut Self, destinations: &[u32]) {
        let n = self.len();
        assert!(destinations.len() == n && to.len() >= n && M <= self.layout().width && M <= to.layout().width, "rows of one layout");
        let own = self.keys().as_ptr();
        let (values, pitch) = self.values();
        let from: [*const T; M] = std::array::from_fn(|c| values[c * pitch..][..n].as_ptr());
        let keys = to.keys_mut().as_mut_ptr();
        let (values, pitch) = to.values_mut();
        let into: [*mut T; M] = std::array::from_fn(|c| values[c * pitch..][..n].as_mut_ptr());
        for (k, destination) in destinations.iter().enumerate() {
            let destination = *destination as usize;
            assert!(destination < n, "destinations are a permutation");
            // SAFETY: `k` and `destination` are below `n`, and the columns have that many slots.
            unsafe {
                *keys.add(destination) = *own.add(k);
                for c in 0..M {
                    *into[c].add(destination) = *from[c].add(k);
                }
            }
        }
    }
}
