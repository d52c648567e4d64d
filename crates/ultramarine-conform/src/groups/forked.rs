//! Checks in a forked child of the process that opened the device.

use crate::device::Device;
use crate::record::{Result, skip};
#[cfg(unix)]
use crate::{plugin::status_name, record::PASSED};
#[cfg(unix)]
use ultramarine_abi::status;

/// In a forked child, a device with its own memory refuses calls, and frees do no harm.
#[cfg(unix)]
pub fn check(device: &Device<'_>) -> Result {
    const ALLOWED: i32 = 99;
    let buffer = device.alloc(1000)?;
    // SAFETY: the child makes two calls of the backend, which the contract allows, and ends without
    // running any of the parent's code.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return skip("this system forks no process");
    }
    if child == 0 {
        let code = match device.alloc(1000) {
            Ok(_) => ALLOWED,
            Err(failure) => failure.code,
        };
        device.free(buffer);
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut ended = 0;
    let mut waited = 0;
    for _ in 0..500 {
        // SAFETY: asks for the end of the child that was made above.
        waited = unsafe { libc::waitpid(child, &mut ended, libc::WNOHANG) };
        if waited != 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    if waited == 0 {
        // SAFETY: the child has not ended, so the number is still its own.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut ended, 0);
        }
        return Err("a call in a forked child does not return".into());
    }
    device.free(buffer);
    if libc::WIFSIGNALED(ended) {
        return Err(format!("a forked child is ended by signal {}", libc::WTERMSIG(ended)));
    }
    match libc::WEXITSTATUS(ended) {
        status::FORKED => PASSED,
        ALLOWED if device.info.host_memory != 0 => PASSED,
        ALLOWED => Err("buffer_alloc in a forked child returned OK, expected FORKED".into()),
        other => Err(format!(
            "buffer_alloc in a forked child returned {}, expected FORKED",
            status_name(other)
        )),
    }
}

/// Other systems do not fork.
#[cfg(not(unix))]
pub fn check(_: &Device<'_>) -> Result {
    skip("this system forks no process")
}
