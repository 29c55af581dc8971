//! The trait of stages where frames come and go.

use std::ops::Range;

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::record::ValuesOnGpu;

use super::StreamedStages;
use super::picked::Pass;
use crate::model::{State, View};
use crate::stages::cuda::CudaStages;
use crate::stages::cuda::number::Number;
use crate::stages::{Held, LeastSquares, Likelihood, Overlap, Projection, Slot, Stages, StateToCome, Sweep};

impl<T: Number> Stages for StreamedStages<T> {
    fn exits_from_product(&mut self) -> Result<()> {
        self.begin_waves()
    }

    fn project(&mut self, rule: &Projection) -> Result<()> {
        self.flush()?;
        self.ready(true)?;
        self.inner.likelihoods = None;
        // Made with the first sums of the overlap loop, in the same sweep.
        self.pending = Some(*rule);
        Ok(())
    }

    fn set_bounds(&mut self, bounds: &[f64]) -> Result<()> {
        self.flush()?;
        self.counted.iter_mut().zip(bounds).for_each(|([_, noise], bound)| *noise = T::from_wide(*bound));
        self.inner.cuda.upload(&mut self.weights, &self.counted)
    }

    fn overlap(&mut self, rule: &Overlap) -> Result<u32> {
        self.overlap_loop(rule)
    }

    fn sweep(&mut self, rule: &Sweep, order: &[u32]) -> Result<()> {
        self.flush()?;
        self.pick_views(&Pass::Sweep(rule), order)
    }

    fn least_squares(&mut self, rule: &LeastSquares, order: &[u32]) -> Result<()> {
        self.flush()?;
        // The clip comes once, behind the last batch.
        self.pick_views(&Pass::LeastSquares(&LeastSquares { clip: None, ..*rule }), order)?;
        rule.clip.map_or(Ok(()), |range| self.inner.clip(range))
    }

    fn gradient(&mut self, rule: &Likelihood) -> Result<f64> {
        self.flush()?;
        let values = self.likelihood_gradient(rule)?;
        let pixels = self.inner.model.counted() as f64;
        let value = values.iter().sum::<f64>();
        self.inner.likelihoods = Some(values.iter().map(|v| v / pixels).collect());
        Ok(value + self.inner.smoothness(rule, false)?[0])
    }

    fn line(&mut self, rule: &Likelihood) -> Result<[f64; 2]> {
        let both = self.likelihood_line(rule)?;
        let more = self.inner.smoothness(rule, true)?;
        Ok([both[0] + more[0], both[1] + more[1]])
    }

    fn dot(&mut self, a: Slot, b: Slot) -> Result<[f64; 2]> {
        self.flush()?;
        self.inner.dot(a, b)
    }

    fn combine(&mut self, to: Slot, s: [f64; 2], from: Slot, f: [f64; 2]) -> Result<()> {
        self.flush()?;
        self.inner.combine(to, s, from, f)
    }

    fn wavefield(&mut self, slot: Slot, damping: [f64; 2]) -> Result<()> {
        self.flush()?;
        self.inner.wavefield(slot, damping)
    }

    fn smooth_object(&mut self, slot: Slot, sigma: f64) -> Result<()> {
        self.flush()?;
        self.inner.smooth_object(slot, sigma)
    }

    fn clip(&mut self, range: [f64; 2]) -> Result<()> {
        self.flush()?;
        self.inner.clip(range)
    }

    fn roll(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()> {
        self.flush()?;
        self.roll_all(probes, objects)
    }

    fn support(&mut self, slot: Slot) -> Result<()> {
        self.flush()?;
        self.inner.support(slot)
    }

    fn set_support(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()> {
        self.flush()?;
        self.inner.set_support(real, fourier)
    }

    fn trial(&mut self, moved: &[[i32; 2]]) -> Result<Vec<f64>> {
        self.flush()?;
        let views: Vec<View> =
            self.inner.scan.views.iter().zip(moved).map(|(v, by)| View { row: v.row + by[0], col: v.col + by[1], ..*v }).collect();
        assert!(views.len() == self.inner.scan.views.len() && views.iter().all(|v| self.inner.inside(v)), "a trial outside of the objects");
        self.each_block_at(Some(&views), |inner, argument, views| match inner {
            CudaStages { seeker: Some(seeker), frames, .. } => seeker.trial(argument, frames, views),
            CudaStages { operations: Some(operations), frames, .. } => operations.trial(argument, frames, views),
            _ => Ok(Vec::new()),
        })
    }

    fn slope(&mut self) -> Result<Vec<[f64; 5]>> {
        self.flush()?;
        self.each_block_at(None, |inner, argument, _| match inner {
            CudaStages { seeker: Some(seeker), frames, .. } => seeker.slope(argument, frames),
            CudaStages { operations: Some(operations), frames, subpixel, state, .. } => {
                operations.slope(argument, frames, subpixel.as_mut().map(|subpixel| (subpixel, &state.probe)))
            }
            _ => Ok(Vec::new()),
        })
    }

    fn views(&self) -> (&[View], &[[f64; 2]]) {
        self.inner.views()
    }

    fn set_views(&mut self, views: &[View], shifts: &[[f64; 2]]) -> Result<()> {
        self.flush()?;
        self.shift_waves(shifts)?;
        self.inner.set_views(views, shifts)?;
        self.list()
    }

    fn errors(&mut self) -> Result<Vec<[f64; 3]>> {
        self.flush()?;
        if self.inner.likelihoods.is_some() {
            return self.inner.errors();
        }
        let errors = self.inner.cuda.download(&self.errors)?;
        Ok(errors.chunks_exact(3).map(|e| [e[0], e[1], e[2]].map(T::wide)).collect())
    }

    fn state(&mut self) -> Result<State> {
        self.flush()?;
        self.inner.state()
    }

    fn begin_state(&mut self) -> Result<Option<StateToCome>> {
        self.flush()?;
        self.inner.begin_state()
    }

    fn wave_on_gpu(
        &mut self,
        of: Held,
        range: Range<usize>,
        factors: &[Complex<f64>],
        copier: &FieldCopier,
    ) -> Result<Option<ValuesOnGpu>> {
        self.flush()?;
        self.inner.wave_on_gpu(of, range, factors, copier)
    }

    fn set_wave_on_gpu(
        &mut self,
        of: Held,
        range: Range<usize>,
        factors: &[Complex<f64>],
        values: &ValuesOnGpu,
        copier: &FieldCopier,
    ) -> Result<bool> {
        self.flush()?;
        self.inner.set_wave_on_gpu(of, range, factors, values, copier)
    }

    fn copy_state(&mut self, bits: &mut [u64]) -> Result<()> {
        self.flush()?;
        self.inner.copy_state(bits)
    }

    fn set_state(&mut self, state: &State) -> Result<()> {
        self.flush()?;
        self.inner.set_state(state)
    }

    fn exit_waves(&mut self) -> Result<Vec<Complex<f64>>> {
        self.flush()?;
        self.all_exit_waves()
    }

    fn set_exit_waves(&mut self, waves: &[Complex<f64>]) -> Result<()> {
        self.flush()?;
        self.put_exit_waves(waves)
    }

    fn probe(&mut self) -> Result<Vec<Complex<f64>>> {
        self.flush()?;
        self.inner.probe()
    }

    fn intensities(&mut self, views: &[usize]) -> Result<Vec<Vec<f64>>> {
        self.flush()?;
        self.inner.intensities(views)
    }

    fn probe_products(&mut self) -> Result<Vec<Complex<f64>>> {
        self.flush()?;
        self.inner.probe_products()
    }

    fn mix_probe(&mut self, basis: &[Complex<f64>]) -> Result<()> {
        self.flush()?;
        self.inner.mix_probe(basis)
    }

    fn save(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        self.flush()?;
        self.save_all(prefix, writer)
    }

    fn restore(&mut self, prefix: &str, reader: &Reader) -> Result<()> {
        self.restore_all(prefix, reader)?;
        self.list()
    }

    fn memory(&self) -> u64 {
        self.inner.memory()
    }

    fn memory_peak(&self) -> u64 {
        self.inner.memory_peak()
    }
}
