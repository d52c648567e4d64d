//! Commands and their tensors: strides, extents, alignment, buffers, overlap.

use super::signature::{Desc, Signature, dtype_name};
use super::state::{HandleKey, State, key};
use super::{Check, Context};
use crate::shape::byte_range;
use core::ffi::c_void;
use ultramarine_abi::{Command, Tensor, device_flag, dlpack::type_code, ensure};

/// The most elements for which overlapping tensors are compared element by element.
const COMPARED: usize = 1 << 14;

/// A tensor of a command, as the layer has read it.
struct Seen {
    buffer: usize,
    /// Location of the first element in bytes: its address in host memory, or its offset in the
    /// buffer.
    at: i128,
    shape: Vec<i64>,
    /// Strides in bytes.
    strides: Vec<i128>,
    item: i128,
    /// The first byte that the tensor touches, and the byte after the last one, in the same form as
    /// `at`.
    bytes: (i128, i128),
}

/// Checks a command. Returns the buffers that it uses.
///
/// # Safety
/// The command and everything it points at are readable according to the contract.
pub(super) unsafe fn command(
    cx: &Context,
    state: &State,
    device: *mut c_void,
    command: &Command,
) -> Result<Vec<HandleKey>, String> {
    ensure!((command.size as usize) >= size_of::<Command>(), "a command of {} bytes", command.size);
    let plans = state.plans.get(key(device, command.plan))?;
    let counts = (command.n_inputs, command.n_outputs, command.n_scalars);
    let mut fits = Err("a plan without signature".to_owned());
    for plan in plans {
        // SAFETY: passed on from the caller.
        fits = plan
            .counts(counts.0, counts.1, counts.2)
            .and_then(|()| unsafe { tensors(cx, state, device, plan, command) });
        if fits.is_ok() {
            break;
        }
    }
    let mut buffers = fits?;
    ensure!(command.n_scalars == 0 || !command.scalars.is_null(), "its scalars are NULL");
    if let Some(ask) = cx.real.plan_workspace {
        // SAFETY: the plan is alive; the command is the caller's.
        let wanted = unsafe { ask(device, command.plan, command) };
        if wanted > 0 && command.workspace.is_null() {
            return Err(format!("the plan wants {wanted} bytes of workspace and gets none"));
        }
    }
    buffers.push(key(device, command.workspace));
    Ok(buffers)
}

/// Describes a checked command in words: the op, and the dtypes, shapes and strides of its tensors.
///
/// # Safety
/// Those of [`command`].
pub(super) unsafe fn describe(state: &State, device: *mut c_void, command: &Command) -> String {
    let plan = state.plans.get(key(device, command.plan)).ok().and_then(|plans| plans.first());
    let name = plan.map_or_else(|| "an operation".to_owned(), |plan| plan.full_name());
    let list = |first: *const Tensor, n: u32| -> Vec<String> {
        let at = |i: usize| {
            // SAFETY: by this function's contract the tensors are `tensor_stride` bytes apart, with
            // shapes and strides.
            unsafe {
                let t =
                    &*first.cast::<u8>().add(i * command.tensor_stride as usize).cast::<Tensor>();
                let axes = |p: *mut i64| match t.dl.ndim {
                    n if n > 0 && !p.is_null() => std::slice::from_raw_parts(p, n as usize),
                    _ => &[],
                };
                let (shape, strides) = (axes(t.dl.shape), axes(t.dl.strides));
                format!("{} {shape:?} strides {strides:?}", dtype_name(t.dl.dtype))
            }
        };
        (0..n as usize).map(at).collect()
    };
    let inputs = list(command.inputs, command.n_inputs).join(", ");
    format!("{name} ({inputs}) -> ({})", list(command.outputs, command.n_outputs).join(", "))
}

/// # Safety
/// Those of [`command`].
unsafe fn tensors(
    cx: &Context,
    state: &State,
    device: *mut c_void,
    plan: &Signature,
    command: &Command,
) -> Result<Vec<HandleKey>, String> {
    let lists =
        [("input", &plan.inputs, command.inputs), ("output", &plan.outputs, command.outputs)];
    let mut seen: [Vec<Seen>; 2] = [Vec::new(), Vec::new()];
    for (seen, (what, descs, first)) in seen.iter_mut().zip(lists) {
        ensure!(descs.is_empty() || !first.is_null(), "no {what}s");
        for (i, desc) in descs.iter().enumerate() {
            // SAFETY: by this function's contract the tensors are `tensor_stride` bytes apart.
            let t = unsafe {
                &*first.cast::<u8>().add(i * command.tensor_stride as usize).cast::<Tensor>()
            };
            // SAFETY: a tensor of the caller.
            let one = unsafe { tensor(cx, state, device, t, desc) };
            seen.push(one.map_err(|e| format!("{what} {i} of {}: {e}", plan.name()))?);
        }
    }
    let [inputs, outputs] = seen;
    for (o, out) in outputs.iter().enumerate() {
        for (i, input) in inputs.iter().enumerate() {
            let same = plan.donates && out.lies_as(input);
            if !same && out.overlaps(input) {
                return Err(format!("output {o} of {} overlaps input {i}", plan.name()));
            }
        }
        if outputs[..o].iter().any(|other| out.overlaps(other)) {
            return Err(format!("outputs of {} overlap", plan.name()));
        }
    }
    Ok(inputs.iter().chain(&outputs).map(|t| (device as usize, t.buffer)).collect())
}

/// Checks a tensor that is bound to a user's kernel. Returns its buffer. Unlike a command's tensor
/// it may be empty, and then it needs no buffer.
///
/// # Safety
/// Shape and strides are readable for `ndim` elements, if they are not NULL.
pub(super) unsafe fn bound(
    cx: &Context,
    state: &State,
    device: *mut c_void,
    t: &Tensor,
) -> Result<Option<HandleKey>, String> {
    let n = usize::try_from(t.dl.ndim).unwrap_or(0);
    let empty = n > 0
        && !t.dl.shape.is_null()
        // SAFETY: by this function's contract.
        && unsafe { std::slice::from_raw_parts(t.dl.shape, n) }.contains(&0);
    if empty {
        let buffer = (!t.buffer.is_null()).then(|| key(device, t.buffer));
        return buffer.map(|b| state.buffers.get(b).map(|_| b)).transpose();
    }
    let desc = Desc { ndim: t.dl.ndim, dtype: t.dl.dtype, contiguous: false };
    // SAFETY: passed on from the caller.
    let seen = unsafe { tensor(cx, state, device, t, &desc) }?;
    Ok(Some((device as usize, seen.buffer)))
}

/// # Safety
/// Shape and strides are readable for `ndim` elements, if they are not NULL.
unsafe fn tensor(
    cx: &Context,
    state: &State,
    device: *mut c_void,
    t: &Tensor,
    desc: &Desc,
) -> Result<Seen, String> {
    let dl = &t.dl;
    ensure!((t.size as usize) >= size_of::<Tensor>(), "it says that it has {} bytes", t.size);
    ensure!((dl.ndim, dl.dtype) == (desc.ndim, desc.dtype), "its rank or dtype is not the plan's");
    if dl.device.device_type != cx.real.device_type {
        return Err(format!("it is on a device of type {}", dl.device.device_type));
    }
    let n = dl.ndim as usize;
    if n > 0 && (dl.shape.is_null() || dl.strides.is_null()) {
        return Err("its shape or strides are NULL".into());
    }
    let list = |p: *mut i64| -> Vec<i64> {
        // SAFETY: by this function's contract.
        if n == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(p, n) }.to_vec() }
    };
    let (shape, strides) = (list(dl.shape), list(dl.strides));
    if shape.iter().any(|n| *n <= 0) {
        return Err(format!("its shape is {shape:?}; nothing of size 0 reaches a backend"));
    }
    let item = i128::from(dl.dtype.bits) / 8;
    if desc.contiguous {
        let mut expected = 1i128;
        for (n, s) in shape.iter().zip(&strides).rev() {
            if *n != 1 && i128::from(*s) != expected {
                return Err("its strides are not those of the plan's contiguous layout".into());
            }
            expected *= i128::from(*n);
        }
    }
    let align = if dl.dtype.code == type_code::COMPLEX { item / 2 } else { item };
    if align > 0 && i128::from(dl.byte_offset) % align != 0 {
        return Err(format!("its offset of {} bytes is not aligned", dl.byte_offset));
    }
    let axes = shape.iter().copied().zip(strides.iter().copied());
    let (first, end) = byte_range(axes, 8 * item as usize)
        .ok_or_else(|| format!("its extent overflows: shape {shape:?}, strides {strides:?}"))?;
    let strides: Vec<i128> = strides.iter().map(|s| i128::from(*s) * item).collect();
    let offset = i128::from(dl.byte_offset);
    let (low, high) = (offset + i128::from(first), offset + i128::from(end));
    ensure!(
        low >= 0 && high <= i128::from(t.buffer_size),
        "it reaches from byte {low} to {high} of a buffer of {} bytes",
        t.buffer_size
    );
    let base = dl.data as usize as i128;
    waits(state, device, t)?;
    if !cx.is_cpu() && cx.real.buffer_alloc.is_some() {
        let buffer = state.buffers.get(key(device, t.buffer))?;
        if t.buffer_size > buffer.bytes {
            return Err(format!("its buffer has {} bytes, not {}", buffer.bytes, t.buffer_size));
        }
        if buffer.address != 0 && buffer.address as i128 != base {
            return Err("its address is not its buffer's".into());
        }
    } else if dl.data.is_null() {
        return Err("host memory at NULL".into());
    }
    Ok(Seen {
        buffer: t.buffer as usize,
        at: base + offset,
        shape,
        strides,
        item,
        bytes: (base + low, base + high),
    })
}

/// Checks the event that a tensor has to wait for.
fn waits(state: &State, device: *mut c_void, t: &Tensor) -> Check {
    if t.wait.is_null() {
        return Ok(());
    }
    let flags = state.device(device)?.info.flags;
    if flags & device_flag::WAITS_IN_COMMANDS == 0 {
        return Err("it has an event, for a device that does not wait in commands".into());
    }
    state.events.get(key(device, t.wait)).map(|_| ())
}

impl Seen {
    /// Returns true if both tensors have the same elements in the same order.
    fn lies_as(&self, other: &Seen) -> bool {
        (self.buffer, self.at, self.item, &self.shape)
            == (other.buffer, other.at, other.item, &other.shape)
            && self
                .shape
                .iter()
                .zip(&self.strides)
                .zip(&other.strides)
                .all(|((n, a), b)| *n == 1 || a == b)
    }

    /// Returns true if both tensors share a byte. Interleaved tensors that are too large to be
    /// compared count as not overlapping.
    fn overlaps(&self, other: &Seen) -> bool {
        let apart = self.buffer != other.buffer
            || self.bytes.1 <= other.bytes.0
            || other.bytes.1 <= self.bytes.0;
        if apart {
            return false;
        }
        let (Some(a), Some(b)) = (self.elements(), other.elements()) else { return false };
        // The elements are sorted, so it suffices to compare each element with its neighbours among
        // the others.
        a.iter().any(|x| {
            let next = b.partition_point(|y| *y + other.item <= *x);
            b.get(next).is_some_and(|y| *y < *x + self.item)
        })
    }

    /// Returns the locations of all distinct elements in ascending order; `None` if there are too
    /// many.
    fn elements(&self) -> Option<Vec<i128>> {
        let mut out = vec![self.at];
        for (n, stride) in self.shape.iter().zip(&self.strides).filter(|(_, s)| **s != 0) {
            let more =
                usize::try_from(*n).ok()?.checked_mul(out.len()).filter(|m| *m <= COMPARED)?;
            let mut next = Vec::with_capacity(more);
            for i in 0..i128::from(*n) {
                next.extend(out.iter().map(|at| at + i * stride));
            }
            out = next;
        }
        out.sort_unstable();
        Some(out)
    }
}
