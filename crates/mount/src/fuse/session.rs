//! The session: threads that take the kernel's requests, from the first handshake to the unmount.
//!
//! Called once by the mount's start. The number of threads and channels is set here, by the limit
//! of descriptors of the process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use forerun_io::Reader;
use forerun_io::served::can_clone_channel;
use fuser::{
    BackgroundSession, Config, Filesystem, InitFlags, KernelConfig, Notifier, Session, SessionACL,
};
use rustix::process::{Resource, getrlimit};

use super::calls::Served;
use super::forget::Forget;
use super::host::AheadHost;
use super::reads::Reads;
use super::{Adapter, BACKGROUND_MAX, REQUEST_BYTES_MAX};
use crate::engine::EngineOfMount;
use crate::fs::SourceFs;
use crate::fs::nodes::Node;
use crate::fs::passthrough::Passthrough;
use crate::lanes::Lanes;
use crate::mounted::Refused;
use crate::mounted::{Mounted, Serving};
use crate::open_file::OpenFile;
use crate::watch::Watch;

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

/// Serves a mounted file system on this channel, on so many threads of its own, until it is unmounted; and the way
/// to have names forgotten. The notifier is given before the first open.
///
/// # Errors
/// The kernel does not speak FUSE as we do, or threads cannot start.
pub fn serve(
    adapter: impl Filesystem,
    channel: OwnedFd,
    everyone: bool,
    threads: usize,
    begins: impl FnOnce(Notifier),
) -> io::Result<(BackgroundSession, Forget)> {
    let acl = if everyone {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let mut config = Config::default();
    config.acl = acl;
    config.n_threads = Some(threads);
    // Where the kernel or a container refuses more channels one does for all threads; the session would end
    // over it, after the mount was said to work.
    config.clone_fd = channels(threads) > 0 && can_clone_channel(&channel);
    let also = channel.try_clone()?;
    let session = Session::from_fd(adapter, channel, acl, config)?;
    let forget = Forget::new(also, session.notifier());
    // Nothing but the first handshake was served until now.
    begins(session.notifier());
    Ok((session.spawn()?, forget))
}

/// Abilities of the kernel that every mount asks for, and the sizes of requests. One that is missing is
/// only slower, or checked once more.
pub(crate) fn configure(config: &mut KernelConfig, wanted: &[InitFlags]) {
    for wanted in wanted {
        if let Err(missing) = config.add_capabilities(*wanted) {
            tracing::debug!("the kernel has no {missing:?}");
        }
    }
    let _ = config.set_max_write(REQUEST_BYTES_MAX);
    let _ = config.set_max_background(BACKGROUND_MAX);
    let _ = config.set_congestion_threshold(BACKGROUND_MAX);
}

impl Mounted for SourceFs {
    fn engine(&self) -> &EngineOfMount {
        self.engine()
    }

    fn open_files(&self) -> Vec<Arc<OpenFile>> {
        self.open_files()
    }

    fn path(&self, node: Node) -> PathBuf {
        self.nodes().path(node)
    }

    fn known(&self) -> usize {
        self.nodes().count()
    }

    fn least_needed(&self, count: usize, folders: bool) -> Vec<Node> {
        self.nodes().least_needed(count, folders)
    }

    fn place(&self, node: Node) -> Option<(Node, OsString)> {
        self.nodes().name_of(node)
    }

    fn passthrough(&self) -> &Passthrough {
        self.passthrough()
    }

    fn open_announced(&self, paths: &[&Path]) -> Vec<Result<Reader, Refused>> {
        paths.iter().map(|path| self.open_announced(path)).collect()
    }

    fn serve(
        self: Arc<Self>,
        channel: OwnedFd,
        serving: Serving,
    ) -> io::Result<(BackgroundSession, Watch)> {
        if let Some(device) = serving.device {
            self.is_mounted_as(device);
        }
        let threads = threads();
        let lanes = Lanes::new(threads);
        let reads = Reads::of(self.clone(), serving.room, lanes.clone())?;
        let served = Arc::new(Served {
            fs: self.clone(),
            reads,
            lanes: lanes.clone(),
            maps_direct: AtomicBool::new(false),
            times: serving.times,
            record: serving.record,
            kernel: OnceLock::new(),
            trust: serving.trust,
        });
        let dropping = Arc::downgrade(&served);
        served.reads.drop_by(Box::new(move |node| {
            if let Some(served) = dropping.upgrade() {
                served.drop_refused(node);
            }
        }));
        AheadHost::serve(&served, served.fs.engine().driver(), &lanes);
        let adapter = Adapter {
            served: served.clone(),
            lanes,
        };
        let (session, forget) = serve(adapter, channel, serving.everyone, threads, |kernel| {
            let _ = served.kernel.set(kernel);
        })?;
        let watch = Watch::start(self, session.notifier(), forget)?;
        Ok((session, watch))
    }
}
