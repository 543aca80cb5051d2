//! The lines of a journal: the words of each input and output, once for writing and for reading.
//!
//! A row names a line's first word and, in their order, the [parts](super::parts) behind it, each of which is written and
//! read by the same value:
//! ```text
//! "open" => Open { reader: Plain("a reader"), file: Named("file") }        open 1 file 1
//! ```
//! Called through `Display` and `FromStr` of an [`Entry`], by drivers, by replay and by any program that takes a journal
//! for a trace. A line is taken whole or refused with the first word that is wrong; no text makes it panic. The effect
//! of an entry on an engine, and whether one follows from those before, is not looked at.

use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use super::parts::{Costs, Either, Entries, Line, Maybe, Named, Part, Plain, Rest, Seen, Whole};
use super::words::{Words, unexpected};
use super::{Entry, LineError};
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Served, Wants};
use crate::units::{Extent, Nanos};

/// Rows of a kind of line, which is called so where it is missing. A field of a tuple has its number behind `as`;
/// `with` names one that the first word tells.
macro_rules! lines {
    ($kind:ident, $expected:literal: $($verb:literal => $variant:ident {
        $($field:ident $(as $at:tt)?: $part:expr),* $(,)?
    } $(with $told:ident: $value:path)?,)*) => {
        impl Line for $kind {
            fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant { $($($at:)? $field,)* $($told: $value)? } => {
                        f.write_str($verb)?;
                        $($part.write($field, f)?;)*
                        Ok(())
                    })*
                }
            }

            fn read(words: &mut Words<'_>) -> Result<Self, LineError> {
                Ok(match words.word($expected)? {
                    $($verb => {
                        $(let $field = $part.read(words)?;)*
                        Self::$variant { $($($at:)? $field,)* $($told: $value)? }
                    })*
                    other => return Err(unexpected($expected, other)),
                })
            }
        }

        impl Display for $kind {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                self.write(f)
            }
        }
    };
}

lines! { Input, "an input":
    "device" => Device { device: Plain("a device"), profile: Costs },
    "congested" => Congested { device: Plain("a device"), is_congested: Either("begins", "ends") },
    "file" => File { file: Plain("a file"), placement: Whole, bytes: Named("bytes") },
    "open" => Open { reader: Plain("a reader"), file: Named("file") },
    "read" => Read {
        read: Plain("a read"),
        reader: Named("reader"),
        access: Seen { has_head: true },
        fresh: Either("fresh", "rest"),
    } with wants: Wants::Blocks,
    "await" => Read {
        read: Plain("a read"),
        reader: Named("reader"),
        access: Seen { has_head: false },
        fresh: Either("fresh", "rest"),
    } with wants: Wants::Presence,
    "idle" => Read {
        read: Plain("a read"),
        reader: Named("reader"),
        access: Seen { has_head: false },
        fresh: Either("fresh", "rest"),
    } with wants: Wants::Idle,
    "release" => Release { read: Plain("a read") },
    "touch" => Touch { reader: Plain("a reader"), first: Named("first"), count: Named("count") },
    "hits" => Hits { reader: Plain("a reader"), blocks: Named("blocks") },
    "hint" => Hint {
        reader: Plain("a reader"),
        first: Named("first"),
        count: Named("count"),
        more: Either("more", "last"),
    },
    "cpu" => CpuTime { reader: Plain("a reader"), time: Named("time") },
    "decide" => Decide {},
    "completed" => Completed { request: Plain("a request"), outcome: Whole },
    "invalidate" => Invalidate { file: Plain("a file"), bytes: Named("bytes") },
    "limit" => Limit { memory: Plain("a size") },
    "folder" => Folder { folder: Plain("a folder"), entries: Entries },
    "entered" => Entered {
        folder: Plain("a folder"),
        entry: Named("entry"),
        reader: Named("reader"),
        opener: Named("opener"),
    },
    "ahead" => Ahead {
        folder: Plain("a folder"),
        entry: Named("entry"),
        reader: Maybe("reader", "a reader or -"),
    },
    "close" => Close { reader: Plain("a reader") },
    "forget" => Forget { file: Plain("a file") },
}

lines! { Output, "an output":
    "fetch" => Fetch { fetch as 0: Whole },
    "cancel" => Cancel { request: Plain("a request") },
    "serve" => Serve { read: Plain("a read"), served: Whole },
    "open-ahead" => OpenAhead { folder: Plain("a folder"), entry: Named("entry") },
    "close-ahead" => CloseAhead { reader: Plain("a reader") },
}

lines! { FetchOutcome, "done, short, failed or cancelled":
    "done" => Done {},
    "short" => Short { blocks: Plain("blocks") },
    "failed" => Failed { error: Plain("an error") },
    "cancelled" => Cancelled { blocks: Rest("blocks") },
}

lines! { Served, "blocks, failed or end":
    "blocks" => Blocks { count: Plain("a count") },
    "failed" => Failed { error: Plain("an error") },
    "end" => End {},
}

impl Line for Fetch {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (request, device, extent) = (self.request, self.device, self.extent);
        write!(f, "{request} device {device} {extent}")?;
        Either("demand", "ahead").write(&self.demand, f)
    }

    fn read(words: &mut Words<'_>) -> Result<Self, LineError> {
        Ok(Self {
            request: words.number("a request")?,
            device: words.field("device")?,
            extent: Extent {
                file: words.field("file")?,
                first: words.field("first")?,
                count: words.field("count")?,
            },
            demand: Either("demand", "ahead").read(words)?,
        })
    }
}

impl Display for Extent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { file, first, count } = self;
        write!(f, "file {file} first {first} count {count}")
    }
}

impl Display for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(now, input) => write!(f, "< {now} {input}"),
            Self::Output(output) => write!(f, "> {output}"),
        }
    }
}

impl FromStr for Entry {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        const EXPECTED: &str = "< or >";
        let mut words = Words::of(line);
        let entry = match words.word(EXPECTED)? {
            "<" => Self::Input(Nanos(words.number("a time")?), Input::read(&mut words)?),
            ">" => Self::Output(Output::read(&mut words)?),
            other => return Err(unexpected(EXPECTED, other)),
        };
        words.end().map(|()| entry)
    }
}
