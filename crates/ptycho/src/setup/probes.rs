//! The probe to start from, of each set of scans that share one.

use num_complex::Complex;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::parallel::{items, map};

use super::{shared, wrong};
use crate::config::{Compatibility, Config, ProbeStart};
use crate::model::Model;
use crate::scan::{Propagation, Scan};
use crate::simulate::SimulateConfig;
use crate::start;

/// Origin of a probe if its scan has none.
enum ProbeSource<'a> {
    /// Probe that the simulated optics should give.
    Nominal(&'a SimulateConfig),
    Data,
    Opening,
}

fn probe_source<'a>(config: &'a Config, scan: &Scan, number: usize) -> Result<ProbeSource<'a>> {
    let c = &config.probe;
    let near = scan.beam.propagation == Propagation::Near;
    let made = config.scan.get(number).and_then(|s| s.simulate.as_ref());
    Ok(match c.start {
        ProbeStart::Data if near => {
            let problem = Problem::new("ptycho.probe.start", "frames of a near detector do not show the pupil of the optics");
            return Err(Error::input("ptycho", problem.allowed("\"opening\" or a file").hint("left out, the whole field is lit")));
        }
        ProbeStart::Data => ProbeSource::Data,
        ProbeStart::Opening => ProbeSource::Opening,
        ProbeStart::File if !c.opening().is_empty() => ProbeSource::Opening,
        ProbeStart::File => match made.filter(|_| c.defocus.is_none()) {
            Some(made) => ProbeSource::Nominal(made),
            None if near || config.compatibility == Compatibility::Ptypy => ProbeSource::Opening,
            None => ProbeSource::Data,
        },
    })
}

/// Probes `[sets][P][ny][nx]` times the phase of the sample plane, of the first scan of each set, and where they come from. None if
/// one is made from frames and there are none yet.
pub(super) fn start(config: &Config, scans: &[Scan], model: &Model) -> Result<(Vec<Complex<f64>>, Vec<String>)> {
    let (probe_of, probes) = shared(config.scan.iter().map(|s| s.probe.clone()));
    let (beam, frame, filter) = (&scans[0].beam.parted(model.bin), model.frame, &model.filter);
    let (mut all, mut begins, mut waiting) = (Vec::new(), Vec::new(), false);
    for set in 0..probes {
        let Some(number) = probe_of.iter().position(|p| *p == set).filter(|i| *i < scans.len()) else { continue };
        let scan = &scans[number];
        let c = &config.probe;
        let from_file = |image| start::probe_from(image, frame, c.modes, c.mode_power, c.photons);
        let photons = c.photons.unwrap_or(model.power.max);
        let (waves, from) = match scan.probe.as_ref().filter(|_| c.start == ProbeStart::File) {
            Some(image) if image.shape[1..] == frame && image.shape[0] > 0 => (from_file(image), "of its file".to_owned()),
            // Of a run without the finer detector: the same pixels, in the middle of a wider plane.
            Some(image) if image.shape[1..] == scan.shape && image.shape[0] > 0 && beam.propagation == Propagation::Far => {
                (from_file(&start::widened(image, frame)), "of its file".to_owned())
            }
            Some(image) => {
                let message = format!("the probe to start from has {:?} pixels, waves have {:?}", &image.shape[1..], frame);
                let of_arrays = config.scan.get(number).is_some_and(|entry| entry.arrays.is_some());
                let hint =
                    if of_arrays { "give a `probe` of these pixels, or none" } else { "`start = \"data\"` under [ptycho.probe] makes one" };
                return Err(wrong(&scan.name, format!("{message}: {hint}")));
            }
            None => match probe_source(config, scan, number)? {
                ProbeSource::Nominal(made) => {
                    (start::probe_of(made.nominal(beam, frame), c, frame, photons), "as the simulated optics should give it".into())
                }
                ProbeSource::Opening => (start::probe(c, beam, frame, c.modes, photons), "of an opening".into()),
                ProbeSource::Data if model.mag.is_empty() => {
                    waiting = true;
                    (Vec::new(), start::mean::TOLD.into())
                }
                ProbeSource::Data => {
                    let (wave, told) = start::mean::wave(model, beam, set as u32, c.defocus)?;
                    (start::probe_of(wave, c, frame, photons), format!("{}, {told}", start::mean::TOLD))
                }
            },
        };
        all.extend(map(items(&waves), |i, v| v * filter[i % filter.len()]));
        begins.push(from);
    }
    if waiting {
        all.clear();
    }
    Ok((all, begins))
}
