//! A map of traces by key that keeps the most recently used ones.

use super::trace_key::TraceKey;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Limit on the traces. It is needed because a constant that differs at each call causes a trace at
/// each call.
pub(super) const MOST_TRACES: usize = 256;

/// The most recently used values by key, at most [`MOST_TRACES`].
pub(super) struct Recent<T> {
    /// The values, each with the time of its last use.
    all: HashMap<TraceKey, (T, u64), BuildHasherDefault<crate::backend::WordHasher>>,
    now: u64,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent { all: HashMap::default(), now: 0 }
    }
}

impl<T: Clone> Recent<T> {
    /// Returns the value of a key, and marks it as used.
    pub fn get(&mut self, key: &TraceKey) -> Option<T> {
        let (value, used) = self.all.get_mut(key)?;
        self.now += 1;
        *used = self.now;
        Some(value.clone())
    }

    /// Inserts a value. Returns the value that it replaces, which may run foreign code when it is
    /// dropped: the key's former value, or the least recently used value.
    #[must_use]
    pub fn insert(&mut self, key: TraceKey, value: T) -> Option<T> {
        self.now += 1;
        let former = self.all.insert(key, (value, self.now));
        if former.is_some() || self.all.len() <= MOST_TRACES {
            return former.map(|(value, _)| value);
        }
        let oldest = self.all.iter().min_by_key(|(_, (_, used))| *used);
        let key = oldest.map(|(key, _)| key.clone())?;
        self.all.remove(&key).map(|(value, _)| value)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|(value, _)| value)
    }
}
