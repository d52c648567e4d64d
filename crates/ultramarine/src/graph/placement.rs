//! Determines where an operation runs. The first of these that applies:
//!
//! 1. the stream of the scope, or of `stream=`
//! 2. the accelerator that its operands are on
//! 3. the default device
//!
//! The *home* of an array is an accelerator on which it was computed, to which it was copied, or in
//! whose scope it was made. Arrays that are created without a scope (constants, ranges, values from
//! the host) and arrays on the CPU have no home, and can be combined with any other array. Arrays
//! with different homes cannot be combined, unless the transfer policy allows it.

use crate::{
    array::Array,
    backend,
    device::{Device, DeviceType},
    devices,
    error::{Error, Result},
    graph::{determinism, node::Node, op::Op},
    stream::default_device,
    stream::{self, Stream},
};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

/// Place of an operation, and the reason for it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub stream: Stream,
    /// True if the stream's device is the result's home.
    pub firm: bool,
    /// True if a scope or an argument named the stream. Otherwise the stream follows from the
    /// operands, and the same operation runs elsewhere for operands elsewhere.
    pub named: bool,
    /// True if equal calls have to give bitwise identical results ([`super::determinism`]).
    pub deterministic: bool,
}

impl Place {
    /// Makes a place with the current determinism setting.
    #[inline]
    pub fn new(stream: Stream, firm: bool, named: bool) -> Place {
        Place { stream, firm, named, deterministic: determinism::of_operation(stream) }
    }

    /// The result's home, if it has one.
    #[inline]
    pub fn home(&self) -> Option<Device> {
        let device = self.stream.device;
        (self.firm && device.kind == DeviceType::Gpu).then_some(device)
    }
}

/// Behaviour of operations whose operands are on different accelerators. Arrays on the CPU mix with
/// those of any accelerator. [`set_transfer_policy`] sets it for all threads, a [`TransferScope`]
/// for one. The default is [`TransferPolicy::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransferPolicy {
    /// The call fails with an error that names both devices.
    Error = 0,
    /// Arrays are copied to where the operation runs: directly by the backend if it supports both
    /// devices and such a copy, otherwise through the host.
    Host = 1,
}

static POLICY: AtomicU8 = AtomicU8::new(TransferPolicy::Error as u8);

thread_local! {
    static SCOPED: Cell<Option<TransferPolicy>> = const { Cell::new(None) };
    /// The accelerator on which the parts of a composed operation are created.
    static FOLLOWED: Cell<Option<Device>> = const { Cell::new(None) };
    /// The stream of the scope, if the scope is the place of a node whose stream was not named.
    static INHERITED: Cell<Option<Stream>> = const { Cell::new(None) };
}

/// Returns the behaviour of operations whose operands are on different accelerators: that of the
/// [`TransferScope`] that the thread is in, else that of [`set_transfer_policy`].
pub fn transfer_policy() -> TransferPolicy {
    SCOPED.get().unwrap_or_else(|| match POLICY.load(Ordering::Relaxed) {
        0 => TransferPolicy::Error,
        _ => TransferPolicy::Host,
    })
}

/// Sets the behaviour of operations whose operands are on different accelerators, for every thread;
/// inside of a [`TransferScope`], for that scope. Returns the former setting.
pub fn set_transfer_policy(policy: TransferPolicy) -> TransferPolicy {
    let before = transfer_policy();
    if SCOPED.get().is_some() {
        SCOPED.set(Some(policy));
    } else {
        POLICY.store(policy as u8, Ordering::Relaxed);
    }
    before
}

/// Transfer policy of this thread, while the scope lives. Scopes nest; drop them in the reverse
/// order.
///
/// ```
/// use ultramarine::{TransferPolicy, TransferScope, transfer_policy};
/// {
///     let _scope = TransferScope::new(TransferPolicy::Host);
///     assert_eq!(transfer_policy(), TransferPolicy::Host);
/// }
/// assert_eq!(transfer_policy(), TransferPolicy::Error);
/// ```
#[derive(Debug)]
pub struct TransferScope {
    before: Option<TransferPolicy>,
    // The scope belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl TransferScope {
    /// Enters a scope with this policy. The scope ends when it is dropped.
    pub fn new(policy: TransferPolicy) -> TransferScope {
        TransferScope { before: SCOPED.replace(Some(policy)), _thread: std::marker::PhantomData }
    }
}

impl Drop for TransferScope {
    fn drop(&mut self) {
        SCOPED.set(self.before);
    }
}

/// While it lives, arrays that this thread creates without a scope go to the home of an array.
pub(crate) struct Follow(Option<Device>);

/// Makes a composed operation create its parts that do not depend on the operands (masks, index
/// ranges, random bits) on the operands' device.
pub(crate) fn follow(arrays: &[&Array]) -> Follow {
    let before = FOLLOWED.get();
    if !backend::gpus().is_empty()
        && let Some(home) = arrays.iter().find_map(|a| a.node().home())
    {
        FOLLOWED.set(Some(home));
    }
    Follow(before)
}

impl Array {
    /// Calls `f`, which makes arrays that belong to this one: if no scope says where, they are
    /// created on the accelerator that this array is on.
    pub fn beside<T>(&self, f: impl FnOnce() -> T) -> T {
        let _home = follow(&[self]);
        f()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        FOLLOWED.set(self.0);
    }
}

/// While it lives, operations of this thread run at the place of a node, as the rules of the node's
/// derivative need it.
pub(crate) struct PlaceScope {
    _scope: stream::Scope,
    _deterministic: determinism::DeterministicScope,
    before: Option<Stream>,
}

/// Enters the place of a node. If the node's stream was not named, the streams of operations inside
/// are not named either.
pub(crate) fn enter(place: Place) -> PlaceScope {
    let before = INHERITED.replace((!place.named).then_some(place.stream));
    let _deterministic = determinism::DeterministicScope::new(place.deterministic);
    PlaceScope { _scope: stream::Scope::new(place.stream), _deterministic, before }
}

impl Drop for PlaceScope {
    fn drop(&mut self) {
        INHERITED.set(self.before);
    }
}

fn scoped_place(stream: Stream) -> Place {
    Place::new(stream, true, INHERITED.get() != Some(stream))
}

/// Determines where an operation with these operands runs.
#[inline]
pub(crate) fn place(op: &Op, inputs: &[&Array]) -> Result<Place> {
    if !backend::gpus().is_empty() {
        return place_among_devices(op, inputs);
    }
    let (stream, scoped) = stream::current();
    Ok(match scoped {
        true => scoped_place(stream),
        false => Place::new(stream, !inputs.is_empty(), false),
    })
}

/// Returns the place of a view of a node whose value is in host memory, if that place is the host.
pub(crate) fn place_view(of: &Node) -> Option<Place> {
    let (stream, scoped) = stream::current();
    let elsewhere = !scoped && (of.home().is_some() || FOLLOWED.get().is_some());
    if stream.device != Device::CPU || elsewhere {
        return None;
    }
    Some(if scoped { scoped_place(stream) } else { Place::new(stream, true, false) })
}

fn place_among_devices(op: &Op, inputs: &[&Array]) -> Result<Place> {
    place_among(op, inputs.is_empty(), inputs.iter().filter_map(|a| a.node().home()))
}

/// Determines the place like [`place`], for operands with these homes.
pub(crate) fn place_among(
    op: &Op,
    creates: bool,
    mut homes: impl Iterator<Item = Device>,
) -> Result<Place> {
    if let Some(stream) = stream::scoped() {
        let to = stream.device;
        if to.kind == DeviceType::Gpu
            && let Some(other) = homes.find(|d| *d != to)
        {
            allow(op, other, to, "an array on", "a stream on")?;
        }
        return Ok(scoped_place(stream));
    }
    let default = default_device();
    let Some(mut home) = homes.next() else {
        if let Some(device) = FOLLOWED.get() {
            return Ok(Place::new(stream::default_of(device), true, false));
        }
        let firm = !creates && !op.rules().is_some_and(|r| r.inherits_home());
        return Ok(Place::new(stream::default_of(default), firm, false));
    };
    for other in homes {
        if other != home {
            allow(op, home, other, "arrays on", "")?;
            // Prefer the user's default device, if an operand is there.
            if other == default {
                home = other;
            }
        }
    }
    Ok(Place::new(stream::default_of(home), true, false))
}

#[cold]
fn allow(op: &Op, a: Device, b: Device, which: &str, other: &str) -> Result<()> {
    if transfer_policy() == TransferPolicy::Host {
        return Ok(());
    }
    let show = |d: Device| devices::get(d).map_or(d.to_string(), |s| format!("{} {d}", s.backend));
    let other = if other.is_empty() { String::new() } else { format!("{other} ") };
    Err(Error::value(
        op.name(),
        format!(
            "{which} {} and {other}{} do not mix. Copy one with copy(x, device), in Rust \
             x.copy_to(device), or allow transfers with set_transfer_policy.",
            show(a),
            show(b)
        ),
    ))
}

/// Determines the place of an array that has a value.
#[inline]
pub(crate) fn place_value(device: Device) -> Place {
    if device.kind == DeviceType::Gpu {
        let stream = stream::scoped().filter(|s| s.device == device);
        let stream = stream.unwrap_or_else(|| stream::default_of(device));
        return Place::new(stream, true, false);
    }
    let (stream, firm) = stream::current();
    Place::new(stream, firm, false)
}
