//! How a reduction is walked and divided.

use crate::hal::Properties;
use crate::launch::{Axes, Device, TICKETS, View, split_axes};
use crate::shader::vector::FOUR;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// Minimum number of elements of a segment that a single invocation reduces.
const SEGMENT: u64 = 2048;
/// Invocations of a workgroup of `group.wgsl`.
pub(super) const GROUP: u32 = 256;
/// Elements that a lane of a workgroup processes per iteration.
const TURN: u64 = 16;
/// Maximum number of an output's segments that one invocation adds.
const FEW: u32 = 32;

/// How the elements of a reduction are divided. The division affects results, so it depends only on the shape and
/// the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Lanes per segment; 1 if a single invocation reduces it.
    lanes: u32,
    /// Elements of a segment.
    length: u64,
}

/// The shape of a reduction.
#[derive(Clone, Copy, Debug)]
struct Problem {
    outputs: u64,
    count: u64,
    /// True if the innermost axis is reduced.
    rows: bool,
}

impl Cut {
    /// For invocations without shared memory. `axes` is the number of walked axes; `cuts` allows
    /// several segments.
    fn serial(of: Problem, axes: u32, cuts: bool, properties: &Properties) -> Self {
        // Enough segments to keep the device busy.
        let wanted = properties.parallelism().div_ceil(of.outputs);
        let most = if cuts { of.count.div_ceil(SEGMENT) } else { 1 };
        let length = of.count.div_ceil(wanted.min(most).max(1));
        // Each element may take one iteration of the outer loop, two of the inner loop, and in the walk one per axis and one
        // more.
        let turns = 4 + axes.max(1);
        Self { lanes: 1, length: length.min((properties.iterations / turns).into()) }
    }

    /// For workgroups with shared memory.
    fn grouped(of: Problem, parallelism: u64) -> Self {
        // Rows are read along lanes, and columns along outputs; at least 64 bytes are read together. A lane has 4 loads in
        // flight, and this number of lanes per row fills the GPU. If there are few outputs, more lanes are possible.
        let base = if of.rows { 64 } else { 16 };
        let room = u64::from(GROUP) / of.outputs.next_power_of_two().min(GROUP.into());
        let useful = of.count.div_ceil(FOUR as u64).next_power_of_two();
        let lanes = room.max(base).min(useful);
        let turn = TURN * lanes;
        // There are twice as many lanes as keep the device busy, because lanes do not end at the same time. Each has at least
        // four iterations. If one segment per output is enough, a second kernel would take longer.
        let wanted = match of.outputs * lanes >= parallelism {
            true => 1,
            // Whole workgroups, the last of which merges, are cheap, so there can be more of them.
            false if lanes == u64::from(GROUP) => (4 * parallelism).div_ceil(of.outputs * lanes),
            false => (2 * parallelism).div_ceil(of.outputs * lanes),
        };
        let segments = wanted.min(of.count.div_ceil(4 * turn)).max(1);
        let length = match segments {
            1 => of.count,
            _ => of.count.div_ceil(segments).next_multiple_of(turn),
        };
        Self { lanes: lanes as u32, length }
    }
}

/// A reduction of a command.
pub(super) struct Fold {
    pub outputs: u32,
    pub segments: u32,
    /// True if 4 elements may be read at once.
    pub vectors: bool,
    count: u32,
    cut: Cut,
    /// True if lanes are contiguous in memory, false if outputs are.
    lanes_first: bool,
    kept: Axes<2>,
    reduced: Axes<1>,
}

/// The strategies that a reduction may use.
#[derive(Clone, Copy)]
pub(super) struct Allowed {
    /// Several segments per output.
    pub cuts: bool,
    /// Workgroups with shared memory.
    pub grouped: bool,
}

impl Fold {
    /// The reduction of a tensor over the axes of a mask.
    pub fn of(
        device: &Device,
        (input, out): (&View<'_>, &View<'_>),
        mask: u64,
        allowed: Allowed,
    ) -> Result<Self> {
        let strides = input.strides.iter().zip(out.strides).map(|(i, o)| [*i, *o]);
        let axes: Vec<_> = input.shape.iter().copied().zip(strides).collect();
        let innermost = input.shape.iter().rposition(|n| *n != 1).unwrap_or(0);
        let rows = innermost < 64 && mask >> innermost & 1 == 1;
        let (reduced, kept) = split_axes(&axes, mask);
        let walked = reduced.iter().filter(|(n, _)| *n != 1).count() as u32;
        let kept = Axes::join([input.offset, out.offset], kept);
        let reduced = Axes::join([0], reduced.into_iter().map(|(n, [stride, _])| (n, [stride])));
        let (outputs, count) = (kept.elements()?, reduced.elements()?);
        let problem = Problem { outputs: outputs.into(), count: count.into(), rows };
        let properties = &device.context.properties;
        let cut = match allowed.grouped {
            true => Cut::grouped(problem, properties.parallelism()),
            false => Cut::serial(problem, walked, allowed.cuts, properties),
        };
        let segments = u64::from(count).div_ceil(cut.length);
        let items = u64::from(outputs).checked_mul(segments);
        let fits = segments <= properties.iterations.into();
        if !fits || items.is_none_or(|items| items > u64::from(u32::MAX)) {
            let text = format!("a reduction with {outputs} results of {count} elements");
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        let step = |last: Option<i64>| last.map_or(i64::MAX, i64::abs);
        let along = step(reduced.list.last().map(|(_, [stride])| *stride));
        let across = step(kept.list.last().map(|(_, [stride, _])| *stride));
        let fours = |n: i64| n % FOUR == 0;
        let vectors = matches!(reduced.list[..], [(_, [1])])
            && input.ends_with_vector()
            && fours(input.offset)
            && kept.list.iter().all(|(_, [stride, _])| fours(*stride));
        let (lanes_first, segments) = (along <= across, segments as u32);
        Ok(Self { outputs, segments, vectors, count, cut, lanes_first, kept, reduced })
    }

    /// Workgroups.
    pub fn groups(&self) -> u32 {
        (self.outputs * self.segments).div_ceil(GROUP / self.cut.lanes)
    }

    /// True if each workgroup has one segment, and there is a ticket for each output.
    pub fn is_single(&self) -> bool {
        self.segments > 1 && self.cut.lanes == GROUP && self.outputs <= TICKETS
    }

    /// True if an output has so many segments that a workgroup adds them.
    pub fn merges_many(&self) -> bool {
        self.segments > FEW
    }

    /// The words of `fold.wgsl` after the number of invocations.
    pub fn words(&self) -> Vec<u32> {
        let Cut { lanes, length } = self.cut;
        let mut words = vec![self.outputs, self.count, length as u32, self.segments, 0];
        words.extend([lanes, self.lanes_first.into()]);
        self.kept.words(&mut words);
        // The index in words is one higher, because word 0 is the number of invocations.
        words[4] = words.len() as u32 + 1;
        self.reduced.words(&mut words);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_reductions_fill_a_gpu() {
        let cut = |outputs, count, rows| {
            let cut = Cut::grouped(Problem { outputs, count, rows }, 65536);
            (cut.lanes, cut.length)
        };
        assert_eq!(cut(4096, 4096, true), (64, 4096));
        assert_eq!(cut(4096, 4096, false), (16, 4096));
        assert_eq!(cut(1, 1 << 24, true), (256, 1 << 14));
        // Three columns have 64 lanes, and short rows have one or two.
        assert_eq!(cut(3, 1 << 20, false).0, 64);
        assert_eq!((cut(1 << 20, 4, true).0, cut(1 << 20, 5, true).0), (1, 2));
    }

    #[test]
    fn segments_cover_all_elements() {
        for outputs in [1, 2, 3, 100, 300, 5000] {
            for count in [1, 3, 4, 63, 64, 1000, 16385, 1 << 20, (1 << 24) + 1] {
                for rows in [false, true] {
                    let cut = Cut::grouped(Problem { outputs, count, rows }, 65536);
                    assert!(cut.lanes.is_power_of_two() && cut.lanes <= GROUP);
                    let segments = count.div_ceil(cut.length);
                    assert!(
                        segments == 1 || cut.length.is_multiple_of(TURN * u64::from(cut.lanes))
                    );
                }
            }
        }
    }
}
