//! The session: threads that take the kernel's requests, from the first handshake to the unmount.
//!
//! Called once by the mount's start. The number of threads and channels is set here, by the limit
//! of descriptors of the process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use rustix::process::{Resource, getrlimit};

use super::Adapter;
use super::calls::Served;
use super::host::AheadHost;
use super::reads::Reads;
use crate::fs::SourceFs;
use crate::lanes::Lanes;
use crate::read_times::ReadTimes;
use crate::trust::Trust;

/// Threads that take requests, and answer from memory: as many as can be busy at once on most
/// machines.
const THREADS: usize = 16;

/// Descriptors of the daemon beside those of its threads and of open files: standard streams, engine,
/// control socket, SOURCE.
const DESCRIPTORS: u64 = 12;

/// Descriptors a thread needs: its channel, and three for a call.
const DESCRIPTORS_EACH: u64 = 4;

/// Number of threads that take requests: fewer where the process may have few descriptors.
#[must_use]
pub fn threads() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let enough = limit.saturating_sub(DESCRIPTORS) / DESCRIPTORS_EACH;
    usize::try_from(enough).map_or(THREADS, |enough| enough.clamp(2, THREADS))
}

/// Descriptors for channels beside the first: a channel for each thread is faster.
#[must_use]
pub fn channels(threads: usize) -> usize {
    if threads == THREADS { threads - 1 } else { 0 }
}

/// Serves a mounted file system on this channel, on threads of its own, until it is unmounted.
///
/// # Errors
/// The kernel does not speak FUSE as we do, or threads cannot start.
pub fn serve(
    fs: Arc<SourceFs>,
    channel: OwnedFd,
    everyone: bool,
    room: usize,
    trust: Trust,
    times: Arc<ReadTimes>,
) -> io::Result<BackgroundSession> {
    let threads = threads();
    let lanes = Lanes::new(threads);
    let limits = fs.clone();
    let reads = Reads::start(
        room,
        lanes.clone(),
        Box::new(move || limits.engine().awaited_max()),
    )?;
    let served = Arc::new(Served {
        fs,
        reads,
        times,
        kernel: OnceLock::new(),
        trust,
    });
    AheadHost::serve(&served, &lanes);
    let adapter = Adapter {
        served: served.clone(),
        lanes,
    };
    let acl = if everyone {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let mut config = Config::default();
    config.acl = acl;
    config.n_threads = Some(threads);
    config.clone_fd = channels(threads) > 0;
    let session = Session::from_fd(adapter, channel, acl, config)?;
    // Nothing but the first handshake was served until now.
    let _ = served.kernel.set(session.notifier());
    session.spawn()
}
