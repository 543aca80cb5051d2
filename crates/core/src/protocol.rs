//! Interface of the engine: its inputs and outputs.
//!
//! Both are closed enums, so a run is a list that can be written to a [journal](crate::journal),
//! compared, replayed and fuzzed. Drivers build [`Input`]s, [`crate::Engine`] answers with
//! [`Output`]s. An input that makes no sense (an unknown reader, a completion of nothing) is
//! counted in the ledger as refused and changes nothing: the core cannot fail.

use alloc::sync::Arc;

use crate::detect::Access;
use crate::layout::Placement;
use crate::next_file::Entry;
use crate::profile::Profile;
use crate::units::{
    Block, Bytes, DeviceId, ErrorCode, Extent, FileId, FolderId, Nanos, ReadId, ReaderId, RequestId,
};

/// Something that happened outside.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Input {
    /// The profile of a device; before the first file on it, or when it is measured anew.
    Device {
        /// The device.
        device: DeviceId,
        /// Its switching cost and transfer rate.
        profile: Profile,
    },
    /// The host's queue of requests for a device is congested from now on, or is so no longer. Nothing but the
    /// [detect methods](crate::detect::Ahead::is_congested) of kernels that ask for it follows it.
    Congested {
        /// The device, of which a profile is known.
        device: DeviceId,
        /// Whether it is.
        is_congested: bool,
    },
    /// A file (one version of it) is known from now on.
    File {
        /// Its number, not in use.
        file: FileId,
        /// Which devices hold it, and where on them. Refused where a block would lie on two.
        placement: Placement,
        /// Its size; the last block may be partial.
        bytes: Bytes,
    },
    /// A reader opened a known file.
    Open {
        /// The reader's number, not in use.
        reader: ReaderId,
        /// The file it reads.
        file: FileId,
    },
    /// A reader wants blocks, the first of which is not a plain hit.
    Read {
        /// The number under which the answer comes; not in use.
        read: ReadId,
        /// The reader.
        reader: ReaderId,
        /// The blocks, at least one, and where the reader stood; those beyond
        /// [`crate::Engine::READ_MAX`] or the end of the file are not answered.
        access: Access,
        /// True when these blocks are asked for the first time: they are then counted as hits,
        /// late hits or misses. False when a read that was answered in part comes back for more,
        /// or takes blocks whose presence was asked for.
        fresh: bool,
        /// The blocks, or that they are there.
        wants: Wants,
    },
    /// The bytes of an answered read were taken; its blocks may be given up again.
    Release {
        /// The answered read.
        read: ReadId,
    },
    /// Resident blocks were read on the hit path for the first time since the engine armed them.
    Touch {
        /// The reader.
        reader: ReaderId,
        /// First block.
        first: Block,
        /// Number of blocks.
        count: u32,
    },
    /// Blocks this reader read on the hit path since it last reported, for the ledger.
    Hits {
        /// The reader.
        reader: ReaderId,
        /// Number of blocks, up to `u32::MAX`.
        blocks: u64,
    },
    /// A reader will read these blocks, next after everything hinted before by whichever reader:
    /// there is one order. Ignored if neither a policy nor the reclaim method follows hints,
    /// refused where the file ends before or there is no room for it
    /// ([`crate::Engine::takes_hint`]).
    Hint {
        /// The reader.
        reader: ReaderId,
        /// First block.
        first: Block,
        /// How many; cut at the end of the file. None ends a list of hints and adds nothing.
        count: u32,
        /// Whether another hint follows at once: nothing is decided by this one before that.
        more: bool,
    },
    /// How much processor time the program behind a reader has used, since any beginning. A reclaim
    /// method may take it for the chance that the program had to access a stream
    /// ([`crate::Engine::uses_cpu_time`]). Time that runs backward stands still.
    CpuTime {
        /// Its reader; a program with several is told of for each.
        reader: ReaderId,
        /// How much.
        time: Nanos,
    },
    /// All that happened by now was handed in: announced reads are planned for, and requests that hang
    /// hold up others of their device no longer. Due before time goes on, whenever
    /// [`crate::Engine::is_undecided`]; and once [`crate::Engine::is_held_up`], which a driver in real
    /// time asks some times a second.
    Decide,
    /// A fetch ended.
    Completed {
        /// The fetch.
        request: RequestId,
        /// How.
        outcome: FetchOutcome,
    },
    /// The file changed: its blocks are dropped, and nothing still in flight for it is kept.
    Invalidate {
        /// The file.
        file: FileId,
        /// Its size from now on.
        bytes: Bytes,
    },
    /// Hold at most this much memory from now on: not more than the settings allow, not less than
    /// an engine needs. Blocks beyond it are given up as readers and devices let go of them.
    Limit {
        /// Bytes, bookkeeping included.
        memory: Bytes,
    },
    /// A folder was listed: these are its files, in the order of the listing. Replaces the one
    /// known of it; none, where it is gone or its number is wanted for another. Refused beyond [`crate::Engine::FOLDER_MAX`] entries; ignored where no method
    /// predicts files, and the engine may forget a folder at any time.
    Folder {
        /// The folder.
        folder: FolderId,
        /// The files in it.
        entries: Arc<[Entry]>,
    },
    /// A program opened a file of a folder. Ignored if the folder is not known (any more).
    Entered {
        /// The folder.
        folder: FolderId,
        /// Which of its entries.
        entry: u32,
        /// The program's reader, open already; one that was opened ahead for this entry is the
        /// program's from now on.
        reader: ReaderId,
        /// Tells programs, or threads of them, apart.
        opener: u64,
    },
    /// The answer to [`Output::OpenAhead`], exactly one each, also when the folder was listed anew
    /// or forgotten meanwhile.
    Ahead {
        /// The folder.
        folder: FolderId,
        /// Which of its entries.
        entry: u32,
        /// Its reader, open already; none if it could not be opened, or the driver would not.
        reader: Option<ReaderId>,
    },
    /// The reader closed the file; its unanswered reads are abandoned.
    Close {
        /// The reader.
        reader: ReaderId,
    },
    /// The file is not needed any more: drop its blocks and its number. Refused while open.
    Forget {
        /// The file.
        file: FileId,
    },
}

/// The answer a read asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wants {
    /// The blocks, pinned until they are released: as many as are there with the first.
    Blocks,
    /// That they are there; the reader will take them then, and holds nothing until then. None is
    /// pinned, or given up as one whose bytes were taken: each is waited for in turn, fetched if it
    /// is missing, and its lookahead mark counts. Answered with `End` once the last one was there
    /// (earlier ones may be gone again by then), or with `Failed`.
    Presence,
    /// The same in the gaps that other reads leave, as the idle class of ioprio: its blocks are fetched when no
    /// program waits for their device, alone and for no stream. For a verifier of whole files.
    Idle,
}

/// How a fetch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FetchOutcome {
    /// All blocks arrived.
    Done,
    /// Only the first blocks arrived, because the file ended early.
    Short {
        /// How many did; fewer than were asked for.
        blocks: u32,
    },
    /// Nothing usable arrived.
    Failed {
        /// The original error.
        error: ErrorCode,
    },
    /// Not carried out, because its file is not open any more, or after [`Output::Cancel`]. No error: a
    /// read that waits is fetched again.
    Cancelled {
        /// How many blocks had arrived; fewer than were asked for.
        blocks: u32,
    },
}

/// A fetch the driver must carry out into the frames the table names for its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fetch {
    /// The number under which it completes.
    pub request: RequestId,
    /// Where to read.
    pub device: DeviceId,
    /// The blocks to read.
    pub extent: Extent,
    /// Whether a reader waits for part of it; false for a pure prefetch.
    pub demand: bool,
}

/// Something the driver must do. A driver that passes one over leaves readers waiting, so the list is exhaustive: a match
/// shows at compile time where a new one is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Start a fetch.
    Fetch(Fetch),
    /// Give a fetch up if that can be done: its request hangs, and its memory is wanted for others. It
    /// completes as [`FetchOutcome::Cancelled`], or as it would have; emitted once a fetch.
    Cancel {
        /// The fetch.
        request: RequestId,
    },
    /// A read can go on.
    Serve {
        /// The read, to be released once its bytes were taken.
        read: ReadId,
        /// Its answer.
        served: Served,
    },
    /// Open a file ahead of the program that is expected to; [`Input::Ahead`] is the answer.
    OpenAhead {
        /// The folder.
        folder: FolderId,
        /// Which of its entries.
        entry: u32,
    },
    /// A reader opened ahead is not expected to be used: to be closed with [`Input::Close`], unless
    /// the driver gave it to a program meanwhile and says so with [`Input::Entered`].
    CloseAhead {
        /// The reader.
        reader: ReaderId,
    },
}

/// The answer to a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// The first `count` blocks asked for are resident and stay so until the read is released.
    Blocks {
        /// At least 1, at most the blocks asked for; the driver comes back for the rest.
        count: u32,
    },
    /// The first block asked for cannot be read. The read needs no release.
    Failed {
        /// The original error of the I/O.
        error: ErrorCode,
    },
    /// The file ends before the first block asked for, or all that was awaited is there. The read
    /// needs no release.
    End,
}
