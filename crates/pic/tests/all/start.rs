//! Particles of the start: a GPU makes those of the CPU, bit for bit, by its own kernel and from the host.

use zellige_engine::cuda::{Cuda, Properties};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_pic::particles::Particles;
use zellige_pic::plasma::Plasma;
use zellige_pic::{Config, Pic};

fn start(cells: &str, size: &str, rest: &str, device: &Device) -> Particles {
    let text = format!("dt = 0.05\nsteps = 1\n{rest}[grid]\ncells = {cells}\nsize = {size}\n");
    let config: Config = toml::from_str(&text).unwrap();
    assert_eq!(config.check(), []);
    Plasma::new(&config, 0x0123_4567_89ab_cdef, device).unwrap().stages.particles(0).unwrap()
}

/// Tag, cell and all numbers of each, by tag.
fn sorted(p: &Particles) -> Vec<(u64, [u32; 2], [u64; 6])> {
    let weight = |k: usize| p.weight.get(k).copied().unwrap_or(1.0);
    let numbers = |k: usize| [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight(k)].map(f64::to_bits);
    let mut all: Vec<_> = (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], numbers(k))).collect();
    all.sort_unstable();
    all
}

fn the_same(cuda: &Cuda, cells: &str, size: &str, species: &str) {
    for precision in ["f32", "f64"] {
        let rest =
            format!("precision = \"{precision}\"\nspecies = [{{ name = \"a\", particles_per_cell = 36, tagged = true, {species} }}]\n");
        let of = |device: Device| sorted(&start(cells, size, &rest, &device));
        let (host, gpu) = (of(Device::Cpu(Cpu::new(3).unwrap())), of(Device::Cuda(cuda.clone())));
        assert!(host.len() > 1000);
        assert!(host == gpu, "{cells} {species} {precision}: {} and {} particles", host.len(), gpu.len());
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_gpu_begins_with_the_particles_of_the_cpu() {
    let Some(cuda) = testing::gpu() else { return };
    for (cells, size) in [("[70, 45]", "[7.0, 4.5]"), ("[1000]", "[100.0]")] {
        for species in [
            "momentum = { thermal = 0.1, drift = [0.5, 0, -1e-3] }",
            "momentum = { temperature = 0.02 }, positions = \"lattice\"",
            "positions = \"quiet\", momentum = { quiet = false, thermal = [1, 2, 3] }",
            "positions = \"quiet\", momentum = { thermal = 0.1 }",
            "density = \"1 + 0.5*sin(x)\", momentum = { maxwell_juttner = 0.3 }",
            "momentum = { maxwell_juttner = 0.3, drift = [0.5, 0, -1e-3] }",
        ] {
            the_same(&cuda, cells, size, species);
        }
    }
}

/// At the speed of light a tenth of the particles leave their tile in a step: more than wait in common until there are pages for
/// them.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn hot_particles_of_a_gpu_find_room_from_the_first_step_on() {
    let Some(cuda) = testing::gpu() else { return };
    let text = "dt = 0.07\nsteps = 3\nspecies = [{ name = \"a\", particles_per_cell = 64, momentum = { thermal = 10 } }]\n\
        [grid]\ncells = [256, 256]\nsize = [25.6, 25.6]\n";
    let config: Config = toml::from_str(text).unwrap();
    let mut plasma = Plasma::new(&config, 3, &Device::Cuda(cuda)).unwrap();
    for _ in 0..3 {
        plasma.advance(true, &mut Profiler::off()).unwrap();
    }
    assert_eq!(plasma.stages.count().unwrap(), [256 * 256 * 64]);
}

/// Kernels that are told before a run, for a pack, are those of the run: what makes the particles, too, where a GPU makes them.
#[test]
fn programs_that_make_particles_are_told() {
    for (rest, makes) in
        [("momentum = { thermal = 0.1 }", true), ("momentum = { maxwell_juttner = 1 }", true), ("density = \"1 + x\"", false)]
    {
        let text = format!(
            "dt = 0.05\nsteps = 1\nspecies = [{{ name = \"a\", particles_per_cell = 4, {rest} }}]\n[grid]\ncells = [16, 16]\nsize = [1, 1]\n"
        );
        let config: Config = toml::from_str(&text).unwrap();
        let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
        let programs = Pic::programs(&config, &environment, &Properties::usual("sm_90").unwrap()).unwrap();
        let names: Vec<_> = programs.iter().map(|recipe| recipe.name.as_str()).collect();
        assert_eq!(names.iter().any(|name| name.starts_with("pic start")), makes, "{names:?}");
        // Particles, fields, the pictures of who watches, and copies of fields and particles.
        assert_eq!(names.len(), 5 + usize::from(makes), "{names:?}");
    }
}

/// GPU and CPU make bitwise identical particles for a window, and their energy is in the ledger.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_gpu_brings_the_particles_of_the_cpu_into_a_window() {
    let Some(cuda) = testing::gpu() else { return };
    for species in [
        "momentum = { thermal = 0.1, drift = [0.5, 0, -1e-3] }",
        "momentum = { maxwell_juttner = 0.1 }",
        "positions = \"lattice\", momentum = { thermal = [1, 2, 3] }",
    ] {
        // They stand still, and have the bits that they came with.
        let text = format!(
            "dt = 0.05\nsteps = 60\nspecies = [{{ name = \"a\", particles_per_cell = 9, tagged = true, mobile = false, {species} }}]\n\
             [window]\nstart = 0.0\n[boundary]\nx = \"absorbing\"\ny = \"periodic\"\n[grid]\ncells = [50, 45]\nsize = [5.0, 4.5]\n"
        );
        let config: Config = toml::from_str(&text).unwrap();
        assert_eq!(config.check(), []);
        let [(here, a), (there, b)] = [Device::Cpu(Cpu::new(2).unwrap()), Device::Cuda(cuda.clone())].map(|device| {
            let mut plasma = Plasma::new(&config, 3, &device).unwrap();
            for _ in 0..60 {
                plasma.advance(false, &mut Profiler::off()).unwrap();
            }
            assert_eq!(plasma.moved, 30);
            (sorted(&plasma.stages.particles(0).unwrap()), plasma.account().unwrap().ledger)
        });
        assert!(here.len() == 50 * 45 * 9 && here == there, "{species}: {} and {} particles", here.len(), there.len());
        assert!((a.injected, a.removed) == (b.injected, b.removed) && a.removed == 30 * 45 * 9);
        // Sums in units of 2^-40, of which each block of 256 has one.
        assert!((a.energy_in / b.energy_in - 1.0).abs() < 1e-9 && (a.energy_out / b.energy_out - 1.0).abs() < 1e-6, "{a:?} {b:?}");
    }
}
