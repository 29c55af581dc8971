use super::*;
use crate::testing;
use crate::testing::host::Host;

#[test]
fn its_kernels_compile() {
    testing::compiles(&recipe());
}

/// Sums as the host takes them: along a row, then over rows.
fn expected(value: &dyn Fn(usize, usize) -> f64, plane: &PlaneOnGpu<'_>) -> Vec<f32> {
    let (pixels, centring) = picture_pixels(plane.len, plane.centring);
    let [columns, rows] = [0, 1].map(|d| pixel_weights(plane.len[d], pixels[d], centring));
    let mut out = Vec::new();
    for row in rows.iter().rev() {
        for column in &columns {
            let line = |j: usize| column.weights.iter().enumerate().fold(0.0, |sum, (k, w)| sum + value(column.first + k, j) * w);
            out.push(row.weights.iter().enumerate().fold(0.0, |sum, (l, w)| sum + w * line(row.first + l)) as f32);
        }
    }
    out
}

type Call<T> = unsafe extern "C" fn(*const T, PixelAxis, PixelAxis, f64, *mut f32);

/// Runs a kernel as C++ of the CPU.
fn on_host<T>(host: &Host, name: &str, values: &[T], plane: &PlaneOnGpu<'_>) -> Vec<f32> {
    let (pixels, centring) = picture_pixels(plane.len, plane.centring);
    let weights = [0, 1].map(|d| tables(&pixel_weights(plane.len[d], pixels[d], centring)));
    let axis = |d: usize| PixelAxis {
        first: weights[d].0.as_ptr() as u64,
        weights: weights[d].1.as_ptr() as u64,
        stride: plane.strides[d] as u64,
        pixels: pixels[d] as u32,
        zeros: plane.zeros[d] as u32,
    };
    let mut out = vec![f32::NAN; pixels[0] * pixels[1]];
    let blocks = (out.len() as u32).div_ceil(BLOCK);
    let (x, y, from, to) = (axis(0), axis(1), values[plane.begin..].as_ptr(), out.as_mut_ptr());
    // SAFETY: the parameters of the kernel, whose threads stay within both arrays.
    let kernel = unsafe { host.kernel::<Call<T>>(name) };
    // SAFETY: as above.
    host.launch([blocks, 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, x, y, plane.scale, to) });
    out
}

/// Planes of odd sizes, of sizes about the most pixels, with rows further apart than they are long, and cut from three axes.
fn planes() -> Vec<([usize; 2], [usize; 2], usize)> {
    vec![([700, 3], [1, 700], 0), ([3, 1025], [1, 5], 2), ([513, 515], [1, 520], 7), ([40, 31], [1, 44], 0), ([530, 2], [7, 4001], 3)]
}

fn random(k: usize) -> f64 {
    f64::from((k as u32).wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 23) - 1.0
}

fn first_difference(found: &[f32], expected: &[f32]) -> Option<String> {
    assert_eq!(found.len(), expected.len());
    let k = (0..found.len()).find(|k| found[*k] != expected[*k])?;
    Some(format!("pixel {k} of {}: {:e}, not {:e}", found.len(), found[k], expected[k]))
}

/// The buffer only says how many values there are.
fn plane_of(bytes: u64, double: bool, (len, strides, begin): ([usize; 2], [usize; 2], usize), centring: Centring) -> PlaneOnGpu<'static> {
    PlaneOnGpu {
        address: 0,
        bytes,
        double,
        double_in_record: double,
        begin,
        len,
        strides,
        centring,
        scale: 0.3,
        zeros: [1, 2],
        memory: PhantomData,
    }
}

#[test]
fn pixels_have_the_bits_of_the_hosts_sums() {
    let Some(host) = Host::compile(&recipe()) else { return };
    let values: Vec<f64> = (0..300_000).map(random).collect();
    let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    for shape in planes() {
        for centring in [Centring::Node, Centring::Cell] {
            let mut plane = plane_of(8 * values.len() as u64, true, shape, centring);
            assert!(plane.is_inside(), "{shape:?}");
            let at = |i: usize, j: usize| shape.2 + i * shape.1[0] + j * shape.1[1];
            let zero = |i: usize, j: usize| i < 1 || j < 2;
            let of = |v: f64| v * 0.3;
            let double = |i: usize, j: usize| if zero(i, j) { 0.0 } else { of(values[at(i, j)]) };
            let rounded = |i: usize, j: usize| f64::from(double(i, j) as f32);
            let of_single = |i: usize, j: usize| if zero(i, j) { 0.0 } else { f64::from(of(f64::from(single[at(i, j)])) as f32) };
            let found = [
                (on_host(&host, "plane_f64", &values, &plane), expected(&double, &plane)),
                (on_host(&host, "plane_f64_as_f32", &values, &plane), expected(&rounded, &plane)),
                (on_host(&host, "plane_f32", &single, &plane), expected(&of_single, &plane)),
            ];
            for (k, (found, expected)) in found.iter().enumerate() {
                assert_eq!(first_difference(found, expected), None, "kernel {k}, {shape:?}, {centring:?}");
            }
            plane.len[1] = 300_000;
            assert!(!plane.is_inside());
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn pixels_of_a_gpu_have_the_bits_of_the_hosts_sums() {
    let Some(cuda) = testing::gpu() else { return };
    let mut reducer = PlaneReducer::new(&cuda, &cuda.pool()).unwrap();
    let values: Vec<f64> = (0..300_000).map(random).collect();
    let buffer = cuda.buffer_from(&values, "values").unwrap();
    let mut coming = Vec::new();
    for shape in planes() {
        for centring in [Centring::Node, Centring::Cell] {
            for double_in_record in [true, false] {
                let (len, strides, begin) = shape;
                let (scale, zeros) = (0.3, [1, 2]);
                let plane = PlaneOnGpu { double_in_record, begin, strides, scale, zeros, ..PlaneOnGpu::new(&buffer, true, len, centring) };
                let value = |i: usize, j: usize| {
                    let v = if i < 1 || j < 2 { 0.0 } else { values[begin + i * strides[0] + j * strides[1]] * scale };
                    if double_in_record { v } else { f64::from(v as f32) }
                };
                coming.push((reducer.pixels(&plane).unwrap(), expected(&value, &plane), format!("{shape:?} {centring:?}")));
            }
        }
    }
    // All are on their way at once.
    let different = |(found, expected, name): &(Coming<f32>, Vec<f32>, String)| {
        first_difference(found.wait().unwrap(), expected).map(|d| format!("{name}: {d}"))
    };
    let differences: Vec<String> = coming.iter().filter_map(different).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
