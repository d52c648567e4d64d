//! Messages between two ranks.

use crate::launch::BOTH;
use crate::values::{input, run};
use std::time::Duration;
use ultramarine_mpi::{Communicator, Dtype, Error, Kind, Request};

#[test]
fn rings_of_ranks_that_all_send_first() {
    for mpi in BOTH {
        for (ranks, piece) in [(2, "1073741824"), (4, "1073741824"), (3, "5000")] {
            if let Some(job) = mpi.run(ranks, "ring", &[("ULTRAMARINE_MPI_PIECE", piece)]) {
                job.assert_right(ranks);
            }
        }
    }
}

pub fn ring() {
    let world = ultramarine_mpi::world().unwrap();
    let (rank, size) = (world.rank(), world.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
        // The last are larger than what MPI takes before the receiver is there.
        for count in [0, 1, 1000, if i % 5 == 0 { 100_000 } else { 33 }] {
            let message = input(dtype, count, rank, i as u64);
            run(&world, Kind::Send { to: right }, dtype, &message, 0).unwrap();
            let got = run(&world, Kind::Receive { from: left }, dtype, &[], message.len()).unwrap();
            assert!(got == input(dtype, count, left, i as u64), "{count} of {dtype}");
        }
    }
    // Messages of a pair keep their order, and one to the rank itself arrives.
    let to = |rank| Kind::Send { to: rank };
    for n in 0..20u8 {
        run(&world, to(right), Dtype::Uint8, &[n; 9], 0).unwrap();
    }
    run(&world, to(rank), Dtype::Int8, &[7; 3], 0).unwrap();
    for n in 0..20u8 {
        let got = run(&world, Kind::Receive { from: left }, Dtype::Uint8, &[], 9).unwrap();
        assert_eq!(got, [n; 9]);
    }
    let got = run(&world, Kind::Receive { from: rank }, Dtype::Int8, &[], 3).unwrap();
    assert_eq!(got, [7; 3]);
}

#[test]
fn wrong_arguments_and_lengths_are_errors() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "errors", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn errors() {
    let world = ultramarine_mpi::world().unwrap();
    let argument = |group: &Communicator, kind, count: usize, dtype: Dtype| {
        let (input, output) = (std::ptr::dangling(), std::ptr::dangling_mut());
        let request = Request { kind, dtype, input, output, count, description: "wrong" };
        // SAFETY: it is refused before memory is read.
        let error = unsafe { group.run(&request) }.unwrap_err();
        assert!(matches!(error, Error::Argument(_)) && !error.keeps_memory());
        error.to_string()
    };
    let text = argument(&world, Kind::Send { to: 2 }, 1, Dtype::Int8);
    assert!(text.contains("[send] there is no rank 2 in a group of 2"), "{text}");
    let text = argument(&world, Kind::Receive { from: 9 }, 1, Dtype::Int8);
    assert!(text.contains("[recv] there is no rank 9"), "{text}");
    let text = argument(&world, Kind::SumScatter, 5, Dtype::Int8);
    assert!(text.contains("5 elements cannot be divided among 2 ranks"), "{text}");
    let text = argument(&world, Kind::AllGather, usize::MAX / 8, Dtype::Float64);
    assert!(text.contains("exceed the address space"), "{text}");
    let text = world.split(-1, 0).unwrap_err().to_string();
    assert!(text.contains("the color is -1"), "{text}");
    // A message of another length than was expected: longer, shorter; the next ones are right.
    for (sent, expected) in [(12, 4), (4, 12), (0, 4)] {
        if world.rank() == 0 {
            let message = vec![1u8; sent];
            run(&world, Kind::Send { to: 1 }, Dtype::Uint8, &message, 0).unwrap();
        } else {
            let error =
                run(&world, Kind::Receive { from: 0 }, Dtype::Uint8, &[], expected).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Length { .. }), "{text}");
            assert!(text.contains(&format!("{expected} were expected")), "{text}");
        }
    }
    let sum = run(&world, Kind::AllSum, Dtype::Uint8, &[1, 2], 2).unwrap();
    assert_eq!(sum, [2, 4]);
}

/// A rank that has sent all may exit before they are received.
#[test]
fn messages_are_delivered_before_the_end() {
    for mpi in BOTH {
        if let Some(job) = mpi.run(2, "undelivered", &[]) {
            job.assert_right(2);
        }
    }
}

pub fn undelivered() {
    let world = ultramarine_mpi::world().unwrap();
    let message = input(Dtype::Float64, 200_000, 0, 5);
    if world.rank() == 0 {
        run(&world, Kind::Send { to: 1 }, Dtype::Float64, &message, 0).unwrap();
    } else {
        std::thread::sleep(Duration::from_millis(300));
        let got =
            run(&world, Kind::Receive { from: 0 }, Dtype::Float64, &[], message.len()).unwrap();
        assert!(got == message);
    }
}

/// GPUs' memory is MPI's word, or the variable's. The driver may be missing here; MPI reads host memory alike.
#[test]
fn memory_of_gpus_is_taken_where_mpi_says_so() {
    for mpi in BOTH {
        for variable in ["0", "1"] {
            let variables = [("ULTRAMARINE_MPI_DEVICE_MEMORY", variable)];
            if let Some(job) = mpi.run(2, "device_memory", &variables) {
                job.assert_right(2);
            }
        }
    }
}

pub fn device_memory() {
    let world = ultramarine_mpi::world().unwrap();
    let forced = std::env::var("ULTRAMARINE_MPI_DEVICE_MEMORY").as_deref() == Ok("1");
    let input = [world.rank() as u64 + 1];
    let mut output = [0u64; 2];
    let mut gather = |kind| {
        let request = Request {
            kind,
            dtype: Dtype::Uint64,
            input: input.as_ptr().cast(),
            output: output.as_mut_ptr().cast(),
            count: 1,
            description: "all_gather(uint64, (1,))",
        };
        // SAFETY: input and output are as long as the kind says; MPI reads addresses of the host, too.
        unsafe { world.run_on_device(&request, 0, Box::new(())) }
    };
    assert_eq!(world.takes_device_memory(Kind::AllGather), forced);
    assert_eq!(world.takes_device_memory(Kind::Send { to: 0 }), forced);
    assert!(!world.takes_device_memory(Kind::AllSum), "MPI sums on the host");
    let text = gather(Kind::AllSum).unwrap_err().to_string();
    assert!(text.contains("[all_sum] MPI does not take a GPU's memory"), "{text}");
    match gather(Kind::AllGather) {
        Ok(()) => assert_eq!(output, [1, 2]),
        Err(Error::Argument(text)) => assert!(!forced, "{text}"),
        Err(error) => {
            let text = error.to_string();
            assert!(forced && text.contains("MPI's thread cannot use GPU 0"), "{text}");
            assert!(text.contains("Set ULTRAMARINE_MPI_DEVICE_MEMORY=0"), "{text}");
        }
    }
    // MPI is usable after a refusal.
    let sum = run(&world, Kind::AllSum, Dtype::Uint8, &[1, 2], 2).unwrap();
    assert_eq!(sum, [2, 4]);
}
