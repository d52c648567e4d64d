//! Several communicators, and threads, at once.

use crate::launch::BOTH;
use crate::values::run;
use std::time::Duration;
use ultramarine_mpi::{Communicator, Dtype, Kind};
use ultramarine_test_support::Rng;

#[test]
fn groups_in_threads_at_once() {
    for mpi in BOTH {
        for ranks in [2, 4] {
            if let Some(job) = mpi.run(ranks, "groups", &[]) {
                job.assert_right(ranks);
            }
        }
    }
}

fn gather(group: &Communicator, n: u32) -> Vec<u32> {
    let bytes =
        run(group, Kind::AllGather, Dtype::Uint32, &n.to_le_bytes(), 4 * group.size()).unwrap();
    bytes.chunks_exact(4).map(|n| u32::from_le_bytes(n.try_into().unwrap())).collect()
}

pub fn program() {
    let world = ultramarine_mpi::world().unwrap();
    let again = ultramarine_mpi::world().unwrap();
    let (rank, size) = (world.rank(), world.size());
    assert_eq!((again.rank(), again.size()), (rank, size));

    // All in one group, in reverse.
    let reverse = world.split(0, -(rank as i32)).unwrap();
    assert_eq!((reverse.rank(), reverse.size()), (size - 1 - rank, size));
    let ranks: Vec<u32> = (0..size as u32).rev().collect();
    assert_eq!(gather(&reverse, rank as u32), ranks);

    // By parity, in the order of ranks where keys are equal; and a group of one each.
    let parity = world.split((rank % 2) as i32, 7).unwrap();
    let mates: Vec<u32> = (0..size as u32).filter(|r| r % 2 == rank as u32 % 2).collect();
    assert_eq!(gather(&parity, rank as u32), mates);
    let alone = reverse.split(rank as i32, 0).unwrap();
    assert_eq!((alone.rank(), alone.size()), (0, 1));
    assert_eq!(gather(&alone, 5), [5]);

    // Threads with a group each, in an order of their own on each rank.
    let groups = [&world, &reverse, &parity];
    std::thread::scope(|scope| {
        for (i, group) in groups.into_iter().enumerate() {
            scope.spawn(move || {
                let mut random = Rng::new((10 * rank + i) as u64 + 1);
                for round in 0..60u64 {
                    let term = (1000 * i as u64 + round).to_le_bytes();
                    let sum = run(group, Kind::AllSum, Dtype::Uint64, &term, 8).unwrap();
                    let wanted = (1000 * i as u64 + round) * group.size() as u64;
                    assert_eq!(sum, wanted.to_le_bytes());
                    if random.below(4) == 0 {
                        std::thread::sleep(Duration::from_micros(random.below(2000) as u64));
                    }
                }
            });
        }
    });
}

/// Ranks that wait leave their cores to others.
#[test]
fn waiting_sleeps() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "idle", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn idle() {
    let world = ultramarine_mpi::world().unwrap();
    let before = sleeps();
    if world.rank() == 0 {
        std::thread::sleep(Duration::from_secs(2));
    }
    run(&world, Kind::AllSum, Dtype::Float32, &[0; 40], 40).unwrap();
    let slept = sleeps() - before;
    // Some thousands where it sleeps between its tests, a few where it does not.
    assert!(world.rank() == 0 || slept > 100, "MPI's thread slept {slept} times");
}

/// How often the thread that talks to MPI has left its core to wait, with the threads that MPI has started from it, which have
/// its name and hardly ever wake.
fn sleeps() -> u64 {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        // One of MPI's own may end meanwhile.
        let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
        let Ok(status) = std::fs::read_to_string(task.join("status")) else { continue };
        if name.trim() == "ultramarine-mpi" {
            let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            sum += line.unwrap().trim().parse::<u64>().unwrap();
        }
    }
    sum
}
