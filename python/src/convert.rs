//! Python values as operands: exact arrays first, then Python's numbers (weakly
//! typed), then whatever can be made an array.

use crate::array::PyArray;
use crate::array::make::{self, Request};
use crate::error::{Fail, Res, shown, type_, type_name, value};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use ultramarine::{Array, Complex32, Dtype, Kind, Scalar};

/// A Python number: it takes the dtype of the array that it meets, as far as its kind
/// allows.
#[derive(Clone, Copy)]
pub enum Number {
    Bool(bool),
    Int(i64),
    /// An integer that int64 cannot hold and uint64 can.
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
}

impl Number {
    /// The number that a Python object is, if it is one; an error for an integer that
    /// no dtype holds.
    #[inline]
    pub fn of(object: &Bound<'_, PyAny>) -> Res<Option<Number>> {
        let p = object.as_ptr();
        // SAFETY: `p` is a live object; these read its type and, of a float, its value.
        unsafe {
            if ffi::PyFloat_CheckExact(p) != 0 {
                return Ok(Some(Number::Float(ffi::PyFloat_AsDouble(p))));
            }
            if ffi::PyLong_CheckExact(p) != 0 {
                return Number::int(object).map(Some);
            }
        }
        Number::unusual(object)
    }

    fn unusual(object: &Bound<'_, PyAny>) -> Res<Option<Number>> {
        if let Ok(b) = object.cast::<PyBool>() {
            return Ok(Some(Number::Bool(b.is_true())));
        }
        if object.is_instance_of::<PyInt>() {
            return Number::int(object).map(Some);
        }
        if object.is_instance_of::<PyFloat>() {
            return Ok(Some(Number::Float(object.extract::<f64>()?)));
        }
        if object.is_instance_of::<PyComplex>() {
            // SAFETY: a complex object was just recognised.
            let (re, im) = unsafe {
                (
                    ffi::PyComplex_RealAsDouble(object.as_ptr()),
                    ffi::PyComplex_ImagAsDouble(object.as_ptr()),
                )
            };
            return Ok(Some(Number::Complex(re, im)));
        }
        Ok(None)
    }

    /// The number that an object converts itself to, by `__complex__`, `__float__` or `__index__`.
    pub fn converted(object: &Bound<'_, PyAny>) -> Res<Option<Number>> {
        let class = object.get_type();
        if class.hasattr(intern!(object.py(), "__complex__"))? {
            let number = object.call_method0(intern!(object.py(), "__complex__"))?;
            return match Number::of(&number)? {
                Some(number @ Number::Complex(..)) => Ok(Some(number)),
                _ => Err(type_(format!(
                    "{}.__complex__ must return a complex, but returned {}",
                    type_name(object),
                    type_name(&number)
                ))),
            };
        }
        if class.hasattr(intern!(object.py(), "__float__"))? {
            return Ok(Some(Number::Float(object.extract()?)));
        }
        Ok(integer(object)?.map(|v| Number::Int(v as i64)))
    }

    fn int(object: &Bound<'_, PyAny>) -> Res<Number> {
        let mut overflow = 0;
        // SAFETY: the object is an int; the flag is a local.
        let v = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &mut overflow) };
        if overflow == 0 {
            return Ok(Number::Int(v));
        }
        match object.extract::<u64>() {
            Ok(v) => Ok(Number::Uint(v)),
            Err(_) => Err(value(format!(
                "Converting {} to int64 would result in overflow. Pass a smaller number, or a float.",
                shown(object)
            ))),
        }
    }

    /// The dtype that the number has by itself.
    pub fn dtype(self) -> Dtype {
        match self {
            Number::Bool(_) => Dtype::Bool,
            Number::Int(v) if i32::try_from(v).is_ok() => Dtype::Int32,
            Number::Int(_) => Dtype::Int64,
            Number::Uint(_) => Dtype::Uint64,
            Number::Float(_) => Dtype::Float32,
            Number::Complex(..) => Dtype::Complex64,
        }
    }

    /// The number in a dtype, converted as a cast would.
    pub fn cast(self, dtype: Dtype) -> Scalar {
        match self {
            Number::Bool(v) => Scalar::from_i64(dtype, v as i64),
            Number::Int(v) => Scalar::from_i64(dtype, v),
            Number::Uint(v) => Scalar::from(v).cast(dtype),
            Number::Float(v) => Scalar::from_f64(dtype, v),
            Number::Complex(re, im) => {
                Scalar::from_complex(dtype, Complex32::new(re as f32, im as f32))
            }
        }
    }

    /// The scalar that the number is beside an array of `other`.
    #[inline]
    pub fn beside(self, other: Dtype) -> Res<Scalar> {
        let dtype = match (self, other.kind()) {
            (Number::Float(_), Kind::Floating) => other,
            (Number::Float(_), _) => Dtype::Float32,
            (Number::Int(_) | Number::Uint(_), Kind::Bool) => Dtype::Int32,
            (Number::Int(_) | Number::Uint(_), Kind::Complex) => Dtype::Float32,
            (Number::Int(_) | Number::Uint(_), Kind::Floating) => other,
            (Number::Int(_) | Number::Uint(_), _) => {
                self.check_fits(other)?;
                other
            }
            (Number::Bool(_), _) => Dtype::Bool,
            (Number::Complex(..), _) => Dtype::Complex64,
        };
        Ok(self.cast(dtype))
    }

    fn check_fits(self, dtype: Dtype) -> Res<()> {
        let v = match self {
            Number::Int(v) => v as i128,
            Number::Uint(v) => v as i128,
            _ => return Ok(()),
        };
        match ultramarine::iinfo(dtype) {
            // As in MLX, uint64 wraps.
            Some(info) if dtype != Dtype::Uint64 && (v < info.min || v > info.max) => Err(value(
                format!("Converting {v} to {dtype} would result in overflow. Pass a wider dtype."),
            )),
            _ => Ok(()),
        }
    }
}

/// The array of an object whose type is exactly `array`.
#[inline]
pub fn exact<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyArray>> {
    object.cast_exact::<PyArray>().ok()
}

/// The array of an object that is one (of a subclass, too).
#[inline]
pub fn as_array<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyArray>> {
    exact(object).or_else(|| object.cast::<PyArray>().ok())
}

/// The array of an object that can be an operand beside an array of dtype `beside`;
/// `None` if it cannot.
pub fn try_operand(object: &Bound<'_, PyAny>, beside: Option<Dtype>) -> Res<Option<Array>> {
    match own_operand(object, beside)? {
        Some(a) => Ok(Some(a)),
        // Foreign operands are typed weakly, too, and copied now.
        None => make::array_like(object, Request::of_array(beside)),
    }
}

/// As [`try_operand`], but foreign memory keeps its dtype, so that a promotion loses none of its
/// values. Only float64 becomes float32, as in `array(object)`, unless it meets float64.
pub fn promoting_operand(object: &Bound<'_, PyAny>, beside: Dtype) -> Res<Option<Array>> {
    match own_operand(object, Some(beside))? {
        Some(a) => Ok(Some(a)),
        None => {
            let narrow = beside != Dtype::Float64;
            make::array_like(object, Request { narrow, ..Request::of_array(None) })
        }
    }
}

/// The array of an array or a number.
#[inline]
fn own_operand(object: &Bound<'_, PyAny>, beside: Option<Dtype>) -> Res<Option<Array>> {
    if let Some(a) = exact(object) {
        return Ok(Some(a.get().get(object.py())));
    }
    if let Some(n) = Number::of(object)? {
        return Ok(Some(Array::scalar(match beside {
            Some(dtype) => n.beside(dtype)?,
            None => n.cast(n.dtype()),
        })));
    }
    Ok(as_array(object).map(|a| a.get().get(object.py())))
}

/// The error for an operand of a wrong type.
pub fn invalid(object: &Bound<'_, PyAny>) -> Fail {
    if object.is_none() {
        return type_("None is not an array or a number. Pass one of these.");
    }
    value(format!(
        "Invalid type {} received in array initialization. Pass numbers, nested lists of numbers, or an array.",
        type_name(object)
    ))
}

/// The array of an object that can be an operand.
pub fn operand(object: &Bound<'_, PyAny>, beside: Option<Dtype>) -> Res<Array> {
    try_operand(object, beside)?.ok_or_else(|| invalid(object))
}

/// Two operands of an elementwise function: as [`operands`], but a number takes the shape of
/// the array beside it, too, so that there is no broadcast to build.
pub fn pair(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Res<(Array, Array)> {
    match (exact(a), exact(b)) {
        (Some(a), None) => {
            if let Some(n) = Number::of(b)? {
                let a = a.get().get(b.py());
                let b = a.constant_beside(n.beside(a.dtype())?);
                return Ok((a, b));
            }
        }
        (None, Some(b)) => {
            if let Some(n) = Number::of(a)? {
                let b = b.get().get(a.py());
                let a = b.constant_beside(n.beside(b.dtype())?);
                return Ok((a, b));
            }
        }
        _ => {}
    }
    operands(a, b)
}

/// Two operands; a number takes the dtype of the array beside it.
pub fn operands(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Res<(Array, Array)> {
    if let (Some(a), Some(b)) = (exact(a), exact(b)) {
        return Ok((a.get().get(a.py()), b.get().get(b.py())));
    }
    match (Number::of(a)?, Number::of(b)?) {
        (Some(a), Some(b)) => {
            Ok((Array::scalar(a.cast(a.dtype())), Array::scalar(b.cast(b.dtype()))))
        }
        (Some(a), None) => {
            let b = operand(b, None)?;
            Ok((Array::scalar(a.beside(b.dtype())?), b))
        }
        (None, None) if as_array(a).is_none() && as_array(b).is_some() => {
            let b = operand(b, None)?;
            Ok((operand(a, Some(b.dtype()))?, b))
        }
        _ => {
            let a = operand(a, None)?;
            let b = operand(b, Some(a.dtype()))?;
            Ok((a, b))
        }
    }
}

/// An argument that must be an array.
pub struct ArrayArg(pub Array);

impl FromPyObject<'_, '_> for ArrayArg {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match as_array(&object) {
            Some(a) => Ok(ArrayArg(a.get().get(object.py()))),
            None => Err(type_(format!("expected an array, got {}", type_name(&object))).into()),
        }
    }
}

/// An argument that may be an array, a number or whatever can be made an array.
pub struct Operand(pub Array);

impl FromPyObject<'_, '_> for Operand {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Operand(operand(&object, None)?))
    }
}

/// A list of arrays: a list, a tuple or any iterable.
pub struct Arrays(pub Vec<Array>);

impl FromPyObject<'_, '_> for Arrays {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let items = object.try_iter()?;
        items.map(|item| Ok(item?.extract::<ArrayArg>()?.0)).collect::<PyResult<_>>().map(Arrays)
    }
}

/// One integer or a sequence of them.
pub struct Ints(pub Vec<isize>);

impl FromPyObject<'_, '_> for Ints {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match integer(&object)? {
            Some(v) => Ok(Ints(vec![v])),
            None => Ok(Ints(integers(&object)?)),
        }
    }
}

/// A sequence of integers; a single integer is none.
pub struct Sequence(pub Vec<isize>);

impl FromPyObject<'_, '_> for Sequence {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(Sequence(integers(&object)?))
    }
}

/// The integer that an object is (through `__index__`), if it is one.
pub fn integer(object: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    // SAFETY: looks at a live object's type only.
    if unsafe { ffi::PyIndex_Check(object.as_ptr()) } == 0 {
        return Ok(None);
    }
    match object.extract::<isize>() {
        Ok(v) => Ok(Some(v)),
        // Arrays have `__index__` whether or not they are a single integer.
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(object.py()) => Ok(None),
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyOverflowError>(object.py()) => {
            let text = format!("{} is too large for a size, an axis or a position.", shown(object));
            Err(pyo3::exceptions::PyOverflowError::new_err(text))
        }
        Err(e) => Err(e),
    }
}

/// The integers of a sequence.
pub fn integers(object: &Bound<'_, PyAny>) -> PyResult<Vec<isize>> {
    let wrong = || -> PyErr {
        type_(format!("expected an int or a sequence of ints, got {}", type_name(object))).into()
    };
    if object.is_instance_of::<pyo3::types::PyString>()
        || object.is_instance_of::<pyo3::types::PyBytes>()
        || object.is_instance_of::<pyo3::types::PyDict>()
    {
        return Err(wrong());
    }
    let items = object.try_iter().map_err(|_| wrong())?;
    items.map(|item| integer(&item?)?.ok_or_else(wrong)).collect()
}

impl Ints {
    /// As sizes of dimensions of a new array.
    pub fn shape(&self, op: &str) -> Res<Vec<usize>> {
        let most = i32::MAX as isize;
        if self.0.iter().any(|n| *n > most)
            && self.0.iter().try_fold(16isize, |a, n| a.checked_mul(*n)).is_none()
        {
            let text = format!("[{op}] The shape {:?} is too large. Use smaller sizes.", self.0);
            return Err(pyo3::exceptions::PyOverflowError::new_err(text).into());
        }
        self.sizes().ok_or_else(|| {
            let shape = &self.0;
            value(format!(
                "[{op}] Negative dimensions not allowed: {shape:?}. Use sizes of 0 or more."
            ))
        })
    }

    /// As sizes, if none is negative.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        self.0.iter().map(|n| usize::try_from(*n).ok()).collect()
    }
}

/// The axes of a reduction: `None` is all.
pub fn axes(axis: &Option<Ints>) -> Option<&[isize]> {
    axis.as_ref().map(|a| &a.0[..])
}
