//! Exchange with the parts of a run above and below this one: `strips.cu`, and the slabs of particles.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Launch, Pool, Recipe};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::{Place, Slabs};

use super::field_arguments::{Taps, YeeGrid};
use super::fields::{bytes, real_name};
use super::program::FILES;
use crate::grid::{ABOVE, BELOW, Grid, ParticleSide};
use crate::stages::Precision;
use crate::stages::part::Part;

/// Rows of a strip: `STRIP` of strips.cu.
const STRIP: usize = 3;

/// Bytes that slabs begin at multiples of: those of the largest number of a kernel.
const ALIGNED: usize = 16;

const NAMES: &[&str] = &["send_sums", "add_sums", "send_fields", "take_fields", "send_current", "send_charge"];

/// Recipe of the kernels for a number format.
pub(super) fn recipe(precision: Precision) -> Recipe {
    let defines = [("REAL".to_owned(), real_name(precision).to_owned())];
    Recipe::of_files(&format!("pic strips {}", real_name(precision)), FILES, &["strips.cu"], &defines, NAMES)
}

const _: () = assert!(ABOVE == STRIP && BELOW < STRIP, "strips.cu counts on it");

/// Ends of axis 1 at which another part goes on, each with the place that it has in common with that part; one of them for
/// everything that is exchanged.
#[derive(Debug, Clone)]
pub(super) struct Ends(Vec<(usize, Place)>);

impl Ends {
    /// The ends of a part.
    pub(super) fn new(part: &Part, grid: &Grid) -> Self {
        let height = grid.cells[1] as isize;
        let held = grid.held();
        let beyond = |end: usize| {
            let row = if end == 0 { held.start as isize - 1 } else { held.end as isize };
            part.holder(row.rem_euclid(height))
        };
        let place = |end: usize| {
            let other = beyond(end);
            // The lower end here is the upper one there, behind the lower one where that has a neighbour.
            let theirs = usize::from(end == 0 && part.grid_of(grid, other).continues(0));
            (end, Place { part: other, theirs, bytes: 0 })
        };
        Self([0, 1].into_iter().filter(|end| grid.continues(*end)).map(place).collect())
    }

    /// Slabs of so many bytes at each end.
    pub(super) fn slabs(&self, cuda: &Cuda, pool: &Pool, part: &Part, bytes: usize) -> Result<Slabs> {
        let bytes = bytes.next_multiple_of(ALIGNED);
        let places: Vec<Place> = self.0.iter().map(|(_, place)| Place { bytes, ..*place }).collect();
        Slabs::new(cuda, pool, part.links(), &places, "exchange between parts")
    }

    /// Addresses of slabs, of what goes [next](Slabs::next) or came [last](Slabs::last), at the lower and the upper end; 0 where
    /// there is no other part.
    pub(super) fn addresses(&self, slabs: &Slabs, which: fn(&Slabs, usize) -> u64) -> [u64; 2] {
        let mut addresses = [0; 2];
        self.0.iter().enumerate().for_each(|(k, (end, _))| addresses[*end] = which(slabs, k));
        addresses
    }
}

/// Slabs for rows of nodes.
#[derive(Debug)]
pub(super) struct Beside {
    kernels: Vec<Kernel>,
    ends: Ends,
    pitch: usize,
    sums: Slabs,
    fields: Slabs,
    /// Rows across an end that filters of the current and of the charge reach, and the slabs for them.
    filter: Option<(usize, Slabs, Slabs)>,
}

impl Beside {
    /// Slabs of a part, of which the filter reaches over `reach` rows. None where no other part is.
    pub(super) fn new(cuda: &Cuda, pool: &Pool, part: &Part, grid: &Grid, precision: Precision, reach: usize) -> Result<Option<Self>> {
        if grid.part.is_none() {
            return Ok(None);
        }
        let lowest = part.lowest();
        // Rows of another part come as they were deposited: that of a wall which takes particles, zero for a filter, must not be among them.
        let needed = if reach > 0 { reach + usize::from(grid.particles[1].contains(&ParticleSide::Absorb)) } else { 0 };
        if needed > lowest {
            let problem = Problem::new("--parts", format!("the filter of the current needs {needed} rows beside it, a part has {lowest}"));
            return Err(Error::input("command line", problem.hint("use fewer parts or fewer passes of the filter along y")));
        }
        let program = recipe(precision).build(cuda)?;
        let kernels = NAMES.iter().map(|name| program.kernel(name)).collect::<Result<_>>()?;
        let (ends, pitch, real) = (Ends::new(part, grid), grid.pitch(), bytes(precision));
        let slabs = |values: usize, size: usize| ends.slabs(cuda, pool, part, values * pitch * size);
        let filter = if reach == 0 { None } else { Some((reach, slabs(3 * reach, real)?, slabs(reach, 8)?)) };
        Ok(Some(Self { sums: slabs(3 * STRIP, 8)?, fields: slabs(6 * STRIP, real)?, filter, pitch, ends, kernels }))
    }

    /// Launch of a thread for each value of `rows` rows at each end.
    fn launch(&self, name: &str, rows: usize) -> Launch<'_> {
        let number = NAMES.iter().position(|n| *n == name).expect("the kernel is in the list");
        self.kernels[number].launch((self.pitch.div_ceil(256) as u32, rows as u32, 2), 256)
    }

    /// Completes integer sums: deposits on guards go to their nodes, and the first row of the part above is that of its guard.
    /// Guards of `clear` are zero afterwards. Slabs of `along` go with them.
    pub(super) fn complete(&self, yee: &YeeGrid, sums: &Buffer<i64>, clear: Option<&Buffer<i64>>, along: &[&Slabs]) -> Result<()> {
        let (rows, length) = (3 * STRIP, (sums.len() / 3) as i64);
        let [below, above] = self.ends.addresses(&self.sums, Slabs::next);
        // SAFETY: three components of so many sums each; a slab has three strips.
        unsafe { self.launch("send_sums", rows).arg(*yee).arg(sums).arg(length).arg(below).arg(above).run()? };
        self.sums.exchange_with(along)?;
        let [below, above] = self.ends.addresses(&self.sums, Slabs::last);
        let launch = self.launch("add_sums", rows).arg(*yee).arg(sums).arg(length).arg(below).arg(above);
        // SAFETY: as above; what is cleared is as large as the sums, or nothing.
        unsafe { launch.arg(clear.map_or(0, Buffer::address)).run() }
    }

    /// Fills the guards of E and B at the ends.
    pub(super) fn fill(&self, yee: &YeeGrid) -> Result<()> {
        let [below, above] = self.ends.addresses(&self.fields, Slabs::next);
        // SAFETY: six fields over all nodes with guards; a slab has six strips.
        unsafe { self.launch("send_fields", 6 * STRIP).arg(*yee).arg(below).arg(above).run()? };
        self.fields.exchange()?;
        let [below, above] = self.ends.addresses(&self.fields, Slabs::last);
        // SAFETY: as above.
        unsafe { self.launch("take_fields", 6 * STRIP).arg(*yee).arg(below).arg(above).run() }
    }

    /// Gets the rows of J, half filtered, that the filter along y reaches in other parts.
    pub(super) fn reach_current(&self, yee: &YeeGrid, taps: &mut Taps) -> Result<()> {
        let Some((reach, slabs, _)) = &self.filter else { return Ok(()) };
        let [below, above] = self.ends.addresses(slabs, Slabs::next);
        // SAFETY: a slab has so many rows of each component.
        unsafe { self.launch("send_current", 3 * reach).arg(*yee).arg(*reach as i32).arg(below).arg(above).run()? };
        self.reached(slabs, taps)
    }

    /// Gets such rows of a charge.
    pub(super) fn reach_charge(&self, yee: &YeeGrid, charge: &Buffer<f64>, taps: &mut Taps) -> Result<()> {
        let Some((reach, _, slabs)) = &self.filter else { return Ok(()) };
        let [below, above] = self.ends.addresses(slabs, Slabs::next);
        // SAFETY: a slab has so many rows.
        unsafe { self.launch("send_charge", *reach).arg(*yee).arg(charge).arg(below).arg(above).run()? };
        self.reached(slabs, taps)
    }

    fn reached(&self, slabs: &Slabs, taps: &mut Taps) -> Result<()> {
        slabs.exchange()?;
        taps.beyond = self.ends.addresses(slabs, Slabs::last);
        Ok(())
    }
}
