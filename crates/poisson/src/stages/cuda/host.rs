//! Copies from and to the host, of what this part holds.

use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::parallel::position;

use super::{CudaStages, StoredResidual};

/// Values moved to or from the host in one piece.
const PIECE: usize = 1 << 22;

impl CudaStages {
    /// Dense host values into the right-hand side, or a copy of the solution.
    pub(super) fn upload(&mut self, values: &[f64], solution: Option<usize>) -> Result<()> {
        let l = &mut self.data.levels[0];
        if solution.is_some() {
            l.u_reach = l.share.reach(l.share.depth);
        }
        let l = &self.data.levels[0];
        let (nx, rows) = (l.argument.x.n as usize, l.held_rows());
        let rows_at_once = (PIECE / nx).clamp(1, 65535);
        let mut staging = self.data.cuda.alloc_zeros::<f64>(nx * rows_at_once.min(rows.len()), "poisson: copies from the host")?;
        let values = &values[rows.start * nx..rows.end * nx];
        // Untouched values need be neither read nor sent: the staging buffer holds zeros.
        let blank = solution.is_some() && position(values, |v| *v != 0.0).is_none();
        for (piece, part) in values.chunks(nx * rows_at_once).enumerate() {
            if !blank {
                self.data.cuda.upload(&mut staging, part)?;
            }
            let grid = (nx.div_ceil(256) as u32, (part.len() / nx) as u32);
            let field = solution.map_or_else(|| l.f(), |copy| l.u[copy].address());
            let launch = self.data.kernels.pack.launch(grid, 256).arg(l.argument).arg(&staging).arg(field);
            // SAFETY: the arguments of `pack` in order; the rows lie in the staging buffer and in the field.
            unsafe { launch.arg((rows.start + piece * rows_at_once) as i32).arg(i32::from(solution.is_none())).run() }?;
        }
        Ok(())
    }

    /// An array over all nodes with a copy of the solution on the own slabs.
    pub(super) fn dense(&self, copy: usize) -> Result<Vec<f64>> {
        let l = &self.data.levels[0];
        let [nx, ny, nz] = l.argument.axes().map(|a| a.n as usize);
        let rows = l.own_rows();
        let rows_at_once = (PIECE / nx).clamp(1, 65535).min(rows.len());
        let mut out = zeros(nx * ny * nz);
        let staging = self.data.cuda.alloc_zeros::<f64>(nx * rows_at_once, "poisson: copies to the host")?;
        for (piece, part) in out[rows.start * nx..rows.end * nx].chunks_mut(nx * rows_at_once).enumerate() {
            let grid = (nx.div_ceil(256) as u32, (part.len() / nx) as u32);
            let launch = self.data.kernels.unpack.launch(grid, 256).arg(l.argument).arg(l.u[copy].address()).arg(&staging);
            // SAFETY: the arguments of `unpack` in order; the rows lie in the staging buffer and in the field.
            unsafe { launch.arg((rows.start + piece * rows_at_once) as i32).run() }?;
            self.data.cuda.download_to(&staging, 0, part)?;
        }
        Ok(out)
    }

    /// The residual of the finest level as it is held, that of the own slabs.
    pub(super) fn residual_as_stored(&self) -> Result<Option<StoredResidual>> {
        let l = &self.data.levels[0];
        if l.smoothed || l.stale {
            return Ok(None);
        }
        let (slab, own, held) = (l.slab(self.data.inner), l.share.own(), l.share.held());
        let mut residual = zeros(l.slabs() * slab);
        let here = &mut residual[own.start * slab..own.end * slab];
        self.data.cuda.download_to(&l.r[l.r_at].buffer, (own.start - held.start) * slab, here)?;
        Ok(Some(StoredResidual { residual, scale: self.data.scale }))
    }

    /// Takes back what [`CudaStages::residual_as_stored`] gave.
    pub(super) fn take_residual(&mut self, held: &StoredResidual) -> Result<bool> {
        let l = &mut self.data.levels[0];
        let (at, slab, slabs) = (l.r_at, l.slab(self.data.inner), l.share.held());
        if l.slabs() * slab != held.residual.len() {
            return Ok(false);
        }
        self.data.cuda.upload(&mut l.r[at].buffer, &held.residual[slabs.start * slab..slabs.end * slab])?;
        (l.smoothed, l.stale, self.data.pending) = (false, false, false);
        l.r_reach = l.share.reach(l.share.depth);
        self.set_scale(held.scale);
        Ok(true)
    }
}
