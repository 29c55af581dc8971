//! Twins: a device function on the GPU against its Rust form, on random inputs. Used by each crate's `tests/all/twins.rs`.
//!
//! ```ignore
//! Twin { name: "boris", sources: PHYSICS, columns: &[(-1.0, 1.0); 7], outputs: &["boris<T>(x[0], ..).ux"], ulps: 2.0, scale: 1.0 }
//!     .check::<f32>(|x, out| out[0] = boris(x[0], ..).ux);
//! ```
//!
//! Without a GPU the kernel is compiled for every architecture, and with a C++ compiler at hand the same text is run
//! on the CPU, where it must give the bits of Rust.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cuda::Recipe;
use crate::real::{self, RealScalar};
use crate::rng::Philox;
use crate::testing;

/// Number of random inputs.
pub const INPUTS: usize = 100_000;

/// Purpose of the random numbers: the last one, far from those of solvers.
const TWINS: u32 = 0xffff;

/// A device function, its inputs and the required agreement.
#[derive(Debug, Clone, Copy)]
pub struct Twin<'a> {
    /// Name, for messages.
    pub name: &'a str,
    /// The C++ that it needs, as `device_source!` gives it.
    pub sources: &'a [&'a str],
    /// Range of each input column; uniform draws, rounded to the real type.
    pub columns: &'a [(f64, f64)],
    /// One C++ expression for each output, in terms of the inputs `x[0]`, `x[1]`, .. of type `T`.
    pub outputs: &'a [&'a str],
    /// Allowed difference on the GPU, in units of the last place of the larger of the value and `scale`.
    pub ulps: f64,
    /// Size of the terms that cancel in the result; 0 where none do.
    pub scale: f64,
}

impl Twin<'_> {
    /// Compares in the precision `T`: on the GPU where there is one, and the compiled text always where it can be.
    ///
    /// # Panics
    /// On the first difference beyond the tolerance, with the inputs that give it; and if something required by
    /// `ZELLIGE_REQUIRE_GPU` or `ZELLIGE_REQUIRE_NVRTC` is missing.
    pub fn check<T: RealScalar>(&self, reference: impl Fn(&[T], &mut [T])) {
        let inputs = self.inputs::<T>();
        let mut expected = vec![T::ZERO; INPUTS * self.outputs.len()];
        for (x, out) in inputs.chunks_exact(self.columns.len()).zip(expected.chunks_exact_mut(self.outputs.len())) {
            reference(x, out);
        }
        if let Some(found) = self.on_host(&inputs) {
            self.compare("the C++ compiler", &inputs, &expected, &found, 0.0);
        }
        let recipe = self.recipe::<T>();
        testing::compiles(&recipe);
        let Some(cuda) = testing::gpu() else { return };
        let found = (|| {
            let kernel = recipe.build(&cuda)?.kernel("twin")?;
            let input = cuda.buffer_from(&inputs, "twin: inputs")?;
            let mut output = cuda.alloc_zeros::<T>(expected.len(), "twin: outputs")?;
            let launch = kernel.launch((INPUTS as u32).div_ceil(256), 256).arg(&input).arg(&mut output).plain(INPUTS as u32);
            // SAFETY: the kernel takes two pointers and a count, and stays below the count, which both buffers hold.
            unsafe { launch.run()? };
            cuda.download(&output)
        })();
        match found {
            Ok(found) => self.compare(cuda.name(), &inputs, &expected, &found, self.ulps),
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    fn inputs<T: RealScalar>(&self) -> Vec<T> {
        let philox = Philox::new(TWINS, 1);
        let mut inputs = Vec::with_capacity(INPUTS * self.columns.len());
        for i in 0..INPUTS {
            for (column, (low, high)) in self.columns.iter().enumerate() {
                let [a, b, ..] = philox.draw(column as u64, i as u64);
                let unit = ((u64::from(a) << 32 | u64::from(b)) >> 11) as f64 / (1_u64 << 53) as f64;
                inputs.push(T::from_f64(low + (high - low) * unit));
            }
        }
        inputs
    }

    /// The loop body, the same for the kernel and for the host.
    fn body(&self) -> String {
        let mut body = format!("    const T* x = inputs + {} * (unsigned long long)i;\n", self.columns.len());
        for (j, output) in self.outputs.iter().enumerate() {
            let _ = writeln!(body, "    outputs[{} * (unsigned long long)i + {j}] = {output};", self.outputs.len());
        }
        body
    }

    fn recipe<T: RealScalar>(&self) -> Recipe {
        let kernel = format!(
            "typedef {} T;\nextern \"C\" __global__ void twin(const T* inputs, T* outputs, unsigned int n) {{\n    \
             const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n{}}}\n",
            cpp::<T>(),
            self.body()
        );
        let mut sources = vec![real::CUDA];
        sources.extend(self.sources);
        sources.push(&kernel);
        // Contraction would change more than the last bits where terms cancel; it is tested by the solvers' own tests.
        Recipe::new(self.name, &sources, &[], &["twin"]).option("--fmad=false")
    }

    /// Evaluates the twin as the system's C++ compiler builds it; prints a reason and returns `None` where that is impossible.
    fn on_host<T: RealScalar>(&self, inputs: &[T]) -> Option<Vec<T>> {
        let source = format!(
            "#define ZL_OFFSET(field, ...) __builtin_offsetof(__VA_ARGS__, field)\n{}\n{}\n\
             #include <cstdio>\n#include <vector>\ntypedef {} T;\nint main() {{\n  std::vector<T> in({}), out({});\n  \
             if (fread(in.data(), sizeof(T), in.size(), stdin) != in.size()) return 1;\n  const T* inputs = in.data();\n  \
             T* outputs = out.data();\n  for (unsigned int i = 0; i < {INPUTS}u; ++i) {{\n{}  }}\n  \
             return fwrite(outputs, sizeof(T), out.size(), stdout) == out.size() ? 0 : 1;\n}}\n",
            real::CUDA,
            self.sources.concat(),
            cpp::<T>(),
            inputs.len(),
            INPUTS * self.outputs.len(),
            self.body(),
        );
        let folder = std::env::temp_dir().join(format!("zellige-twin-{}-{}-{}", self.name, cpp::<T>(), std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let found = compile(&folder, &source).map(|binary| run(&binary, bytemuck::cast_slice(inputs)));
        std::fs::remove_dir_all(&folder).expect("the temporary folder can be removed");
        match found {
            Ok(bytes) => Some(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()),
            Err(None) => {
                println!("skipped: no C++ compiler");
                None
            }
            Err(Some(log)) => panic!("{}: the emitted C++ does not compile:\n{log}\n{source}", self.name),
        }
    }

    fn compare<T: RealScalar>(&self, place: &str, inputs: &[T], expected: &[T], found: &[T], ulps: f64) {
        assert_eq!(expected.len(), found.len(), "{}: {place} gave {} values", self.name, found.len());
        let epsilon = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        for (k, (e, f)) in expected.iter().zip(found).enumerate() {
            let (e, f) = (e.to_f64(), f.to_f64());
            let allowed = if ulps == 0.0 { 0.0 } else { ulps * epsilon * e.abs().max(f.abs()).max(self.scale) };
            let (i, columns) = (k / self.outputs.len(), self.columns.len());
            assert!(
                e == f || (e.is_nan() && f.is_nan()) || (e - f).abs() <= allowed,
                "{}: `{}` on {place} is {f:e}, in Rust {e:e}, allowed difference {allowed:e}, for x = {:?}",
                self.name,
                self.outputs[k % self.outputs.len()],
                &inputs[i * columns..(i + 1) * columns],
            );
        }
    }
}

fn cpp<T: RealScalar>() -> &'static str {
    if size_of::<T>() == 4 { "float" } else { "double" }
}

/// Compiles with the system's compiler, without contraction. `Err(None)`: there is none; `Err(Some)`: its log.
fn compile(folder: &Path, source: &str) -> Result<std::path::PathBuf, Option<String>> {
    let (file, binary) = (folder.join("twin.cpp"), folder.join("twin"));
    std::fs::write(&file, source).map_err(|e| Some(e.to_string()))?;
    let compiled =
        Command::new("c++").args(["-std=c++17", "-O0", "-ffp-contract=off", "-o"]).arg(&binary).arg(&file).output().map_err(|_| None)?;
    if compiled.status.success() { Ok(binary) } else { Err(Some(String::from_utf8_lossy(&compiled.stderr).into_owned())) }
}

fn run(binary: &Path, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(binary).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the twin runs");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    // The program reads everything before it writes anything.
    stdin.write_all(input).expect("the twin reads its inputs");
    drop(stdin);
    let output = child.wait_with_output().expect("the twin ends");
    assert!(output.status.success(), "the twin ended with {}", output.status);
    output.stdout
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWIN: Twin = Twin { name: "halved", sources: &[], columns: &[(0.0, 1.0)], outputs: &["x[0] / 2"], ulps: 2.0, scale: 0.0 };

    #[test]
    #[should_panic(expected = "`x[0] / 2` on here is 1.5e0, in Rust 1e0, allowed difference 6.66")]
    fn differences_are_found() {
        TWIN.compare("here", &[0.0, 2.0], &[0.0, 1.0], &[0.0, 1.5], 2.0);
    }

    #[test]
    fn last_places_and_the_scale_are_allowed() {
        let next = 1.0 + f64::EPSILON;
        TWIN.compare("here", &[2.0], &[1.0], &[next], 1.0);
        Twin { scale: 1e3, ..TWIN }.compare("here", &[0.0], &[1e-20], &[-1e-14], 1.0);
        TWIN.compare("here", &[f64::NAN], &[f64::NAN], &[f64::NAN], 0.0);
    }
}
