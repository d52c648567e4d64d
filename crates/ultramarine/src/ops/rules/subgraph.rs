//! Operations that stand for a graph of other operations, such as a call of a compiled function. The evaluator runs
//! their executable, or their graph if there is no executable yet.

use crate::node::Node;
use crate::sync::lock;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};
use ultramarine_runtime::backend::executable::Executable;

/// Number of executables kept for each graph: those that ran last.
const MOST: usize = 16;

/// The rules of an operation that stands for a graph.
pub(crate) trait Subgraph {
    /// Makes new nodes for the graph, with these operands.
    fn build(&self, operands: &[Arc<Node>]) -> Built;

    /// The executables recorded for the graph.
    fn executables(&self) -> &Executables;
}

/// The nodes of a graph.
pub(crate) struct Built {
    /// Nodes of operations; each comes after its operands.
    pub nodes: Vec<Arc<Node>>,
    pub outputs: Vec<Arc<Node>>,
}

/// Layouts of the operands, and the operands that may be overwritten, encoded as numbers. An executable works for one
/// binding only.
pub(crate) type Binding = SmallVec<[u64; 32]>;

/// Executables by binding. `None` means that the graph cannot be recorded for this binding.
#[derive(Default)]
pub(crate) struct Executables(Mutex<Vec<(Binding, Option<Arc<Executable>>)>>);

impl Executables {
    /// The executable for a binding. The outer `None` means that the binding is unknown.
    pub fn get(&self, binding: &Binding) -> Option<Option<Arc<Executable>>> {
        let mut all = lock(&self.0);
        let found = all.iter().position(|(known, _)| known == binding)?;
        // Keep the order of use: the last entry was used most recently.
        if found + 1 < all.len() {
            all[found..].rotate_left(1);
        }
        all.last().map(|(_, executable)| executable.clone())
    }

    /// Keeps an executable, replacing the least recently used one.
    pub fn insert(&self, binding: Binding, executable: Option<Arc<Executable>>) {
        let mut all = lock(&self.0);
        let former = if all.len() < MOST { None } else { Some(all.remove(0)) };
        all.push((binding, executable));
        // Drop the executable's constants outside of the lock.
        drop(all);
        drop(former);
    }
}
