use zellige_engine::testing;
use zellige_engine::testing::host::Host;

use super::super::particle_diagnostics::Page;
use super::super::program::KernelConfig;
use super::super::tests::empty_config;
use super::*;
use crate::particles::Particles;

#[test]
fn its_kernels_compile() {
    testing::compiles(&recipe());
}

type Call = unsafe extern "C" fn(PagesOfColumns, UnitsOfColumns, Columns);

const UNITS: UnitsOfColumns =
    UnitsOfColumns { origin: [0.3, -1.7], h: [0.01, 1.0 / 3.0], moved: 1_234_567.0, momentum: 2.7e-22, weighting: 1.1e9 };

/// Pages of numbers, two of which are in use.
fn pages(config: &KernelConfig) -> (Vec<u8>, [Page; 2]) {
    let words = (0..4 * config.page_bytes() / 4).map(|k| (k as u32).wrapping_mul(2_654_435_761));
    // Exponents near that of one.
    let near_one = |k: u32| k & 0x807f_ffff | 0x3f00_0000;
    let bytes = words.flat_map(|k| near_one(k).to_ne_bytes()).collect();
    let page = |number, count, corner| Page { number, count, corner };
    (bytes, [page(3, config.page() as u32, [70, 12]), page(1, 45, [0, 900])])
}

#[test]
fn columns_have_the_bits_of_records() {
    let Some(host) = Host::compile(&recipe()) else { return };
    for (precision, weighted, tagged) in
        [(Precision::F32, false, false), (Precision::F32, true, true), (Precision::F64, true, false), (Precision::F64, false, true)]
    {
        let config = KernelConfig { precision, weighted, tagged, shift: 7, ..empty_config() };
        let (bytes, used) = pages(&config);
        let mut p = Particles::default();
        for page in &used {
            let own = page.number as usize * config.page_bytes();
            config.read(page, &bytes[own..own + config.page_bytes()], &mut p);
        }
        let n = p.len();
        let first = |k: usize| if k == 0 { 0 } else { u64::from(used[0].count) };
        let listed: Vec<PageOfColumns> = used
            .iter()
            .enumerate()
            .map(|(k, page)| PageOfColumns { first: first(k), number: page.number, count: page.count, corner: page.corner })
            .collect();
        let (mut columns, mut ids) = (vec![vec![f64::NAN; n]; 6], vec![0_u64; n]);
        let to: Vec<u64> = columns.iter_mut().map(|c| c.as_mut_ptr() as u64).collect();
        let all = PagesOfColumns {
            slots: bytes.as_ptr() as u64,
            pages: listed.as_ptr() as u64,
            bytes: config.page_bytes() as u64,
            slots_of_page: config.page() as u32,
            weighted: u32::from(weighted),
        };
        let id = if tagged { ids.as_mut_ptr() as u64 } else { 0 };
        let to = Columns { position: [to[0], to[1]], momentum: [to[2], to[3], to[4]], weighting: to[5], id };
        // SAFETY: the parameters of the kernel, whose threads stay within pages and columns.
        let kernel = unsafe { host.kernel::<Call>(NAMES[usize::from(precision == Precision::F64)]) };
        // SAFETY: as above.
        host.launch([2, 1, 1], [64, 1, 1], &|| unsafe { kernel(all, UNITS, to) });
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let of = |k: usize| {
            let column = UNITS.moved + f64::from(p.i[k]) + 0.5 + p.s[k];
            let row = f64::from(p.j[k]) + 0.5 + p.t[k];
            let weight = p.weight.get(k).copied().unwrap_or(1.0);
            let [ux, uy, uz] = [0, 1, 2].map(|c| p.u[c][k] * UNITS.momentum);
            let [x, y] = [UNITS.origin[0] + column * UNITS.h[0], UNITS.origin[1] + row * UNITS.h[1]];
            [x, y, ux, uy, uz, weight * UNITS.weighting]
        };
        for (c, found) in columns.iter().enumerate() {
            let wanted: Vec<f64> = (0..n).map(|k| of(k)[c]).collect();
            assert_eq!(bits(found), bits(&wanted), "column {c} of {precision:?}");
        }
        assert!(!tagged || ids == p.tag);
    }
}

/// Momenta in both precisions go where columns come from; what a column tells keeps its bits, though it is rounded.
#[test]
fn momenta_that_are_put_come_back() {
    type Put = unsafe extern "C" fn(PagesOfColumns, Momenta);
    let Some(host) = Host::compile(&recipe()) else { return };
    for precision in [Precision::F32, Precision::F64] {
        let config = KernelConfig { precision, weighted: true, tagged: true, shift: 7, ..empty_config() };
        let (mut bytes, used) = pages(&config);
        let read = |bytes: &[u8]| {
            let mut p = Particles::default();
            for page in &used {
                let own = page.number as usize * config.page_bytes();
                config.read(page, &bytes[own..own + config.page_bytes()], &mut p);
            }
            p
        };
        let (before, first) = (read(&bytes), |k: usize| if k == 0 { 0 } else { u64::from(used[0].count) });
        let one =
            |(k, page): (usize, &Page)| PageOfColumns { first: first(k), number: page.number, count: page.count, corner: page.corner };
        let listed: Vec<PageOfColumns> = used.iter().enumerate().map(one).collect();
        // Every other one is as it was.
        let unit = UNITS.momentum;
        let told = |c: usize, k: usize| before.u[c][k] * unit + if k.is_multiple_of(2) { 0.0 } else { 0.3 * unit };
        let wide: Vec<f64> = (0..before.len()).map(|k| told(0, k)).collect();
        let single: Vec<f32> = (0..before.len()).map(|k| (told(2, k) / unit) as f32).collect();
        let all = PagesOfColumns {
            slots: bytes.as_mut_ptr() as u64,
            pages: listed.as_ptr() as u64,
            bytes: config.page_bytes() as u64,
            slots_of_page: config.page() as u32,
            weighted: 1,
        };
        // SAFETY: the parameters of the kernel, whose threads stay within pages and columns.
        let kernel = unsafe { host.kernel::<Put>(NAMES[2 + usize::from(precision == Precision::F64)]) };
        let doubles = Momenta { single: [0; 3], wide: [wide.as_ptr() as u64, 0, 0], unit };
        let singles = Momenta { single: [0, 0, single.as_ptr() as u64], wide: [0; 3], unit: 1.0 };
        // SAFETY: as above.
        host.launch([2, 1, 1], [64, 1, 1], &|| unsafe { kernel(all, doubles) });
        // SAFETY: as above.
        host.launch([2, 1, 1], [64, 1, 1], &|| unsafe { kernel(all, singles) });
        let now = read(&bytes);
        let rounded = |v: f64| if precision == Precision::F32 { f64::from(v as f32) } else { v };
        for k in 0..before.len() {
            let wanted = if k.is_multiple_of(2) { before.u[0][k] } else { rounded(wide[k] / unit) };
            assert_eq!((now.u[0][k], now.u[1][k], now.u[2][k]), (wanted, before.u[1][k], f64::from(single[k])), "{k} of {precision:?}");
        }
        let rest = |p: Particles| Particles { u: Default::default(), ..p };
        assert!(rest(now) == rest(before), "nothing else has changed");
    }
}
