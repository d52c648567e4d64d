//! Keys, and the state of each thread. Functions that are called without a key split one off the state.

use crate::error::{Result, bail};
use crate::{
    array::Array, device::Device, dtype::Dtype, node, ops::rules::builders::slice_axis,
    shape::Show, stream, stream::Scope,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// This thread's state, `None` until it is first needed. Inside a [`StateScope`] it is the innermost scope's state.
    static STATE: RefCell<Option<Array>> = const { RefCell::new(None) };
}

/// Calls `f` with this thread's state. `f` must not drop arrays, because that may run foreign code.
fn with_state<T>(f: impl FnOnce(&mut Option<Array>) -> T) -> T {
    // If many keys were split off a state and none was evaluated, the state is a deep graph.
    node::prepare_drops();
    STATE.with_borrow_mut(f)
}

/// Sets this thread's state and returns the former one.
fn replace(state: Option<Array>) -> Option<Array> {
    with_state(|own| std::mem::replace(own, state))
}

/// Returns the key for a seed: uint32 of shape `(2)`, the upper and the lower half of the seed. Equal keys give equal
/// numbers on every device.
///
/// # Errors
/// [`crate::Error::Memory`] when memory runs out.
pub fn key(seed: u64) -> Result<Array> {
    Array::from_slice(&[(seed >> 32) as u32, seed as u32], &[2])
}

/// Sets this thread's state to the key of a seed. The states of other threads do not change.
///
/// # Errors
/// As [`key`].
pub fn seed(seed: u64) -> Result<()> {
    set_state(&key(seed)?)
}

/// Returns this thread's state: a key. Until the thread sets it, the state is made from the clock and the number of
/// earlier threads, so that no two threads draw the same numbers.
///
/// # Errors
/// As [`key`].
pub fn state() -> Result<Array> {
    with_state(current)
}

/// Sets this thread's state to a key.
///
/// # Errors
/// [`crate::Error::Value`] when `state` is not a key.
pub fn set_state(state: &Array) -> Result<()> {
    check_key(state)?;
    replace(Some(state.clone()));
    Ok(())
}

/// Replaces this thread's random state while the scope lives; dropping the scope restores the former state. Scopes
/// nest; drop them in reverse order.
#[derive(Debug)]
pub struct StateScope {
    before: Option<Array>,
    // The scope belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl StateScope {
    /// Enters a scope whose state begins with `state`.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when `state` is not a key.
    pub fn new(state: &Array) -> Result<StateScope> {
        check_key(state)?;
        let before = replace(Some(state.clone()));
        Ok(StateScope { before, _thread: std::marker::PhantomData })
    }
}

impl Drop for StateScope {
    fn drop(&mut self) {
        replace(self.before.take());
    }
}

fn current(state: &mut Option<Array>) -> Result<Array> {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    if let Some(state) = state {
        return Ok(state.clone());
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // Milliseconds need 41 bits until 2039.
    let thread = THREADS.fetch_add(1, Ordering::Relaxed) << 41;
    let key = key(thread ^ now.map_or(0, |t| t.as_millis() as u64))?;
    *state = Some(key.clone());
    Ok(key)
}

/// The key itself, or if there is none, one split off this thread's state.
pub(super) fn key_or_next(key: Option<&Array>) -> Result<Array> {
    if let Some(key) = key {
        return Ok(key.clone());
    }
    // The state stays on the host without a home device, because the next call may be on any device.
    let _host = Scope::new(stream::default_of(Device::CPU));
    let halves = split(&state()?, 2)?;
    let half = |i: usize| slice_axis(&halves, 0, i, 1)?.reshape(&[2]);
    let next = half(0)?;
    replace(Some(next));
    half(1)
}

pub(super) fn check_key(key: &Array) -> Result<()> {
    if key.dtype() != Dtype::Uint32 {
        bail!(
            "bits",
            "Expected key type uint32 but received {}. Make keys by `key` and `split`.",
            key.dtype()
        );
    }
    if key.shape() != [2] {
        bail!(
            "bits",
            "Expected key shape (2,) but received {}. Pass one key, as `key` makes it or a row of `split`.",
            Show(key.shape())
        );
    }
    Ok(())
}

/// Returns `n` independent keys derived from one key, as an array of shape `(n, 2)`.
///
/// # Errors
/// [`crate::Error::Value`] when `key` is not a key.
pub fn split(key: &Array, n: usize) -> Result<Array> {
    super::bits(&[n, 2], 4, Some(key))
}
