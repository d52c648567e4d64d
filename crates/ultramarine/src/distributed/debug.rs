//! Debug mode: before each operation in which all processes of a group take part, the processes
//! compare their next operations.

use super::group::Group;
use super::transport::{Failure, HostEngine, HostWork, Kind};
use crate::dtype::Dtype;
use crate::error::Error;
use crate::shape::Show;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a description that are exchanged: two bytes for the length, then the text.
const BYTES: usize = 256;

/// 0: the environment has not been read yet, 1: off, 2: on.
static MODE: AtomicU8 = AtomicU8::new(0);

/// Returns true if processes compare their operations: the environment variable
/// `ULTRAMARINE_DISTRIBUTED_DEBUG` is set to a value other than `0`. It must be the same in all
/// processes.
pub(super) fn is_on() -> bool {
    match MODE.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var_os("ULTRAMARINE_DISTRIBUTED_DEBUG");
            let on = on.is_some_and(|v| !v.is_empty() && v != "0");
            MODE.store(1 + on as u8, Ordering::Relaxed);
            on
        }
        mode => mode == 2,
    }
}

fn encoded(text: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // Truncate long texts. Differences after the first bytes are not detected.
    let length = text.len().min(BYTES - 2);
    bytes[..2].copy_from_slice(&(length as u16).to_le_bytes());
    bytes[2..2 + length].copy_from_slice(&text.as_bytes()[..length]);
    bytes
}

fn decoded(bytes: &[u8]) -> String {
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]])).min(BYTES - 2);
    String::from_utf8_lossy(&bytes[2..2 + length]).into_owned()
}

/// Compares the next operation of this process with those of the other processes.
///
/// # Errors
/// [`Error::Runtime`] in all processes. It names the ranks that differ.
pub(super) fn compare(
    engine: &dyn HostEngine,
    group: &Group,
    sequence: u64,
    (kind, dtype, shape): (Kind, Dtype, &[usize]),
) -> Result<(), Failure> {
    let own = format!("{}({dtype}, {}) as operation {sequence}", kind.name(), Show(shape));
    let description = format!("the comparison (debug mode) before {own}");
    let input = Box::new(encoded(&own));
    let mut output = vec![0u8; BYTES * group.size()];
    let work = HostWork {
        kind: Kind::AllGather,
        dtype: Dtype::Uint8,
        input: input.as_ptr(),
        output: output.as_mut_ptr(),
        count: BYTES,
        description: &description,
    };
    // SAFETY: the input has BYTES elements, and the output BYTES for each process. Both outlive the
    // call, and are kept after a failure that says that the library keeps the memory.
    if let Err(failure) = unsafe { engine.run(&work) } {
        if failure.keeps_memory {
            std::mem::forget((input, output));
        }
        return Err(failure);
    }
    let all: Vec<String> = output.chunks_exact(BYTES).map(decoded).collect();
    differences(&all).map_or(Ok(()), |text| Err(Error::runtime(kind.name(), text).into()))
}

/// Returns the text of the error, if the processes' operations differ.
fn differences(all: &[String]) -> Option<String> {
    let most = all.iter().max_by_key(|text| {
        // If several texts are equally frequent, take that of the lowest rank.
        let first = all.iter().position(|other| other == *text);
        (all.iter().filter(|other| other == text).count(), std::cmp::Reverse(first))
    })?;
    let others: Vec<String> = all
        .iter()
        .enumerate()
        .filter(|(_, text)| *text != most)
        .map(|(rank, text)| format!("rank {rank} runs {text}"))
        .collect();
    if others.is_empty() {
        return None;
    }
    let rank = all.iter().position(|text| text == most)?;
    Some(format!(
        "processes of a group run different operations: {}, and rank {rank} runs {most}. Call the same operations in all \
         processes, in the same order, with equal shapes and dtypes.",
        others.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_exchanged_up_to_their_limit() {
        assert_eq!(decoded(&encoded("all_sum")), "all_sum");
        assert_eq!(decoded(&encoded("")), "");
        assert_eq!(decoded(&encoded(&"x".repeat(300))).len(), BYTES - 2);
    }

    #[test]
    fn the_rank_that_differs_is_named() {
        let all = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        assert_eq!(differences(&all(&["a", "a"])), None);
        let text = differences(&all(&["a", "b", "a"])).unwrap_or_default();
        assert!(text.contains("rank 1 runs b, and rank 0 runs a."), "{text}");
        let text = differences(&all(&["a", "b"])).unwrap_or_default();
        assert!(text.contains("rank 1 runs b, and rank 0 runs a."), "{text}");
        let text = differences(&all(&["a", "b", "b"])).unwrap_or_default();
        assert!(text.contains("rank 0 runs a, and rank 1 runs b."), "{text}");
    }
}
