//! The journal: a run as text, one line an input or output, readable and replayable.
//!
//! Drivers write it while they run, the simulator replays it: a fresh engine gets the inputs and
//! must give the outputs. Text, because a difference should be read by a person.
//!
//! ```text
//! forerun-journal 5
//! settings memory_bytes=268435456 block_bytes=4096 detect=ondemand ...
//! < 0 file 1 device 0 at 0 bytes 104857600
//! < 0 open 1 file 1
//! < 1200 read 7 reader 1 previous - head 0 first 0 count 16 fresh
//! > fetch 0 device 0 file 1 first 0 count 64 demand
//! < 1300 folder 0 entries 1:131072:4096,0:131075:0
//! ```
//!
//! A line with `<` is an input with its time, one with `>` an output; an entry of a folder is its
//! rank by name, its inode number and its bytes (0: not known). An [`Entry`] is written by
//! its `Display` and read by its `FromStr`, both from one table (`journal/lines.rs`); here stand the head and the
//! errors of a line.
//!
//! It does not record data bytes, nor anything of the driver's own (threads, system calls).

mod lines;
mod parts;
mod places;
mod words;

use alloc::string::String;
use core::fmt;

use crate::methods::Methods;
use crate::protocol::{Input, Output};
use crate::settings::{Settings, SettingsError};
use crate::units::Nanos;

/// First line of every journal; the number is the version of the format.
pub const MAGIC: &str = "forerun-journal 5";

/// The first word of a journal of any version.
const NAME: &str = "forerun-journal";

/// One line of a journal after its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An input of the engine, and its time.
    Input(Nanos, Input),
    /// An output.
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
    /// Not the first line of a journal.
    Magic,
    /// The first line of a journal of another version; which stands there.
    Version(String),
    /// The second line is not a settings line.
    NoSettings,
    /// The settings cannot be used.
    Settings(SettingsError),
    /// A word is missing; which was expected.
    Missing(&'static str),
    /// A word of another kind than expected.
    Unexpected {
        /// The kind expected.
        expected: &'static str,
        /// The word found.
        found: String,
    },
    /// Words after the end of the entry.
    Trailing(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => write!(f, "not a journal: the first line must be {MAGIC:?}"),
            Self::Version(found) => write!(
                f,
                "a journal of version {found:?}, and this program reads {MAGIC:?} only: \
                 replay it with the version that wrote it"
            ),
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

/// Reads the two lines of the head; names are looked up in these lists.
///
/// # Errors
/// A wrong magic line or version, or settings that cannot be used.
pub fn parse_head(first: &str, second: &str, methods: &Methods) -> Result<Settings, LineError> {
    if first.trim_end() != MAGIC {
        let version = first.trim_end().strip_prefix(NAME);
        let version = version.and_then(|rest| rest.strip_prefix(' '));
        return Err(version.map_or(LineError::Magic, |found| LineError::Version(found.into())));
    }
    let settings = second
        .strip_prefix("settings ")
        .ok_or(LineError::NoSettings)?;
    Settings::parse(settings, methods).map_err(LineError::Settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::SHIPPED;
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
            "< 1310 cpu 1 time 2000000",
            "< 1300 hint 1 first 16 count 16 last",
            "< 1320 congested 0 begins",
            "< 1320 congested 1 ends",
            "< 1400 completed 0 done",
            "< 1400 completed 0 short 3",
            "< 1400 completed 0 failed 5",
            "< 1500 invalidate 1 bytes 0",
            "< 1500 limit 1048576",
            "< 1500 close 1",
            "< 1500 forget 1",
            "< 1600 folder 2 entries 1:131072:4096,0:131075:0",
            "< 1600 folder 2 entries -",
            "< 1700 entered 2 entry 1 reader 4 opener 18446744073709551615",
            "< 1700 ahead 2 entry 0 reader 5",
            "< 1700 ahead 2 entry 0 reader -",
            "> fetch 0 device 0 file 1 first 0 count 64 demand",
            "> fetch 1 device 0 file 1 first 64 count 64 ahead",
            "> serve 7 blocks 16",
            "> serve 7 failed 5",
            "> serve 7 end",
            "> open-ahead 2 entry 0",
            "> close-ahead 5",
            "> cancel 7",
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
        assert_eq!(error("< 1 decide -"), "\"-\" after the end of the entry");
        assert!(
            error("< 0 device 0 servers 1 switching 0:1 rate 0:0")
                .contains("rate_bytes_per_second=0")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_lines_panic(line in "[<>] [a-z0-9:,= -]{0,60}") {
            let _ = line.parse::<Entry>();
            let _ = parse_head(MAGIC, &line, &SHIPPED);
            let _ = Settings::parse(&line, &SHIPPED);
        }
    }
}
