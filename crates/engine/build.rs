//! Two decisions about a build for tests: whether it is for a machine with a GPU, and which instruction sets are worth compiling.
//!
//! `gpu_tests` is set where there is a GPU, or where `ZELLIGE_REQUIRE_GPU=1` asks for a build to be carried to one; elsewhere the
//! tests that need one are reported as ignored.
//!
//! Leaves out the forms of kernels for AVX-512 where they would be compiled for nothing: in builds for tests and debugging, on a
//! machine that cannot run them (a tenth of what a solver's tests take to build). `ZELLIGE_AVX512=1` builds them anyway, to be
//! carried elsewhere. The solvers, whose tests need GPUs too, have the same script, and that of the program has this one in it.

use std::env::var;

pub(crate) fn main() {
    println!("cargo::rerun-if-env-changed=ZELLIGE_REQUIRE_GPU");
    println!("cargo::rustc-check-cfg=cfg(gpu_tests)");
    // The device nodes of the driver, on Linux and on the Linux of Windows.
    let gpu = ["/dev/nvidiactl", "/dev/dxg"].iter().any(|node| std::path::Path::new(node).exists());
    if gpu || var("ZELLIGE_REQUIRE_GPU").is_ok_and(|v| !v.is_empty() && v != "0") {
        println!("cargo::rustc-cfg=gpu_tests");
    }
    println!("cargo::rerun-if-env-changed=ZELLIGE_AVX512");
    println!("cargo::rustc-check-cfg=cfg(without_avx512)");
    // A program compiled for another machine may run on any.
    let here = var("HOST").ok() == var("TARGET").ok();
    let debug = var("PROFILE").is_ok_and(|profile| profile == "debug");
    let asked = var("ZELLIGE_AVX512").is_ok_and(|v| v == "1");
    if here && debug && !asked && !detected() {
        println!("cargo::rustc-cfg=without_avx512");
    }
}

#[cfg(target_arch = "x86_64")]
fn detected() -> bool {
    std::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn detected() -> bool {
    false
}
