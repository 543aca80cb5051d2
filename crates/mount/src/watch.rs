//! The watch: finds open files that changed in the source, and has the kernel drop its cache of
//! them.
//!
//! Problem: the kernel asks for attributes again when a program reads, but not for a mapped file;
//! and its reads right after a change may still come from the engine's memory. Mechanism: once in
//! [`TTL`] every open file is checked (`statx`, a microsecond each); for one that changed the
//! engine drops the old version first, then the kernel its pages. A file that is not open needs no
//! check: the next open compares.
//!
//! A check waits for the server of the file system if it has one, and dropping pages waits for
//! reads of them to end. So each device has a thread of its own for each pass; a device that does
//! not answer has no second pass, and delays no other.

use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fuser::{INodeNo, Notifier};

use super::fs::SourceFs;
use super::fs::nodes::Held;
use super::fuse::forget::{Forget, has_surplus};
use super::lock;
use super::trust::TTL;

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
    pub fn start(fs: Arc<SourceFs>, kernel: Notifier, forget: Forget) -> std::io::Result<Self> {
        let (under_way, forget) = (Arc::default(), Arc::new(forget));
        Self::every(TTL, move || {
            close_idle(&fs);
            forget_surplus(&fs, &forget, &under_way);
            pass(&fs, &kernel, &under_way);
        })
    }

    /// Does this once in a while.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn every(time: Duration, pass: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let builder = thread::Builder::new().name("forerun-watch".into());
        let thread = builder.spawn(move || {
            while ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                pass();
            }
        })?;
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

type Device = (u32, u32);

/// In place of a device: the thread that has names forgotten.
const NAMES: Device = (u32::MAX, u32::MAX);

fn pass(fs: &Arc<SourceFs>, kernel: &Notifier, under_way: &Arc<Mutex<HashSet<Device>>>) {
    for (device, held) in fs.held() {
        if !lock(under_way).insert(device) {
            continue;
        }
        let (fs, kernel, of_pass) = (fs.clone(), kernel.clone(), under_way.clone());
        let pass = thread::Builder::new().name("forerun-look".into());
        let pass = pass.spawn(move || {
            look(&fs, &kernel, &held);
            lock(&of_pass).remove(&device);
        });
        if let Err(error) = pass {
            tracing::warn!("open files are not looked at: {error}");
            lock(under_way).remove(&device);
        }
    }
}

/// Closes unused files that were opened in advance, on a thread that may wait for a server.
fn close_idle(fs: &Arc<SourceFs>) {
    let ahead = fs.idle_ahead();
    if ahead.is_empty() && !fs.has_idle() {
        return;
    }
    let fs = fs.clone();
    let thread = thread::Builder::new().name("forerun-close".into());
    let close = thread.spawn(move || {
        drop(ahead);
        fs.close_idle();
    });
    if let Err(error) = close {
        tracing::warn!("unused files stay open: {error}");
    }
}

/// Has the kernel forget names beyond those there is memory for. That may wait for listings of their folders, so
/// it has a thread.
fn forget_surplus(
    fs: &Arc<SourceFs>,
    forget: &Arc<Forget>,
    under_way: &Arc<Mutex<HashSet<Device>>>,
) {
    if !has_surplus(&**fs) || !lock(under_way).insert(NAMES) {
        return;
    }
    let (fs, forget, of_pass) = (fs.clone(), forget.clone(), under_way.clone());
    let thread = thread::Builder::new().name("forerun-forget".into());
    let forget = thread.spawn(move || {
        forget.surplus(&*fs);
        lock(&of_pass).remove(&NAMES);
    });
    if let Err(error) = forget {
        tracing::warn!("the kernel keeps names: {error}");
        lock(under_way).remove(&NAMES);
    }
}

/// One pass over the open files of a device.
fn look(fs: &SourceFs, kernel: &Notifier, held: &[Held]) {
    for node in fs.changed(held) {
        tracing::debug!("{} changed", fs.nodes().path(node).display());
        let drop = || kernel.inval_inode(INodeNo(node.0), 0, 0);
        if let Err(error) = fs.notify(node, 0, drop) {
            // The kernel forgot the file, or the mount is gone: nothing to drop.
            tracing::debug!("the kernel keeps node {}: {error}", node.0);
        }
    }
}
