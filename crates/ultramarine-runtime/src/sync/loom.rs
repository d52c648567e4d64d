//! Loom's primitives, with an addition for sequential consistency. Loom treats sequentially
//! consistent loads and stores as acquire and release, and only its fences are sequentially
//! consistent. So these types put a fence before a sequentially consistent load if its thread made
//! a sequentially consistent store before. The fence orders the store before the load. If either of
//! the two has a weaker order, there is no fence.

pub use loom::{
    cell::UnsafeCell,
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

use loom::sync::atomic::{self, fence};
use std::cell::Cell;
use std::sync::atomic::Ordering;

loom::thread_local! {
    /// True if this thread has made a sequentially consistent store since its last fence.
    static STORED: Cell<bool> = Cell::new(false);
}

fn before_load(order: Ordering) {
    if order == Ordering::SeqCst && STORED.with(|stored| stored.replace(false)) {
        fence(Ordering::SeqCst);
    }
}

fn after_store(order: Ordering) {
    if order == Ordering::SeqCst {
        STORED.with(|stored| stored.set(true));
    }
}

fn update<T>(order: Ordering, update: impl FnOnce() -> T) -> T {
    before_load(order);
    let result = update();
    after_store(order);
    result
}

macro_rules! atomics {
    ($($name:ident$(<$t:ident>)?: $value:ty, ($($fetch:ident)*);)*) => {$(
        /// Like the type in std.
        pub struct $name$(<$t>)?(atomic::$name$(<$t>)?);

        #[allow(missing_docs, dead_code, reason = "std's functions")]
        impl$(<$t>)? $name$(<$t>)? {
            #[track_caller]
            pub fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                before_load(order);
                self.0.load(order)
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
                after_store(order);
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                update(order, || self.0.swap(value, order))
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                update(success, || self.0.compare_exchange(old, new, success, failure))
            }

            /// Never fails spuriously, because a spurious failure would only repeat the caller's
            /// loop.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(old, new, success, failure)
            }

            #[track_caller]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                new: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                update(success, || self.0.fetch_update(success, failure, new))
            }

            $(
                #[track_caller]
                pub fn $fetch(&self, value: $value, order: Ordering) -> $value {
                    update(order, || self.0.$fetch(value, order))
                }
            )*
        }
    )*};
}

atomics! {
    AtomicBool: bool, ();
    AtomicU8: u8, ();
    AtomicU64: u64, (fetch_add fetch_sub fetch_and fetch_or);
    AtomicUsize: usize, (fetch_add fetch_sub);
    AtomicPtr<T>: *mut T, ();
}
