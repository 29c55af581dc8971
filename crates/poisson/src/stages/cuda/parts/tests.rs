use zellige_engine::links::inside;

use super::*;
use crate::grid::{Axis, Bc, Grid, hierarchy};

/// Shares of all parts: `[part][level]`.
fn shares(grid: &Grid, heights: usize, parts: usize) -> Vec<Vec<Share>> {
    let levels = hierarchy(grid, usize::MAX);
    inside::run(parts, |links| Ok(Share::of_levels(&levels, &vec![heights; levels.len()], &links))).unwrap()
}

fn cube(n: usize, along: usize, bc: Bc) -> Grid {
    let [x, z] = [n, along].map(|nodes| Axis::new(nodes, nodes as f64, bc, bc));
    Grid { axes: [x.clone(), x, z] }
}

#[test]
fn slabs_of_all_parts_cover_each_level_once() {
    for (bc, along) in [(Bc::Dirichlet, 161), (Bc::Neumann, 130), (Bc::Periodic, 128)] {
        let all = shares(&cube(65, along, bc), 64, 3);
        for level in 0..all[0].len() {
            let mut next = 0;
            let divided = all[0][level].divided();
            for share in all.iter().map(|shares| &shares[level]) {
                assert_eq!(share.divided(), divided, "parts decide alike");
                let (own, held) = (share.own(), share.held());
                assert!(held.start <= own.start && own.end <= held.end);
                if divided {
                    assert!(own.start == next && own.len() >= share.depth, "{own:?} behind {next}");
                    next = own.end;
                }
            }
            assert_eq!(next, if divided { all[0][level].ranges.slabs() } else { 0 });
        }
        assert!(all[0][0].divided() && all[0][1].divided() && !all[0].last().unwrap().divided(), "{bc:?}");
    }
}

#[test]
fn coarse_slabs_lie_on_the_fine_ones_of_the_same_part() {
    let grid = cube(33, 257, Bc::Dirichlet);
    let levels = hierarchy(&grid, usize::MAX);
    for shares in shares(&grid, 64, 4) {
        for l in (1..levels.len()).filter(|l| shares[*l].divided()) {
            let children = &levels[l - 1].transfer.as_ref().unwrap()[2].child;
            assert!(shares[l].own().all(|slab| shares[l - 1].own().contains(&(children[slab] as usize))));
        }
    }
}

#[test]
fn launches_reach_beside_the_own_slabs_and_not_beyond_the_ends() {
    let open = &shares(&cube(65, 128, Bc::Dirichlet), 64, 4);
    let [first, second] = [0, 1].map(|part| &open[part][0]);
    assert_eq!((first.own(), first.with(5), second.with(5)), (0..32, 0..37, 27..69));
    assert_eq!((first.held(), second.held()), (0..40, 24..72));
    // Around the seam slabs are numbered on; where they would meet, all are worked on once.
    let around = &shares(&cube(64, 128, Bc::Periodic), 64, 4)[0][0];
    assert_eq!((around.with(5), around.with(48), around.held()), (-5..37, 0..128, 0..128));
    assert_eq!(around.ranges.beside(0, 2, true), [32, 33, 126, 127]);
    let alone = &shares(&cube(65, 128, Bc::Dirichlet), 64, 1)[0][0];
    assert_eq!((alone.with(5), alone.held(), alone.reach(0)), (0..128, 0..128, EVERYWHERE));
}

#[test]
fn bands_have_one_owner_and_cover_the_rows_of_a_part() {
    let axis = |nodes| Axis::new(nodes, nodes as f64, Bc::Dirichlet, Bc::Dirichlet);
    for (rows, height) in [(1025, 64), (777, 22), (2050, 160)] {
        let all = shares(&Grid::plane(axis(200), axis(rows)), height, 3);
        let mut next = 0;
        for (part, share) in all.iter().map(|shares| &shares[0]).enumerate() {
            assert!(share.divided() && share.own().start % 2 == 0);
            let (touched, owned) = (share.bands(rows, height), share.bands_of(part, rows, height));
            assert_eq!(owned.start, next);
            next = owned.end;
            let covered = touched.start * height..(touched.end * height).min(rows);
            assert!(covered.start <= share.own().start && share.own().end <= covered.end);
            // A band's rows, and those that a pass reads beside, are copied from beside.
            assert!(share.own().start - covered.start < share.depth && covered.end - share.own().end < share.depth);
            assert!(share.held().start <= covered.start && share.held().end >= covered.end);
        }
        assert_eq!(next, rows.div_ceil(height));
    }
}

#[test]
fn ascending_numbers_fall_into_runs() {
    assert_eq!(runs(vec![2, 3, 4, 7, 9, 10]), [2..5, 7..8, 9..11]);
    assert!(runs(Vec::new()).is_empty());
}
