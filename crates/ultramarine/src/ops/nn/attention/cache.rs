//! Runs attention to the first keys of a cache as attention to the whole cache with lengths.
//!
//! A language model writes the keys of a token into a cache, and attends to a slice of the cache that is longer at each
//! step. An operation on the cache itself has the same sizes at each step, and the length is a constant. Such
//! evaluations repeat, so a backend that records commands replays the whole step as one recording.

use crate::array::Array;
use crate::backend::DeviceState;
use crate::devices;
use crate::dtype::Dtype;
use crate::graph::tracing::Tracing;
use crate::ops::create::alike::alike;
use crate::ops::rules::shapeless::shapeless;
use crate::ops::shape::view::View;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Largest number of queries that counts as a step.
const MOST_QUERIES: usize = 16;

/// The whole caches of keys and values, and the number of valid keys of each batch.
pub(super) struct Cached {
    pub keys: Array,
    pub values: Array,
    pub lengths: Array,
}

/// The caches whose first elements the given keys and values are.
pub(super) fn cached(q: &Array, keys: &Array, values: &Array) -> Option<Cached> {
    let ([batch, _, queries, _], length) = (super::four(q), keys.shape()[2]);
    if queries > MOST_QUERIES || queries > length || !repeats(keys) {
        return None;
    }
    let (whole_keys, whole_values) = (whole(keys)?, whole(values)?);
    if whole_keys.shape()[2] != whole_values.shape()[2] {
        return None;
    }
    let number = Scalar::from_i64(Dtype::Int32, i64::try_from(length).ok()?);
    let lengths = alike(Shape::from_slice(&[batch]), number);
    Some(Cached { keys: whole_keys, values: whole_values, lengths })
}

/// Returns true for arrays on a device that records commands, outside of traces. (Traces have graphs of their own.)
pub(crate) fn repeats(a: &Array) -> bool {
    let records = |device: &'static DeviceState| device.records();
    !Tracing::active()
        && !shapeless()
        && devices::get(a.node().place.stream.device).is_ok_and(records)
}

/// The array of which `part` is a lazy slice from the front, along axis 2 of 4.
fn whole(part: &Array) -> Option<Array> {
    let node = part.node();
    let Some(View::Slice { start, step }) = node.op.get::<View>() else { return None };
    if node.is_done() || start.iter().any(|s| *s != 0) || step.iter().any(|s| *s != 1) {
        return None;
    }
    let source = node.with_inputs(|inputs| inputs.first().cloned())?;
    let (of, from) = (part.shape(), &source.shape);
    let same = (0..4).all(|axis| axis == 2 || of[axis] == from[axis]);
    (same && i32::try_from(from[2]).is_ok()).then(|| Array::from_node(source))
}
