//! Operators. A row of the table makes the operator, its reflection and its in-place
//! form.
//!
//! The other operand may be a number or whatever offers memory, on either side: it is copied at
//! the call, and the result is an array. (See the docstring of the class.) A foreign operand on the
//! right takes the array's dtype, as in MLX. One on the left is MLX's array of it, and both are
//! promoted: there the result is the foreign library's in MLX, with all of its values.

use super::PyArray;
use crate::convert::{Number, exact, promoting_operand, try_operand};
use crate::error::{Fail, Res, type_, type_name, value};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use ultramarine::{Array, Dtype, Result};

type Function = fn(&Array, &Array) -> Result<Array>;

/// Where the other operand stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Right,
    Left,
    /// Of a comparison, whose sides Python exchanges without saying so.
    Either,
}

impl Side {
    /// The array of an operand on this side of one of dtype `beside`.
    fn operand(self, other: &Bound<'_, PyAny>, beside: Dtype) -> Res<Option<Array>> {
        match self {
            Side::Right => try_operand(other, Some(beside)),
            Side::Left | Side::Either => promoting_operand(other, beside),
        }
    }
}

/// The object of a result.
type Made<'py> = Res<Bound<'py, PyArray>>;

/// As PyO3 would make it, in less time.
fn made<'py>(slf: &Bound<'py, PyArray>, array: Res<Array>) -> Made<'py> {
    Ok(PyArray::object(slf.py(), array?)?)
}

/// `f(slf, other)`, or `f(other, slf)` if the other one stands on the left.
#[inline]
fn apply(
    slf: &Bound<'_, PyArray>,
    other: &Bound<'_, PyAny>,
    what: &str,
    side: Side,
    f: Function,
) -> Res<Array> {
    let py = slf.py();
    let reflected = side == Side::Left;
    if let Some(b) = exact(other) {
        // SAFETY: building a node runs no Python code and rebinds no array.
        let (a, b) = unsafe { (slf.get().borrow(py), b.get().borrow(py)) };
        return Ok(if reflected { f(b, a)? } else { f(a, b)? });
    }
    let a = slf.get().get(py);
    if let Some(n) = Number::of(other)? {
        // A constant of the array's shape at once: no broadcast to build.
        let b = a.constant_beside(n.beside(a.dtype())?);
        return Ok(if reflected { f(&b, &a)? } else { f(&a, &b)? });
    }
    let Some(b) = side.operand(other, a.dtype())? else {
        return Err(if other.is_none() {
            type_(format!("Cannot perform {what} on an array and None. Pass an array or a number."))
        } else {
            value(format!("Cannot perform {what} on an array and {}", type_name(other)))
        });
    };
    Ok(if reflected { f(&b, &a)? } else { f(&a, &b)? })
}

/// A function of integers and bools, with MLX's error for others.
macro_rules! bits {
    ($name:ident, $what:literal) => {
        |a, b| {
            if a.dtype().is_inexact() || b.dtype().is_inexact() {
                let text = concat!("Floating point types not allowed with ", $what, ".");
                return Err(ultramarine::Error::Value(text.into()));
            }
            a.$name(b)
        }
    };
}

macro_rules! operators {
    ($($what:literal $op:ident $rop:ident $iop:ident = $f:expr;)*) => {
        #[pymethods]
        impl PyArray {
            $(
            fn $op<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
                made(slf, apply(slf, other, $what, Side::Right, $f))
            }

            fn $rop<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
                made(slf, apply(slf, other, $what, Side::Left, $f))
            }

            fn $iop(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Res<()> {
                let made = apply(slf, other, $what, Side::Right, $f)?;
                slf.get().set(slf.py(), made);
                Ok(())
            }
            )*
        }
    };
}
operators! {
    "addition" __add__ __radd__ __iadd__ = |a, b| a.add(b);
    "subtraction" __sub__ __rsub__ __isub__ = |a, b| a.subtract(b);
    "multiplication" __mul__ __rmul__ __imul__ = |a, b| a.multiply(b);
    "floor division" __floordiv__ __rfloordiv__ __ifloordiv__ = |a, b| a.floor_divide(b);
    "modulus" __mod__ __rmod__ __imod__ = |a, b| a.remainder(b);
    "bitwise and" __and__ __rand__ __iand__ = bits!(bitwise_and, "bitwise and");
    "bitwise or" __or__ __ror__ __ior__ = bits!(bitwise_or, "bitwise or");
    "bitwise xor" __xor__ __rxor__ __ixor__ = bits!(bitwise_xor, "bitwise xor");
    "left shift" __lshift__ __rlshift__ __ilshift__ = bits!(left_shift, "left shift");
    "right shift" __rshift__ __rrshift__ __irshift__ = bits!(right_shift, "right shift");
}

#[pymethods]
impl PyArray {
    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        made(slf, apply(slf, other, "division", Side::Right, |a, b| a.divide(b)))
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        made(slf, apply(slf, other, "division", Side::Left, |a, b| a.divide(b)))
    }

    /// Division, under its name in Python 2, as mlx has it.
    fn __div__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        PyArray::__truediv__(slf, other)
    }

    /// Reflected division, under its name in Python 2, as mlx has it.
    fn __rdiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        PyArray::__rtruediv__(slf, other)
    }

    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Res<()> {
        let dtype = slf.get().get(slf.py()).dtype();
        if !dtype.is_inexact() && !dtype.is_storage() {
            return Err(value(
                "In place division cannot cast to non-floating point type. Write a = a / b.",
            ));
        }
        let made = apply(slf, other, "division", Side::Right, |a, b| a.divide(b))?;
        slf.get().set(slf.py(), made);
        Ok(())
    }

    // NumPy's operators leave arrays of a higher priority to these; its functions do not.
    // (`__array_ufunc__ = None` would forbid the functions, too.)
    #[classattr]
    #[pyo3(name = "__array_priority__")]
    const PRIORITY: f64 = 1000.0;

    // The same for pandas, whose DataFrame has 4000.
    #[classattr]
    #[pyo3(name = "__pandas_priority__")]
    const PANDAS_PRIORITY: i32 = 5000;

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        made(slf, product(slf, other, Side::Right))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Made<'py> {
        made(slf, product(slf, other, Side::Left))
    }

    fn __imatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Res<()> {
        let made = product(slf, other, Side::Right)?;
        slf.get().set(slf.py(), made);
        Ok(())
    }

    fn __divmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Res<(PyArray, PyArray)> {
        divmod(slf, other, Side::Right)
    }

    fn __rdivmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Res<(PyArray, PyArray)> {
        divmod(slf, other, Side::Left)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> Res<PyArray> {
        no_modulo(modulo)?;
        Ok(PyArray::new(apply(slf, other, "power", Side::Right, |a, b| a.power(b))?))
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> Res<PyArray> {
        no_modulo(modulo)?;
        Ok(PyArray::new(apply(slf, other, "power", Side::Left, |a, b| a.power(b))?))
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> Res<()> {
        no_modulo(modulo)?;
        let made = apply(slf, other, "power", Side::Right, |a, b| a.power(b))?;
        slf.get().set(slf.py(), made);
        Ok(())
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> Res<Bound<'py, PyAny>> {
        let py = slf.py();
        let f: Function = match op {
            CompareOp::Lt => |a, b| a.less(b),
            CompareOp::Le => |a, b| a.less_equal(b),
            CompareOp::Eq => |a, b| a.equal(b),
            CompareOp::Ne => |a, b| a.not_equal(b),
            CompareOp::Gt => |a, b| a.greater(b),
            CompareOp::Ge => |a, b| a.greater_equal(b),
        };
        if matches!(op, CompareOp::Eq | CompareOp::Ne) && exact(other).is_none() {
            let a = slf.get().get(py);
            let b = match Side::Either.operand(other, a.dtype()) {
                Err(fail) if Number::of(other)?.is_none() => unequal(py, fail).map(|()| None)?,
                b => b?,
            };
            // Something that no array can be equal to is Python's to compare.
            return match b {
                Some(b) => Ok(PyArray::object(py, f(&a, &b)?)?.into_any()),
                None => Ok(py.NotImplemented().into_bound(py)),
            };
        }
        Ok(made(slf, apply(slf, other, "comparison", Side::Either, f))?.into_any())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        // By identity, as objects do: equality is elementwise.
        slf.as_ptr() as isize >> 4
    }
}

/// Passes failures on, but for those of an object that cannot be an array and so is unequal.
fn unequal(py: Python<'_>, fail: Fail) -> PyResult<()> {
    let error = PyErr::from(fail);
    let refused = error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyBufferError>(py)
        || error.is_instance_of::<PyTypeError>(py);
    if refused { Ok(()) } else { Err(error) }
}

/// The matrix product. Numbers have no part in it.
fn product(slf: &Bound<'_, PyArray>, other: &Bound<'_, PyAny>, side: Side) -> Res<Array> {
    let a = slf.get().get(slf.py());
    let b = match Number::of(other)? {
        None => side.operand(other, a.dtype())?,
        Some(_) => None,
    };
    let Some(b) = b else {
        let name = type_name(other);
        return Err(type_(format!("unsupported operand type for @: an array and {name}")));
    };
    Ok(if side == Side::Left { b.matmul(&a)? } else { a.matmul(&b)? })
}

fn divmod(
    slf: &Bound<'_, PyArray>,
    other: &Bound<'_, PyAny>,
    side: Side,
) -> Res<(PyArray, PyArray)> {
    let py = slf.py();
    // Foreign operands are copied once.
    let dtype = slf.get().get(py).dtype();
    let held = match side.operand(other, dtype)? {
        Some(array) if exact(other).is_none() => Bound::new(py, PyArray::new(array))?.into_any(),
        _ => other.clone(),
    };
    let part = |f| apply(slf, &held, "division", side, f).map(PyArray::new);
    Ok((part(|a, b| a.floor_divide(b))?, part(|a, b| a.remainder(b))?))
}

fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> Res<()> {
    match modulo {
        None => Ok(()),
        Some(_) => {
            Err(type_("pow with a third argument is not supported for arrays. Use pow(x, y) % z."))
        }
    }
}
