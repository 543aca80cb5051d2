//! The journal: a run as text, one line an input or output, readable and replayable.
//!
//! Drivers write it while they run, the simulator replays it: a fresh engine with the settings of
//! the first line gets the inputs and must give the outputs. Text, because a difference should be
//! read by a person, and a line is compared whole.
//!
//! ```text
//! forerun-journal 1
//! settings memory_bytes=268435456 block_bytes=4096 detect=ondemand ...
//! < 0 device 0 servers 1 switching 0:8000000 rate 0:80000000
//! < 0 file 1 device 0 at 0 bytes 104857600
//! < 0 open 1 file 1
//! < 1200 read 7 reader 1 previous - head 0 first 0 count 16 fresh
//! > fetch 0 device 0 file 1 first 0 count 64 demand
//! ```
//!
//! A line with `<` is an input with its time, one with `>` an output. It does not record data
//! bytes, nor anything of the driver's own (threads, system calls).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::{FromStr, SplitAsciiWhitespace};

use crate::profile::Profile;
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Served};
use crate::settings::{Settings, SettingsError};
use crate::units::{
    Block, Bytes, DeviceId, ErrorCode, Extent, FileId, Nanos, ReadId, ReaderId, RequestId,
};

/// First line of every journal; the number is the version of the format.
pub const MAGIC: &str = "forerun-journal 1";

/// One line of a journal after its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// What entered the engine, and when.
    Input(Nanos, Input),
    /// What left it.
    Output(Output),
}

/// The two lines a journal begins with, without a line end after the second.
#[must_use]
pub fn head(settings: &Settings) -> String {
    alloc::format!("{MAGIC}\nsettings {settings}")
}

/// Why a line of a journal cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LineError {
    /// Not the first line of a journal of this version.
    Magic,
    /// The second line is not a settings line.
    NoSettings,
    /// The settings cannot be used.
    Settings(SettingsError),
    /// A word is missing; which was expected.
    Missing(&'static str),
    /// A word is not what was expected.
    Unexpected {
        /// What was expected.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// Words after the end of the entry.
    Trailing(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => write!(f, "not a journal: the first line must be {MAGIC:?}"),
            Self::NoSettings => f.write_str("the second line must begin with \"settings\""),
            Self::Settings(e) => e.fmt(f),
            Self::Missing(what) => write!(f, "the line ends where {what} should stand"),
            Self::Unexpected { expected, found } => {
                write!(f, "{found:?} where {expected} should stand")
            }
            Self::Trailing(word) => write!(f, "{word:?} after the end of the entry"),
        }
    }
}

impl core::error::Error for LineError {}

/// Reads the two lines of the head.
///
/// # Errors
/// A wrong magic line, or settings that cannot be used.
pub fn parse_head(first: &str, second: &str) -> Result<Settings, LineError> {
    if first.trim_end() != MAGIC {
        return Err(LineError::Magic);
    }
    let settings = second
        .strip_prefix("settings ")
        .ok_or(LineError::NoSettings)?;
    settings.parse().map_err(LineError::Settings)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(now, input) => write!(f, "< {now} {input}"),
            Self::Output(output) => write!(f, "> {output}"),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { device, profile } => {
                write!(
                    f,
                    "device {device} servers {} switching ",
                    profile.servers()
                )?;
                points(
                    f,
                    profile.switching_points().iter().map(|(at, v)| (at.0, v.0)),
                )?;
                f.write_str(" rate ")?;
                points(f, profile.rate_points().iter().map(|(at, v)| (at.0, *v)))
            }
            Self::File {
                file,
                device,
                location,
                bytes,
            } => {
                write!(f, "file {file} device {device} at {location} bytes {bytes}")
            }
            Self::Open { reader, file } => write!(f, "open {reader} file {file}"),
            Self::Read {
                read,
                reader,
                previous,
                head,
                first,
                count,
                fresh,
            } => {
                write!(f, "read {read} reader {reader} previous ")?;
                match previous {
                    Some(block) => write!(f, "{block}")?,
                    None => f.write_str("-")?,
                }
                let kind = if *fresh { "fresh" } else { "rest" };
                write!(f, " head {head} first {first} count {count} {kind}")
            }
            Self::Await {
                read,
                reader,
                previous,
                first,
                count,
                fresh,
            } => {
                write!(f, "await {read} reader {reader} previous ")?;
                match previous {
                    Some(block) => write!(f, "{block}")?,
                    None => f.write_str("-")?,
                }
                let kind = if *fresh { "fresh" } else { "rest" };
                write!(f, " first {first} count {count} {kind}")
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
            Self::Completed { request, outcome } => {
                write!(f, "completed {request} ")?;
                match outcome {
                    FetchOutcome::Done => f.write_str("done"),
                    FetchOutcome::Short { blocks } => write!(f, "short {blocks}"),
                    FetchOutcome::Failed { error } => write!(f, "failed {error}"),
                }
            }
            Self::Invalidate { file, bytes } => write!(f, "invalidate {file} bytes {bytes}"),
            Self::Limit { memory } => write!(f, "limit {memory}"),
            Self::Close { reader } => write!(f, "close {reader}"),
            Self::Forget { file } => write!(f, "forget {file}"),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            Self::Serve { read, served } => {
                write!(f, "serve {read} ")?;
                match served {
                    Served::Blocks { count } => write!(f, "blocks {count}"),
                    Served::Failed { error } => write!(f, "failed {error}"),
                    Served::End => f.write_str("end"),
                }
            }
            Self::Evict(extent) => write!(f, "evict {extent}"),
            Self::Idle { until: Some(until) } => write!(f, "idle {until}"),
            Self::Idle { until: None } => f.write_str("idle -"),
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "file {} first {} count {}",
            self.file, self.first, self.count
        )
    }
}

fn points(f: &mut fmt::Formatter<'_>, map: impl Iterator<Item = (u64, u64)>) -> fmt::Result {
    for (i, (at, value)) in map.enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(f, "{comma}{at}:{value}")?;
    }
    Ok(())
}

impl FromStr for Entry {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let mut words = Words(line.split_ascii_whitespace());
        let entry = match words.word("< or >")? {
            "<" => Self::Input(Nanos(words.number("a time")?), words.input()?),
            ">" => Self::Output(words.output()?),
            other => return Err(unexpected("< or >", other)),
        };
        match words.0.next() {
            Some(word) => Err(LineError::Trailing(word.into())),
            None => Ok(entry),
        }
    }
}

fn unexpected(expected: &'static str, found: &str) -> LineError {
    LineError::Unexpected {
        expected,
        found: found.into(),
    }
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, expected: &'static str) -> Result<&'a str, LineError> {
        self.0.next().ok_or(LineError::Missing(expected))
    }

    fn number<T: FromStr>(&mut self, expected: &'static str) -> Result<T, LineError> {
        let word = self.word(expected)?;
        word.parse().map_err(|_| unexpected(expected, word))
    }

    /// The number behind a keyword, as in `count 16`.
    fn field<T: FromStr>(&mut self, name: &'static str) -> Result<T, LineError> {
        self.keyword(name)?;
        self.number(name)
    }

    fn keyword(&mut self, name: &'static str) -> Result<(), LineError> {
        let word = self.word(name)?;
        if word == name {
            Ok(())
        } else {
            Err(unexpected(name, word))
        }
    }

    fn flag(&mut self, yes: &'static str, no: &'static str) -> Result<bool, LineError> {
        let word = self.word(yes)?;
        if word == yes {
            Ok(true)
        } else if word == no {
            Ok(false)
        } else {
            Err(unexpected(yes, word))
        }
    }

    fn points(&mut self) -> Result<Vec<(Bytes, u64)>, LineError> {
        const EXPECTED: &str = "position:value,..";
        let word = self.word(EXPECTED)?;
        word.split(',')
            .map(|point| {
                let (at, value) = point.split_once(':')?;
                Some((Bytes(at.parse().ok()?), value.parse().ok()?))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| unexpected(EXPECTED, word))
    }

    fn extent(&mut self) -> Result<Extent, LineError> {
        Ok(Extent {
            file: FileId(self.field("file")?),
            first: Block(self.field("first")?),
            count: self.field("count")?,
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
        Profile::new(switching, self.points()?)
            .and_then(|profile| profile.with_servers(servers))
            .map_err(|e| unexpected("a profile", &alloc::format!("{e}")))
    }

    fn previous(&mut self) -> Result<Option<Block>, LineError> {
        self.keyword("previous")?;
        match self.word("a block or -")? {
            "-" => Ok(None),
            word => match word.parse() {
                Ok(block) => Ok(Some(Block(block))),
                Err(_) => Err(unexpected("a block or -", word)),
            },
        }
    }

    fn outcome(&mut self) -> Result<FetchOutcome, LineError> {
        const EXPECTED: &str = "done, short or failed";
        Ok(match self.word(EXPECTED)? {
            "done" => FetchOutcome::Done,
            "short" => FetchOutcome::Short {
                blocks: self.number("blocks")?,
            },
            "failed" => FetchOutcome::Failed {
                error: ErrorCode(self.number("an error")?),
            },
            other => return Err(unexpected(EXPECTED, other)),
        })
    }

    fn input(&mut self) -> Result<Input, LineError> {
        const EXPECTED: &str = "an input";
        Ok(match self.word(EXPECTED)? {
            "device" => Input::Device {
                device: DeviceId(self.number("a device")?),
                profile: self.profile()?,
            },
            "file" => Input::File {
                file: FileId(self.number("a file")?),
                device: DeviceId(self.field("device")?),
                location: Bytes(self.field("at")?),
                bytes: Bytes(self.field("bytes")?),
            },
            "open" => Input::Open {
                reader: ReaderId(self.number("a reader")?),
                file: FileId(self.field("file")?),
            },
            "read" => Input::Read {
                read: ReadId(self.number("a read")?),
                reader: ReaderId(self.field("reader")?),
                previous: self.previous()?,
                head: self.field("head")?,
                first: Block(self.field("first")?),
                count: self.field("count")?,
                fresh: self.flag("fresh", "rest")?,
            },
            "await" => Input::Await {
                read: ReadId(self.number("a read")?),
                reader: ReaderId(self.field("reader")?),
                previous: self.previous()?,
                first: Block(self.field("first")?),
                count: self.field("count")?,
                fresh: self.flag("fresh", "rest")?,
            },
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
            "completed" => Input::Completed {
                request: RequestId(self.number("a request")?),
                outcome: self.outcome()?,
            },
            "invalidate" => Input::Invalidate {
                file: FileId(self.number("a file")?),
                bytes: Bytes(self.field("bytes")?),
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

    fn output(&mut self) -> Result<Output, LineError> {
        const EXPECTED: &str = "an output";
        Ok(match self.word(EXPECTED)? {
            "fetch" => Output::Fetch(Fetch {
                request: RequestId(self.number("a request")?),
                device: DeviceId(self.field("device")?),
                extent: self.extent()?,
                demand: self.flag("demand", "ahead")?,
            }),
            "serve" => Output::Serve {
                read: ReadId(self.number("a read")?),
                served: self.served()?,
            },
            "evict" => Output::Evict(self.extent()?),
            "idle" => Output::Idle {
                until: match self.word("a time or -")? {
                    "-" => None,
                    word => Some(Nanos(
                        word.parse().map_err(|_| unexpected("a time or -", word))?,
                    )),
                },
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn lines_read_back_as_they_were_written() {
        let lines = [
            "< 0 device 0 servers 1 switching 0:8000000,1000:9000000 rate 0:80000000",
            "< 0 file 1 device 0 at 0 bytes 104857600",
            "< 0 open 1 file 1",
            "< 1200 read 7 reader 1 previous - head 0 first 0 count 16 fresh",
            "< 1200 read 7 reader 1 previous 15 head 4 first 20 count 12 rest",
            "< 1200 await 8 reader 1 previous - first 32 count 64 fresh",
            "< 1200 await 8 reader 1 previous 31 first 32 count 64 rest",
            "< 1300 release 7",
            "< 1300 touch 1 first 3 count 2",
            "< 1300 hits 1 blocks 99",
            "< 1300 hint 1 first 64 count 16 more",
            "< 1300 hint 1 first 16 count 16 last",
            "< 1400 completed 0 done",
            "< 1400 completed 0 short 3",
            "< 1400 completed 0 failed 5",
            "< 1500 invalidate 1 bytes 0",
            "< 1500 limit 1048576",
            "< 1500 close 1",
            "< 1500 forget 1",
            "> fetch 0 device 0 file 1 first 0 count 64 demand",
            "> fetch 1 device 0 file 1 first 64 count 64 ahead",
            "> serve 7 blocks 16",
            "> serve 7 failed 5",
            "> serve 7 end",
            "> evict file 1 first 0 count 9",
            "> idle -",
            "> idle 17",
        ];
        for line in lines {
            assert_eq!(
                line.parse::<Entry>().map(|e| e.to_string()),
                Ok(line.to_string())
            );
        }
    }

    #[test]
    fn a_bad_line_is_answered_with_what_should_stand_there() {
        let error = |line: &str| line.parse::<Entry>().unwrap_err().to_string();
        assert_eq!(
            error("< 0 open x file 1"),
            "\"x\" where a reader should stand"
        );
        assert_eq!(error("< 0 open 1"), "the line ends where file should stand");
        assert_eq!(error("> idle - -"), "\"-\" after the end of the entry");
        assert!(
            error("< 0 device 0 servers 1 switching 0:1 rate 0:0").contains("transfer rate of 0")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_lines_panic(line in "[<>] [a-z0-9:,= -]{0,60}") {
            let _ = line.parse::<Entry>();
            let _ = parse_head(MAGIC, &line);
            let _ = line.parse::<Settings>();
        }
    }
}
