//! Arrays: handles of the host.

use crate::{
    cpu::View,
    dtype::{Dtype, Element, Number},
    error::{Error, Result},
    host::{self, asked, lent},
    place::Place,
    tensor::{Show, Tensor, TensorType, empty_type, name_of, refused},
};
use std::ffi::CString;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use ultramarine_abi::{
    dlpack::DLDataType,
    extension::{self as raw, ArrayHandle, PlaceCode},
    status,
};

/// An array of Ultramarine. A clone is another handle of the same array.
///
/// Operations are methods, and they are lazy: [`Array::eval`] or reading the elements computes
/// them.
///
/// ```no_run
/// use ultramarine_extension::Array;
///
/// # fn main() -> ultramarine_extension::Result<()> {
/// let x = Array::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
/// let rows = x.sum(&[1])?;
/// assert_eq!(rows.shape(), [2]);
/// assert_eq!(rows.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok(())
/// # }
/// ```
pub struct Array {
    handle: NonNull<ArrayHandle>,
    /// True if dropping it releases the handle. False for operands of a rule, because the host owns
    /// those.
    owned: bool,
    /// Shape and dtype. The host is asked for them only once.
    kind: OnceLock<(Vec<usize>, DLDataType)>,
}

// SAFETY: by the contract, handles may be used and released on any thread.
unsafe impl Send for Array {}
// SAFETY: as above. Nothing is changed through a shared reference.
unsafe impl Sync for Array {}

impl Array {
    /// Takes over a handle.
    ///
    /// # Safety
    /// The handle is NULL, or an owned handle of the host that this library is connected to.
    ///
    /// # Errors
    /// An [`Error`] if the handle is NULL.
    pub unsafe fn from_raw(handle: *mut ArrayHandle) -> Result<Self> {
        Self::of(handle, true)
    }

    /// Makes an owned handle from a borrowed one.
    ///
    /// # Safety
    /// The handle is NULL, or a handle of the host that this library is connected to, valid during
    /// the call.
    ///
    /// # Errors
    /// An [`Error`] if the handle is NULL, or the host has no memory.
    pub unsafe fn retain_raw(handle: *const ArrayHandle) -> Result<Self> {
        if handle.is_null() {
            return Self::of(null_mut(), true);
        }
        let retain = lent!(array_retain);
        // SAFETY: the host's function with the host's pointer; the handle by this function's contract.
        Self::of(unsafe { retain(host::here()?.host, handle) }, true)
    }

    /// Wraps a handle that its lender releases.
    ///
    /// # Safety
    /// The handle is valid as long as the returned array.
    pub(crate) unsafe fn lent(handle: *mut ArrayHandle) -> Result<Self> {
        Self::of(handle, false)
    }

    fn of(handle: *mut ArrayHandle, owned: bool) -> Result<Self> {
        let handle = NonNull::new(handle).ok_or_else(|| {
            Error::runtime("Ultramarine returned no array. Report it to its authors.")
        })?;
        Ok(Self { handle, owned, kind: OnceLock::new() })
    }

    /// Returns the handle, which this array still owns.
    pub fn as_raw(&self) -> *mut ArrayHandle {
        self.handle.as_ptr()
    }

    /// Returns the handle and gives up its ownership: the caller has to release it.
    pub fn into_raw(self) -> *mut ArrayHandle {
        if !self.owned {
            return self.clone().into_raw();
        }
        let mut this = self;
        this.owned = false;
        this.handle.as_ptr()
    }

    /// Makes an array from elements in row-major order, which are copied.
    ///
    /// # Errors
    /// An [`Error`] if their number is not that of the shape, or if there is no memory.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Self> {
        let of = TensorType::new(shape, T::DTYPE);
        if of.size() != elements.len() {
            return Err(Error::value(format!(
                "[from_slice] {} elements do not fill shape {}. Pass as many elements as the shape has.",
                elements.len(),
                Show(shape)
            )));
        }
        let (make, of, bytes) = (lent!(array_from_bytes), of.to_raw()?, size_of_val(elements));
        // SAFETY: the host's function with the host's pointer; the elements are that many bytes.
        Self::made("array_from_bytes", |host, array, error| unsafe {
            make(host, &of, elements.as_ptr().cast(), bytes as u64, array, error)
        })
    }

    /// Makes an array of one value for all elements.
    ///
    /// # Errors
    /// An [`Error`] if there is no memory.
    pub fn full<T: Element>(shape: &[usize], value: T) -> Result<Self> {
        Self::constant(shape, T::DTYPE, value.bits())
    }

    /// Makes an array without axes. It is computed on the device of the other operands.
    ///
    /// # Errors
    /// As [`Array::full`].
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Self::full(&[], value)
    }

    /// Makes an array of one value in a dtype that is chosen at run time. The value is converted as
    /// [`Dtype::bits_of`] does.
    ///
    /// # Errors
    /// As [`Array::full`].
    pub fn full_of(shape: &[usize], dtype: Dtype, value: f64) -> Result<Self> {
        Self::constant(shape, dtype, dtype.bits_of(value))
    }

    /// Makes an array of zeros.
    ///
    /// # Errors
    /// As [`Array::full`].
    pub fn zeros(of: &TensorType) -> Result<Self> {
        Self::constant(&of.shape, of.dtype, [0, 0])
    }

    /// Makes a number into an array without axes. It adopts this array's dtype, or float32 if that
    /// is an integer or bool.
    ///
    /// # Errors
    /// As [`Array::full`]; also if the array's dtype only stores numbers.
    pub fn scalar_like(&self, value: f64) -> Result<Self> {
        let dtype = self.dtype()?;
        Self::full_of(&[], if dtype.is_inexact() { dtype } else { Dtype::Float32 }, value)
    }

    fn constant(shape: &[usize], dtype: Dtype, bits: [u64; 2]) -> Result<Self> {
        let (make, of) = (lent!(array_full), TensorType::new(shape, dtype).to_raw()?);
        // SAFETY: the host's function with the host's pointer, and two words, as the function
        // expects.
        Self::made("array_full", |host, array, error| unsafe {
            make(host, &of, bits.as_ptr(), array, error)
        })
    }

    /// Calls a function of the host that makes an array.
    fn made(
        function: &str,
        make: impl FnOnce(
            *mut std::ffi::c_void,
            *mut *mut ArrayHandle,
            *mut *mut ultramarine_abi::Error,
        ) -> ultramarine_abi::Status,
    ) -> Result<Self> {
        let (mut array, host) = (null_mut(), host::here()?.host);
        asked(function, |error| make(host, &mut array, error))?;
        Self::of(array, true)
    }

    fn kind(&self) -> &(Vec<usize>, DLDataType) {
        self.kind.get_or_init(|| {
            let mut of = empty_type();
            // By the contract a handle has a type, and `connect` has checked that the function is
            // there.
            if let Some((get, host)) = host::table().and_then(|t| Some((t.array_type?, t.host))) {
                // SAFETY: the host's function with the host's pointer and handle, and a struct of that size.
                unsafe { get(host, self.as_raw(), &mut of) };
            }
            TensorType::parts(&of)
        })
    }

    /// Returns the sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.kind().0
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns the element type.
    ///
    /// # Errors
    /// An [`Error`] for elements that are only stored, such as float8. [`Array::dl_dtype`] returns
    /// their type.
    pub fn dtype(&self) -> Result<Dtype> {
        Dtype::from_dl(self.kind().1).ok_or_else(|| refused(self.kind().1))
    }

    /// Returns the element type as DLPack describes it, also of elements that are only stored.
    pub fn dl_dtype(&self) -> DLDataType {
        self.kind().1
    }

    /// Returns the name of the element type for messages, also of elements that are only stored.
    pub fn dtype_name(&self) -> String {
        name_of(self.dl_dtype())
    }

    /// Returns shape and dtype.
    ///
    /// # Errors
    /// As [`Array::dtype`].
    pub fn tensor_type(&self) -> Result<TensorType> {
        Ok(TensorType::new(self.shape(), self.dtype()?))
    }

    /// Returns the stream that computes the array.
    ///
    /// # Errors
    /// An [`Error`] if the host does not know it.
    pub fn place(&self) -> Result<Place> {
        let get = lent!(array_place);
        let mut code =
            PlaceCode { size: size_of::<PlaceCode>() as u32, ..Place::Default.to_code() };
        // SAFETY: the host's function with the host's pointer and handle, and a struct of that size.
        match unsafe { get(host::here()?.host, self.as_raw(), &mut code) } {
            status::OK => Ok(Place::from_code(&code)),
            code => Err(Error::of_host("array_place", code, null_mut())),
        }
    }

    /// Computes the array and waits for it. Must not be called inside of an evaluation.
    ///
    /// # Errors
    /// All errors of the computation.
    pub fn eval(&self) -> Result<()> {
        eval(&[self])
    }

    /// Returns the elements in host memory, with their strides. Computes them if necessary.
    ///
    /// # Errors
    /// As [`Array::eval`]; also if `T` is not the array's element type.
    pub fn view<T: Number>(&self) -> Result<View<'_, T>> {
        let get = lent!(array_view);
        let mut view = raw::View {
            size: size_of::<raw::View>() as u32,
            flags: 0,
            data: null_mut(),
            shape: std::ptr::null(),
            strides: std::ptr::null(),
            elements: 0,
            ndim: 0,
            dtype: self.dl_dtype(),
        };
        // SAFETY: the host's function with the host's pointer and handle, and a struct of that size.
        asked("array_view", |error| unsafe {
            get(host::here().map_or(null_mut(), |t| t.host), self.as_raw(), &mut view, error)
        })?;
        // SAFETY: the elements stay valid and unchanged as long as the handle, which is borrowed.
        unsafe { View::new(Tensor::of(&view)) }
    }

    /// Returns the elements in row-major order.
    ///
    /// # Errors
    /// As [`Array::view`].
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        let view = self.view::<T>()?;
        Ok(match view.as_slice() {
            Some(slice) => slice.to_vec(),
            None => view.iter().collect(),
        })
    }

    /// Returns the only element of an array of size 1.
    ///
    /// # Errors
    /// As [`Array::view`]; also if the array has another size.
    pub fn item<T: Number>(&self) -> Result<T> {
        match self.to_vec::<T>()?[..] {
            [one] => Ok(one),
            _ => Err(Error::value(format!(
                "[item] Array of shape {} does not have exactly one element. Index it first.",
                Show(self.shape())
            ))),
        }
    }
}

impl Clone for Array {
    fn clone(&self) -> Self {
        // SAFETY: the handle is valid as long as this array.
        match unsafe { Self::retain_raw(self.as_raw()) } {
            Ok(array) => {
                if let Some(kind) = self.kind.get() {
                    _ = array.kind.set(kind.clone());
                }
                array
            }
            // Panic, as for a failed allocation, because `clone` cannot return an error.
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if let Some((release, host)) = host::table().and_then(|t| Some((t.array_release?, t.host)))
        {
            // SAFETY: the host's function with the host's pointer, and a handle that this array
            // owns.
            unsafe { release(host, self.as_raw()) };
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype() {
            Ok(dtype) => write!(f, "Array({dtype} {})", Show(self.shape())),
            Err(_) => write!(f, "Array({} {})", self.dtype_name(), Show(self.shape())),
        }
    }
}

/// Returns the handles of arrays, which still own them.
pub(crate) fn handles(arrays: &[&Array]) -> Vec<*mut ArrayHandle> {
    arrays.iter().map(|a| a.as_raw()).collect()
}

/// Takes over handles. If one is NULL, all of them are released.
///
/// # Safety
/// The handles are owned, or NULL.
pub(crate) unsafe fn owned(handles: Vec<*mut ArrayHandle>) -> Result<Vec<Array>> {
    // SAFETY: by this function's contract.
    let all: Vec<_> = handles.into_iter().map(|h| unsafe { Array::from_raw(h) }).collect();
    all.into_iter().collect()
}

/// Computes arrays and waits for them. Must not be called inside of an evaluation.
///
/// # Errors
/// All errors of the computation.
pub fn eval(arrays: &[&Array]) -> Result<()> {
    let (compute, host, arrays) = (lent!(array_eval), host::here()?.host, handles(arrays));
    // SAFETY: the host's function with the host's pointer and handles.
    asked("array_eval", |error| unsafe {
        compute(host, arrays.as_ptr(), arrays.len() as u32, error)
    })
}

/// Returns the dtype to which operands of both dtypes are converted.
///
/// # Errors
/// An [`Error`] if the host does not report it.
pub fn promote_types(a: Dtype, b: Dtype) -> Result<Dtype> {
    let (promote, host, mut to) = (lent!(promote_types), host::here()?.host, a.to_dl());
    // SAFETY: the host's function with the host's pointer; the place is writable.
    asked("promote_types", |error| unsafe { promote(host, a.to_dl(), b.to_dl(), &mut to, error) })?;
    Dtype::from_dl(to).ok_or_else(|| refused(to))
}

/// Returns true if a dtype belongs to a category, such as "floating", "inexact" or "integer". The
/// category may also be the name of a dtype.
///
/// # Errors
/// An [`Error`] if there is no such category.
pub fn issubdtype(dtype: Dtype, category: &str) -> Result<bool> {
    let (ask, host) = (lent!(issubdtype), host::here()?.host);
    let unknown = || {
        Error::value(format!(
            "[issubdtype] There is no category \"{category}\". Use a name such as \"integer\"."
        ))
    };
    let text = CString::new(category).map_err(|_| unknown())?;
    // SAFETY: the host's function with the host's pointer; the text is NUL-terminated.
    match unsafe { ask(host, dtype.to_dl(), text.as_ptr()) } {
        0 => Ok(false),
        1.. => Ok(true),
        _ => Err(unknown()),
    }
}

/// Returns the shape to which types broadcast, and the dtype to which they promote.
///
/// # Errors
/// An [`Error`] if the shapes cannot be broadcast.
pub fn broadcast_types(types: &[TensorType]) -> Result<TensorType> {
    let (ask, host, mut to) = (lent!(broadcast_types), host::here()?.host, empty_type());
    let types = types.iter().map(TensorType::to_raw).collect::<Result<Vec<_>>>()?;
    // SAFETY: the host's function with the host's pointer and structs of that size.
    asked("broadcast_types", |error| unsafe {
        ask(host, types.as_ptr(), types.len() as u32, &mut to, error)
    })?;
    TensorType::from_raw(&to)
}

/// Broadcasts arrays to a common shape.
///
/// # Errors
/// An [`Error`] if the shapes cannot be broadcast.
pub fn broadcast_arrays(arrays: &[&Array]) -> Result<Vec<Array>> {
    let (broadcast, host) = (lent!(broadcast_arrays), host::here()?.host);
    let (inputs, mut results) = (handles(arrays), vec![null_mut(); arrays.len()]);
    // SAFETY: the host's function with the host's pointer and handles, and room for as many
    // results.
    asked("broadcast_arrays", |error| unsafe {
        broadcast(host, inputs.as_ptr(), inputs.len() as u32, results.as_mut_ptr(), error)
    })?;
    // SAFETY: the caller owns the results.
    unsafe { owned(results) }
}

/// Returns the shape to which shapes broadcast, by NumPy's rule.
///
/// ```
/// use ultramarine_extension::broadcast_shapes;
///
/// assert_eq!(broadcast_shapes(&[&[3, 1], &[4]])?, [3, 4]);
/// let error = broadcast_shapes(&[&[2], &[3]]).unwrap_err();
/// assert_eq!(error.to_string(), "[broadcast_shapes] Shapes (2,) and (3,) cannot be broadcast. Make sizes equal or 1, counted from the last axis.");
/// # Ok::<(), ultramarine_extension::Error>(())
/// ```
///
/// # Errors
/// An [`Error`] if they cannot be broadcast.
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    let mut all: Vec<usize> = Vec::new();
    for shape in shapes {
        let (longer, shorter) =
            if all.len() >= shape.len() { (&all[..], *shape) } else { (*shape, &all[..]) };
        let mut next = longer.to_vec();
        let offset = longer.len() - shorter.len();
        for (to, &n) in next[offset..].iter_mut().zip(shorter) {
            match (*to, n) {
                (_, 1) => {}
                (1, _) => *to = n,
                (a, b) if a == b => {}
                _ => {
                    return Err(Error::value(format!(
                        "[broadcast_shapes] Shapes {} and {} cannot be broadcast. Make sizes equal or 1, counted from the last axis.",
                        Show(&all),
                        Show(shape)
                    )));
                }
            }
        }
        all = next;
    }
    Ok(all)
}
