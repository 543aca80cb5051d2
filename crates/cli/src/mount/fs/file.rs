//! An open file: the reader that owns its streams, and counts of what was read of it.
//!
//! Made and closed by the [file system](super); one for each `open(2)` of a program. Its
//! [`Reader`] is the engine's owner: when the program closes the file or ends, however it ends, the
//! kernel releases the file, the reader is dropped, and the engine frees what was fetched for it
//! and not read. A child that inherited the file still reads it, and keeps it alive: so the process
//! is no owner, and its end (a pidfd) says nothing that the release does not say better.

use std::sync::atomic::{AtomicU64, Ordering};

use forerun_io::Reader;

use super::nodes::Node;

/// See the [module](self).
#[derive(Debug)]
pub struct OpenFile {
    /// Which file.
    pub node: Node,
    /// The thread that opened it, which is what FUSE tells.
    pub thread: u32,
    /// Reads it.
    pub reader: Reader,
    /// Times the kernel asked for bytes.
    requests: AtomicU64,
    /// Bytes given to the kernel.
    bytes: AtomicU64,
    /// Where the last read ended.
    at: AtomicU64,
}

impl OpenFile {
    /// A file just opened.
    #[must_use]
    pub fn new(node: Node, thread: u32, reader: Reader) -> Self {
        Self {
            node,
            thread,
            reader,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            at: AtomicU64::new(0),
        }
    }

    /// Notes a read that gave this many bytes at this offset.
    pub fn count(&self, offset: u64, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.at.store(offset + bytes as u64, Ordering::Relaxed);
    }

    /// Requests, bytes, and where the last one ended.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.requests), load(&self.bytes), load(&self.at))
    }
}
