//! The fields by themselves: sides against mirror images, folding, filter, energies, shift, threads.

use crate::field_setups::{PERIODIC, divergence, grid, largest, random, randomised, setup};
use zellige_engine::device::Cpu;
use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::stages::cpu::fields::FieldSet;
use zellige_pic::stages::images::{Quantity, guards};
use zellige_pic::stages::{Component, Sheet, Smoothing};

const PEC: FieldSide = FieldSide::Pec;
const PMC: FieldSide = FieldSide::Pmc;

/// Node inside and factor of a node of the endless mirrored lattice.
fn reflected(g: &Grid, axis: usize, component: Component, mut i: isize) -> (isize, f64) {
    let n = g.cells[axis] as isize;
    if g.periodic(axis) {
        return (i.rem_euclid(n), 1.0);
    }
    let half = component.stagger()[axis] == 0.5;
    let mut sign = 1.0;
    loop {
        let (wall, side) = match i {
            i if i < 0 => (0, g.fields[axis][0]),
            i if i > n - isize::from(half) => (n, g.fields[axis][1]),
            _ => return (i, sign),
        };
        let normal = component as usize % 3 == axis;
        let electric = (component as usize) < 3;
        // Normal E and tangential B are even at a conductor, the others at a magnetic one.
        if (normal == electric) != (side == PEC) {
            sign = -sign;
        }
        i = 2 * wall - i - isize::from(half);
    }
}

/// Conductors of both kinds are mirrors: the box evolves as one of its four by four images in a periodic box.
#[test]
fn walls_are_mirrors() {
    for sides in
        [[[PEC, PEC], [PEC, PEC]], [[PEC, PMC], [PMC, PEC]], [[PMC, PMC], [PEC, PMC]], [PERIODIC, [PMC, PEC]], [[PMC, PEC], PERIODIC]]
    {
        let small = grid([9, 6], sides, [0.1, 0.13], 0.95);
        let big = grid([36, 24], [PERIODIC; 2], small.h, 1.0);
        let big = Grid { dt: small.dt, ..big };
        let mut inside: FieldSet<f64> = randomised(&setup(&small), 3);
        let mut images: FieldSet<f64> = FieldSet::new(&setup(&big));
        for c in Component::ALL.into_iter().take(6) {
            let own = inside.get(c).unwrap();
            let mut values = vec![0.0; big.len()];
            for j in 0..24 {
                for i in 0..36 {
                    let ((ri, si), (rj, sj)) = (reflected(&small, 0, c, i), reflected(&small, 1, c, j));
                    values[big.index(i, j)] = si * sj * own[small.index(ri, rj)];
                }
            }
            images.set(c, &values);
        }
        for _ in 0..200 {
            inside.field().unwrap();
            images.field().unwrap();
        }
        for c in Component::ALL.into_iter().take(6) {
            let (own, all) = (inside.get(c).unwrap(), images.get(c).unwrap());
            for j in 0..small.nodes(1) as isize {
                for i in 0..small.nodes(0) as isize {
                    let (a, b) = (own[small.index(i, j)], all[big.index(i, j)]);
                    let is_there = reflected(&small, 0, c, i).0 == i && reflected(&small, 1, c, j).0 == j;
                    // 200 steps of some ten roundings of values of order one.
                    assert!(!is_there || (a - b).abs() < 1e-12, "{sides:?} {c:?} ({i}, {j}): {a} {b}");
                }
            }
        }
    }
}

/// `sum E^n.E^n + B^(n-1/2).B^(n+1/2)` does not change, and `div B`, `div E` stay what they were.
#[test]
fn the_invariant_of_the_lattice_stands() {
    for sides in [[[PEC; 2], [PEC; 2]], [[PEC, PMC], [PMC; 2]], [PERIODIC, [PEC; 2]], [PERIODIC; 2]] {
        let g = grid([17, 12], sides, [0.1, 0.13], 0.99);
        let mut fields: FieldSet<f64> = randomised(&setup(&g), 5);
        let divergences = |f: &FieldSet<f64>| {
            let get = |c| f.get(c).unwrap();
            [
                divergence(&g, &get(Component::Ex), &get(Component::Ey), true),
                divergence(&g, &get(Component::Bx), &get(Component::By), false),
            ]
        };
        let (first, before) = (invariant(&g, &fields), divergences(&fields));
        for _ in 0..1000 {
            fields.field().unwrap();
        }
        let (last, after) = (invariant(&g, &fields), divergences(&fields));
        assert!((last / first - 1.0).abs() < 1e-12, "{sides:?}: {first} {last}");
        for (k, (a, b)) in before.iter().zip(&after).enumerate() {
            for j in 1..g.cells[1] as isize - 1 {
                for i in 1..g.cells[0] as isize - 1 {
                    let change = (a[g.index(i, j)] - b[g.index(i, j)]).abs();
                    // 1000 steps of roundings of fields of order 3 over h = 0.1.
                    assert!(change < 1e-11, "{sides:?} divergence {k} ({i}, {j}): {change}");
                }
            }
        }
    }
}

/// The discrete energy: B at the two half times around n from B^n and curl E^n.
fn invariant(g: &Grid, fields: &FieldSet<f64>) -> f64 {
    let [ex, ey, ez, bx, by, bz] = [0, 1, 2, 3, 4, 5].map(|c| fields.get(Component::ALL[c]).unwrap());
    let mut total = 0.0;
    for j in 0..g.nodes(1) as isize {
        for i in 0..g.nodes(0) as isize {
            let (at, up) = (g.index(i, j), g.index(i, j + 1));
            let half = 0.5 * g.dt;
            let curl =
                [(ez[up] - ez[at]) / g.h[1], -(ez[at + 1] - ez[at]) / g.h[0], (ey[at + 1] - ey[at]) / g.h[0] - (ex[up] - ex[at]) / g.h[1]];
            let squares = [ex[at].powi(2), ey[at].powi(2), ez[at].powi(2)];
            let products = [0, 1, 2].map(|c| [&bx, &by, &bz][c][at].powi(2) - (half * curl[c]).powi(2));
            for (c, value) in squares.into_iter().chain(products).enumerate() {
                let mut weight = 1.0;
                for (axis, k) in [i, j].into_iter().enumerate() {
                    let (last, half) = (k == g.cells[axis] as isize, Component::ALL[c].stagger()[axis] == 0.5);
                    if !g.periodic(axis) {
                        weight *= if half && last {
                            0.0
                        } else if !half && (last || k == 0) {
                            0.5
                        } else {
                            1.0
                        };
                    }
                }
                total += weight * value;
            }
        }
    }
    total
}

/// Each energy is counted once, wall corners by half; one dimension has the unit of a length.
#[test]
fn energies_count_every_component_once() {
    for sides in [[PERIODIC; 2], [[PEC; 2]; 2], [[PMC, PEC], PERIODIC]] {
        let g = grid([12, 7], sides, [0.1, 0.2], 0.9);
        for c in Component::ALL.into_iter().take(6) {
            let mut fields: FieldSet<f32> = FieldSet::new(&setup(&g));
            fields.set(c, &vec![2.0; g.len()]);
            // Values that a side holds at zero are so from the start.
            let held = fields.get(c).unwrap();
            let zero = |axis: usize, k: usize| {
                let (i, j) = if axis == 0 { (k as isize, 1) } else { (1, k as isize) };
                held[g.index(i, j)] == 0.0
            };
            let cells: f64 = (0..2)
                .map(|axis| {
                    let n = g.cells[axis];
                    let corner = c.stagger()[axis] == 0.0 && !g.periodic(axis);
                    n as f64 - if corner { 0.5 * [0, n].iter().filter(|k| zero(axis, **k)).count() as f64 } else { 0.0 }
                })
                .product();
            fields.begin(true).unwrap();
            let all = [fields.electric(), fields.magnetic()].concat();
            for (k, energy) in all.iter().enumerate() {
                let expected = if k == c as usize { 0.5 * 4.0 * cells * 0.02 } else { 0.0 };
                assert!((energy - expected).abs() < 1e-12, "{sides:?} {c:?} {k}: {energy} {expected}");
            }
        }
    }
    let g = grid([12, 1], [[PEC; 2], PERIODIC], [0.1, 7.0], 0.9);
    let mut fields: FieldSet<f64> = FieldSet::new(&setup(&g));
    fields.set(Component::Ex, &vec![1.0; g.len()]);
    fields.begin(true).unwrap();
    assert!((fields.electric()[0] - 0.6).abs() < 1e-15);
}

/// Every value deposited is found again inside, with the sign of its image; a lattice of one row wraps several times.
#[test]
fn deposits_on_guards_are_folded() {
    for cells in [[6, 5], [8, 1]] {
        let g = grid(cells, [[PEC; 2], PERIODIC], [0.1; 2], 0.9);
        let mut fields: FieldSet<f64> = FieldSet::new(&setup(&g));
        let mut deposits = [1, 2, 3].map(|s| random(s, g.len()));
        if g.dimensions == 1 {
            // Particles of a line reach the corners 0 to 3 across it.
            for deposit in &mut deposits {
                deposit[..g.index(-2, 0)].fill(0.0);
                deposit[g.index(-2, 4)..].fill(0.0);
            }
        }
        for (j, deposit) in fields.j.iter_mut().zip(&deposits) {
            j.copy_from_slice(deposit);
        }
        fields.current(&[]).unwrap();
        let n = cells[0] as isize;
        for (c, deposit) in deposits.iter().enumerate() {
            let component = Component::ALL[6 + c];
            let half = c == 0;
            for j in 0..cells[1] as isize {
                for i in 0..n + isize::from(!half) {
                    let mut expected = 0.0;
                    for jj in -2..cells[1] as isize + 3 {
                        for ii in -2..n + 3 {
                            let beyond = ii < 0 || ii > n - isize::from(half);
                            let wall = if ii < 0 { 0 } else { n };
                            let image = if beyond { 2 * wall - ii - isize::from(half) } else { ii };
                            if image == i && jj.rem_euclid(cells[1] as isize) == j {
                                expected += if half && beyond { -1.0 } else { 1.0 } * deposit[g.index(ii, jj)];
                            }
                        }
                    }
                    // The control volume of a wall corner is half a cell.
                    let density = if !half && (i == 0 || i == n) { 2.0 * expected } else { expected };
                    let found = fields.j[c][g.index(i, j)];
                    assert!((found - density).abs() < 1e-14, "{component:?} ({i}, {j}): {found} {density}");
                }
            }
        }
    }
}

/// An absorbing wall takes what went beyond it.
#[test]
fn an_absorbing_side_drops_its_guards() {
    let mut g = grid([6, 5], [[PEC; 2], PERIODIC], [0.1; 2], 0.9);
    g.particles[0] = [ParticleSide::Absorb; 2];
    let mut fields: FieldSet<f64> = FieldSet::new(&setup(&g));
    fields.j.iter_mut().for_each(|j| j.fill(1.0));
    fields.current(&[]).unwrap();
    // Ten rows of ones, guards included, fold onto five.
    let sum = |c: usize, i: isize| (0..5).map(|j| fields.j[c][g.index(i, j)]).sum::<f64>();
    assert_eq!((sum(0, 0), sum(0, 5), sum(1, 1), sum(2, 0), sum(2, 6)), (10.0, 10.0, 10.0, 20.0, 20.0));
}

/// The response of the filter is its formula, per axis with that axis's own passes.
#[test]
fn the_filter_has_its_response() {
    let g = grid([16, 12], [PERIODIC; 2], [0.1; 2], 0.9);
    let levels = [Smoothing { passes: 1, compensated: false }, Smoothing { passes: 3, compensated: true }];
    let response = |s: Smoothing, theta: f64| {
        let n = f64::from(s.passes);
        let b = (4.0 + 2.0 * n) / n.max(1.0);
        (0.5 * theta).cos().powf(2.0 * n) * if s.compensated && s.passes > 0 { (b - 2.0 * theta.cos()) / (b - 2.0) } else { 1.0 }
    };
    for smoothing in [levels, [levels[1], levels[0]], [Smoothing::default(), levels[1]]] {
        let setup = zellige_pic::stages::Setup { smoothing, ..setup(&g) };
        for (mx, my) in [(0, 0), (1, 0), (0, 1), (8, 0), (0, 6), (3, 5), (8, 6), (5, 2)] {
            let theta = [2.0 * std::f64::consts::PI * f64::from(mx) / 16.0, 2.0 * std::f64::consts::PI * f64::from(my) / 12.0];
            let mut fields: FieldSet<f64> = FieldSet::new(&setup);
            let wave = |i: isize, j: isize| (theta[0] * i as f64 + theta[1] * j as f64 + 0.3).cos();
            for j in 0..12 {
                for i in 0..16 {
                    fields.j[1][g.index(i, j)] = wave(i, j);
                }
            }
            fields.current(&[]).unwrap();
            let factor = response(smoothing[0], theta[0]) * response(smoothing[1], theta[1]);
            for (i, j) in [(0, 0), (15, 11), (7, 3)] {
                let found = fields.j[1][g.index(i, j)];
                assert!((found - factor * wave(i, j)).abs() < 1e-13, "{smoothing:?} ({mx}, {my}): {found}");
            }
        }
    }
}

/// A uniform density stays uniform up to the walls, and the filtered current belongs to the filtered charge.
#[test]
fn the_filter_commutes_with_the_divergence_up_to_walls() {
    let g = grid([10, 9], [[PEC; 2], [PMC; 2]], [0.1, 0.15], 0.9);
    let smoothing = [Smoothing { passes: 2, compensated: true }, Smoothing { passes: 1, compensated: false }];
    let setup = zellige_pic::stages::Setup { smoothing, ..setup(&g) };
    let mut fields: FieldSet<f64> = FieldSet::new(&setup);
    // Currents between the walls, which nothing crosses.
    for (c, j) in fields.j.iter_mut().enumerate() {
        let values = random(9 + c as u64, g.len());
        for jj in 0..g.nodes(1) as isize - isize::from(c == 1) {
            for ii in 0..g.nodes(0) as isize - isize::from(c == 0) {
                j[g.index(ii, jj)] = values[g.index(ii, jj)];
            }
        }
    }
    let mut plain: FieldSet<f64> = FieldSet::new(&zellige_pic::stages::Setup { smoothing: Default::default(), ..setup.clone() });
    plain.j = fields.j.clone();
    plain.current(&[]).unwrap();
    fields.current(&[]).unwrap();
    let of = |f: &FieldSet<f64>| divergence(&g, &f.get(Component::Jx).unwrap(), &f.get(Component::Jy).unwrap(), true);
    let (raw, filtered) = (of(&plain), of(&fields));
    // complete_charge folds deposits, so wall corners go in by half.
    let mut rho = vec![0.0; g.len()];
    for j in 0..g.nodes(1) as isize {
        for i in 0..g.nodes(0) as isize {
            let walls = [(i, 10), (j, 9)].iter().filter(|(k, n)| *k == 0 || k == n).count();
            rho[g.index(i, j)] = raw[g.index(i, j)] * 0.5_f64.powi(walls as i32);
        }
    }
    fields.complete_charge(&mut rho, true).unwrap();
    for j in 0..g.nodes(1) as isize {
        for i in 0..g.nodes(0) as isize {
            let (a, b) = (rho[g.index(i, j)], filtered[g.index(i, j)]);
            assert!((a - b).abs() < 1e-12, "({i}, {j}): {a} {b}");
        }
    }
    let mut uniform = vec![0.0; g.len()];
    for j in 0..g.nodes(1) as isize {
        for i in 0..g.nodes(0) as isize {
            let walls = [(i, 10), (j, 9)].iter().filter(|(k, n)| *k == 0 || k == n).count();
            uniform[g.index(i, j)] = 0.5_f64.powi(walls as i32);
        }
    }
    fields.complete_charge(&mut uniform, true).unwrap();
    assert!(uniform[g.row(4)].iter().all(|v| (v - 1.0).abs() < 1e-14));
}

/// Sheets are added to their line and are not filtered; external fields are felt and do not advance.
#[test]
fn sheets_and_external_fields() {
    let g = grid([12, 7], [PERIODIC; 2], [0.1; 2], 0.9);
    let mut given = setup(&g);
    given.smoothing = [Smoothing { passes: 2, compensated: false }; 2];
    given.external[4] = vec![0.25; g.len()];
    let mut fields: FieldSet<f64> = FieldSet::new(&given);
    assert_eq!(fields.gathered(Component::By)[g.index(3, 3)], 0.25);
    assert_eq!(fields.gathered(Component::Bx)[g.index(3, 3)], 0.0);
    let sheet = Sheet { component: Component::Jz, axis: 1, node: 4, values: vec![2.0; 12] };
    fields.current(&[sheet]).unwrap();
    assert_eq!((fields.j[2][g.index(5, 4)], fields.j[2][g.index(5, 3)]), (2.0, 0.0));
    fields.field().unwrap();
    assert_eq!(fields.get(Component::Ez).unwrap()[g.index(5, 4)], -2.0 * g.dt);
    assert_eq!(fields.gathered(Component::By)[g.index(3, 3)], 0.25 + fields.get(Component::By).unwrap()[g.index(3, 3)]);
}

/// A shift moves every value by one cell and leaves the last column of cells empty; layers go along.
#[test]
fn a_shift_moves_everything_by_one_cell() {
    let g = grid([40, 30], [[FieldSide::Absorbing; 2], [FieldSide::Absorbing; 2]], [0.1; 2], 0.9);
    let mut fields: FieldSet<f64> = randomised(&setup(&g), 11);
    (0..5).for_each(|_| fields.field().unwrap());
    let before: Vec<Vec<f64>> = Component::ALL[..6].iter().map(|c| fields.get(*c).unwrap()).collect();
    let auxiliary_state = fields.auxiliary_state().unwrap();
    fields.shift(&[]).unwrap();
    for (c, old) in Component::ALL[..6].iter().zip(&before) {
        let new = fields.get(*c).unwrap();
        let held = guards(&g, 0, Quantity::Vector(*c)).iter().any(|image| image.0 == 0);
        for j in 0..30 {
            for i in 0..39 {
                let expected = if i == 0 && held { 0.0 } else { old[g.index(i + 1, j)] };
                assert_eq!(new[g.index(i, j)], expected, "{c:?} ({i}, {j})");
            }
            assert_eq!(new[g.index(if c.stagger()[0] == 0.5 { 39 } else { 40 }, j)], 0.0);
        }
    }
    for ((name, old), (_, new)) in auxiliary_state.iter().zip(fields.auxiliary_state().unwrap()) {
        assert!(old.iter().any(|v| *v != 0.0), "{name}");
        // Derivatives along x remember from the wall on, which is the last column of the upper layer; those along y column by column.
        let along_x = ["b_1", "b_3", "e_1", "e_2"].iter().any(|term| name.starts_with(&format!("layer_{term}")));
        let row = if along_x { old.len() / g.rows() } else { g.pitch() };
        for (old, new) in old.chunks(row).zip(new.chunks(row)) {
            let expected = if along_x && name.ends_with("_1") { [&[0.0], &old[..row - 1]].concat() } else { [&old[1..], &[0.0]].concat() };
            assert_eq!(new, expected, "{name}");
        }
    }
    // A restart is bit-equal: everything that counts is in the components and in what is hidden.
    let mut again: FieldSet<f64> = FieldSet::new(&setup(&g));
    Component::ALL[..6].iter().for_each(|c| again.set(*c, &fields.get(*c).unwrap()));
    again.set_auxiliary_state(&fields.auxiliary_state().unwrap());
    (0..5).for_each(|_| fields.field().unwrap());
    (0..5).for_each(|_| again.field().unwrap());
    assert_eq!((fields.e, fields.b), (again.e, again.b));
}

/// Bitwise identical results on any number of threads.
#[test]
fn nothing_depends_on_the_threads() {
    let run = |threads: usize| {
        Cpu::new(threads).unwrap().install(|| {
            let g = grid([70, 90], [[FieldSide::Absorbing, PEC], [PMC, FieldSide::Absorbing]], [0.1; 2], 0.9);
            let mut given = setup(&g);
            given.smoothing = [Smoothing { passes: 2, compensated: true }; 2];
            let mut fields: FieldSet<f32> = randomised(&given, 2);
            for step in 0..5 {
                fields.begin(true).unwrap();
                for (c, j) in fields.j.iter_mut().enumerate() {
                    j.iter_mut().zip(random(40 + 3 * step + c as u64, g.len())).for_each(|(j, v)| *j = v as f32);
                }
                fields.current(&[]).unwrap();
                fields.field().unwrap();
            }
            let energies = [fields.electric(), fields.magnetic()].concat();
            assert!(largest(&g, &fields.get(Component::Ez).unwrap()) > 0.0);
            (fields.e, fields.b, energies)
        })
    };
    assert_eq!(run(1), run(3));
}

/// Columns that a window brings into an absorbing layer have no past: the memory of the last one is empty, whatever stood in the
/// guards.
#[test]
fn a_window_brings_nothing_into_a_layer() {
    let g = grid([30, 40], [[PEC; 2], [FieldSide::Absorbing; 2]], [0.1, 0.13], 0.9);
    let mut fields: FieldSet<f64> = randomised(&setup(&g), 11);
    fields.begin(false).unwrap();
    fields.field().unwrap();
    fields.shift(&[]).unwrap();
    let along_y = fields.auxiliary_state().unwrap();
    assert_eq!(along_y.len(), 8);
    for (name, memory) in along_y {
        // dBz/dy enters Ex, dEx/dy Bz: halfway in x, so that node 29 is the last one; the others sit at corners, with the wall 30.
        let last = if name.starts_with("layer_e_0") || name.starts_with("layer_b_2") { 29 } else { 30 };
        for row in memory.chunks(g.pitch()) {
            let inside = &row[g.index(0, -2)..];
            assert!(inside[last..].iter().all(|v| *v == 0.0), "{name}: {:?}", &inside[last..]);
        }
        assert!(memory.iter().any(|v| *v != 0.0), "{name}");
    }
}

/// A layer of no cells is the conductor behind it, bit for bit.
#[test]
fn a_layer_of_no_cells_is_a_conductor() {
    let after = |side: FieldSide| {
        let g = grid([12, 9], [[side; 2]; 2], [0.1, 0.13], 0.9);
        let bare = zellige_pic::stages::Setup { absorbing_cells: 0, ..setup(&g) };
        let mut fields: FieldSet<f64> = randomised(&bare, 5);
        (0..6).for_each(|_| fields.field().unwrap());
        fields.shift(&[]).unwrap();
        Component::ALL[..6].iter().map(|c| fields.get(*c).unwrap()).collect::<Vec<_>>()
    };
    assert!(after(FieldSide::Absorbing) == after(PEC));
}
