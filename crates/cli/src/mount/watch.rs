//! Looks whether open files changed in the source, and has the kernel drop what it has of them.
//!
//! A thread of its own, for as long as the mount lives. The kernel asks for attributes again by
//! itself when a program reads, but not for a mapped file; and what it reads right after a change
//! may still come from the engine's memory. Both are settled here: once in [`TTL`] every open file
//! is looked at (`statx`, a microsecond each); for one that changed the engine drops the old version first,
//! then the kernel its pages. A file that is not open needs none of this: opening it compares.
//!
//! Dropping pages waits for reads of them to end, so it must not be done by a thread that serves.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use fuser::{INodeNo, Notifier};

use super::fs::SourceFs;
use super::fuse::TTL;

/// See the [module](self). Ends when dropped.
#[derive(Debug)]
pub struct Watch {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(fs: Arc<SourceFs>, kernel: Notifier) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let builder = thread::Builder::new().name("forerun-watch".into());
        let thread = builder.spawn(move || watch(&fs, &kernel, &ended))?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end = None;
        // It may be dropping pages of a mount that is gone; the process does not wait for that.
        drop(self.thread.take());
    }
}

fn watch(fs: &SourceFs, kernel: &Notifier, ended: &Receiver<()>) {
    while ended.recv_timeout(TTL) == Err(RecvTimeoutError::Timeout) {
        for node in fs.changed() {
            tracing::debug!("{} changed", fs.nodes().path(node).display());
            if let Err(error) = kernel.inval_inode(INodeNo(node.0), 0, 0) {
                // The kernel forgot the file, or the mount is gone: nothing to drop.
                tracing::debug!("the kernel keeps node {}: {error}", node.0);
            }
        }
    }
}
