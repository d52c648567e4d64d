//! The contract's functions, which call a primitive.
//!
//! The context of a primitive is a box. Its first field identifies the primitive's type.

use crate::{
    array::Array,
    cpu::CpuCall,
    error::{Error, Result, caught, guard, guard_value},
    gpu::GpuCall,
    primitive::{Jvp, Primitive, Vjp, Vmap},
    tensor::{TensorType, structs},
};
use std::any::TypeId;
use std::ffi::{CString, c_char, c_void};
use std::fmt;
use ultramarine_abi::{
    Error as Raw, Status,
    extension::{self as raw, ArrayHandle, EvalCall, primitive},
    read_sized,
};

/// The data that a context points at.
#[repr(C)]
struct Cell<P> {
    /// The first field in all cells of this library. [`Primitive::equivalent`] is called only if
    /// the types are equal.
    kind: TypeId,
    primitive: P,
}

/// A primitive in the contract's form, with the data that its struct points at.
pub(crate) struct Table<P> {
    cell: Box<Cell<P>>,
    name: CString,
    attributes: Vec<u8>,
    n_outputs: u32,
    flags: u32,
    version: u32,
}

impl<P: Primitive> Table<P> {
    /// Gets name and attributes from the primitive. These functions are no rules, but may also
    /// panic.
    pub fn new(primitive: P) -> Result<Self> {
        caught(std::any::type_name::<P>(), || Self::asked(primitive))
    }

    fn asked(primitive: P) -> Result<Self> {
        let name = CString::new(primitive.name())
            .map_err(|_| Error::value("[apply] A primitive's name has a NUL in it. Remove it."))?;
        let n_outputs = primitive.outputs();
        if n_outputs == 0 || n_outputs > 1 << 16 {
            return Err(Error::value(format!(
                "[{}] A primitive cannot have {n_outputs} outputs. Use fewer.",
                primitive.name()
            )));
        }
        Ok(Self {
            name,
            attributes: primitive.attributes().as_bytes().to_vec(),
            n_outputs: n_outputs as u32,
            flags: if primitive.allocates() { primitive::ALLOCATES } else { 0 },
            version: primitive.version(),
            cell: Box::new(Cell { kind: TypeId::of::<P>(), primitive }),
        })
    }

    pub fn n_outputs(&self) -> usize {
        self.n_outputs as usize
    }

    /// Calls `give` with the struct. `give` takes over the context.
    pub fn with<R>(self, give: impl FnOnce(&raw::Primitive) -> R) -> R {
        let Self { cell, name, attributes, n_outputs, flags, version } = self;
        give(&raw::Primitive {
            size: size_of::<raw::Primitive>() as u32,
            flags,
            name: name.as_ptr(),
            version,
            n_outputs,
            attributes: attributes.as_ptr().cast(),
            attribute_bytes: attributes.len() as u64,
            context: Box::into_raw(cell).cast(),
            infer: Some(infer::<P>),
            eval_cpu: Some(eval_cpu::<P>),
            eval_gpu: Some(eval_gpu::<P>),
            compose: Some(compose::<P>),
            vjp: Some(vjp::<P>),
            jvp: Some(jvp::<P>),
            vmap: Some(vmap::<P>),
            equivalent: Some(equivalent::<P>),
            print: Some(print::<P>),
            release: Some(release::<P>),
        })
    }
}

/// Returns the primitive of a context.
///
/// # Safety
/// The context is that of a table of `P`, and is not released yet.
unsafe fn of<'a, P: Primitive>(context: *mut c_void) -> Result<&'a P> {
    // SAFETY: by this function's contract.
    unsafe { context.cast::<Cell<P>>().as_ref() }
        .map(|cell| &cell.primitive)
        .ok_or_else(|| Error::runtime("A primitive's context is NULL."))
}

/// Wraps arrays of the host.
///
/// # Safety
/// There are `n` handles, which are valid as long as the returned arrays.
unsafe fn lent(handles: *const *mut ArrayHandle, n: usize) -> Result<Vec<Array>> {
    // SAFETY: by this function's contract.
    unsafe { lent_or_zero(handles, n) }?
        .into_iter()
        .map(|a| a.ok_or_else(|| Error::runtime("An operand is NULL.")))
        .collect()
}

/// Wraps arrays of the host, where NULL means zero.
///
/// # Safety
/// As [`lent`].
unsafe fn lent_or_zero(handles: *const *mut ArrayHandle, n: usize) -> Result<Vec<Option<Array>>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if handles.is_null() {
        return Err(Error::runtime("The pointer to the operands is NULL."));
    }
    // SAFETY: by this function's contract.
    let handles = unsafe { std::slice::from_raw_parts(handles, n) };
    // SAFETY: as above.
    let one = |&h: &*mut ArrayHandle| unsafe { Array::lent(h) };
    handles.iter().map(|h| if h.is_null() { Ok(None) } else { one(h).map(Some) }).collect()
}

/// Returns results to the host. Returns none if their number is not `n`.
///
/// # Safety
/// There is room for `n` results.
unsafe fn hand_out<T>(
    rule: &str,
    results: Vec<T>,
    places: *mut *mut ArrayHandle,
    n: usize,
    mut handle: impl FnMut(usize, T) -> *mut ArrayHandle,
) -> Result<()> {
    if results.len() != n || places.is_null() {
        return Err(Error::runtime(format!(
            "{rule} returned {} arrays instead of {n}. Return one for each.",
            results.len()
        )));
    }
    for (i, result) in results.into_iter().enumerate() {
        let handle = handle(i, result);
        // SAFETY: by this function's contract.
        unsafe { places.add(i).write(handle) };
    }
    Ok(())
}

fn raw_or_zero(_: usize, array: Option<Array>) -> *mut ArrayHandle {
    array.map_or(std::ptr::null_mut(), Array::into_raw)
}

// The functions below are those of the table. Their safety is that of the contract: contexts are
// those of the table and not yet released, arrays have the given lengths, and pointers are
// writable.

unsafe extern "C" fn infer<P: Primitive>(
    context: *mut c_void,
    inputs: *const raw::TensorType,
    n_inputs: u32,
    outputs: *mut raw::TensorType,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's; outputs begin with their size, which the host has set.
    unsafe {
        guard(error, || {
            let primitive = of::<P>(context)?;
            let inputs = structs(inputs, n_inputs, None)?;
            let inputs: Vec<_> = inputs.iter().map(TensorType::from_raw).collect::<Result<_>>()?;
            let made = primitive.infer(&inputs)?;
            let n = primitive.outputs();
            if made.len() != n || outputs.is_null() {
                return Err(Error::runtime(format!(
                    "infer returned {} types instead of {n}. Return one for each output.",
                    made.len()
                )));
            }
            let made = made.iter().map(TensorType::to_raw).collect::<Result<Vec<_>>>()?;
            let stride = outputs.cast::<u32>().read_unaligned() as usize;
            for (i, one) in made.iter().enumerate() {
                let at = outputs.cast::<u8>().add(stride * i).cast::<raw::TensorType>();
                if !ultramarine_abi::write_sized(at, one) {
                    return Err(Error::runtime("The pointer to a type is NULL."));
                }
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn eval_cpu<P: Primitive>(
    context: *mut c_void,
    call: *const EvalCall,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let call = read_sized(call)
                .ok_or_else(|| Error::runtime("The pointer to the call is NULL."))?;
            of::<P>(context)?.eval_cpu(&mut CpuCall::new(&call)?)
        })
    }
}

unsafe extern "C" fn eval_gpu<P: Primitive>(
    context: *mut c_void,
    call: *const EvalCall,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let call = read_sized(call)
                .ok_or_else(|| Error::runtime("The pointer to the call is NULL."))?;
            let primitive = of::<P>(context)?;
            primitive.eval_gpu(&mut GpuCall::new(&call, primitive.allocates())?)
        })
    }
}

unsafe extern "C" fn compose<P: Primitive>(
    context: *mut c_void,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    outputs: *mut *mut ArrayHandle,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let primitive = of::<P>(context)?;
            let made = primitive.compose(&lent(inputs, n_inputs as usize)?)?;
            hand_out("compose", made, outputs, primitive.outputs(), |_, a| a.into_raw())
        })
    }
}

unsafe extern "C" fn vjp<P: Primitive>(
    context: *mut c_void,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    outputs: *const *mut ArrayHandle,
    cotangents: *const *mut ArrayHandle,
    wanted: *const u8,
    results: *mut *mut ArrayHandle,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let primitive = of::<P>(context)?;
            let (n, m) = (n_inputs as usize, primitive.outputs());
            let all = n == 0 || wanted.is_null();
            let wanted = (0..n).map(|i| all || *wanted.add(i) != 0).collect::<Vec<_>>();
            let made = primitive.vjp(&Vjp {
                inputs: &lent(inputs, n)?,
                outputs: &lent(outputs, m)?,
                cotangents: &lent_or_zero(cotangents, m)?,
                wanted: &wanted,
            })?;
            hand_out("vjp", made, results, n, raw_or_zero)
        })
    }
}

unsafe extern "C" fn jvp<P: Primitive>(
    context: *mut c_void,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    tangents: *const *mut ArrayHandle,
    results: *mut *mut ArrayHandle,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let primitive = of::<P>(context)?;
            let n = n_inputs as usize;
            let made = primitive
                .jvp(&Jvp { inputs: &lent(inputs, n)?, tangents: &lent_or_zero(tangents, n)? })?;
            hand_out("jvp", made, results, primitive.outputs(), raw_or_zero)
        })
    }
}

unsafe extern "C" fn vmap<P: Primitive>(
    context: *mut c_void,
    inputs: *const *mut ArrayHandle,
    n_inputs: u32,
    axes: *const i32,
    batch: i64,
    outputs: *mut *mut ArrayHandle,
    output_axes: *mut i32,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        guard(error, || {
            let primitive = of::<P>(context)?;
            let n = n_inputs as usize;
            if (n > 0 && axes.is_null()) || output_axes.is_null() {
                return Err(Error::runtime("The pointer to the axes is NULL."));
            }
            let axes: Vec<_> = (0..n).map(|i| usize::try_from(*axes.add(i)).ok()).collect();
            let size = usize::try_from(batch).unwrap_or(0);
            let made = primitive.vmap(&Vmap { inputs: &lent(inputs, n)?, axes: &axes, size })?;
            hand_out("vmap", made, outputs, primitive.outputs(), |i, (array, axis)| {
                let axis = axis.map_or(-1, |axis| i32::try_from(axis).unwrap_or(i32::MAX));
                output_axes.add(i).write(axis);
                array.into_raw()
            })
        })
    }
}

unsafe extern "C" fn equivalent<P: Primitive>(context: *mut c_void, other: *mut c_void) -> i32 {
    // SAFETY: both are contexts of tables with this function; the identity is the first field of all of them.
    unsafe {
        guard_value(0, || {
            if context.is_null() || other.is_null() {
                return 0;
            }
            if *other.cast::<TypeId>() != TypeId::of::<P>() {
                return 0;
            }
            let (this, other) = (&*context.cast::<Cell<P>>(), &*other.cast::<Cell<P>>());
            i32::from(this.primitive.equivalent(&other.primitive))
        })
    }
}

/// Displays a primitive by [`Primitive::print`].
struct Printed<'a, P>(&'a P);

impl<P: Primitive> fmt::Display for Printed<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.print(f)
    }
}

unsafe extern "C" fn print<P: Primitive>(
    context: *mut c_void,
    text: *mut c_char,
    room: u64,
) -> u64 {
    // SAFETY: the contract's.
    unsafe {
        guard_value(0, || {
            let Ok(primitive) = of::<P>(context) else { return 0 };
            let all = Printed(primitive).to_string();
            if !text.is_null() {
                let mut n = all.len().min(usize::try_from(room).unwrap_or(usize::MAX));
                // Do not cut a character in the middle.
                while !all.is_char_boundary(n) {
                    n -= 1;
                }
                std::ptr::copy_nonoverlapping(all.as_ptr(), text.cast(), n);
            }
            all.len() as u64
        })
    }
}

unsafe extern "C" fn release<P: Primitive>(context: *mut c_void) {
    if !context.is_null() {
        // SAFETY: `Table::with` made the context from a box, and the contract releases it once.
        let cell = unsafe { Box::from_raw(context.cast::<Cell<P>>()) };
        guard_value((), || drop(cell));
    }
}
