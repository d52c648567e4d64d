//! Indices of the smallest and largest elements.

use super::reduce::reductions;
use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

reductions! {
    register, isize, Clone::clone;
    /// The index of the smallest element, along an axis or in the flattened array.
    argmin;
    /// The index of the largest element, along an axis or in the flattened array.
    argmax;
}
