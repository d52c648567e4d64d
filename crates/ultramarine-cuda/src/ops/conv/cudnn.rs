//! Convolutions by cuDNN. They are used for half dtypes, and for float32 that may be rounded to TF32, if the
//! tensors are dense.

use super::Role;
use crate::context::lock;
use crate::launch::{Dtype, Job, View};
use crate::ops::cudnn::graph::{ALIGNMENT, Convolved, Graph, Window};
use crate::ops::cudnn::plan::Plan;
use crate::ops::cudnn::{Library, Wish, data_of};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Level, Result};

/// Maximum number of cuDNN plans that are kept for one plan of the contract.
const MOST_KEPT: usize = 64;
/// Maximum workspace of an engine, in bytes.
const ROOM: u64 = 256 << 20;
/// Number of multiplications from which cuDNN was faster on an H200, with 64 channels: for half dtypes, and for float32. The
/// number is scaled with the square of the channels, because cuDNN gets better with more channels.
const WORTH: [i64; 2] = [1 << 30, 1 << 28];
const CHANNELS: i64 = 64;
/// Identities of the input, the weight and the output in a graph.
const IDS: [i64; 3] = [1, 2, 3];

/// cuDNN convolutions of one role and dtype, with the plans that were made for their sizes. Sizes
/// that cuDNN does not support are remembered, too.
pub struct Networks {
    role: Role,
    dtype: Dtype,
    kept: Mutex<HashMap<Sizes, Option<Arc<Plan>>>>,
}

/// An axis of the window: stride, dilation, and zero padding on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Span {
    stride: i64,
    spread: i64,
    low: i64,
    high: i64,
}

/// The sizes that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sizes {
    x: [i64; 5],
    w: [i64; 5],
    y: [i64; 5],
    spans: [Span; 3],
}

/// A call of cuDNN: its plan, and the addresses of input, weight and output.
pub struct Call {
    plan: Arc<Plan>,
    addresses: [u64; 3],
}

impl Call {
    /// Bytes of workspace.
    pub fn workspace(&self) -> u64 {
        self.plan.workspace()
    }

    /// Enqueues it.
    pub fn run(&self, job: &Job<'_>) -> Result<()> {
        let own = if self.workspace() > 0 { job.scratch()? } else { 0 };
        let [x, w, y] = self.addresses;
        self.plan.run(job, &[(IDS[0], x), (IDS[1], w), (IDS[2], y)], &[], own)
    }
}

impl Networks {
    /// `shortens`: float32 that may be rounded to TF32. `None` if this crate's kernels are better.
    pub fn new(role: Role, dtype: Dtype, shortens: bool, flip: bool) -> Option<Self> {
        let serves = (dtype.is_half() || shortens) && !flip && Wish::get() != Wish::Never;
        serves.then(|| Self { role, dtype, kept: Mutex::default() })
    }

    /// The call for a command. `None` if this crate's kernels do it. The device's context is
    /// current.
    pub fn call(&self, job: &Job<'_>) -> Result<Option<Call>> {
        let is_measured = job.device.properties.major == 9;
        if !is_measured && Wish::get() != Wish::Always {
            return Ok(None);
        }
        let (a, b, c) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let tensors = match self.role {
            Role::Output => [a, b, c],
            Role::Input => [c, a, b],
            Role::Weight => [a, c, b],
        };
        let mut scalars = [0; 12];
        for (i, place) in scalars.iter_mut().enumerate() {
            *place = job.scalar(i)? as i64;
        }
        let is_dense = |view: &&View<'_>| view.is_contiguous() && view.is_aligned(ALIGNMENT as u64);
        let Some(sizes) = Sizes::of(tensors.map(|t| t.shape), &scalars) else { return Ok(None) };
        if !sizes.is_served(self.dtype, Wish::get()) || !tensors.iter().all(is_dense) {
            return Ok(None);
        }
        let Some(library) = Library::of(job.device) else { return Ok(None) };
        let mut kept = lock(&self.kept);
        let known = kept.get(&sizes).cloned();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let made = self.make(library, &sizes);
                if let Err(why) = &made {
                    let text = format!("no convolution by cuDNN for {sizes:?}: {}", why.text);
                    job.device.host.log(Level::Debug, &text);
                }
                if kept.len() >= MOST_KEPT {
                    kept.clear();
                }
                let plan = made.ok().map(Arc::new);
                kept.insert(sizes, plan.clone());
                plan
            }
        };
        Ok(plan.map(|plan| Call { plan, addresses: tensors.map(|t| t.address) }))
    }

    fn make(&self, library: &Arc<Library>, sizes: &Sizes) -> Result<Plan> {
        let data = data_of(self.dtype).unwrap_or_default();
        let flat = sizes.is_flat();
        let mut graph = Graph::new(library);
        let mut add = |id: i64, shape: [i64; 5]| {
            let (sizes, strides) = channels_first(shape, flat);
            graph.tensor(id, data, &sizes, &strides)
        };
        let tensors = [add(IDS[0], sizes.x)?, add(IDS[1], sizes.w)?, add(IDS[2], sizes.y)?];
        let spans = &sizes.spans[usize::from(flat)..];
        let list = |of: fn(&Span) -> i64| spans.iter().map(of).collect::<Vec<_>>();
        let window = Window {
            strides: &list(|s| s.stride),
            dilations: &list(|s| s.spread),
            before: &list(|s| s.low),
            after: &list(|s| s.high),
        };
        let what = match self.role {
            Role::Output => Convolved::Output,
            Role::Input => Convolved::Input,
            Role::Weight => Convolved::Weight,
        };
        graph.convolve(what, &window, tensors)?;
        graph.plan(ROOM)
    }
}

/// Sizes and strides in channels-first order, of a dense tensor that has the channels last; `flat` leaves out the first
/// spatial axis.
fn channels_first(shape: [i64; 5], flat: bool) -> (Vec<i64>, Vec<i64>) {
    let strides = crate::launch::row_major(&shape);
    let order: &[usize] = if flat { &[0, 4, 2, 3] } else { &[0, 4, 1, 2, 3] };
    order.iter().map(|d| (shape[*d], strides[*d])).unzip()
}

impl Sizes {
    /// Makes the sizes from the shapes of input, weight and output, and the command's scalars. `None` if cuDNN has
    /// no such window.
    fn of(shapes: [&[i64]; 3], scalars: &[i64; 12]) -> Option<Self> {
        let mut five = [[0; 5]; 3];
        for (to, from) in five.iter_mut().zip(shapes) {
            *to = from.try_into().ok()?;
        }
        let [x, w, y] = five;
        let span = |d: usize| {
            let [stride, low, spread, gaps] = [0, 3, 6, 9].map(|first| scalars[first + d]);
            if gaps != 1 || low < 0 || stride < 1 || spread < 1 {
                return None;
            }
            // The padding after the input must be in the range that gives the output its size. It equals the
            // padding before if that is in this range.
            let last = (y[1 + d] - 1).checked_mul(stride)?;
            let reach = last.checked_add((w[1 + d] - 1).checked_mul(spread)?)?.checked_add(1)?;
            let least = reach.checked_sub(low.checked_add(x[1 + d])?)?;
            let high = if (least..least + stride).contains(&low) { low } else { least.max(0) };
            (least + stride > 0).then_some(Span { stride, spread, low, high })
        };
        Some(Self { x, w, y, spans: [span(0)?, span(1)?, span(2)?] })
    }

    /// True if only two of the spatial axes matter.
    fn is_flat(&self) -> bool {
        let trivial = Span { stride: 1, spread: 1, low: 0, high: 0 };
        let strideless = Span { stride: 1, ..self.spans[0] };
        [self.x[1], self.w[1], self.y[1]] == [1; 3] && strideless == trivial
    }

    /// True if rows of channels are multiples of 16 bytes, there is one group, and there is enough
    /// to compute.
    fn is_served(&self, dtype: Dtype, wish: Wish) -> bool {
        let each = 16 / dtype.bytes() as i64;
        let all = |shape: &[i64]| shape.iter().fold(1i64, |all, n| all.saturating_mul(*n));
        let products = all(&self.y).saturating_mul(all(&self.w[1..]));
        let channels = self.x[4].min(self.y[4]);
        let worth = WORTH[usize::from(dtype == Dtype::Float32)];
        let counted = (products / (CHANNELS * CHANNELS)).saturating_mul(channels * channels);
        let taps = all(&self.w[1..4]);
        self.w[4] == self.x[4]
            && [self.x[4], self.y[4]].iter().all(|n| n % each == 0)
            // With a single tap, the convolution is a matrix product.
            && (taps > 1 || self.spans.iter().any(|s| s.stride > 1))
            && (wish == Wish::Always || counted >= worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(
        x: [i64; 5],
        w: [i64; 5],
        y: [i64; 5],
        strides: [i64; 3],
        low: [i64; 3],
    ) -> Option<Sizes> {
        let mut scalars = [1; 12];
        scalars[..3].copy_from_slice(&strides);
        scalars[3..6].copy_from_slice(&low);
        Sizes::of([&x, &w, &y], &scalars)
    }

    #[test]
    fn zeros_behind_are_those_before_where_the_size_allows_it() {
        let of = |x: i64, y: i64, stride: i64, low: i64| {
            let (x, w, y) = ([2, 1, x, x, 8], [8, 1, 3, 3, 8], [2, 1, y, y, 8]);
            sizes(x, w, y, [1, stride, stride], [0, low, low])
                .map(|s| (s.spans[2].high, s.is_flat()))
        };
        assert_eq!(of(8, 8, 1, 1), Some((1, true)));
        assert_eq!(of(8, 4, 2, 1), Some((1, true)));
        // Padding that differs on both sides: the last elements are cut off, or more are added.
        assert_eq!(of(8, 7, 1, 1), Some((0, true)));
        assert_eq!(of(8, 9, 1, 1), Some((2, true)));
        // Some input elements are not read.
        assert_eq!(of(8, 5, 1, 1), None);
        assert_eq!(of(8, 8, 1, -1), None);
    }

    #[test]
    fn large_dense_convolutions_are_served() {
        let of = |n: i64, side: i64, channels: i64, taps: i64| {
            let low = (taps - 1) / 2;
            let (x, w) = ([n, 1, side, side, channels], [channels, 1, taps, taps, channels]);
            sizes(x, w, x, [1; 3], [0, low, low]).unwrap()
        };
        let faster = |s: Sizes, dtype| s.is_served(dtype, Wish::WhereFaster);
        assert!(faster(of(32, 56, 64, 3), Dtype::Bfloat16));
        assert!(faster(of(32, 14, 512, 3), Dtype::Float32));
        // One tap; rows of channels that are not multiples of 16 bytes; little to compute.
        assert!(!faster(of(32, 56, 64, 1), Dtype::Bfloat16));
        assert!(
            !faster(of(32, 56, 76, 3), Dtype::Bfloat16)
                && faster(of(32, 56, 76, 3), Dtype::Float32)
        );
        assert!(!faster(of(1, 8, 16, 3), Dtype::Float16));
        assert!(
            !faster(of(8, 56, 64, 3), Dtype::Float16) && faster(of(8, 56, 64, 3), Dtype::Float32)
        );
        assert!(
            faster(of(4, 14, 256, 3), Dtype::Float16) && !faster(of(32, 112, 8, 7), Dtype::Float16)
        );
        assert!(of(1, 8, 16, 3).is_served(Dtype::Float16, Wish::Always));
    }

    #[test]
    fn channels_come_first() {
        let (sizes, strides) = channels_first([2, 1, 3, 5, 8], true);
        assert_eq!((sizes, strides), (vec![2, 8, 3, 5], vec![120, 1, 40, 8]));
        let (sizes, strides) = channels_first([2, 4, 3, 5, 8], false);
        assert_eq!((sizes, strides), (vec![2, 8, 4, 3, 5], vec![480, 1, 120, 40, 8]));
    }
}
