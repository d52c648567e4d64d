//! The cache key of a trace, as 64-bit words. The Python part of the key covers the structure and
//! constants of the arguments. It is made in `python/src/compile/key.rs`, and passed as the
//! caller's key.

use crate::{array::Array, device::DeviceType, graph::determinism, graph::precision, stream};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// The key of a trace: the scope's stream, the precision of products, determinism, the caller's
/// key, and the dtype and shape (or only the rank) of each argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraceKey(SmallVec<[u64; 24]>);

impl Hash for TraceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|word| state.write_u64(*word));
    }
}

impl TraceKey {
    /// Makes the key of a call. It begins with the caller's key, which must contain the number of
    /// arguments, so that different calls have different keys.
    pub fn new(caller_key: &[u64], inputs: &[Array], shapeless: bool) -> TraceKey {
        let mut key = SmallVec::new();
        let (stream, scoped) = stream::current();
        let place = (stream.index as u64) << 2 | (scoped as u64) << 1 | shapeless as u64;
        key.push(precision::key() << 48 | place);
        key.push(determinism::key());
        key.extend_from_slice(caller_key);
        for input in inputs {
            key.push((input.ndim() as u64) << 16 | input.dtype() as u64);
            if !shapeless {
                key.extend(input.shape().iter().map(|n| *n as u64));
            }
        }
        TraceKey(key)
    }

    /// Makes the key of a variant of a trace: shapes and homes.
    pub fn of_variant(inputs: &[Array]) -> TraceKey {
        let mut key = TraceKey::new(&[], inputs, false);
        key.0.extend(inputs.iter().map(|input| {
            input.node().home().map_or(0, |d| {
                debug_assert!(d.kind == DeviceType::Gpu);
                1 + d.index as u64
            })
        }));
        key
    }
}
