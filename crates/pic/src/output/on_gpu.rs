//! Fields and particles as copies in the memory of the run's GPU, by the names of their records.

use zellige_engine::error::Result;
use zellige_engine::ops::plane::{FieldCopier, PlaneOnGpu};
use zellige_engine::record::{Centring, Entries, FieldOnGpu, TableOnGpu, Values, ValuesOnGpu};
use zellige_engine::sim::not_on_gpu;

use super::{Of, ParticleUnits, charge, columns, known_component, mesh, piece, quantity};
use crate::config::Config;
use crate::plasma::Plasma;
use crate::stages::{ColumnUnits, Component};

/// Names of all fields that lie on the GPU: components of E, B and J, charge densities of all species and of each.
fn names(plasma: &Plasma) -> Vec<String> {
    let species = plasma.setup.species.iter().map(|s| format!("rho_{}", s.name));
    Component::ALL.into_iter().map(Component::record_name).chain(["rho".to_owned()]).chain(species).collect()
}

/// A field by the name of its record.
///
/// # Errors
/// There is none of that name.
pub(crate) fn field(config: &Config, plasma: &mut Plasma, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
    let component = known_component(plasma, name)?;
    let wanted = name.strip_prefix("rho").map(|rest| rest.strip_prefix('_'));
    let (quantity, part, values) = match (component, wanted) {
        (Some(c), _) => {
            let quantity = quantity(plasma, c as usize / 3);
            let values = plasma.after_steps(|plasma| plasma.stages.cells_on_gpu(c, quantity.scale, copier))?;
            (quantity, (["x", "y", "z"][c as usize % 3], c.stagger()), values)
        }
        (None, Some(wanted)) if names(plasma).iter().any(|n| n == name) => {
            let (quantity, species) = charge(plasma, wanted);
            let values = plasma.after_steps(|plasma| plasma.stages.charge_cells_on_gpu(&species, quantity.scale, copier))?;
            (quantity, ("", [0.0; 2]), values)
        }
        _ => return Err(not_on_gpu(name, &names(plasma))),
    };
    let Some(values) = values else { return Err(not_on_gpu(name, &[])) };
    let without_values = piece(plasma, part.0, part.1, Values::F32(Vec::new()));
    Ok(FieldOnGpu { field: mesh(config, plasma, quantity, vec![without_values]).field_without_values(0), values })
}

/// All particles of a species, in the order and units of [`super::particles`].
pub(crate) fn particles(plasma: &mut Plasma, species: usize, copier: &FieldCopier) -> Result<TableOnGpu> {
    let scales = ParticleUnits::new(plasma, species);
    let [[x, y], [next_x, next_y]] = plasma.model.lattice_units();
    let units = ColumnUnits {
        origin: [x, y],
        h: [next_x, next_y],
        moved: plasma.moved as f64,
        momentum: scales.momentum,
        weighting: scales.weighting,
    };
    let name = plasma.setup.species[species].name.clone();
    let Some(found) = plasma.after_steps(|plasma| plasma.stages.columns_on_gpu(species, &units))? else {
        return Err(not_on_gpu(&name, &[]));
    };
    let n = found.weighting.len();
    // A value that all particles have, as a plane of which every value is the same one.
    let same = |value: f64| {
        let value = copier.cuda().buffer_from(&[value], "a copy of particles")?;
        if n == 0 {
            return copier.cuda().alloc_zeros(0, "a copy of particles").map(ValuesOnGpu::F64);
        }
        let mut line = PlaneOnGpu::new(&value, true, [n, 1], Centring::Node);
        line.strides = [0, 0];
        copier.plane(&line, "a copy of particles")
    };
    let mut values = Vec::new();
    let [ux, uy, uz] = found.momentum;
    values.extend(found.position.into_iter().chain([ux, uy, uz, found.weighting]).map(ValuesOnGpu::F64));
    values.extend([same(scales.charge)?, same(scales.mass)?]);
    let tagged = found.id.is_some();
    values.extend(found.id.map(ValuesOnGpu::U64));
    let columns = columns(plasma, species, tagged, |_: Of, _| Entries::Each(Values::F64(Vec::new())));
    Ok(TableOnGpu { columns: columns.into_iter().zip(values).collect() })
}
