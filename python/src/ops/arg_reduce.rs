//! Indices of the smallest and largest elements.

use super::reduce::{reduction_method, reductions};
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

reductions! {
    register, isize, Clone::clone,
    "     axis (int | None): Axis to reduce; by default the array is flattened.", [];
    /// Finds the index of the smallest element, the first of equal ones, as uint32.
    ///
    /// NaN counts as the smallest. A reduction of no elements raises a ValueError.
    argmin "[[3, 1, 2], [4, 4, 5]]" => "[1, 0], dtype=uint32";
    /// Finds the index of the largest element, the first of equal ones, as uint32.
    ///
    /// NaN counts as the largest. A reduction of no elements raises a ValueError.
    argmax "[[3, 1, 2], [4, 4, 5]]" => "[0, 2], dtype=uint32";
}
