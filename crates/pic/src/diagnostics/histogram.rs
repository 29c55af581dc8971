//! Histograms of particles over one or two axes, each an expression: phase spaces, spectra of energy, profiles.

use zellige_engine::error::Result;
use zellige_engine::expr::{Column, Expr};
use zellige_engine::record::{Axis, Centring, Field, Palette, Record, Values};

use crate::config::Config;
use crate::config::diagnostics::{BinConfig, PARTICLE, PhaseSpaceConfig};
use crate::particles::Particles;
use crate::plasma::Plasma;
use crate::setup::{absolute, input};

/// Particles as columns of the variables of [`PARTICLE`], in the input's units; momenta are those of half a step before the
/// places.
pub struct Cloud {
    columns: [Vec<f64>; 7],
}

impl Cloud {
    /// Of a species of the box.
    pub fn new(plasma: &Plasma, particles: &Particles) -> Self {
        let n = particles.len();
        let (mut x, mut y) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for k in 0..n {
            let column = plasma.moved as f64 + f64::from(particles.i[k]) + 0.5 + particles.s[k];
            let place = plasma.model.place(column, f64::from(particles.j[k]) + 0.5 + particles.t[k]);
            x.push(place[0]);
            y.push(place[1]);
        }
        let [ux, uy, uz] = particles.u.clone();
        let gamma = (0..n).map(|k| (1.0 + ux[k] * ux[k] + uy[k] * uy[k] + uz[k] * uz[k]).sqrt()).collect();
        let weight = if particles.weight.is_empty() { vec![1.0; n] } else { particles.weight.clone() };
        Self { columns: [x, y, ux, uy, uz, gamma, weight] }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A column.
    pub fn column(&self, k: usize) -> &[f64] {
        &self.columns[k]
    }

    /// An expression at every particle.
    pub fn values(&self, expression: &Expr) -> Vec<f64> {
        let mut out = vec![0.0; self.len()];
        let columns: Vec<Column<'_>> = self.columns.iter().map(|c| Column::Values(c)).collect();
        expression.eval_many(&columns, &mut out);
        out
    }
}

/// A compiled expression of particles; the text has been checked.
pub fn compiled(config: &Config, path: &str, text: &str) -> Result<Expr> {
    config.expression(path, text, &PARTICLE).map_err(|p| input(&absolute(path), p))
}

/// Which particles an expression selects; all of them without one.
pub fn selected(config: &Config, select: Option<&String>, cloud: &Cloud) -> Result<Option<Vec<bool>>> {
    let Some(text) = select else { return Ok(None) };
    let chosen = cloud.values(&compiled(config, "diagnostics", text)?);
    Ok(Some(chosen.into_iter().map(|v| v != 0.0 && !v.is_nan()).collect()))
}

/// Letters and digits of a text.
fn safe(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The file-safe name of a histogram.
pub fn name(p: &PhaseSpaceConfig) -> String {
    p.name.clone().unwrap_or_else(|| {
        let axes: Vec<String> = p.axes.iter().map(|a| safe(&a.value)).collect();
        format!("{}_{}", p.species, axes.join("_"))
    })
}

/// How an expression of particles is written on an axis, and its unit.
fn shown(plasma: &Plasma, value: &str) -> (String, &'static str) {
    match value {
        "x" | "y" => (value.into(), plasma.model.units.label("m", "c/w_n")),
        "ux" | "uy" | "uz" => (format!("u_{}", &value[1..]), "c"),
        _ => (value.into(), ""),
    }
}

/// The histogram as it stands: density of weight over the axes, so that its integral is the number of particles: in `n_0 (c/w_n)^d`, or
/// real ones per unit of the lengths that the box does not have, where the units are SI.
pub fn record(config: &Config, plasma: &mut Plasma, p: &PhaseSpaceConfig) -> Result<Record> {
    let s = plasma.setup.species.iter().position(|s| s.name == p.species).unwrap_or(0);
    let particles = plasma.stages.particles(s)?;
    let plasma = &*plasma;
    let species = &plasma.setup.species[s];
    let cloud = Cloud::new(plasma, &particles);
    let chosen = selected(config, p.select.as_ref(), &cloud)?;
    let units = plasma.model.units;
    let real = species.weight * plasma.setup.grid.cell_volume() * units.density * units.length.powi(config.dimensions() as i32);
    let mut weights: Vec<f64> = cloud.column(6).iter().map(|w| w * real).collect();
    if let Some(text) = &p.weight {
        let factor = cloud.values(&compiled(config, "diagnostics.phase_space.weight", text)?);
        weights.iter_mut().zip(factor).for_each(|(w, f)| *w *= f);
    }
    let mut axes = Vec::new();
    let mut values = Vec::new();
    for axis in &p.axes {
        let v = cloud.values(&compiled(config, "diagnostics.phase_space.axes", &axis.value)?);
        axes.push(axis_of(config, plasma, axis, &v, chosen.as_deref()));
        values.push(v);
    }
    let width: f64 = axes.iter().map(|a| a.spacing).product();
    let mut bins = vec![0.0; axes.iter().map(|a| a.len).product()];
    'particles: for k in 0..cloud.len() {
        if chosen.as_ref().is_some_and(|c| !c[k]) {
            continue;
        }
        let (mut at, mut stride) = (0, 1);
        for (axis, v) in axes.iter().zip(&values) {
            let bin = ((v[k] - axis.origin) / axis.spacing).floor();
            // The upper edge belongs to the last bin; NaN belongs nowhere.
            let bin = if bin == axis.len as f64 && v[k] <= axis.origin + axis.spacing * axis.len as f64 { bin - 1.0 } else { bin };
            if !(0.0..axis.len as f64).contains(&bin) {
                continue 'particles;
            }
            at += stride * bin as usize;
            stride *= axis.len;
        }
        bins[at] += weights[k];
    }
    for bin in &mut bins {
        *bin /= width;
    }
    let names: Vec<String> = p.axes.iter().map(|a| shown(plasma, &a.value).0).collect();
    let what = p.weight.as_ref().map_or_else(|| p.species.clone(), |w| format!("{} weighted by {w}", p.species));
    let place = p.axes.iter().all(|a| matches!(a.value.as_str(), "x" | "y"));
    let title = format!("{what}{}: f({})", if place { "" } else { " in phase space" }, names.join(", "));
    // A weight may have any sign, and a density in space is read on a linear scale.
    let palette = match (&p.weight, place) {
        (None, false) => Palette::Density,
        (None, true) => Palette::Sequential,
        (Some(_), _) => Palette::Diverging,
    };
    Ok(Record::Field(Field {
        name: name(p),
        title,
        unit: String::new(),
        dimension: [0.0; 7],
        axes,
        centring: Centring::Cell,
        values: Values::F64(bins),
        palette,
    }))
}

/// The bins of an axis: as given, the domain, or from the least to the greatest value with a little air.
fn axis_of(config: &Config, plasma: &Plasma, axis: &BinConfig, values: &[f64], chosen: Option<&[bool]>) -> Axis {
    let place = ["x", "y"].iter().position(|name| *name == axis.value).filter(|d| *d < config.dimensions());
    let [from, to] = axis.range.unwrap_or_else(|| match place {
        Some(d) => [plasma.corner()[d], plasma.corner()[d] + config.grid.size[d]],
        None => {
            let counted = values.iter().enumerate().filter(|(k, v)| v.is_finite() && chosen.is_none_or(|c| c[*k]));
            let (low, high) = counted.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, v)| (a.min(*v), b.max(*v)));
            let air = 0.05 * (high - low);
            match high - low {
                w if w > 0.0 => [low - air, high + air],
                // All alike: a window about the value.
                0.0 => [low - low.abs().max(1e-6), low + low.abs().max(1e-6)],
                _ => [0.0, 1.0],
            }
        }
    });
    let (name, unit) = shown(plasma, &axis.value);
    Axis { name, unit: unit.into(), origin: from, spacing: (to - from) / axis.bins as f64, len: axis.bins }
}
