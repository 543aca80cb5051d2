//! A mounted tree of any kind, as reports, the control socket and the end of a mount see it.
//!
//! ```text
//! directory  --> fs: SourceFs      --\
//!                                     +--> serve: threads that answer the kernel
//! object store --> objects: ObjectFs -/    engine, open_files, ..: reports, limits, announcements
//! ```

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forerun_io::Reader;
use fuser::BackgroundSession;
use rustix::io::Errno;

use super::engine::EngineOfMount;
use super::fs::nodes::Node;
use super::fs::passthrough::Passthrough;
use super::fuse::forget::NODES_MAX;
use super::open_file::OpenFile;
use super::read_times::ReadTimes;
use super::record::Recorder;
use super::trust::Trust;
use super::watch::Watch;
use crate::files::plain;

/// Why reads of a file cannot be announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// A folder, link, device or pipe.
    #[error("no regular file")]
    Kind,
    /// It has `..` in it, or begins at the root.
    #[error("not a path below the mount")]
    Path,
    /// The kernel reads it from the source by itself.
    #[error("read in passthrough, which needs no announcement")]
    Passthrough,
    /// The mount has ended.
    #[error("the mount has ended")]
    Ended,
    /// The source refuses.
    #[error("{}", plain(&std::io::Error::from(*.0)))]
    Source(#[from] Errno),
}

/// How a tree is served.
#[derive(Debug)]
pub struct Serving {
    /// The device of the mount, if the kernel tells it.
    pub device: Option<(u32, u32)>,
    /// Other users may come in.
    pub everyone: bool,
    /// Bytes for answers to reads.
    pub room: usize,
    /// The kernel's belief in attributes and names.
    pub trust: Trust,
    /// Times of its reads.
    pub times: Arc<ReadTimes>,
    /// Takes down its reads.
    pub record: Option<Arc<Recorder>>,
}

/// See the [module](self).
pub trait Mounted: fmt::Debug + Send + Sync {
    /// The engine behind it.
    fn engine(&self) -> &EngineOfMount;

    /// The open files.
    fn open_files(&self) -> Vec<Arc<OpenFile>>;

    /// The path of a node below the root, for people.
    fn path(&self, node: Node) -> PathBuf;

    /// Number of names in the kernel's cache.
    fn known(&self) -> usize;

    /// Number of them beyond which the kernel is asked to forget some.
    fn known_max(&self) -> usize {
        NODES_MAX
    }

    /// So many of these nodes that are not open and have none below them, the least needed; folders among them or not.
    fn least_needed(&self, count: usize, folders: bool) -> Vec<Node>;

    /// The folder of a node, and its name there.
    fn place(&self, node: Node) -> Option<(Node, OsString)>;

    /// Which files the kernel reads by itself.
    fn passthrough(&self) -> &Passthrough;

    /// Opens files by their paths below the root, to announce reads of them: those of a store side by side. Those that
    /// cannot be opened have the reason.
    fn open_announced(&self, paths: &[&Path]) -> Vec<Result<Reader, Refused>>;

    /// Answers the kernel on this channel until it is unmounted, on threads of its own.
    ///
    /// # Errors
    /// The kernel does not speak FUSE as we do, or threads cannot start.
    fn serve(
        self: Arc<Self>,
        channel: OwnedFd,
        serving: Serving,
    ) -> io::Result<(BackgroundSession, Watch)>;
}
