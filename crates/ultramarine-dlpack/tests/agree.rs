//! Tensors of any header are judged as the model judges them, and deleted once. The fuzz target
//! does the same with headers that it finds by itself.

mod support;

use support::{Numbers, header::Header, trial};

#[test]
fn every_header_is_judged_as_the_model_judges_it() {
    let count = if cfg!(miri) { 300 } else { 100_000 };
    let (mut numbers, mut valid) = (Numbers(20), 0);
    for _ in 0..count {
        let mut bytes = Vec::new();
        let header = Header::decode(&mut || {
            if bytes.is_empty() {
                bytes.extend(numbers.next().to_le_bytes());
            }
            bytes.pop().unwrap_or(0)
        });
        valid += usize::from(trial::run(&header));
    }
    // Neither side is rare.
    assert!(valid > count / 4 && valid < count * 3 / 4, "{valid} of {count}");
}
