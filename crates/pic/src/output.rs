//! The state as records: fields, currents and charges on the grid, particles one by one.

mod on_gpu;

use zellige_engine::cuda::Coming;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::parallel::position;
use zellige_engine::record::{
    self, Axis, Column, Entries, Mesh, Method, Note, Palette, Pictures, Planes, Record, Table, UnitDimension, Values,
};

pub(crate) use self::on_gpu::{field as field_on_gpu, particles as particles_on_gpu};
use crate::config::Config;
use crate::config::diagnostics::ParticlesConfig;
use crate::config::units::{C, E, M_E};
use crate::diagnostics::histogram::{ParticleColumns, selected, selection};
use crate::grid::{FieldSide, ParticleSide};
use crate::particles::Pusher;
use crate::plasma::Plasma;
use crate::stages::Component;

/// V/m, T, A/m^2, C/m^3 by m, kg, s, A, K, mol, cd.
const ELECTRIC: UnitDimension = [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0];
const MAGNETIC: UnitDimension = [0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0];
const CURRENT: UnitDimension = [-2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
const LENGTH: UnitDimension = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const MOMENTUM: UnitDimension = [1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0];
const CHARGE: UnitDimension = [-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];

/// A number in `n` significant digits, with a power of ten where it is far from 1: of quantities in any units.
pub fn digits(x: f64, n: usize) -> String {
    let magnitude = x.abs().log10().floor();
    if x == 0.0 || !x.is_finite() {
        format!("{x}")
    } else if (-4.0..7.0).contains(&magnitude) {
        format!("{x:.*}", (n as f64 - 1.0 - magnitude).max(0.0) as usize)
    } else {
        format!("{x:.*e}", n - 1)
    }
}

/// A kind of quantity: its openPMD name, its name for people, its units, its dimension.
struct Quantity {
    name: String,
    title: String,
    normalised: &'static str,
    si: &'static str,
    dimension: UnitDimension,
    scale: f64,
}

/// The component of that name.
fn component(name: &str) -> Option<Component> {
    Component::ALL.into_iter().find(|c| c.name() == name)
}

/// True for a component of a field or current, which needs no particles.
pub fn is_component(name: &str) -> bool {
    component(name).is_some()
}

/// True for a component of the current.
pub fn is_current(name: &str) -> bool {
    component(name).is_some_and(Component::is_current)
}

/// Adds the named quantities, the components of a field together, in a run in parts those of this part; only their pictures where
/// `whole` is false and those are made where the fields lie. Those that are zero everywhere are left out unless they were asked
/// for; so is J where it is not known.
pub fn fields(config: &Config, plasma: &mut Plasma, what: &[String], asked: bool, whole: bool, out: &mut Pictures) -> Result<()> {
    for first in 0..3 {
        let members: Vec<_> = (Component::ALL[3 * first..][..3].iter().copied())
            .filter(|c| plasma.knows(*c) && what.iter().any(|name| component(name) == Some(*c)))
            .collect();
        let mut components = Vec::new();
        for component in members {
            let (scale, name) = (quantity(plasma, first).scale, ["x", "y", "z"][component as usize % 3]);
            let without_values = piece(plasma, name, component.stagger(), Values::F32(Vec::new()));
            match if whole { None } else { plasma.stages.picture(component, scale)? } {
                Some(pixels) => add_picture(&mesh(config, plasma, quantity(plasma, first), vec![without_values]), pixels, asked, out),
                None => {
                    let values = plasma.after_steps(|plasma| plasma.stages.cells(component, scale))?;
                    components.push(record::Component { values, ..without_values });
                }
            }
        }
        let mut notable = components.iter().map(|c| u64::from(asked || is_notable(&c.values))).collect::<Vec<_>>();
        plasma.links().sum(&mut notable)?;
        let mut notable = notable.into_iter();
        components.retain(|_| notable.next() != Some(0));
        if !components.is_empty() {
            let mesh = mesh(config, plasma, quantity(plasma, first), components);
            out.push(as_shown(Record::Mesh(mesh), whole, plasma)?);
        }
    }
    for name in what.iter().filter(|name| !is_component(name)) {
        let (quantity, species) = charge(plasma, name.strip_prefix("charge."));
        let scale = quantity.scale;
        if let Some(pixels) = if whole { None } else { plasma.stages.charge_picture(&species, scale)? } {
            let without_values = piece(plasma, "", [0.0; 2], Values::F32(Vec::new()));
            add_picture(&mesh(config, plasma, quantity, vec![without_values]), pixels, asked, out);
            continue;
        }
        let values = plasma.after_steps(|plasma| plasma.stages.charge_cells(&species, scale))?;
        let mut notable = [u64::from(asked || is_notable(&values))];
        plasma.links().sum(&mut notable)?;
        if notable[0] > 0 {
            let mesh = mesh(config, plasma, quantity, vec![piece(plasma, "", [0.0; 2], values)]);
            out.push(as_shown(Record::Mesh(mesh), whole, plasma)?);
        }
    }
    Ok(())
}

/// The component by the name of its record, if it is one.
///
/// # Errors
/// It is not known.
fn known_component(plasma: &Plasma, name: &str) -> Result<Option<Component>> {
    let component = Component::ALL.into_iter().find(|c| c.record_name() == name);
    if component.is_some_and(|c| !plasma.knows(c)) {
        let problem = Problem::new(name, "the checkpoint was saved without the current of its step");
        let hint = "it is there after the next step; checkpoints of runs that list a component of it in `pic.diagnostics.fields` have it";
        return Err(Error::input("the run", problem.hint(hint)));
    }
    Ok(component)
}

/// A quantity by the name of its record, zero or not; `None` where there is none of that name.
pub fn field(config: &Config, plasma: &mut Plasma, name: &str) -> Result<Option<Record>> {
    let component = known_component(plasma, name)?.map(|c| c.name().to_owned());
    let all = (name == "rho").then(|| "charge".to_owned());
    let of_species =
        || plasma.setup.species.iter().find(|s| name.strip_prefix("rho_") == Some(&s.name)).map(|s| format!("charge.{}", s.name));
    let Some(what) = component.or(all).or_else(of_species) else { return Ok(None) };
    let mut found = Pictures::default();
    fields(config, plasma, &[what], true, true, &mut found)?;
    Ok(found.records()?.pop())
}

/// Adds the picture of the only component of a mesh, whose pixels are on their way.
fn add_picture(mesh: &Mesh, pixels: Coming<f32>, asked: bool, out: &mut Pictures) {
    let field = mesh.field(0);
    out.push_coming(move || {
        let planes = Planes::of_copies(field, &[pixels])?;
        let shown = asked || planes.pixels.iter().flatten().any(|v| *v != 0.0);
        Ok(shown.then_some(Record::Planes(planes)).into_iter().collect())
    });
}

/// A record, or for pictures that of all parts, which the first one draws.
fn as_shown(record: Record, whole: bool, plasma: &Plasma) -> Result<Record> {
    if whole { Ok(record) } else { record.joined(plasma.links()) }
}

/// True if some value is not zero.
fn is_notable(values: &Values) -> bool {
    match values {
        Values::F32(values) => position(values, |v| *v != 0.0),
        Values::F64(values) => position(values, |v| *v != 0.0),
    }
    .is_some()
}

/// E, B or J.
fn quantity(plasma: &Plasma, which: usize) -> Quantity {
    let units = plasma.model.units;
    let name = ["E", "B", "J"][which].to_owned();
    match which {
        0 => Quantity {
            name,
            title: "electric field".into(),
            normalised: "m_e c w_n/e",
            si: "V/m",
            dimension: ELECTRIC,
            scale: units.electric,
        },
        1 => Quantity {
            name,
            title: "magnetic field".into(),
            normalised: "m_e c w_n/e",
            si: "T",
            dimension: MAGNETIC,
            scale: units.magnetic,
        },
        _ => {
            Quantity { name, title: "current density".into(), normalised: "e n_0 c", si: "A/m^2", dimension: CURRENT, scale: units.current }
        }
    }
}

/// Charge density of the species of that name, or of all, and their numbers.
fn charge(plasma: &Plasma, wanted: Option<&str>) -> (Quantity, Vec<usize>) {
    let species = plasma.setup.species.iter().enumerate().filter(|(_, s)| wanted.is_none_or(|w| w == s.name));
    let title = wanted.map_or_else(|| "charge density of all species".to_owned(), |w| format!("charge density of {w}"));
    let name = wanted.map_or_else(|| "rho".to_owned(), |w| format!("rho_{w}"));
    let scale = plasma.model.units.charge;
    (Quantity { name, title, normalised: "e n_0", si: "C/m^3", dimension: CHARGE, scale }, species.map(|(s, _)| s).collect())
}

/// A component at its own points of the Yee grid, one per cell: the lower corner, or halfway to the next one.
fn piece(plasma: &Plasma, name: &str, stagger: [f64; 2], values: Values) -> record::Component {
    record::Component { name: name.into(), position: stagger[..plasma.setup.grid.dimensions].to_vec(), values }
}

fn mesh(config: &Config, plasma: &Plasma, quantity: Quantity, components: Vec<record::Component>) -> Mesh {
    let (grid, units) = (&plasma.setup.grid, plasma.model.units);
    let corner = plasma.corner();
    let axes = (0..grid.dimensions).map(|d| Axis {
        name: ["x", "y"][d].into(),
        unit: units.label("m", "c/w_n").into(),
        origin: corner[d],
        spacing: config.spacing(d),
        len: grid.cells[d],
    });
    // A current belongs to the middle of the step before.
    let time_offset = if quantity.name == "J" { -0.5 * grid.dt * units.time } else { 0.0 };
    Mesh {
        title: quantity.title,
        unit: units.label(quantity.si, quantity.normalised).into(),
        dimension: units.dimension(quantity.dimension),
        unit_si: 1.0,
        axes: axes.collect(),
        length_si: 1.0,
        time_si: 1.0,
        time_offset,
        components,
        share: plasma.stages.rows_of_cells().map(|rows| rows.start * grid.cells[0]),
        palette: Palette::Diverging,
        name: quantity.name,
    }
}

/// Units of columns of particles of a species, of `u` and of the weight, and the constants of a real particle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParticleUnits {
    /// Of one real particle: p = m c u.
    pub(crate) momentum: f64,
    /// Real particles in a macro-particle of weight 1, per unit of the lengths that the box does not have.
    pub(crate) weighting: f64,
    pub(crate) charge: f64,
    pub(crate) mass: f64,
}

impl ParticleUnits {
    /// Those of a species by its number.
    pub(crate) fn new(plasma: &Plasma, species: usize) -> Self {
        let (grid, units, species) = (&plasma.setup.grid, plasma.model.units, &plasma.setup.species[species]);
        let volume = grid.cell_volume() * units.length.powi(grid.dimensions as i32);
        Self {
            momentum: species.mass * if units.si { M_E * C } else { 1.0 },
            weighting: species.weight * units.density * volume,
            charge: species.charge * if units.si { E } else { 1.0 },
            mass: species.mass * if units.si { M_E } else { 1.0 },
        }
    }
}

/// Meaning of a column of particles.
#[derive(Debug, Clone, Copy)]
enum Of {
    Position(usize),
    Momentum(usize),
    Weighting,
    Charge,
    Mass,
    Id,
}

/// Columns of the particles of a species by openPMD's names, with what `values` has of each.
fn columns(plasma: &Plasma, s: usize, tagged: bool, mut values: impl FnMut(Of, &ParticleUnits) -> Entries) -> Vec<Column> {
    let (grid, units) = (&plasma.setup.grid, plasma.model.units);
    let scales = ParticleUnits::new(plasma, s);
    let mut column = |quantity: &str, component: &str, unit: &str, dimension: UnitDimension, power: f64, of: Of| Column {
        quantity: quantity.into(),
        component: component.into(),
        unit: unit.into(),
        dimension: units.dimension(dimension),
        // Readers divide momenta by m c in SI: without SI units a mass is a number, and u = p/(m c) stays what it is.
        unit_si: if quantity == "momentum" && !units.si { C } else { 1.0 },
        weighting_power: power,
        macro_weighted: quantity == "weighting",
        time_offset: if quantity == "momentum" { -0.5 * grid.dt * units.time } else { 0.0 },
        values: values(of, &scales),
    };
    let axes = ["x", "y", "z"];
    let mut columns: Vec<Column> =
        (0..grid.dimensions).map(|d| column("position", axes[d], units.label("m", "c/w_n"), LENGTH, 0.0, Of::Position(d))).collect();
    columns.extend((0..3).map(|d| column("momentum", axes[d], units.label("kg m/s", "m_e c"), MOMENTUM, 1.0, Of::Momentum(d))));
    columns.push(column("weighting", "", units.label("", "n_0 (c/w_n)^d"), [0.0; 7], 1.0, Of::Weighting));
    columns.push(column("charge", "", units.label("C", "e"), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0], 1.0, Of::Charge));
    columns.push(column("mass", "", units.label("kg", "m_e"), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1.0, Of::Mass));
    if tagged {
        columns.push(column("id", "", "", [0.0; 7], 0.0, Of::Id));
    }
    columns
}

/// Particles one by one, by openPMD's names; in a run in parts those of this part. Momenta are those of half a step before the
/// positions.
pub fn particles(config: &Config, plasma: &mut Plasma, p: &ParticlesConfig) -> Result<Table> {
    let s = plasma.setup.species.iter().position(|s| s.name == p.species).unwrap_or(0);
    let mut particles = plasma.stages.own_particles(s)?;
    let mut tag = std::mem::take(&mut particles.tag);
    let plasma = &*plasma;
    let (links, tagged) = (plasma.links(), plasma.setup.species[s].tagged);
    let mut cloud = ParticleColumns::new(&plasma.model, plasma.moved, particles);
    let chosen = selected(selection(config, p.select.as_ref())?.as_ref(), &cloud)
        .map(|chosen| (0..cloud.len()).filter(|k| chosen[*k]).collect::<Vec<usize>>());
    let found = chosen.as_ref().map_or(cloud.len(), Vec::len);
    // One in `step` of those of all parts, which follow each other.
    let (before, mut all) = (links.before(found)?, [found as u64]);
    links.sum(&mut all)?;
    let step = (all[0] as usize).div_ceil(p.limit).max(1);
    // Columns of all particles are not copied.
    let kept: Option<Vec<usize>> = (chosen.is_some() || step > 1).then(|| {
        let thinned = (before.next_multiple_of(step) - before..found).step_by(step);
        thinned.map(|k| chosen.as_ref().map_or(k, |chosen| chosen[k])).collect()
    });
    let mut pick = |c: usize, scale: f64| {
        let mut values: Vec<f64> = match &kept {
            Some(kept) => kept.iter().map(|k| cloud.column(c)[*k]).collect(),
            None => cloud.take_column(c),
        };
        if scale != 1.0 {
            for value in &mut values {
                *value *= scale;
            }
        }
        Entries::Each(Values::F64(values))
    };
    let columns = columns(plasma, s, tagged, |of, units| match of {
        Of::Position(d) => pick(d, 1.0),
        Of::Momentum(d) => pick(2 + d, units.momentum),
        Of::Weighting => pick(6, units.weighting * step as f64),
        Of::Charge => Entries::Same(units.charge),
        Of::Mass => Entries::Same(units.mass),
        Of::Id => Entries::Whole(match &kept {
            Some(kept) => kept.iter().map(|k| tag[*k]).collect(),
            None => std::mem::take(&mut tag),
        }),
    });
    let share = if step == 1 { String::new() } else { format!(", one in {step}") };
    Ok(Table {
        name: p.species.clone(),
        title: format!("particles of {}{share}", p.species),
        length_si: 1.0,
        time_si: 1.0,
        len: (all[0] as usize).div_ceil(step),
        share: (!links.is_alone()).then(|| before.div_ceil(step)),
        columns,
    })
}

/// Numerical method, in the words of openPMD's extension ED-PIC (EXT_ED-PIC.md of version 1.1.0).
pub fn method(config: &Config, plasma: &Plasma) -> Record {
    let setup = &plasma.setup;
    let grid = &setup.grid;
    let text = |words: &str| Note::Text(words.into());
    let sides =
        |word: &dyn Fn(usize, usize) -> &'static str| Note::Sides((0..grid.dimensions).map(|d| [0, 1].map(|end| word(d, end))).collect());
    let fields = sides(&|d, end| match grid.fields[d][end] {
        FieldSide::Periodic => "periodic",
        FieldSide::Pec => "reflecting",
        FieldSide::Absorbing => "open",
        FieldSide::Pmc => "other",
    });
    let walls = sides(&|d, end| match grid.fields[d][end] {
        FieldSide::Periodic => "periodic",
        FieldSide::Pec => "PEC",
        FieldSide::Absorbing => "CPML",
        FieldSide::Pmc => "PMC",
    });
    let particles = sides(&|d, end| match grid.particles[d][end] {
        ParticleSide::Periodic => "periodic",
        ParticleSide::Reflect => "reflecting",
        ParticleSide::Absorb => "absorbing",
        ParticleSide::Thermal => "reinjecting",
    });
    let mut about = vec![
        ("fieldSolver", text("Yee")),
        ("fieldBoundary", fields),
        ("fieldBoundaryParameters", walls),
        ("particleBoundary", particles),
        ("chargeCorrection", text("none")),
    ];
    let passes: Vec<String> = (0..grid.dimensions)
        .map(|d| format!("{}: passes = {}, compensated = {}", ["x", "y"][d], setup.smoothing[d].passes, setup.smoothing[d].compensated))
        .collect();
    if setup.smoothing.iter().any(|s| s.passes > 0) {
        about.extend([("currentSmoothing", text("Binomial")), ("currentSmoothingParameters", text(&passes.join("; ")))]);
    } else {
        about.push(("currentSmoothing", text("none")));
    }
    let species = setup.species.iter().map(|s| {
        let push = match s.pusher {
            _ if !s.mobile => "none",
            Pusher::Boris => "Boris",
            Pusher::Vay => "Vay",
            Pusher::HigueraCary => "other",
        };
        let about = vec![
            ("particleShape", Note::Number(f64::from(config.order))),
            ("currentDeposition", text(if config.order == 1 { "VillasenorBuneman" } else { "Esirkepov" })),
            ("particlePush", text(push)),
            ("particleInterpolation", text("uniform")),
            ("particleSmoothing", text("none")),
        ];
        (s.name.clone(), about)
    });
    Record::Method(Method { fields: about, species: species.collect() })
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn numbers_have_their_digits_in_any_units() {
        let of = |x: f64| digits(x, 5);
        assert_eq!([0.35091, -0.0126, 67.0, 123_456.0].map(of), ["0.35091", "-0.012600", "67.000", "123456"]);
        assert_eq!([-71_453_959_492_843.0, 4.2e-14, 0.0].map(of), ["-7.1454e13", "4.2000e-14", "0"]);
    }
}
