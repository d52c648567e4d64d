//! Other arrays in the caller's own containers, while a function is called with them.
//!
//! A function that is differentiated gets the containers that its caller passed: it may call their methods and
//! assign to them. Only their arrays are replaced, by objects that belong to the call, so that `x += 1` in the
//! function binds none of the caller's arrays. Afterwards each place that still has such an object, as it was, gets
//! the caller's array again; what the function assigned stays. Tuples, which cannot be assigned to, are new ones.

use crate::array::PyArray;
use crate::convert::as_array;
use crate::error::Res;
use crate::stack;
use crate::tree::{self, Kind, kind};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use ultramarine::Array;

/// Containers with replaced items, by address, and the threads whose calls replaced them. What one thread traces must
/// not get into another one's function, so a call gets copies of what another thread's call has.
static TAKEN: Mutex<Option<ByAddress<ThreadId>>> = Mutex::new(None);

fn taken() -> MutexGuard<'static, Option<ByAddress<ThreadId>>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes addresses, which need no protection against chosen keys.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = (self.0 ^ *b as u64).wrapping_mul(0x100_0000_01B3));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// An object that takes the place of another one.
struct StandIn<'py> {
    /// Keeps the address from being used again.
    object: Bound<'py, PyAny>,
    original: Bound<'py, PyAny>,
    /// Of an array: what it was made with.
    array: Option<Array>,
}

/// A container in the function's hands.
struct Lent<'py> {
    container: Bound<'py, PyAny>,
    /// Its arrays are differentiated with respect to.
    differentiated: bool,
    /// This call is the first of its thread to take it.
    first: bool,
}

/// The next array of those that stand in; `None`: the argument is not differentiated.
type Next<'a> = Option<&'a mut dyn FnMut() -> Res<Array>>;

/// Replaced arrays; they are put back when it is dropped, too.
#[derive(Default)]
pub struct Substitution<'py> {
    stand_ins: ByAddress<StandIn<'py>>,
    lent: ByAddress<Lent<'py>>,
}

impl<'py> Substitution<'py> {
    /// The argument with arrays of `next` in the place of its arrays. Differentiated arguments come first.
    pub fn differentiated(
        &mut self,
        argument: &Bound<'py, PyAny>,
        next: &mut dyn FnMut() -> Res<Array>,
    ) -> Res<Bound<'py, PyAny>> {
        self.replaced(argument, &mut Some(next))
    }

    /// The argument with other objects for its arrays.
    pub fn other(&mut self, argument: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
        self.replaced(argument, &mut None)
    }

    fn replaced(
        &mut self,
        object: &Bound<'py, PyAny>,
        next: &mut Next<'_>,
    ) -> Res<Bound<'py, PyAny>> {
        let py = object.py();
        let address = object.as_ptr() as usize;
        match kind(object) {
            Kind::Leaf => {
                let Some(found) = as_array(object) else { return Ok(object.clone()) };
                // In a copy of a container that was replaced before.
                let original = self.stand_ins.get(&address).map_or(object, |s| &s.original).clone();
                let array = match (next, as_array(&original)) {
                    (Some(next), _) => next()?,
                    (None, Some(array)) => array.get().get(py),
                    (None, None) => found.get().get(py),
                };
                let made = PyArray::object(py, array.clone())?.into_any();
                Ok(self.stands_in(made, original, Some(array)))
            }
            Kind::Tuple(tuple) => {
                stack::check(tree::WHAT)?;
                let items = tuple.iter().map(|item| self.replaced(&item, next));
                let made = tree::tuple_like(tuple, items.collect::<Res<Vec<_>>>()?)?;
                if made.is(object) {
                    return Ok(made);
                }
                Ok(self.stands_in(made, object.clone(), None))
            }
            Kind::List(_) | Kind::Dict(_) => {
                stack::check(tree::WHAT)?;
                let differentiated = self.lent.get(&address).map(|lent| lent.differentiated);
                match differentiated {
                    Some(false) if next.is_none() => return Ok(object.clone()),
                    None if self.take(object, next.is_some()) => {
                        update(object, &mut |item| Ok(Some(self.replaced(item, next)?)))?;
                        return Ok(object.clone());
                    }
                    // Each place of a container has arrays of its own, to be differentiated apart.
                    _ => {}
                }
                let made = tree::with_items(object, &mut |item| self.replaced(item, next))?;
                Ok(self.stands_in(made, object.clone(), None))
            }
        }
    }

    fn stands_in(
        &mut self,
        object: Bound<'py, PyAny>,
        original: Bound<'py, PyAny>,
        array: Option<Array>,
    ) -> Bound<'py, PyAny> {
        let address = object.as_ptr() as usize;
        self.stand_ins.insert(address, StandIn { object: object.clone(), original, array });
        object
    }

    /// Notes that a container is about to change; false if another thread's call has it.
    fn take(&mut self, container: &Bound<'py, PyAny>, differentiated: bool) -> bool {
        let address = container.as_ptr() as usize;
        let this = thread::current().id();
        let mut taken = taken();
        let taken = taken.get_or_insert_default();
        let first = match taken.get(&address) {
            None => {
                taken.insert(address, this);
                true
            }
            Some(thread) if *thread == this => false,
            Some(_) => return false,
        };
        let container = container.clone();
        self.lent.insert(address, Lent { container, differentiated, first });
        true
    }

    /// Puts the caller's arrays back. Of several errors it is the first that is returned: comparing keys may run code
    /// of the caller's.
    pub fn restore(&mut self) -> Res<()> {
        let mut outcome = Ok(());
        for (address, lent) in std::mem::take(&mut self.lent) {
            let put_back = update(&lent.container, &mut |item| self.original(item));
            outcome = outcome.and(put_back);
            if lent.first
                && let Some(taken) = &mut *taken()
            {
                taken.remove(&address);
            }
        }
        outcome
    }

    /// The original of a stand-in, unless the function changed it.
    fn original(&self, object: &Bound<'py, PyAny>) -> Res<Option<Bound<'py, PyAny>>> {
        let Some(stand_in) = self.stand_ins.get(&(object.as_ptr() as usize)) else {
            return Ok(None);
        };
        debug_assert!(stand_in.object.is(object));
        if let (Some(array), Some(now)) = (&stand_in.array, as_array(object)) {
            let same = now.get().get(object.py()).is_same(array);
            return Ok(same.then(|| stand_in.original.clone()));
        }
        let (Kind::Tuple(now), Kind::Tuple(before)) = (kind(object), kind(&stand_in.original))
        else {
            return Ok(Some(stand_in.original.clone()));
        };
        let items = now.iter().map(|item| Ok(self.original(&item)?.unwrap_or(item)));
        tree::tuple_like(before, items.collect::<Res<Vec<_>>>()?).map(Some)
    }
}

impl Drop for Substitution<'_> {
    fn drop(&mut self) {
        // An error of the call itself is under way.
        let _ = self.restore();
    }
}

/// The replacement of an item, if it has one.
type Replacement<'py> = Option<Bound<'py, PyAny>>;

/// Replaces items of a list or dictionary by what `f` makes of them, without the methods of its class.
fn update<'py>(
    container: &Bound<'py, PyAny>,
    f: &mut dyn FnMut(&Bound<'py, PyAny>) -> Res<Replacement<'py>>,
) -> Res<()> {
    match kind(container) {
        Kind::List(list) => {
            for (i, item) in list.iter().enumerate() {
                if let Some(new) = f(&item)?.filter(|new| !new.is(&item)) {
                    list.set_item(i, new)?;
                }
            }
        }
        Kind::Dict(dict) => {
            let items: Vec<_> = dict.iter().collect();
            for (key, item) in items {
                if let Some(new) = f(&item)?.filter(|new| !new.is(&item)) {
                    dict.set_item(key, new)?;
                }
            }
        }
        Kind::Tuple(_) | Kind::Leaf => {}
    }
    Ok(())
}
