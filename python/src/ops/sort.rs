//! Sorting and its relatives.

use crate::array::PyArray;
use crate::convert::ArrayArg;
use crate::error::Res;
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;

macro_rules! sorts {
    (
        plain { $($(#[doc = $doc:literal])* $name:ident;)* }
        counted { $($(#[doc = $cdoc:literal])* $counted:ident($k:ident);)* }
    ) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, axis=-1, *, stream=None))]
        fn $name(a: ArrayArg, axis: Option<isize>, stream: Option<StreamArg>) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$name(axis))?))
        }
        )*
        $(
        $(#[doc = $cdoc])*
        #[pyfunction]
        #[pyo3(signature = (a, /, $k, axis=-1, *, stream=None))]
        fn $counted(
            a: ArrayArg,
            $k: isize,
            axis: Option<isize>,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            Ok(PyArray::new(on(stream, || a.0.$counted($k, axis))?))
        }
        )*

        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::functions!(m: $($name)* $($counted)*);
            Ok(())
        }
    };
}

sorts! {
    plain {
        /// The elements in ascending order along an axis (`None`: flattened), NaN last.
        sort;
        /// The indices that sort the array along an axis (`None`: flattened).
        argsort;
    }
    counted {
        /// The array rearranged along an axis so that element `kth` is where sorting would
        /// put it, smaller ones before it, larger ones behind it.
        partition(kth);
        /// The indices of `partition`.
        argpartition(kth);
        /// The `k` largest elements along an axis, in no particular order.
        topk(k);
    }
}
