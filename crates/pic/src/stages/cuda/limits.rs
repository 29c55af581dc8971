//! Inputs that a GPU cannot hold, refused at their keys.

use zellige_engine::cuda::Properties;
use zellige_engine::error::{Error, Problem, Result};

use super::fields::ROWS;
use super::kernel_config;
use super::program::KernelConfig;
use crate::stages::Setup;

/// Nodes of an array: kernels count them in 32 bits with a sign.
const NODES: usize = i32::MAX as usize;
/// Cells of a tile per axis: places in it have eight bits, those of a particle that leaves it one more cell on each side.
const CELLS: std::ops::RangeInclusive<usize> = 4..=128;

/// Refuses a domain or a tile that this GPU cannot hold.
pub fn check(setup: &Setup, gpu: &Properties) -> Result<()> {
    fault(setup, gpu).map_or(Ok(()), |problem| Err(Error::input("the input", problem)))
}

fn fault(setup: &Setup, gpu: &Properties) -> Option<Problem> {
    let grid = &setup.grid;
    if grid.len() > NODES {
        let message = format!("the grid has {} nodes with its guards", grid.len());
        return Some(
            Problem::new("pic.grid.cells", message).allowed(format!("at most {NODES} on a GPU")).hint("run it with `--device cpu`"),
        );
    }
    if grid.nodes(1) > ROWS {
        let message = format!("{} nodes in y", grid.nodes(1));
        let problem = Problem::new("pic.grid.cells", message).allowed(format!("at most {ROWS} on a GPU"));
        return Some(problem.hint("let the longer axis be x, or run it with `--device cpu`"));
    }
    if let Some([x, y]) = setup.tile
        && [x, y].iter().any(|n| n > CELLS.end())
    {
        return Some(Problem::new("pic.tile", format!("a tile of {x} x {y} cells")).allowed("4 to 128 cells per axis on a GPU"));
    }
    let kinds = setup.species.iter().zip(&setup.expected).map(|(s, n)| kernel_config(setup, *n, gpu).of(s));
    let too_large = kinds.filter(|kernel_config| kernel_config.shared() > gpu.shared_per_block).max_by_key(KernelConfig::shared)?;
    let [x, y] = too_large.tile;
    let message = format!(
        "a tile of {x} x {y} cells takes {} bytes of the memory that the threads of a block share, {} has {}",
        too_large.shared(),
        gpu.name,
        gpu.shared_per_block
    );
    let fits =
        |n: usize| KernelConfig { tile: if grid.cells[1] == 1 { [n, 1] } else { [n, n] }, ..too_large }.shared() <= gpu.shared_per_block;
    let most = CELLS.rev().find(|n| fits(*n)).unwrap_or(*CELLS.start());
    let allowed = if grid.cells[1] == 1 { format!("4 to {most} cells") } else { format!("4 to {most} cells per axis of a square tile") };
    let hint =
        if setup.tile.is_some() { "a smaller `tile`, or none: it changes the speed, not the results" } else { "give a `tile` that fits" };
    Some(Problem::new("pic.tile", message).allowed(allowed).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::particles::{Pusher, Species};
    use crate::stages::Precision;
    use crate::stages::cuda::tests::bare;

    fn gpu(shared: u32) -> Properties {
        Properties {
            name: "a GPU".into(),
            capability: (9, 0),
            multiprocessors: 132,
            l2: 50 << 20,
            shared_per_block: shared,
            shared_per_multiprocessor: shared + 1024,
            memory: 80 << 30,
            cooperative: true,
        }
    }

    fn with(cells: [usize; 2], tile: Option<[usize; 2]>, precision: Precision) -> Setup {
        let species = Species {
            name: "electrons".into(),
            charge: -1.0,
            mass: 1.0,
            weight: 1.0,
            weighted: false,
            tagged: false,
            mobile: true,
            pusher: Pusher::Boris,
            wall_thermal: [[0.0; 2]; 2],
        };
        Setup { species: vec![species], tile, precision, ..bare(cells, 1000) }
    }

    #[test]
    fn tiles_that_do_not_fit_are_refused_with_what_fits() {
        // Bytes that a block of an H100 and of a T4 may have.
        let (large, small) = (gpu(232_448), gpu(65_536));
        let (single, double) = (Precision::F32, Precision::F64);
        for (tile, precision, on, allowed) in [
            (Some([64, 64]), single, &large, "4 to 43 "),
            (Some([200, 8]), single, &large, "4 to 128 "),
            (Some([40, 40]), double, &large, "4 to 29 "),
            (Some([32, 32]), single, &small, "4 to 20 "),
            (None, double, &small, "4 to 12 "),
        ] {
            let problem = fault(&with([512, 512], tile, precision), on).unwrap_or_else(|| panic!("{tile:?} {precision:?}"));
            assert_eq!(problem.path, "pic.tile");
            let range = problem.allowed.unwrap_or_default();
            assert!(range.starts_with(allowed), "{tile:?} {precision:?}: {range}");
        }
        for (tile, precision, on) in
            [(Some([43, 43]), single, &large), (Some([29, 29]), double, &large), (None, single, &small), (None, double, &large)]
        {
            // Tiles of one size: 512 in 12 or 18.
            assert!(fault(&with([43 * 12, 29 * 18], tile, precision), on).is_none(), "{tile:?} {precision:?}");
        }
    }

    #[test]
    fn grids_beyond_the_numbers_of_nodes_are_refused() {
        for (cells, allowed) in [([50_000, 50_000], "2147483647"), ([100, 300_000], "262140")] {
            let problem = fault(&with(cells, None, Precision::F32), &gpu(232_448)).expect("too large");
            assert!(problem.path == "pic.grid.cells" && problem.allowed.unwrap_or_default().contains(allowed), "{cells:?}");
        }
        assert!(fault(&with([40_000, 50_000], None, Precision::F32), &gpu(232_448)).is_none());
    }
}
