//! Operations that stand for a graph of others, such as a call of a compiled function: the evaluator runs their
//! executable, or their graph where they have none yet.

use crate::node::Node;
use crate::sync::lock;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};
use ultramarine_runtime::backend::executable::Executable;

/// Executables of one graph that are kept: those that ran last.
const MOST: usize = 16;

/// The rules of an operation that stands for a graph.
pub(crate) trait Subgraph {
    /// New nodes for the graph, among these operands.
    fn build(&self, operands: &[Arc<Node>]) -> Built;

    /// The executables that were recorded of the graph.
    fn executables(&self) -> &Executables;
}

/// The nodes of a graph.
pub(crate) struct Built {
    /// Those that operations make, operands before what uses them.
    pub nodes: Vec<Arc<Node>>,
    pub outputs: Vec<Arc<Node>>,
}

/// Layouts of operands and which of them may be taken over, in words: what an executable is bound to.
pub(crate) type Binding = SmallVec<[u64; 32]>;

/// Executables by binding. `None`: what runs there cannot be recorded.
#[derive(Default)]
pub(crate) struct Executables(Mutex<Vec<(Binding, Option<Arc<Executable>>)>>);

impl Executables {
    /// The executable of a binding; the outer `None` says that it is not known.
    pub fn get(&self, binding: &Binding) -> Option<Option<Arc<Executable>>> {
        let mut all = lock(&self.0);
        let found = all.iter().position(|(known, _)| known == binding)?;
        // The last one is the one that was used last.
        if found + 1 < all.len() {
            all[found..].rotate_left(1);
        }
        all.last().map(|(_, executable)| executable.clone())
    }

    /// Keeps an executable in place of the one that was used least recently.
    pub fn insert(&self, binding: Binding, executable: Option<Arc<Executable>>) {
        let mut all = lock(&self.0);
        let former = if all.len() < MOST { None } else { Some(all.remove(0)) };
        all.push((binding, executable));
        // Its constants are let go without the lock.
        drop(all);
        drop(former);
    }
}
