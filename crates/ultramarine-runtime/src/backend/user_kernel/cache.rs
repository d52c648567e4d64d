//! A map of bounded size. If it is full, it drops the least recently used entry.

use crate::backend::WordHasher;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

pub(super) struct Bounded<K, V> {
    map: HashMap<K, (V, u64), BuildHasherDefault<WordHasher>>,
    most: usize,
    clock: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Bounded<K, V> {
    /// Makes a map of at most `most` entries, and at least one.
    pub fn new(most: usize) -> Self {
        Bounded { map: HashMap::default(), most, clock: 0 }
    }

    /// Returns the value of `key`, if it is cached.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let (value, used) = self.map.get_mut(key)?;
        *used = self.clock;
        Some(value.clone())
    }

    /// Adds an entry. Returns the entry that had to be removed for it, so that the caller can drop
    /// it without the lock.
    #[must_use]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let oldest = match self.map.len() >= self.most && !self.map.contains_key(&key) {
            true => self.map.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone()),
            false => None,
        };
        let gone = oldest.and_then(|key| self.map.remove(&key));
        self.clock += 1;
        let before = self.map.insert(key, (value, self.clock));
        gone.or(before).map(|(value, _)| value)
    }

    /// Removes an entry if `which` returns true for its value.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, which: impl FnOnce(&V) -> bool)
    where
        K: Borrow<Q>,
    {
        if self.map.get(key).is_some_and(|(value, _)| which(value)) {
            self.map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bounded;

    #[test]
    fn the_longest_unused_goes_first() {
        let mut map = Bounded::new(2);
        assert_eq!(map.insert("a", 1), None);
        assert_eq!(map.insert("b", 2), None);
        assert_eq!(map.get("a"), Some(1));
        assert_eq!(map.insert("c", 3), Some(2));
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (Some(1), None, Some(3)));
        assert_eq!(map.insert("a", 4), Some(1), "replaced, nothing else went");
        map.remove("a", |v| *v == 1);
        assert_eq!(map.get("a"), Some(4));
        map.remove("a", |v| *v == 4);
        assert_eq!(map.get("a"), None);
    }
}
