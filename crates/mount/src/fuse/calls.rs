//! Calls on the file system, with the notices to the kernel around them.
//!
//! Used by the [adapter](super), on the thread of the call.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forerun_core::{FolderId, ReaderId};
use forerun_surface::daemon::status;
use fuser::{
    Errno, FileHandle, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, Notifier,
    OpenFlags, ReplyAttr, ReplyEntry, ReplyOpen, ReplyXattr,
};

use super::host::HasAhead;
use super::reads::Reads;
use super::wire::{attr, errno, generation, nameless, shown};
use crate::fs::attributes::Attributes;
use crate::fs::listing::Listing;
use crate::fs::nodes::Node;
use crate::fs::{Found, Opened, SourceFs};
use crate::lanes::{LaneOf, Lanes};
use crate::open_file::OpenFile;
use crate::read_times::ReadTimes;
use crate::record::Recorder;
use crate::trust::Trust;

/// How often a call is made again that found no descriptor left, though those kept to save work were
/// let go of: others let go of theirs when they end.
const TRIES: u32 = 16;

/// The longest file that the kernel is given with the answer to its open: its own first request would
/// be as long, and another round trip.
const WITH_OPEN_MAX: u64 = 128 << 10;

/// Needs of calls, on any thread.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) fs: Arc<SourceFs>,
    pub(super) reads: Reads,
    pub(super) lanes: Arc<Lanes>,
    /// The kernel maps files that are read past its page cache.
    pub(super) maps_direct: AtomicBool,
    pub(super) times: Arc<ReadTimes>,
    pub(super) record: Option<Arc<Recorder>>,
    /// Notifier for the kernel's cache; set before the first open.
    pub(super) kernel: OnceLock<Notifier>,
    /// How long the kernel may cache answers.
    pub(super) trust: Trust,
}

impl HasAhead for Served {
    fn open_ahead(self: Arc<Self>, folder: FolderId, entries: Vec<u32>) {
        self.fs.open_ahead(folder, &entries);
    }

    fn close_ahead(&self, reader: ReaderId) {
        drop(self.fs.not_ahead(reader));
    }
}

impl Served {
    /// Makes a call that takes descriptors; if none is left those kept to save work go first.
    pub(super) fn with_descriptors<T>(
        &self,
        call: impl Fn(&SourceFs) -> Result<T, rustix::io::Errno>,
    ) -> Result<T, rustix::io::Errno> {
        use rustix::io::Errno;
        let mut result = call(&self.fs);
        for _ in 0..TRIES {
            if !matches!(result, Err(Errno::MFILE | Errno::NFILE)) {
                break;
            }
            if !self.fs.free_descriptors() {
                std::thread::yield_now();
            }
            result = call(&self.fs);
        }
        result
    }

    /// Asks the kernel for passthrough, if the user wants any. A tree that does not change has none: its
    /// files are not opened.
    pub(super) fn ask_for_passthrough(&self, config: &mut KernelConfig) {
        let passthrough = self.fs.passthrough();
        if !passthrough.is_possible() {
            return;
        }
        if self.trust.unchanging {
            return passthrough.end("files of an unchanging tree are not opened");
        }
        let wanted = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH);
        if wanted.is_err() || config.set_max_stack_depth(1).is_err() {
            passthrough.end("the kernel has none");
        }
    }

    /// The kernel drops its cached attributes of a file, before an answer to this thread. Unlike dropping
    /// pages this waits for nothing, but for a moment after a file was cut; a reply sent afterwards comes
    /// after it.
    fn drop_attributes(&self, node: INodeNo, thread: u32) {
        const ATTRIBUTES_ONLY: i64 = -1;
        self.notify(node, thread, ATTRIBUTES_ONLY, 0);
    }

    /// The kernel drops pages of a file that came with an error: until then it asks for each by itself,
    /// and a program that asks for them for no attributes.
    pub(super) fn drop_refused(self: &Arc<Self>, node: Node) {
        let served = self.clone();
        self.lanes.later(LaneOf::Pages(node.0), move || {
            let Some(ends) = served.fs.nodes().ends(node) else {
                return;
            };
            if let Some(pages) = ends.refused() {
                let from = i64::try_from(pages.from).unwrap_or(0);
                let bytes = i64::try_from(pages.end - pages.from).unwrap_or(0);
                served.notify(INodeNo(node.0), 0, from, bytes);
                ends.refused_dropped(pages);
            }
        });
    }

    /// The kernel drops its attributes of a file, and so many bytes of its pages from an offset on, or all.
    fn notify(&self, node: INodeNo, thread: u32, from: i64, bytes: i64) {
        let Some(kernel) = self.kernel.get() else {
            return;
        };
        let notice = || kernel.inval_inode(node, from, bytes);
        if let Err(error) = self.fs.notify(Node(node.0), thread, notice) {
            tracing::debug!("the kernel keeps its attributes of {node:?}: {error}");
        }
    }

    /// The answer to an open that failed, or to the question before it. After `ESTALE` the kernel walks the path again, and must
    /// not do so with the attributes that led here.
    pub(super) fn refusal(&self, node: INodeNo, thread: u32, error: rustix::io::Errno) -> Errno {
        if error == rustix::io::Errno::STALE {
            self.fs.refused(thread);
            self.drop_attributes(node, thread);
        }
        errno(error)
    }

    /// Answers that tell the kernel of a size wait until it has dropped zeros that would lie inside the
    /// file. That waits for reads of these pages, so no thread does it that others need.
    pub(super) fn telling(
        self: &Arc<Self>,
        node: Node,
        attributes: Attributes,
        answer: impl FnOnce(&Self, Attributes) + Send + 'static,
    ) {
        if self
            .fs
            .zeros_below(node, attributes.version.bytes)
            .is_none()
        {
            return answer(self, attributes);
        }
        let served = self.clone();
        self.lanes.later(LaneOf::Pages(node.0), move || {
            let mut attributes = attributes;
            // A notice crosses the answer, which the kernel ignores then.
            served.fs.doubt(node);
            if let Some(zeros) = served.drop_zeros(node, 0, attributes.version.bytes) {
                attributes.version.bytes = zeros;
            }
            answer(&served, attributes);
        });
    }

    /// The kernel drops pages of a file with zeros that would lie inside it at this size. Where some come
    /// as fast as they are dropped: the largest size without any.
    fn drop_zeros(&self, node: Node, thread: u32, size: u64) -> Option<u64> {
        for _ in 0..TRIES {
            let zeros = self.fs.zeros_below(node, size)?;
            let from = i64::try_from(zeros.from).unwrap_or(i64::MAX);
            self.notify(INodeNo(node.0), thread, from, 0);
            self.fs.zeros_dropped(node, zeros);
        }
        self.fs.zeros_below(node, size).map(|zeros| zeros.from)
    }

    /// Answers with the file found under a name.
    pub(super) fn lookup(
        self: &Arc<Self>,
        found: Result<Found, rustix::io::Errno>,
        reply: ReplyEntry,
    ) {
        let Trust {
            attributes,
            entries,
            negative,
            ..
        } = self.trust;
        match found {
            Ok(Found {
                node,
                attributes: now,
            }) => self.telling(node, now, move |_, now| {
                let generation = generation(&now);
                let attr = attr(&now, node.0);
                reply.entry_with_ttls(&attributes, &entries, &attr, generation);
            }),
            // Number zero: that there is none, for this long.
            Err(rustix::io::Errno::NOENT) if negative > Duration::ZERO => {
                let nothing = nameless(0, rustix::fs::FileType::Unknown);
                reply.entry_with_ttls(&negative, &negative, &nothing, Generation(0));
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Answers with attributes.
    pub(super) fn attributes(
        self: &Arc<Self>,
        node: INodeNo,
        attributes: Attributes,
        reply: ReplyAttr,
    ) {
        self.telling(Node(node.0), attributes, move |served, attributes| {
            let shown = shown(Node(node.0), &attributes);
            reply.attr(&served.trust.attributes, &attr(&attributes, shown));
        });
    }

    /// Opens a file for a thread, and answers; or gives the reply back while the file has a lease, if that may
    /// last. Of a short file whose bytes are in memory, and of which the kernel has none, they go first. With
    /// the folder that is to be listed now.
    pub(super) fn open(
        self: &Arc<Self>,
        node: INodeNo,
        thread: u32,
        asked: OpenFlags,
        reply: ReplyOpen,
        may_last: bool,
    ) -> (Option<ReplyOpen>, Option<Node>) {
        let back = |file: &File| reply.open_backing(file);
        match self.with_descriptors(|fs| fs.open_to_give(Node(node.0), thread, &back)) {
            Ok(opened) => {
                let unlisted = opened.unlisted;
                let size = opened.version.bytes;
                if self.fs.zeros_below(Node(node.0), size).is_none() {
                    self.opened(node, thread, asked, &opened, reply);
                    return (None, unlisted);
                }
                let served = self.clone();
                self.lanes.later(LaneOf::Pages(node.0), move || {
                    served.drop_zeros(Node(node.0), thread, size);
                    served.opened(node, thread, asked, &opened, reply);
                });
                (None, unlisted)
            }
            Err(error) if may_last && self.is_leased(node, error) => (Some(reply), None),
            Err(error) => {
                reply.error(self.refusal(node, thread, error));
                (None, None)
            }
        }
    }

    /// Whether a file could not be opened because of another program's lease.
    fn is_leased(&self, node: INodeNo, error: rustix::io::Errno) -> bool {
        let place = || self.fs.nodes().place(Node(node.0));
        error == rustix::io::Errno::AGAIN && place().is_ok_and(|place| !place.served)
    }

    /// Answers an open.
    fn opened(
        &self,
        node: INodeNo,
        thread: u32,
        asked: OpenFlags,
        opened: &Opened,
        reply: ReplyOpen,
    ) {
        if opened.resized {
            self.drop_attributes(node, thread);
        }
        let given = opened.first && self.gives(node, opened);
        let mut flags = FopenFlags::FOPEN_NOFLUSH;
        let handle = FileHandle(opened.handle);
        match opened.io.backing() {
            None => {
                let direct = opened.direct && self.maps_direct.load(Ordering::Relaxed);
                flags.set(FopenFlags::FOPEN_DIRECT_IO, direct);
                flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.unchanged || given);
                reply.opened(handle, flags);
            }
            Some(backing) => {
                // The kernel drops its pages of the mount: it refuses to keep them. Direct
                // reads of the source must be aligned, those of a mount need not be.
                flags.set(FopenFlags::FOPEN_DIRECT_IO, is_direct(asked));
                reply.opened_passthrough(handle, flags, backing);
            }
        }
    }

    /// Gives the kernel all bytes of a file that was opened. The file is open nowhere else, so no
    /// page of it is locked by a read of ours.
    fn gives(&self, node: INodeNo, opened: &Opened) -> bool {
        let gave = self.give(node, opened.handle);
        let right = self.fs.given(Node(node.0), opened);
        if gave && !right {
            // It changed meanwhile, and the thread that noticed has had the kernel drop its pages.
            self.notify(node, 0, 0, 0);
        }
        gave && right
    }

    fn give(&self, node: INodeNo, handle: u64) -> bool {
        let (Some(kernel), Ok(file)) = (self.kernel.get(), self.fs.open_file(handle)) else {
            return false;
        };
        let Some(reader) = file.reader() else {
            return false;
        };
        let bytes = reader.size();
        if bytes == 0 || bytes > WITH_OPEN_MAX || !reader.is_resident(0, bytes as usize) {
            return false;
        }
        let give = |data: &[u8]| {
            if let Some(ends) = file.ends() {
                ends.stores(data.len() as u64);
            }
            kernel.store(node, 0, data).is_ok()
        };
        self.reads.now(&file, bytes as usize, give) == Some(true)
    }

    /// The folder that is listed.
    pub(super) fn listing(
        &self,
        node: INodeNo,
        handle: FileHandle,
        thread: u32,
    ) -> Result<Arc<Listing>, rustix::io::Errno> {
        if !self.trust.unchanging {
            return self.fs.listed(handle.0);
        }
        self.with_descriptors(|fs| fs.standing_folder(Node(node.0), thread))
    }

    /// The file a read without a handle is of; none while it has a lease, if that may last.
    pub(super) fn standing(
        &self,
        node: INodeNo,
        thread: u32,
        may_last: bool,
    ) -> Result<Option<Arc<OpenFile>>, Errno> {
        match self.with_descriptors(|fs| fs.standing(Node(node.0), thread)) {
            Err(error) if may_last && self.is_leased(node, error) => Ok(None),
            opened => opened.map(Some).map_err(errno),
        }
    }
}

/// Tells a name from the others of its folder, mostly.
pub(crate) fn mount_point(parent: INodeNo, name: &OsStr) -> LaneOf {
    let mut hasher = DefaultHasher::new();
    (parent.0, name).hash(&mut hasher);
    LaneOf::MountPoint(hasher.finish())
}

/// Whether a thread has the right to administer the system (`CAP_SYS_ADMIN`), which a thread needs
/// to see attributes named `trusted.*`.
pub(super) fn is_privileged(thread: u32) -> bool {
    const SYS_ADMIN: u32 = 21;
    status::has(&status::of(thread), "CapEff:", SYS_ADMIN)
}

/// Whether a program opens a file past the page cache.
fn is_direct(asked: OpenFlags) -> bool {
    rustix::fs::OFlags::from_bits_retain(asked.0.cast_unsigned())
        .contains(rustix::fs::OFlags::DIRECT)
}

pub(super) fn answer_xattr(
    value: Result<Vec<u8>, rustix::io::Errno>,
    size: u32,
    reply: ReplyXattr,
) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}
