//! Slots of the scratch memory for a program's values.

use super::program::{Run, Step};

/// Marks the position of a constant that only pairs read: a block after all slots. See `Program::place`.
pub const CONSTANT_PLACE: u32 = 1 << 31;

/// Allocates slots, and reuses those of dead values.
#[derive(Default)]
struct Slots {
    free: Vec<(u32, u8)>,
    width: u32,
}

impl Slots {
    fn take(&mut self, size: u8) -> u32 {
        if let Some(i) = self.free.iter().position(|(_, s)| *s == size) {
            return self.free.swap_remove(i).0;
        }
        let place = self.width;
        self.width += u32::from(size);
        place
    }
}

/// Places of the values' slots, their total in bytes per element, and the number of
/// blocks of constants.
///
/// Inputs have slots of their own, and so do constants unless only pairs read them. A result takes the slot of a dead
/// value of the same size. Slots of outputs live to the end. A result never takes the slot of an operand that dies at
/// the same step, because tile functions are slower in place.
pub fn allocate(
    sizes: &[u8],
    n_inputs: usize,
    first_result: usize,
    steps: &[Step],
    outputs: &[u16],
) -> (Vec<u32>, usize, usize) {
    let mut slots = Slots::default();
    let mut blocks = 0;
    let reads = |step: &Step, value: u16| step.operands.contains(&value);
    let mut places: Vec<u32> = Vec::with_capacity(sizes.len());
    for (v, size) in sizes[..first_result].iter().enumerate() {
        let pairs_only = v >= n_inputs
            && !outputs.contains(&(v as u16))
            && steps.iter().all(|s| !reads(s, v as u16) || matches!(s.run, Run::Pair(..)));
        if pairs_only {
            places.push(CONSTANT_PLACE | blocks);
            blocks += 1;
        } else {
            places.push(slots.take(*size));
        }
    }
    places.resize(sizes.len(), 0);
    for (at, step) in steps.iter().enumerate() {
        places[usize::from(step.result)] = slots.take(sizes[usize::from(step.result)]);
        // Results that no later step reads.
        let mut dead = step.operands.to_vec();
        dead.push(step.result);
        dead.sort_unstable();
        dead.dedup();
        dead.retain(|v| {
            usize::from(*v) >= first_result
                && !outputs.contains(v)
                && !steps[at + 1..].iter().any(|later| reads(later, *v))
        });
        for v in dead.into_iter().map(usize::from) {
            slots.free.push((places[v], sizes[v]));
        }
    }
    (places, slots.width as usize, blocks as usize)
}
