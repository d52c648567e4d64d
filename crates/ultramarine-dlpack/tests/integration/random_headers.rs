//! Tensors of any header are judged as the model judges them, and deleted once. The fuzz target
//! does the same with headers that it finds by itself.

use crate::support::{header::Header, trial};
use std::collections::BTreeMap;
use ultramarine_test_support::Rng;

#[test]
fn every_header_is_validated_as_by_the_model() {
    let count = if cfg!(miri) { 300 } else { 100_000 };
    let (mut rng, mut came) = (Rng::new(20), BTreeMap::new());
    for _ in 0..count {
        let mut bytes = Vec::new();
        let header = Header::decode(&mut || {
            if bytes.is_empty() {
                bytes.extend(rng.bits().to_le_bytes());
            }
            bytes.pop().unwrap_or(0)
        });
        *came.entry(trial::run(&header)).or_insert(0) += 1;
    }
    // Valid ones and each of the eleven reasons to refuse one, none of them rare.
    if !cfg!(miri) {
        assert_eq!(came.len(), 12, "{came:?}");
        assert!(came.values().all(|n| *n > count / 1000), "{came:?}");
        assert!(came[&None] > count / 4, "{came:?}");
    }
}
