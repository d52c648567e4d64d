//! How a reduction is walked and cut.

use crate::launch::{Axes, Device, View, split_axes};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// Elements of a segment at least.
const SEGMENT: u64 = 2048;

/// A reduction of a command.
pub(super) struct Fold {
    pub outputs: u32,
    pub segments: u32,
    count: u32,
    length: u32,
    kept: Axes<2>,
    reduced: Axes<1>,
}

impl Fold {
    /// The reduction of a tensor over the axes of a mask.
    pub fn of(
        device: &Device,
        (input, out): (&View<'_>, &View<'_>),
        mask: u64,
        cuts: bool,
    ) -> Result<Self> {
        let strides = input.strides.iter().zip(out.strides).map(|(i, o)| [*i, *o]);
        let axes: Vec<_> = input.shape.iter().copied().zip(strides).collect();
        let (reduced, kept) = split_axes(&axes, mask);
        let walked = reduced.iter().filter(|(n, _)| *n != 1).count();
        let kept = Axes::join([input.offset, out.offset], kept);
        let reduced = Axes::join([0], reduced.into_iter().map(|(n, [stride, _])| (n, [stride])));
        let (outputs, count) = (kept.elements()?, reduced.elements()?);
        // Segments until the device has enough to do.
        let wanted = device.context.properties.parallelism().div_ceil(outputs.into());
        let most = if cuts { u64::from(count).div_ceil(SEGMENT) } else { 1 };
        let length = u64::from(count).div_ceil(wanted.min(most).max(1));
        // Each element may take a turn of the outer loop, two of the inner one, and of the walk one for each axis and one more.
        // The axes are the shape's, since results must not depend on strides.
        let turns = 4 + walked.max(1) as u32;
        let iterations = device.context.properties.iterations;
        let length = length.min((iterations / turns).into());
        let segments = u64::from(count).div_ceil(length);
        let items = u64::from(outputs).checked_mul(segments);
        let fits = segments <= iterations.into();
        if !fits || items.is_none_or(|items| items > u64::from(u32::MAX)) {
            let text = format!("a reduction with {outputs} results of {count} elements");
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        let (length, segments) = (length as u32, segments as u32);
        Ok(Self { outputs, segments, count, length, kept, reduced })
    }

    /// The words of `fold.wgsl` behind the number of invocations.
    pub fn words(&self) -> Vec<u32> {
        let mut words = vec![self.outputs, self.count, self.length, self.segments, 0];
        self.kept.words(&mut words);
        // Word 0 is the number of invocations.
        words[4] = words.len() as u32 + 1;
        self.reduced.words(&mut words);
        words
    }
}
