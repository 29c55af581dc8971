//! A stack of fields: whole where a format has room for one more axis, and layer by layer where it has not.

use zellige_engine::record::{Field, Values};

/// Layers that are drawn: the first ones, for a look.
pub(crate) const DRAWN: usize = 4;

/// Layer `k` of a stack, a field of its own.
///
/// # Panics
/// If there is no such layer.
pub fn layer(stack: &Field, k: usize) -> Field {
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
        share: None,
        palette: stack.palette,
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring, Record};

    use super::*;
    use crate::{Format, Stamp, vti, write_records};

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
            let (path, layer) = (folder.path().join("results.h5"), values.len() / 6);
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
