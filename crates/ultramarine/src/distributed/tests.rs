//! Tests with groups whose processes are threads of the test process.

use super::transport::{Engine, Failure, HostEngine, HostWork, Kind, Reduction, Transport};
use super::{Group, all_gather, all_max, all_sum, recv, send, sum_scatter};
use crate::error::{Error, Result};
use crate::sync::lock;
use crate::transforms::{checkpoint, compile, grad, jvp, vjp, vmap};
use crate::{Array, Device, Dtype, async_eval, eval, stream};
use std::collections::VecDeque;
use std::sync::{Arc, Barrier, Condvar, Mutex};

/// Messages between two ranks.
type Mail = Mutex<Vec<((usize, usize), VecDeque<Vec<u8>>)>>;

/// The data that threads exchange: each thread's operand, and messages.
struct Table {
    operands: Mutex<Vec<(String, Vec<f32>)>>,
    barrier: Barrier,
    mail: Mail,
    arrived: Condvar,
}

struct Threads {
    table: Arc<Table>,
    rank: usize,
    size: usize,
}

impl Transport for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn split(&self, _: i32, _: i32) -> Result<Arc<dyn Transport>> {
        Err(Error::runtime("split", "not of threads"))
    }

    fn engine(&self) -> Engine<'_> {
        Engine::Host(self)
    }
}

impl Threads {
    fn message(&self, kind: Kind, bytes: &mut [u8]) {
        let mut mail = lock(&self.table.mail);
        match kind {
            Kind::Send { to } => {
                let route = (self.rank, to);
                match mail.iter_mut().find(|(known, _)| *known == route) {
                    Some((_, queue)) => queue.push_back(bytes.to_vec()),
                    None => mail.push((route, VecDeque::from([bytes.to_vec()]))),
                }
                self.table.arrived.notify_all();
            }
            Kind::Receive { from } => loop {
                let route = (from, self.rank);
                let queue = mail.iter_mut().find(|(known, _)| *known == route);
                if let Some(message) = queue.and_then(|(_, queue)| queue.pop_front()) {
                    return bytes.copy_from_slice(&message);
                }
                mail = self.table.arrived.wait(mail).expect("no panics");
            },
            _ => unreachable!("no message"),
        }
    }
}

impl HostEngine for Threads {
    unsafe fn run(&self, work: &HostWork<'_>) -> Result<(), Failure> {
        assert_eq!(work.dtype, Dtype::Float32);
        let bytes = 4 * work.count;
        // SAFETY: by the contract of `run`.
        let input = || unsafe { std::slice::from_raw_parts(work.input.cast::<f32>(), work.count) };
        match work.kind {
            Kind::Send { .. } => {
                // SAFETY: as above.
                let input = unsafe { std::slice::from_raw_parts(work.input, bytes) };
                self.message(work.kind, &mut input.to_vec());
                return Ok(());
            }
            Kind::Receive { .. } => {
                // SAFETY: as above.
                let output = unsafe { std::slice::from_raw_parts_mut(work.output, bytes) };
                self.message(work.kind, output);
                return Ok(());
            }
            _ => {}
        }
        let own = format!("{:?} of {}", work.kind, work.count);
        lock(&self.table.operands)[self.rank] = (own.clone(), input().to_vec());
        self.table.barrier.wait();
        let all = lock(&self.table.operands).clone();
        self.table.barrier.wait();
        if all.iter().any(|(operation, _)| *operation != own) {
            let text = format!("rank {} runs {own} among {all:?}", self.rank);
            return Err(Error::runtime("threads", text).into());
        }
        let fold = |f: fn(f32, f32) -> f32| -> Vec<f32> {
            let sum = |i: usize| all.iter().map(|(_, data)| data[i]).reduce(f).expect("a rank");
            (0..work.count).map(sum).collect()
        };
        let result = match work.kind {
            Kind::AllReduce(Reduction::Sum) => fold(|a, b| a + b),
            Kind::AllReduce(Reduction::Max) => fold(f32::max),
            Kind::AllReduce(Reduction::Min) => fold(f32::min),
            Kind::AllGather => all.iter().flat_map(|(_, data)| data.clone()).collect(),
            Kind::SumScatter => {
                let part = work.count / self.size;
                fold(|a, b| a + b)[self.rank * part..][..part].to_vec()
            }
            _ => unreachable!("a message"),
        };
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(result.as_ptr(), work.output.cast::<f32>(), result.len())
        };
        Ok(())
    }
}

fn table(size: usize) -> Arc<Table> {
    Arc::new(Table {
        operands: Mutex::new(vec![Default::default(); size]),
        barrier: Barrier::new(size),
        mail: Mutex::default(),
        arrived: Condvar::new(),
    })
}

/// Runs a program as each rank of a group of threads, and checks that no rank returns an error.
fn ranks(size: usize, program: impl Fn(&Group) -> Result<()> + Sync) {
    let table = table(size);
    std::thread::scope(|scope| {
        for rank in 0..size {
            let (table, program) = (table.clone(), &program);
            scope.spawn(move || {
                // Use a separate stream, because work on it waits for other ranks.
                let own = stream::new_stream(Device::CPU).expect("a stream");
                let _scope = stream::Scope::new(own);
                let transport = Threads { table, rank, size };
                let group = Group::of(Arc::new(transport)).expect("a stream");
                program(&group).expect("a program without errors");
            });
        }
    });
}

fn numbers(values: &[f32]) -> Result<Array> {
    Array::from_slice(values, &[values.len()])
}

#[test]
fn collectives_and_messages() {
    ranks(3, |group| {
        let r = group.rank() as f32;
        let x = numbers(&[r, 1.0, 10.0 * r])?;
        assert_eq!(all_sum(&x, group)?.to_vec::<f32>()?, [3.0, 3.0, 30.0]);
        assert_eq!(all_max(&x, group)?.to_vec::<f32>()?, [2.0, 1.0, 20.0]);
        assert_eq!(all_gather(&numbers(&[r])?, group)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
        assert_eq!(all_gather(&Array::scalar(r), group)?.shape(), [3]);
        assert_eq!(sum_scatter(&x, group)?.to_vec::<f32>()?, [[3.0], [3.0], [30.0]][group.rank()]);
        let next = (group.rank() + 1) % 3;
        let (sent, got) = (
            send(&x, next as i64, group)?,
            recv(&[3], Dtype::Float32, (group.rank() as i64 + 2) % 3, group)?,
        );
        eval(&[&sent, &got])?;
        assert_eq!(got.to_vec::<f32>()?[0], ((group.rank() + 2) % 3) as f32);
        assert!(send(&x, 3, group).is_err() && recv(&[1], Dtype::Int8, -1, group).is_err());
        assert!(sum_scatter(&numbers(&[1.0])?, group).is_err());
        Ok(())
    });
}

#[test]
fn operations_run_in_the_order_of_calls() {
    ranks(3, |group| {
        let x = numbers(&[group.rank() as f32, 1.0])?;
        let mut results = Vec::new();
        for i in 0..9 {
            let y = all_sum(&x.multiply(i as f32)?, group)?;
            results.push(if i % 3 == 2 { all_gather(&y, group)? } else { y });
        }
        // No rank requests this result, but all run its operation.
        drop(results.remove(4));
        let at = group.rank();
        for i in [at, 7 - at, 3, 0, 6] {
            results[i].eval()?;
        }
        let last = results[7].to_vec::<f32>()?;
        assert_eq!(last, [[24.0, 24.0]; 3].concat());
        Ok(())
    });
}

#[test]
fn compiled_functions_keep_the_order() {
    ranks(2, |group| {
        let inner = group.clone();
        let f = compile(move |x| {
            let unused = all_max(&x[0], &inner)?;
            drop(unused);
            let y = all_sum(&x[0], &inner)?;
            Ok(vec![all_gather(&y, &inner)?, y.multiply(&x[0])?])
        });
        let outer = compile({
            let group = group.clone();
            move |x| Ok(vec![all_sum(&x[0].exp()?, &group)?])
        });
        let mut all = Vec::new();
        for i in 0..4 {
            let x = numbers(&[i as f32, group.rank() as f32])?;
            all.extend(f.call(&[&x])?);
            all.extend(outer.call(&[&x])?);
            all.push(all_sum(&x, group)?);
        }
        assert_eq!(f.traces(), 1);
        // One rank evaluates from the last to the first.
        match group.rank() {
            0 => all.iter().try_for_each(Array::eval)?,
            _ => all.iter().rev().try_for_each(Array::eval)?,
        }
        assert_eq!(all[12].to_vec::<f32>()?, [6.0, 1.0, 6.0, 1.0]);
        assert_eq!(all[13].to_vec::<f32>()?, [18.0, group.rank() as f32]);
        Ok(())
    });
}

#[test]
fn derivatives() {
    ranks(2, |group| {
        let r = group.rank() as f32;
        let x = numbers(&[1.0 + r, 3.0 - r])?;
        let w = numbers(&[1.0, 10.0])?;
        let of = |f: fn(&Array, &Group) -> Result<Array>| {
            let g = group.clone();
            move |x: &[Array]| Ok(vec![f(&x[0], &g)?])
        };
        let (_, d) = vjp(of(all_sum), &[&x], &[&w])?;
        assert_eq!(d[0].to_vec::<f32>()?, [1.0, 10.0]);
        // The first element is larger on rank 1, and the second on rank 0.
        let (_, d) = vjp(of(all_max), &[&x], &[&w])?;
        assert_eq!(d[0].to_vec::<f32>()?, [[0.0, 10.0], [1.0, 0.0]][group.rank()]);
        let (_, d) = vjp(of(all_gather), &[&x], &[&numbers(&[1.0, 2.0, 3.0, 4.0])?])?;
        assert_eq!(d[0].to_vec::<f32>()?, [[1.0, 2.0], [3.0, 4.0]][group.rank()]);
        let (_, d) = vjp(of(sum_scatter), &[&x], &[&numbers(&[5.0 + r])?])?;
        assert_eq!(d[0].to_vec::<f32>()?, [5.0, 6.0]);
        let t = numbers(&[1.0, 2.0 + r])?;
        let (_, d) = jvp(of(all_sum), &[&x], &[&t])?;
        assert_eq!(d[0].to_vec::<f32>()?, [2.0, 5.0]);
        let (_, d) = jvp(of(all_max), &[&x], &[&t])?;
        assert_eq!(d[0].to_vec::<f32>()?, [1.0, 2.0]);
        Ok(())
    });
}

#[test]
fn checkpoints_and_gradients_in_compiled_functions() {
    ranks(2, |group| {
        let inner = group.clone();
        let block = move |x: &Array| all_sum(&x.square()?, &inner)?.exp();
        let held = group.clone();
        let step = compile(move |x| {
            let block = checkpoint(block.clone());
            let loss = |x: &Array| all_sum(&block(x)?, &held)?.sum(None);
            Ok(vec![grad(loss)(&x[0])?, all_sum(&x[0], &held)?])
        });
        for _ in 0..2 {
            let x = numbers(&[0.5, 0.25 * group.rank() as f32])?;
            let found = step.call(&[&x])?;
            let (d, sum) = (found[0].to_vec::<f32>()?, found[1].to_vec::<f32>()?);
            assert_eq!(sum, [1.0, 0.25]);
            // Reverse mode passes the cotangent of a sum on.
            let wanted = [0.5f32.exp(), 0.0625f32.exp() * 0.5 * group.rank() as f32];
            assert!(d.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{d:?} {wanted:?}");
        }
        Ok(())
    });
}

#[test]
fn batches() {
    ranks(2, |group| {
        let r = group.rank() as f32;
        let x = Array::from_slice(&[r, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3])?;
        let once = numbers(&[r, 1.0])?;
        let f = |x: &[Array]| {
            // Operations that are not mapped, or have no argument. The last result is not used.
            let other = all_sum(&once, group)?.sum(None)?;
            let gathered = all_gather(&x[0], group)?;
            drop(all_max(&once, group)?);
            Ok(vec![all_sum(&x[0], group)?.add(&other)?, gathered, other])
        };
        for (axis, length) in [(0, 3), (1, 2)] {
            let found = vmap(f, &[&x], [Some(axis)], vec![Some(0), Some(0), None])?;
            let batch = x.shape()[axis as usize];
            assert_eq!(found[0].shape(), [batch, length]);
            assert_eq!(found[1].shape(), [batch, 2 * length]);
            let sums = x.add(&x)?.add(&numbers(&[1.0 - r + r, 0.0, 0.0])?.multiply(0.0)?)?;
            let mut wanted = sums.add(3.0)?.to_vec::<f32>()?;
            // The first element differs between ranks.
            wanted[0] = 1.0 + 3.0;
            let found = found[0].moveaxis(0, axis)?.to_vec::<f32>()?;
            assert_eq!(found, wanted);
        }
        assert_eq!(all_sum(&once, group)?.to_vec::<f32>()?, [1.0, 2.0]);
        Ok(())
    });
}

#[test]
fn results_do_not_stay_with_their_group() -> Result<()> {
    ranks(2, |group| {
        let y = all_sum(&Array::ones(&[1 << 16], Dtype::Float32)?, group)?;
        y.eval()?;
        let token = group.chain().last().expect("a token");
        assert!(token.is_evaluated() && token.node().inputs().is_empty());
        Ok(())
    });
    Ok(())
}

/// Two ranks evaluate results that need operations of two groups, in opposite orders. The
/// computations of each rank share a stream. No stream may wait for an operation while it holds the
/// operand of the other group's operation.
#[test]
fn groups_in_opposite_orders() {
    let (done, ended) = std::sync::mpsc::channel();
    let tables = [table(2), table(2)];
    for rank in 0..2 {
        let (tables, done) = (tables.clone(), done.clone());
        std::thread::spawn(move || {
            let groups = tables.map(|table| {
                Group::of(Arc::new(Threads { table, rank, size: 2 })).expect("a stream")
            });
            let own = stream::new_stream(Device::CPU).expect("a stream");
            let outcome = stream::with_stream(own, || opposite_orders(rank, &groups));
            done.send(outcome).expect("a test that waits");
        });
    }
    for _ in 0..2 {
        let outcome = ended.recv_timeout(std::time::Duration::from_secs(30));
        outcome.expect("ranks that do not wait for each other for ever").expect("no error");
    }
}

fn opposite_orders(rank: usize, groups: &[Group; 2]) -> Result<()> {
    let program = |group: &Group, factor: f32| -> Result<Array> {
        // Two operations, one after the other, between computations.
        let x = numbers(&[rank as f32, 1.0])?;
        let y = all_sum(&x.multiply(factor)?, group)?.add(1.0)?;
        all_sum(&y.multiply(2.0)?, group)?.multiply(factor)
    };
    let wanted = |factor: f32| [(factor + 1.0) * 4.0 * factor, (2.0 * factor + 1.0) * 4.0 * factor];
    for step in 0..20 {
        let factors = [1.0 + step as f32, 3.0];
        let results = [program(&groups[0], factors[0])?, program(&groups[1], factors[1])?];
        let order = if rank == 0 { [0, 1] } else { [1, 0] };
        match step % 3 {
            // Evaluates each result alone, both together, or one whose operations were called after
            // the other's.
            0 => order.iter().try_for_each(|i| async_eval(&[&results[*i]]))?,
            1 => async_eval(&order.map(|i| results[i].clone()))?,
            _ => {
                async_eval(&[&results[order[0]]])?;
                eval(&[&results[order[1]]])?;
            }
        }
        for (result, factor) in results.iter().zip(factors) {
            assert_eq!(result.to_vec::<f32>()?, wanted(factor), "step {step}");
        }
    }
    Ok(())
}
