//! Records, pictures and checks of a reconstruction.

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks, inside, map};
use zellige_engine::record::{Check, Pictures, Record};

use super::{MISSED_LIMIT, MIXED_LIMIT, Ptycho, TRUTH_LIMIT};
use crate::half_sets::{self, TruthComparison};
use crate::model::State;
use crate::output::{self, Results};
use crate::reconstruction::Reconstruction;
use crate::resolution;
use crate::stages::StateToCome;
use crate::stages::cuda::intensity::intensity;

impl Ptycho {
    /// Objects beside their truths: found once for a moment.
    pub(super) fn comparisons(&mut self) -> Result<Vec<TruthComparison>> {
        match self.comparisons.take() {
            Some(found) => Ok(found),
            None => half_sets::compare_with_truths(&mut self.whole, &self.truths),
        }
    }

    pub(super) fn all_records(&mut self) -> Result<Vec<Record>> {
        let config = self.config.output.clone();
        let first = self.whole.model.share.links().is_first();
        let mut records = self.with_results(config.frame, |results| if first { output::records(results, &config) } else { Vec::new() })?;
        if !first {
            return Ok(records);
        }
        if let Some(half_sets) = &mut self.half_sets {
            for (object, rings) in half_sets.rings()? {
                let name = format!("frc{}", output::of_object(&self.whole.model, object));
                records.push(rings.curve(&name, "Fourier ring correlation of two half-scans", true));
            }
        }
        let comparisons = self.comparisons()?;
        for beside in &comparisons {
            let model = &self.whole.model;
            let rings = resolution::rings(&beside.found, &beside.expected, beside.shape, model.pixel);
            let name = format!("frc_truth{}", output::of_object(model, beside.object));
            records.push(rings.curve(&name, "Fourier ring correlation with the truth", false));
        }
        self.comparisons = Some(comparisons);
        Ok(records)
    }

    pub(super) fn all_checks(&mut self) -> Result<Vec<Check>> {
        let mut checks =
            vec![Check::at_most("fraction of the squared counts above noise that the model misses", self.unexplained()?, MISSED_LIMIT)];
        let comparisons = self.comparisons()?;
        for beside in &comparisons {
            let of = output::of_object(&self.whole.model, beside.object);
            checks.push(Check::at_most(
                format!("relative error of the object{of} against the truth"),
                beside.relative_distance(),
                TRUTH_LIMIT,
            ));
        }
        for (scan, fidelity) in half_sets::fidelities(&mut self.whole, &self.truths, &comparisons)? {
            let name = format!("infidelity of the probe of scan `{scan}` against the true mixed state");
            checks.push(Check::at_most(name, 1.0 - fidelity, MIXED_LIMIT));
        }
        Ok(checks)
    }

    /// Number of the frame that is shown with its model: the one named, or else the brightest of all, which is looked for once.
    pub(super) fn frame_shown(&mut self, named: Option<usize>) -> Result<Option<usize>> {
        let model = &self.whole.model;
        if let Some(named) = named.filter(|j| *j < model.views.len()) {
            return Ok(Some(named));
        }
        if self.brightest.is_none() {
            let counts = |_, mag: &[f32]| mag.iter().filter(|m| **m > 0.0).map(|m| f64::from(*m).powi(2)).sum::<f64>();
            let all = model.share.gathered(map(chunks(&model.mag, model.counted()), counts))?;
            self.brightest = all.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(j, _)| j);
        }
        Ok(self.brightest)
    }

    /// Pictures of a state that is on its way, with the errors that have come.
    pub(super) fn pictures_of(&mut self, state: StateToCome) -> Result<Pictures> {
        let shown = self.frame_shown(self.config.output.frame)?;
        let Reconstruction { model, stages, .. } = &self.whole;
        let (model, (views, shifts)) = (model.clone(), stages.views());
        let (views, shifts) = (views.to_vec(), shifts.to_vec());
        let (config, folder, history, beams) = (self.config.clone(), self.folder.clone(), self.history.clone(), self.beams.clone());
        let make = move |state: State| {
            let place = |j: usize| (views[j], shifts.get(j).copied().unwrap_or_default());
            let intensity = shown.map(|j| (j, intensity(&model, &state, place(j))));
            let results = Results {
                config: &config,
                folder: &folder,
                model: &model,
                state: &state,
                history: &history,
                local: &[],
                errors: &[],
                views: (&views, &shifts),
                frame: intensity.as_ref().map(|(j, intensity)| (*j, model.moduli(*j), &intensity[..])),
                beams: &beams,
            };
            output::pictures(&results)
        };
        let mut pictures = Pictures::default();
        // Waited for on the thread that asks: no thread of the pool is kept from other work.
        pictures.push_coming(move || state().map(|state| inside(|| make(state))));
        Ok(pictures)
    }

    /// Passes the contents of the records to `work`; the model of frame `frame` (the brightest if none is named) is computed for
    /// them. Contents are whole on every part of a run.
    pub(super) fn with_results<R>(&mut self, frame: Option<usize>, work: impl FnOnce(&Results) -> R) -> Result<R> {
        self.settle()?;
        let shown = self.frame_shown(frame)?;
        let Reconstruction { model, stages, .. } = &mut self.whole;
        let own = model.own();
        let shown = match shown {
            Some(j) => {
                let moduli = model.share.gathered(if own.contains(&j) { model.moduli(j).to_vec() } else { Vec::new() })?;
                stages.intensities(&[j])?.pop().map(|intensity| (j, moduli, intensity))
            }
            None => None,
        };
        let (state, errors) = (stages.state()?, model.share.gathered(stages.errors()?)?);
        let results = Results {
            config: &self.config,
            folder: &self.folder,
            model,
            state: &state,
            history: &self.history,
            local: &self.local,
            errors: &errors,
            views: stages.views(),
            frame: shown.as_ref().map(|(j, moduli, intensity)| (*j, &moduli[..], &intensity[..])),
            beams: &self.beams,
        };
        Ok(work(&results))
    }
}
