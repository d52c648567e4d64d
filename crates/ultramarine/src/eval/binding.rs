//! Bindings: the properties of operands, other than shapes and dtypes, that an executable's
//! commands depend on.

use crate::backend::{WordHasher, buffer::Buffer};
use crate::node::{Node, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Up to this many buffers, a linear search costs less than a map.
const FEW: usize = 16;

/// An evaluated operand.
pub(super) struct Bound<'a> {
    pub node: &'a Arc<Node>,
    pub value: &'a Value,
    /// References to the node that the evaluation itself holds. If 0, the memory must not be
    /// overwritten.
    pub references: usize,
}

impl Bound<'_> {
    /// Returns true if only the evaluation can reach the node.
    #[inline]
    fn is_ours(&self) -> bool {
        Arc::strong_count(self.node) == self.references
            && self.node.handles.load(Ordering::Acquire) == 0
            && !self.node.is_traced()
    }
}

/// A buffer, and the operands that lie in it.
struct Shared {
    buffer: *const Buffer,
    operands: usize,
    ours: bool,
}

/// Appends the layouts, the sizes of the buffers, which operands share a buffer, and which memory
/// may be overwritten. Each node occurs once. Returns, for each operand, the number of operands in
/// its buffer, or 0 if the buffer must not be overwritten.
pub(super) fn describe<'a>(
    operands: impl Iterator<Item = Bound<'a>> + Clone,
    mut push: impl FnMut(u64),
) -> SmallVec<[u32; 8]> {
    let mut buffers: SmallVec<[Shared; FEW]> = SmallVec::new();
    let mut numbers: HashMap<*const Buffer, usize, BuildHasherDefault<WordHasher>> =
        HashMap::default();
    let mut number_of: SmallVec<[u32; FEW]> = SmallVec::new();
    for operand in operands.clone() {
        let buffer: *const Buffer = &*operand.value.buffer;
        let known = match buffers.len() <= FEW {
            true => buffers.iter().position(|b| b.buffer == buffer),
            false => {
                if numbers.is_empty() {
                    numbers.extend(buffers.iter().enumerate().map(|(i, b)| (b.buffer, i)));
                }
                numbers.get(&buffer).copied()
            }
        };
        let number = known.unwrap_or_else(|| {
            buffers.push(Shared { buffer, operands: 0, ours: true });
            if !numbers.is_empty() {
                numbers.insert(buffer, buffers.len() - 1);
            }
            buffers.len() - 1
        });
        buffers[number].operands += 1;
        buffers[number].ours &= operand.is_ours();
        number_of.push(number as u32);
    }
    let mut taken = SmallVec::new();
    for (operand, number) in operands.zip(number_of) {
        let value = operand.value;
        let shared = &buffers[number as usize];
        // True if every holder of the memory is one of these operands.
        let ours = shared.ours && value.buffer.is_unshared(shared.operands);
        push((number as u64) << 32 | (ours as u64) << 1 | value.buffer.is_escaped() as u64);
        push(value.offset as u64);
        push(value.buffer.bytes() as u64);
        value.strides.iter().for_each(|s| push(*s as u64));
        taken.push(if ours { shared.operands as u32 } else { 0 });
    }
    taken
}

/// Returns true if an operand's memory may still be overwritten. `operands` is the number of
/// operands in its buffer.
pub(super) fn is_still_ours(operand: &Bound<'_>, operands: u32) -> bool {
    operand.is_ours() && operand.value.buffer.is_unshared(operands as usize)
}
