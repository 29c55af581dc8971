//! Tests of the whole way from source to result. Those of the compiler need NVRTC only.

use super::cache::Cache;
use super::*;
use crate::error::Error;
use crate::rng::Philox;
use crate::testing;

const SOURCE: &str = include_str!("tests.cu");
const KERNELS: [&str; 6] = ["scale<float>", "scale<double>", "block_sums", "philox_words", "meet", "flag"];

fn recipe() -> Recipe {
    Recipe::new("engine tests", &[SOURCE], &[("BLOCK".into(), "256".into())], &KERNELS)
}

#[test]
fn prelude_compiles_for_every_architecture() {
    testing::compiles(&recipe());
}

#[test]
fn an_error_names_program_architecture_and_line() {
    if !testing::compiler() {
        return;
    }
    let broken = "extern \"C\" __global__ void k() {\n  no_such_name = 1;\n}";
    let error = compile_only("broken", &["// fine", broken], &[], &["k"], "sm_90").unwrap_err();
    let Error::Kernel { program, arch, log } = &error else { panic!("{error:?}") };
    assert_eq!((program.as_str(), arch.as_str()), ("broken", "sm_90"));
    assert!(log.contains("broken[1](2)") && log.contains("no_such_name"), "{log}");
}

#[test]
fn a_kernel_that_is_not_there_is_an_error() {
    if !testing::compiler() {
        return;
    }
    let error = compile_only("absent", &["extern \"C\" __global__ void k() {}"], &[], &["other"], "sm_90").unwrap_err();
    assert!(error.to_string().contains("other"), "{error}");
}

#[test]
fn a_second_start_compiles_nothing_and_a_damaged_entry_is_built_anew() {
    if !testing::compiler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    // Counting files, not compilations: other tests compile at the same time.
    let entries = || std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let first = recipe().cubin("sm_90", &cache).unwrap();
    let [entry] = entries().try_into().unwrap();
    let key = recipe().key("sm_90");
    assert_eq!(entry.file_stem().unwrap().to_str().unwrap(), key);
    assert_eq!(cache.get(&key).as_ref(), Some(&*first));
    assert_eq!(first.images.len(), recipe().kernels.len(), "each kernel is compiled by itself");

    let mut bytes = std::fs::read(&entry).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&entry, &bytes).unwrap();
    assert!(cache.get(&key).is_none() && entries().is_empty());
    cache.put(&key, &first);

    let mut other = recipe();
    other.defines[0].1 = "128".into();
    other.cubin("sm_90", &cache).unwrap();
    recipe().cubin("sm_80", &cache).unwrap();
    assert_eq!(entries().len(), 3, "another constant and another architecture have entries of their own");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn buffers_copy_and_count() {
    let Some(cuda) = testing::gpu() else { return };
    let pool = cuda.pool();
    let data: Vec<f64> = (0..1000).map(f64::from).collect();
    let mut a = pool.buffer_from(&data, "a").unwrap();
    assert_eq!(pool.allocated(), 8000);
    let mut b = pool.alloc_zeros::<f64>(1000, "b").unwrap();
    assert_eq!(cuda.download(&b).unwrap(), vec![0.0; 1000]);
    cuda.copy(&a, 10, &mut b, 20, 100).unwrap();
    assert_eq!(cuda.download_range(&b, 19..22).unwrap(), [0.0, 10.0, 11.0]);
    cuda.upload_at(&mut a, 999, &[-1.0]).unwrap();
    assert_eq!(cuda.download_range(&a, 998..1000).unwrap(), [998.0, -1.0]);
    cuda.fill_zero(&mut a).unwrap();
    assert_eq!(cuda.download(&a).unwrap(), vec![0.0; 1000]);
    let empty = pool.alloc_zeros::<u32>(0, "nothing").unwrap();
    assert_eq!(cuda.download(&empty).unwrap(), Vec::<u32>::new());
    drop((a, b, empty));
    assert_eq!((pool.allocated(), pool.peak()), (0, 16008));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn too_much_is_an_error_that_says_for_what() {
    let Some(cuda) = testing::gpu() else { return };
    for n in [1usize << 45, usize::MAX] {
        let error = cuda.alloc_zeros::<f64>(n, "the impossible").unwrap_err();
        let Error::OutOfMemory { what, free, .. } = &error else { panic!("{error:?}") };
        assert_eq!(what, "the impossible");
        assert!(free.is_some());
    }
    // The device is usable afterwards.
    assert_eq!(cuda.download(&cuda.buffer_from(&[1u32], "one").unwrap()).unwrap(), [1]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn kernels_run_with_their_arguments() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let mut x = cuda.buffer_from(&vec![1.5f32; 1000], "x").unwrap();
    let y = cuda.buffer_from(&vec![1.5f64; 1000], "y").unwrap();
    // SAFETY: (T*, T, u64) as declared; the kernels stay below n.
    unsafe {
        program.kernel("scale<float>").unwrap().launch(4, 256).arg(&mut x).arg(2.0f32).arg(1000u64).run().unwrap();
        program.kernel("scale<double>").unwrap().launch(4, 256).arg(y.from(1)).arg(2.0f64).arg(998u64).run().unwrap();
    }
    assert_eq!(cuda.download(&x).unwrap(), vec![3.0; 1000]);
    let y = cuda.download(&y).unwrap();
    assert_eq!((y[0], y[1], y[998], y[999]), (1.5, 3.0, 3.0, 1.5));
    assert!(program.kernel("missing").unwrap_err().to_string().contains("scale<float>"));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn shared_memory_beyond_48_kib_is_granted_and_beyond_the_device_refused() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let kernel = program.kernel("block_sums").unwrap();
    let (x, mut sums) = (cuda.buffer_from(&vec![1.0f32; 512], "x").unwrap(), cuda.alloc_zeros::<f32>(2, "sums").unwrap());
    let room = cuda.properties().shared_per_block - kernel.shared();
    // SAFETY: (const float*, float*, u32) as declared, sums for two blocks of 256.
    unsafe { kernel.launch(2, 256).shared(room).arg(&x).arg(&mut sums).arg(room).run().unwrap() };
    assert_eq!(cuda.download(&sums).unwrap(), [256.0, 256.0]);
    // SAFETY: refused before it runs.
    let error = unsafe { kernel.launch(2, 256).shared(room + 1).arg(&x).arg(&mut sums).arg(0u32).run() }.unwrap_err();
    assert!(error.to_string().contains("shared memory"), "{error}");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn philox_on_the_gpu_is_philox() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let (purpose, seed, step, first) = (7, 0x0123_4567_89ab_cdef, (1u64 << 40) + 5, (1u64 << 33) - 500);
    let mut words = cuda.alloc_zeros::<[u32; 4]>(1000, "words").unwrap();
    let kernel = program.kernel("philox_words").unwrap();
    // SAFETY: (uint4*, u32, u64, u64, u64, u64) as declared; the kernel stays below n.
    unsafe { kernel.launch(4, 256).arg(&mut words).arg(purpose).arg(seed).arg(step).arg(first).arg(1000u64).run().unwrap() };
    let philox = Philox::new(purpose, seed);
    let expected: Vec<_> = (0..1000).map(|i| philox.draw(step, first + i)).collect();
    assert_eq!(cuda.download(&words).unwrap(), expected);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn blocks_of_a_cooperative_launch_meet() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let kernel = program.kernel("meet").unwrap();
    let blocks = kernel.blocks_per_multiprocessor(256, 0).unwrap() * cuda.properties().multiprocessors;
    let mut tickets = cuda.alloc_zeros::<u32>(1, "tickets").unwrap();
    let mut counts = cuda.alloc_zeros::<u32>(100, "counts").unwrap();
    let mut wrong = cuda.alloc_zeros::<u32>(1, "wrong").unwrap();
    // SAFETY: (u32*, u32*, u32*, u32) as declared, 100 counts for 100 rounds.
    unsafe { kernel.launch(blocks, 256).cooperative().arg(&mut tickets).arg(&mut counts).arg(&mut wrong).arg(100u32).run().unwrap() };
    assert_eq!(cuda.download(&wrong).unwrap(), [0]);
    assert_eq!(cuda.download(&counts).unwrap(), vec![blocks; 100]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_graph_replays_what_it_recorded() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let (kernel, flag) = (program.kernel("scale<float>").unwrap(), program.kernel("flag").unwrap());
    let mut x = cuda.buffer_from(&[1.0f32; 32], "x").unwrap();
    let mapped = cuda.mapped::<u32>(2).unwrap();
    let mut graph = cuda
        .capture(|| {
            assert!(cuda.capturing());
            assert!(cuda.alloc_zeros::<f32>(1, "late").is_err());
            assert!(cuda.download(&x).is_err());
            // SAFETY: arguments as declared, within the buffers.
            unsafe {
                kernel.launch(1, 32).arg(&mut x).arg(2.0f32).arg(32u64).run()?;
                kernel.launch(1, 32).early().arg(&mut x).arg(3.0f32).arg(32u64).run()?;
                flag.launch(1, 1).arg(&mapped).run()
            }
        })
        .unwrap();
    assert!(!cuda.capturing());
    assert_eq!(cuda.download(&x).unwrap(), [1.0; 32], "capturing must not run anything");
    let event = cuda.event().unwrap();
    for _ in 0..3 {
        // SAFETY: x, mapped and the program are alive.
        unsafe { graph.launch() }.unwrap();
    }
    cuda.record(&event).unwrap();
    event.wait().unwrap();
    assert!(event.done().unwrap());
    assert_eq!(mapped.get(0), 3);
    assert_eq!(cuda.download(&x).unwrap(), [216.0; 32]);

    let error = cuda.capture(|| Err(Error::Device { device: "test".into(), message: "stop".into(), hint: None })).unwrap_err();
    assert!(error.to_string().contains("stop"), "{error}");
    cuda.synchronize().unwrap();
    assert_eq!(cuda.download(&x).unwrap(), [216.0; 32], "the stream is usable after a failed capture");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn launches_that_come_again_do_the_same() {
    let Some(cuda) = testing::gpu() else { return };
    let kernel = recipe().build(&cuda).unwrap().kernel("scale<float>").unwrap();
    let (mut x, mut repeated) = (cuda.buffer_from(&[1.0f32; 32], "x").unwrap(), RepeatedLaunches::default());
    // SAFETY: arguments as declared, within the buffer.
    let scale = |x: &mut Buffer<f32>, by: f32| unsafe { kernel.launch(1, 32).early().arg(x).arg(by).arg(32u64).run() };
    // By turns, as arrays that change places do; the third time it is a graph.
    for k in 1..=5 {
        for by in [2.0, 0.25] {
            cuda.repeat(&mut repeated, || scale(&mut x, by).and_then(|()| scale(&mut x, 2.0))).unwrap();
        }
        assert_eq!(cuda.download(&x).unwrap(), [2.0_f32.powi(k); 32], "round {k}");
    }
    assert_eq!(repeated.graphs(), 2);
    // Anything else goes behind what was launched before it, and before what comes after.
    for _ in 0..3 {
        let mixed = |cuda: &Cuda, x: &mut Buffer<f32>| {
            scale(x, 2.0)?;
            cuda.upload(x, &[3.0; 32])?;
            scale(x, 5.0)
        };
        cuda.repeat(&mut repeated, || mixed(&cuda, &mut x)).unwrap();
        assert_eq!(cuda.download(&x).unwrap(), [15.0; 32]);
    }
    assert_eq!(repeated.graphs(), 2);
    // Launches before an error have been made, as without it.
    let stop = || Err(Error::Device { device: "test".into(), message: "stop".into(), hint: None });
    let error = cuda.repeat(&mut repeated, || scale(&mut x, 2.0).and_then(|()| stop())).unwrap_err();
    assert!(error.to_string().contains("stop") && cuda.download(&x).unwrap() == [30.0; 32], "{error}");
    // Sequences that do not come again are forgotten.
    for k in 0..20 {
        cuda.repeat(&mut repeated, || scale(&mut x, k as f32)).unwrap();
    }
    assert_eq!(repeated.graphs(), 0);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_capture_takes_in_nothing_of_other_threads() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let kernel = program.kernel("scale<float>").unwrap();
    let [mut x, mut y, mut own, mut other] = [(); 4].map(|()| cuda.buffer_from(&[1.0f32; 32], "x").unwrap());
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for turn in 0..100 {
                let scale = if turn % 2 == 0 { 2.0f32 } else { 0.5 };
                // SAFETY: arguments as declared, within the buffer.
                unsafe { kernel.launch(1, 32).arg(&mut own).arg(scale).arg(32u64).run().unwrap() };
                cuda.copy(&own, 0, &mut other, 0, 32).unwrap();
                assert_eq!(cuda.download(&other).unwrap(), [if turn % 2 == 0 { 2.0 } else { 1.0 }; 32]);
            }
        });
        for turn in 0..100 {
            let scale = if turn % 2 == 0 { 2.0f32 } else { 0.5 };
            let mut graph = cuda
                .capture(|| {
                    for v in [&mut x, &mut y] {
                        // SAFETY: arguments as declared, within the buffers.
                        unsafe { kernel.launch(1, 32).arg(v).arg(scale).arg(32u64).run()? };
                        std::thread::yield_now();
                    }
                    Ok(())
                })
                .unwrap();
            // SAFETY: the buffers and the program are alive.
            unsafe { graph.launch() }.unwrap();
            cuda.synchronize().unwrap();
        }
    });
    for v in [&x, &y] {
        assert_eq!(cuda.download(v).unwrap(), [1.0; 32]);
    }
}

/// The kernels that follow change the values at once.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn downloads_have_the_values_of_the_moment_they_were_begun_at() {
    let Some(cuda) = testing::gpu() else { return };
    let kernel = recipe().build(&cuda).unwrap().kernel("scale<float>").unwrap();
    const N: usize = 1 << 20;
    let mut x = cuda.buffer_from(&vec![1.0_f32; N], "test").unwrap();
    let mut downloads = Downloads::new(&cuda, "test").unwrap();
    let mut coming = std::collections::VecDeque::new();
    let mut in_place = None;
    for turn in 0..20 {
        downloads.before_changes().unwrap();
        // SAFETY: (float*, float, u64) as declared.
        unsafe { kernel.launch((N / 256) as u32, 256).arg(&mut x).arg(2.0f32).arg(N as u64).run().unwrap() };
        coming.push_back(downloads.begin(&x, N).unwrap());
        in_place = Some(downloads.begin_in_place(&x, N).unwrap());
        if coming.len() == 3 {
            let (before, copy) = (2.0_f32.powi(turn - 1), coming.pop_front().unwrap());
            // Any thread may wait.
            let first = std::thread::spawn(move || copy.wait().unwrap().iter().copied().find(|v| *v != before));
            assert_eq!(first.join().unwrap(), None, "not {before} in turn {turn}");
        }
    }
    let last = 2.0_f32.powi(20);
    assert!([coming.pop_back(), in_place].iter().flatten().all(|copy| copy.wait().unwrap().iter().all(|v| *v == last)));
    // Memory of before is taken again.
    let (few, more) = (downloads.begin(&x, 3).unwrap(), downloads.begin_filled(2, |to| cuda.copy(&x, 5, to, 0, 2)).unwrap());
    assert_eq!((few.wait().unwrap(), more.wait().unwrap()), (&[last; 3][..], &[last; 2][..]));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn copies_go_beside_the_kernels_in_the_order_of_events() {
    let Some(cuda) = testing::gpu() else { return };
    let program = recipe().build(&cuda).unwrap();
    let kernel = program.kernel("scale<float>").unwrap();
    const N: usize = 1 << 22;
    let (up, down) = (cuda.side_stream().unwrap(), cuda.side_stream().unwrap());
    let mut host = cuda.pinned::<f32>(2 * N, "test").unwrap();
    assert!(host.iter().all(|x| *x == 0.0));
    host[..N].iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
    let mut x = cuda.alloc_zeros::<f32>(N, "test").unwrap();
    cuda.synchronize().unwrap();
    let [there, done, back] = [(); 3].map(|()| cuda.event().unwrap());
    let (from, to) = host.split_at_mut(N);
    // SAFETY: events order the three; nothing is touched before `back` was waited for. (float*, float, u64) as declared.
    unsafe {
        up.upload(&mut x, 0, from).unwrap();
        up.record(&there).unwrap();
        cuda.wait_for(&there).unwrap();
        kernel.launch((N / 256) as u32, 256).arg(&mut x).arg(3.0f32).arg(N as u64).run().unwrap();
        cuda.record(&done).unwrap();
        down.wait_for(&done).unwrap();
        down.download(&x, 0, to).unwrap();
        down.record(&back).unwrap();
    }
    back.wait().unwrap();
    assert!(host[N..].iter().enumerate().all(|(i, x)| *x == 3.0 * i as f32));
    // A safe copy from page-locked memory is over when the call returns: what is written then does not reach the device.
    for turn in 0..8 {
        host[..N].fill(turn as f32);
        cuda.upload(&mut x, &host[..N]).unwrap();
        host[..N].fill(-1.0);
        assert!(cuda.download(&x).unwrap().iter().all(|v| *v == turn as f32), "turn {turn}");
    }
    // A slow bus of the third generation with four lanes moves about 3 GB/s, a link between chips up to 900.
    let rates = cuda.host_rates().unwrap();
    assert!(rates.iter().all(|r| (1e9..2e12).contains(r)), "{rates:?}");
}
