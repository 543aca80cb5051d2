//! Reading the journal: a line's words as the input or output they stand for.
//!
//! Called through the `FromStr` of an [`Entry`], by replay and by any program that takes a journal for a
//! trace. The mirror of [writing](super::write), word for word. A line is taken whole or refused
//! with the first word that is wrong; no text makes it panic. The effect of an entry on an engine,
//! and whether one follows from those before, is not looked at.

use alloc::sync::Arc;
use core::str::FromStr;

use super::words::{Words, three, unexpected};
use super::{Entry, LineError};
use crate::detect::Access;
use crate::next_file::Entry as FolderEntry;
use crate::profile::Profile;
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Served, Wants};
use crate::units::{
    Block, Bytes, DeviceId, ErrorCode, Extent, FileId, FolderId, Nanos, ReadId, ReaderId, RequestId,
};

impl FromStr for Entry {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        const EXPECTED: &str = "< or >";
        let mut words = Words::of(line);
        let entry = match words.word(EXPECTED)? {
            "<" => Self::Input(Nanos(words.number("a time")?), words.input()?),
            ">" => Self::Output(words.output()?),
            other => return Err(unexpected(EXPECTED, other)),
        };
        words.end().map(|()| entry)
    }
}

impl Words<'_> {
    fn input(&mut self) -> Result<Input, LineError> {
        const EXPECTED: &str = "an input";
        Ok(match self.word(EXPECTED)? {
            "device" => Input::Device {
                device: DeviceId(self.number("a device")?),
                profile: self.profile()?,
            },
            "congested" => Input::Congested {
                device: DeviceId(self.number("a device")?),
                is_congested: self.flag("begins", "ends")?,
            },
            "file" => Input::File {
                file: FileId(self.number("a file")?),
                placement: self.placement()?,
                bytes: Bytes(self.field("bytes")?),
            },
            "open" => Input::Open {
                reader: ReaderId(self.number("a reader")?),
                file: FileId(self.field("file")?),
            },
            "read" => self.read(Wants::Blocks)?,
            "await" => self.read(Wants::Presence)?,
            "idle" => self.read(Wants::Idle)?,
            "release" => Input::Release {
                read: ReadId(self.number("a read")?),
            },
            "touch" => Input::Touch {
                reader: ReaderId(self.number("a reader")?),
                first: Block(self.field("first")?),
                count: self.field("count")?,
            },
            "hits" => Input::Hits {
                reader: ReaderId(self.number("a reader")?),
                blocks: self.field("blocks")?,
            },
            "hint" => Input::Hint {
                reader: ReaderId(self.number("a reader")?),
                first: Block(self.field("first")?),
                count: self.field("count")?,
                more: self.flag("more", "last")?,
            },
            "cpu" => Input::CpuTime {
                reader: ReaderId(self.number("a reader")?),
                time: Nanos(self.field("time")?),
            },
            "decide" => Input::Decide,
            "completed" => Input::Completed {
                request: RequestId(self.number("a request")?),
                outcome: self.outcome()?,
            },
            "invalidate" => Input::Invalidate {
                file: FileId(self.number("a file")?),
                bytes: Bytes(self.field("bytes")?),
            },
            "folder" => Input::Folder {
                folder: FolderId(self.number("a folder")?),
                entries: self.folder_entries()?,
            },
            "entered" => Input::Entered {
                folder: FolderId(self.number("a folder")?),
                entry: self.field("entry")?,
                reader: ReaderId(self.field("reader")?),
                opener: self.field("opener")?,
            },
            "ahead" => Input::Ahead {
                folder: FolderId(self.number("a folder")?),
                entry: self.field("entry")?,
                reader: {
                    self.keyword("reader")?;
                    self.number_or_dash("a reader or -")?.map(ReaderId)
                },
            },
            "forget-folder" => Input::ForgetFolder {
                folder: FolderId(self.number("a folder")?),
            },
            "close" => Input::Close {
                reader: ReaderId(self.number("a reader")?),
            },
            "limit" => Input::Limit {
                memory: Bytes(self.number("a size")?),
            },
            "forget" => Input::Forget {
                file: FileId(self.number("a file")?),
            },
            other => return Err(unexpected(EXPECTED, other)),
        })
    }

    /// A read; one for presence alone has no blocks before its first.
    fn read(&mut self, wants: Wants) -> Result<Input, LineError> {
        let (read, reader) = (self.number("a read")?, self.field("reader")?);
        let previous = self.previous()?;
        let head = match wants {
            Wants::Blocks => self.field("head")?,
            Wants::Presence | Wants::Idle => 0,
        };
        let access = Access {
            block: Block(self.field("first")?),
            head,
            count: self.field("count")?,
            previous,
        };
        Ok(Input::Read {
            read: ReadId(read),
            reader: ReaderId(reader),
            access,
            fresh: self.flag("fresh", "rest")?,
            wants,
        })
    }

    /// `0:131072:4096,1:131090:0`, or a dash.
    fn folder_entries(&mut self) -> Result<Arc<[FolderEntry]>, LineError> {
        self.keyword("entries")?;
        if self.follows("-") {
            return Ok(Arc::default());
        }
        self.list("rank:inode:bytes,.. or -", |text| {
            let (name_rank, inode, bytes) = three(text)?;
            Some(FolderEntry {
                name_rank,
                inode,
                bytes,
            })
        })
    }

    fn output(&mut self) -> Result<Output, LineError> {
        const EXPECTED: &str = "an output";
        Ok(match self.word(EXPECTED)? {
            "fetch" => Output::Fetch(Fetch {
                request: RequestId(self.number("a request")?),
                device: DeviceId(self.field("device")?),
                extent: self.extent()?,
                demand: self.flag("demand", "ahead")?,
            }),
            "cancel" => Output::Cancel {
                request: RequestId(self.number("a request")?),
            },
            "serve" => Output::Serve {
                read: ReadId(self.number("a read")?),
                served: self.served()?,
            },
            "open-ahead" => Output::OpenAhead {
                folder: FolderId(self.number("a folder")?),
                entry: self.field("entry")?,
            },
            "close-ahead" => Output::CloseAhead {
                reader: ReaderId(self.number("a reader")?),
            },
            other => return Err(unexpected(EXPECTED, other)),
        })
    }

    fn profile(&mut self) -> Result<Profile, LineError> {
        let servers = self.field("servers")?;
        self.keyword("switching")?;
        let switching = self
            .points()?
            .into_iter()
            .map(|(at, v)| (at, Nanos(v)))
            .collect();
        self.keyword("rate")?;
        let rate = self.points()?;
        // Most devices have no bound of their own.
        let most = match self.is_empty() {
            true => u32::MAX,
            false => self.field("most")?,
        };
        Profile::new(switching, rate)
            .and_then(|profile| profile.with_servers(servers))
            .map(|profile| profile.with_most(most))
            .map_err(|e| unexpected("a profile", &alloc::format!("{e}")))
    }

    fn previous(&mut self) -> Result<Option<Block>, LineError> {
        self.keyword("previous")?;
        Ok(self.number_or_dash("a block or -")?.map(Block))
    }

    fn extent(&mut self) -> Result<Extent, LineError> {
        Ok(Extent {
            file: FileId(self.field("file")?),
            first: Block(self.field("first")?),
            count: self.field("count")?,
        })
    }

    fn outcome(&mut self) -> Result<FetchOutcome, LineError> {
        const EXPECTED: &str = "done, short, failed or cancelled";
        Ok(match self.word(EXPECTED)? {
            "done" => FetchOutcome::Done,
            "cancelled" => FetchOutcome::Cancelled {
                blocks: match self.is_empty() {
                    true => 0,
                    false => self.number("blocks")?,
                },
            },
            "short" => FetchOutcome::Short {
                blocks: self.number("blocks")?,
            },
            "failed" => FetchOutcome::Failed {
                error: ErrorCode(self.number("an error")?),
            },
            other => return Err(unexpected(EXPECTED, other)),
        })
    }

    fn served(&mut self) -> Result<Served, LineError> {
        const EXPECTED: &str = "blocks, failed or end";
        Ok(match self.word(EXPECTED)? {
            "blocks" => Served::Blocks {
                count: self.number("a count")?,
            },
            "failed" => Served::Failed {
                error: ErrorCode(self.number("an error")?),
            },
            "end" => Served::End,
            other => return Err(unexpected(EXPECTED, other)),
        })
    }
}
