//! Particles of a file, by the cells that they are in.

use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_io::source::split_hdf5;
use zellige_io::{hdf5, npz};

use super::Batch;
use crate::config::species::FileParticles;
use crate::config::units::{C, E, M_E};
use crate::setup::input;

/// Description of a box, as far as particles are placed by it.
pub(crate) struct Bounds<'a> {
    /// Lower corner and size of a cell, in the input's units.
    pub lattice: [[f64; 2]; 2],
    /// Columns that are ever in the box, and rows.
    pub cells: [usize; 2],
    /// 1 or 2.
    pub dimensions: usize,
    /// Mass of a particle, `m_e`, and its charge, `e`.
    pub mass: f64,
    pub charge: f64,
    /// True if the input is in SI units.
    pub si: bool,
    /// Real particles of a cell at the density `n_0`, as files count them.
    pub cell: f64,
    /// Key of the particles in the input.
    pub path: &'a str,
}

/// Particles of a species, sorted by cell, in a cell by their number in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Rows of the box.
    rows: usize,
    /// First particle of each cell and the number of all, columns one behind the other.
    first: Vec<usize>,
    /// Offsets from the centre of the cell.
    s: Vec<f64>,
    t: Vec<f64>,
    u: [Vec<f64>; 3],
    /// Density that each stands for, `n_0`.
    density: Vec<f64>,
    /// Number in the file, from 1.
    number: Vec<u64>,
    /// Particles outside the box, which are left out.
    pub outside: usize,
    /// True if momenta are those of half a step before.
    pub behind: bool,
}

/// A particle of a file in the box.
struct Placed {
    cell: usize,
    /// Its number in the file, from 0.
    number: usize,
    offset: [f64; 2],
}

/// Columns of a file, one value per particle.
struct Columns {
    position: Vec<Vec<f64>>,
    u: [Vec<f64>; 3],
    weight: Vec<f64>,
}

impl Listed {
    /// Reads the particles that the input names; relative to `folder`.
    pub(crate) fn read(config: &FileParticles, bounds: &Bounds<'_>, folder: &Path) -> Result<Self> {
        let name = config.file.to_string_lossy().into_owned();
        let key = format!("{}.file", bounds.path);
        let columns = if let Some((file, group)) = split_hdf5(&name) {
            openpmd(config, bounds, &folder.join(file), group).map_err(|e| e.of_key(&key))?
        } else if name.to_ascii_lowercase().ends_with(".npz") {
            archive(config, bounds, &folder.join(&config.file)).map_err(|e| e.of_key(&key))?
        } else {
            let problem = Problem::new("", format!("`{name}` is of no known type"));
            return Err(input(
                &key,
                problem.allowed("`NAME.npz`, `NAME.h5:/data/120/particles/NAME`").hint("`numpy.savez(NAME, x=.., ux=.., weight=..)`"),
            ));
        };
        columns.check(&key, &name)?;
        Ok(Self::sorted(&columns, bounds, config.half_step_behind))
    }

    /// Sorts particles by cell.
    fn sorted(columns: &Columns, bounds: &Bounds<'_>, behind: bool) -> Self {
        let [width, rows] = bounds.cells;
        let [origin, h] = bounds.lattice;
        let n = columns.weight.len();
        // A position in cells from the corner. The upper side belongs to the last cell.
        let place = |d: usize, number: usize, cells: usize| -> Option<(usize, f64)> {
            if d >= bounds.dimensions {
                return Some((0, 0.0));
            }
            let at = (columns.position[d][number] - origin[d]) / h[d];
            let cell = (at as usize).min(cells - usize::from(at == cells as f64));
            (at >= 0.0 && cell < cells).then_some((cell, at - cell as f64 - 0.5))
        };
        let placed = (0..n).filter_map(|number| {
            let ((i, s), (j, t)) = (place(0, number, width)?, place(1, number, rows)?);
            Some(Placed { cell: i * rows + j, number, offset: [s, t] })
        });
        let placed: Vec<Placed> = placed.collect();
        let mut first = vec![0; width * rows + 1];
        for p in &placed {
            first[p.cell + 1] += 1;
        }
        for cell in 0..width * rows {
            first[cell + 1] += first[cell];
        }
        let (mut next, mut order) = (first.clone(), vec![0; placed.len()]);
        for (k, p) in placed.iter().enumerate() {
            order[next[p.cell]] = k;
            next[p.cell] += 1;
        }
        let sorted = || order.iter().map(|k| &placed[*k]);
        let column = |values: &[f64]| sorted().map(|p| values[p.number]).collect::<Vec<f64>>();
        Self {
            rows,
            s: sorted().map(|p| p.offset[0]).collect(),
            t: sorted().map(|p| p.offset[1]).collect(),
            u: columns.u.each_ref().map(|u| column(u)),
            density: column(&columns.weight).into_iter().map(|weight| weight / bounds.cell).collect(),
            number: sorted().map(|p| p.number as u64 + 1).collect(),
            outside: n - placed.len(),
            first,
            behind,
        }
    }

    /// Number of particles in the box, ahead of a window included.
    pub fn len(&self) -> usize {
        self.density.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Particles of each column of cells.
    pub fn of_columns(&self) -> Vec<usize> {
        self.first[..].windows(self.rows + 1).step_by(self.rows).map(|w| w[self.rows] - w[0]).collect()
    }

    /// Most particles in a cell.
    pub fn fullest(&self) -> usize {
        self.first.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }

    /// Mean density that a particle stands for, `n_0`, and whether all stand for the same.
    pub fn mean(&self) -> (f64, bool) {
        let mean = self.density.iter().sum::<f64>() / self.len().max(1) as f64;
        (mean, self.density.iter().all(|d| (d / mean - 1.0).abs() < 1e-12))
    }

    /// Density of each cell, `n_0`, rows one behind the other.
    pub fn densities(&self) -> Vec<f64> {
        let width = (self.first.len() - 1) / self.rows;
        let cell = |i: usize, j: usize| &self.density[self.first[i * self.rows + j]..self.first[i * self.rows + j + 1]];
        (0..self.rows).flat_map(|j| (0..width).map(move |i| cell(i, j).iter().sum())).collect()
    }

    /// Mean and standard deviation of each component of the momentum, over real particles.
    pub fn moments(&self) -> [[f64; 2]; 3] {
        let all: f64 = self.density.iter().sum();
        [0, 1, 2].map(|c| {
            let mean = self.u[c].iter().zip(&self.density).map(|(u, n)| u * n).sum::<f64>() / all;
            let square = self.u[c].iter().zip(&self.density).map(|(u, n)| (u - mean).powi(2) * n).sum::<f64>() / all;
            [mean, square.sqrt()]
        })
    }

    /// Puts the particles of the batch's cells into it, each a factor of its density over `weight`.
    pub(super) fn take(&self, weighted: bool, tagged: bool, weight: f64, out: &mut Batch) {
        let cell = |c: usize, out: &Batch| (out.columns[c] as usize) * self.rows + out.cells[c][1] as usize;
        out.wanted.clear();
        for c in 0..out.cells.len() {
            let cell = cell(c, out);
            out.wanted.push((self.first[cell + 1] - self.first[cell]) as u32);
        }
        out.assign_counts();
        let from: Vec<usize> =
            (0..out.len()).map(|p| self.first[cell(out.cell[p] as usize, out)] + out.draws.numbers[p] as usize).collect();
        let picked = |values: &[f64]| from.iter().map(|k| values[*k]).collect::<Vec<f64>>();
        (out.s, out.t) = (picked(&self.s), picked(&self.t));
        out.u = [0, 1, 2].map(|c| picked(&self.u[c]));
        if weighted {
            out.weight = from.iter().map(|k| self.density[*k] / weight).collect();
        }
        if tagged {
            out.tag = from.iter().map(|k| self.number[*k]).collect();
        }
    }
}

impl Columns {
    /// Refuses columns of different lengths and values that cannot be.
    fn check(&self, key: &str, name: &str) -> Result<()> {
        let n = self.weight.len();
        let problem = |message: String| Err(input(key, Problem::new("", message)));
        let named = ["x", "y"].into_iter().zip(&self.position).chain(["ux", "uy", "uz"].into_iter().zip(&self.u));
        for (column, values) in named.chain([("weight", &self.weight)]) {
            if values.len() != n {
                return problem(format!("`{name}` holds {} values of `{column}` for {n} particles", values.len()));
            }
            let sound = |v: &f64| v.is_finite() && (column != "weight" || *v > 0.0);
            if let Some(k) = values.iter().position(|v| !sound(v)) {
                let allowed = if column == "weight" { "finite and above 0" } else { "finite" };
                return problem(format!("`{name}` holds {} as `{column}` of particle {k} (allowed: {allowed})", values[k]));
            }
        }
        if n == 0 { problem(format!("`{name}` holds no particle")) } else { Ok(()) }
    }
}

/// Columns of an archive of NumPy; components of the momentum that are not there are zero.
fn archive(config: &FileParticles, bounds: &Bounds<'_>, path: &Path) -> Result<Columns> {
    let mut archive = npz::Archive::open(path)?;
    let complex = |name: &str| Error::Content { path: PathBuf::from(path), message: format!("the array `{name}` holds complex numbers") };
    let mut read = |name: &str| archive.read(name)?.elements.into_reals().ok_or_else(|| complex(name));
    let position = ["x", "y"][..bounds.dimensions].iter().map(|name| read(name)).collect::<Result<Vec<_>>>()?;
    let n = position[0].len();
    let weight = match config.weight {
        Some(weight) => vec![weight; n],
        None => read("weight")?,
    };
    let mut u: [Vec<f64>; 3] = Default::default();
    for (name, u) in ["ux", "uy", "uz"].into_iter().zip(&mut u) {
        *u = if archive.has(name) { archive.read(name)?.elements.into_reals().ok_or_else(|| complex(name))? } else { vec![0.0; n] };
    }
    // One number is the same for all.
    let weight = if weight.len() == 1 { vec![weight[0]; n] } else { weight };
    Ok(Columns { position, u, weight })
}

/// Relative difference of a charge or mass of a file from that of the species that is let through: of constants in other digits.
const ROUNDED: f64 = 1e-3;
/// Masses and charges below which a file has SI units: in those of an electron no particle has so little.
const SMALL: f64 = 1e-12;

/// Columns of a species of openPMD: `position`, `momentum`, `weighting`, in SI units by their `unitSI`. `mass` and `charge`, where
/// the file has them, must be those of the species.
fn openpmd(config: &FileParticles, bounds: &Bounds<'_>, path: &Path, group: &str) -> Result<Columns> {
    let file = hdf5::File::open(path)?;
    let axes = config.axes.clone().unwrap_or_else(|| ["x", "y", "z"].map(String::from));
    let group = group.trim_matches('/');
    let scaled = |name: &str| -> Result<Option<Vec<f64>>> {
        let Some(tensor) = file.maybe(name)? else { return Ok(None) };
        let unit = hdf5::placement(path, name)?.unit_si.unwrap_or(1.0);
        let complex = || file.content_error(format!("the dataset `{name}` holds complex numbers"));
        Ok(Some(tensor.elements.into_reals().ok_or_else(complex)?.into_iter().map(|v| v * unit).collect()))
    };
    // A constant record has one value for all in an attribute.
    let constant = |name: &str| -> Result<Option<f64>> {
        let attributes = hdf5::Attributes::of(path, name)?;
        Ok(attributes.real("value").map(|value| value * attributes.real("unitSI").unwrap_or(1.0)))
    };
    let record = |name: &str, n: usize| -> Result<Option<Vec<f64>>> {
        scaled(name)?.map_or_else(|| Ok(constant(name)?.map(|value| vec![value; n])), |values| Ok(Some(values)))
    };
    let needed = |name: String, remedy: &str| {
        scaled(&name)?.ok_or_else(|| file.content_error(format!("it has no dataset `{name}`{remedy} (datasets: {})", file.listing())))
    };
    let mut position = Vec::new();
    for axis in &axes[..bounds.dimensions] {
        let mut values = needed(format!("{group}/position/{axis}"), "; `axes` names the components that become x, y and z")?;
        if let Some(offset) = record(&format!("{group}/positionOffset/{axis}"), values.len())? {
            values.iter_mut().zip(offset).for_each(|(v, offset)| *v += offset);
        }
        position.push(values);
    }
    let n = position[0].len();
    // p = m c u, and a mass without SI units is in those of an electron: zellige then writes c as the unit of p.
    let mass = bounds.mass * if bounds.si { M_E } else { 1.0 };
    for (name, own, unit) in [("mass", bounds.mass, M_E), ("charge", bounds.charge, E)] {
        let expected = own * if bounds.si { unit } else { 1.0 };
        let other = |found: &f64| (found - expected).abs() > ROUNDED * expected.abs();
        let Some(found) = record(&format!("{group}/{name}"), 1)?.and_then(|values| values.into_iter().find(other)) else { continue };
        let problem = if !bounds.si && found != 0.0 && found.abs() < SMALL {
            let problem = Problem::new("", format!("`{group}` has SI units (its `{name}` is {found:e}), and the input has none"));
            problem.hint("give the input SI units (`pic.units`), or convert the file")
        } else {
            let si = if bounds.si { " in SI units" } else { "" };
            let problem = Problem::new("", format!("the `{name}` of `{group}` is {found:e}{si}, that of the species {expected:e}"));
            problem.hint(format!("give the species the `{name}` of the file, {:e}", if bounds.si { found / unit } else { found }))
        };
        return Err(input(&format!("{}.file", bounds.path), problem));
    }
    if !file.children(group)?.iter().any(|name| name == "momentum") {
        return Err(file.content_error(format!("`{group}` has no record `momentum` (datasets: {})", file.listing())));
    }
    let mut u: [Vec<f64>; 3] = Default::default();
    for (axis, u) in axes.iter().zip(&mut u) {
        let momentum = record(&format!("{group}/momentum/{axis}"), n)?.unwrap_or_else(|| vec![0.0; n]);
        *u = momentum.into_iter().map(|p| p / (mass * C)).collect();
    }
    let weighting = format!("{group}/weighting");
    let weight = match config.weight {
        Some(weight) => vec![weight; n],
        None => record(&weighting, n)?.map_or_else(|| needed(weighting, "; or give `weight`"), Ok)?,
    };
    Ok(Columns { position, u, weight })
}
