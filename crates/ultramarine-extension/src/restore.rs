//! Primitives that can be made again from their attributes, for functions in files.

use crate::{
    error::{Error, Result, guard},
    host::{self, asked},
    primitive::Primitive,
    table::Table,
};
use std::ffi::{CString, c_void};
use ultramarine_abi::{
    Error as Raw, Status,
    extension::{self as raw},
};

/// A primitive that can be made again from its version and attributes. Functions that contain it
/// can be exported to files. They can be imported where its library has called [`provide`].
pub trait Restore: Primitive + Sized {
    /// The primitive's name, the same as [`Primitive::name`].
    const NAME: &'static str;

    /// Makes the primitive with this version and these attributes, which [`Primitive::version`] and
    /// [`Primitive::attributes`] returned. Both come from a file, and may be arbitrary. The
    /// function has to read all attributes.
    ///
    /// # Errors
    /// An [`Error`] for an unknown version or invalid attributes.
    fn restore(version: u32, attributes: &mut AttributeReader<'_>) -> Result<Self>;
}

/// Declares that this library can make primitives of a type again. `package` is the package that
/// users install and import to get the primitive. Call this after connecting, when a module is
/// made. A host that does not support functions in files ignores the call.
///
/// # Errors
/// An [`Error`] for names that contain a NUL; no connection ([`connect`](crate::connect)).
pub fn provide<P: Restore>(package: &str) -> Result<()> {
    let here = host::here()?;
    let Some(provide) = here.provide else { return Ok(()) };
    let text = |text: &str| {
        CString::new(text).map_err(|_| Error::value("[provide] A name has a NUL in it. Remove it."))
    };
    let (name, package) = (text(P::NAME)?, text(package)?);
    // SAFETY: the host's function with the host's pointer; it copies the texts.
    asked("provide", |error| unsafe {
        provide(
            here.host,
            name.as_ptr(),
            package.as_ptr(),
            restore::<P>,
            std::ptr::null_mut(),
            error,
        )
    })
}

unsafe extern "C" fn restore<P: Restore>(
    _: *mut c_void,
    version: u32,
    attributes: *const c_void,
    attribute_bytes: u64,
    receive: raw::Receive,
    receiver: *mut c_void,
    error: *mut *mut Raw,
) -> Status {
    // SAFETY: the contract's: readable bytes, and a receiver that takes the context over.
    unsafe {
        guard(error, || {
            let bytes = match attributes.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(attributes.cast(), attribute_bytes as usize),
            };
            let mut reader = AttributeReader(bytes);
            let primitive = P::restore(version, &mut reader)?;
            if !reader.0.is_empty() {
                return Err(Error::value(format!(
                    "[{}] {} bytes of attributes are left over. Read all of them, or raise the version.",
                    P::NAME,
                    reader.0.len()
                )));
            }
            Table::new(primitive)?.with(|raw| receive(receiver, raw));
            Ok(())
        })
    }
}

/// Attributes that [`Attributes`](crate::Attributes) wrote. Read them in the order in which they
/// were written.
#[derive(Debug)]
pub struct AttributeReader<'a>(&'a [u8]);

impl<'a> AttributeReader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// An [`Error`] if there are not enough bytes, or if the function of this name in
    /// [`Attributes`](crate::Attributes) cannot have written them. This applies to all functions
    /// here.
    pub fn float(&mut self) -> Result<f64> {
        Ok(f64::from_bits(u64::from_le_bytes(self.take()?)))
    }

    /// Reads an integer.
    ///
    /// # Errors
    /// As [`float`](Self::float).
    pub fn int(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.take()?))
    }

    /// Reads a flag.
    ///
    /// # Errors
    /// As [`float`](Self::float).
    pub fn flag(&mut self) -> Result<bool> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(Error::value(format!(
                "A flag is {other}, expected 0 or 1. Export the function again."
            ))),
        }
    }

    /// Reads integers.
    ///
    /// # Errors
    /// As [`float`](Self::float).
    pub fn ints(&mut self) -> Result<Vec<i64>> {
        let count = self.count(8)?;
        (0..count).map(|_| self.int()).collect()
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`float`](Self::float).
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| Error::value("A string is not UTF-8. Export the function again."))
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// As [`float`](Self::float).
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(first)
    }

    /// Reads the number of items of `size` bytes each, and checks that all of them are there.
    fn count(&mut self, size: usize) -> Result<usize> {
        let count = usize::try_from(self.int()?).map_err(|_| cut_short())?;
        let bytes = count.checked_mul(size).filter(|bytes| *bytes <= self.0.len());
        bytes.map(|_| count).ok_or_else(cut_short)
    }
}

#[cold]
fn cut_short() -> Error {
    Error::value("The attributes are truncated. Export the function again.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attributes;

    #[test]
    fn attributes_are_read_as_they_were_written() -> Result<()> {
        let written =
            Attributes::new().float(-0.0).int(-7).flag(true).ints(&[1, -2]).text("ab").bytes(&[3]);
        let mut reader = AttributeReader(written.as_bytes());
        assert_eq!(reader.float()?.to_bits(), (-0.0f64).to_bits());
        assert_eq!((reader.int()?, reader.flag()?), (-7, true));
        assert_eq!(
            (reader.ints()?, reader.text()?, reader.bytes()?),
            (vec![1, -2], "ab", &[3][..])
        );
        assert!(reader.0.is_empty());
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_not_read() {
        for bytes in
            [&[][..], &[2; 7], &i64::MAX.to_le_bytes(), &(-1i64).to_le_bytes(), &5i64.to_le_bytes()]
        {
            assert!(
                AttributeReader(bytes).bytes().is_err() && AttributeReader(bytes).ints().is_err()
            );
        }
        assert!(AttributeReader(&[2]).flag().is_err());
        assert!(AttributeReader(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff]).text().is_err());
    }
}
