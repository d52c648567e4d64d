//! Copies of device arrays in host memory. A copy lives as long as the array's node, because
//! foreign code points to it.

use crate::backend::value::Value;
use crate::graph::node::Node;
use crate::sync::lock;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock, Mutex};

/// By the address of the node. A node removes its copy when it is dropped.
static COPIES: LazyLock<Mutex<HashMap<usize, Arc<Value>>>> = LazyLock::new(Mutex::default);

impl Node {
    /// Returns the node's copy: an existing one, or else `value`.
    pub fn host_copy(self: &Arc<Node>, value: Value) -> Arc<Value> {
        let unused;
        let mut copies = lock(&COPIES);
        let found = match copies.entry(Arc::as_ptr(self).addr()) {
            Entry::Occupied(entry) => {
                unused = Some(value);
                entry.get().clone()
            }
            Entry::Vacant(entry) => {
                unused = None;
                self.note_host_copy();
                entry.insert(Arc::new(value)).clone()
            }
        };
        drop(copies);
        // Drop without the lock, because the value may be foreign memory.
        drop(unused);
        found
    }
}

/// Drops the copy of a node that is being dropped.
#[cold]
pub(super) fn forget(node: &Node) {
    let copy = lock(&COPIES).remove(&std::ptr::from_ref(node).addr());
    drop(copy);
}
