//! Errors of traces: the file, the place in it, the text found, the accepted form.
//!
//! A format returns a [`Cause`]; the [reader](super::reader) adds file, position and, where the
//! beginning of the file fits another format, that format's name. The message is one line:
//!
//! ```text
//! web.spc:1: "0.000 0 2389632 16 1": spc is asu,lba,bytes,r|w,seconds; this looks like disksim
//! ```
//!
//! No file contents beyond a short piece of the line get into a message.

use core::fmt;
use std::io;

use super::format::Format;

/// The most of a line that is repeated in a message.
const SHOWN_MAX: usize = 60;

/// Where in the decompressed trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// A line, from 1.
    Line(u64),
    /// The first byte of a record, from 0.
    Byte(u64),
}

/// As it follows the name of a file.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Byte(byte) => write!(f, ": byte {byte}"),
        }
    }
}

/// The kind of error.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The file could not be read.
    Io(String),
    /// The compressed file is damaged, cut off, or of a kind that is not read.
    Compressed {
        /// gzip, zstd, xz, or another name of the format.
        kind: &'static str,
        /// The decompressor's message.
        reason: String,
    },
    /// A line or record is not of the format's form.
    Form {
        /// The line, or a piece of it.
        found: String,
        /// The form.
        accepted: &'static str,
    },
    /// A field has a value it cannot have.
    Field {
        /// The field.
        field: &'static str,
        /// Its text.
        found: String,
        /// The accepted values.
        accepted: &'static str,
    },
    /// The last record is cut off.
    Cut {
        /// Bytes there are of it.
        found: usize,
        /// Bytes it has.
        accepted: usize,
    },
    /// A line longer than any line of a trace.
    LongLine {
        /// The longest accepted.
        max: usize,
    },
    /// A request is older than one that was already given out.
    Order {
        /// Its time.
        found_ns: u64,
        /// The time of the latest one given out.
        given_ns: u64,
        /// How many requests are put in order before one is given out.
        window: usize,
    },
    /// An object is longer than the block that it is to lie in.
    Size {
        /// Its length.
        bytes: u32,
        /// The block's.
        block_bytes: u32,
    },
    /// More different names than are numbered.
    Names {
        /// The most.
        max: usize,
    },
    /// More requests than can be kept, where all of them must be.
    Long {
        /// The most.
        max: usize,
    },
    /// There is no request in it.
    Empty,
    /// There is none in the part that is wanted.
    Unwanted {
        /// Requests that are not.
        requests: u64,
        /// The least and the most of their devices, as their own log numbers them.
        devices: (u32, u32),
    },
    /// No format was named, and none fits or several do.
    Unknown {
        /// The first line, or a piece of it.
        found: String,
        /// The formats that fit and have nothing that no other has, each with the reason.
        fitting: Vec<(&'static str, &'static str)>,
    },
    /// A carriage return inside a line, which is two lines on another system.
    Return {
        /// The line, or a piece of it.
        found: String,
    },
    /// Columns were told for a format that has its own.
    Columns,
    /// It is of a format that is not read.
    Foreign(&'static str),
}

impl Cause {
    /// A line that is not of the form.
    #[must_use]
    pub fn form(found: &[u8], accepted: &'static str) -> Self {
        Self::Form {
            found: shown(found),
            accepted,
        }
    }

    /// A field with a value it cannot have.
    #[must_use]
    pub fn field(field: &'static str, found: &[u8], accepted: &'static str) -> Self {
        Self::Field {
            field,
            found: shown(found),
            accepted,
        }
    }
}

impl Cause {
    /// A line with another one in it.
    pub(super) fn carriage_return(line: &[u8]) -> Self {
        Self::Return { found: shown(line) }
    }

    /// No format fits this beginning, or several do, and none is sure.
    pub(super) fn unknown(head: &[u8], fitting: impl Iterator<Item = &'static Format>) -> Self {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Self::Unknown {
            found: shown(line.trim_ascii_end()),
            fitting: fitting.map(|format| (format.name, format.doubt)).collect(),
        }
    }
}

/// Text for a message: short, of any bytes.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned();
    if bytes.len() > SHOWN_MAX {
        text + ".."
    } else {
        text
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(reason) => f.write_str(reason),
            Self::Compressed { kind, reason } => write!(f, "{kind}: {reason}"),
            Self::Form { found, accepted } => write!(f, "{found:?}: must be {accepted}"),
            Self::Field {
                field,
                found,
                accepted,
            } => write!(f, "{field} {found:?}: must be {accepted}"),
            Self::Cut { found, accepted } => write!(
                f,
                "the file ends inside a record: {found} of {accepted} bytes are there"
            ),
            Self::LongLine { max } => write!(f, "a line must be at most {max} bytes"),
            Self::Order {
                found_ns,
                given_ns,
                window,
            } => write!(
                f,
                "time {found_ns} ns after {given_ns} ns: times may step back by at most \
                 {window} requests"
            ),
            Self::Size { bytes, block_bytes } => write!(
                f,
                "{bytes} bytes of an object: must be at most {block_bytes} (--block-bytes), or objects lie over each \
                 other"
            ),
            Self::Names { max } => write!(f, "more than {max} different names: number them"),
            Self::Long { max } => write!(f, "more than {max} requests, which must all be kept"),
            Self::Empty => f.write_str("there is no request in it"),
            Self::Unwanted {
                requests,
                devices: (least, most),
            } => write!(
                f,
                "none of its {requests} requests, to devices {least} to {most}, is in the part that --from, --until and \
                 --only-.. say"
            ),
            Self::Unknown { found, fitting } if fitting.is_empty() => write!(
                f,
                "{found:?}: it looks like none of the formats: --trace-format names one (see `forerun list formats`), \
                 --columns the columns of any other"
            ),
            Self::Unknown { found, fitting } => {
                let named = |(name, doubt): &(&str, &str)| match doubt.is_empty() {
                    true => (*name).to_owned(),
                    false => format!("{name} ({doubt})"),
                };
                let fitting: Vec<_> = fitting.iter().map(named).collect();
                write!(
                    f,
                    "{found:?}: it could be {}: --trace-format names one, --columns the columns of any other",
                    fitting.join(" or ")
                )
            }
            Self::Return { found } => write!(
                f,
                "{found:?}: a line must end in a line feed, and have no carriage return before its end"
            ),
            Self::Columns => f.write_str("it has columns of its own: --columns are those of a csv"),
            Self::Foreign(name) => f.write_str(name),
        }
    }
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError(Box<Parts>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Parts {
    file: String,
    format: Option<&'static str>,
    position: Option<Position>,
    cause: Cause,
    looks_like: Option<&'static str>,
}

impl TraceError {
    pub(super) fn new(
        file: &str,
        format: Option<&'static str>,
        position: Option<Position>,
        cause: Cause,
        looks_like: Option<&'static str>,
    ) -> Self {
        Self(Box::new(Parts {
            file: file.to_owned(),
            format,
            position,
            cause,
            looks_like,
        }))
    }

    /// A file that could not be opened.
    #[must_use]
    pub fn unread(file: &str, error: &io::Error) -> Self {
        Self::new(file, None, None, Cause::Io(words(error)), None)
    }

    /// The file's name as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Where in it; `None` before anything was read.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The kind of error.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The format that fits the beginning of the file, if it is another one.
    #[must_use]
    pub fn looks_like(&self) -> Option<&'static str> {
        self.0.looks_like
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            file,
            format,
            position,
            cause,
            looks_like,
        } = &*self.0;
        f.write_str(file)?;
        if let Some(position) = position {
            write!(f, "{position}")?;
        }
        write!(f, ": {cause}")?;
        if let Some(format) = format {
            write!(f, " (read as {format}")?;
            if let Some(other) = looks_like {
                write!(f, "; it looks like {other}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl core::error::Error for TraceError {}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        Self::Io(words(&error))
    }
}

/// The message of an error of the system without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or(&text).to_owned()
}
