//! A Fourier mode of a component over time, and the growth rate or the frequency of a stretch of it.

use std::f64::consts::TAU;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::{Check, Curve, Record};
use zellige_engine::sim;

use super::fit::{self, Fit};
use crate::config::diagnostics::{Expected, Measure, ModeConfig, TOLERANCE};
use crate::config::{Config, Units};
use crate::grid::Grid;
use crate::output::digits;
use crate::plasma::Plasma;
use crate::setup::{absolute, input};

/// A mode under observation.
#[derive(Debug, Clone)]
pub struct Mode {
    /// As in the input.
    pub config: ModeConfig,
    /// The figure that theory gives.
    pub expected: Option<f64>,
    units: Units,
    time: Vec<f64>,
    amplitude: [Vec<f64>; 2],
    /// Number of samples that a row has last fitted, and the figure.
    so_far: (usize, f64),
}

/// Columns of rows for growth rates and frequencies, one after the other.
const COLUMNS: [[&str; 4]; 2] =
    [["growth_rate", "growth_rate_2", "growth_rate_3", "growth_rate_4"], ["frequency", "frequency_2", "frequency_3", "frequency_4"]];

/// Columns of the modes whose theory is known; `None` for others, and where there are more than columns.
pub fn columns<'a>(modes: impl Iterator<Item = &'a ModeConfig>) -> Vec<Option<&'static str>> {
    let mut taken = [0; 2];
    let column = |mode: &ModeConfig| {
        mode.expected.as_ref()?;
        let kind = usize::from(mode.measure != Measure::Growth);
        taken[kind] += 1;
        COLUMNS[kind].get(taken[kind] - 1).copied()
    };
    modes.map(column).collect()
}

/// Figures that theory gives, by their columns in rows.
pub fn expected(config: &Config) -> Result<Vec<sim::Expected>> {
    let modes = &config.diagnostics.mode;
    let mut all = Vec::new();
    for (i, (mode, column)) in modes.iter().zip(columns(modes.iter())).enumerate() {
        if let (Some(column), Some(value)) = (column, Mode::new(config, i, mode)?.expected) {
            all.push(sim::Expected::new(column, value, "theory"));
        }
    }
    Ok(all)
}

/// Samples that rows fit of `n`: all of the first 64, then 32 numbers in every doubling, so that a run of any length spends little
/// on fits, and a resumed one fits the same.
fn fitted(n: usize) -> usize {
    let bits = (usize::BITS - n.leading_zeros()).saturating_sub(6);
    n >> bits << bits
}

impl Mode {
    /// Nothing seen yet.
    pub fn new(config: &Config, i: usize, mode: &ModeConfig) -> Result<Self> {
        let path = format!("diagnostics.mode[{i}].expected");
        let expected = match &mode.expected {
            None => None,
            Some(Expected::Number(x)) => Some(*x),
            Some(Expected::Expression(text)) => {
                Some(config.expression(&path, text, &[]).map_err(|p| input(&absolute(&path), p))?.eval(&[]))
            }
        };
        Ok(Self {
            config: mode.clone(),
            expected,
            units: config.scales(),
            time: Vec::new(),
            amplitude: Default::default(),
            so_far: (0, 0.0),
        })
    }

    /// Takes the mode as it stands; its figures may come with a later sample, or with [`Mode::settle`]. `list`: where it may be put
    /// aside.
    pub fn sample(&mut self, plasma: &mut Plasma, list: usize) -> Result<()> {
        self.time.push(plasma.time() * self.units.time);
        super::sampled(plasma, self.config.component, list, |grid, values| self.take(grid, values))
    }

    /// Takes the figures of all samples.
    pub fn settle(&mut self, plasma: &mut Plasma, list: usize) -> Result<()> {
        super::settled(plasma, list, |grid, values| self.take(grid, values))
    }

    fn take(&mut self, grid: &Grid, values: &[f64]) {
        let [nx, ny] = grid.cells;
        let table = |n: usize, m: i64| -> Vec<(f64, f64)> {
            (0..n).map(|i| (-TAU * ((i as i64 * m).rem_euclid(n as i64)) as f64 / n as f64).sin_cos()).collect()
        };
        let (along, across) = (table(nx, self.config.mode[0]), table(ny, self.config.mode.get(1).copied().unwrap_or(0)));
        let mut sum = [0.0; 2];
        for (j, (sj, cj)) in across.iter().enumerate() {
            let row = &values[grid.row(j as isize)];
            let (mut re, mut im) = (0.0, 0.0);
            for (v, (s, c)) in row.iter().zip(&along) {
                re += v * c;
                im += v * s;
            }
            sum[0] += re * cj - im * sj;
            sum[1] += re * sj + im * cj;
        }
        let scale = self.units.of(self.config.component) * 2.0 / (nx * ny) as f64;
        self.amplitude[0].push(sum[0] * scale);
        self.amplitude[1].push(sum[1] * scale);
    }

    /// The figure by the samples so far, but for the last ones; 0 before there are enough. `list`: as for [`Mode::sample`].
    pub fn figure_so_far(&mut self, plasma: &mut Plasma, list: usize) -> Result<f64> {
        let n = fitted(self.time.len());
        if n != self.so_far.0 {
            self.settle(plasma, list)?;
            self.so_far = (n, self.fit_of(n).map_or(0.0, |fit| fit.figure).clamp(-1e300, 1e300));
        }
        Ok(self.so_far.1)
    }

    /// Times, real and imaginary parts of the first `n` samples: of the stretch that the input asks for, or all.
    fn stretch(&self, n: usize) -> Vec<(f64, f64, f64)> {
        let [from, to] = self.config.fit.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        let all = self.time.iter().zip(&self.amplitude[0]).zip(&self.amplitude[1]).take(n);
        all.map(|((t, re), im)| (*t, *re, *im)).filter(|(t, ..)| (from..=to).contains(t)).collect()
    }

    /// Rate or frequency, if the stretch has enough to tell.
    pub fn fit(&self) -> Option<Fit> {
        self.fit_of(self.time.len())
    }

    /// [`Mode::fit`] of the first `n` samples.
    fn fit_of(&self, n: usize) -> Option<Fit> {
        let points = self.stretch(n);
        match self.config.measure {
            Measure::Growth => {
                let sizes: Vec<_> = points.iter().map(|(t, re, im)| (*t, re.hypot(*im))).collect();
                fit::growth(&sizes, self.config.fit.is_none())
            }
            Measure::Frequency => fit::frequency(&points),
        }
    }

    /// The figure alone.
    pub fn figure(&self) -> Option<f64> {
        self.fit().map(|fit| fit.figure)
    }

    /// Name of the measured quantity.
    pub fn what(&self) -> &'static str {
        if self.config.measure == Measure::Growth { "growth rate" } else { "frequency" }
    }

    /// A sentence about the figure.
    pub fn message(&self) -> String {
        let (name, what) = (&self.config.name, self.what());
        let Some(fit) = self.fit() else { return format!("{what} of {name}: nothing to fit") };
        let [from, to] = fit.stretch.map(|t| digits(t, 4));
        let theory = match self.expected {
            Some(theory) => format!(", theory {} ({:+.2} %)", digits(theory, 5), 100.0 * (fit.figure / theory - 1.0)),
            None => String::new(),
        };
        let poor =
            if fit.is_poor() { "; the fit is poor: no one exponential or frequency there, look at its picture and give `fit`" } else { "" };
        format!("{what} of {name} {} +- {}{theory}, fitted from t = {from} to {to}{poor}", digits(fit.figure, 5), digits(fit.error, 2))
    }

    /// The figure against theory.
    pub fn check(&self) -> Option<Check> {
        let theory = self.expected?;
        let found = self.figure().unwrap_or(f64::NAN);
        let name =
            format!("{} of {}: {}, theory {}, relative difference", self.what(), self.config.name, digits(found, 5), digits(theory, 5));
        Some(Check::at_most(name, (found / theory - 1.0).abs(), self.config.tolerance.unwrap_or(TOLERANCE)))
    }

    /// The amplitude over time, with the line that was fitted to its growth, and that of theory where it is known.
    pub fn record(&self) -> Record {
        let size: Vec<f64> = self.amplitude[0].iter().zip(&self.amplitude[1]).map(|(re, im)| re.hypot(*im)).collect();
        let growing = self.config.measure == Measure::Growth;
        let mut lines =
            if growing { vec![("amplitude".to_owned(), size.clone())] } else { vec![("real part".to_owned(), self.amplitude[0].clone())] };
        let fit = self.fit();
        let title = match fit {
            Some(fit) => format!("{}: {} {} +- {}", self.config.name, self.what(), digits(fit.figure, 4), digits(fit.error, 2)),
            None => self.config.name.clone(),
        };
        if let (Some(Fit { figure: rate, stretch: [from, to], .. }), true) = (fit, growing) {
            // Through the middle of the stretch.
            let inside: Vec<usize> = (0..size.len()).filter(|k| (from..=to).contains(&self.time[*k])).collect();
            let n = inside.len().max(1) as f64;
            let (t, a) = inside.iter().fold((0.0, 0.0), |(t, a), k| (t + self.time[*k] / n, a + size[*k].ln() / n));
            let line = |rate: f64| {
                let at = |time: &f64| if (from..=to).contains(time) { (a + rate * (time - t)).exp() } else { f64::NAN };
                self.time.iter().map(at).collect::<Vec<_>>()
            };
            lines.push((format!("exp({} t)", digits(rate, 4)), line(rate)));
            lines.extend(self.expected.map(|rate| (format!("theory exp({} t)", digits(rate, 4)), line(rate))));
        } else {
            lines.push(("imaginary part".to_owned(), self.amplitude[1].clone()));
        }
        let kind = self.config.component as usize / 3;
        let unit = self.units.label(["V/m", "T", "A/m^2"][kind], ["m_e c w_n/e", "m_e c w_n/e", "e n_0 c"][kind]);
        let mode: Vec<String> = self.config.mode.iter().map(ToString::to_string).collect();
        Record::Curve(Curve {
            name: self.config.name.clone(),
            title,
            x_label: format!("time [{}]", self.units.label("s", "1/w_n")),
            y_label: format!("{} of mode ({}) [{unit}]", super::symbol(self.config.component.name()), mode.join(", ")),
            x: self.time.clone(),
            lines,
            log_y: growing,
        })
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer, k: usize) -> Result<()> {
        writer.f64s(&format!("mode{k}.time"), &self.time)?;
        writer.f64s(&format!("mode{k}.re"), &self.amplitude[0])?;
        writer.f64s(&format!("mode{k}.im"), &self.amplitude[1])
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader, k: usize) -> Result<()> {
        self.time = reader.f64s(&format!("mode{k}.time"))?;
        self.amplitude = [reader.f64s(&format!("mode{k}.re"))?, reader.f64s(&format!("mode{k}.im"))?];
        self.so_far = (0, 0.0);
        if self.amplitude.iter().any(|a| a.len() != self.time.len()) {
            return Err(reader.content_error(format!("the columns of mode {k} differ in length")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_few_numbers_of_samples_of_a_long_run_and_all_of_a_short_one() {
        assert!((0..64).all(|n| fitted(n) == n));
        let mut of_a_doubling: Vec<usize> = (1 << 16..1 << 17).map(fitted).collect();
        of_a_doubling.dedup();
        assert_eq!((of_a_doubling.len(), of_a_doubling[0], of_a_doubling[1]), (32, 1 << 16, (1 << 16) + (1 << 11)));
    }

    #[test]
    fn columns_are_those_of_modes_with_a_theory() {
        let mode = |measure: &str, expected: Option<f64>| -> ModeConfig {
            let config = serde_json::json!({ "name": "m", "component": "ex", "mode": [1], "measure": measure, "expected": expected });
            serde_json::from_value(config).unwrap()
        };
        let modes = [mode("growth", Some(0.1)), mode("growth", None), mode("frequency", Some(1.0)), mode("growth", Some(0.2))];
        assert_eq!(columns(modes.iter()), [Some("growth_rate"), None, Some("frequency"), Some("growth_rate_2")]);
    }

    /// Growth stands beside the line of theory, through the middle of the stretch as the fit.
    #[test]
    fn theory_is_drawn_beside_the_fit() {
        let config = serde_json::json!({ "name": "m", "component": "ex", "mode": [1], "fit": [10.0, 30.0] });
        let time: Vec<f64> = (0..50).map(f64::from).collect();
        let amplitude = [time.iter().map(|t| (0.2 * t).exp()).collect(), vec![0.0; time.len()]];
        let expected = Some(0.25);
        let mode =
            Mode { config: serde_json::from_value(config).unwrap(), expected, units: Units::NORMALISED, time, amplitude, so_far: (0, 0.0) };
        let Record::Curve(curve) = mode.record() else { panic!("no curve") };
        let names: Vec<&str> = curve.lines.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["amplitude", "exp(0.2000 t)", "theory exp(0.2500 t)"]);
        let theory = &curve.lines[2].1;
        assert!((theory[20] / 4f64.exp() - 1.0).abs() < 1e-12 && (theory[30] / theory[10] / 5f64.exp() - 1.0).abs() < 1e-12);
        assert!(theory[9].is_nan() && theory[31].is_nan());
    }

    /// Fits the part of the run that is exponential where the input gives no stretch, and the given one where it does.
    #[test]
    fn the_stretch_is_searched_for_unless_it_is_given() {
        let fitted = |fit: Option<[f64; 2]>| {
            let config = serde_json::json!({ "name": "m", "component": "ex", "mode": [1], "fit": fit });
            let time: Vec<f64> = (0..1000).map(|k| 0.1 * f64::from(k)).collect();
            // Nothing happens before 20 and from 60 on.
            let size = time.iter().map(|t| 1e-6 * (0.2 * (t.clamp(20.0, 60.0) - 20.0)).exp()).collect();
            let amplitude = [size, vec![0.0; time.len()]];
            let mode = Mode {
                config: serde_json::from_value(config).unwrap(),
                expected: None,
                units: Units::NORMALISED,
                time,
                amplitude,
                so_far: (0, 0.0),
            };
            mode.fit().unwrap()
        };
        let found = fitted(None);
        // Ends of stretches are tried at 64ths of the run: 1.6, of which a part may be flat.
        assert!((found.figure - 0.2).abs() < 0.004, "{found:?}");
        assert!((found.stretch[0] - 20.0).abs() < 1.6 && (found.stretch[1] - 60.0).abs() < 1.6, "{found:?}");
        let given = fitted(Some([10.0, 90.0]));
        assert!(given.stretch[0] < 10.1 && given.stretch[1] > 89.9 && given.figure < 0.18, "{given:?}");
    }
}
