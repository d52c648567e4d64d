//! Names of operations, which errors keep.

use crate::sync::lock;
use std::{collections::HashSet, sync::Mutex};

/// The name as one that lives for ever: errors keep names of operations. There are as many as there are operations.
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
