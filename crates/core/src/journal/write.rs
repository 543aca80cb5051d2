//! Writing the journal: each input and output as the words of its line.
//!
//! Called through the `Display` of an [`Entry`]; drivers also print single inputs and outputs. The
//! words stand in the order in which [reading](super::read) takes them, a number behind the word
//! that names it, a flag as one of two words, and `-` for an absent value.

use core::fmt::{self, Display, Formatter};

use super::Entry;
use super::places;
use crate::next_file::Entry as FolderEntry;
use crate::profile::Profile;
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Served, Wants};
use crate::spec::Or;
use crate::units::Extent;

impl Display for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(now, input) => write!(f, "< {now} {input}"),
            Self::Output(output) => write!(f, "> {output}"),
        }
    }
}

impl Display for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { device, profile } => {
                write!(f, "device {device} ")?;
                costs(f, profile)
            }
            Self::File {
                file,
                placement,
                bytes,
            } => {
                write!(f, "file {file} ")?;
                places::write(f, placement)?;
                write!(f, " bytes {bytes}")
            }
            Self::Open { reader, file } => write!(f, "open {reader} file {file}"),
            Self::Read {
                read,
                reader,
                access,
                fresh,
                wants,
            } => {
                let previous = Or(access.previous.as_ref(), "-");
                let (first, count) = (access.block, access.count);
                let kind = if *fresh { "fresh" } else { "rest" };
                let (verb, head) = match wants {
                    Wants::Blocks => ("read", Some(access.head)),
                    Wants::Presence => ("await", None),
                    Wants::Idle => ("idle", None),
                };
                write!(f, "{verb} {read} reader {reader} previous {previous} ")?;
                if let Some(head) = head {
                    write!(f, "head {head} ")?;
                }
                write!(f, "first {first} count {count} {kind}")
            }
            Self::Congested {
                device,
                is_congested,
            } => {
                let kind = if *is_congested { "begins" } else { "ends" };
                write!(f, "congested {device} {kind}")
            }
            Self::Release { read } => write!(f, "release {read}"),
            Self::Touch {
                reader,
                first,
                count,
            } => {
                write!(f, "touch {reader} first {first} count {count}")
            }
            Self::Hits { reader, blocks } => write!(f, "hits {reader} blocks {blocks}"),
            Self::Hint {
                reader,
                first,
                count,
                more,
            } => {
                let kind = if *more { "more" } else { "last" };
                write!(f, "hint {reader} first {first} count {count} {kind}")
            }
            Self::CpuTime { reader, time } => write!(f, "cpu {reader} time {time}"),
            Self::Decide => f.write_str("decide"),
            Self::Completed { request, outcome } => write!(f, "completed {request} {outcome}"),
            Self::Invalidate { file, bytes } => write!(f, "invalidate {file} bytes {bytes}"),
            Self::Limit { memory } => write!(f, "limit {memory}"),
            Self::Folder { folder, entries } => {
                write!(f, "folder {folder} entries ")?;
                folder_entries(f, entries)
            }
            Self::Entered {
                folder,
                entry,
                reader,
                opener,
            } => write!(
                f,
                "entered {folder} entry {entry} reader {reader} opener {opener}"
            ),
            Self::Ahead {
                folder,
                entry,
                reader,
            } => {
                let reader = Or(reader.as_ref(), "-");
                write!(f, "ahead {folder} entry {entry} reader {reader}")
            }
            Self::ForgetFolder { folder } => write!(f, "forget-folder {folder}"),
            Self::Close { reader } => write!(f, "close {reader}"),
            Self::Forget { file } => write!(f, "forget {file}"),
        }
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(Fetch {
                request,
                device,
                extent,
                demand,
            }) => {
                let kind = if *demand { "demand" } else { "ahead" };
                write!(f, "fetch {request} device {device} {extent} {kind}")
            }
            Self::Cancel { request } => write!(f, "cancel {request}"),
            Self::Serve { read, served } => write!(f, "serve {read} {served}"),
            Self::OpenAhead { folder, entry } => write!(f, "open-ahead {folder} entry {entry}"),
            Self::CloseAhead { reader } => write!(f, "close-ahead {reader}"),
        }
    }
}

impl Display for FetchOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Cancelled { blocks: 0 } => f.write_str("cancelled"),
            Self::Cancelled { blocks } => write!(f, "cancelled {blocks}"),
            Self::Short { blocks } => write!(f, "short {blocks}"),
            Self::Failed { error } => write!(f, "failed {error}"),
        }
    }
}

impl Display for Served {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks { count } => write!(f, "blocks {count}"),
            Self::Failed { error } => write!(f, "failed {error}"),
            Self::End => f.write_str("end"),
        }
    }
}

impl Display for Extent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, first, count } = self;
        write!(f, "file {file} first {first} count {count}")
    }
}

fn costs(f: &mut Formatter<'_>, profile: &Profile) -> fmt::Result {
    let switching = profile.switching_points().iter();
    let rate = profile.rate_points().iter();
    write!(f, "servers {} switching ", profile.servers())?;
    points(f, switching.map(|(at, value)| (at.0, value.0)))?;
    f.write_str(" rate ")?;
    points(f, rate.map(|(at, value)| (at.0, *value)))?;
    match profile.most() {
        u32::MAX => Ok(()),
        most => write!(f, " most {most}"),
    }
}

/// `0:131072:4096,1:131090:0`: rank by name, inode number, bytes; a dash if there are none.
fn folder_entries(f: &mut Formatter<'_>, entries: &[FolderEntry]) -> fmt::Result {
    if entries.is_empty() {
        return f.write_str("-");
    }
    list(f, entries, |f, entry| {
        write!(f, "{}:{}:{}", entry.name_rank, entry.inode, entry.bytes)
    })
}

pub(super) fn points(f: &mut Formatter<'_>, map: impl Iterator<Item = (u64, u64)>) -> fmt::Result {
    list(f, map, |f, (at, value)| write!(f, "{at}:{value}"))
}

/// Entries between commas.
pub(super) fn list<T>(
    f: &mut Formatter<'_>,
    entries: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, entry) in entries.into_iter().enumerate() {
        f.write_str(if i == 0 { "" } else { "," })?;
        write(f, entry)?;
    }
    Ok(())
}
