//! The trait of stages on the CPU.

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::large::{Aligned, Large};
use zellige_engine::parallel::{chunks_mut, each, items, map};

use super::lanes::{Number, Work};
use super::shift::ViewInputs;
use super::store::{self, planes_mut};
use super::{CpuStages, FixedData, lanes, least_squares, overlap, smooth};
use crate::model::{State, View};
use crate::stages::{LeastSquares, Likelihood, Overlap, Projection, Slot, Stages, Sweep};

impl<T: Number> FixedData<T> {
    /// Applies the supports to modes `[..][2][ny][sx]`: Fourier space first.
    pub(super) fn supported(&self, probe: &mut [T]) {
        let [real, fourier] = &self.support;
        if real.is_none() && fourier.is_none() {
            return;
        }
        self.cpu.install(|| {
            for mode in probe.chunks_exact_mut(2 * self.shape.stored()) {
                T::with(self.isa, ApplySupport { fixed: self, mode });
            }
        });
    }
}

struct ApplySupport<'a, T> {
    fixed: &'a FixedData<T>,
    mode: &'a mut [T],
}

impl<T: Number> Work<T> for ApplySupport<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: lanes::Lanes<T = T>>(self) {
        let Self { fixed, mode } = self;
        let [real, fourier] = &fixed.support;
        let pixels = fixed.shape.stored();
        if let Some(fourier) = fourier {
            let mut scratch = fixed.scratch();
            let super::Scratch { workspace, one, two, .. } = &mut *scratch;
            let [re, im] = planes_mut(mode);
            fixed.plan.forward([re, im], planes_mut(two), workspace);
            let scale = T::from_f64(1.0 / (fixed.shape.ny * fixed.shape.nx) as f64);
            for plane in planes_mut(two) {
                for (value, inside) in plane.iter_mut().zip(fourier) {
                    *value = *value * *inside * scale;
                }
            }
            fixed.plan.inverse(store::planes(two), planes_mut(one), workspace);
            let [a, b] = store::planes(one);
            re.copy_from_slice(&a[..pixels]);
            im.copy_from_slice(&b[..pixels]);
        }
        if let Some(real) = real {
            for plane in planes_mut(mode) {
                for (value, inside) in plane.iter_mut().zip(real) {
                    *value *= *inside;
                }
            }
        }
    }
}

/// Slot number `slot` of the pairs that are not the state.
fn number(slot: Slot) -> Option<usize> {
    match slot {
        Slot::State => None,
        Slot::Gradient => Some(0),
        Slot::Last => Some(1),
        Slot::Direction => Some(2),
    }
}

impl<T: Number> CpuStages<T> {
    /// Takes a pair out; the slots other than the state are made as long as it when they are first asked for.
    fn take(&mut self, slot: Slot) -> super::Pair<T> {
        let Some(i) = number(slot) else { return std::mem::take(&mut self.state) };
        let mut pair = std::mem::take(&mut self.slots[i]);
        // Not the state's lengths: it may be out.
        let object = self.fixed.storages.iter().map(|p| 2 * p.plane * self.fixed.modes[1]).sum();
        pair.probe.resize(self.last.len(), T::ZERO);
        pair.object.resize(object, T::ZERO);
        pair
    }

    fn put(&mut self, slot: Slot, pair: super::Pair<T>) {
        match number(slot) {
            Some(i) => self.slots[i] = pair,
            None => self.state = pair,
        }
    }
}

/// `to = s to + f from`; a factor of 0 takes nothing, not even what is not finite.
fn blend<T: Number>(to: &mut [T], s: f64, from: &[T], f: f64) {
    let (a, b) = (T::from_f64(s), T::from_f64(f));
    for (to, from) in to.iter_mut().zip(from) {
        let kept = if s == 0.0 { T::ZERO } else { a * *to };
        *to = if f == 0.0 { kept } else { kept + b * *from };
    }
}

fn dot<T: Number>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
}

impl<T: Number> Stages for CpuStages<T> {
    fn exits_from_product(&mut self) -> Result<()> {
        self.exits()
    }

    fn project(&mut self, rule: &Projection) -> Result<()> {
        self.fourier(rule);
        Ok(())
    }

    fn set_bounds(&mut self, bounds: &[f64]) -> Result<()> {
        self.fixed.valid.iter_mut().zip(bounds).for_each(|([_, noise], bound)| *noise = *bound);
        Ok(())
    }

    fn overlap(&mut self, rule: &Overlap) -> Result<u32> {
        self.overlap_loop(rule)
    }

    fn sweep(&mut self, rule: &Sweep, order: &[u32]) -> Result<()> {
        if rule.c == 1.0 && rule.a + rule.b == 1.0 {
            self.exit = Large::default();
        }
        self.sweep_views(rule, order)
    }

    fn least_squares(&mut self, rule: &LeastSquares, order: &[u32]) -> Result<()> {
        self.least_squares_views(rule, order)?;
        rule.clip.map_or(Ok(()), |range| self.clip(range))
    }

    fn gradient(&mut self, rule: &Likelihood) -> Result<f64> {
        let mut gradient = self.take(Slot::Gradient);
        let value = self.likelihood_gradient(rule, &mut gradient);
        self.put(Slot::Gradient, gradient);
        value
    }

    fn line(&mut self, rule: &Likelihood) -> Result<[f64; 2]> {
        let direction = self.take(Slot::Direction);
        let both = self.likelihood_line(rule, &direction);
        self.put(Slot::Direction, direction);
        both
    }

    fn dot(&mut self, a: Slot, b: Slot) -> Result<[f64; 2]> {
        let first = self.take(a);
        let both = if a == b {
            [dot(&first.probe, &first.probe), dot(&first.object, &first.object)]
        } else {
            let second = self.take(b);
            let both = [dot(&first.probe, &second.probe), dot(&first.object, &second.object)];
            self.put(b, second);
            both
        };
        self.put(a, first);
        Ok(both)
    }

    fn combine(&mut self, to: Slot, s: [f64; 2], from: Slot, f: [f64; 2]) -> Result<()> {
        assert_ne!(to, from, "a slot is not combined with itself");
        let second = self.take(from);
        let mut first = self.take(to);
        blend(&mut first.probe, s[0], &second.probe, f[0]);
        blend(&mut first.object, s[1], &second.object, f[1]);
        self.put(from, second);
        self.put(to, first);
        Ok(())
    }

    fn wavefield(&mut self, slot: Slot, damping: [f64; 2]) -> Result<()> {
        assert_ne!(slot, Slot::State, "the state is not divided by itself");
        let mut pair = self.take(slot);
        let done = self.wavefield_divide(&mut pair, damping);
        self.put(slot, pair);
        done
    }

    fn smooth_object(&mut self, slot: Slot, sigma: f64) -> Result<()> {
        let mut pair = self.take(slot);
        smooth::objects(&self.fixed, &mut pair.object, sigma);
        self.put(slot, pair);
        Ok(())
    }

    fn clip(&mut self, range: [f64; 2]) -> Result<()> {
        let Self { fixed, state, .. } = self;
        for storage in &fixed.storages {
            for o in 0..fixed.modes[1] {
                let [re, im] = storage.layer_mut(&mut state.object, o).map(|plane| &mut plane[..storage.model.layer()]);
                overlap::clip(re, im, range);
            }
        }
        Ok(())
    }

    fn roll(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()> {
        let Self { fixed, views, state, exit, last, .. } = self;
        let shape = fixed.shape;
        let (one, wave) = (2 * fixed.modes[0] * shape.stored(), 2 * fixed.exits() * shape.stored());
        let all = |planes: &mut [T], by: [i32; 2]| {
            planes.chunks_exact_mut(shape.stored()).for_each(|plane| roll(plane, [shape.ny, shape.nx], shape.sx, by));
        };
        for set in [&mut state.probe[..], last] {
            set.chunks_exact_mut(one).zip(probes).for_each(|(planes, by)| all(planes, *by));
        }
        exit.chunks_exact_mut(wave).zip(&views[fixed.own.clone()]).for_each(|(planes, view)| all(planes, probes[view.probe as usize]));
        for (storage, by) in fixed.storages.iter().zip(objects) {
            for o in 0..fixed.modes[1] {
                for plane in storage.layer_mut(&mut state.object, o) {
                    roll(&mut plane[..storage.model.layer()], storage.shape, storage.shape[1], *by);
                }
            }
        }
        Ok(())
    }

    fn support(&mut self, slot: Slot) -> Result<()> {
        let mut pair = self.take(slot);
        self.fixed.supported(&mut pair.probe);
        self.put(slot, pair);
        Ok(())
    }

    fn set_support(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()> {
        let shape = self.fixed.shape;
        let one = |mask: &[bool]| -> Vec<T> { mask.iter().map(|inside| if *inside { T::ONE } else { T::ZERO }).collect() };
        let real = real.map(|mask| store::to_detector(&one(mask), shape, false, T::ZERO)[..shape.stored()].to_vec());
        let fourier = fourier.map(|mask| store::to_detector(&one(mask), shape, true, T::ZERO));
        self.fixed.support = [real, fourier];
        Ok(())
    }

    fn trial(&mut self, moved: &[[i32; 2]]) -> Result<Vec<f64>> {
        self.trials(moved)
    }

    fn slope(&mut self) -> Result<Vec<[f64; 5]>> {
        self.slopes()
    }

    fn views(&self) -> (&[View], &[[f64; 2]]) {
        (&self.views, &self.shifts)
    }

    fn set_views(&mut self, views: &[View], shifts: &[[f64; 2]]) -> Result<()> {
        if self.fixed.subpixel && !self.exit.is_empty() {
            // Waves go with the probe, which now stands elsewhere between the pixels of its frame.
            let size = self.fixed.exits() * 2 * self.fixed.shape.stored();
            let (fixed, old) = (&self.fixed, &self.shifts);
            fixed.cpu.install(|| {
                each((chunks_mut(&mut self.exit, size), items(&self.all)), |_, (exit, [j, _])| {
                    let j = *j as usize;
                    let by = [0, 1].map(|d| shifts[j][d] - old[j][d]);
                    if by != [0.0; 2] {
                        fixed.moved(exit, by);
                    }
                });
            });
        }
        self.views.copy_from_slice(views);
        self.shifts.copy_from_slice(shifts);
        self.sort_views();
        Ok(())
    }

    fn errors(&mut self) -> Result<Vec<[f64; 3]>> {
        Ok(self.errors.clone())
    }

    fn state(&mut self) -> Result<State> {
        let Self { fixed, state, .. } = self;
        Ok(State {
            probe: store::unpack_frames(&state.probe, fixed.shape),
            object: store::unpack_objects(&state.object, &fixed.storages, fixed.modes[1]),
        })
    }

    fn probe(&mut self) -> Result<Vec<Complex<f64>>> {
        Ok(store::unpack_frames(&self.state.probe, self.fixed.shape))
    }

    fn probe_products(&mut self) -> Result<Vec<Complex<f64>>> {
        let (probe, modes) = (self.probe()?, self.fixed.modes[0]);
        let set = probe.len() / (self.state.probe.len() / self.fixed.probe_len());
        Ok(probe.chunks_exact(set).flat_map(|set| crate::modes::products(set, modes)).collect())
    }

    fn set_state(&mut self, state: &State) -> Result<()> {
        self.state.probe = store::pack_frames(&state.probe, self.fixed.shape);
        self.state.object = store::pack_objects(&state.object, &self.fixed.storages, self.fixed.modes[1]);
        Ok(())
    }

    fn exit_waves(&mut self) -> Result<Vec<Complex<f64>>> {
        Ok(store::unpack_frames(&self.exit, self.fixed.shape))
    }

    fn set_exit_waves(&mut self, waves: &[Complex<f64>]) -> Result<()> {
        let packed = store::pack_frames(waves, self.fixed.shape);
        if self.exit.len() != packed.len() {
            self.exit = Large::zeros(packed.len(), self.folder.as_deref())?;
        }
        self.exit.copy_from_slice(&packed);
        Ok(())
    }

    fn intensities(&mut self, wanted: &[usize]) -> Result<Vec<Vec<f64>>> {
        let Self { fixed, views, shifts, state, .. } = self;
        let (fixed, views, shifts) = (&*fixed, &*views, &*shifts);
        let spectra = fixed.spectra(&state.probe);
        let plain = || ViewInputs { probe: &state.probe, object: &state.object };
        let one = |j: usize| {
            let mut scratch = fixed.scratch();
            let mut own = Aligned::default();
            let (ViewInputs { probe, object }, view) = fixed.seen(plain(), &spectra, (views[j], shifts[j]), &mut own, &mut scratch);
            let super::Scratch { workspace, product, wave, two, plane: [power, ..], .. } = &mut *scratch;
            fixed.products(probe, object, &view, product);
            let size = 2 * fixed.shape.plane();
            for (from, to) in product.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
                fixed.propagate(from, to, two, workspace);
            }
            fixed.intensity(wave, power);
            let power = &power[..fixed.bins.plane()];
            store::from_detector(power, fixed.bins.shape, fixed.far()).into_iter().map(zellige_engine::real::RealScalar::to_f64).collect()
        };
        Ok(fixed.cpu.install(|| map(items(wanted), |_, j| one(*j))))
    }

    fn mix_probe(&mut self, basis: &[Complex<f64>]) -> Result<()> {
        let Self { fixed, state, last, .. } = self;
        let (modes, plane) = (fixed.modes[0], fixed.shape.stored());
        let of = |set: usize| &basis[set * modes * modes..(set + 1) * modes * modes];
        for wave in [&mut state.probe, last] {
            for (set, wave) in wave.chunks_exact_mut(fixed.probe_len()).enumerate() {
                least_squares::mix(wave, of(set), modes, plane);
            }
        }
        Ok(())
    }

    fn save(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        let name = |name: &str| format!("{prefix}{name}");
        let bytes = |values: &[T]| bytemuck::cast_slice::<T, u8>(values).to_vec();
        writer.bytes(&name("probe"), &bytes(&self.state.probe))?;
        writer.bytes(&name("object"), &bytes(&self.state.object))?;
        // Each part has those of its views.
        let (share, wave) = (self.fixed.share.clone(), self.fixed.exits() * 2 * self.fixed.shape.stored());
        let first = self.fixed.own.start * wave * size_of::<T>();
        writer.joined(&name("exit"), &[(first, bytemuck::cast_slice::<T, u8>(&self.exit))])?;
        writer.bytes(&name("last"), &bytes(&self.last))?;
        for (i, slot) in self.slots.iter().enumerate() {
            writer.bytes(&name(&format!("slot{i}.probe")), bytemuck::cast_slice(&slot.probe))?;
            writer.bytes(&name(&format!("slot{i}.object")), bytemuck::cast_slice(&slot.object))?;
        }
        writer.bytes(&name("views"), bytemuck::cast_slice(&self.views))?;
        writer.f64s(&name("shifts"), self.shifts.as_flattened())?;
        writer.f64s(&name("factors"), &share.gathered(self.factors.clone())?)?;
        writer.f64s(&name("errors"), share.gathered(self.errors.clone())?.as_flattened())
    }

    fn restore(&mut self, prefix: &str, reader: &Reader) -> Result<()> {
        let name = |name: &str| format!("{prefix}{name}");
        let (own, wave) = (self.fixed.own.clone(), self.fixed.exits() * 2 * self.fixed.shape.stored());
        let (probe, object) = (self.state.probe.len(), self.state.object.len());
        self.state =
            super::Pair { probe: numbers(reader, &name("probe"), &[probe])?, object: numbers(reader, &name("object"), &[object])? };
        // Those of own views alone.
        let exits = reader.count::<u8>(&name("exit"))?;
        if ![0, self.views.len() * wave * size_of::<T>()].contains(&exits) {
            return Err(reader.content_error(format!("section `{}` has {exits} bytes: the input has changed", name("exit"))));
        }
        self.exit = Large::zeros(if exits == 0 { 0 } else { own.len() * wave }, self.folder.as_deref())?;
        let first = if exits == 0 { 0 } else { own.start * wave * size_of::<T>() };
        reader.values_from::<u8>(&name("exit"), first, bytemuck::cast_slice_mut(&mut self.exit))?;
        self.last = numbers(reader, &name("last"), &[probe])?;
        for (i, slot) in self.slots.iter_mut().enumerate() {
            slot.probe = numbers(reader, &name(&format!("slot{i}.probe")), &[0, probe])?;
            slot.object = numbers(reader, &name(&format!("slot{i}.object")), &[0, object])?;
        }
        let bytes = reader.bytes(&name("views"))?;
        if bytes.len() != size_of_val(&self.views[..]) {
            return Err(reader.content_error("the number of views is not that of this input"));
        }
        let mut views = self.views.clone();
        bytemuck::cast_slice_mut::<View, u8>(&mut views).copy_from_slice(&bytes);
        let inside = |v: &View| {
            let storage = self.fixed.storages.get(v.object as usize);
            let fits = |first: i32, frame: usize, all: usize| first >= 0 && first as usize + frame <= all;
            let shape = self.fixed.shape;
            storage.is_some_and(|p| fits(v.row, shape.ny, p.shape[0]) && fits(v.col, shape.nx, p.shape[1]))
                && ((v.probe as usize + 1) * self.fixed.modes[0] * 2 * shape.stored() <= probe)
        };
        if !views.iter().all(inside) {
            return Err(reader.content_error("a view lies outside the objects of this input"));
        }
        reader.f64s_into(&name("shifts"), self.shifts.as_flattened_mut())?;
        let factors = reader.f64s(&name("factors"))?;
        if factors.len() != views.len() {
            return Err(reader.content_error("factors of brightness do not fit the views of this input"));
        }
        self.factors = factors[own.clone()].to_vec();
        let mut errors = vec![[0.0; 3]; views.len()];
        reader.f64s_into(&name("errors"), errors.as_flattened_mut())?;
        self.errors = errors[own].to_vec();
        self.views = views;
        self.sort_views();
        Ok(())
    }

    fn memory(&self) -> u64 {
        let pairs = self.slots.iter().chain([&self.state]).map(|p| p.probe.len() + p.object.len()).sum::<usize>();
        let scratch = self.fixed.scratch.len() * (4 * self.fixed.exits() + 7) * self.fixed.shape.plane();
        self.fixed.mag.held() + self.exit.held() + ((self.last.len() + pairs + scratch) * size_of::<T>()) as u64
    }
}

/// An array of one of these lengths.
fn numbers<T: Number>(reader: &Reader, name: &str, lengths: &[usize]) -> Result<Vec<T>> {
    let bytes = reader.bytes(name)?;
    if !bytes.len().is_multiple_of(size_of::<T>()) || !lengths.contains(&(bytes.len() / size_of::<T>())) {
        return Err(reader.content_error(format!("section `{name}` has {} bytes: the input has changed", bytes.len())));
    }
    let mut values = vec![T::ZERO; bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut::<T, u8>(&mut values).copy_from_slice(&bytes);
    Ok(values)
}

/// Moves the pixels `[height][width]` of a plane with rows of `stride`, around the edges.
fn roll<T: Number>(plane: &mut [T], [height, width]: [usize; 2], stride: usize, by: [i32; 2]) {
    let from = |i: usize, by: i32, n: usize| (i as i64 - i64::from(by)).rem_euclid(n as i64) as usize;
    let old = plane.to_vec();
    for y in 0..height {
        let row = &old[from(y, by[0], height) * stride..][..width];
        for x in 0..width {
            plane[y * stride + x] = row[from(x, by[1], width)];
        }
    }
}
