//! The choice of a kernel in `kernels/reduce.cuh`, with its grid, parameters and workspace.
//!
//! REDUCE, ARG_REDUCE and the epilogues of fused programs use it in three steps:
//!
//! 1. [`Problem`] describes which tensors are walked together and which axes are reduced.
//!    [`Fold::of`] chooses the kernel ([`Variant`], with its template arguments) and the launch.
//! 2. The caller makes the kernel's source: `headers::NUMBER`, `text::REDUCE`, the functor, and an entry with the
//!    caller's tensors and three more parameters, [`Variant::parameters`]. The entry's body constructs the functor `f` and
//!    ends with [`Variant::call`]. [`FoldKernels`](super::FoldKernels) keeps the compiled kernels.
//! 3. For each command, the caller provides [`Fold::workspace`] bytes, and launches with [`Fold::grid`], its own arguments, the
//!    addresses of the output and of the workspace (or 0), and `fold.words[..]`. It then calls
//!    [`FoldKernels::merge`](super::FoldKernels::merge), which has an effect only if the reduction was split into segments.

use crate::context::DeviceProperties;
use crate::launch::{Grid, MAX_AXES, span};

/// `kernels/reduce.cuh`; it comes after `number.cuh`.
pub const HEADER: &str = include_str!("../../../kernels/reduce.cuh");

/// `FOLD_THREADS` of the kernels.
const THREADS: u64 = 256;

/// A reduction for which a kernel is chosen; [`Fold`] is the result.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The iteration shape.
    pub shape: &'a [i64],
    /// Strides in elements over that shape, for each tensor that the functor reads or writes.
    pub strides: &'a [&'a [i64]],
    /// For each tensor, the address of its first element and the bytes of an element. They
    /// determine whether vectors are aligned.
    pub places: &'a [(u64, u64)],
    /// The output's strides; those of reduced axes are ignored.
    pub out: &'a [i64],
    /// Bit `i`: axis `i` is reduced.
    pub axes: u64,
    /// Maximum number of elements that `F::many` takes at once, a power of two; 1 if there is no
    /// `many`.
    pub vector: u32,
}

impl Problem<'_> {
    /// The kept and the reduced axes, without those of one element.
    fn axes(&self) -> (Vec<Axis>, Vec<Axis>) {
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for (i, size) in self.shape.iter().copied().enumerate().filter(|(_, n)| *n != 1) {
            let gone = self.axes >> i & 1 == 1;
            let mut strides: Vec<i64> = self.strides.iter().map(|s| s[i]).collect();
            strides.push(if gone { 0 } else { self.out[i] });
            let axes = if gone { &mut reduced } else { &mut kept };
            axes.push(Axis { number: i, size, strides });
        }
        (kept, reduced)
    }
}

/// The family of a reduction kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `fold_rows` with this number of threads for an output's segment.
    Rows(u32),
    /// `fold_columns`.
    Columns,
    /// `fold_merge` with this number of threads for an output.
    Merge(u32),
}

/// The template arguments of a kernel in `reduce.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The family.
    pub kind: Kind,
    /// Number of tensors.
    pub tensors: u32,
    /// Number of kept and of reduced axes that the kernel supports.
    pub ranks: (u32, u32),
    /// True for 64-bit indices.
    pub wide: bool,
    /// Elements that are loaded at once.
    pub vector: u32,
    /// Bit `k`: tensor `k` has stride 1 along vectors; 0 if elements are loaded one by one.
    pub unit: u64,
    /// True if the elements of a vector are not adjacent.
    pub gather: bool,
}

impl Variant {
    /// The kernels' type of indices: `I`.
    pub fn index(&self) -> &'static str {
        if self.wide { "i64" } else { "i32" }
    }

    /// `Fold<...>`: the type of the words.
    fn fold(&self) -> String {
        format!("Fold<{}, {}, {}>", self.tensors, self.ranks.0, self.ranks.1)
    }

    /// The last three parameters of the entry, for an operation such as `Sum<F32>`.
    pub fn parameters(&self, op: &str) -> String {
        format!("{op}::Out::T *out, {op}::Acc *partial, const {} w", self.fold())
    }

    /// The template that [`Variant::call`] calls.
    pub fn template(&self) -> &'static str {
        match self.kind {
            Kind::Rows(_) => "fold_rows",
            Kind::Columns => "fold_columns",
            Kind::Merge(_) => "fold_merge",
        }
    }

    /// The statement that runs the reduction, for an operation and the type of the functor `f`.
    pub fn call(&self, op: &str, functor: &str) -> String {
        let (k, (kept, reduced), i) = (self.tensors, self.ranks, self.index());
        let walk = format!("{k}, {kept}, {reduced}, {i}");
        match self.kind {
            Kind::Rows(team) => format!(
                "fold_rows<{op}, {functor}, {walk}, {team}, {}, {}>(f, out, partial, w);",
                self.vector, self.gather
            ),
            Kind::Columns => {
                format!(
                    "fold_columns<{op}, {functor}, {walk}, {}, {}>(f, out, partial, w);",
                    self.vector, self.gather
                )
            }
            Kind::Merge(team) => format!("fold_merge<{op}, {walk}, {team}>(out, partial, w);"),
        }
    }

    /// A unique name of the variant, used in the kernel's name.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Rows(team) => format!("rows{team}"),
            Kind::Columns => "columns".to_owned(),
            Kind::Merge(team) => format!("merge{team}"),
        };
        let (kept, reduced) = self.ranks;
        let (vector, unit, gather) =
            (self.vector, self.unit, if self.gather { " gather" } else { "" });
        let index = self.index();
        format!("{kind} {} {kept} {reduced} {index} {vector} {unit:x}{gather}", self.tensors)
    }
}

/// An axis: its index, its size, the tensors' strides and, last, the output's stride.
struct Axis {
    number: usize,
    size: i64,
    strides: Vec<i64>,
}

/// Cost of a step along an axis: adjacent elements share a cache line.
fn cost(axis: &Axis, places: &[(u64, u64)]) -> u64 {
    let steps = axis.strides.iter().zip(places);
    let each = |(stride, (_, bytes)): (&i64, &(u64, u64))| match stride.unsigned_abs() {
        0 => 3,
        n => 2 * n.saturating_mul(*bytes).clamp(1, 128),
    };
    steps.map(each).sum()
}

/// Sorts axes so that the cheapest one is innermost.
fn sort(axes: &mut [Axis], places: &[(u64, u64)]) {
    let far = |axis: &Axis| axis.strides.iter().map(|s| s.unsigned_abs()).max().unwrap_or(0);
    axes.sort_by_key(|axis| std::cmp::Reverse((cost(axis, places), far(axis))));
}

/// Joins axes where all strides allow it.
fn joined(axes: Vec<Axis>) -> Vec<Axis> {
    let mut all: Vec<Axis> = Vec::with_capacity(axes.len());
    for axis in axes {
        match all.last_mut() {
            Some(outer)
                if outer
                    .strides
                    .iter()
                    .zip(&axis.strides)
                    .all(|(a, b)| *a == b.wrapping_mul(axis.size)) =>
            {
                outer.size *= axis.size;
                outer.strides = axis.strides;
            }
            _ => all.push(axis),
        }
    }
    all
}

/// The factor and shift by which 32-bit kernels divide by `size`.
fn magic(size: i64) -> u64 {
    let size = size as u64;
    if size > u64::from(u32::MAX >> 1) {
        return 0; // 64-bit kernels divide
    }
    let shift = u64::from(u64::BITS - (size.max(1) - 1).leading_zeros());
    let factor = ((((1u64 << shift) - size) << 32) / size + 1) & 0xffff_ffff;
    factor | shift << 32
}

/// A reduction that is ready to launch: the kernel, its parameter and its grid.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The kernel.
    pub variant: Variant,
    /// The parameter `w`.
    pub words: Vec<u64>,
    /// Number of outputs.
    pub outputs: u64,
    /// Elements of each reduction.
    pub count: u64,
    /// Number of segments that a reduction is split into; their results are merged.
    pub segments: u64,
    /// The tensors' strides along the reduced axis, if there is only one.
    pub along: Option<Vec<i64>>,
    blocks: u64,
    /// The reduced axes, in the order in which they are visited.
    order: Vec<usize>,
}

/// Lengths of a reduction and of its segments.
struct Cut {
    kind: Kind,
    lanes: u32,
    length: u64,
    segments: u64,
    blocks: u64,
}

/// Maximum number of elements that a thread joins one after another.
const CHAIN: u64 = 512;

impl Cut {
    fn segments(count: u64, wanted: u64, least: u64, most: u64, vector: u64) -> (u64, u64) {
        let segments = wanted.clamp(1, count.div_ceil(least).max(1)).max(count.div_ceil(most));
        let length = count.div_ceil(segments).div_ceil(vector) * vector;
        (length, count.div_ceil(length))
    }

    fn rows(outputs: u64, count: u64, vector: u64, parallelism: u64) -> Self {
        let vectors = count.div_ceil(vector);
        let mut team = match vectors {
            0..=2 => 1,
            3..=32 => 8,
            33..=256 => 32,
            _ => THREADS,
        };
        // With few outputs, each gets more threads.
        while team < THREADS && vectors > 2 * team && outputs * team < parallelism / 4 {
            team = if team == 1 {
                8
            } else if team == 8 {
                32
            } else {
                THREADS
            };
        }
        let (mut length, mut segments) = (count.div_ceil(vector) * vector, 1);
        if team == THREADS {
            let chains = if vector == 1 {
                8
            } else if vector >= 8 {
                2
            } else {
                4
            };
            let wanted = (2 * parallelism / THREADS).div_ceil(outputs);
            let least = THREADS * vector * chains;
            (length, segments) = Self::segments(count, wanted, least, least * CHAIN, vector);
        }
        let blocks = (outputs * segments).div_ceil(THREADS / team);
        Self { kind: Kind::Rows(team as u32), lanes: 0, length, segments, blocks }
    }

    fn columns(outputs: u64, count: u64, vector: u64, parallelism: u64) -> Self {
        // 32 adjacent threads read whole lines; more are used if there is little to reduce.
        let wide = outputs.div_ceil(vector).next_power_of_two();
        let rows = count.div_ceil(4).next_power_of_two().min(8);
        let lanes = wide.min(THREADS / rows);
        let rows = THREADS / lanes;
        let groups = outputs.div_ceil(vector).div_ceil(lanes);
        let wanted = (2 * parallelism / THREADS).div_ceil(groups);
        let (length, segments) = Self::segments(count, wanted, 16 * rows, 4 * CHAIN * rows, 1);
        let blocks = groups * segments;
        Self { kind: Kind::Columns, lanes: lanes.trailing_zeros(), length, segments, blocks }
    }
}

impl Fold {
    /// Chooses the kernel and the launch.
    pub fn of(properties: &DeviceProperties, problem: &Problem<'_>) -> Self {
        Self::on(properties.parallelism(), problem)
    }

    /// Chooses for a device that runs `parallelism` threads at once.
    fn on(parallelism: u64, problem: &Problem<'_>) -> Self {
        let (mut kept, mut reduced) = problem.axes();
        sort(&mut kept, problem.places);
        sort(&mut reduced, problem.places);
        let order = reduced.iter().map(|axis| axis.number).collect();
        let (kept, reduced) = (joined(kept), joined(reduced));
        let product = |axes: &[Axis]| axes.iter().map(|a| a.size as u64).product::<u64>();
        let (outputs, count) = (product(&kept), product(&reduced));
        let by_rows = match (kept.last(), reduced.last()) {
            (Some(kept), Some(reduced)) => {
                cost(reduced, problem.places) <= cost(kept, problem.places)
            }
            (_, reduced) => reduced.is_some(),
        };
        let (inner, whole) = match by_rows {
            // The remainder of a single axis is read one by one.
            true => (reduced.last(), reduced.len() > 1),
            false => (kept.last(), true),
        };
        let others = || kept.iter().chain(&reduced);
        let vector = inner.map_or(1, |inner| vector_of(problem, inner, whole, others()));
        let v = u64::from(vector);
        let cut = match by_rows {
            true => Cut::rows(outputs, count, v, parallelism),
            false => Cut::columns(outputs, count, v, parallelism),
        };
        let unit =
            match (vector, inner) {
                (2.., Some(inner)) => problem.strides.iter().zip(&inner.strides).enumerate().fold(
                    0,
                    |mask, (k, (_, stride))| if *stride == 1 { mask | 1 << k } else { mask },
                ),
                _ => 0,
            };
        let base = Self {
            variant: Variant {
                kind: cut.kind,
                tensors: problem.strides.len() as u32,
                ranks: (0, 0),
                wide: false,
                vector,
                unit,
                gather: false,
            },
            words: vec![outputs, count, cut.length, cut.segments, 0, u64::from(cut.lanes)],
            outputs,
            count,
            segments: cut.segments,
            along: None,
            blocks: cut.blocks,
            order,
        };
        base.over(&kept, &reduced)
    }

    /// The same choice, over other axes.
    fn over(mut self, kept: &[Axis], reduced: &[Axis]) -> Self {
        self.variant.ranks = match (kept.len(), reduced.len()) {
            (0..=4, n @ 0..=4) => (4, [1, 1, 2, 4, 4][n]),
            _ => (MAX_AXES as u32, MAX_AXES as u32),
        };
        self.variant.wide = !is_small(self.outputs, self.count, kept.iter().chain(reduced));
        let (n, words) = (self.variant.tensors as usize, &mut self.words);
        words.truncate(6);
        words[4] = kept.len() as u64 | (reduced.len() as u64) << 32;
        let rank = self.variant.ranks.0 as usize;
        put(words, kept, rank, 1, |axis| axis.size as u64);
        put(words, kept, rank, 0, |axis| magic(axis.size));
        put(words, kept, rank, 0, |axis| axis.strides[n] as u64);
        (0..n).for_each(|k| put(words, kept, rank, 0, |axis| axis.strides[k] as u64));
        let rank = self.variant.ranks.1 as usize;
        put(words, reduced, rank, 1, |axis| axis.size as u64);
        put(words, reduced, rank, 0, |axis| magic(axis.size));
        (0..n).for_each(|k| put(words, reduced, rank, 0, |axis| axis.strides[k] as u64));
        self.along = match reduced {
            [axis] => Some(axis.strides[..n].to_vec()),
            _ => None,
        };
        self
    }

    /// A variant of this choice that joins values in the same order as `plain`, which is the choice for a
    /// row-major tensor of the problem's shape. `None` if it is faster to make a row-major copy than to read
    /// the tensors in that order.
    ///
    /// `self` is the choice for the problem.
    pub fn like(self, plain: &Fold, problem: &Problem<'_>) -> Option<Self> {
        if self.joins_like(plain) {
            return Some(self);
        }
        let rows = |fold: &Fold| matches!(fold.variant.kind, Kind::Rows(_));
        // The order of memory matches, or there are so few elements that they fit in a cache.
        let in_order = rows(&self) == rows(plain) && self.order == plain.order;
        let elements = |strides: &&[i64]| {
            let axes = problem.shape.iter().copied().zip(strides.iter().copied());
            span(axes)
        };
        let read: u64 = problem.strides.iter().map(elements).fold(0, u64::saturating_add);
        if !in_order && read > plain.outputs.saturating_mul(plain.count) / 4 {
            return None;
        }
        let (mut kept, reduced) = problem.axes();
        sort(&mut kept, problem.places);
        let tensors = self.variant.tensors;
        let variant =
            Variant { tensors, unit: 0, gather: plain.variant.vector > 1, ..plain.variant };
        Some(Fold { variant, ..plain.clone() }.over(&joined(kept), &joined(reduced)))
    }

    /// True if each reduction joins the same values in the same order, so that results are bitwise
    /// identical.
    pub fn joins_like(&self, other: &Fold) -> bool {
        let (a, b) = (&self.variant, &other.variant);
        // The length of a segment, the number of segments, and the number of adjacent threads.
        let cut =
            |fold: &Fold| [fold.outputs, fold.count, fold.words[2], fold.segments, fold.words[5]];
        a.kind == b.kind
            && a.vector == b.vector
            && cut(self) == cut(other)
            && self.order == other.order
    }

    /// Bytes of workspace, if an accumulator (`Op::Acc`) has `accumulator` bytes.
    pub fn workspace(&self, accumulator: u64) -> u64 {
        if self.segments == 1 { 0 } else { self.outputs * self.segments * accumulator }
    }

    /// The launch.
    pub fn grid(&self) -> Grid {
        line(self.blocks)
    }

    /// The merge of the segments, if there are several.
    pub(super) fn merge(&self) -> Option<(Variant, Grid)> {
        let team = match self.segments {
            0..=1 => return None,
            n if n <= 16 && self.outputs >= 1024 => 1,
            2..=128 => 32,
            _ => THREADS,
        };
        let kind = Kind::Merge(team as u32);
        // Neither field is used.
        let variant = Variant { kind, vector: 1, unit: 0, gather: false, ..self.variant };
        Some((variant, line(self.outputs.div_ceil(THREADS / team))))
    }
}

/// A grid for kernels that loop with the grid's stride.
fn line(blocks: u64) -> Grid {
    Grid::line(blocks.clamp(1, 1 << 30) as u32, THREADS as u32)
}

fn put(words: &mut Vec<u64>, axes: &[Axis], rank: usize, none: u64, f: impl Fn(&Axis) -> u64) {
    words.extend((0..rank).map(|i| axes.get(i).map_or(none, &f)));
}

/// True if 32 bits are enough for all counts and offsets, with room for a block's step.
fn is_small<'a>(outputs: u64, count: u64, axes: impl Iterator<Item = &'a Axis> + Clone) -> bool {
    const MOST: u64 = 1 << 30;
    let tensors = axes.clone().next().map_or(0, |axis| axis.strides.len());
    let axes = |k: usize| axes.clone().map(move |a| (a.size, a.strides[k]));
    outputs.saturating_mul(count) <= MOST && (0..tensors).all(|k| span(axes(k)) <= MOST)
}

/// How many elements along the innermost axis are loaded at once. `whole` requires the axis to be a
/// multiple of it.
fn vector_of<'a>(
    problem: &Problem<'_>,
    inner: &Axis,
    whole: bool,
    axes: impl Iterator<Item = &'a Axis> + Clone,
) -> u32 {
    let fits = |v: u32| {
        let v = u64::from(v);
        let tensor = |(k, (address, bytes)): (usize, &(u64, u64))| match inner.strides[k] {
            // Tensors of one element need no vectors; without any tensor, there is no such kernel.
            0 => problem.places.len() > 1,
            1 => {
                address.is_multiple_of(v * bytes)
                    && axes.clone().all(|axis| {
                        std::ptr::eq(axis, inner)
                            || axis.strides[k].unsigned_abs().is_multiple_of(v)
                    })
            }
            _ => false,
        };
        let size = inner.size as u64;
        size >= v
            && (!whole || size.is_multiple_of(v))
            && problem.places.iter().enumerate().all(tensor)
    };
    let mut v = problem.vector;
    while v > 1 && !fits(v) {
        v /= 2;
    }
    v.max(1)
}

#[cfg(test)]
mod tests;
