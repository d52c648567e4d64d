//! Forked children evaluate, whatever the parent's threads were evaluating. A process
//! of its own.
#![cfg(unix)]

use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine::{Array, Device, Dtype, Result, Stream, async_eval, new_stream, with_stream};

fn works(stream: Stream) -> Result<bool> {
    let x = Array::ones(&[300, 300], Dtype::Float32)?;
    let y = x.add(&x)?.exp()?.sum(None, false)?;
    let other = with_stream(stream, || y.add(&x))?;
    async_eval(std::slice::from_ref(&other))?;
    Ok((other.to_vec::<f32>()?[7] / (9e4 * 2f32.exp()) - 1.0).abs() < 1e-4)
}

/// Exit status of a child that evaluates, and forks once more if asked.
fn child(stream: Stream, again: bool) -> i32 {
    // SAFETY: the child uses what the library makes usable after a fork, and _exit.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: alarm and _exit have no preconditions; a child that hangs is killed.
            unsafe { libc::alarm(20) };
            let good = matches!(works(stream), Ok(true)) && (!again || child(stream, false) == 0);
            // SAFETY: as above.
            unsafe { libc::_exit(if good { 0 } else { 1 }) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            let mut status = -1;
            // SAFETY: our child, and a place for its status.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            status
        }
    }
}

#[test]
fn children_evaluate() -> Result<()> {
    let stream = new_stream(Device::CPU)?;
    assert!(works(stream)?);
    assert_eq!(child(stream, true), 0, "an idle parent");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(matches!(works(stream), Ok(true)));
                }
            });
        }
        for i in 0..10 {
            assert_eq!(child(stream, i % 2 == 0), 0, "child {i} of a busy parent");
        }
        stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}
