//! The kernels of a reduction with one functor and one operation.

use super::fold::{Fold, Kind, Variant};
use crate::launch::{Job, launch};
use crate::program::{Kernel, Kernels, Programs, Source};
use ultramarine_abi::helper::Result;

/// Writes the source of a variant.
type Make = dyn Fn(&Variant) -> Source + Send + Sync;

/// The kernels of one functor and operation, by [`Variant`], compiled at their first use.
pub struct FoldKernels {
    make: Box<Make>,
    headers: &'static [&'static str],
    op: String,
    kernels: Kernels<Variant>,
}

impl FoldKernels {
    /// `op` is the operation's name in the kernels, such as `Sum<F32>`, which `headers` define;
    /// `make` returns the source of a variant other than [`Kind::Merge`].
    pub fn new(
        op: impl Into<String>,
        headers: &'static [&'static str],
        make: impl Fn(&Variant) -> Source + Send + Sync + 'static,
    ) -> Self {
        Self { make: Box::new(make), headers, op: op.into(), kernels: Kernels::default() }
    }

    fn source(&self, variant: &Variant) -> Source {
        let Kind::Merge(_) = variant.kind else { return (self.make)(variant) };
        let op = &self.op;
        let (template, arguments) = (variant.template(), format!("{op} {}", variant.name()));
        let (parameters, body) = (variant.parameters(op), variant.call(op, ""));
        Source::with_body(self.headers, template, arguments, parameters, body).bounded(256)
    }

    /// A compiled kernel. The device's context is current.
    pub fn get(&self, programs: &Programs, variant: &Variant) -> Result<Kernel> {
        self.kernels.get(programs, *variant, || self.source(variant))
    }

    /// True if a reduction's kernels are in memory. Missing kernels are compiled in the background,
    /// or read from disk. The device's context is current.
    pub fn ready(&self, programs: &Programs, fold: &Fold) -> Result<bool> {
        let mut all = true;
        for variant in [Some(fold.variant), fold.merge().map(|(variant, _)| variant)] {
            let Some(variant) = variant else { continue };
            let source = || self.source(&variant);
            all &= self.kernels.ready(programs, variant, || source().name(), source)?;
        }
        Ok(all)
    }

    /// If there are several segments, merges them into the tensor at `out`.
    pub fn merge(&self, job: &Job<'_>, fold: &Fold, out: u64, partial: u64) -> Result<()> {
        let Some((variant, grid)) = fold.merge() else { return Ok(()) };
        let kernel = self.get(&job.device.programs, &variant)?;
        launch!(job, &kernel, grid; out, partial, fold.words[..])
    }
}
