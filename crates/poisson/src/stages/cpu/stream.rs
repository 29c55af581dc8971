//! Runs a pass over all bands of a level, on the threads of the CPU.

use zellige_engine::device::Cpu;
use zellige_engine::parallel::{chunks_mut, each, items_mut, owned};
use zellige_engine::real::RealScalar;

use super::band::{Slabs, bounds, split};
use super::field::{Aligned, Field};
use super::pass::{BandData, Pass, SlabSums};
use super::ring::Scratch;

/// An array given to a pass.
pub(super) enum Array<'a, T> {
    /// Array that is read.
    Read(&'a Field<T>),
    /// Array that is changed.
    Write(&'a mut Field<T>),
}

/// Buffers of passes besides the levels; they grow to the largest need and stay.
#[derive(Debug)]
pub(super) struct Workspace<T, U> {
    scratch: Vec<Scratch<T>>,
    r_halos: Vec<Aligned<T>>,
    pub(super) e_halos: Vec<Aligned<T>>,
    older_halos: Vec<Aligned<T>>,
    u_halos: Vec<Aligned<U>>,
    pub(super) sums: Vec<SlabSums>,
    /// A slab for what lies beyond the ends.
    pub(super) zeros: Aligned<T>,
}

impl<T: RealScalar, U: RealScalar> Workspace<T, U> {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            scratch: (0..threads).map(|_| Scratch::new()).collect(),
            r_halos: vec![Aligned::new(0); threads],
            e_halos: vec![Aligned::new(0); threads],
            older_halos: vec![Aligned::new(0); threads],
            u_halos: vec![Aligned::new(0); threads],
            sums: Vec::new(),
            zeros: Aligned::new(0),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let halos = self.r_halos.iter().chain(&self.e_halos).chain(&self.older_halos).map(Aligned::bytes).sum::<u64>();
        halos
            + self.u_halos.iter().map(Aligned::bytes).sum::<u64>()
            + self.scratch.iter().map(Scratch::bytes).sum::<u64>()
            + self.zeros.bytes()
    }

    /// Runs `pass`; gives the sums over slabs where it corrects.
    pub(super) fn stream(
        &mut self,
        cpu: &Cpu,
        pass: &Pass<'_, T, U>,
        r: Array<'_, T>,
        e: Option<Array<'_, T>>,
        u: Option<&mut Field<U>>,
        coarse: Option<&mut Field<T>>,
    ) -> &[SlabSums] {
        self.run(cpu, pass, r, (e, None), u, coarse)
    }

    /// Runs the sweeps of `pass` on `e`, `previous` being what `e` was a sweep before, and afterwards again.
    pub(super) fn advance_polynomial(&mut self, cpu: &Cpu, pass: &Pass<'_, T, U>, r: &Field<T>, e: &mut Field<T>, previous: &mut Field<T>) {
        self.run(cpu, pass, Array::Read(r), (Some(Array::Write(e)), Some(previous)), None, None);
    }

    fn run(
        &mut self,
        cpu: &Cpu,
        pass: &Pass<'_, T, U>,
        r: Array<'_, T>,
        (e, previous): (Option<Array<'_, T>>, Option<&mut Field<T>>),
        u: Option<&mut Field<U>>,
        coarse: Option<&mut Field<T>>,
    ) -> &[SlabSums] {
        let shape = pass.shape;
        let bounds = bounds(&pass.own, shape.nx * shape.rows, self.scratch.len(), pass.halo().max(1));
        self.sums.clear();
        self.sums.resize(shape.slabs, SlabSums::default());
        let mut bands: Vec<BandData<'_, T, U>> = Vec::with_capacity(bounds.len());
        let mut rest = &mut self.sums[pass.own.clone()];
        let rings = pass.rings();
        for ((first, end), scratch) in bounds.iter().zip(&mut self.scratch) {
            scratch.reserve(&rings, shape);
            let (sums, after) = rest.split_at_mut(end - first);
            rest = after;
            let nothing = Slabs::Band(super::band::Band::empty());
            bands.push(BandData { first: *first, end: *end, r: nothing, e: None, previous: None, u: None, coarse: None, sums, scratch });
        }
        match r {
            Array::Read(field) => bands.iter_mut().for_each(|b| b.r = Slabs::Shared(field)),
            Array::Write(field) => {
                let parts = split(field, &bounds, pass.halo(), pass.periodic[2], &mut self.r_halos);
                bands.iter_mut().zip(parts).for_each(|(b, part)| b.r = Slabs::Band(part));
            }
        }
        match e {
            Some(Array::Read(field)) => bands.iter_mut().for_each(|b| b.e = Some(Slabs::Shared(field))),
            Some(Array::Write(field)) => {
                let parts = split(field, &bounds, pass.halo(), pass.periodic[2], &mut self.e_halos);
                bands.iter_mut().zip(parts).for_each(|(b, part)| b.e = Some(Slabs::Band(part)));
            }
            None => {}
        }
        if let Some(field) = previous {
            let parts = split(field, &bounds, pass.halo(), pass.periodic[2], &mut self.older_halos);
            bands.iter_mut().zip(parts).for_each(|(b, part)| b.previous = Some(part));
        }
        if let Some(field) = u {
            let parts = split(field, &bounds, 1, pass.periodic[2], &mut self.u_halos);
            bands.iter_mut().zip(parts).for_each(|(b, part)| b.u = Some(part));
        }
        if let (Some(field), Some((transfer, _))) = (coarse, &pass.restrict) {
            let slab = field.shape.slab();
            let start_of = |first: usize| transfer[2].child.partition_point(|c| *c < first);
            field.beside = 0;
            let mut rest = &mut field.all_mut()[start_of(pass.own.start) * slab..];
            for band in &mut bands {
                let (start, end) = (start_of(band.first), start_of(band.end));
                let (own, after) = rest.split_at_mut((end - start) * slab);
                rest = after;
                band.coarse = Some((own, start));
            }
        }
        if bands.len() == 1 {
            for band in bands {
                pass.run(band);
            }
        } else {
            cpu.install(|| each(owned(bands), |_, band| pass.run(band)));
        }
        &self.sums
    }

    /// `r = f - A u` on all slabs, with their sums; `pass` gives the operator.
    pub(super) fn residual(&mut self, cpu: &Cpu, pass: &Pass<'_, T, U>, u: &Field<U>, r: &mut Field<T>) -> &[SlabSums] {
        let Some(correct) = &pass.correct else { return &[] };
        let slab = pass.shape.slab();
        self.sums.clear();
        self.sums.resize(pass.shape.slabs, SlabSums::default());
        let one = |j: usize, (r, sums): (&mut [T], &mut SlabSums)| {
            *sums = pass.outer_residual(correct, |j| u.wrapped(j), r, j as isize);
        };
        let first = pass.own.start;
        let sums = &mut self.sums[pass.own.clone()];
        r.beside = 0;
        let r = r.slabs_mut(pass.own.clone());
        if bounds(&pass.own, pass.shape.nx * pass.shape.rows, self.scratch.len(), 1).len() == 1 {
            r.chunks_exact_mut(slab).zip(sums).enumerate().for_each(|(j, parts)| one(first + j, parts));
        } else {
            cpu.install(|| each((chunks_mut(r, slab), items_mut(sums)), |j, parts| one(first + j, parts)));
        }
        &self.sums
    }
}
