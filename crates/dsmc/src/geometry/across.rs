//! Test whether a straight line runs into a body.

use super::Geometry;
use super::cross::short;
use super::lattice::ONE;

impl Geometry {
    /// The first segment that a line between two positions (m) crosses, and where: the lattice of particles is the tolerance. A
    /// line may end on a body.
    pub fn across(&self, ends: [[f64; 2]; 2]) -> Option<(usize, [f64; 2])> {
        let (near, margin) = (2.0 / ONE as f64, 128.0 / ONE as f64);
        let cells = |p: [f64; 2]| [0, 1].map(|d| (p[d] - ends[0][d]) / self.h[d]);
        let way = cells(ends[1]);
        let length = way[0].hypot(way[1]);
        let t = way.map(|x| x / length);
        let mut first: Option<(f64, usize)> = None;
        for (k, segment) in self.segments.iter().enumerate() {
            // Along the line and off it.
            let [(s, p), (r, q)] = segment.ends.map(cells).map(|c| (c[0] * t[0] + c[1] * t[1], c[1] * t[0] - c[0] * t[1]));
            if p.min(q) > near || p.max(q) < -near {
                continue;
            }
            // The part of the segment that is as near as that, and of it what is between the ends of the line.
            let at = |off: f64| if p == q { None } else { Some(((off - p) / (q - p)).clamp(0.0, 1.0)) };
            let mut range = [at(-near).unwrap_or(0.0), at(near).unwrap_or(1.0)].map(|u| s + u * (r - s));
            range.sort_by(f64::total_cmp);
            let [low, high] = [range[0].max(margin), range[1].min(length - margin)];
            let crossing = at(0.0).map_or(low, |u| s + u * (r - s)).clamp(low, high.max(low));
            if low <= high && first.is_none_or(|f| crossing < f.0) {
                first = Some((crossing, k));
            }
        }
        first.map(|(s, k)| (k, [0, 1].map(|d| short(ends[0][d] + s * t[d] * self.h[d]))))
    }
}
