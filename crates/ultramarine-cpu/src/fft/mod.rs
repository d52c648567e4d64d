//! FFT: discrete Fourier transforms along an axis.
//!
//! Contiguous lines are transformed by rustfft ([`plan`]). Transforms of real numbers use a complex transform of half
//! their length ([`fold`]). Lines that are not contiguous are moved to a buffer and back, several at a time, so that
//! whole cache lines are used.

mod fold;
mod lines;
pub mod plan;

use crate::dtype::{DType, c64};
use crate::kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, known};
use crate::strided::{Nest, ranges};
use crate::{level::Level, par::Shared};
use lines::{Line, move_lines, with_scratch};
use plan::Plan;
use ultramarine_abi::schema::{FftAttrs, fft};

/// Smallest number of elements that one task transforms, if there are enough.
const TASK: usize = 1 << 15;
/// Lines that are moved into a buffer at a time: as many as complex numbers fit a cache line.
const GROUP: usize = 8;

struct Fft {
    /// A code of [`fft`].
    code: u32,
    axis: usize,
}

/// Prepares FFT.
pub fn prepare(attrs: FftAttrs, signature: &Signature<'_>, _level: Level) -> Prepared {
    let ([source], [output]) = (signature.inputs, signature.outputs) else {
        return Err(Refusal::Invalid("fft takes one input".into()));
    };
    let code = known(attrs.op, fft::NAMES)?;
    let dtypes = match code {
        fft::REAL => (DType::F32, DType::C64),
        fft::REAL_BACKWARD => (DType::C64, DType::F32),
        _ => (DType::C64, DType::C64),
    };
    if (source.dtype, output.dtype) != dtypes {
        return Err(Refusal::Unsupported);
    }
    if source.ndim != output.ndim || attrs.axis as usize >= source.ndim {
        return Err(Refusal::Invalid("fft: rank or axis does not fit".into()));
    }
    Ok(Box::new(Fft { code, axis: attrs.axis as usize }))
}

impl Kernel for Fft {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let (source, output) = (&args.inputs[0], &args.outputs[0]);
        let axis = self.axis;
        let sizes = [source, output].map(|v| v.shape[axis] as usize);
        // The transform's length.
        let n = sizes[(self.code == fft::REAL_BACKWARD) as usize];
        let half = n / 2 + 1;
        let expected = match self.code {
            fft::REAL => [n, half],
            fft::REAL_BACKWARD => [half, n],
            _ => [n, n],
        };
        let others = || (0..source.shape.len()).filter(|a| *a != axis);
        if sizes != expected || others().any(|a| source.shape[a] != output.shape[a]) {
            return Err("fft's output does not have the shape that its input asks for".into());
        }
        let Some(scale) = args.scalars.first() else { bail!("fft without its scalar") };
        let scale = f64::from_bits(scale[0]) as f32;
        let plan = plan::get(self.code, n, cx.level);

        let nest =
            Nest::new(others().map(|a| (source.shape[a], [source.strides[a], output.strides[a]])));
        let across = nest.inner().1;
        let along = [source, output].map(|v| v.strides[axis] as isize);
        let bytes = [source, output].map(|v| v.dtype.size() as isize);
        // A line of one element is contiguous, whatever its stride is.
        let staged = [0, 1].map(|k| along[k] != 1 && sizes[k] > 1);
        let job = Job { plan: &plan, scale, level: cx.level, sizes, bytes, along, across, staged };
        let (from, to) = (Shared(source.data), Shared(output.data));
        let group = job.group();
        let step = (TASK / n).max(1).next_multiple_of(group);
        ranges(cx.par, nest.size(), step, |range| {
            with_scratch(job.scratch_len(), |scratch| {
                nest.rows(range, |_, at, count| {
                    let place = |lane: usize| {
                        let at = [0, 1].map(|k| (at[k] + lane as isize * across[k]) * bytes[k]);
                        (from.get().wrapping_offset(at[0]), to.get().wrapping_offset(at[1]))
                    };
                    for first in (0..count).step_by(group) {
                        let (from, to) = place(first);
                        // SAFETY: the lines are the tensors', whose dtypes are the plan's; tasks have
                        // lines of their own; the scratch has the job's size.
                        unsafe { job.lines(from, to, group.min(count - first), scratch) };
                    }
                });
            });
        });
        Ok(())
    }
}

/// The state that all lines share. Pairs refer to source and target.
struct Job<'a> {
    plan: &'a Plan,
    scale: f32,
    level: Level,
    /// Elements of a line.
    sizes: [usize; 2],
    /// Bytes of an element.
    bytes: [isize; 2],
    /// Steps along a line, in elements.
    along: [isize; 2],
    /// Steps from line to line.
    across: [isize; 2],
    /// Set if lines go through a buffer.
    staged: [bool; 2],
}

impl Job<'_> {
    /// Lines that are transformed at a time.
    fn group(&self) -> usize {
        let n = self.sizes[0].max(self.sizes[1]);
        match self.staged {
            // Contiguous lines: if they are short, take enough to fill a task.
            [false, false] => (TASK / n).max(1),
            // Do not allocate buffers for many very long lines.
            _ if n > 1 << 20 => 2,
            _ => GROUP,
        }
    }

    /// Distance in complex numbers between staged lines. It is not a power of two, which would make the lines compete
    /// for the same cache sets.
    fn pitch(&self, k: usize) -> usize {
        // Real lines need half as many complex numbers.
        let n = if self.bytes[k] == 4 { self.sizes[k].div_ceil(2) } else { self.sizes[k] };
        n.next_multiple_of(8) + 8
    }

    /// Complex numbers that a task needs beside its lines.
    fn scratch_len(&self) -> usize {
        let staged = |k: usize| if self.staged[k] { self.group() * self.pitch(k) } else { 0 };
        staged(0) + staged(1) + self.plan.scratch_len()
    }

    /// Transforms `count` lines, at most [`Job::group`].
    ///
    /// # Safety
    /// The lines from these addresses on are valid, of the plan's dtypes; no other thread writes to
    /// them, or to the target's; the scratch has [`Job::scratch_len`].
    unsafe fn lines(&self, from: *const u8, to: *mut u8, count: usize, scratch: &mut [c64]) {
        let size = |k: usize| if self.staged[k] { self.group() * self.pitch(k) } else { 0 };
        let (staged_in, rest) = scratch.split_at_mut(size(0));
        let (staged_out, rest) = rest.split_at_mut(size(1));
        // Bytes from line to line where the transform reads and writes.
        let steps = [0, 1].map(|k| match self.staged[k] {
            true => self.pitch(k) as isize * 8,
            false => self.across[k] * self.bytes[k],
        });
        let outside = |k: usize| Line { along: self.along[k], across: self.across[k] };
        let inside =
            |k: usize| Line { along: 1, across: self.pitch(k) as isize * 8 / self.bytes[k] };
        // SAFETY: by this function's contract; the buffers hold `group` lines.
        unsafe {
            let (mut source, mut target) = (from, to);
            if self.staged[0] {
                let buffer = staged_in.as_mut_ptr() as *mut u8;
                let shape = [self.sizes[0], count];
                move_lines(self.bytes[0], (from, outside(0)), (buffer, inside(0)), shape);
                source = buffer;
            }
            if self.staged[1] {
                target = staged_out.as_mut_ptr() as *mut u8;
            }
            self.plan.run(
                (source, steps[0]),
                (target, steps[1]),
                count,
                self.scale,
                self.level,
                rest,
            );
            if self.staged[1] {
                let shape = [self.sizes[1], count];
                move_lines(self.bytes[1], (target, inside(1)), (to, outside(1)), shape);
            }
        }
    }
}
