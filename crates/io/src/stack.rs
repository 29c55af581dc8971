//! A stack of fields: whole where a format has room for one more axis, and layer by layer where it has not.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_engine::record::{Field, Palette, Values};

use crate::{Files, Format, bov, check_axes, csv, hdf5, npy, picture, vti};

/// Layers that are drawn: the first ones, for a look.
const DRAWN: usize = 4;

/// Layer `k`, a field of its own.
fn layer(stack: &Field, k: usize) -> Field {
    let (counter, axes) = stack.axes.split_last().expect("a stack has axes");
    let len: usize = axes.iter().map(|a| a.len).product();
    let part = k * len..(k + 1) * len;
    Field {
        name: stack.name.clone(),
        title: format!("{}, {} = {k}", stack.title, counter.name),
        unit: stack.unit.clone(),
        dimension: stack.dimension,
        axes: axes.to_vec(),
        centring: stack.centring,
        values: match &stack.values {
            Values::F32(v) => Values::F32(v[part].to_vec()),
            Values::F64(v) => Values::F64(v[part].to_vec()),
        },
        palette: stack.palette,
    }
}

impl Files<'_> {
    /// `u.npy` and `u.h5` hold all layers; `u_0000.vti` and so on one each, which `u.pvd` lists by their numbers.
    pub(crate) fn stack(&mut self, stack: &Field) -> Result<()> {
        let (name, formats) = (&stack.name, self.formats);
        let wants = |format| formats.contains(&format);
        check_axes(&self.folder.join(name), "stack", stack, 2..=4)?;
        if wants(Format::Npy) {
            self.push(name, "npy", |path| npy::write(path, &stack.shape(), &stack.values))?;
        }
        if wants(Format::Hdf5) {
            self.push(name, "h5", |path| hdf5::write_stack(path, stack))?;
        }
        let draws = wants(Format::Png) && stack.palette != Palette::Undrawn;
        let each = self.images || wants(Format::Bov) || wants(Format::Csv);
        let layers = stack.axes.last().map_or(0, |a| a.len);
        let mut series = Vec::new();
        for k in 0..if each { layers } else { layers.min(DRAWN) } {
            let (stem, time) = (format!("{}_{k:04}", self.stem(name)), Some(k as f64));
            let layer = layer(stack, k);
            let mut write = |ending: &str, write: &dyn Fn(&Path) -> Result<()>| {
                let path = self.folder.join(format!("{stem}.{ending}"));
                write(&path)?;
                self.written.push(path);
                Ok(())
            };
            if self.images {
                write("vti", &|path| vti::write(path, &layer, time))?;
                series.push((k as f64, format!("{stem}.vti")));
            }
            if wants(Format::Bov) {
                write("bov", &|path| bov::write(path, &layer, time))?;
            }
            if wants(Format::Csv) {
                write("csv", &|path| csv::write_field(path, &layer))?;
            }
            if draws && k < DRAWN {
                write("png", &|path| picture::write_field(path, &layer, &picture::Options::default()))?;
            }
        }
        if self.images {
            self.push(name, "pvd", |path| vti::write_series(path, &series))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring, Record};

    use super::*;
    use crate::{Stamp, write_records};

    #[test]
    fn a_stack_is_whole_where_it_can_be_and_a_series_where_not() {
        let folder = tempfile::tempdir().unwrap();
        for space in [false, true] {
            let lens: &[usize] = if space { &[4, 3, 2, 6] } else { &[4, 3, 6] };
            let axis = |(i, len): (usize, &usize)| Axis::bare(i.min(2), 0.5, 0.25, *len);
            let mut axes: Vec<Axis> = lens.iter().enumerate().map(axis).collect();
            let last = axes.len() - 1;
            axes[last] = Axis { name: "k".into(), unit: String::new(), origin: 0.0, spacing: 1.0, len: 6 };
            let values: Vec<f64> = (0..lens.iter().product::<usize>()).map(|i| i as f64).collect();
            let stack = Field::bare("u", axes, Centring::Node, Values::F64(values.clone()));
            let formats = [Format::Npy, Format::Vti, Format::Bov, Format::Hdf5, Format::Png];
            let written = write_records(folder.path(), &[Record::Stack(stack.clone())], &formats, Stamp::default()).unwrap();
            // Two whole, six layers twice, four pictures, a list.
            assert_eq!(written.len(), 2 + 12 + 4 + 1, "{written:?}");
            let whole = crate::npy::read(folder.path().join("u.npy")).unwrap();
            assert_eq!((whole.shape, whole.values), (stack.shape(), values.clone()));
            let (path, layer) = (folder.path().join("u.h5"), values.len() / 6);
            let whole = crate::hdf5::read(&path, "u").unwrap();
            assert_eq!((whole.shape, &whole.values), (stack.shape(), &values));
            assert_eq!(crate::hdf5::read_field(&path, "u").unwrap().axes, stack.axes);
            let third = vti::read(folder.path().join("u_0002.vti")).unwrap();
            assert_eq!(third.values, Values::F64(values[2 * layer..3 * layer].to_vec()));
            assert_eq!((third.title.as_str(), third.axes[0].origin), ("u, k = 2", 0.5));
            let series = vti::read_series(folder.path().join("u.pvd")).unwrap();
            assert!(series.len() == 6 && series[5] == (5.0, "u_0005.vti".into()), "{series:?}");
        }
    }
}
