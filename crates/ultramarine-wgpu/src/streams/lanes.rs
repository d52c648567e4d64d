//! The lists of streams that wait for events' values that are not recorded yet.

use super::{Batch, Event};
use std::collections::{HashMap, VecDeque};
use ultramarine_abi::helper::{Failure, Result};

/// Pending work of a stream.
pub(super) enum Item {
    Batch(Batch),
    Record(Event, u64),
    Wait(Event, u64),
}

/// A stream.
#[derive(Default)]
pub(super) struct Lane {
    /// Items after a wait that is not satisfied. Empty if the stream does not wait.
    pub pending: VecDeque<Item>,
    /// The last submission, after which the stream's later work runs.
    pub last: u64,
    /// The failure of a submission, until it is reported.
    pub failed: Option<Failure>,
}

/// All streams, by their numbers.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: HashMap<u64, Lane>,
    opened: u64,
}

impl Lanes {
    pub fn open(&mut self) -> u64 {
        self.opened += 1;
        self.lanes.insert(self.opened, Lane::default());
        self.opened
    }

    pub fn close(&mut self, lane: u64) {
        self.lanes.remove(&lane);
    }

    /// Returns the number of waiting items.
    pub fn pending(&self) -> u64 {
        self.lanes.values().map(|lane| lane.pending.len() as u64).sum()
    }

    pub fn get(&mut self, lane: u64) -> Result<&mut Lane> {
        self.lanes.get_mut(&lane).ok_or_else(|| Failure::invalid("the stream is gone"))
    }

    /// Adds an item: to the stream's list if the stream waits, otherwise by `run`.
    pub fn add(
        &mut self,
        lane: u64,
        item: Item,
        run: &mut dyn FnMut(Batch) -> Result<u64>,
    ) -> Result<()> {
        let lane = self.get(lane)?;
        if !lane.pending.is_empty() {
            lane.pending.push_back(item);
            return Ok(());
        }
        if let Some(kept) = lane.step(item, run)? {
            lane.pending.push_back(kept);
        }
        Ok(())
    }

    /// Submits all items that need not wait any more, by `run`.
    pub fn advance(&mut self, run: &mut dyn FnMut(Batch) -> Result<u64>) {
        // A record of one stream may release other streams.
        let mut moved = true;
        while moved {
            moved = false;
            for lane in self.lanes.values_mut() {
                while let Some(item) = lane.pending.pop_front() {
                    match lane.step(item, run) {
                        Ok(None) => moved = true,
                        Ok(Some(kept)) => {
                            lane.pending.push_front(kept);
                            break;
                        }
                        Err(failure) => {
                            lane.failed.get_or_insert(failure);
                            moved = true;
                        }
                    }
                }
            }
        }
    }
}

impl Lane {
    /// Processes an item, or returns a wait that is not satisfied.
    fn step(
        &mut self,
        item: Item,
        run: &mut dyn FnMut(Batch) -> Result<u64>,
    ) -> Result<Option<Item>> {
        match item {
            Item::Batch(batch) => self.last = self.last.max(run(batch)?),
            Item::Record(event, value) => event.mark(value, self.last),
            Item::Wait(event, value) => match event.submission(value) {
                Some(submission) => self.last = self.last.max(submission),
                None => return Ok(Some(Item::Wait(event, value))),
            },
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_behind_a_wait_stays_until_the_record() {
        let (mut lanes, mut count) = (Lanes::default(), 0);
        let mut run = |_: Batch| {
            count += 1;
            Ok(count)
        };
        let (first, second, event) = (lanes.open(), lanes.open(), Event::default());
        lanes.add(second, Item::Wait(event.clone(), 1), &mut run).unwrap();
        lanes.add(second, Item::Batch(Batch::default()), &mut run).unwrap();
        lanes.add(second, Item::Record(event.clone(), 2), &mut run).unwrap();
        lanes.add(first, Item::Wait(event.clone(), 2), &mut run).unwrap();
        lanes.advance(&mut run);
        assert_eq!(lanes.get(second).unwrap().pending.len(), 3);
        let third = lanes.open();
        lanes.add(third, Item::Batch(Batch::default()), &mut run).unwrap();
        lanes.add(third, Item::Record(event.clone(), 1), &mut run).unwrap();
        lanes.advance(&mut run);
        assert!(lanes.get(second).unwrap().pending.is_empty());
        assert!(lanes.get(first).unwrap().pending.is_empty());
        assert_eq!((lanes.get(second).unwrap().last, lanes.get(first).unwrap().last), (2, 2));
        assert_eq!(event.submission(2), Some(2));
    }
}
