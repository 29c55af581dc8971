use super::*;
use crate::record::Centring;
use crate::testing;
use crate::testing::host::Host;

#[test]
fn its_kernels_compile() {
    testing::compiles(&recipe());
}

fn random(k: usize) -> f64 {
    f64::from((k as u32).wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 23) - 1.0
}

/// Values of both signs and zeros of both: a copy has their bits.
fn values() -> Vec<f64> {
    (0..100_000).map(|k| if k % 7 == 0 { -0.0 } else { random(k) }).collect()
}

/// Lengths, distances of neighbours and the first value of planes: odd ones, with rows further apart than they are long.
const PLANES: [([usize; 2], [usize; 2], usize); 4] =
    [([700, 3], [1, 700], 0), ([513, 90], [1, 520], 7), ([40, 31], [3, 444], 2), ([1, 257], [1, 5], 3)];

const SCALE: f64 = 0.3;

/// The values of a plane as records have them.
fn expected(from: &dyn Fn(usize) -> f64, (len, strides, begin): ([usize; 2], [usize; 2], usize)) -> Vec<f64> {
    let at = |i: usize, j: usize| if i < 1 || j < 2 { 0.0 } else { from(begin + i * strides[0] + j * strides[1]) * SCALE };
    (0..len[1]).flat_map(|j| (0..len[0]).map(move |i| (i, j))).map(|(i, j)| at(i, j)).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn single_bits(values: &[f64]) -> Vec<u32> {
    values.iter().map(|v| (*v as f32).to_bits()).collect()
}

type Planes<T, R> = unsafe extern "C" fn(*const T, Strided, f64, *mut R);

/// Runs a kernel as C++ of the CPU.
fn on_host<T, R: Copy + Default>(host: &Host, name: &str, values: &[T], (len, strides, begin): ([usize; 2], [usize; 2], usize)) -> Vec<R> {
    let plane = Strided { len: len.map(|n| n as u64), strides: strides.map(|n| n as u64), zeros: [1, 2] };
    let mut out = vec![R::default(); len[0] * len[1]];
    // SAFETY: the parameters of the kernel, whose threads stay within both arrays.
    let kernel = unsafe { host.kernel::<Planes<T, R>>(name) };
    let (from, to) = (values[begin..].as_ptr(), out.as_mut_ptr());
    // SAFETY: as above.
    host.launch([blocks(len[0] * len[1]), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, plane, SCALE, to) });
    out
}

#[test]
fn copies_have_the_bits_of_records() {
    let Some(host) = Host::compile(&recipe()) else { return };
    let values = values();
    let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    for plane in PLANES {
        let double = expected(&|k| values[k], plane);
        assert_eq!(bits(&on_host::<f64, f64>(&host, "copy_f64", &values, plane)), bits(&double), "{plane:?}");
        let rounded = on_host::<f64, f32>(&host, "copy_f64_as_f32", &values, plane);
        assert_eq!(rounded.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), single_bits(&double), "{plane:?}");
        let of_single = on_host::<f32, f32>(&host, "copy_f32", &single, plane);
        let wanted = single_bits(&expected(&|k| f64::from(single[k]), plane));
        assert_eq!(of_single.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), wanted, "{plane:?}");
    }
}

/// Complex numbers and factors, a period of which is no divisor of anything.
fn waves() -> (Vec<Complex<f64>>, Vec<Complex<f64>>) {
    let pair = |k: usize| Complex::new(random(2 * k), random(2 * k + 1));
    ((0..3000).map(pair).collect(), (0..77).map(|k| pair(k + 9999)).collect())
}

fn wave_bits(values: &[Complex<f32>]) -> Vec<[u32; 2]> {
    values.iter().map(|v| [v.re.to_bits(), v.im.to_bits()]).collect()
}

/// The product as a record of a probe has it.
fn of_record(value: Complex<f64>, factor: Complex<f64>) -> Complex<f32> {
    let product = value * factor.conj();
    Complex::new(product.re as f32, product.im as f32)
}

#[test]
fn waves_have_the_bits_of_records() {
    type Waves = unsafe extern "C" fn(*const f64, *const f64, u64, u64, *mut f32);
    let Some(host) = Host::compile(&recipe()) else { return };
    let (wave, factors) = waves();
    let mut out = vec![Complex::<f32>::default(); wave.len()];
    // SAFETY: the parameters of the kernel, whose threads stay within all arrays.
    let kernel = unsafe { host.kernel::<Waves>("copy_wave_f64") };
    let (from, by, to) = (wave.as_ptr().cast(), factors.as_ptr().cast(), out.as_mut_ptr().cast());
    let (period, count) = (factors.len() as u64, wave.len() as u64);
    // SAFETY: as above.
    host.launch([blocks(wave.len()), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, by, period, count, to) });
    let expected: Vec<_> = wave.iter().enumerate().map(|(k, v)| of_record(*v, factors[k % factors.len()])).collect();
    assert_eq!(wave_bits(&out), wave_bits(&expected));
    // SAFETY: as above; without factors none are read.
    host.launch([blocks(wave.len()), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, std::ptr::null(), 0, count, to) });
    let expected: Vec<_> = wave.iter().map(|v| Complex::new(v.re as f32, v.im as f32)).collect();
    assert_eq!(wave_bits(&out), wave_bits(&expected));
}

#[test]
fn what_is_put_comes_back() {
    type Put<T, R> = unsafe extern "C" fn(*const T, Strided, f64, *mut R);
    let Some(host) = Host::compile(&recipe()) else { return };
    for (len, strides, begin) in PLANES {
        let count = len[0] * len[1];
        let values: Vec<f64> = (0..count).map(|k| random(k + 5)).collect();
        let plane = Strided { len: len.map(|n| n as u64), strides: strides.map(|n| n as u64), zeros: [1, 2] };
        let mut field = vec![7.0_f32; 100_000];
        // SAFETY: the parameters of the kernel, whose threads stay within both arrays.
        let kernel = unsafe { host.kernel::<Put<f64, f32>>("put_f64_f32") };
        let (from, to) = (values.as_ptr(), field[begin..].as_mut_ptr());
        // SAFETY: as above.
        host.launch([blocks(count), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, plane, SCALE, to) });
        let mut wanted = vec![7.0_f32; 100_000];
        for (k, value) in values.iter().enumerate() {
            let (i, j) = (k % len[0], k / len[0]);
            wanted[begin + i * strides[0] + j * strides[1]] = if i < 1 || j < 2 { 0.0 } else { (value / SCALE) as f32 };
        }
        assert!(field == wanted, "{len:?} {strides:?} {begin}");
    }
}

#[test]
fn the_first_number_that_is_unfit_is_found() {
    type Unfit<T> = unsafe extern "C" fn(*const T, u64, f64, *mut u64);
    let Some(host) = Host::compile(&recipe()) else { return };
    let mut values: Vec<f64> = (0..3000).map(random).collect();
    let find = |name: &str, values: &[f64], unit: f64| {
        let mut first = u64::MAX;
        // SAFETY: the parameters of the kernel, whose threads stay within the array.
        let kernel = unsafe { host.kernel::<Unfit<f64>>(name) };
        let (from, to) = (values.as_ptr(), &raw mut first);
        // SAFETY: as above.
        host.launch([blocks(values.len()), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, values.len() as u64, unit, to) });
        first
    };
    assert_eq!(find("unfit_f64_f32", &values, 1.0), u64::MAX);
    for (k, value) in [(2900, f64::NAN), (1500, f64::INFINITY), (700, 1e300)] {
        values[k] = value;
        assert_eq!(find("unfit_f64_f32", &values, 1.0), k as u64);
    }
    assert_eq!(find("unfit_f64_f64", &values, 1.0), 1500);
    assert_eq!(find("unfit_f64_f64", &values, 1e-10), 700);
}

#[test]
fn the_first_value_that_is_another_one_is_found() {
    type Unlike = unsafe extern "C" fn(u64, u32, u64, u32, u64, *mut u64);
    let Some(host) = Host::compile(&recipe()) else { return };
    let wide: Vec<f64> = (0..3000).map(f64::from).collect();
    let (mut single, mut whole): (Vec<f32>, Vec<u64>) = (wide.iter().map(|v| *v as f32).collect(), (0..3000).collect());
    let find = |one: (u64, u32), other: (u64, u32)| {
        let mut first = u64::MAX;
        // SAFETY: the parameters of the kernel, whose threads stay within the arrays.
        let (kernel, to) = (unsafe { host.kernel::<Unlike>("unlike") }, &raw mut first);
        // SAFETY: as above.
        host.launch([blocks(3000), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(one.0, one.1, other.0, other.1, 3000, to) });
        first
    };
    let doubles = (wide.as_ptr() as u64, 1);
    assert_eq!(find((single.as_ptr() as u64, 0), doubles), u64::MAX);
    assert_eq!(find(doubles, (whole.as_ptr() as u64, 2)), u64::MAX);
    (single[2999], single[1234], whole[77]) = (f32::NAN, 7.0, 78);
    assert_eq!(find((single.as_ptr() as u64, 0), doubles), 1234);
    assert_eq!(find((whole.as_ptr() as u64, 2), doubles), 77);
}

#[test]
fn waves_that_are_what_they_were_keep_their_bits() {
    type Put<T> = unsafe extern "C" fn(*const T, u32, *const f64, u64, u64, *mut f64, *mut u32);
    let Some(host) = Host::compile(&recipe()) else { return };
    let (wave, factors) = waves();
    let told: Vec<_> = wave.iter().enumerate().map(|(k, v)| of_record(*v, factors[k % factors.len()])).collect();
    // SAFETY: the parameters of the kernel, whose threads stay within all arrays.
    let kernel = unsafe { host.kernel::<Put<f32>>("put_wave_f32_f64") };
    let put = |values: &[Complex<f32>]| {
        let (mut held, mut changed) = (wave.clone(), 0_u32);
        let (from, by, to, flag) = (values.as_ptr().cast(), factors.as_ptr().cast(), held.as_mut_ptr().cast(), &raw mut changed);
        let (period, count) = (factors.len() as u64, wave.len() as u64);
        // SAFETY: as above.
        host.launch([blocks(wave.len()), 1, 1], [BLOCK, 1, 1], &|| unsafe { kernel(from, 2, by, period, count, to, flag) });
        (held, changed)
    };
    assert!(put(&told) == (wave.clone(), 0));
    let mut other = told.clone();
    other[777] *= 2.0;
    let mut wanted = wave.clone();
    wanted[777] = Complex::new(f64::from(other[777].re), f64::from(other[777].im)) * factors[777 % factors.len()];
    assert!(put(&other) == (wanted, 1));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn copies_on_a_gpu_have_the_bits_of_records() {
    let Some(cuda) = testing::gpu() else { return };
    let copier = FieldCopier::new(&cuda).unwrap();
    let values = values();
    let buffer = cuda.buffer_from(&values, "values").unwrap();
    for (len, strides, begin) in PLANES {
        let wanted = expected(&|k| values[k], (len, strides, begin));
        let mut plane = PlaneOnGpu { begin, strides, scale: SCALE, zeros: [1, 2], ..PlaneOnGpu::new(&buffer, true, len, Centring::Node) };
        let ValuesOnGpu::F64(found) = copier.plane(&plane, "a field").unwrap() else { panic!() };
        assert_eq!(bits(&cuda.download(&found).unwrap()), bits(&wanted));
        plane.double_in_record = false;
        let ValuesOnGpu::F32(found) = copier.plane(&plane, "a field").unwrap() else { panic!() };
        assert_eq!(cuda.download(&found).unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), single_bits(&wanted));
    }
    let (wave, factors) = waves();
    let on_device = cuda.buffer_from(&wave, "a wave").unwrap();
    let ValuesOnGpu::Complex(found) = copier.wave(&on_device, 11..1000, &factors, "a wave").unwrap() else { panic!() };
    let expected: Vec<_> = wave[11..1000].iter().enumerate().map(|(k, v)| of_record(*v, factors[k % factors.len()])).collect();
    assert_eq!(wave_bits(&cuda.download(&found).unwrap()), wave_bits(&expected));
    // And back: what a copy has is what there was, anything else takes its place.
    let mut held = cuda.buffer_from(&wave, "a wave").unwrap();
    let told = ValuesOnGpu::Complex(cuda.buffer_from(&expected, "values").unwrap());
    assert!(!copier.put_wave(&told, &mut held, 11..1000, &factors).unwrap());
    assert!(cuda.download(&held).unwrap() == wave);
    let other = ValuesOnGpu::F64(cuda.buffer_from(&values[..989], "values").unwrap());
    assert!(copier.put_wave(&other, &mut held, 11..1000, &[]).unwrap());
    let now = cuda.download(&held).unwrap();
    assert!((0..989).all(|k| now[11 + k] == Complex::new(values[k], 0.0)) && now[..11] == wave[..11] && now[1000..] == wave[1000..]);
    let unfit = ValuesOnGpu::Complex128(cuda.buffer_from(&[Complex::new(1.0, 2.0), Complex::new(3.0, 1e300)], "values").unwrap());
    assert_eq!(copier.first_unfit(&unfit, 1.0, false).unwrap(), Some((1, 1e300)));
    assert_eq!(copier.first_unfit(&unfit, 1.0, true).unwrap(), None);
    let [single, whole] = [vec![0.0_f32, 1.0, 2.0], vec![0.0, 1.0, 3.0]].map(|v| ValuesOnGpu::F32(cuda.buffer_from(&v, "values").unwrap()));
    let numbers = ValuesOnGpu::U64(cuda.buffer_from(&[0_u64, 1, 2], "values").unwrap());
    assert_eq!(copier.first_unlike(&single, &numbers).unwrap(), None);
    assert_eq!(copier.first_unlike(&numbers, &whole).unwrap(), Some(2));
}
