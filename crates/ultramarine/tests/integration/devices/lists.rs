//! Calls of compiled functions and repeated evaluations give their commands in lists. What fails is found again in them.

use super::check_end;
use crate::support::mock_device;
use crate::support::partial_backend::{Fails, Like, PLAIN, Partial, register};
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::transforms::{Compiled, compile};
use ultramarine::{
    Array, Device, Result, async_eval, eval, new_stream, stats, synchronize, with_stream,
};
use ultramarine_abi::status;
use ultramarine_test_support::own_process;

/// A device that has all kernels and no programs.
fn device(name: &'static std::ffi::CStr) -> Partial {
    register(Like { name, ..PLAIN }, Box::new(|_| status::OK))
}

fn array(device: Device, n: usize) -> Result<Array> {
    let data: Vec<f32> = (0..n).map(|i| (i % 5) as f32).collect();
    let x = Array::from_slice(&data, &[n])?;
    let x = with_stream(new_stream(device)?, || x.add(&x))?;
    x.eval()?;
    Ok(x)
}

/// A function of two arrays whose second call runs an executable: `n` operations in a row.
fn chain(n: usize) -> Compiled {
    compile(move |x: &[Array]| {
        let mut y = x[0].clone();
        for i in 0..n {
            y = if i == n / 2 { y.multiply(&x[1])? } else { y.add(&x[1])? };
        }
        Ok(vec![y])
    })
}

/// The chain's results.
fn chained(n: usize, x: &[f32]) -> Vec<f32> {
    let step = |y: f32, i: usize, x: f32| if i == n / 2 { y * x } else { y + x };
    x.iter().map(|x| (0..n).fold(*x, |y, i| step(y, i, *x))).collect()
}

#[test]
fn lists_are_bounded_in_commands_and_bytes() -> Result<()> {
    own_process!();
    let gpu = device(c"listed");
    with_stream(new_stream(gpu.device)?, || {
        for (n, size, expected) in [
            (100, 4, vec![64, 36]),
            (150, 4, vec![64, 64, 22]),
            // 40 KB for each of three tensors.
            (100, 10_000, vec![2; 50]),
            // More than a list may have.
            (100, 100_000, vec![1; 100]),
        ] {
            let x = array(gpu.device, size)?;
            let (f, want) = (chain(n), chained(n, &x.to_vec::<f32>()?));
            for call in 0..3 {
                let before = stats();
                gpu.lists();
                let y = f.call(&[x.clone(), x.clone()])?;
                eval(&y)?;
                let lists = gpu.lists();
                assert_eq!(y[0].to_vec::<f32>()?, want);
                match call {
                    0 => assert_eq!(lists, vec![1; n]),
                    _ => assert_eq!(lists, expected),
                }
                assert_eq!(stats().commands - before.commands, n as u64);
            }
        }
        Ok(())
    })
}

#[test]
fn a_failure_in_a_list_names_its_operation() -> Result<()> {
    own_process!();
    let gpu = device(c"failing");
    with_stream(new_stream(gpu.device)?, || {
        let x = array(gpu.device, 4)?;
        let (f, want) = (chain(100), chained(100, &x.to_vec::<f32>()?));
        let call = || f.call(&[x.clone(), x.clone()])?[0].to_vec::<f32>();
        assert_eq!(call()?, want);
        assert_eq!(call()?, want);
        for (after, says, op) in [
            (50, true, "multiply"),
            (49, true, "add"),
            (64, true, "add"),
            (99, true, "add"),
            // All of the list is lost, and its first operation stands for it.
            (50, false, "add"),
        ] {
            gpu.fail(Fails { after, says });
            let before = gpu.commands();
            let error = call().expect_err("a command fails").to_string();
            assert!(error.contains(op) && error.contains("on purpose"), "{after}: {error}");
            assert_eq!(gpu.commands() - before, after, "commands behind it were run");
            assert_eq!(call()?, want);
        }
        Ok(())
    })
}

/// A state in whose memory an evaluation writes the next one, and a result that has nothing to do with it.
#[test]
fn a_failure_in_a_list_spoils_what_depends_on_it() -> Result<()> {
    own_process!();
    let gpu = device(c"spoiling");
    with_stream(new_stream(gpu.device)?, || {
        let w = array(gpu.device, 4)?;
        let numbers = w.to_vec::<f32>()?;
        let next = |mut s: Array| -> Result<[Array; 2]> {
            for _ in 0..6 {
                s = s.add(&w)?;
            }
            let mut t = w.clone();
            for _ in 0..3 {
                t = t.multiply(&w)?.subtract(&w)?;
            }
            Ok([s, t])
        };
        let want = |x: f32| (7.0 * x, (0..3).fold(x, |t, _| t * x - x));
        let want: (Vec<f32>, Vec<f32>) = numbers.iter().map(|x| want(*x)).unzip();
        // The values, or the errors, of an evaluation of both.
        let run = || -> Result<[Result<Vec<f32>>; 2]> {
            let start = w.add(&w)?.subtract(&w)?;
            start.eval()?;
            let both = next(start)?;
            let _ = eval(&both);
            Ok(both.map(|array| array.to_vec::<f32>()))
        };
        for _ in 0..4 {
            gpu.lists();
            let [s, t] = run()?;
            assert_eq!((s?, t?), want);
        }
        let lists = gpu.lists();
        let longest = lists.iter().copied().max().unwrap_or(0);
        assert_eq!((lists.iter().sum::<u32>(), longest), (14, 12), "{lists:?}");
        let mut lost = [0, 0];
        for after in 0..12 {
            // Two commands make the start.
            gpu.fail(Fails { after: after + 2, says: true });
            let [s, t] = run()?;
            let (kept, error, names) = match (s, t) {
                (Err(error), Ok(t)) => (t == want.1, error.to_string(), &["add"][..]),
                (Ok(s), Err(error)) => {
                    (s == want.0, error.to_string(), &["multiply", "subtract"][..])
                }
                (s, t) => panic!("{after}: {s:?} {t:?}"),
            };
            assert!(kept, "{after}");
            assert!(names.iter().any(|n| error.contains(n)), "{after}: {error}");
            assert!(error.contains("on purpose"), "{after}: {error}");
            lost[usize::from(names.len() == 2)] += 1;
        }
        assert_eq!(lost, [6, 6]);
        gpu.lists();
        gpu.fail(Fails { after: 7, says: false });
        let [s, t] = run()?;
        assert!(s.is_err() || t.is_err());
        let [s, t] = run()?;
        assert_eq!((s?, t?), want);
        Ok(())
    })
}

#[test]
fn numbers_count_commands() -> Result<()> {
    own_process!();
    mock_device::stream_memory::OFFERED.store(true, SeqCst);
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { ultramarine::register(mock_device::init) }.unwrap().len(), 2);
    let (gpu, other) = (new_stream(Device::gpu(0))?, new_stream(Device::gpu(0))?);
    let x = array(Device::gpu(0), 2)?;
    let f = compile(|x: &[Array]| {
        let mut y = x[0].clone();
        for _ in 0..100 {
            y = y.add(&x[0])?.maximum(&x[0])?;
        }
        Ok(vec![y])
    });
    for call in 0..4 {
        mock_device::RECORDS.lock().unwrap().clear();
        let before = mock_device::SUBMITS.load(SeqCst);
        let y = with_stream(gpu, || f.call(std::slice::from_ref(&x)))?;
        eval(&y)?;
        let submits = mock_device::SUBMITS.load(SeqCst) - before;
        assert_eq!(submits, if call == 0 { 200 } else { 4 });
        // A record for each 64 commands, as without lists.
        let records: Vec<u64> =
            mock_device::RECORDS.lock().unwrap().iter().map(|r| r.1 - 200 * call).collect();
        assert_eq!(records, [64, 128, 192, 200]);
        // Another stream waits for what a list writes, and a list for what another stream does.
        let z = with_stream(other, || y[0].add(&y[0]))?;
        async_eval(std::slice::from_ref(&z))?;
        assert_eq!(z.to_vec::<f32>()?, [0.0, 404.0]);
    }
    drop((x, f));
    check_end(&[gpu, other]);
    Ok(())
}

/// A list that the backend is not called for, since an operand has failed on another stream, is given command by command.
#[test]
fn a_failed_operand_concerns_the_commands_that_read_it() -> Result<()> {
    own_process!();
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { ultramarine::register(mock_device::init) }.unwrap().len(), 2);
    let (gpu, other) = (new_stream(Device::gpu(0))?, new_stream(Device::gpu(0))?);
    let f = compile(|x: &[Array]| {
        let mut y = x[0].clone();
        for _ in 0..100 {
            y = y.add(&x[0])?;
        }
        let z = y.maximum(&x[1])?;
        Ok(vec![z.subtract(&x[0])?])
    });
    let operand = |value: f32| {
        let x = Array::from_slice(&[value, 1.0], &[2])?;
        with_stream(other, || x.add(&x))
    };
    let [good, fine] = [operand(1.0)?, operand(1.0)?];
    eval(&[good.clone(), fine.clone()])?;
    for _ in 0..3 {
        let y = with_stream(gpu, || f.call(&[good.clone(), fine.clone()]))?;
        assert_eq!(y[0].to_vec::<f32>()?, [200.0, 200.0]);
    }
    let bad = operand(mock_device::CURSED)?;
    async_eval(std::slice::from_ref(&bad))?;
    synchronize(other).expect_err("the mock fails");
    let y = with_stream(gpu, || f.call(&[good.clone(), bad.clone()]))?;
    let submits = mock_device::SUBMITS.load(SeqCst);
    let error = y[0].to_vec::<f32>().expect_err("it reads what failed").to_string();
    assert!(error.contains("maximum"), "{error}");
    // A list of 64, which does not read it, and commands by themselves up to the one that does.
    assert_eq!(mock_device::SUBMITS.load(SeqCst) - submits, 1 + 36);
    drop((f, good, fine, bad, y));
    Ok(())
}
