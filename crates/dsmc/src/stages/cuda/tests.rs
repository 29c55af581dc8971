//! Every kernel through the compiler, for the kinds of runs that differ most.

use super::program::{Kind, recipes};
use crate::model::Scheme;

const PLAIN: Kind = Kind {
    species: 1,
    components: 3,
    shift: [4, 3],
    room: 1536,
    threads: 256,
    resident: 4,
    lanes: 2,
    rotates: false,
    modes: 0,
    scheme: Scheme::Ntc,
    tagged: false,
    near: false,
    bodies: [false; 2],
    weighted: false,
    follows: false,
    along_z: false,
    brief: true,
    crowded: false,
};

#[test]
fn kernels_compile() {
    let everything = Kind {
        scheme: Scheme::Majorant,
        rotates: true,
        modes: 1,
        species: 3,
        bodies: [true; 2],
        follows: true,
        tagged: true,
        near: true,
        weighted: true,
        along_z: true,
        crowded: true,
        ..PLAIN
    };
    let pairing = Kind {
        scheme: Scheme::Pairing,
        rotates: true,
        modes: 4,
        species: 2,
        bodies: [true, false],
        shift: [2, 0],
        lanes: 32,
        brief: false,
        ..PLAIN
    };
    for kind in [everything, pairing, Kind { components: 2, follows: true, ..PLAIN }] {
        recipes(&kind).iter().for_each(zellige_engine::testing::compiles);
    }
    // Flights do not depend on how pairs are chosen.
    for kind in
        [Kind { scheme: Scheme::None, lanes: 1, ..PLAIN }, Kind { tagged: true, near: true, lanes: 1, along_z: true, ..PLAIN }, PLAIN]
    {
        zellige_engine::testing::compiles(&recipes(&kind)[0]);
    }
}
