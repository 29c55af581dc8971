//! The gas and the walls as VTK has them: the cells that hold gas as polygons, cut as bodies cut them, with every field of the
//! averages; the segments of bodies as lines with what they feel.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use zellige_engine::record::{Entries, Field, LazyPatches, PatchValues, Patches, Record, Table};

use crate::geometry::Geometry;
use crate::grid::Grid;
use crate::model::Model;

/// Cells of a plane with the fields of the moment; velocities and heat fluxes are vectors. Cells inside bodies are left out.
/// Where a body divides a cell, all its parts have the values of the cell.
pub(crate) fn gas(model: &Model) -> Option<Record> {
    let (grid, geometry) = (model.grid.clone(), model.geometry.clone());
    if grid.dimensions < 2 || grid.len() < 2 {
        return None;
    }
    let make = Arc::new(move |records: &[Record]| cells(&grid, &geometry, records));
    Some(Record::Patches(LazyPatches { name: "gas".into(), segments: false, make }))
}

/// The patches of [`gas`] with the fields among `records`.
fn cells(grid: &Grid, geometry: &Geometry, records: &[Record]) -> Patches {
    let one = i64::from(crate::geometry::LATTICE);
    // Points of the grid and those where bodies cut cells: their numbers from 1, 0 as long as they have none.
    let mut of_grid = vec![0; (grid.cells[0] + 1) * (grid.cells[1] + 1)];
    let mut of_cuts: HashMap<[i64; 2], u32> = HashMap::new();
    let (mut points, mut corners, mut ends, mut cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for cell in (0..grid.len()).filter(|c| geometry.fraction(*c) > 0.0) {
        let at = grid.cell(cell);
        for outline in geometry.outlines(cell) {
            for corner in outline {
                let position = [0, 1].map(|d| at[d] as i64 * one + i64::from(corner[d]));
                let [x, y] = position.map(|p| (p / one) as usize);
                let number = if position.iter().all(|p| p % one == 0) {
                    &mut of_grid[y * (grid.cells[0] + 1) + x]
                } else {
                    of_cuts.entry(position).or_default()
                };
                if *number == 0 {
                    points.push([0, 1].map(|d| grid.origin[d] + position[d] as f64 / one as f64 * grid.h[d]));
                    *number = points.len() as u32;
                }
                corners.push(*number - 1);
            }
            ends.push(corners.len() as u32);
            cells.push(cell);
        }
    }
    let fields: Vec<&Field> = records.iter().filter_map(|r| if let Record::Field(f) = r { Some(f) } else { None }).collect();
    let (name, title) = ("gas".to_owned(), "cells that hold gas, with all averages".to_owned());
    Patches { name, title, points, corners, ends, values: values(&fields, &cells) }
}

/// `velocity_y` for `velocity_x`, `velocity_z_error` for `velocity_x_error`; nothing for `stress_xx`.
fn sibling(name: &str, axis: &str) -> Option<String> {
    let (stem, rest) = name.split_once("_x")?;
    (rest.is_empty() || rest.starts_with('_')).then(|| format!("{stem}_{axis}{rest}"))
}

/// Fields by cell as values by patch; components of a vector put together.
fn values(fields: &[&Field], cells: &[usize]) -> Vec<PatchValues> {
    let by_name: BTreeMap<&str, &Field> = fields.iter().map(|f| (f.name.as_str(), *f)).collect();
    let find = |name: &str, axis: &str| sibling(name, axis).and_then(|n| by_name.get(n.as_str()).copied());
    let mut out = Vec::with_capacity(fields.len());
    for field in fields {
        let of_vector = ["_y", "_z"].iter().any(|axis| {
            let parts = field.name.split_once(axis).filter(|(_, rest)| rest.is_empty() || rest.starts_with('_'));
            parts.is_some_and(|(stem, rest)| by_name.contains_key(format!("{stem}_x{rest}").as_str()))
        });
        if of_vector {
            continue;
        }
        let along_y = find(&field.name, "y");
        let (name, components) = match along_y {
            Some(_) => (sibling(&field.name, "").unwrap_or_default().replace("__", "_").trim_end_matches('_').to_owned(), 3),
            None => (field.name.clone(), 1),
        };
        let parts = [Some(*field), along_y, find(&field.name, "z")];
        let number = |cell: usize, c: usize| parts[c].map_or(0.0, |f| f.values.get(cell) as f32);
        let values = cells.iter().flat_map(|cell| (0..components).map(move |c| number(*cell, c))).collect();
        out.push(PatchValues { name, unit: field.unit.clone(), components, values });
    }
    out
}

/// The segments of bodies that are shown, with the columns of their table.
pub(crate) fn walls(model: &Model, shown: &[usize], table: &Table) -> Record {
    let mut known: HashMap<[u64; 2], u32> = HashMap::new();
    let (mut points, mut corners) = (Vec::new(), Vec::new());
    for end in shown.iter().flat_map(|s| model.geometry.segments()[*s].ends) {
        corners.push(*known.entry(end.map(f64::to_bits)).or_insert_with(|| {
            points.push(end);
            points.len() as u32 - 1
        }));
    }
    let ends = (1..=table.len as u32).map(|k| 2 * k).collect();
    let column = |name: &str| table.columns.iter().find(|c| c.name() == name).map(|c| &c.values);
    let mut values = Vec::new();
    for c in &table.columns {
        let (name, at) = (c.name(), |i: usize, of: Option<&Entries>| of.map_or(0.0, |v| v.get(i) as f32));
        match name.as_str() {
            "position_x" | "position_y" | "normal_y" => {}
            "normal_x" => {
                let all = (0..table.len).flat_map(|i| [at(i, Some(&c.values)), at(i, column("normal_y")), 0.0]).collect();
                values.push(PatchValues { name: "normal".into(), unit: String::new(), components: 3, values: all });
            }
            _ => {
                let all = (0..table.len).map(|i| at(i, Some(&c.values))).collect();
                values.push(PatchValues { name, unit: c.unit.clone(), components: 1, values: all });
            }
        }
    }
    let (name, title) = (table.name.clone(), table.title.clone());
    let patches = Patches { name: name.clone(), title, points, corners, ends, values };
    Record::Patches(LazyPatches { name, segments: true, make: Arc::new(move |_| patches.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BodyConfig, Config, WallConfig};
    use crate::geometry::Shape;

    fn area(patches: &Patches, k: usize) -> f64 {
        let from = if k == 0 { 0 } else { patches.ends[k - 1] as usize };
        let at: Vec<_> = patches.corners[from..patches.ends[k] as usize].iter().map(|c| patches.points[*c as usize]).collect();
        (0..at.len()).map(|i| (at[i], at[(i + 1) % at.len()])).map(|(a, b)| 0.5 * (a[0] * b[1] - a[1] * b[0])).sum()
    }

    fn body(name: &str, outline: Shape) -> BodyConfig {
        let (name, wall) = (name.into(), WallConfig::diffuse(300.0, [0.0; 3]));
        BodyConfig {
            name,
            outline: Some(outline),
            file: None,
            max_segment_length: None,
            gas: crate::geometry::Gas::Outside,
            wall,
            temperature: None,
            walls: std::collections::BTreeMap::default(),
            reference: None,
        }
    }

    #[test]
    fn polygons_have_the_volumes_of_their_cells_and_share_points() {
        let mut config = Config::new(vec![20, 16], vec![2.0, 1.6], "Ar", 1e19, 300.0);
        config.bodies = vec![
            body("circle", Shape::Circle { centre: [0.7, 0.8], radius: 0.33, segments: 37 }),
            body("plate", Shape::Plate { points: vec![[1.43, 0.21], [1.43, 1.37]] }),
        ];
        config.grid.origin = vec![-1.0, 0.5];
        for body in &mut config.bodies {
            match body.outline.as_mut().unwrap() {
                Shape::Circle { centre, .. } => *centre = [-0.3, 1.3],
                Shape::Plate { points } => *points = vec![[0.43, 0.71], [0.43, 1.87]],
                _ => {}
            }
        }
        let model = Model::new(&config, std::path::Path::new("."), 1).unwrap();
        let numbers: Vec<f64> = (0..320).map(f64::from).collect();
        let field = |name: &str| {
            let values = zellige_engine::record::Values::F64(numbers.clone());
            Record::Field(Field::bare(name, Vec::new(), zellige_engine::record::Centring::Cell, values))
        };
        let names = ["density", "velocity_x", "velocity_y", "velocity_z", "velocity_x_error", "velocity_y_error", "stress_xx", "stress_xy"];
        let Some(Record::Patches(gas)) = gas(&model) else { panic!() };
        let gas = (gas.make)(&names.map(field));
        let found: Vec<(&str, usize)> = gas.values.iter().map(|v| (v.name.as_str(), v.components)).collect();
        assert_eq!(found, [("density", 1), ("velocity", 3), ("velocity_error", 3), ("stress_xx", 1), ("stress_xy", 1)]);
        let mut volumes = vec![0.0; 320];
        for k in 0..gas.ends.len() {
            let cell = gas.values[0].values[k] as usize;
            assert!(area(&gas, k) > 0.0, "patch {k} is not counter-clockwise");
            volumes[cell] += area(&gas, k);
        }
        for (cell, volume) in volumes.iter().enumerate() {
            // Corners are on a lattice of 2^-24 of a cell; the volumes are those of the outline itself.
            let exact = model.cell_volume(cell);
            assert!((volume - exact).abs() < 0.01 * 1e-6, "cell {cell}: {volume} for {exact}");
        }
        // The column of cells that the plate divides: of the twelve that it crosses, all but the two in which it ends are two patches.
        assert_eq!(gas.ends.len(), volumes.iter().filter(|v| **v > 0.0).count() + 10);
        let mut positions: Vec<_> = gas.points.iter().map(|p| p.map(f64::to_bits)).collect();
        positions.sort_unstable();
        positions.dedup();
        assert_eq!(positions.len(), gas.points.len(), "a point is there twice");
    }
}
