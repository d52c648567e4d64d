//! Any tensor's header: judged as the model judges it, walked, handed on, deleted once.
#![no_main]

#[path = "../../tests/integration/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod support;

use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use support::{header::Header, trial};

/// The header that the fuzzer's bytes stand for; shown field by field when it fails.
#[derive(Debug)]
struct Input(Header);

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        // After the last byte there are zeros.
        Ok(Input(Header::decode(&mut || bytes.arbitrary().unwrap_or(0))))
    }
}

fuzz_target!(|input: Input| {
    trial::run(&input.0);
});
