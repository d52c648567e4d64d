//! Keys, and the state of each thread, which functions without a key split one off.

use crate::error::{Result, bail};
use crate::{
    array::Array, device::Device, dtype::Dtype, node, ops::rules::builders::slice_axis,
    shape::Show, stream, stream::Scope,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// This thread's state, once it was needed; that of the innermost [`StateScope`].
    static STATE: RefCell<Option<Array>> = const { RefCell::new(None) };
}

/// Calls `f` with this thread's state. `f` drops no array: that may run foreign code.
fn with_state<T>(f: impl FnOnce(&mut Option<Array>) -> T) -> T {
    // A state that many keys were drawn of, none of them evaluated, is a deep graph.
    node::prepare_drops();
    STATE.with_borrow_mut(f)
}

/// Sets this thread's state; the former one.
fn replace(state: Option<Array>) -> Option<Array> {
    with_state(|own| std::mem::replace(own, state))
}

/// Returns the key of a seed: uint32 of shape `(2)`, the upper and the lower half of the seed.
/// Equal keys give equal numbers on every device.
///
/// # Errors
/// [`crate::Error::Memory`] when there is no memory.
pub fn key(seed: u64) -> Result<Array> {
    Array::from_slice(&[(seed >> 32) as u32, seed as u32], &[2])
}

/// Sets this thread's state to the key of a seed. States of other threads stay.
///
/// # Errors
/// As [`key`].
pub fn seed(seed: u64) -> Result<()> {
    set_state(&key(seed)?)
}

/// Returns this thread's state: a key. Before the thread sets it, it is made of the clock and of
/// the number of threads before it, so no two threads draw the same numbers.
///
/// # Errors
/// As [`key`].
pub fn state() -> Result<Array> {
    with_state(current)
}

/// Sets this thread's state to a key.
///
/// # Errors
/// [`crate::Error::Value`] when it is no key.
pub fn set_state(state: &Array) -> Result<()> {
    check_key(state)?;
    replace(Some(state.clone()));
    Ok(())
}

/// Another random state of this thread, while the scope lives; dropping it restores the former
/// state. Scopes nest; drop them in the reverse order.
#[derive(Debug)]
pub struct StateScope {
    before: Option<Array>,
    // Belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl StateScope {
    /// Enters a scope whose state begins as `state`.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when it is no key.
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
    // Milliseconds take 41 bits until 2039.
    let thread = THREADS.fetch_add(1, Ordering::Relaxed) << 41;
    let key = key(thread ^ now.map_or(0, |t| t.as_millis() as u64))?;
    *state = Some(key.clone());
    Ok(key)
}

/// The key itself, or one split off this thread's state.
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

/// Returns `n` independent keys made of one, as an array of shape `(n, 2)`.
///
/// # Errors
/// [`crate::Error::Value`] when `key` is no key.
pub fn split(key: &Array, n: usize) -> Result<Array> {
    super::bits(&[n, 2], 4, Some(key))
}
