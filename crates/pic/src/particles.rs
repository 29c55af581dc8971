//! Particles as they cross a border: from the set-up into the store, from the store to diagnostics and checkpoints.

/// A species as the stages need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Species {
    /// Name, for messages and records.
    pub name: String,
    /// Charge of a real particle, `e`.
    pub charge: f64,
    /// Mass of a real particle, `m_e`.
    pub mass: f64,
    /// Density that a macro-particle of weight 1 represents, `n_0`: reference density over particles per cell.
    pub weight: f64,
    /// True if particles carry a weight of their own, a factor to `weight`.
    pub weighted: bool,
    /// True if particles carry a tag of 64 bits.
    pub tagged: bool,
    /// True if particles are pushed; a fixed species only has charge.
    pub mobile: bool,
    /// Pusher of the momenta.
    pub pusher: Pusher,
    /// Thermal momenta of the walls, `u_th` per axis and end, where the side is thermal.
    pub wall_thermal: [[f64; 2]; 2],
}

impl Species {
    /// `q/m` in `e/m_e`.
    pub fn charge_to_mass(&self) -> f64 {
        self.charge / self.mass
    }

    /// Charge density at a corner on which one macro-particle of weight 1 sits, `e n_0`.
    pub fn macro_charge(&self) -> f64 {
        self.charge * self.weight
    }

    /// Mass density likewise, `m_e n_0`: kinetic energies are this times `gamma - 1` times the cell's volume.
    pub fn macro_mass(&self) -> f64 {
        self.mass * self.weight
    }
}

/// Pusher of the momenta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "hc": "higuera_cary", "higuera": "higuera_cary" }))]
pub enum Pusher {
    /// Boris (1970).
    #[default]
    Boris,
    /// Vay, Phys. Plasmas 15, 056701 (2008).
    Vay,
    /// Higuera and Cary, Phys. Plasmas 24, 052104 (2017).
    HigueraCary,
}

/// Particles of one species, in columns of one length. The order is canonical (by cell, row by row) where a store gives them
/// out, free where it takes them in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Particles {
    /// Cell in x, `0..cells[0]`.
    pub i: Vec<u32>,
    /// Cell in y, `0..cells[1]`.
    pub j: Vec<u32>,
    /// Offset from the cell's centre in x, `-1/2..=1/2` cells.
    pub s: Vec<f64>,
    /// Offset in y.
    pub t: Vec<f64>,
    /// `gamma v/c`, per component.
    pub u: [Vec<f64>; 3],
    /// Factor to the species' weight; empty where all are 1.
    pub weight: Vec<f64>,
    /// Tag; empty where there are none.
    pub tag: Vec<u64>,
}

impl Particles {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.i.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.i.is_empty()
    }

    /// Those of the numbers in `which`, in their order.
    #[must_use]
    pub fn at(&self, which: impl Iterator<Item = usize> + Clone) -> Self {
        fn some<T: Copy>(column: &[T], which: impl Iterator<Item = usize>) -> Vec<T> {
            if column.is_empty() { Vec::new() } else { which.map(|k| column[k]).collect() }
        }
        Self {
            i: some(&self.i, which.clone()),
            j: some(&self.j, which.clone()),
            s: some(&self.s, which.clone()),
            t: some(&self.t, which.clone()),
            u: [0, 1, 2].map(|c| some(&self.u[c], which.clone())),
            weight: some(&self.weight, which.clone()),
            tag: some(&self.tag, which),
        }
    }
}
