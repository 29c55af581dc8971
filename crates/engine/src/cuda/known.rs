//! Typical properties of each architecture, for kernels that are compiled where there is no GPU.

use super::context::Properties;

/// Architecture, card, multiprocessors, KiB of shared memory of a block and of a multiprocessor, MiB of L2 cache, GB of memory: by
/// NVIDIA's data sheets.
const KNOWN: [(&str, &str, u32, u32, u32, usize, u64); 6] = [
    ("sm_75", "T4", 40, 64, 64, 4, 16),
    ("sm_80", "A100", 108, 163, 164, 40, 80),
    ("sm_86", "A40", 84, 99, 100, 6, 48),
    ("sm_89", "L40S", 142, 99, 100, 96, 48),
    ("sm_90", "H100, H200", 132, 227, 228, 50, 80),
    ("sm_100", "B200", 148, 227, 228, 126, 180),
];

impl Properties {
    /// Properties of the card that an architecture is best known for. Kernels compiled for it run on all cards of the architecture;
    /// they are not used on cards where another number of multiprocessors leads to other tile sizes.
    pub fn usual(arch: &str) -> Option<Self> {
        let (_, name, multiprocessors, block, all, l2, memory) = *KNOWN.iter().find(|known| known.0 == arch)?;
        let capability: u32 = arch.strip_prefix("sm_")?.parse().ok()?;
        Some(Self {
            name: name.to_owned(),
            capability: (capability / 10, capability % 10),
            multiprocessors,
            l2: l2 << 20,
            shared_per_block: block << 10,
            shared_per_multiprocessor: all << 10,
            memory: memory * 1_000_000_000,
            cooperative: true,
        })
    }

    /// Architectures that [`Properties::usual`] knows.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.0)
    }
}
