//! Objects of Python that are let go of without the interpreter.
//!
//! Problem: a thread of an engine has the last reference to an answer, or to the function of a file that is closed, and
//! must not drop it: that runs Python code. PyO3 has a list for such objects, and a lock of it. A child process that is
//! forked while a thread without the interpreter has that lock hangs at its first step.
//!
//! Mechanism: a list without a lock, to which each thread adds and of which one with the interpreter takes all. It is
//! whole at each moment of a fork; a child may lack an object that was being added.
//!
//! ```text
//! thread of an engine   drop -> add -> [list]
//! thread of Python      before it waits for a call, a file is let go of, a collection begins   <- all, dropped
//! ```
//!
//! Code that runs as an object is dropped may wait for a lock that a reader holds, or read a file: it runs where no call
//! waits for it, and no interrupt is lost in it. At the end of the process the objects stay.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;

use crate::release::{Away, is_ending};

static LIST: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

struct Node {
    next: *mut Node,
    _value: Box<dyn Send>,
}

/// A value that is dropped by a thread that has the interpreter, soon after it is let go of by any.
#[derive(Debug)]
pub(crate) struct Deferred<T: Send + 'static>(Option<T>);

impl<T: Send> Deferred<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("it is there until the drop"),
        }
    }
}

impl<T: Send> Drop for Deferred<T> {
    fn drop(&mut self) {
        let Some(value) = self.0.take() else { return };
        let node = Box::into_raw(Box::new(Node {
            next: ptr::null_mut(),
            _value: Box::new(value),
        }));
        let mut first = LIST.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node was made above, and no other thread knows of it until the exchange, which ends the loop.
            unsafe { (*node).next = first };
            let added =
                LIST.compare_exchange_weak(first, node, Ordering::Release, Ordering::Relaxed);
            match added {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }
}

/// Whether something was let go of.
pub(crate) fn has_deferred() -> bool {
    !LIST.load(Ordering::Relaxed).is_null()
}

/// Drops all that was let go of until now. The end of the process waits for that as for a call.
pub(crate) fn drop_deferred(py: Python<'_>) {
    if !has_deferred() || is_ending() {
        return;
    }
    let _away = Away::new(py);
    let mut first = LIST.swap(ptr::null_mut(), Ordering::Acquire);
    while !first.is_null() {
        // SAFETY: each node of the list is of `Box::into_raw`, was added once, and is complete by the order of the
        // exchanges. The list was taken as a whole, so that no other thread has this node.
        let node = unsafe { Box::from_raw(first) };
        first = node.next;
        drop(node);
    }
}

/// The last field of an object of Python: those before it are dropped with that, and not later.
#[derive(Debug, Default)]
pub(crate) struct DropsDeferred;

impl Drop for DropsDeferred {
    fn drop(&mut self) {
        Python::attach(drop_deferred);
    }
}
