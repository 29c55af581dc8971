//! Loads on segments and bodies, as numbers of a batch: pressure and shear share the momentum along x and y, and in a gas that
//! collides the segments of a body fluctuate together, so that errors of neither follow from those of the sums.

use crate::model::Model;
use crate::walls::tally::{BodyLoad, Flux, Load, Reference, closing};

/// Numbers of a segment: pressure and shear.
pub(super) const OF_SEGMENT: usize = 2;

/// Numbers of values: of the segments, of each body, of all bodies together.
pub(super) fn count(model: &Model) -> usize {
    if model.geometry.is_empty() { 0 } else { first(model) + BodyLoad::NUMBERS * (model.geometry.bodies().len() + 1) }
}

/// Index of the first body's.
pub(super) fn first(model: &Model) -> usize {
    OF_SEGMENT * model.geometry.segments().len()
}

/// The numbers from what segments get.
pub(super) fn numbers(model: &Model, flux: &dyn Fn(usize) -> Flux) -> Vec<f64> {
    let mut out = Vec::with_capacity(count(model));
    if model.geometry.is_empty() {
        return out;
    }
    for (s, segment) in model.geometry.segments().iter().enumerate() {
        let load = Load::new(&flux(s), segment);
        out.extend([load.pressure, load.shear]);
    }
    let all = bodies(model, flux);
    out.extend(all.iter().chain([&together(&all)]).flat_map(BodyLoad::numbers));
    out
}

/// Loads on each body; moments are about [`Model::moment_point`].
pub(crate) fn bodies(model: &Model, flux: &dyn Fn(usize) -> Flux) -> Vec<BodyLoad> {
    let (geometry, stream) = (&model.geometry, Reference::of(model));
    let each = geometry.bodies().iter().enumerate();
    let one = |(b, body)| {
        let load = BodyLoad::new(geometry.segments(), flux, body, model.moment_point(b));
        load.along(stream.as_ref(), closing(geometry.segments(), body))
    };
    each.map(one).collect()
}

/// Loads on all together; moments about different points are not added.
pub(crate) fn together(bodies: &[BodyLoad]) -> BodyLoad {
    let mut sum = [0.0; BodyLoad::NUMBERS];
    for body in bodies {
        sum.iter_mut().zip(body.numbers()).for_each(|(sum, v)| *sum += v);
    }
    BodyLoad { moment: 0.0, ..BodyLoad::from_numbers(sum) }
}
