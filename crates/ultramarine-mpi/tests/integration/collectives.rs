//! Every collective over every dtype, beside reductions of one number after the other.

use crate::launch::{BOTH, Mpi};
use crate::values::{Number, encode, input, is_nan, numbers, reduce, run, same};
use ultramarine_mpi::{Communicator, Dtype, Kind};

const KINDS: [Kind; 5] =
    [Kind::AllSum, Kind::AllMax, Kind::AllMin, Kind::AllGather, Kind::SumScatter];

fn check(mpi: Mpi, ranks: usize, variables: &[(&str, &str)]) {
    if let Some(job) = mpi.run(ranks, "collectives", variables) {
        job.assert_right(ranks);
    }
}

#[test]
fn two_ranks() {
    BOTH.iter().for_each(|mpi| check(*mpi, 2, &[]));
}

#[test]
fn three_ranks() {
    BOTH.iter().for_each(|mpi| check(*mpi, 3, &[]));
}

#[test]
fn four_ranks() {
    BOTH.iter().for_each(|mpi| check(*mpi, 4, &[]));
}

/// Counts beyond MPI's `int`, in small.
#[test]
fn requests_in_pieces() {
    BOTH.iter().for_each(|mpi| check(*mpi, 3, &[("ULTRAMARINE_MPI_PIECE", "400")]));
}

/// On each rank.
pub fn program() {
    let world = ultramarine_mpi::world().unwrap();
    let mut seed = 0;
    let mut results = Vec::new();
    for dtype in Dtype::ALL {
        for kind in KINDS {
            for count in [0, 5, 600] {
                seed += 1;
                // Parts of a sum for each rank.
                let count = if kind == Kind::SumScatter { count * world.size() } else { count };
                one(&mut results, &world, kind, dtype, count, seed);
            }
        }
    }
    // Large enough for the algorithms of large messages, and for several pieces of widened halves.
    for (kind, dtype, count) in [
        (Kind::AllSum, Dtype::Float32, 300_000),
        (Kind::AllSum, Dtype::Bfloat16, 200_000),
        (Kind::AllMax, Dtype::Uint64, 100_000),
        (Kind::SumScatter, Dtype::Int8, 120_000),
        (Kind::AllGather, Dtype::Complex64, 50_000),
    ] {
        if std::env::var_os("ULTRAMARINE_MPI_PIECE").is_none() {
            one(&mut results, &world, kind, dtype, count, 99);
        }
    }
    agree(&world, &results);
}

fn one(
    results: &mut Vec<(String, Dtype, Vec<u8>)>,
    group: &Communicator,
    kind: Kind,
    dtype: Dtype,
    count: usize,
    seed: u64,
) {
    let (rank, size) = (group.rank(), group.size());
    let inputs: Vec<Vec<u8>> = (0..size).map(|rank| input(dtype, count, rank, seed)).collect();
    let output = match kind {
        Kind::AllGather => count * size,
        Kind::SumScatter => count / size,
        _ => count,
    };
    let got = run(group, kind, dtype, &inputs[rank], output * dtype.size()).unwrap();
    let what = format!("{} of {dtype}, {count} elements on {size} ranks", kind.name());
    if kind == Kind::AllGather {
        assert!(got == inputs.concat(), "{what}");
        return;
    }
    let each: Vec<Vec<Number>> = inputs.iter().map(|bytes| numbers(dtype, bytes)).collect();
    let start = if kind == Kind::SumScatter { rank * output } else { 0 };
    for (i, got) in numbers(dtype, &got).into_iter().enumerate() {
        let operands: Vec<Number> = each.iter().map(|numbers| numbers[start + i]).collect();
        let reduced = operands.iter().copied().reduce(|a, b| reduce(dtype, kind, a, b)).unwrap();
        let wanted = numbers(dtype, &encode(dtype, reduced))[0];
        assert!(
            same(got, wanted),
            "{what}: element {i} of {operands:?} is {got:?}, not {wanted:?}"
        );
    }
    if kind != Kind::SumScatter {
        results.push((what, dtype, got));
    }
}

/// Ranks have the same results, also zeros of the same sign; not NaN of the same sign.
fn agree(group: &Communicator, results: &[(String, Dtype, Vec<u8>)]) {
    let mine: Vec<u8> = results.iter().flat_map(|(_, _, got)| got.clone()).collect();
    let all = run(group, Kind::AllGather, Dtype::Uint8, &mine, group.size() * mine.len()).unwrap();
    for theirs in all.chunks(mine.len()) {
        let mut rest = theirs;
        for (what, dtype, got) in results {
            let (first, others) = rest.split_at(got.len());
            rest = others;
            let pairs = first.chunks(dtype.size()).zip(got.chunks(dtype.size()));
            for (a, b) in pairs.filter(|(a, b)| a != b) {
                let (x, y) = (numbers(*dtype, a)[0], numbers(*dtype, b)[0]);
                assert!(is_nan(x) && is_nan(y), "{what}: ranks have {x:?} and {y:?}");
            }
        }
    }
}
