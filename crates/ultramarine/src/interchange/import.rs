//! Imports tensors as arrays.

use super::device::{self, Home};
use super::device_memory::{self, Arrival};
use super::{copy, names};
use crate::array::{Array, alignment};
use crate::error::{Error, Result};
use crate::shape::{self, Shape, Strides};
use crate::{backend::buffer::Buffer, device::Device, dtype::Dtype, node::Value};
use ultramarine_abi::dlpack::{
    Checked, DLDevice, DLTensor, Invalid, ManagedTensor, device_type, type_code,
};

/// The host in DLPack.
pub(super) const HOST: DLDevice = DLDevice { device_type: device_type::CPU, device_id: 0 };

/// Options of [`Array::from_dlpack_with`]. The default is that of [`Array::from_dlpack`]: the array
/// stays on the tensor's device, and is copied only if necessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The device for the array; `None`: the tensor's device.
    pub device: Option<Device>,
    /// `Some(true)`: copies, so that only the array uses its memory. `Some(false)`: never copies; a
    /// necessary copy is an error. `None`: copies only if necessary.
    pub copy: Option<bool>,
}

/// A validated tensor, ready to be taken. Neither its memory nor its deleter has been touched, so
/// it can still be rejected.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    checked: Checked,
    dtype: Dtype,
    home: Home,
    device: Option<Device>,
    /// As the caller requests it; also `Some(true)` if a copy is necessary.
    copy: Option<bool>,
    after: Option<u64>,
}

/// The error for an invalid tensor. (Not an `impl From`: a second source of errors beside the
/// identity would keep `?` in closures from inferring their type.)
#[cold]
pub fn refusal(invalid: Invalid) -> Error {
    Error::buffer("from_dlpack", invalid)
}

impl Array {
    /// Takes another library's tensor as an array. Nothing is copied, except elements at misaligned
    /// addresses.
    ///
    /// The tensor's deleter runs when the memory is no longer needed, on any thread; it also runs
    /// if the tensor is rejected. Unevaluated work sees later writes of the tensor's owner.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    /// let tensor = x.to_dlpack()?;
    /// let y = Array::from_dlpack(tensor)?;
    /// assert_eq!(y.value()?.data(), x.value()?.data());
    /// assert_eq!((&y + 1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Buffer`] when an array cannot represent the tensor (its dtype, its number of
    /// dimensions), [`Error::BufferDevice`] when no loaded backend serves its device.
    pub fn from_dlpack(tensor: ManagedTensor) -> Result<Array> {
        Array::from_dlpack_with(tensor, ImportOptions::default())
    }

    /// Takes a tensor as [`Array::from_dlpack`] does, on another device or with a copy.
    ///
    /// # Errors
    /// As [`Array::from_dlpack`]; [`Error::Buffer`] when a copy is needed but forbidden.
    pub fn from_dlpack_with(tensor: ManagedTensor, options: ImportOptions) -> Result<Array> {
        // SAFETY: an owned tensor is valid.
        let checked = unsafe { ultramarine_abi::dlpack::check(tensor.tensor(), tensor.flags()) };
        let checked = checked.map_err(refusal)?;
        if options.copy != Some(true)
            && options.device.is_none()
            && let Some(plain) = Plain::validate(&tensor, &checked)
        {
            // SAFETY: `plain` was validated from this tensor.
            return Ok(unsafe { plain.take(tensor, &checked) });
        }
        let import = Import::validate(&tensor, checked, options)?;
        // SAFETY: as above.
        unsafe { import.take(tensor) }
    }
}

/// A tensor that can be taken directly: it is in host memory, aligned, and of a dtype that arrays
/// have. It is a shortcut of [`Import`] for the most common case.
#[derive(Clone, Copy, Debug)]
pub struct Plain(Dtype);

impl Plain {
    /// Returns a plain import of a valid tensor. `None` if the tensor is not a plain one; then use
    /// [`Import::validate`].
    #[inline]
    pub fn validate(tensor: &ManagedTensor, checked: &Checked) -> Option<Plain> {
        let header = tensor.tensor();
        let dtype = Dtype::from_dl_with(header.dtype, tensor.flags())?;
        let plain = header.device == HOST
            && header.ndim as usize <= shape::MAX_NDIM
            && (is_aligned(header, dtype) || checked.elements == 0);
        plain.then_some(Plain(dtype))
    }

    /// Takes the tensor, without a copy.
    ///
    /// # Safety
    /// The tensor and `checked` are those that were validated, and the tensor has not changed
    /// since.
    #[inline]
    pub unsafe fn take(self, tensor: ManagedTensor, checked: &Checked) -> Array {
        let header = std::ptr::from_ref(tensor.tensor());
        // SAFETY: the header is the tensor's, which lives as long as the buffer.
        let header = unsafe { &*header };
        let lowest = match checked.elements {
            // An empty tensor's address is never read, but must not be NULL.
            0 => std::ptr::NonNull::<u128>::dangling().as_ptr().cast(),
            _ => first(header).wrapping_sub(checked.below),
        };
        let buffer = Buffer::from_tensor(lowest, checked.bytes, tensor);
        let contiguous = checked.contiguous;
        Array::laid_out(buffer, checked.below, self.0, |dims, strides| {
            // SAFETY: the header is a valid tensor's, and `checked` describes it.
            unsafe { lay_out(header, contiguous, dims, strides) }
        })
    }
}

/// Copies sizes and strides of a tensor. Strides that are never applied can have any value and
/// could overflow later, so they are replaced by those of a row-major array.
///
/// # Safety
/// The header is that of a valid tensor, which is row-major if `contiguous` is set.
#[inline]
unsafe fn lay_out(header: &DLTensor, contiguous: bool, dims: &mut Shape, strides: &mut Strides) {
    let ndim = header.ndim as usize;
    if ndim > dims.inline_size() {
        dims.reserve_exact(ndim);
        strides.reserve_exact(ndim);
    }
    let (sizes, steps) = (dims.as_mut_ptr(), strides.as_mut_ptr());
    let mut step = 1isize;
    for axis in (0..ndim).rev() {
        // SAFETY: a valid tensor has `ndim` sizes, and is row-major if it has no strides; the
        // targets have room for them.
        unsafe {
            let size = header.shape.add(axis).read_unaligned() as usize;
            let given = !contiguous && size != 1;
            sizes.add(axis).write(size);
            steps.add(axis).write(match given {
                true => header.strides.add(axis).read_unaligned() as isize,
                false => step,
            });
            // Validation has checked that the product of the sizes, without those of 0, does not
            // overflow.
            step = step.wrapping_mul(size.max(1) as isize);
        }
    }
    // SAFETY: the values were written above.
    unsafe {
        dims.set_len(ndim);
        strides.set_len(ndim);
    }
}

impl Import {
    /// Checks that an array can represent a valid tensor.
    ///
    /// # Errors
    /// As [`Array::from_dlpack_with`].
    pub fn validate(
        tensor: &ManagedTensor,
        checked: Checked,
        options: ImportOptions,
    ) -> Result<Import> {
        let (tensor, flags) = (tensor.tensor(), tensor.flags());
        let home = device::home(tensor.device)?;
        let dtype = Dtype::from_dl_with(tensor.dtype, flags).ok_or_else(|| unsupported(tensor))?;
        if tensor.ndim as usize > shape::MAX_NDIM {
            return Err(too_many_dimensions(tensor.ndim));
        }
        let ImportOptions { device, mut copy } = options;
        if home == Home::Host && checked.elements > 0 && !is_aligned(tensor, dtype) {
            if copy == Some(false) {
                return Err(misaligned(dtype));
            }
            copy = Some(true);
        }
        Ok(Import { checked, dtype, home, device, copy, after: None })
    }

    /// Makes the values valid only after the present work of a native stream of the tensor's
    /// device. Use it for producers that did not make the stream of [`super::consumer_stream`]
    /// wait.
    #[must_use]
    pub fn after(self, stream: u64) -> Import {
        Import { after: Some(stream), ..self }
    }

    /// Returns true if taking the tensor takes time: a copy, or memory of another device.
    #[inline]
    pub fn is_work(&self) -> bool {
        self.copy == Some(true)
            || self.home != Home::Host
            || self.device.is_some_and(|d| d != Device::CPU)
    }

    /// Takes the tensor. Its deleter runs when the memory is no longer needed: at once if the
    /// tensor was copied, and also if this function fails.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is no memory for a copy.
    ///
    /// # Safety
    /// The tensor is the one that was validated, and has not changed since.
    pub unsafe fn take(self, tensor: ManagedTensor) -> Result<Array> {
        if self.home == Home::Host && self.copy != Some(true) && self.device.is_none() {
            // SAFETY: by this function's contract.
            return Ok(unsafe { Plain(self.dtype).take(tensor, &self.checked) });
        }
        let Import { checked, dtype, home, device, copy, after } = self;
        let header = tensor.tensor();
        let (mut dims, mut strides) = (Shape::new(), Strides::new());
        // SAFETY: this tensor was validated.
        unsafe { lay_out(header, checked.contiguous, &mut dims, &mut strides) };
        let is_host = home == Home::Host;
        if is_host && copy == Some(true) && (checked.contiguous || !is_aligned(header, dtype)) {
            let data = first(header);
            // SAFETY: a valid tensor has its elements there, and it lives until they are copied.
            let array = unsafe { copy::of_host(data, &dims, &strides, dtype, &checked) };
            drop(tensor);
            return match device {
                Some(device) if device != Device::CPU => device_memory::fresh(&array?, device),
                _ => array,
            };
        }
        let arrival = Arrival { checked, dtype, home, device, copy, after };
        let (buffer, offset, target) = if arrival.is_plain() {
            let (buffer, offset) = device_memory::host(tensor, &checked);
            (buffer, offset, None)
        } else {
            arrival.take(tensor)?
        };
        let array = Array::given(Value { buffer, offset, strides }, dims, dtype);
        match (target, copy) {
            (Some(device), _) => device_memory::fresh(&array, device),
            (None, Some(true)) => {
                let here = array.node().value().map_or(Device::CPU, |v| v.buffer.device());
                device_memory::fresh(&array, here)
            }
            (None, _) => Ok(array),
        }
    }
}

/// The address of a tensor's first element, if the host can address it.
#[inline]
fn first(tensor: &DLTensor) -> *mut u8 {
    (tensor.data as *mut u8).wrapping_add(tensor.byte_offset as usize)
}

#[inline]
fn is_aligned(tensor: &DLTensor, dtype: Dtype) -> bool {
    // Alignments are powers of two.
    first(tensor) as usize & (alignment(dtype) - 1) == 0
}

#[cold]
fn misaligned(dtype: Dtype) -> Error {
    Error::buffer(
        "from_dlpack",
        format!(
            "The memory is not aligned for {dtype}, so it cannot be imported without a copy. Leave out copy=False."
        ),
    )
}

#[cold]
fn too_many_dimensions(ndim: i32) -> Error {
    Error::buffer(
        "from_dlpack",
        format!(
            "The tensor has {ndim} dimensions, and arrays at most {}. Reshape it first.",
            shape::MAX_NDIM
        ),
    )
}

#[cold]
fn unsupported(tensor: &DLTensor) -> Error {
    let d = tensor.dtype;
    let instead = match (d.code, d.bits) {
        (type_code::COMPLEX, 128) => "Convert it to complex64 first",
        (type_code::COMPLEX, 32) => "Convert it to complex64 first",
        _ => "Convert it to a dtype of ultramarine first",
    };
    Error::buffer(
        "from_dlpack",
        format!(
            "There is no dtype for {} (code {}, {} bits{}). {instead}.",
            names::of(d),
            d.code,
            d.bits,
            if d.lanes == 1 { String::new() } else { format!(", {} lanes", d.lanes) }
        ),
    )
}
