//! The atomics and locks of the files under test, over those of loom, which tries every order of
//! the threads' steps and every value a load may see.
//!
//! loom takes sequentially consistent accesses for acquire and release ones, but orders fences as
//! the language does. So a sequentially consistent load gets a fence before it if the last store of
//! the same thread was sequentially consistent as well: those two the language keeps in order, and
//! making either weaker is seen. In one respect that is more than the language promises: an earlier
//! store of the thread is ordered too, as on every processor there is.

use std::cell::Cell;

use loom::sync::MutexGuard;
use loom::sync::atomic as order;
pub(crate) use loom::sync::atomic::{Ordering, fence};

loom::thread_local! {
    /// Whether this thread's last store was sequentially consistent, and no fence came since.
    static STORED: Cell<bool> = Cell::new(false);
}

fn before_load(ordering: Ordering) {
    if ordering == Ordering::SeqCst && STORED.with(|stored| stored.replace(false)) {
        fence(Ordering::SeqCst);
    }
}

fn after_store(ordering: Ordering) {
    STORED.with(|stored| stored.set(ordering == Ordering::SeqCst));
}

macro_rules! atomics {
    ($($name:ident of $value:ty: $($change:ident)*;)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name(order::$name);

        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(order::$name::new(value))
            }

            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                before_load(ordering);
                self.0.load(ordering)
            }

            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                self.0.store(value, ordering);
                after_store(ordering);
            }

            $(pub(crate) fn $change(&self, value: $value, ordering: Ordering) -> $value {
                before_load(ordering);
                let before = self.0.$change(value, ordering);
                after_store(ordering);
                before
            })*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    )*};
}

atomics! {
    AtomicBool of bool: swap;
    AtomicU64 of u64: fetch_add fetch_or fetch_and;
    AtomicUsize of usize: fetch_max;
}

/// A lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// A condition that threads wait for, having released a lock.
#[derive(Debug, Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(held).unwrap()
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// Another thread is next.
pub(crate) fn give_way(_looks: u32) {
    loom::thread::yield_now();
}
