//! Seeds of random numbers.

use crate::error::type_;
use pyo3::prelude::*;

/// A seed: an integer of 64 bits.
pub struct Seed(pub u64);

impl FromPyObject<'_, '_> for Seed {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<u64>() {
            Ok(v) => Ok(Seed(v)),
            Err(_) => Err(type_("a seed must be an integer from 0 to 2**64 - 1").into()),
        }
    }
}
