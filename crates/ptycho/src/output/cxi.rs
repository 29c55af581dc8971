//! Results as a CXI file.

use zellige_engine::record::{Archive, Content, Leaf};

use super::{Results, leaf, pair, positions, probes, single};

/// CXI: the object as an image of each entry, with the illumination and where the sample went.
pub(super) fn cxi(results: &Results) -> Archive {
    let model = results.model;
    let class = |path: &str, class: &str| Leaf { attributes: vec![("NX_class", class.to_owned())], ..leaf(path, Content::Group) };
    let metres = |path: String, content: Content| Leaf { attributes: vec![("units", "m".to_owned())], ..leaf(path, content) };
    let mut leaves = vec![leaf("cxi_version", Content::Whole(160))];
    let (probes, positions) = (probes(results), positions(results));
    for (k, (name, first)) in model.scans.iter().enumerate() {
        let entry = format!("entry_{}", k + 1);
        let last = model.scans.get(k + 1).map_or(positions.len(), |s| s.1);
        let Some(view) = model.views.get(*first) else { continue };
        let storage = &model.storages[view.object as usize];
        let object = single(&results.state.object[storage.offset..][..model.modes[1] * storage.layer()]);
        leaves.push(class(&entry, "NXentry"));
        leaves.push(leaf(format!("{entry}/title"), Content::Text(name.clone())));
        let image = format!("{entry}/image_1");
        leaves.push(class(&image, "NXdata"));
        let shape = vec![model.modes[1], storage.shape[0], storage.shape[1]];
        leaves.push(leaf(format!("{image}/data"), Content::Complex(shape, object)));
        leaves.push(leaf(format!("{image}/data_space"), Content::Text("real".into())));
        leaves.push(leaf(format!("{image}/data_type"), Content::Text("transmission".into())));
        leaves.push(metres(format!("{image}/x_pixel_size"), Content::Number(model.pixel[1])));
        leaves.push(metres(format!("{image}/y_pixel_size"), Content::Number(model.pixel[0])));
        leaves.push(metres(format!("{image}/origin"), pair(storage.origin)));
        let source = format!("{entry}/instrument_1/source_1");
        let shape = vec![model.modes[0], model.frame[0], model.frame[1]];
        leaves.push(leaf(format!("{source}/illumination"), Content::Complex(shape, single(&probes[view.probe as usize]))));
        if let Some(beam) = results.beams.get(k) {
            let joules = Leaf {
                attributes: vec![("units", "J".into())],
                ..leaf(format!("{source}/energy"), Content::Number(beam.energy() * 1.602_176_634e-16))
            };
            leaves.push(joules);
            let detector = format!("{entry}/instrument_1/detector_1");
            leaves.push(metres(format!("{detector}/distance"), Content::Number(beam.distance)));
            leaves.push(metres(format!("{detector}/x_pixel_size"), Content::Number(beam.pixel[1])));
            leaves.push(metres(format!("{detector}/y_pixel_size"), Content::Number(beam.pixel[0])));
        }
        let moves = positions[*first..last].iter().flat_map(|p| [p[1], p[0], 0.0]).collect();
        leaves.push(metres(format!("{entry}/sample_1/geometry_1/translation"), Content::Reals(vec![last - first, 3], moves)));
        leaves.push(leaf(format!("{entry}/data_1/data"), Content::Link(format!("{image}/data"))));
    }
    Archive { name: "result".into(), ending: "cxi", leaves }
}
