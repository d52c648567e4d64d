//! Calls from many threads at the same time, for functions for which the contract allows it.

use super::with_device;
use crate::cases::none;
use crate::device::{Device, Handle, Prepared, desc, words};
use crate::dtype::{DType, Num};
use crate::options::Options;
use crate::plugin::Source;
use crate::record::{Outcome, PASSED, Recorder, Result, skip};
use crate::run::{self, Request};
use crate::tensor::{Array, Layout, Placed};
use ultramarine_abi::layout;
use ultramarine_abi::schema::{BinaryAttrs, UnaryAttrs, binary, op, unary};

const THREADS: usize = 8;

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "threads", |recorder, device| {
        recorder.check("threads/one plan on many streams", || shared_plan(device));
        recorder.check("threads/prepare at once", || prepare(device));
        recorder.check("threads/buffers at once", || buffers(device));
        recorder.check("threads/open devices at once", || open(device));
    });
}

/// Calls `f` in every thread. Returns the first failure.
pub(super) fn together(f: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS)
            .map(|i| {
                let f = &f;
                scope.spawn(move || f(i))
            })
            .collect();
        all.into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("the kit's thread panicked".into())))
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    })
}

fn sum(n: i64, a: f64, b: f64) -> Request {
    let mut arrays = [a, b].map(|x| {
        let values: Vec<Num> = (0..n).map(|i| Num::Real(x + (i % 100) as f64)).collect();
        Array::cycle(DType::F32, &[n], &values)
    });
    Request {
        op: op::BINARY,
        attributes: words(&BinaryAttrs::new(binary::ADD)),
        inputs: arrays.iter_mut().map(|a| Placed::new(a, Layout::Contiguous)).collect(),
        output: Placed::output(DType::F32, &[n], Layout::Contiguous),
        more: Vec::new(),
        scalars: Vec::new(),
        donated: None,
    }
}

fn shared_plan(device: &Device<'_>) -> Result {
    let plan = match run::prepare(device, &sum(1, 0.0, 0.0))? {
        Prepared::Plan(plan) => plan,
        _ => return skip("no native sum of float32"),
    };
    let result = together(|thread| {
        let stream = device.stream()?;
        for round in 0..25usize {
            // Sizes differ between threads. If a plan keeps a size, the threads disturb each other.
            let n = (100 + 37 * thread + 211 * round) as i64;
            let (a, b) = (thread as f64 * 1000.0, round as f64);
            let got = run::submit(device, stream, plan, &sum(n, a, b))?;
            for (i, value) in got.iter().enumerate() {
                let expected = a + b + 2.0 * (i % 100) as f64;
                ensure!(
                    value.real() == expected,
                    "thread {thread}, round {round}: element {i} of {n} is {value}, expected {expected}"
                );
            }
        }
        device.destroy_stream(stream);
        Ok(())
    });
    device.release(plan);
    result.map(|()| Outcome::Passed)
}

fn prepare(device: &Device<'_>) -> Result {
    let one = desc(DType::F32, 1, layout::CONTIGUOUS);
    together(|thread| {
        for round in 0..12 {
            // Use some codes that are the same in all threads, and some that differ.
            let code = match round % 3 {
                0 => unary::NEGATIVE,
                1 => unary::ABS,
                _ => [unary::EXP, unary::SQUARE, unary::SQRT, unary::FLOOR][thread % 4],
            };
            let attributes = words(&UnaryAttrs::new(code));
            if let Prepared::Plan(plan) = device.prepare(op::UNARY, &attributes, &[one], &[one])? {
                device.release(plan);
            }
            if let Prepared::Plan(plan) = device.prepare(op::COPY, &none(), &[one], &[one])? {
                device.release(plan);
            }
        }
        Ok(())
    })?;
    PASSED
}

fn buffers(device: &Device<'_>) -> Result {
    if device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    together(|thread| {
        let stream = device.stream()?;
        for round in 0..200u64 {
            let bytes = 1000 + 16 * round;
            let buffer = device.alloc(bytes)?;
            let mark = [thread as u8 + 1; 32];
            device.write(stream, buffer, bytes - 32, &mark)?;
            let mut back = [0; 32];
            device.read(stream, buffer, bytes - 32, &mut back)?;
            device.free(buffer);
            ensure!(back == mark, "thread {thread}: a buffer holds another thread's bytes");
        }
        device.destroy_stream(stream);
        Ok(())
    })?;
    PASSED
}

fn open(device: &Device<'_>) -> Result {
    together(|_| {
        for _ in 0..10 {
            let opened = Device::open(device.backend, device.index)?;
            let stream: Handle = opened.stream()?;
            opened.destroy_stream(stream);
            opened.close();
        }
        Ok(())
    })?;
    PASSED
}
