//! A test of claims under loom.

use super::Claim;
use crate::once::SetOnce;
use crate::sync::explore::explore;
use loom::thread;
use std::sync::Arc;

struct Node {
    claim: Claim,
    value: SetOnce<Box<u32>>,
}

fn node() -> Arc<Node> {
    Arc::new(Node { claim: Claim::new(), value: SetOnce::new() })
}

impl Node {
    /// The steps of a thread that needs the value.
    fn get(&self, computed: u32) -> u32 {
        loop {
            if let Some(value) = self.value.get() {
                return **value;
            }
            if self.claim.take() {
                self.claim.finish(&self.value, Box::new(computed));
            } else {
                assert!(self.claim.wait(&self.value, || false));
            }
        }
    }
}

/// All threads that need a value get the same one, which one of them computed.
#[test]
fn one_computes_and_all_see_it() {
    explore(3, || {
        let node = node();
        let others: Vec<_> = (1..3)
            .map(|i| {
                let node = node.clone();
                thread::spawn(move || node.get(i))
            })
            .collect();
        let own = node.get(0);
        for other in others {
            assert_eq!(other.join().unwrap(), own);
        }
        assert!(!node.claim.take());
    });
}

/// If a claim is given up, another thread can take it, and the waiting threads wake up.
#[test]
fn a_claim_that_is_given_up_wakes_who_waits() {
    explore(3, || {
        let node = node();
        assert!(node.claim.take());
        let others: Vec<_> = (1..3)
            .map(|i| {
                let node = node.clone();
                thread::spawn(move || node.get(i))
            })
            .collect();
        node.claim.release();
        let values: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        assert_eq!(values[0], values[1]);
    });
}
