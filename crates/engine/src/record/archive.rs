//! Trees for files of other programs: [`Archive`].

use num_complex::Complex;

/// A file with a tree of its own, as another program wants to find it.
#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    /// File-safe name.
    pub name: String,
    /// Ending of the file: `ptyr`, `cxi`. All of them are HDF5.
    pub ending: &'static str,
    /// Entries of the archive; groups on the way are created.
    pub leaves: Vec<Leaf>,
}

/// A group, a dataset or a link of an [`Archive`].
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Path in the file, `content/probe/data`.
    pub path: String,
    /// Content of the entry.
    pub content: Content,
    /// Attributes, texts.
    pub attributes: Vec<(&'static str, String)>,
}

/// Content at a path of an [`Archive`].
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A group.
    Group,
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i64),
    /// Whole numbers of a shape.
    Wholes(Vec<usize>, Vec<i32>),
    /// Real numbers of a shape.
    Reals(Vec<usize>, Vec<f64>),
    /// Complex numbers of a shape.
    Complex(Vec<usize>, Vec<Complex<f32>>),
    /// The path of something else in the file.
    Link(String),
}
