//! Collectives of ranks, and the results that they have to give: every dtype that the device computes with, from one element to many.

use super::rank::{Group, Side};
use crate::dtype::{DType, Num};
use crate::record::{Outcome, PASSED, Result, skip};
use crate::run::Buffers;
use std::time::{Duration, Instant};
use ultramarine_abi::interface::collective::{CollectiveCommand, kind};

/// The cases, in the order in which all ranks run them.
pub const NAMES: [&str; 8] = [
    "sums",
    "sums in place",
    "largest and smallest",
    "gathers",
    "scattered sums",
    "messages",
    "parts",
    "a missing rank",
];

/// Elements of one rank's part.
const COUNTS: [usize; 4] = [1, 7, 1000, 70_001];

/// Bytes before and after each tensor. They must not change.
const GUARD: usize = 256;

pub fn run(side: &Side<'_>, group: Group, name: &str) -> Result {
    match name {
        "sums" => each(side, |dtype, n| reduced(side, group, (kind::SUM, dtype, n), false)),
        "sums in place" => each(side, |dtype, n| reduced(side, group, (kind::SUM, dtype, n), true)),
        "largest and smallest" => each(side, |dtype, n| {
            reduced(side, group, (kind::MAX, dtype, n), false)?;
            reduced(side, group, (kind::MIN, dtype, n), false)
        }),
        "gathers" => each(side, |dtype, n| gathered(side, group, dtype, n)),
        "scattered sums" => each(side, |dtype, n| scattered(side, group, dtype, n)),
        "messages" if group.size < 2 => skip("there is one device"),
        "messages" => each(side, |dtype, n| messages(side, group, dtype, n)),
        "parts" if group.size < 2 => skip("there is one device"),
        "parts" => parts(side, group),
        _ if group.size < 2 => skip("there is one device"),
        _ => missing(side, group),
    }
}

/// Runs a case for the dtypes that the device computes with. All ranks have devices of the same kind.
fn each(side: &Side<'_>, case: impl Fn(DType, usize) -> Result<(), String>) -> Result {
    for dtype in DType::all().filter(|d| d.in_mask(side.device.info.dtypes_arithmetic)) {
        for n in COUNTS {
            case(dtype, n).map_err(|why| format!("{n} of {}: {why}", dtype.name()))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Element `i` of a rank: small, so that sums are exact in every dtype; in places NaN, where that is asked for.
fn element(dtype: DType, rank: u32, i: usize, nan: bool) -> Num {
    let value = (i as i128 * 7 + i128::from(rank) * 5) % 11;
    let signed = value - 4;
    let is_nan = nan && i % 13 == 5 && rank == (i / 13) as u32 % 2;
    match dtype.name() {
        "bool" => Num::Int(i128::from((i + rank as usize).is_multiple_of(3))),
        "complex64" if is_nan => Num::Complex(f64::NAN, 1.0),
        // Equal real parts, too.
        "complex64" => Num::Complex((signed / 3) as f64, ((signed * 5) % 7) as f64),
        _ if dtype.is_float() && is_nan => Num::Real(f64::NAN),
        _ if dtype.is_float() => Num::Real(signed as f64 / 2.0),
        name if name.starts_with('u') => Num::Int(value * 11),
        _ => Num::Int(signed * 3),
    }
}

fn elements(dtype: DType, rank: u32, n: usize, nan: bool) -> Vec<Num> {
    (0..n).map(|i| element(dtype, rank, i, nan)).collect()
}

fn sum(dtype: DType, a: Num, b: Num) -> Num {
    match (a, b) {
        (Num::Complex(x, y), Num::Complex(u, v)) => Num::Complex(x + u, y + v),
        (Num::Real(x), Num::Real(y)) => Num::Real(x + y),
        _ if dtype.name() == "bool" => Num::Int(i128::from(a.truth() || b.truth())),
        _ => Num::Int(dtype.wrap(a.int() + b.int())),
    }
}

/// The larger, or the smaller; NaN if one is.
fn chosen(a: Num, b: Num, largest: bool) -> Num {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() { a } else { b };
    }
    let less = match (a, b) {
        (Num::Complex(x, y), Num::Complex(u, v)) => x < u || x == u && y < v,
        (Num::Int(x), Num::Int(y)) => x < y,
        _ => a.real() < b.real(),
    };
    if less == largest { b } else { a }
}

fn bytes_of(dtype: DType, values: &[Num]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| dtype.write(*value, &mut bytes));
    bytes
}

/// Compares elements; numbers are exact.
fn compare(dtype: DType, bytes: &[u8], wanted: &[Num]) -> Result<(), String> {
    for (i, (found, wanted)) in bytes.chunks_exact(dtype.size()).zip(wanted).enumerate() {
        let found = dtype.read(found);
        let same = found == dtype.value(*wanted) || found.is_nan() && wanted.is_nan();
        ensure!(same, "element {i} is {found} instead of {wanted}");
    }
    Ok(())
}

/// Runs one collective on a tensor of this rank's; the output's bytes.
fn one(
    side: &Side<'_>,
    group: Group,
    (kind, dtype, peer): (u32, DType, u32),
    given: &[Num],
    (n_output, in_place): (usize, bool),
) -> Result<Vec<u8>, String> {
    let mut buffers = Buffers::new(side.device);
    let input = bytes_of(dtype, given);
    let size = n_output * dtype.size();
    let guarded = |inside: &[u8], bytes: usize| {
        let mut all = vec![0xa5; bytes + 2 * GUARD];
        all[GUARD..GUARD + inside.len()].copy_from_slice(inside);
        all
    };
    let from = buffers.alloc((input.len() + 2 * GUARD) as u64)?;
    side.device.write(side.stream, from, 0, &guarded(&input, input.len()))?;
    let to = match in_place {
        true => from,
        false => {
            let to = buffers.alloc((size + 2 * GUARD) as u64)?;
            side.device.write(side.stream, to, 0, &guarded(&[], size))?;
            to
        }
    };
    let none = std::ptr::null_mut();
    let (sends, receives) = (kind == kind::SEND, kind == kind::RECEIVE);
    let command = CollectiveCommand {
        size: size_of::<CollectiveCommand>() as u32,
        kind,
        dtype: dtype.dl(),
        peer,
        count: if receives { n_output } else { given.len() } as u64,
        input: if receives { none } else { from.handle.0 },
        input_offset: if receives { 0 } else { GUARD as u64 },
        output: if sends { none } else { to.handle.0 },
        output_offset: if sends { 0 } else { GUARD as u64 },
    };
    side.run(group, &[command])?;
    let all = side.read(to)?;
    let (inside, before) = (GUARD..GUARD + size, &all[..GUARD]);
    ensure!(
        before.iter().chain(&all[inside.end..]).all(|b| *b == 0xa5),
        "bytes beside the output were written to"
    );
    if !in_place && !receives {
        let kept = side.read(from)?;
        ensure!(kept[GUARD..GUARD + input.len()] == input, "the input was written to");
    }
    Ok(all[inside].to_vec())
}

fn reduced(
    side: &Side<'_>,
    group: Group,
    (kind, dtype, n): (u32, DType, usize),
    in_place: bool,
) -> Result<(), String> {
    let nan = kind != kind::SUM;
    let own = elements(dtype, group.rank, n, nan);
    let made = one(side, group, (kind, dtype, 0), &own, (n, in_place))?;
    let wanted: Vec<Num> = (0..n)
        .map(|i| {
            let all = (0..group.size).map(|rank| element(dtype, rank, i, nan));
            let both = |a, b| match kind {
                kind::SUM => sum(dtype, a, b),
                _ => chosen(a, b, kind == kind::MAX),
            };
            all.reduce(both).unwrap_or(Num::Int(0))
        })
        .collect();
    compare(dtype, &made, &wanted)
}

fn gathered(side: &Side<'_>, group: Group, dtype: DType, n: usize) -> Result<(), String> {
    let own = elements(dtype, group.rank, n, false);
    let whole = n * group.size as usize;
    let made = one(side, group, (kind::GATHER, dtype, 0), &own, (whole, false))?;
    let wanted: Vec<Num> =
        (0..group.size).flat_map(|rank| elements(dtype, rank, n, false)).collect();
    compare(dtype, &made, &wanted)
}

fn scattered(side: &Side<'_>, group: Group, dtype: DType, n: usize) -> Result<(), String> {
    let whole = n * group.size as usize;
    let own = elements(dtype, group.rank, whole, false);
    let made = one(side, group, (kind::SUM_SCATTER, dtype, 0), &own, (n, false))?;
    let first = n * group.rank as usize;
    let wanted: Vec<Num> = (first..first + n)
        .map(|i| {
            let all = (0..group.size).map(|rank| element(dtype, rank, i, false));
            all.reduce(|a, b| sum(dtype, a, b)).unwrap_or(Num::Int(0))
        })
        .collect();
    compare(dtype, &made, &wanted)
}

/// Around a ring: the even ranks send first, then all in one list.
fn messages(side: &Side<'_>, group: Group, dtype: DType, n: usize) -> Result<(), String> {
    let (next, last) = ((group.rank + 1) % group.size, (group.rank + group.size - 1) % group.size);
    let own = elements(dtype, group.rank, n, false);
    let wanted = elements(dtype, last, n, false);
    // Send one after the other, so that some rank always receives. Rank 0 begins, and is the last
    // to receive.
    let send = || one(side, group, (kind::SEND, dtype, next), &own, (0, false)).map(drop);
    let receive = || one(side, group, (kind::RECEIVE, dtype, last), &[], (n, false));
    let made = if group.rank == 0 {
        send()?;
        receive()?
    } else {
        let made = receive()?;
        send()?;
        made
    };
    compare(dtype, &made, &wanted)?;
    // Send and receive in one list.
    let mut buffers = Buffers::new(side.device);
    let bytes = bytes_of(dtype, &own);
    let [from, to] = [0; 2].map(|_| buffers.alloc(bytes.len() as u64));
    let (from, to) = (from?, to?);
    side.device.write(side.stream, from, 0, &bytes)?;
    let none = std::ptr::null_mut();
    let sent = CollectiveCommand {
        size: size_of::<CollectiveCommand>() as u32,
        kind: kind::SEND,
        dtype: dtype.dl(),
        peer: next,
        count: n as u64,
        input: from.handle.0,
        input_offset: 0,
        output: none,
        output_offset: 0,
    };
    let received = CollectiveCommand {
        kind: kind::RECEIVE,
        peer: last,
        input: none,
        output: to.handle.0,
        ..sent
    };
    side.run(group, &[sent, received])?;
    compare(dtype, &side.read(to)?, &wanted)
}

/// Groups of the even and the odd ranks, in the reverse order, and the whole one after them.
fn parts(side: &Side<'_>, group: Group) -> Result {
    let Some(dtype) = DType::all().find(|d| d.name() == "float32") else { return PASSED };
    let part = side.split(group, group.rank % 2, -(group.rank as i32))?;
    let members: Vec<u32> = (0..group.size).rev().filter(|r| r % 2 == group.rank % 2).collect();
    let place = members.iter().position(|rank| *rank == group.rank).unwrap_or(0) as u32;
    ensure!(
        (part.rank, part.size) == (place, members.len() as u32),
        "a part says rank {} of {}, where this is rank {place} of {}",
        part.rank,
        part.size,
        members.len()
    );
    let own = elements(dtype, group.rank, 5, false);
    let whole = 5 * members.len();
    let made = one(side, part, (kind::GATHER, dtype, 0), &own, (whole, false))?;
    let wanted: Vec<Num> =
        members.iter().flat_map(|rank| elements(dtype, *rank, 5, false)).collect();
    compare(dtype, &made, &wanted)?;
    side.close(part)?;
    reduced(side, group, (kind::SUM, dtype, 9), false)?;
    PASSED
}

/// Only rank 0 calls a sum. After it has aborted the group, its stream continues, and the other
/// group is unaffected.
fn missing(side: &Side<'_>, group: Group) -> Result {
    let Some(dtype) = DType::all().find(|d| d.name() == "float32") else { return PASSED };
    let second = side.open("second", group.rank, group.size)?;
    // Run an operation first, because the library allocates resources at the first one.
    reduced(side, second, (kind::SUM, dtype, 3), false)?;
    if group.rank == 0 {
        let mut buffers = Buffers::new(side.device);
        let memory = buffers.alloc(64)?;
        let command = CollectiveCommand {
            size: size_of::<CollectiveCommand>() as u32,
            kind: kind::SUM,
            dtype: dtype.dl(),
            peer: 0,
            count: 16,
            input: memory.handle.0,
            input_offset: 0,
            output: memory.handle.0,
            output_offset: 0,
        };
        let start = Instant::now();
        side.run(second, &[command])?;
        let waited = start.elapsed();
        ensure!(waited < Duration::from_secs(5), "run waited {:.1} s", waited.as_secs_f64());
        std::thread::sleep(Duration::from_millis(200));
        let start = Instant::now();
        side.abort(second)?;
        side.device.synchronize(side.stream)?;
        let took = start.elapsed();
        ensure!(
            took < Duration::from_secs(20),
            "the stream went on {:.1} s late",
            took.as_secs_f64()
        );
    }
    reduced(side, group, (kind::SUM, dtype, 11), false)?;
    if group.rank != 0 {
        side.abort(second)?;
    }
    side.close(second)?;
    PASSED
}
