//! Sums over views for all objects, band by band, which are there from one batch of views to the next.

use zellige_engine::error::Result;
use zellige_engine::parallel::{each_task, items, owned};

use super::lanes::Number;
use super::overlap::{BAND, ObjectBand, Waves};
use super::{Adders, FixedData};
use crate::relay::Relay;

/// Some rows of a layer of an object.
pub(super) struct ObjectRows<'a, T> {
    pub(super) storage: usize,
    pub(super) layer: usize,
    /// The first of them.
    pub(super) first: usize,
    pub(super) re: &'a mut [T],
    pub(super) im: &'a mut [T],
}

/// Sums for all objects: pieces of [`BAND`] rows, of each numerator (two planes) and illumination.
pub(super) struct ObjectSums<T> {
    relay: Relay<T>,
    /// Storage, layer and first row of each piece.
    places: Vec<[usize; 3]>,
}

/// Numerator and illumination, one behind the other.
pub(super) fn thirds<T>(sums: &[T]) -> [&[T]; 3] {
    let (re, rest) = sums.split_at(sums.len() / 3);
    let (im, norm) = rest.split_at(re.len());
    [re, im, norm]
}

/// Numerator and illumination to write to.
pub(super) fn thirds_mut<T>(sums: &mut [T]) -> [&mut [T]; 3] {
    let (re, rest) = sums.split_at_mut(sums.len() / 3);
    let (im, norm) = rest.split_at_mut(re.len());
    [re, im, norm]
}

impl<T: Number> FixedData<T> {
    /// All objects, by `rows` rows.
    pub(super) fn object_rows<'a>(&self, object: &'a mut [T], rows: usize) -> Vec<ObjectRows<'a, T>> {
        let mut all = Vec::new();
        let mut rest = object;
        for (storage, planes) in self.storages.iter().enumerate() {
            let (pixels, piece) = (planes.model.layer(), rows * planes.shape[1]);
            for layer in 0..self.modes[1] {
                let [re, im] = [0, 1].map(|_| &mut rest.split_off_mut(..planes.plane).unwrap_or_default()[..pixels]);
                let pieces = re.chunks_mut(piece).zip(im.chunks_mut(piece)).enumerate();
                all.extend(pieces.map(|(i, (re, im))| ObjectRows { storage, layer, first: i * rows, re, im }));
            }
        }
        all
    }
}

impl<T: Number> ObjectSums<T> {
    /// Nothing added.
    pub(super) fn zeros(fixed: &FixedData<T>) -> Self {
        let mut places = Vec::new();
        for (number, storage) in fixed.storages.iter().enumerate() {
            let layers = (0..fixed.modes[1]).flat_map(|layer| (0..storage.shape[0]).step_by(BAND).map(move |first| [number, layer, first]));
            places.extend(layers);
        }
        let len = |[storage, _, first]: &[usize; 3]| {
            let [height, width] = fixed.storages[*storage].shape;
            3 * BAND.min(height - first) * width
        };
        Self { relay: Relay::zeros(places.iter().map(len)), places }
    }

    /// Forgets what was added.
    pub(super) fn clear(&mut self) {
        self.relay.clear();
    }

    /// Adds the listed views: `sum += conj(P) psi` and `norm += |P|^2`.
    pub(super) fn add(&mut self, fixed: &FixedData<T>, waves: Waves<T>, list: &[[u32; 2]], probe: &[T], adders: &Adders) -> Result<()> {
        let of_storage = |number: usize| list.iter().filter(move |[j, _]| waves.views[*j as usize].object as usize == number).copied();
        let lists: Vec<Vec<[u32; 2]>> = (0..fixed.storages.len()).map(|number| of_storage(number).collect()).collect();
        let Self { relay, places } = self;
        let parts = |piece: usize| {
            let [storage, _, first] = places[piece];
            &adders.bands[storage][first / BAND][..]
        };
        fixed.cpu.install(|| {
            relay.add(waves.share, parts, |piece, sums| {
                let [storage, layer, first] = places[piece];
                let sees = |[j, _]: &&[u32; 2]| {
                    let top = waves.views[*j as usize].row as usize;
                    top < first + BAND && first < top + fixed.shape.ny
                };
                let list: Vec<[u32; 2]> = lists[storage].iter().filter(sees).copied().collect();
                let (width, sums) = (fixed.storages[storage].shape[1], thirds_mut(sums));
                T::with(fixed.isa, ObjectBand { fixed, waves, list: &list, probe, layer, first, width, sums });
            })
        })
    }

    /// Does `work` with the rows of `object` of each piece and its sums.
    pub(super) fn each(&self, fixed: &FixedData<T>, object: &mut [T], work: impl Fn(ObjectRows<T>, [&[T]; 3]) + Sync) {
        let rows = fixed.object_rows(object, BAND);
        fixed.cpu.install(|| each_task((owned(rows), items(self.relay.sums())), |_, (rows, sums)| work(rows, thirds(sums))));
    }

    /// Largest illumination of each storage.
    pub(super) fn largest(&self, fixed: &FixedData<T>) -> Vec<f64> {
        let mut largest = vec![0.0; fixed.storages.len()];
        for ([storage, ..], sums) in self.places.iter().zip(self.relay.sums()) {
            largest[*storage] = thirds(sums)[2].iter().fold(largest[*storage], |a: f64, v| a.max(v.to_f64()));
        }
        largest
    }
}
