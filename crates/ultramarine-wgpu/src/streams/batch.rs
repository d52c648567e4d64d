//! Commands before they are encoded, with all objects that they use.

use super::timestamps::Stamp;
use crate::memory::{Block, Buffer};
use crate::program::Kernel;
use crate::shader::source::INLINE;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

/// A part of a buffer that a kernel is bound to.
pub struct Binding {
    /// The buffer; `None` for the batch's words.
    pub place: Option<Arc<Block>>,
    /// Offset in the buffer at which the binding begins.
    pub offset: u64,
    /// Its bytes. `None` for everything up to the buffer's end.
    pub bytes: Option<NonZero<u64>>,
}

/// An action of the device. Commands append actions to a [`Batch`].
pub enum Action {
    /// Runs a kernel.
    Dispatch {
        /// The kernel.
        kernel: Arc<Kernel>,
        /// Its bindings, after the binding of the words.
        bindings: Vec<Binding>,
        /// Its range in the batch's words, which are binding 0 if there are any.
        words: Option<Range<usize>>,
        /// Workgroups.
        groups: [u32; 3],
    },
    /// Copies bytes between buffers.
    Copy {
        /// The source, and the offset in it.
        from: (Arc<Block>, u64),
        /// The target, and the offset in it.
        to: (Arc<Block>, u64),
        /// Number of bytes.
        bytes: u64,
    },
    /// Records a timestamp.
    Timestamp(Arc<Stamp>),
}

/// Actions that are recorded together, in order, with the memory that they need.
#[derive(Default)]
pub struct Batch {
    /// The actions in order.
    pub actions: Vec<Action>,
    /// The words of all kernels in the batch.
    pub words: Vec<u32>,
    /// Names of the commands, for messages.
    pub names: Vec<Arc<str>>,
    /// Temporary buffers, which are freed when the commands are complete.
    pub temporaries: Vec<Buffer>,
}

impl Batch {
    /// Appends a copy of bytes.
    pub fn copy(&mut self, from: (Arc<Block>, u64), to: (Arc<Block>, u64), bytes: u64) {
        self.actions.push(Action::Copy { from, to, bytes });
    }

    /// Appends a timestamp.
    pub fn timestamp(&mut self, stamp: Arc<Stamp>) {
        self.actions.push(Action::Timestamp(stamp));
    }

    /// Appends a dispatch of an operation's kernel, with its own words: the first word, and further
    /// ones.
    pub fn dispatch(
        &mut self,
        kernel: &Arc<Kernel>,
        blocks: &[&Arc<Block>],
        (first, more): (u32, &[u32]),
        groups: [u32; 3],
    ) {
        let start = self.words.len();
        self.words.push(first);
        self.words.extend_from_slice(more);
        let words = Some(start..self.words.len());
        let whole =
            |block: &&Arc<Block>| Binding { place: Some((*block).clone()), offset: 0, bytes: None };
        let bindings = blocks.iter().map(whole).collect();
        self.actions.push(Action::Dispatch { kernel: kernel.clone(), bindings, words, groups });
    }

    /// Returns true if a kernel reads words from memory: it has more than its immediates hold, or
    /// binds them.
    pub fn words_in_memory(&self) -> bool {
        self.actions.iter().any(|action| match action {
            Action::Dispatch { bindings, words, .. } => {
                words.as_ref().is_some_and(|words| words.len() > INLINE)
                    || bindings.iter().any(|binding| binding.place.is_none())
            }
            Action::Copy { .. } | Action::Timestamp(_) => false,
        })
    }

    /// Removes everything that was appended after a mark of [`Batch::mark`].
    pub fn truncate(&mut self, (actions, words): (usize, usize)) {
        self.actions.truncate(actions);
        self.words.truncate(words);
    }

    /// Returns the current numbers of actions and of words.
    pub fn mark(&self) -> (usize, usize) {
        (self.actions.len(), self.words.len())
    }
}
