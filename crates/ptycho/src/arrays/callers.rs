//! Probes and objects as the caller has them: bits of complex values in the precision of the run, written where the caller keeps
//! them, and taken back only where they have changed since.

use std::ops::{Deref, DerefMut};

use num_complex::Complex;
use zellige_engine::cuda::Pinned;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks, chunks_mut, each, first, items, items_mut, map};

use crate::model::State;

/// Words that a thread copies or compares at once.
const PIECE: usize = 1 << 15;

/// Memory that a GPU copies to at full rate, where one does.
enum Memory {
    Plain(Vec<u64>),
    Pinned(Pinned<u64>),
}

impl Deref for Memory {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match self {
            Self::Plain(words) => words,
            Self::Pinned(words) => words,
        }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Plain(words) => words,
            Self::Pinned(words) => words,
        }
    }
}

/// Bits that the caller was told last: probes, then objects.
pub(super) struct CallersState {
    bits: Memory,
    /// Words of the probes.
    probe: usize,
    double: bool,
}

impl CallersState {
    /// Zeros for probes and objects of so many values.
    pub(super) fn new(device: &Device, [probe, object]: [usize; 2], double: bool) -> Result<Self> {
        let words = if double { 2 } else { 1 };
        let len = words * (probe + object);
        let bits = match device {
            Device::Cpu(_) => Memory::Plain(vec![0; len]),
            Device::Cuda(cuda) => Memory::Pinned(cuda.pinned(len, "probes and objects of the caller")?),
        };
        Ok(Self { bits, probe: words * probe, double })
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.bits.len()
    }

    /// Fills the bits by `copy`, from probes as they are held, with the phase `filter` `[ny][nx]` that propagation takes.
    pub(super) fn fill(&mut self, copy: impl FnOnce(&mut [u64]) -> Result<()>, filter: &[Complex<f64>]) -> Result<()> {
        copy(&mut self.bits)?;
        let probe = &mut self.bits[..self.probe];
        let phase = |i: usize| filter[i % filter.len()].conj();
        if self.double {
            each(items_mut(bytemuck::cast_slice_mut::<u64, Complex<f64>>(probe)), |i, v| *v *= phase(i));
        } else {
            each(items_mut(bytemuck::cast_slice_mut::<u64, Complex<f32>>(probe)), |i, v| {
                let wave = Complex::new(f64::from(v.re), f64::from(v.im)) * phase(i);
                *v = Complex::new(wave.re as f32, wave.im as f32);
            });
        }
        Ok(())
    }

    /// The bits in the caller's arrays, whose words are as many in all.
    pub(super) fn copy_to(&self, arrays: &mut [&mut [u64]]) {
        let mut at = 0;
        for array in arrays {
            let own = &self.bits[at..at + array.len()];
            at += array.len();
            each((chunks_mut(array, PIECE), chunks(own, PIECE)), |_, (to, from)| to.copy_from_slice(from));
        }
    }

    /// The bits from the caller's arrays.
    pub(super) fn copy_from(&mut self, arrays: &[&[u64]]) {
        let mut at = 0;
        for array in arrays {
            let own = &mut self.bits[at..at + array.len()];
            at += array.len();
            each((chunks_mut(own, PIECE), chunks(array, PIECE)), |_, (to, from)| to.copy_from_slice(from));
        }
    }

    /// Returns true if the caller's arrays hold these bits.
    pub(super) fn is(&self, arrays: &[&[u64]]) -> bool {
        let mut at = 0;
        arrays.iter().all(|array| {
            let own = &self.bits[at..at + array.len()];
            at += array.len();
            first((chunks(own, PIECE), chunks(array, PIECE)), |_, (own, theirs)| (own != theirs).then_some(())).is_none()
        })
    }

    /// The bits as numbers, probes bare.
    pub(super) fn state(&self) -> State {
        let (probe, object) = self.bits.split_at(self.probe);
        let numbers = |bits: &[u64]| {
            if self.double {
                return bytemuck::cast_slice(bits).to_vec();
            }
            map(items(bytemuck::cast_slice::<u64, Complex<f32>>(bits)), |_, v| Complex::new(f64::from(v.re), f64::from(v.im)))
        };
        State { probe: numbers(probe), object: numbers(object) }
    }
}

/// Bits of probe, then object, in single precision where there is one word a value, in double where there are two.
pub(crate) fn write_bits(state: &State, bits: &mut [u64]) {
    let values = state.probe.iter().chain(&state.object);
    if bits.len() == state.probe.len() + state.object.len() {
        let narrow = |v: &Complex<f64>| Complex::new(v.re as f32, v.im as f32);
        bytemuck::cast_slice_mut(bits).iter_mut().zip(values).for_each(|(to, v)| *to = narrow(v));
    } else {
        bytemuck::cast_slice_mut(bits).iter_mut().zip(values).for_each(|(to, v)| *to = *v);
    }
}
