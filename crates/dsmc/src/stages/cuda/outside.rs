//! Particles of a species as copies in the memory of the GPU, and velocities from there: `outside.cu`.

use zellige_engine::cuda::Buffer;
use zellige_engine::error::Result;
use zellige_engine::record::ValuesOnGpu;

use super::Gas;
use super::outside_arguments::{Given, Outside};
use super::program::Copiers;
use crate::stages::ColumnsOnGpu;

impl Gas {
    /// Kernels that copy for a caller.
    pub(super) fn copiers(&mut self) -> Result<&Copiers> {
        Ok(match &mut self.copiers {
            Some(copiers) => copiers,
            none => none.insert(Copiers::new(&self.cuda, &self.store.config)?),
        })
    }

    /// Particles of a species, and on the device the number of the first one of each tile. All are in order. Waits.
    fn counted(&mut self, species: usize) -> Result<(usize, Buffer<u64>)> {
        let tiles = self.store.tiling.len();
        let counts = self.cuda.alloc_zeros::<u32>(tiles, "numbers of particles")?;
        let launch = self.copiers()?.count.clone();
        let launch = launch.launch(tiles as u32, 256).arg(self.store.argument()).arg(species as u32);
        // SAFETY: the arguments as declared; a count a tile.
        unsafe { launch.arg(&counts).run()? };
        let (mut n, mut firsts) = (0_u64, Vec::with_capacity(tiles));
        for count in self.cuda.download(&counts)? {
            firsts.push(n);
            n += u64::from(count);
        }
        Ok((n as usize, self.cuda.buffer_from(&firsts, "numbers of particles")?))
    }

    /// Columns of the particles of a species, which are put in order first.
    pub(super) fn copied_columns(&mut self, species: usize, wanted: [bool; 5]) -> Result<ColumnsOnGpu> {
        self.complete_exchange()?;
        let (len, firsts) = self.counted(species)?;
        let column = |wanted: bool| wanted.then(|| self.cuda.alloc_zeros::<f64>(len, "a copy of particles")).transpose();
        let [x, y, vx, vy, vz] = wanted.map(column);
        let columns = [x?, y?, vx?, vy?, vz?];
        let [x, y, vx, vy, vz] = columns.each_ref().map(|column| column.as_ref().map_or(0, Buffer::address));
        let (origin, h) = (self.model.grid.origin, self.model.grid.h);
        let (position, velocity) = ([x, y], [vx, vy, vz]);
        let outside = Outside { firsts: firsts.address(), position, velocity, origin, h, species: species as u32 };
        if len > 0 && wanted.contains(&true) {
            let tiles = self.store.tiling.len() as u32;
            let launch = self.copiers()?.read.clone();
            // SAFETY: the arguments as declared; columns have a value for each particle of the species, of which so many are in each tile.
            unsafe { launch.launch(tiles, 256).arg(self.store.argument()).arg(outside).run()? };
        }
        Ok(ColumnsOnGpu { len, columns })
    }

    /// Sets velocities of particles that are in order; gives the largest speed of all if one is faster than it was. Waits.
    pub(super) fn take_velocities(&mut self, species: usize, velocity: [Option<&ValuesOnGpu>; 3]) -> Result<Option<f64>> {
        let (_, firsts) = self.counted(species)?;
        let address =
            |double: bool| velocity.map(|v| v.filter(|v| matches!(v, ValuesOnGpu::F64(_)) == double).map_or(0, ValuesOnGpu::address));
        let given = Given { firsts: firsts.address(), single: address(false), wide: address(true), species: species as u32 };
        let (tiles, copiers) = (self.store.tiling.len(), self.copiers()?.clone());
        let faster = self.cuda.alloc_zeros::<u32>(1, "a number")?;
        let launch = copiers.put.launch(tiles as u32, 256).arg(self.store.argument()).arg(given);
        // SAFETY: the arguments as declared; there is a value for each particle.
        unsafe { launch.arg(&faster).run()? };
        if self.cuda.download(&faster)? == [0] {
            return Ok(None);
        }
        let largest = self.cuda.alloc_zeros::<f64>(tiles, "speeds")?;
        // SAFETY: the arguments as declared; a number a tile.
        unsafe { copiers.fastest.launch(tiles as u32, 256).arg(self.store.argument()).arg(&largest).run()? };
        Ok(Some(self.cuda.download(&largest)?.into_iter().fold(0.0, f64::max)))
    }
}

#[cfg(test)]
mod tests;
