//! `Dtype`, its categories, `finfo`, `iinfo` and the functions over dtypes.

use crate::array::PyArray;
use crate::error::{Res, type_, value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use std::ops::Deref;
use ultramarine::{Category, Dtype};

/// Type of an array's elements, such as `float32`.
///
/// Example:
///     >>> mx.array([1.5]).dtype
///     ultramarine.float32
///     >>> mx.float32.size
///     4
#[pyclass(name = "Dtype", module = "ultramarine", frozen)]
pub struct PyDtype(pub Dtype);

/// One object for each dtype, so that `is` works.
static OBJECTS: PyOnceLock<Vec<Py<PyDtype>>> = PyOnceLock::new();

/// The Python object of a dtype.
pub fn object(py: Python<'_>, dtype: Dtype) -> PyResult<Py<PyDtype>> {
    let all = OBJECTS.get_or_try_init(py, || {
        let all = Dtype::ALL.into_iter().chain(Dtype::STORAGE);
        all.map(|d| Py::new(py, PyDtype(d))).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(all[dtype as usize].clone_ref(py))
}

/// The attribute of the module that holds a dtype: its name, or `bool_`.
fn attribute(dtype: Dtype) -> &'static str {
    if dtype == Dtype::Bool { "bool_" } else { dtype.name() }
}

#[pymethods]
impl PyDtype {
    /// int: Bytes of an element; 1 for packed dtypes, whose elements are smaller.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn __repr__(&self) -> String {
        format!("ultramarine.{}", self.0.name())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyDtype>().is_ok_and(|d| d.get().0 == self.0)
    }

    fn __ne__(&self, other: &Bound<'_, PyAny>) -> bool {
        !self.__eq__(other)
    }

    fn __hash__(&self) -> isize {
        self.0 as isize
    }

    fn __reduce__(&self) -> &'static str {
        attribute(self.0)
    }
}

/// An argument that is a dtype.
pub struct DtypeArg(pub Dtype);

impl Deref for DtypeArg {
    type Target = Dtype;
    fn deref(&self) -> &Dtype {
        &self.0
    }
}

impl FromPyObject<'_, '_> for DtypeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.cast::<PyDtype>() {
            Ok(d) => Ok(DtypeArg(d.get().0)),
            Err(_) => Err(type_(format!(
                "expected a Dtype, got {}",
                crate::error::type_name(&object.to_owned())
            ))
            .into()),
        }
    }
}

macro_rules! categories {
    ($($name:ident $variant:ident;)*) => {
        /// A group of dtypes; see `issubdtype`.
        ///
        /// Example:
        ///     >>> mx.issubdtype(mx.int8, mx.signedinteger)
        ///     True
        #[pyclass(name = "DtypeCategory", module = "ultramarine", frozen, eq, hash)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types)]
        pub enum PyCategory { $($name),* }

        impl PyCategory {
            const ALL: &[(&'static str, PyCategory)] =
                &[$((stringify!($name), PyCategory::$name)),*];

            fn get(self) -> Category {
                match self { $(PyCategory::$name => Category::$variant),* }
            }
        }
    };
}

categories! {
    complexfloating ComplexFloating;
    floating Floating;
    inexact Inexact;
    signedinteger SignedInteger;
    unsignedinteger UnsignedInteger;
    integer Integer;
    number Number;
    generic Generic;
}

#[pymethods]
impl PyCategory {
    /// str: Name of the member.
    #[getter]
    fn name(&self) -> &'static str {
        Self::ALL[*self as usize].0
    }

    /// int: Number of the member.
    #[getter]
    fn value(&self) -> usize {
        *self as usize
    }

    fn __reduce__(&self) -> &'static str {
        self.name()
    }
}

/// Limits of a floating-point or complex dtype.
///
/// Args:
///     arg (Dtype): The dtype.
///
/// Raises:
///     ValueError: If the dtype is neither of floats nor complex.
///
/// Example:
///     >>> mx.finfo(mx.float16).max
///     65504.0
///     >>> mx.finfo(mx.float32).bits
///     32
#[pyclass(name = "finfo", module = "ultramarine", frozen)]
pub struct FInfo(ultramarine::FloatInfo);

#[pymethods]
impl FInfo {
    #[new]
    #[pyo3(signature = (arg, /))]
    fn new(arg: DtypeArg) -> Res<FInfo> {
        match ultramarine::finfo(*arg) {
            Some(info) => Ok(FInfo(info)),
            None => Err(value(format!(
                "[finfo] dtype {} is not inexact. Use iinfo for integers.",
                *arg
            ))),
        }
    }

    /// int: Bits of a number; of a part, for complex numbers.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits
    }

    /// float: Lowest finite number.
    #[getter]
    fn min(&self) -> f64 {
        self.0.min
    }

    /// float: Largest finite number.
    #[getter]
    fn max(&self) -> f64 {
        self.0.max
    }

    /// float: Distance from 1 to the next larger number.
    #[getter]
    fn eps(&self) -> f64 {
        self.0.eps
    }

    /// float: Smallest positive number of full precision.
    #[getter]
    fn smallest_normal(&self) -> f64 {
        self.0.smallest_normal
    }

    /// Dtype: Dtype of the limits: float32 for complex64.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDtype>> {
        object(py, self.real())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let show = |v: f64| -> PyResult<String> {
            v.into_pyobject(py)?.call_method1("__format__", (".6g",))?.extract()
        };
        let (min, max) = (show(self.0.min)?, show(self.0.max)?);
        Ok(format!("finfo(min={min}, max={max}, dtype={})", self.real()))
    }
}

impl FInfo {
    fn real(&self) -> Dtype {
        if self.0.dtype.is_complex() { Dtype::Float32 } else { self.0.dtype }
    }
}

/// Limits of an integer dtype.
///
/// Args:
///     arg (Dtype): The dtype.
///
/// Raises:
///     ValueError: If the dtype is not of integers.
///
/// Example:
///     >>> mx.iinfo(mx.int8).min, mx.iinfo(mx.int8).max
///     (-128, 127)
#[pyclass(name = "iinfo", module = "ultramarine", frozen)]
pub struct IInfo(ultramarine::IntInfo);

#[pymethods]
impl IInfo {
    #[new]
    #[pyo3(signature = (arg, /))]
    fn new(arg: DtypeArg) -> Res<IInfo> {
        match ultramarine::iinfo(*arg) {
            Some(info) if arg.is_integer() => Ok(IInfo(info)),
            _ => Err(value(format!(
                "[iinfo] Only integer types supported but {} was provided. Use finfo for floating-point types.",
                *arg
            ))),
        }
    }

    /// int: Bits of a number.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits
    }

    /// int: Lowest number.
    #[getter]
    fn min(&self) -> i128 {
        self.0.min
    }

    /// int: Largest number.
    #[getter]
    fn max(&self) -> i128 {
        self.0.max
    }

    /// Dtype: The dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDtype>> {
        object(py, self.0.dtype)
    }

    fn __repr__(&self) -> String {
        format!("iinfo(min={}, max={}, dtype={})", self.0.min, self.0.max, self.0.dtype)
    }
}

/// Tests whether a dtype or category lies within another.
///
/// Args:
///     arg1 (Dtype | DtypeCategory): Dtype or category that may lie within.
///     arg2 (Dtype | DtypeCategory): Dtype, which holds only itself, or category.
///
/// Returns:
///     bool: True if `arg1` lies within `arg2`.
///
/// Raises:
///     TypeError: If an argument is None.
///     ValueError: If an argument is neither a dtype nor a category.
///
/// Example:
///     >>> mx.issubdtype(mx.int32, mx.integer)
///     True
#[pyfunction]
fn issubdtype(arg1: &Bound<'_, PyAny>, arg2: &Bound<'_, PyAny>) -> Res<bool> {
    if arg1.is_none() || arg2.is_none() {
        return Err(type_("issubdtype: expected a Dtype or a DtypeCategory, got None"));
    }
    let invalid = |which| {
        value(format!(
            "[issubdtype] Received invalid type for {which} input. Pass a Dtype or a DtypeCategory."
        ))
    };
    if let Ok(b) = arg2.cast::<PyDtype>() {
        return match arg1.cast::<PyDtype>() {
            Ok(a) => Ok(a.get().0 == b.get().0),
            Err(_) if arg1.is_instance_of::<PyCategory>() => Ok(false),
            Err(_) => Err(invalid("first")),
        };
    }
    let first = arg1.cast::<PyDtype>();
    let category = arg1.cast::<PyCategory>();
    if first.is_err() && category.is_err() {
        return Err(invalid("first"));
    }
    let b = arg2.cast::<PyCategory>().map_err(|_| invalid("second"))?.get().get();
    Ok(match (first, category) {
        (Ok(a), _) => a.get().0.is_subtype(b),
        (_, Ok(a)) => a.get().get().is_subcategory(b),
        _ => false,
    })
}

/// Tests whether a dtype is of a kind.
///
/// Args:
///     dtype (Dtype): Dtype to test.
///     kind (Dtype | str | tuple[Dtype | str, ...]): Another dtype; "bool", "signed integer",
///         "unsigned integer", "integral", "real floating", "complex floating" or "numeric"; or
///         a tuple of these.
///
/// Returns:
///     bool: True if the dtype is of that kind, or of one of them.
///
/// Raises:
///     ValueError: If the kind is unknown.
///
/// Example:
///     >>> mx.isdtype(mx.int32, ("integral", mx.bool_))
///     True
#[pyfunction]
fn isdtype(dtype: DtypeArg, kind: &Bound<'_, PyAny>) -> Res<bool> {
    if let Ok(other) = kind.cast::<PyDtype>() {
        return Ok(other.get().0 == *dtype);
    }
    if let Ok(kinds) = kind.cast::<PyTuple>() {
        for kind in kinds.iter() {
            if isdtype(DtypeArg(*dtype), &kind)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let Ok(name) = kind.cast::<PyString>() else {
        return Err(value(
            "[isdtype] kind must be a Dtype, a str or a tuple of these. Pass for example 'integral'.",
        ));
    };
    let category = match name.to_str()? {
        "bool" => return Ok(*dtype == Dtype::Bool),
        "signed integer" => Category::SignedInteger,
        "unsigned integer" => Category::UnsignedInteger,
        "integral" => Category::Integer,
        "real floating" => Category::Floating,
        "complex floating" => Category::ComplexFloating,
        "numeric" => Category::Number,
        other => {
            return Err(value(format!(
                "[isdtype] Unknown data type kind: '{other}'. Use 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating' or 'numeric'."
            )));
        }
    };
    Ok(dtype.is_subtype(category))
}

/// The dtype of an array or a dtype.
fn dtype_of(object: &Bound<'_, PyAny>) -> Option<Dtype> {
    if let Ok(d) = object.cast::<PyDtype>() {
        return Some(d.get().0);
    }
    object.cast::<PyArray>().ok().map(|a| a.get().get(object.py()).dtype())
}

/// Computes the dtype that arrays and dtypes promote to together.
///
/// Args:
///     *arrays_and_dtypes (array | Dtype): Arrays and dtypes, one at least.
///
/// Returns:
///     Dtype: The promoted dtype.
///
/// Raises:
///     ValueError: If there are no arguments, or one is neither an array nor a dtype.
///
/// Example:
///     >>> mx.result_type(mx.int32, mx.float16)
///     ultramarine.float16
#[pyfunction]
#[pyo3(signature = (*arrays_and_dtypes))]
fn result_type(arrays_and_dtypes: &Bound<'_, PyTuple>, py: Python<'_>) -> Res<Py<PyDtype>> {
    let mut all = None;
    for item in arrays_and_dtypes.iter() {
        let dtype = dtype_of(&item).ok_or_else(|| {
            value("[result_type] Inputs must be arrays or dtypes. Convert numbers with mx.array.")
        })?;
        all = Some(all.map_or(dtype, |a: Dtype| a.promote(dtype)));
    }
    let all = all
        .ok_or_else(|| value("[result_type] At least one array or dtype is required. Pass one."))?;
    Ok(object(py, all)?)
}

/// Tests whether promotion converts a dtype to another: whether both promote to `to`.
///
/// Args:
///     from_ (array | Dtype): Array or dtype to convert.
///     to (Dtype): Dtype to convert to.
///
/// Returns:
///     bool: True if both promote to `to`.
///
/// Example:
///     >>> mx.can_cast(mx.float32, mx.int32)
///     False
#[pyfunction]
fn can_cast(from_: &Bound<'_, PyAny>, to: DtypeArg) -> Res<bool> {
    let from = dtype_of(from_).ok_or_else(|| type_("can_cast: expected an array or a Dtype"))?;
    Ok(from.promote(*to) == *to)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add_class::<PyDtype>()?;
    m.add_class::<PyCategory>()?;
    m.add_class::<FInfo>()?;
    m.add_class::<IInfo>()?;
    for dtype in Dtype::ALL.into_iter().chain(Dtype::STORAGE) {
        m.add(attribute(dtype), object(py, dtype)?)?;
    }
    let class = py.get_type::<PyCategory>();
    for (name, _) in PyCategory::ALL {
        m.add(*name, class.getattr(*name)?)?;
    }
    crate::functions!(m: issubdtype isdtype result_type can_cast);
    Ok(())
}

/// The name of an unknown dtype in a pickle or file.
pub fn by_name(name: &str) -> PyResult<Dtype> {
    Dtype::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("There is no dtype {name:?}. Use a name such as 'float32'."))
    })
}
