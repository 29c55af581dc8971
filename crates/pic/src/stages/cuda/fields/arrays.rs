//! Whole arrays of the fields, to the host and from it.

use zellige_engine::error::Result;

use super::{Fields, bytes};
use crate::stages::cpu::fields::fill_guards;
use crate::stages::rows::{self, ReadRow};
use crate::stages::{Component, Precision};

impl Fields {
    /// A component as it lies on the device. Waits.
    fn fetch(&mut self, component: Component) -> Result<Vec<f64>> {
        let (c, size) = (component as usize, bytes(self.precision) * self.grid.len());
        let values = if c < 6 {
            self.cuda.download(&self.advancing[0][c])?
        } else {
            self.j()?;
            self.cuda.download_range(&self.current, (c - 6) * size..(c - 5) * size)?
        };
        Ok(unpacked(&values, self.precision))
    }

    /// The way back.
    fn store(&mut self, component: Component, values: &[f64]) -> Result<()> {
        let (c, data) = (component as usize, packed(values, self.precision));
        if c < 6 {
            self.cuda.upload(&mut self.advancing[0][c], &data)
        } else {
            self.j()?;
            self.cuda.upload_at(&mut self.current, (c - 6) * data.len(), &data)
        }
    }

    /// A component over all corners of the domain with guards. Waits.
    pub(in crate::stages::cuda) fn get(&mut self, component: Component) -> Result<Vec<f64>> {
        let values = self.fetch(component)?;
        let mut values = self.part.whole(&self.grid, &values, self.grid.pitch(), true)?;
        fill_guards(&self.grid.whole(), component, &mut values);
        Ok(values)
    }

    /// Rows of nodes of a component that are this part's, and the number of the first. Waits.
    pub(in crate::stages::cuda) fn own_rows(&mut self, component: Component) -> Result<(usize, Vec<f64>)> {
        let values = self.fetch(component)?;
        Ok(rows::own(&self.part, &self.grid, &values))
    }

    /// Sets a component to rows of nodes of the domain.
    pub(in crate::stages::cuda) fn set_rows(&mut self, component: Component, read: ReadRow<'_>) -> Result<()> {
        let values = rows::held(&self.grid, component, read)?;
        self.store(component, &values)
    }

    /// Sets a component; the guards given are replaced by what the sides say.
    pub(in crate::stages::cuda) fn set(&mut self, component: Component, values: &[f64]) -> Result<()> {
        let mut values = values.to_vec();
        fill_guards(&self.grid.whole(), component, &mut values);
        let values = self.part.share(&self.grid, &values, self.grid.pitch());
        self.store(component, &values)
    }

    /// Puts deposits into a component of J, guards included, as they are.
    #[cfg(test)]
    pub(in crate::stages::cuda) fn put_current(&mut self, c: usize, values: &[f64]) -> Result<()> {
        let data = packed(values, self.precision);
        self.j()?;
        self.cuda.upload_at(&mut self.current, c * data.len(), &data)
    }

    /// The memory of the absorbing layers and the state of the charge check, named as on the CPU. Waits.
    pub(in crate::stages::cuda) fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        let layers = self.psi.iter();
        let layers = layers.map(|(memory, buffer)| {
            let own = unpacked(&self.cuda.download(buffer)?, self.precision);
            Ok((memory.name(), memory.whole(&self.part, &self.grid, self.thick(), &own)?))
        });
        Ok(layers.collect::<Result<Vec<_>>>()?.into_iter().chain(self.corner_state()?).collect())
    }

    /// Cells of the layers across y.
    fn thick(&self) -> usize {
        self.yee.thick[1] as usize
    }

    /// Takes it back; entries of other names are left alone.
    pub(in crate::stages::cuda) fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) -> Result<()> {
        for (memory, buffer) in &mut self.psi {
            if let Some((_, values)) = state.iter().find(|entry| entry.0 == memory.name()) {
                self.cuda.upload(buffer, &packed(&memory.share(&self.part, &self.grid, values), self.precision))?;
            }
        }
        self.set_corner_state(state)
    }
}

/// Values as they lie on the GPU.
pub(super) fn packed(values: &[f64], precision: Precision) -> Vec<u8> {
    match precision {
        Precision::F32 => values.iter().flat_map(|v| (*v as f32).to_ne_bytes()).collect(),
        Precision::F64 => bytemuck::cast_slice(values).to_vec(),
    }
}

/// Values of such bytes.
pub(super) fn unpacked(data: &[u8], precision: Precision) -> Vec<f64> {
    match precision {
        Precision::F32 => data.chunks_exact(4).map(|b| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]))).collect(),
        Precision::F64 => data.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect(),
    }
}
