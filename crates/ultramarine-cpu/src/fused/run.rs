//! Programs as kernels: the choice of tiles and tasks.

use super::layout::{self, Layout, MAX_TENSORS, Reduced, Stack};
use super::program::{MAX_VALUES, Program};
use super::tile::{Frame, Tile, Values};
use super::{epilogue, scratch};
use crate::copy::strided::{self, stream_bytes};
use crate::copy::transpose;
use crate::kernel::{Args, Context, Kernel, View};
use core::mem::MaybeUninit;

/// Element-steps below which a command runs on the calling thread.
pub const IN_PLACE: usize = 32 << 10;
/// Elements from which on the next tile is prefetched. Smaller data is in the caches anyway.
const AHEAD: usize = 1 << 20;
/// Element-steps of a task.
const TASK: usize = 256 << 10;

/// An elementwise program, with or without epilogue, as a kernel.
pub struct Fused {
    program: Program,
}

impl Fused {
    /// Wraps a checked program.
    pub fn new(program: Program) -> Self {
        Self { program }
    }
}

impl Kernel for Fused {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let p = &self.program;
        ensure!(
            args.scalars.len() == p.constants.len(),
            "{} scalars for a program with {} constants",
            args.scalars.len(),
            p.constants.len()
        );
        // SAFETY: passed on from the caller.
        if p.contiguous && p.epilogue.is_none() && unsafe { flat(p, args) } {
            return Ok(());
        }
        let reduced = p.epilogue.as_ref().map(|c| Reduced { axes: c.axes, any_order: c.any_order });
        let shape = layout::iteration_shape(args.inputs, args.outputs, reduced)?;
        if shape.contains(&0) {
            return Ok(());
        }
        let mut layout = Layout::new();
        layout.fill(&shape, args.inputs, args.outputs, reduced);
        // SAFETY: passed on from the caller.
        unsafe {
            match &p.epilogue {
                Some(c) => epilogue::run(cx, p, c, &mut layout, args),
                None => elementwise(cx, p, &mut layout, args),
            }
        }
        Ok(())
    }
}

/// Runs a small program on contiguous tensors of one shape; returns false for other programs and
/// tensors.
///
/// # Safety
/// As [`Kernel::run`].
#[inline]
unsafe fn flat(p: &Program, args: &Args<'_>) -> bool {
    let shape = args.outputs[0].shape;
    let n = args.outputs[0].size();
    let room = n.next_multiple_of(64);
    if n * p.steps.len().max(1) > IN_PLACE || room > tile_elements(p) {
        return false;
    }
    if args.inputs.iter().chain(&args.outputs[1..]).any(|t| t.shape != shape) || n == 0 {
        return false;
    }
    let aliased = |o: &View<'_>| args.inputs.iter().any(|i| i.data == o.data);
    let simple = p.outputs.iter().all(|o| o.direct && !o.late_reads);
    if !simple && args.outputs.iter().any(aliased) {
        return false;
    }
    scratch::with(p.scratch(room), |scratch| {
        let mut values: Values = [const { MaybeUninit::uninit() }; MAX_VALUES];
        for (value, input) in values.iter_mut().zip(args.inputs) {
            value.write(input.data);
        }
        let first = p.n_inputs;
        for (i, value) in values.iter_mut().enumerate().take(p.sizes.len()).skip(first) {
            value.write(p.place(scratch, room, i));
        }
        for (i, bits) in args.scalars.iter().enumerate() {
            let size = usize::from(p.sizes[first + i]);
            let from = strided::Rect { data: bits.as_ptr() as *mut u8, rows: 0, columns: 0 };
            let n = p.constant_len(first + i, n);
            // SAFETY: the slot has room for n elements.
            unsafe {
                let to = strided::Rect::dense(values[first + i].assume_init(), n, size);
                strided::copy(p.level, to, from, 1, n, size);
            }
        }
        for (output, tensor) in p.outputs.iter().zip(args.outputs).filter(|(o, _)| o.direct) {
            values[usize::from(output.value)].write(tensor.data);
        }
        for step in &p.steps {
            // SAFETY: all values were pointed at slots or contiguous tensors of n elements.
            unsafe {
                let operands = step.operands.map(|v| values[usize::from(v)].assume_init());
                step.call(values[usize::from(step.result)].assume_init(), operands, n, false);
            }
        }
        for (output, tensor) in p.outputs.iter().zip(args.outputs).filter(|(o, _)| !o.direct) {
            // SAFETY: every value has been computed; this output is not an input.
            unsafe {
                let from = values[usize::from(output.value)].assume_init();
                core::ptr::copy(from, tensor.data, n * usize::from(output.size));
            }
        }
    });
    true
}

/// Elements of a tile, a multiple of 64. All slots fit the L1 cache, with room for operands that
/// are read in place.
pub fn tile_elements(p: &Program) -> usize {
    let budget: usize = 24 << 10;
    let widest = p.sizes.iter().copied().max().unwrap_or(1);
    let n = (budget / p.width.max(1)).min(8192 / usize::from(widest));
    (n / 64 * 64).max(64)
}

/// Bits for the tensors that are handled specially.
pub struct TensorFlags {
    /// Bit per output of the program: write past the caches.
    pub streamed: u32,
    /// Bit per output: compute it in a slot first, because its memory may be that of an input that
    /// is still read.
    pub staged: u32,
    /// Bit per input: load it into its slot, even where it could be read in place.
    pub copied: u32,
    /// Bit per input: it is one element, broadcast to all.
    pub splat: u32,
}

impl TensorFlags {
    /// Looks for big outputs, donated inputs and broadcast scalars.
    pub fn new(p: &Program, args: &Args<'_>, layout: &Layout) -> Self {
        let mut flags = TensorFlags { streamed: 0, staged: 0, copied: 0, splat: 0 };
        for (t, _) in args.inputs.iter().enumerate() {
            if layout.axes.iter().all(|a| a.strides[t] == 0) {
                flags.splat |= 1 << t;
            }
        }
        for (i, o) in p.outputs.iter().enumerate() {
            let tensor = &args.outputs[usize::from(o.tensor) - p.n_inputs];
            let aliased = || args.inputs.iter().position(|t| t.data == tensor.data);
            if tensor.size() * usize::from(o.size) >= stream_bytes() {
                flags.streamed |= 1 << i;
            }
            if let Some(input) = aliased() {
                // Donated memory is read just before it is written, so do not stream it.
                flags.streamed &= !(1 << i);
                if o.late_reads {
                    flags.staged |= 1 << i;
                }
                // Stores happen one by one, so values that other outputs or the reduction take from
                // that input must not change meanwhile.
                let named = |v: u16| usize::from(v) == input;
                if p.outputs.iter().any(|o| named(o.value))
                    || p.epilogue.as_ref().is_some_and(|c| named(c.value))
                {
                    flags.copied |= 1 << input;
                }
            }
        }
        flags
    }
}

/// First elements of all tensors.
pub fn addresses(args: &Args<'_>) -> Stack<*mut u8, MAX_TENSORS> {
    let mut data = Stack::new();
    args.inputs.iter().chain(args.outputs).for_each(|t| data.push(t.data));
    data
}

/// The axis along which tiles should extend besides the last one, because some tensor is contiguous
/// along it and not along the last.
fn crossing(layout: &Layout, p: &Program, splat: u32) -> Option<usize> {
    let (last, rest) = layout.axes.split_last()?;
    if last.len < 8 {
        return None;
    }
    let tensors = (0..p.n_inputs)
        .filter(|t| splat >> t & 1 == 0)
        .map(|t| (t, p.sizes[t]))
        .chain(p.outputs.iter().map(|o| (usize::from(o.tensor), o.size)));
    for (t, size) in tensors {
        let size = usize::from(size);
        let stride = last.strides[t].unsigned_abs();
        if stride == 0 || stride == size {
            continue;
        }
        let along = |a: &layout::Axis| a.strides[t] == size as isize && a.len >= 8;
        if let Some(axis) = rest.iter().position(along) {
            return Some(axis);
        }
    }
    None
}

/// # Safety
/// As [`Kernel::run`].
unsafe fn elementwise(cx: &Context, p: &Program, layout: &mut Layout, args: &Args<'_>) {
    let total = args.outputs[0].size();
    let flags = TensorFlags::new(p, args, layout);
    let most = tile_elements(p);
    let axes = layout.axes.len();
    let last = layout.axes.last().map_or(1, |a| a.len);
    // Rows and columns of a tile.
    let (rows, columns);
    if let Some(axis) = crossing(layout, p, flags.splat) {
        layout.axes[axis..axes - 1].rotate_left(1);
        layout.group(0, axes - 2, false);
        layout.group(axes - 2, axes - 1, false);
        layout.group(axes - 1, axes, false);
        // Size tiles for the L2 cache, because whole cache lines matter more here.
        let widest = p.sizes.iter().copied().max().unwrap_or(1);
        rows = transpose::side(widest.into()).min(layout.axes[axes - 2].len);
        columns = transpose::side(widest.into()).min(last);
    } else if last >= most / 2 {
        // Rows are long, so a tile stays within one row, and rows are divided evenly.
        let outer = axes.saturating_sub(1);
        layout.group(0, outer, false);
        layout.group(outer, outer, false);
        layout.group(outer, axes, false);
        rows = 1;
        columns = last.div_ceil(last.div_ceil(most)).next_multiple_of(64).min(most);
    } else {
        layout.group(0, 0, false);
        layout.group(0, 0, false);
        layout.group(0, axes, false);
        rows = 1;
        columns = (most / last * last).min(total);
    }
    let data = addresses(args);
    let work = p.steps.len() + 1;
    let frame = Frame {
        program: p,
        layout,
        data: &data,
        scalars: args.scalars,
        room: (rows * columns).next_multiple_of(64),
        flags,
        ahead: total >= AHEAD && p.steps.len() > 1,
    };
    let tiles_b = frame.b().len.div_ceil(columns);
    let tiles_a = frame.a().len.div_ceil(rows);
    let tiles = frame.outer()[0].len * tiles_a * tiles_b;
    let each = (TASK / work / (rows * columns)).max(1);
    let tasks = if total * work <= IN_PLACE { 1 } else { tiles.div_ceil(each) };
    let each = if tasks == 1 { tiles } else { each };
    let body = |task: usize| {
        scratch::with(frame.scratch(), |scratch| {
            let mut values: Values = [const { MaybeUninit::uninit() }; MAX_VALUES];
            // SAFETY: `scratch` has the frame's size; tiles are disjoint, and each
            // fits the room; the rest is the caller's promise.
            unsafe {
                frame.bind(&mut values, scratch, (rows * columns).min(total));
                for index in task * each..((task + 1) * each).min(tiles) {
                    let (b, rest) = (index % tiles_b * columns, index / tiles_b);
                    let (a, outer) = (rest % tiles_a * rows, rest / tiles_a);
                    let mut tile = Tile {
                        a,
                        b,
                        rows: rows.min(frame.a().len - a),
                        columns: columns.min(frame.b().len - b),
                        base: [0; MAX_TENSORS],
                    };
                    for (t, base) in tile.base[..frame.data.len()].iter_mut().enumerate() {
                        *base = frame.layout.offset(&frame.outer()[0], t, outer);
                    }
                    frame.run(&mut values, scratch, &tile);
                }
            }
        });
        if frame.flags.streamed != 0 {
            strided::fence();
        }
    };
    cx.par.run(tasks, body);
}
