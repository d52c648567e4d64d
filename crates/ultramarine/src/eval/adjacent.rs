//! Moves products of the same few rows next to each other.
//!
//! A layer of a language model multiplies one token by several matrices, such as those of queries,
//! keys and values. Each product is far too small to fill a device, but a device may run adjacent
//! products as one.

use super::lower::Entry;
use crate::node::Node;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Products of more rows are left in place.
const MOST_ROWS: usize = 8;
/// Number of most recent leaders that are searched for the operand of a product.
const MOST_LEADERS: usize = 4;

/// The first product of an operand, and the entries to place after it.
struct Leader {
    operand: *const Node,
    place: usize,
    followers: Vec<usize>,
}

/// Moves products up to the first product of the same operand, if their other operands come before
/// that first product. All entries bear `mark`.
pub(super) fn order(entries: Vec<Entry>, mark: u64) -> Vec<Entry> {
    if entries.len() < 3 {
        return entries;
    }
    let mut leaders: Vec<Leader> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let Some(operand) = rows_of(entry) else { continue };
        let known = leaders.iter_mut().rev().take(MOST_LEADERS).find(|l| l.operand == operand);
        match known {
            Some(leader) if comes_before(entry, leader.place, mark) => {
                leader.followers.push(place);
            }
            Some(_) => {}
            None => leaders.push(Leader { operand, place, followers: Vec::new() }),
        }
    }
    leaders
        .retain(|leader| leader.followers.iter().zip(1..).any(|(f, by)| *f != leader.place + by));
    if leaders.is_empty() {
        return entries;
    }
    let mut places: Vec<usize> = Vec::with_capacity(entries.len());
    let mut moved = vec![false; entries.len()];
    leaders.iter().flat_map(|leader| &leader.followers).for_each(|f| moved[*f] = true);
    let mut leaders = leaders.iter().peekable();
    for place in (0..entries.len()).filter(|place| !moved[*place]) {
        places.push(place);
        let leader = leaders.next_if(|leader| leader.place == place);
        places.extend(leader.iter().flat_map(|leader| &leader.followers));
    }
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let ordered: Vec<Entry> =
        places.into_iter().filter_map(|place| entries[place].take()).collect();
    for (slot, entry) in (0..).zip(&ordered) {
        entry.node.slot.store(slot, Ordering::Relaxed);
    }
    ordered
}

/// The first operand of a product of few rows.
fn rows_of(entry: &Entry) -> Option<*const Node> {
    let work = entry.work();
    let product = work.op.rules().is_some_and(|rules| rules.is_product());
    let rows = || work.shape.iter().rev().skip(1).product::<usize>();
    if !product || rows() > MOST_ROWS {
        return None;
    }
    work.with_inputs(|inputs| inputs.first().map(Arc::as_ptr))
}

/// Returns true if all operands but the first are available at this place of the tape.
fn comes_before(entry: &Entry, place: usize, mark: u64) -> bool {
    let is_there = |input: &Arc<Node>| {
        input.mark.load(Ordering::Relaxed) != mark
            || (input.slot.load(Ordering::Relaxed) as usize) < place
    };
    entry.work().with_inputs(|inputs| inputs.iter().skip(1).all(is_there))
}
