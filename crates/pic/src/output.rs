//! The state as records: fields, currents and charges on the lattice, particles one by one.

use zellige_engine::error::Result;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, UnitDimension, Values};

use crate::config::Config;
use crate::config::diagnostics::{PARTICLE, ParticlesConfig};
use crate::diagnostics::histogram::{Cloud, selected};
use crate::plasma::Plasma;
use crate::stages::{Component, Precision};

/// V/m, T, A/m^2, C/m^3 by m, kg, s, A, K, mol, cd.
const ELECTRIC: UnitDimension = [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0];
const MAGNETIC: UnitDimension = [0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0];
const CURRENT: UnitDimension = [-2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
const CHARGE: UnitDimension = [-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];

/// A kind of quantity: its name for people, its units, its dimension.
struct Kind {
    title: String,
    normalised: &'static str,
    si: &'static str,
    dimension: UnitDimension,
    scale: f64,
}

/// Adds the named quantities. Those that are zero everywhere are left out unless they were asked for.
pub fn fields(config: &Config, plasma: &mut Plasma, what: &[String], asked: bool, out: &mut Vec<Record>) -> Result<()> {
    for name in what {
        let record = match Component::ALL.into_iter().find(|c| c.name() == name) {
            Some(component) => component_record(config, plasma, component)?,
            None => charge_record(config, plasma, name)?,
        };
        if asked || (0..record.values.len()).any(|k| record.values.get(k) != 0.0) {
            out.push(Record::Field(record));
        }
    }
    Ok(())
}

fn component_record(config: &Config, plasma: &mut Plasma, component: Component) -> Result<Field> {
    let units = plasma.model.units;
    let kind = match component as usize {
        0..3 => Kind { title: "electric field".into(), normalised: "m_e c w_n/e", si: "V/m", dimension: ELECTRIC, scale: units.electric },
        3..6 => Kind { title: "magnetic field".into(), normalised: "m_e c w_n/e", si: "T", dimension: MAGNETIC, scale: units.magnetic },
        _ => Kind { title: "current density".into(), normalised: "e n_0 c", si: "A/m^2", dimension: CURRENT, scale: units.current },
    };
    let values = plasma.stages.component(component)?;
    let kind = Kind { title: format!("{} {}", kind.title, component.name()), ..kind };
    Ok(field(config, plasma, component.name(), kind, component.stagger(), &values))
}

fn charge_record(config: &Config, plasma: &mut Plasma, name: &str) -> Result<Field> {
    let wanted = name.strip_prefix("charge.");
    let mut rho = vec![0.0; plasma.setup.grid.len()];
    for s in 0..plasma.setup.species.len() {
        if wanted.is_none_or(|w| w == plasma.setup.species[s].name) {
            for (sum, r) in rho.iter_mut().zip(plasma.stages.charge(s, false)?) {
                *sum += r;
            }
        }
    }
    let title = wanted.map_or_else(|| "charge density".to_owned(), |w| format!("charge density of {w}"));
    let scale = plasma.model.units.charge;
    let kind = Kind { title, normalised: "e n_0", si: "C/m^3", dimension: CHARGE, scale };
    Ok(field(config, plasma, &name.replace('.', "_"), kind, [0.0; 2], &rho))
}

/// The values of a quantity at its own points of the lattice: one per cell, and the last wall where there is one and the
/// quantity sits on it.
fn field(config: &Config, plasma: &Plasma, name: &str, kind: Kind, stagger: [f64; 2], values: &[f64]) -> Field {
    let (grid, units) = (&plasma.setup.grid, plasma.model.units);
    let dimensions = grid.dimensions;
    let count = |d: usize| if stagger[d] == 0.0 && d < dimensions { grid.nodes(d) } else { grid.cells[d] };
    let corner = plasma.corner();
    let axes = (0..dimensions)
        .map(|d| Axis {
            name: ["x", "y"][d].into(),
            unit: units.label("m", "c/w_n").into(),
            origin: corner[d] + stagger[d] * config.spacing(d),
            spacing: config.spacing(d),
            len: count(d),
        })
        .collect();
    let rows = (0..count(1)).map(|j| grid.index(0, j as isize));
    let scaled = rows.flat_map(|begin| values[begin..begin + count(0)].iter().map(|v| v * kind.scale));
    Field {
        name: name.into(),
        title: kind.title,
        unit: units.label(kind.si, kind.normalised).into(),
        dimension: units.dimension(kind.dimension),
        axes,
        centring: Centring::Node,
        values: if plasma.model.precision == Precision::F32 {
            Values::F32(scaled.map(|v| v as f32).collect())
        } else {
            Values::F64(scaled.collect())
        },
        palette: Palette::Diverging,
    }
}

/// Particles one by one: their number as abscissa, a column per variable.
pub fn particles(config: &Config, plasma: &mut Plasma, p: &ParticlesConfig) -> Result<Record> {
    let s = plasma.setup.species.iter().position(|s| s.name == p.species).unwrap_or(0);
    let particles = plasma.stages.particles(s)?;
    let plasma = &*plasma;
    let cloud = Cloud::new(plasma, &particles);
    let chosen = selected(config, p.select.as_ref(), &cloud)?;
    let mut kept: Vec<usize> = (0..cloud.len()).filter(|k| chosen.as_ref().is_none_or(|c| c[*k])).collect();
    let step = kept.len().div_ceil(p.limit).max(1);
    kept = kept.into_iter().step_by(step).collect();
    let column = |(c, name): (usize, &&str)| ((*name).to_owned(), kept.iter().map(|k| cloud.column(c)[*k]).collect());
    let mut lines: Vec<(String, Vec<f64>)> = PARTICLE.iter().enumerate().map(column).collect();
    if !particles.tag.is_empty() {
        // Tags are below 2^53 in any box that fits into memory.
        lines.push(("tag".into(), kept.iter().map(|k| particles.tag[*k] as f64).collect()));
    }
    Ok(Record::Curve(Curve {
        name: format!("particles_{}", p.species),
        title: format!("particles of {}, one in {step}", p.species),
        x_label: "particle".into(),
        y_label: "x, y, ux, uy, uz, gamma, weight".into(),
        x: (0..kept.len()).map(|k| k as f64).collect(),
        lines,
        log_y: false,
    }))
}
