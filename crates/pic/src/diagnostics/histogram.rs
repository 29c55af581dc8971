//! Histograms of particles over one or two axes, each an expression: phase spaces, spectra of energy, profiles.

use zellige_engine::error::Result;
use zellige_engine::expr::{Column, Expr};
use zellige_engine::record::{Axis, Centring, Field, Palette, Pictures, Record, Values};

use crate::config::Config;
use crate::config::diagnostics::{BinConfig, PARTICLE, PhaseSpaceConfig};
use crate::particles::Particles;
use crate::plasma::Plasma;
use crate::setup::{Model, absolute, input};
use crate::stages::{Bins, padded_range};

/// Particles as columns of the variables of [`PARTICLE`], in the input's units; momenta are those of half a step before the
/// places.
pub struct ParticleColumns {
    columns: [Vec<f64>; 7],
}

/// Positions of particles, the window having moved by `moved` cells.
pub fn positions(model: &Model, moved: u64, particles: &Particles) -> [Vec<f64>; 2] {
    let n = particles.len();
    let (mut x, mut y) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for k in 0..n {
        let column = moved as f64 + f64::from(particles.i[k]) + 0.5 + particles.s[k];
        let position = model.position(column, f64::from(particles.j[k]) + 0.5 + particles.t[k]);
        x.push(position[0]);
        y.push(position[1]);
    }
    [x, y]
}

impl ParticleColumns {
    /// Of some particles of a species, the window having moved by `moved` cells.
    pub fn new(model: &Model, moved: u64, particles: Particles) -> Self {
        let n = particles.len();
        let [x, y] = positions(model, moved, &particles);
        let [ux, uy, uz] = particles.u;
        let gamma = (0..n).map(|k| (1.0 + ux[k] * ux[k] + uy[k] * uy[k] + uz[k] * uz[k]).sqrt()).collect();
        let weight = if particles.weight.is_empty() { vec![1.0; n] } else { particles.weight };
        Self { columns: [x, y, ux, uy, uz, gamma, weight] }
    }

    /// Number of particles.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A column.
    pub fn column(&self, k: usize) -> &[f64] {
        &self.columns[k]
    }

    /// A column, which is empty from then on.
    pub fn take_column(&mut self, k: usize) -> Vec<f64> {
        std::mem::take(&mut self.columns[k])
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

/// The expression that selects particles, if there is one.
pub fn selection(config: &Config, select: Option<&String>) -> Result<Option<Expr>> {
    select.map(|text| compiled(config, "diagnostics", text)).transpose()
}

/// Marks the particles that an expression selects; all of them without one.
pub fn selected(select: Option<&Expr>, cloud: &ParticleColumns) -> Option<Vec<bool>> {
    Some(cloud.values(select?).into_iter().map(|v| v != 0.0 && !v.is_nan()).collect())
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

/// Label of an expression of particles on an axis, and its unit.
fn shown(plasma: &Plasma, value: &str) -> (String, &'static str) {
    match value {
        "x" | "y" => (value.into(), plasma.model.units.label("m", "c/w_n")),
        "ux" | "uy" | "uz" => (format!("u_{}", &value[1..]), "c"),
        _ => (value.into(), ""),
    }
}

/// The expressions of a histogram, of one species.
struct Expressions {
    select: Option<Expr>,
    weight: Option<Expr>,
    axes: Vec<Expr>,
}

impl Expressions {
    fn new(config: &Config, p: &PhaseSpaceConfig) -> Result<Self> {
        let axes = p.axes.iter().map(|axis| compiled(config, "diagnostics.phase_space.axes", &axis.value));
        Ok(Self {
            select: selection(config, p.select.as_ref())?,
            weight: p.weight.as_ref().map(|text| compiled(config, "diagnostics.phase_space.weight", text)).transpose()?,
            axes: axes.collect::<Result<_>>()?,
        })
    }

    /// Least and greatest finite value of an expression among those that are selected.
    fn extent(&self, axis: &Expr, cloud: &ParticleColumns) -> [f64; 2] {
        let chosen = selected(self.select.as_ref(), cloud);
        let values = cloud.values(axis);
        let counted = values.iter().enumerate().filter(|(k, v)| v.is_finite() && chosen.as_ref().is_none_or(|c| c[*k]));
        counted.fold(NOTHING, |[a, b], (_, v)| [a.min(*v), b.max(*v)])
    }

    /// Sums of the weights in the bins.
    fn sums(&self, bins: &[Bins], cloud: &ParticleColumns) -> Vec<f64> {
        let chosen = selected(self.select.as_ref(), cloud);
        let factor = self.weight.as_ref().map(|weight| cloud.values(weight));
        let values: Vec<Vec<f64>> = self.axes.iter().map(|axis| cloud.values(axis)).collect();
        let mut sums = vec![0.0; bins.iter().map(|axis| axis.count).product()];
        for k in (0..cloud.len()).filter(|k| chosen.as_ref().is_none_or(|c| c[*k])) {
            let places = bins.iter().zip(&values).rev().try_fold(0, |at, (axis, v)| Some(at * axis.count + axis.of(v[k])?));
            if let Some(at) = places {
                sums[at] += cloud.column(6)[k] * factor.as_ref().map_or(1.0, |f| f[k]);
            }
        }
        sums
    }
}

/// Extent of nothing.
const NOTHING: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

/// A histogram without its numbers: density of weight over the axes, so that its integral is the number of particles: in
/// `n_0 (c/w_n)^d`, or real ones per unit of the lengths that the box does not have, where the units are SI.
struct Layout {
    name: String,
    title: String,
    palette: Palette,
    /// Not yet at their places.
    axes: Vec<Axis>,
    /// Real particles of a weight.
    real: f64,
}

impl Layout {
    fn new(config: &Config, plasma: &Plasma, p: &PhaseSpaceConfig, s: usize) -> Self {
        let axis = |axis: &BinConfig| {
            let (name, unit) = shown(plasma, &axis.value);
            Axis { name, unit: unit.into(), origin: 0.0, spacing: 1.0, len: axis.bins }
        };
        let axes: Vec<Axis> = p.axes.iter().map(axis).collect();
        let (species, units) = (&plasma.setup.species[s], plasma.model.units);
        let real = species.weight * plasma.setup.grid.cell_volume() * units.density * units.length.powi(config.dimensions() as i32);
        let names: Vec<&str> = axes.iter().map(|a| &*a.name).collect();
        let what = p.weight.as_ref().map_or_else(|| p.species.clone(), |w| format!("{} weighted by {w}", p.species));
        let position = p.axes.iter().all(|a| matches!(a.value.as_str(), "x" | "y"));
        let title = format!("{what}{}: f({})", if position { "" } else { " in phase space" }, names.join(", "));
        // A weight may have any sign, and a density in space is read on a linear scale.
        let palette = match (&p.weight, position) {
            (None, false) => Palette::Density,
            (None, true) => Palette::Sequential,
            (Some(_), _) => Palette::Diverging,
        };
        Self { name: name(p), title, palette, axes, real }
    }

    /// The record of sums of weights in bins, whose axes have these lower edges and widths of a bin.
    fn record(self, edges: impl Iterator<Item = [f64; 2]>, mut sums: Vec<f64>) -> Record {
        let Self { name, title, palette, mut axes, real } = self;
        for (axis, [from, spacing]) in axes.iter_mut().zip(edges) {
            (axis.origin, axis.spacing) = (from, spacing);
        }
        let width: f64 = axes.iter().map(|a| a.spacing).product();
        for sum in &mut sums {
            *sum *= real / width;
        }
        let mut field = Field::bare(name, axes, Centring::Cell, Values::F64(sums));
        (field.title, field.palette) = (title, palette);
        Record::Field(field)
    }
}

/// Adds the histogram as it stands: on its way from a device, unless it has to be there (`whole`).
pub fn add(config: &Config, plasma: &mut Plasma, p: &PhaseSpaceConfig, whole: bool, out: &mut Pictures) -> Result<()> {
    let s = plasma.setup.species.iter().position(|s| s.name == p.species).unwrap_or(0);
    let layout = Layout::new(config, plasma, p, s);
    let expressions = Expressions::new(config, p)?;
    let columns: Vec<Option<usize>> = p.axes.iter().map(|a| PARTICLE.iter().position(|name| *name == a.value)).collect();
    // Columns as they are can be counted where the particles are.
    let plain = p.select.is_none() && p.weight.is_none() && columns.iter().all(Option::is_some);
    let (mut bins, mut measured) = (Vec::new(), [false; 2]);
    for (k, axis) in p.axes.iter().enumerate() {
        let column = columns[k].unwrap_or(PARTICLE.len());
        let mut bin = Bins { column, from: 0.0, spacing: 1.0, count: axis.bins, position: plasma.cells_to_place(column) };
        match axis.range.or_else(|| domain(config, plasma, axis)) {
            Some(range) => bin.goes_over(range),
            None => measured[k] = true,
        }
        bins.push(bin);
    }
    if plain
        && !whole
        && let Some(to_come) = plasma.stages.begin_bins(s, &bins, measured)?
    {
        out.push_coming(move || {
            let (edges, sums) = to_come.wait()?;
            Ok(vec![layout.record(edges.into_iter(), sums)])
        });
        return Ok(());
    }
    let sums = plasma.after_steps(|plasma| {
        for k in (0..bins.len()).filter(|k| measured[*k]) {
            let extent = if plain { plasma.stages.extent(s, &bins[k])? } else { extent(plasma, s, &expressions, k)? };
            bins[k].goes_over(padded_range(extent));
        }
        if plain { plasma.stages.bins(s, &bins) } else { sums(plasma, s, &expressions, &bins) }
    })?;
    out.push(layout.record(bins.iter().map(|b| [b.from, b.spacing]), sums));
    Ok(())
}

/// Least and greatest value of an axis, told by the host.
fn extent(plasma: &mut Plasma, s: usize, expressions: &Expressions, axis: usize) -> Result<[f64; 2]> {
    let Plasma { stages, model, moved, .. } = plasma;
    let mut all = NOTHING;
    let part = |p: Particles| expressions.extent(&expressions.axes[axis], &ParticleColumns::new(model, *moved, p)).to_vec();
    stages.visit(s, &part, &mut |found| all = [all[0].min(found[0]), all[1].max(found[1])])?;
    Ok(all)
}

/// Sums of the weights in the bins, told by the host.
fn sums(plasma: &mut Plasma, s: usize, expressions: &Expressions, bins: &[Bins]) -> Result<Vec<f64>> {
    let Plasma { stages, model, moved, .. } = plasma;
    let mut all = vec![0.0; bins.iter().map(|axis| axis.count).product()];
    let part = |p: Particles| expressions.sums(bins, &ParticleColumns::new(model, *moved, p));
    stages.visit(s, &part, &mut |found| all.iter_mut().zip(found).for_each(|(sum, v)| *sum += v))?;
    Ok(all)
}

/// The box along an axis that is a position.
fn domain(config: &Config, plasma: &Plasma, axis: &BinConfig) -> Option<[f64; 2]> {
    let d = ["x", "y"].iter().position(|name| *name == axis.value).filter(|d| *d < config.dimensions())?;
    Some([plasma.corner()[d], plasma.corner()[d] + config.grid.size[d]])
}
