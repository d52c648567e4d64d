//! Keys, and the state that functions without a key split one off: global, or a thread's own.

use crate::error::{Result, bail};
use crate::{
    array::Array, device::Device, dtype::Dtype, ops::rules::builders::slice_axis, shape::Show,
    stream, stream::Scope, sync::lock,
};
use std::cell::RefCell;
use std::sync::Mutex;

/// The global state.
static STATE: Mutex<Option<Array>> = Mutex::new(None);

thread_local! {
    /// The state of the innermost [`StateScope`] of this thread.
    static SCOPED: RefCell<Option<Array>> = const { RefCell::new(None) };
}

/// The key of a seed: its upper and its lower half.
///
/// # Errors
/// [`crate::Error::Memory`] when there is no memory.
pub fn key(seed: u64) -> Result<Array> {
    Array::from_slice(&[(seed >> 32) as u32, seed as u32], &[2])
}

/// Sets the global state to the key of a seed.
///
/// # Errors
/// As [`key`].
pub fn seed(seed: u64) -> Result<()> {
    set_state(&key(seed)?)
}

/// The global state: a key. It is seeded from the clock until [`seed`] is called.
///
/// # Errors
/// As [`key`].
pub fn state() -> Result<Array> {
    match scoped() {
        Some(state) => Ok(state),
        None => current(&mut lock(&STATE)),
    }
}

/// Sets the global state.
///
/// # Errors
/// [`crate::Error::Value`] when it is no key.
pub fn set_state(state: &Array) -> Result<()> {
    check_key(state)?;
    if scoped().is_some() {
        SCOPED.set(Some(state.clone()));
    } else {
        *lock(&STATE) = Some(state.clone());
    }
    Ok(())
}

fn scoped() -> Option<Array> {
    SCOPED.with_borrow(Clone::clone)
}

/// While it lives, this thread has a state of its own in place of the global one. Scopes nest; drop them in
/// the reverse order.
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
        let before = SCOPED.replace(Some(state.clone()));
        Ok(StateScope { before, _thread: std::marker::PhantomData })
    }
}

impl Drop for StateScope {
    fn drop(&mut self) {
        SCOPED.set(self.before.take());
    }
}

fn current(state: &mut Option<Array>) -> Result<Array> {
    if let Some(state) = state {
        return Ok(state.clone());
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let key = key(now.map_or(0, |t| t.as_millis() as u64))?;
    *state = Some(key.clone());
    Ok(key)
}

/// The key itself, or one split off the global state.
pub(super) fn key_or_next(key: Option<&Array>) -> Result<Array> {
    if let Some(key) = key {
        return Ok(key.clone());
    }
    // The state stays on the host without a home device, because the next call may be on any device.
    let _host = Scope::new(stream::default_of(Device::CPU));
    let halves = |of: &Array| -> Result<[Array; 2]> {
        let halves = split(of, 2)?;
        let half = |i: usize| slice_axis(&halves, 0, i, 1)?.reshape(&[2]);
        Ok([half(0)?, half(1)?])
    };
    if let Some(state) = scoped() {
        let [next, key] = halves(&state)?;
        SCOPED.set(Some(next));
        return Ok(key);
    }
    let mut state = lock(&STATE);
    let [next, key] = halves(&current(&mut state)?)?;
    *state = Some(next);
    Ok(key)
}

pub(super) fn check_key(key: &Array) -> Result<()> {
    if key.dtype() != Dtype::Uint32 {
        bail!("bits", "Expected key type uint32 but received {}.", key.dtype());
    }
    if key.shape() != [2] {
        bail!("bits", "Expected key shape (2) but received {}.", Show(key.shape()));
    }
    Ok(())
}

/// `n` keys made of one, as an array of shape `(n, 2)`.
///
/// # Errors
/// [`crate::Error::Value`] when `key` is no key.
pub fn split(key: &Array, n: usize) -> Result<Array> {
    super::bits(&[n, 2], 4, Some(key))
}
