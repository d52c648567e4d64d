//! Tensors as arrays.

use super::{
    device::{self, Home},
    device_memory::{self, Arrival},
};
use crate::{
    array::Array,
    device::Device,
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    shape::{self, Shape, Strides},
};
use ultramarine_abi::dlpack::{Checked, DLTensor, Invalid, ManagedTensor};

/// How a tensor is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Where the array shall be; `None`: where the tensor is.
    pub device: Option<Device>,
    /// `Some(true)`: copied, so that the array is alone with its memory. `Some(false)`: never, an
    /// error where that is needed. `None`: only where it is needed.
    pub copy: Option<bool>,
}

/// A tensor that was judged: it can be taken. Nothing of it is owned or used yet.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    checked: Checked,
    dtype: Dtype,
    home: Home,
    device: Option<Device>,
    /// As the caller wants it.
    copy: Option<bool>,
    after: Option<u64>,
}

/// The error for a tensor that is none. (Not an `impl From`: a second source of errors beside
/// the identity would keep `?` in closures from inferring their type.)
#[cold]
pub fn refusal(invalid: Invalid) -> Error {
    Error::buffer("from_dlpack", invalid)
}

impl Array {
    /// Takes a tensor of another library as an array, without a copy. The tensor's deleter runs
    /// when nothing needs the memory any more, on whatever thread that happens; also
    /// if the tensor is refused.
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
    /// [`Error::Buffer`] when no array can be that tensor (its dtype, its alignment ...),
    /// [`Error::BufferDevice`] when no loaded backend serves its device.
    pub fn from_dlpack(tensor: ManagedTensor) -> Result<Array> {
        Array::from_dlpack_with(tensor, ImportOptions::default())
    }

    /// As [`Array::from_dlpack`], on another device or with a copy.
    ///
    /// # Errors
    /// As [`Array::from_dlpack`]; [`Error::Buffer`] when a copy is needed and forbidden.
    pub fn from_dlpack_with(tensor: ManagedTensor, options: ImportOptions) -> Result<Array> {
        // SAFETY: an owned tensor is a valid one.
        let checked = unsafe { ultramarine_abi::dlpack::check(tensor.tensor(), tensor.flags()) };
        let checked = checked.map_err(refusal)?;
        let import = Import::judge(&tensor, checked, options)?;
        // SAFETY: judged from this tensor.
        unsafe { import.take(tensor) }
    }
}

impl Import {
    /// Whether a valid tensor can be an array.
    ///
    /// # Errors
    /// As [`Array::from_dlpack_with`].
    #[inline]
    pub fn judge(
        tensor: &ManagedTensor,
        checked: Checked,
        options: ImportOptions,
    ) -> Result<Import> {
        let (tensor, flags) = (tensor.tensor(), tensor.flags());
        let home = device::home(tensor.device)?;
        let dtype = Dtype::from_dl_with(tensor.dtype, flags).ok_or_else(|| unsupported(tensor))?;
        if tensor.ndim as usize > shape::MAX_NDIM {
            return Err(Error::buffer(
                "from_dlpack",
                format!("{} dimensions; arrays have at most {}.", tensor.ndim, shape::MAX_NDIM),
            ));
        }
        if home == Home::Host && checked.elements > 0 && options.copy != Some(true) {
            let first = (tensor.data as usize).wrapping_add(tensor.byte_offset as usize);
            if !first.is_multiple_of(alignment(dtype)) {
                return Err(Error::buffer(
                    "from_dlpack",
                    format!("the memory is not aligned for {dtype}; copy=True takes a copy."),
                ));
            }
        }
        let ImportOptions { device, copy } = options;
        Ok(Import { checked, dtype, home, device, copy, after: None })
    }

    /// The values are there once a native stream of the tensor's device has done its present
    /// work: for producers that did not make the stream of [`super::consumer_stream`] wait.
    #[must_use]
    pub fn after(self, stream: u64) -> Import {
        Import { after: Some(stream), ..self }
    }

    /// Whether taking the tensor is more than a note of where its elements are.
    #[inline]
    pub fn is_work(&self) -> bool {
        self.copy == Some(true)
            || self.home != Home::Host
            || self.device.is_some_and(|d| d != Device::CPU)
    }

    /// Takes the tensor. Its deleter runs when nothing needs the memory any more; also if this
    /// fails.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is none for a copy.
    ///
    /// # Safety
    /// The tensor is the one that was judged, and nobody changed it since.
    pub unsafe fn take(self, tensor: ManagedTensor) -> Result<Array> {
        let mut dims = Shape::new();
        let mut strides = Strides::new();
        for axis in 0..tensor.ndim() {
            dims.push(tensor.size(axis));
        }
        // (Of packed elements, strides other than row-major ones were refused.)
        if self.checked.elements == 0 || tensor.tensor().strides.is_null() || self.dtype.is_packed()
        {
            strides = shape::contiguous_strides(&dims);
        } else {
            for axis in 0..tensor.ndim() {
                strides.push(tensor.stride(axis).unwrap_or(1));
            }
        }
        let Import { checked, dtype, home, device, copy, after } = self;
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
            (None, Some(true)) if home == Home::Host => array.to_contiguous(),
            (None, Some(true)) => device_memory::fresh(&array, array.device()),
            (None, _) => Ok(array),
        }
    }
}

/// What an address of an element is a multiple of.
pub(super) fn alignment(dtype: Dtype) -> usize {
    if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() }
}

#[cold]
fn unsupported(tensor: &DLTensor) -> Error {
    let d = tensor.dtype;
    Error::buffer(
        "from_dlpack",
        format!("no dtype here is code {} of {} bits ({} lanes).", d.code, d.bits, d.lanes),
    )
}
