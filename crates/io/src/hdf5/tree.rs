//! Trees of groups and datasets, written as other programs want to find them: attributes are texts of variable length, as h5py
//! writes them and PtyPy compares them.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use num_complex::Complex;
use rust_hdf5::{Complex32, DatatypeMessage, H5Dataset, H5File, H5Group, H5Type, Hdf5Error, VarLenUnicode};
use zellige_engine::error::Result;
use zellige_engine::record::{Archive, Axis, Content, Leaf, Wave};

use super::{File, create, guarded};
use crate::tensor::{Elements, Tensor};

/// A group, a dataset or a link at a path in the file; groups on the way are made.
pub struct Node<'a> {
    /// `entry_1/data_1/data`.
    pub path: String,
    /// Value at the path.
    pub value: Value<'a>,
    /// Attributes.
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// Value at a path of the tree.
pub enum Value<'a> {
    /// A group.
    Group,
    /// A text of variable length.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i64),
    /// An array.
    Array(&'a Tensor),
    /// An array that the node owns.
    Own(Tensor),
    /// An array in pieces along its first axis, deflated.
    Packed(&'a Tensor),
    /// A soft link to another path.
    Link(String),
}

/// Value of an attribute.
pub enum Attribute {
    /// A text.
    Text(String),
    /// Whole numbers.
    Whole(Vec<i32>),
    /// Texts.
    Texts(Vec<String>),
    /// Real numbers.
    Reals(Vec<f64>),
}

impl<'a> Node<'a> {
    /// A node without attributes.
    pub fn new(path: impl Into<String>, value: Value<'a>) -> Self {
        Self { path: path.into(), value, attributes: Vec::new() }
    }

    /// Adds a text attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        self.attributes.push((name, Attribute::Text(text.into())));
        self
    }

    /// A text.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(path, Value::Text(text.into()))
    }

    /// A number.
    pub fn number(path: impl Into<String>, value: f64) -> Self {
        Self::new(path, Value::Number(value))
    }
}

/// Writes a solver's archive.
pub fn write_archive(path: impl AsRef<Path>, archive: &Archive) -> Result<()> {
    let node = |leaf: &Leaf| {
        let value = match &leaf.content {
            Content::Group => Value::Group,
            Content::Text(text) => Value::Text(text.clone()),
            Content::Number(value) => Value::Number(*value),
            Content::Whole(value) => Value::Whole(*value),
            Content::Wholes(shape, values) => Value::Own(Tensor { shape: shape.clone(), elements: Elements::I32(values.clone()) }),
            Content::Reals(shape, values) => Value::Own(Tensor { shape: shape.clone(), elements: Elements::F64(values.clone()) }),
            Content::Complex(shape, values) => Value::Own(Tensor { shape: shape.clone(), elements: Elements::Complex(values.clone()) }),
            Content::Link(target) => Value::Link(target.clone()),
        };
        let attributes = leaf.attributes.iter().map(|(name, text)| (*name, Attribute::Text(text.clone()))).collect();
        Node { path: leaf.path.clone(), value, attributes }
    };
    write_tree(path, &archive.leaves.iter().map(node).collect::<Vec<_>>())
}

/// Puts a wave into a file as one complex dataset of its name, `[layers][rows][columns]`, with the attributes of a field's axes.
pub(super) fn put_wave(file: &H5File, name: &str, wave: &Wave) -> Result<(), Hdf5Error> {
    let tensor = Tensor { shape: wave.shape.to_vec(), elements: Elements::Complex(wave.values.clone()) };
    let mut node = Node::new(name, Value::Array(&tensor)).with("title", wave.title.clone());
    // Slowest axis first, as the shape; layers have none.
    let reals = |f: &dyn Fn(&Axis) -> f64| Attribute::Reals(wave.axes.iter().rev().map(f).collect());
    let texts = |f: &dyn Fn(&Axis) -> &String| Attribute::Texts(wave.axes.iter().rev().map(|a| f(a).clone()).collect());
    node.attributes.push(("axis_names", texts(&|a| &a.name)));
    node.attributes.push(("axis_units", texts(&|a| &a.unit)));
    node.attributes.push(("grid_origin", reals(&|a| a.origin)));
    node.attributes.push(("grid_spacing", reals(&|a| a.spacing)));
    put(file, &[node])
}

/// Reads a dataset of complex numbers as a wave, a plane or layers of planes; none if it is of another kind. Pixels are those that
/// zellige wrote, or what PtyPy (`_psize`) and CXI (`x_pixel_size`) put beside the dataset, or 1 without a unit.
pub fn read_wave(path: impl AsRef<Path>, name: &str) -> Result<Option<Wave>> {
    let path = path.as_ref();
    let file = File::open(path)?;
    let tensor = file.read(name)?;
    let (Elements::Complex(values), [.., rows, columns]) = (tensor.elements, &tensor.shape[..]) else { return Ok(None) };
    let (rows, columns) = (*rows, *columns);
    let layers = tensor.shape[..tensor.shape.len() - 2].iter().product();
    let own = guarded(path, "read", || {
        let dataset = H5File::open(path)?.dataset(name.trim_matches('/'))?;
        Ok(dataset.attr("grid_spacing").and_then(|a| a.read_numeric_as::<f64>()).ok())
    })?;
    let beside =
        |leaf: &str| name.trim_matches('/').rsplit_once('/').map_or_else(|| leaf.to_owned(), |(group, _)| format!("{group}/{leaf}"));
    let numbers = |leaf: &str| Ok(file.maybe(&beside(leaf))?.and_then(|t| t.to_reals()).unwrap_or_default());
    // Slowest axis first in all three.
    let pixel = match own {
        Some(spacing) => spacing,
        None => match numbers("_psize")? {
            found if found.len() == 2 => found,
            _ => [numbers("y_pixel_size")?, numbers("x_pixel_size")?].concat(),
        },
    };
    let axis = |d: usize, len: usize| match pixel[..] {
        [dy, dx] if dx > 0.0 && dy > 0.0 => Axis { unit: "m".into(), ..Axis::bare(d, 0.0, [dx, dy][d], len) },
        _ => Axis::bare(d, 0.0, 1.0, len),
    };
    let shape = [layers, rows, columns];
    Ok(Some(Wave {
        name: name.into(),
        title: name.into(),
        shape,
        axes: [axis(0, columns), axis(1, rows)],
        values,
        brightest: None,
        live: false,
    }))
}

/// Writes a file whole or not at all.
pub fn write_tree(path: impl AsRef<Path>, nodes: &[Node]) -> Result<()> {
    create(path.as_ref(), |file| put(file, nodes))
}

fn put(file: &H5File, nodes: &[Node]) -> Result<(), Hdf5Error> {
    let mut groups = HashMap::new();
    for node in nodes {
        let (parent, name) = node.path.rsplit_once('/').unwrap_or(("", &node.path));
        if let Value::Group = node.value {
            let group = group(file, &mut groups, &node.path)?;
            attributes(&group, &node.attributes)?;
            continue;
        }
        let parent = group(file, &mut groups, parent)?;
        let dataset = match &node.value {
            Value::Group => continue,
            Value::Link(target) => {
                parent.create_soft_link(name, &format!("/{}", target.trim_start_matches('/')))?;
                continue;
            }
            Value::Text(text) => {
                let bytes = text.as_bytes();
                let size = bytes.len().max(1);
                let datatype = DatatypeMessage::fixed_string_utf8(size as u32);
                let dataset = parent.new_dataset::<u8>().datatype(datatype).scalar().create(name)?;
                let mut padded = bytes.to_vec();
                padded.resize(size, 0);
                dataset.write_raw_bytes(&padded)?;
                dataset
            }
            Value::Number(value) => scalar(&parent, name, *value)?,
            Value::Whole(value) => scalar(&parent, name, *value)?,
            Value::Array(tensor) => array(&parent, name, tensor, false)?,
            Value::Own(tensor) => array(&parent, name, tensor, false)?,
            Value::Packed(tensor) => array(&parent, name, tensor, true)?,
        };
        for (name, value) in &node.attributes {
            match value {
                Attribute::Text(text) => dataset.new_attr::<VarLenUnicode>().create(name)?.write_string(text)?,
                Attribute::Whole(values) => super::set_array(&dataset, name, values)?,
                Attribute::Reals(values) => super::set_array(&dataset, name, values)?,
                Attribute::Texts(texts) => {
                    let words: Vec<_> = texts.iter().map(|t| super::FixedText::new(t)).collect();
                    super::set_array(&dataset, name, &words)?;
                }
            }
        }
    }
    Ok(())
}

fn group(file: &H5File, groups: &mut HashMap<String, Rc<H5Group>>, path: &str) -> Result<Rc<H5Group>, Hdf5Error> {
    if path.is_empty() {
        return Ok(Rc::new(file.root_group()));
    }
    if let Some(found) = groups.get(path) {
        return Ok(found.clone());
    }
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let made = Rc::new(group(file, groups, parent)?.create_group(name)?);
    groups.insert(path.to_owned(), made.clone());
    Ok(made)
}

fn attributes(group: &H5Group, all: &[(&'static str, Attribute)]) -> Result<(), Hdf5Error> {
    for (name, value) in all {
        match value {
            Attribute::Text(text) => group.set_attr_string(name, text)?,
            Attribute::Whole(values) => group.set_attr_array_numeric(name, values)?,
            Attribute::Reals(values) => group.set_attr_array_numeric(name, values)?,
            Attribute::Texts(texts) => {
                let words: Vec<_> = texts.iter().map(|t| super::FixedText::new(t)).collect();
                group.set_attr_array_numeric(name, &words)?;
            }
        }
    }
    Ok(())
}

fn scalar<T: H5Type>(parent: &H5Group, name: &str, value: T) -> Result<H5Dataset, Hdf5Error> {
    let dataset = parent.new_dataset::<T>().scalar().create(name)?;
    dataset.write_raw(&[value])?;
    Ok(dataset)
}

fn array(parent: &H5Group, name: &str, tensor: &Tensor, packed: bool) -> Result<H5Dataset, Hdf5Error> {
    fn put<T: H5Type>(parent: &H5Group, name: &str, shape: &[usize], values: &[T], packed: bool) -> Result<H5Dataset, Hdf5Error> {
        let builder = parent.new_dataset::<T>().shape(shape);
        let dataset = if packed && shape.len() > 1 && !values.is_empty() {
            let mut chunk = shape.to_vec();
            chunk[0] = 1;
            builder.chunk(&chunk).shuffle_deflate(1).create(name)?
        } else {
            builder.create(name)?
        };
        if !values.is_empty() {
            dataset.write_raw(values)?;
        }
        Ok(dataset)
    }
    let shape = &tensor.shape;
    match &tensor.elements {
        Elements::U16(v) => put(parent, name, shape, v, packed),
        Elements::I32(v) => put(parent, name, shape, v, packed),
        Elements::F32(v) => put(parent, name, shape, v, packed),
        Elements::F64(v) => put(parent, name, shape, v, packed),
        Elements::Complex(v) => {
            let values: Vec<Complex32> = v.iter().map(|z: &Complex<f32>| Complex32 { re: z.re, im: z.im }).collect();
            put(parent, name, shape, &values, packed)
        }
    }
}
