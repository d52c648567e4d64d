//! Names of operations, for errors.

use crate::sync::lock;
use std::{collections::HashSet, sync::Mutex};

/// Returns the name with an unlimited lifetime, because errors keep names of operations. The memory
/// is bounded by the number of operations.
pub(crate) fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = lock(&NAMES);
    let names = names.get_or_insert_default();
    match names.get(name) {
        Some(known) => known,
        None => {
            let name: &'static str = Box::leak(name.into());
            names.insert(name);
            name
        }
    }
}
