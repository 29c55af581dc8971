//! Operations on the whole state that are done now and then through the host: shifts, changes of modes, checkpoints.

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::error::Result;

use super::CudaStages;
use super::arguments::ConstraintArgument;
use super::number::{C, Number};
use super::stream::NEUTRAL;
use crate::model::View;
use crate::stages::{Slot, Stages};

impl<T: Number> CudaStages<T> {
    /// Changes a buffer on the host.
    pub(super) fn on_host(cuda: &Cuda, buffer: &mut Buffer<C<T>>, change: impl FnOnce(&mut [C<T>])) -> Result<()> {
        let mut values = cuda.download(buffer)?;
        change(&mut values);
        cuda.upload(buffer, &values)
    }

    /// Makes exit waves of their transforms, which are all that engines that go from view to view leave. Errors of the views
    /// stay.
    pub(super) fn remake_exits(&mut self) -> Result<()> {
        let (seen, errors) = (self.seen()?, self.cuda.download(&self.frames.errors)?);
        self.frames.project(seen, ConstraintArgument::from(&NEUTRAL))?;
        self.cuda.upload(&mut self.frames.errors, &errors)
    }

    /// Shifts probes and objects as [`Stages::roll`] says.
    pub(super) fn roll_all(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()> {
        let (frame, [modes, layers]) = (self.model.frame, self.model.modes);
        let (pixels, kept) = (frame[0] * frame[1], !self.frames.waves.is_empty());
        if kept {
            self.remake_exits()?;
        }
        let planes = |values: &mut [C<T>], by: [i32; 2]| values.chunks_exact_mut(pixels).for_each(|plane| roll(plane, frame, by));
        for buffer in [&mut self.state.probe, &mut self.sums.before] {
            Self::on_host(&self.cuda, buffer, |values| {
                values.chunks_exact_mut(modes * pixels).zip(probes).for_each(|(probe, by)| planes(probe, *by));
            })?;
        }
        let storages = &self.model.storages;
        Self::on_host(&self.cuda, &mut self.state.object, |object| {
            for (s, by) in storages.iter().zip(objects) {
                let layers = &mut object[s.offset..s.offset + layers * s.layer()];
                layers.chunks_exact_mut(s.layer()).for_each(|plane| roll(plane, s.shape, *by));
            }
        })?;
        if !kept {
            return Ok(());
        }
        let (wave, views) = (self.model.exits() * pixels, &self.scan.views[self.model.own()]);
        Self::on_host(&self.cuda, &mut self.frames.exits, |exits| {
            exits.chunks_exact_mut(wave).zip(views).for_each(|(waves, view)| planes(waves, probes[view.probe as usize]));
        })?;
        let model = self.scan.model(&self.state);
        self.frames.begin(model, true)
    }

    /// Writes the state.
    pub(super) fn save_all(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        let share = &self.model.share;
        for (name, buffer) in [("probe", &self.state.probe), ("object", &self.state.object)] {
            writer.bytes(&format!("{prefix}{name}"), bytemuck::cast_slice(&self.cuda.download(buffer)?))?;
        }
        // Each part has those of its views.
        let own = self.cuda.download(&self.frames.waves)?;
        let first = self.model.own().start * self.model.exits() * self.model.pixels() * size_of::<C<T>>();
        writer.joined(&format!("{prefix}waves"), &[(first, bytemuck::cast_slice::<C<T>, u8>(&own))])?;
        drop(own);
        writer.bytes(&format!("{prefix}last"), bytemuck::cast_slice(&self.cuda.download(&self.sums.before)?))?;
        for (i, slot) in self.slots.iter().enumerate() {
            let part = |buffer: Option<&Buffer<C<T>>>| buffer.map_or_else(|| Ok(Vec::new()), |b| self.cuda.download(b));
            writer.bytes(&format!("{prefix}slot{i}.probe"), bytemuck::cast_slice(&part(slot.as_ref().map(|s| &s.probe))?))?;
            writer.bytes(&format!("{prefix}slot{i}.object"), bytemuck::cast_slice(&part(slot.as_ref().map(|s| &s.object))?))?;
        }
        T::write(writer, &format!("{prefix}errors"), &share.gathered(self.cuda.download(&self.frames.errors)?)?)?;
        writer.bytes(&format!("{prefix}views"), bytemuck::cast_slice(&self.scan.views))?;
        writer.f64s(&format!("{prefix}shifts"), self.scan.shifts.as_flattened())
    }

    /// Takes it back.
    pub(super) fn restore_all(&mut self, prefix: &str, reader: &Reader) -> Result<()> {
        let bytes = reader.bytes(&format!("{prefix}views"))?;
        let mut views = self.scan.views.clone();
        if bytes.len() != size_of_val(&views[..]) {
            return Err(reader.content_error("the number of views is not that of this input"));
        }
        bytemuck::cast_slice_mut::<View, u8>(&mut views).copy_from_slice(&bytes);
        if !views.iter().all(|v| self.inside(v)) {
            return Err(reader.content_error("a view lies outside the objects of this input"));
        }
        let mut shifts = self.scan.shifts.clone();
        reader.f64s_into(&format!("{prefix}shifts"), shifts.as_flattened_mut())?;
        self.set_views(&views, &shifts)?;
        if reader.count::<u8>(&format!("{prefix}waves"))? > 0 {
            self.frames.need()?;
        }
        for (i, slot) in [Slot::Gradient, Slot::Last, Slot::Direction].into_iter().enumerate() {
            let [probe, object] = ["probe", "object"].map(|part| waves(reader, &format!("{prefix}slot{i}.{part}")));
            let (probe, object) = (probe?, object?);
            if probe.is_empty() && object.is_empty() {
                continue;
            }
            let cuda = self.cuda.clone();
            let pair = self.slot(slot)?;
            if [probe.len(), object.len()] != [pair.probe.len(), pair.object.len()] {
                return Err(reader.content_error("the sizes of probe and object are not those of this input"));
            }
            cuda.upload(&mut pair.probe, &probe)?;
            cuda.upload(&mut pair.object, &object)?;
        }
        let (own, wave) = (self.model.own(), self.model.exits() * self.model.pixels());
        for (name, buffer, of_views) in [
            ("probe", &mut self.state.probe, 0),
            ("object", &mut self.state.object, 0),
            ("waves", &mut self.frames.waves, wave),
            ("last", &mut self.sums.before, 0),
        ] {
            let section = format!("{prefix}{name}");
            let length = reader.count::<u8>(&section)?;
            // Those of own views alone.
            let (first, all) = if of_views > 0 && length > 0 { (own.start * of_views, views.len() * of_views) } else { (0, buffer.len()) };
            if length != all * size_of::<C<T>>() {
                return Err(reader.content_error(format!("section `{section}` has {length} bytes: the input or the device has changed")));
            }
            let mut values = vec![Complex::default(); buffer.len()];
            reader.values_from::<u8>(&section, first * size_of::<C<T>>(), bytemuck::cast_slice_mut::<C<T>, u8>(&mut values))?;
            self.cuda.upload(buffer, &values)?;
        }
        let errors = T::read(reader, &format!("{prefix}errors"))?;
        if errors.len() != 3 * views.len() {
            return Err(reader.content_error("the number of views is not that of this input"));
        }
        self.cuda.upload(&mut self.frames.errors, &errors[3 * own.start..3 * own.end])
    }
}

/// Moves the pixels of a plane around the edges.
pub(super) fn roll<T: Number>(plane: &mut [C<T>], [height, width]: [usize; 2], by: [i32; 2]) {
    let from = |i: usize, by: i32, n: usize| (i as i64 - i64::from(by)).rem_euclid(n as i64) as usize;
    let old = plane.to_vec();
    for (i, value) in plane.iter_mut().enumerate() {
        *value = old[from(i / width, by[0], height) * width + from(i % width, by[1], width)];
    }
}

/// The values of a section.
pub(super) fn waves<T: Number>(reader: &Reader, name: &str) -> Result<Vec<C<T>>> {
    let bytes = reader.bytes(name)?;
    let mut values = vec![Complex::default(); bytes.len() / size_of::<C<T>>()];
    if bytes.len() % size_of::<C<T>>() != 0 {
        return Err(reader.content_error(format!("section `{name}` does not hold whole values")));
    }
    bytemuck::cast_slice_mut::<C<T>, u8>(&mut values).copy_from_slice(&bytes);
    Ok(values)
}
