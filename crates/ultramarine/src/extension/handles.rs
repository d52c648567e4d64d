//! Arrays as handles. A handle points to an [`Array`]: a borrowed handle to any array, an owned handle to a boxed
//! array.

use super::boundary::{fill, guard, list, read};
use super::types::{place_of, tensor_type, validated};
use crate::error::{Error, Result, ensure};
use crate::node::Node;
use crate::ops::create::fill::{Fill, filled};
use crate::ops::shape::reshape::broadcast_arrays as broadcast;
use crate::shape::{self, Shape};
use crate::{
    array::Array, eval, memory::deferred_deleters, placement::Place, scalar::Scalar, stream,
};
use core::ffi::c_void;
use ultramarine_abi::extension::{ArrayHandle, PlaceCode, TensorType, View, view};
use ultramarine_abi::{self as abi, Status};

/// Returns a handle that borrows an array. It is valid while `array` lives and does not move, and
/// must not be released.
pub fn borrow_handle(array: &Array) -> *mut ArrayHandle {
    std::ptr::from_ref(array).cast_mut().cast()
}

/// Returns a handle that owns an array. Its holder releases it with the table's `array_release`, or with
/// [`take_handle`].
pub fn own_handle(array: Array) -> *mut ArrayHandle {
    Box::into_raw(Box::new(array)).cast()
}

/// The array of an owned handle, which this function takes over.
///
/// # Safety
/// A handle that [`own_handle`] or the host table made; not NULL, and not used any more.
pub unsafe fn take_handle(handle: *mut ArrayHandle) -> Array {
    // SAFETY: owned handles are boxes, by this function's contract.
    *unsafe { Box::from_raw(handle.cast::<Array>()) }
}

/// The array of a handle.
///
/// # Safety
/// NULL or a live handle, which lives as long as `'a`.
pub(super) unsafe fn array<'a>(function: &str, handle: *const ArrayHandle) -> Result<&'a Array> {
    // SAFETY: by this function's contract.
    let array = unsafe { handle.cast::<Array>().as_ref() };
    array.ok_or_else(|| Error::value(function, "An array is NULL. Pass a valid handle."))
}

/// The arrays of a list of handles.
///
/// # Safety
/// NULL or `n` handles, each of which is NULL or live.
pub(super) unsafe fn arrays(
    function: &str,
    handles: *const *mut ArrayHandle,
    n: u32,
) -> Result<Vec<Array>> {
    // SAFETY: by this function's contract.
    unsafe {
        let handles = list(function, "arrays", handles, n as u64)?;
        handles.iter().map(|h| array(function, *h).cloned()).collect()
    }
}

/// Borrowed handles of arrays.
pub(super) fn lent(arrays: &[Array]) -> Vec<*mut ArrayHandle> {
    arrays.iter().map(borrow_handle).collect()
}

/// Borrowed handles of arrays; NULL for missing ones.
pub(super) fn lent_some(arrays: &[Option<Array>]) -> Vec<*mut ArrayHandle> {
    let handle = |a: &Option<Array>| a.as_ref().map_or(std::ptr::null_mut(), borrow_handle);
    arrays.iter().map(handle).collect()
}

/// Writes owned handles to memory that the caller provides.
///
/// # Safety
/// `to` is NULL or has room for as many handles.
pub(super) unsafe fn hand_out(
    function: &str,
    arrays: Vec<Array>,
    to: *mut *mut ArrayHandle,
) -> Result<()> {
    ensure!(
        !to.is_null() && to.is_aligned(),
        function,
        "The pointer to the results is NULL or misaligned. Pass an array of handles."
    );
    for (i, array) in arrays.into_iter().enumerate() {
        // SAFETY: by this function's contract.
        unsafe { to.add(i).write(own_handle(array)) };
    }
    Ok(())
}

pub(super) unsafe extern "C" fn array_retain(
    _: *mut c_void,
    handle: *const ArrayHandle,
) -> *mut ArrayHandle {
    // SAFETY: NULL or a live handle, by contract.
    unsafe { array("array_retain", handle) }.map_or(std::ptr::null_mut(), |a| own_handle(a.clone()))
}

pub(super) unsafe extern "C" fn array_release(_: *mut c_void, handle: *mut ArrayHandle) {
    if handle.is_null() {
        return;
    }
    // Dropping the last reference may run foreign code, which must not unwind.
    // SAFETY: an owned handle, which the caller no longer uses.
    let _ = unsafe {
        guard("array_release", std::ptr::null_mut(), || {
            drop(take_handle(handle));
            Ok(())
        })
    };
}

pub(super) unsafe extern "C" fn array_type(
    _: *mut c_void,
    handle: *const ArrayHandle,
    of: *mut TensorType,
) -> Status {
    const NAME: &str = "array_type";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, std::ptr::null_mut(), || {
            let array = array(NAME, handle)?;
            Ok(fill(NAME, of, tensor_type(array.shape(), array.dtype()))?)
        })
    }
}

pub(super) unsafe extern "C" fn array_place(
    _: *mut c_void,
    handle: *const ArrayHandle,
    place: *mut PlaceCode,
) -> Status {
    const NAME: &str = "array_place";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, std::ptr::null_mut(), || {
            Ok(fill(NAME, place, place_of(array(NAME, handle)?.stream()))?)
        })
    }
}

/// Rejects waiting inside an evaluation: an evaluation waits for its operands, and must not wait for new ones.
fn may_wait(function: &str, arrays: &[Array]) -> Result<()> {
    if deferred_deleters::in_job() && !arrays.iter().all(Array::is_evaluated) {
        let text = "Arrays cannot be computed during an evaluation. Make them operands.";
        return Err(Error::runtime(function, text));
    }
    Ok(())
}

pub(super) unsafe extern "C" fn array_eval(
    _: *mut c_void,
    handles: *const *mut ArrayHandle,
    n: u32,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "array_eval";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let arrays = arrays(NAME, handles, n)?;
            may_wait(NAME, &arrays)?;
            Ok(eval::eval(&arrays)?)
        })
    }
}

pub(super) unsafe extern "C" fn array_view(
    _: *mut c_void,
    handle: *const ArrayHandle,
    to: *mut View,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "array_view";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let array = array(NAME, handle)?;
            may_wait(NAME, std::slice::from_ref(array))?;
            let (on_host, own) = array.host_value()?;
            let value = array.value()?;
            let data = if own { value.data() } else { array.node().host_copy(on_host).data() };
            let flags = match shape::is_contiguous(array.shape(), &value.strides) {
                true => view::ROW_CONTIGUOUS,
                false => 0,
            };
            let view = View {
                size: size_of::<View>() as u32,
                flags,
                data: data.cast(),
                // usize and isize are 64 bits wide on every supported target.
                shape: array.shape().as_ptr().cast(),
                strides: value.strides.as_ptr().cast(),
                elements: array.size() as i64,
                ndim: array.ndim() as i32,
                dtype: array.dtype().to_dl(),
            };
            Ok(fill(NAME, to, view)?)
        })
    }
}

/// Shape and dtype requested for a new array.
///
/// # Safety
/// As [`read`].
unsafe fn wanted(function: &str, of: *const TensorType) -> Result<(Shape, crate::Dtype)> {
    // SAFETY: by this function's contract.
    validated(function, "the array", &unsafe { read(function, of)? })
}

pub(super) unsafe extern "C" fn array_from_bytes(
    _: *mut c_void,
    of: *const TensorType,
    data: *const c_void,
    bytes: u64,
    to: *mut *mut ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "array_from_bytes";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let (shape, dtype) = wanted(NAME, of)?;
            let data = list(NAME, "the elements", data.cast::<u8>(), bytes)?;
            let array = Array::from_bytes(data, &shape, dtype)?;
            Ok(hand_out(NAME, vec![array], to)?)
        })
    }
}

pub(super) unsafe extern "C" fn array_full(
    _: *mut c_void,
    of: *const TensorType,
    bits: *const u64,
    to: *mut *mut ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "array_full";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let (shape, dtype) = wanted(NAME, of)?;
            ensure!(
                !bits.is_null(),
                NAME,
                "The pointer to the value is NULL. Pass an element's address."
            );
            let value = Scalar::from_bits(dtype, bits.read_unaligned());
            Ok(hand_out(NAME, vec![constant(shape, value)], to)?)
        })
    }
}

/// An array of one value. A scalar has no home device, regardless of the current scope.
fn constant(shape: Shape, value: Scalar) -> Array {
    if !shape.is_empty() {
        return filled(shape, value);
    }
    let place = Place::new(stream::current().0, false, false);
    let op = Fill { value, spread: false }.into();
    Array::from_node(Node::new(op, Default::default(), shape, value.dtype(), place))
}

pub(super) unsafe extern "C" fn broadcast_arrays(
    _: *mut c_void,
    handles: *const *mut ArrayHandle,
    n: u32,
    results: *mut *mut ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    const NAME: &str = "broadcast_arrays";
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard(NAME, error, || {
            let arrays = arrays(NAME, handles, n)?;
            Ok(hand_out(NAME, broadcast(&arrays)?, results)?)
        })
    }
}

/// Room for handles that a rule returns. They are owned here once the rule has succeeded.
pub(super) struct Returned(Vec<*mut ArrayHandle>);

impl Returned {
    /// Room for `n` handles.
    pub fn room(n: usize) -> Returned {
        Returned(vec![std::ptr::null_mut(); n])
    }

    /// Address to which the rule writes its handles.
    pub fn at(&mut self) -> *mut *mut ArrayHandle {
        self.0.as_mut_ptr()
    }

    /// The arrays; NULL becomes `None`. A handle that occurs twice, or that was only `lent`, is an error, because the
    /// rule does not own it.
    ///
    /// # Safety
    /// The rule has succeeded: each handle is NULL, owned by the rule, or lent to it.
    pub unsafe fn take(
        self,
        name: &str,
        rule: &str,
        lent: &[&[*mut ArrayHandle]],
    ) -> Result<Vec<Option<Array>>> {
        let mut found: Vec<Option<Array>> = Vec::with_capacity(self.0.len());
        let mut wrong = None;
        for (i, handle) in self.0.iter().enumerate() {
            let known = lent.iter().any(|l| l.contains(handle)) || self.0[..i].contains(handle);
            if !handle.is_null() && known {
                wrong = wrong.or(Some(i));
            }
            // SAFETY: by this function's contract, and each handle is taken only once.
            found.push((!handle.is_null() && !known).then(|| unsafe { take_handle(*handle) }));
        }
        match wrong {
            None => Ok(found),
            Some(i) => Err(Error::value(
                name,
                format!(
                    "{rule} returned a handle as result {i} that it does not own. Retain it first."
                ),
            )),
        }
    }
}
