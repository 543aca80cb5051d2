//! Events: any input at any time, from few numbers so that they meet, or from any.

use forerun_core::detect::Access;
use forerun_core::next_file::Entry;
use forerun_core::protocol::Wants;
use forerun_core::{
    Block, Bytes, DeviceId, ErrorCode, FetchOutcome, FileId, FolderId, Input, Nanos, ReadId,
    ReaderId, RequestId,
};

use crate::draw::Draw;

/// Files, devices, and readers that read them; two to four readers a file.
pub(crate) const FILES: u32 = 4;
pub(crate) const DEVICES: u16 = 3;
pub(crate) const READERS: u32 = 12;
/// Folders, and files of a folder.
pub(crate) const FOLDERS: u32 = 5;
pub(crate) const ENTRIES: u32 = 80;
/// Reads of them at any time.
pub(crate) const READS: u32 = 24;

/// The next event.
#[derive(Debug)]
pub(crate) enum Event {
    /// This input, whatever the engine makes of it.
    Input(Input),
    /// One of the fetches under way ends.
    Ends(usize, FetchOutcome),
    /// The bytes of one of the answered reads were taken.
    Taken(usize),
    /// So many readers come, each for a block of its own in the same file.
    Crowd(FileId, u32),
    /// A program opens files of a folder, from one on by a stride.
    Walk {
        folder: FolderId,
        from: u32,
        stride: u32,
        files: u32,
        opener: u64,
        /// Whether it gets the reader that was opened ahead.
        takes: bool,
    },
    /// One of the files asked for was opened ahead; or none could be.
    Opened(usize, bool),
}

fn file(draw: &mut Draw<'_>) -> FileId {
    FileId(draw.below(FILES as usize) as u32)
}

fn reader(draw: &mut Draw<'_>) -> ReaderId {
    ReaderId(draw.below(READERS as usize) as u32)
}

fn device(draw: &mut Draw<'_>) -> DeviceId {
    DeviceId(draw.below(DEVICES.into()) as u16)
}

fn folder(draw: &mut Draw<'_>) -> FolderId {
    FolderId(draw.below(FOLDERS as usize) as u32)
}

/// A listing: names and inodes in any order, mostly the same one for a folder.
fn listing(draw: &mut Draw<'_>) -> Input {
    let folder = folder(draw);
    let own = u32::from(draw.below(8) == 0) * u32::from(draw.byte()) + folder.0;
    let count = match draw.below(60) {
        0 => draw.word() % (1 << 17),
        1 => draw.word() % 4,
        _ => 7 + own * 31 % ENTRIES,
    };
    let entry = |at: u32| Entry {
        name_rank: at.wrapping_mul(37 + own) % (count + 1),
        inode: u64::from(at.wrapping_mul(13 + own) % (count + 1)),
        bytes: u64::from(at % 5 * 3000),
    };
    let entries = (0..count).map(entry).collect();
    Input::Folder { folder, entries }
}

fn walk(draw: &mut Draw<'_>) -> Event {
    Event::Walk {
        folder: folder(draw),
        from: u32::from(draw.byte()) % ENTRIES,
        stride: [1, 1, 1, 0, 2, 29][draw.below(6)],
        files: u32::from(draw.byte()) % ENTRIES,
        opener: draw.below(3) as u64,
        takes: draw.below(4) > 0,
    }
}

/// Random events of folders.
fn folders(draw: &mut Draw<'_>) -> Input {
    let (folder, entry) = (folder(draw), u32::from(draw.byte()) % ENTRIES);
    match draw.below(4) {
        0 => Input::Folder {
            folder,
            entries: Default::default(),
        },
        1 => Input::Ahead {
            folder,
            entry,
            reader: draw.flag().then(|| reader(draw)),
        },
        2 => Input::Entered {
            folder: FolderId(draw.word()),
            entry: draw.word(),
            reader: reader(draw),
            opener: draw.any(),
        },
        _ => Input::Entered {
            folder,
            entry,
            reader: reader(draw),
            opener: draw.any(),
        },
    }
}

fn outcome(draw: &mut Draw<'_>) -> FetchOutcome {
    match draw.below(7) {
        0 => FetchOutcome::Short {
            blocks: draw.short(),
        },
        1 => FetchOutcome::Failed {
            error: ErrorCode(draw.byte().into()),
        },
        2 => FetchOutcome::Cancelled {
            blocks: draw.short() % 40,
        },
        _ => FetchOutcome::Done,
    }
}

/// A block and how many, and the block before: in a row, or not.
fn place(draw: &mut Draw<'_>) -> (Option<Block>, Block, u32) {
    let first = draw.short() % 700;
    let (previous, count) = match draw.below(4) {
        0 => (Some(draw.short()), draw.short()),
        1 => (None, 1),
        _ => (first.checked_sub(1), u32::from(draw.byte()) % 40 + 1),
    };
    (previous.map(Block), Block(first), count)
}

fn read(draw: &mut Draw<'_>) -> Input {
    let (previous, first, count) = place(draw);
    Input::Read {
        read: ReadId(draw.below(READS as usize) as u32),
        reader: reader(draw),
        access: Access::new(first, count)
            .with_head(u32::from(draw.byte()) / 8)
            .with_previous(previous),
        fresh: draw.flag(),
        wants: Wants::Blocks,
    }
}

fn awaiting(draw: &mut Draw<'_>) -> Input {
    let (previous, first, count) = place(draw);
    Input::Read {
        read: ReadId(draw.below(READS as usize) as u32),
        reader: reader(draw),
        access: Access::new(first, count).with_previous(previous),
        fresh: draw.flag(),
        wants: match count % 4 {
            0 => Wants::Idle,
            _ => Wants::Presence,
        },
    }
}

/// Numbers as large as they get.
fn far(draw: &mut Draw<'_>) -> Input {
    let (reader, first, count) = (reader(draw), Block(draw.word()), draw.word());
    match draw.below(4) {
        0 => Input::Touch {
            reader,
            first,
            count,
        },
        1 => Input::Hint {
            reader,
            first,
            count,
            more: draw.flag(),
        },
        2 => Input::Hits {
            reader: ReaderId(draw.word()),
            blocks: u64::from(count),
        },
        _ => Input::Read {
            read: ReadId(draw.word()),
            reader,
            access: Access::new(first, count)
                .with_previous(draw.flag().then(|| Block(draw.word())))
                .with_head(draw.word()),
            fresh: draw.flag(),
            wants: Wants::Blocks,
        },
    }
}

/// The next event, for an engine with blocks of this size.
pub(crate) fn event(draw: &mut Draw<'_>, block_bytes: u64) -> Event {
    let input = match draw.below(45) {
        0..=6 => read(draw),
        7..=8 => awaiting(draw),
        9..=13 => return Event::Ends(draw.short() as usize, outcome(draw)),
        14..=17 => return Event::Taken(draw.short() as usize),
        18 => return Event::Crowd(file(draw), u32::from(draw.byte()).pow(2) / 128),
        19 => Input::Device {
            device: device(draw),
            profile: draw.profile(),
        },
        20 => Input::File {
            file: FileId(draw.below(FILES as usize + 1) as u32),
            placement: draw.placement(DEVICES, block_bytes),
            bytes: Bytes(draw.any()),
        },
        21 => Input::Open {
            reader: reader(draw),
            file: file(draw),
        },
        22 | 23 => {
            let (_, first, count) = place(draw);
            Input::Hint {
                reader: reader(draw),
                first,
                count: count % 64,
                more: draw.flag(),
            }
        }
        24 => {
            let (_, first, count) = place(draw);
            Input::Touch {
                reader: reader(draw),
                first,
                count,
            }
        }
        25 => Input::Invalidate {
            file: file(draw),
            bytes: Bytes(draw.any() % (1 << 24)),
        },
        26 => Input::Limit {
            memory: Bytes(draw.any()),
        },
        27 => Input::Close {
            reader: reader(draw),
        },
        28 => Input::Forget { file: file(draw) },
        29 => Input::Completed {
            request: RequestId(draw.word()),
            outcome: outcome(draw),
        },
        30 => Input::Release {
            read: ReadId(draw.word()),
        },
        31 | 32 => Input::Decide,
        44 if draw.flag() => Input::Congested {
            device: device(draw),
            is_congested: draw.flag(),
        },
        44 | 45 => Input::CpuTime {
            reader: reader(draw),
            time: Nanos(draw.any()),
        },
        34 | 35 => listing(draw),
        36 | 37 => folders(draw),
        33 | 38 | 39 => return walk(draw),
        40..=43 => return Event::Opened(draw.short() as usize, draw.below(5) > 0),
        _ => far(draw),
    };
    Event::Input(input)
}
