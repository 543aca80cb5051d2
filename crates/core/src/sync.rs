//! The atomics of the resident table.
//!
//! Named here once, so that a test program can compile the files that use them a second time over
//! atomics that try every order of two threads' steps (`crates/io/tests/interleavings`).

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
