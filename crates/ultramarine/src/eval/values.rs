//! Values of arrays: evaluation, and access to the elements.

use crate::backend::Operand;
use crate::dtype::{Dtype, Element};
use crate::error::{Error, Result, bail, ensure};
use crate::shape::{self, Show};
use crate::{array::Array, backend, node::Value, ops, scalar::Scalar};
use ultramarine_runtime::backend::executable;

/// Returns a scalar as an integer, if the scalar is an integer, or was one before its conversion.
fn exact(scalar: Scalar) -> i128 {
    match scalar.dtype() {
        Dtype::Uint64 => scalar.bits().into(),
        dtype if dtype.is_inexact() => scalar.to_f64() as i128,
        _ => scalar.to_i64().into(),
    }
}

impl Array {
    /// Evaluates the array, unless it is evaluated already.
    ///
    /// # Errors
    /// Any error of the evaluation: [`Error::Memory`], [`Error::Runtime`] ...
    pub fn eval(&self) -> Result<()> {
        match self.node().value() {
            Some(value) => value.buffer.ready(),
            None => super::eval(std::slice::from_ref(self)),
        }
    }

    /// The evaluated value.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn value(&self) -> Result<&Value> {
        self.eval()?;
        self.node().value().ok_or_else(|| Error::runtime("eval", "the array has no value"))
    }

    /// Returns the evaluated value in memory that the host can address: the array's own memory if
    /// possible, otherwise a shared copy, which must not be written to. The flag is true if the
    /// memory is the array's own.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn host_value(&self) -> Result<(Value, bool)> {
        // The caller may act on these values, and a recording of commands would not repeat that
        // decision.
        executable::give_up();
        let value = self.value()?;
        if !value.buffer.as_ptr().is_null() || value.buffer.bytes() == 0 {
            return Ok((value.clone(), true));
        }
        Ok((self.on_host()?, false))
    }

    /// The evaluated value on the host: the array's own memory, a mirror, or a copy of a small part
    /// of a device's buffer. Unlike [`Array::host_value`], it also copies device memory that the
    /// host can address.
    pub(crate) fn on_host(&self) -> Result<Value> {
        executable::give_up();
        let operand = Operand { value: self.value()?, shape: self.shape(), dtype: self.dtype() };
        backend::on_device(&operand, backend::host(), None)
    }

    /// Evaluates the array and returns a row-major array in host memory with the same elements.
    /// Returns the array itself if it is one already.
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn to_contiguous(&self) -> Result<Array> {
        let value = self.value()?;
        if shape::is_contiguous(self.shape(), &value.strides) {
            return Ok(self.clone());
        }
        // Use the device that has the memory, whatever the default device is, so that no data is
        // transferred.
        let here = crate::default_stream(value.buffer.device())?;
        let copy = crate::with_stream(here, || ops::copy::contiguous(self));
        copy.eval()?;
        Ok(copy)
    }

    /// Calls `f` with the elements' bytes in row-major order (bool: 0 or 1 each).
    ///
    /// # Errors
    /// As [`Array::eval`].
    pub fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let array = self.to_contiguous()?;
        let value = array.on_host()?;
        // SAFETY: evaluated values are immutable, contiguous and kept by `value`.
        Ok(f(unsafe { std::slice::from_raw_parts(value.data(), array.nbytes()) }))
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Type`] when `T` is not the array's type; else as [`Array::eval`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.elements("to_vec")
    }

    fn elements<T: Element>(&self, op: &str) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::type_(
                op,
                format!(
                    "Asked for {} of an array of {}. Convert it with astype first.",
                    T::DTYPE,
                    self.dtype()
                ),
            ));
        }
        self.with_bytes(|bytes| {
            let n = self.size();
            let mut out = Vec::<T>::with_capacity(n);
            // SAFETY: `bytes` are n elements of T, and `out` has room for them. Imported memory may
            // hold any bytes, so those of bools are converted to 0 or 1.
            unsafe {
                let target = out.as_mut_ptr() as *mut u8;
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
                if T::DTYPE == Dtype::Bool {
                    let target = std::slice::from_raw_parts_mut(target, n);
                    target.iter_mut().for_each(|b| *b = (*b != 0) as u8);
                }
                out.set_len(n);
            }
            out
        })
    }

    /// The only element of an array of size 1, as a `T`: an integer or bool as any number type that holds it, a
    /// floating-point number as any floating-point type, rounded to it, and each of them as a complex number.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1.0f32, 4.0, 2.0], &[3])?;
    /// assert_eq!(x.argmax(..)?.item::<i32>()?, 1);
    /// assert_eq!(x.max(..)?.item::<f64>()?, 4.0);
    /// assert!(Array::scalar(300).item::<u8>().is_err());
    /// assert!(x.max(..)?.item::<i32>().is_err());
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] for another size, or an integer that `T` does not hold; [`Error::Type`] for a type that takes no such
    /// number.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.size() != 1 {
            bail!(
                "item",
                "Array of shape {} does not have exactly one element. Index it first, or use to_vec.",
                Show(self.shape())
            );
        }
        let (from, to) = (self.dtype(), T::DTYPE);
        let whole = from.is_integer() || from == Dtype::Bool;
        let converts = match (whole, from.is_floating()) {
            _ if from == to => false,
            (true, _) => to.is_integer() || to.is_inexact(),
            (_, true) => to.is_inexact(),
            _ => false,
        };
        if !converts {
            return self.elements::<T>("item").map(|all| all[0]);
        }
        let value = self.item_scalar()?;
        let number = value.cast(to);
        if whole && exact(value) != exact(number) {
            let exact = exact(value);
            bail!("item", "{exact} of {from} cannot be represented as {to}. Ask for a wider type.");
        }
        let bits = number.bits().to_le_bytes();
        // SAFETY: the low bytes are an element of T's dtype, and no element has more than eight.
        Ok(unsafe { std::ptr::read_unaligned(bits.as_ptr().cast::<T>()) })
    }

    /// The only element of an array of size 1, as a [`Scalar`].
    ///
    /// # Errors
    /// [`Error::Value`] for another size; else as [`Array::eval`].
    pub fn item_scalar(&self) -> Result<Scalar> {
        ensure!(
            self.size() == 1,
            "item",
            "item can only be called on arrays of size 1, but the shape is {}. Index it first.",
            Show(self.shape())
        );
        if self.dtype() == Dtype::Float4E2m1fnX2 {
            bail!(
                "item",
                "An element of float4_e2m1fn_x2 holds two numbers. Convert with astype(float32)."
            );
        }
        self.with_bytes(|bytes| {
            let mut bits = [0u8; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            Scalar::from_bits(self.dtype(), u64::from_le_bytes(bits))
        })
    }
}
