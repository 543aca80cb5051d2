//! Parameters of an engine: plain data, checked once.
//!
//! A [preset](crate::preset) gives the composition, the user the memory. Written into the first
//! line of a journal and read back from it, so a replay needs nothing else.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use crate::hinted::policy::Policy;
use crate::measure::Measure;
use crate::methods::{Methods, NONE};
use crate::spec::{Choice, ChoiceError, Or, OutOfRange};
use crate::table::Table;
use crate::units::Bytes;
use crate::{depth, detect, dispatch, next_file, reclaim, shape};

/// Everything that decides how an engine behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Hard bound on blocks, in-flight buffers and bookkeeping together; from
    /// [`Table::FRAMES_MIN`] to [`Table::FRAMES_MAX`] blocks with their bookkeeping.
    pub memory: Bytes,
    /// Unit of caching; a power of two from 512 to 1 MiB. 4 KiB, a page, by default.
    pub block_bytes: u32,
    /// How patterns are found.
    pub detect: Choice<Box<dyn detect::Detect>>,
    /// How far to fetch ahead.
    pub depth: Choice<Box<dyn depth::Depth>>,
    /// Where windows end on striped arrays.
    pub shape: Choice<Box<dyn shape::Shape>>,
    /// In which order devices get their fetches.
    pub dispatch: Choice<Box<dyn dispatch::Dispatch>>,
    /// The reclaim method.
    pub reclaim: Choice<Box<dyn reclaim::Reclaim>>,
    /// The method for hints of coming reads; none ignores them.
    pub hinted: Option<Choice<Box<dyn Policy>>>,
    /// Longest single fetch, from one block to 1 GiB. Longer windows become several fetches, queued
    /// back to back.
    pub request_max: Bytes,
    /// Fetches a device is given at once, from 1 to 65,536, the largest batch of a hinted method;
    /// further ones wait in the engine's queue for it.
    pub in_flight_max: u32,
    /// How much of the memory, in per cent from 1 to 100, all streams together may hold unread.
    /// 100 = no bound of our own, as in Linux.
    pub unread_percent: u8,
    /// Which files to open ahead of programs that walk folders; none opens none.
    pub next_file: Option<Choice<Box<dyn next_file::NextFile>>>,
    /// Where the costs of devices come from.
    pub measure: Choice<Box<dyn Measure>>,
}

/// Why settings were refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// Not enough memory to work with, or more than the table can number.
    Memory {
        /// The value given.
        given: Bytes,
        /// The least that works with these blocks.
        minimum: Bytes,
        /// The most.
        maximum: Bytes,
    },
    /// A block size that is not a power of two from 512 to 1 MiB.
    BlockBytes(u32),
    /// Another number outside its range.
    Range(OutOfRange),
    /// A method that does not exist or takes other parameters.
    Choice(ChoiceError),
    /// A settings line that cannot be read.
    Line(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory {
                given,
                minimum,
                maximum,
            } => {
                let (side, bound) = match given < minimum {
                    true => ("least", minimum),
                    false => ("most", maximum),
                };
                write!(
                    f,
                    "memory of {given} bytes: must be at {side} {bound} bytes"
                )
            }
            Self::BlockBytes(b) => {
                write!(
                    f,
                    "block size of {b} bytes: must be a power of two from 512 to 1048576"
                )
            }
            Self::Range(range) => range.fmt(f),
            Self::Choice(e) => e.fmt(f),
            Self::Line(what) => write!(f, "settings line: {what}"),
        }
    }
}

impl core::error::Error for SettingsError {}

impl From<ChoiceError> for SettingsError {
    fn from(e: ChoiceError) -> Self {
        Self::Choice(e)
    }
}

impl Settings {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !self.block_bytes.is_power_of_two() || !(512..=1 << 20).contains(&self.block_bytes) {
            return Err(SettingsError::BlockBytes(self.block_bytes));
        }
        let request_min = u64::from(self.block_bytes);
        let ranges = [
            (
                "request_max_bytes",
                self.request_max.0,
                request_min..=1 << 30,
            ),
            ("in_flight_max", self.in_flight_max.into(), 1..=1 << 16),
            ("unread_percent", self.unread_percent.into(), 1..=100),
        ];
        for (name, value, range) in ranges {
            OutOfRange::check(name, value, range).map_err(SettingsError::Range)?;
        }
        let ends = [Table::FRAMES_MIN, Table::FRAMES_MAX];
        let [minimum, maximum] = ends.map(|frames| Table::memory_for(frames, self.block_bytes));
        match (minimum..=maximum).contains(&self.memory) {
            true => Ok(()),
            false => Err(SettingsError::Memory {
                given: self.memory,
                minimum,
                maximum,
            }),
        }
    }

    /// How many blocks fit the memory once the bookkeeping is paid.
    #[must_use]
    pub fn frames(&self) -> u32 {
        Table::frames_in(self.memory, self.block_bytes)
    }
}

impl fmt::Display for Settings {
    /// One line that [`Settings::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory_bytes={} block_bytes={} detect={} depth={} dispatch={} reclaim={} request_max_bytes={} \
             in_flight_max={} unread_percent={} hinted={}",
            self.memory,
            self.block_bytes,
            self.detect,
            self.depth,
            self.dispatch,
            self.reclaim,
            self.request_max,
            self.in_flight_max,
            self.unread_percent,
            Or(self.hinted.as_ref(), NONE),
        )?;
        write!(
            f,
            " next_file={} measure={} shape={}",
            Or(self.next_file.as_ref(), NONE),
            self.measure,
            self.shape
        )
    }
}

impl Settings {
    /// Reads the line that `Display` writes; names are looked up in these lists.
    ///
    /// # Errors
    /// A field that is missing or cannot be read, a name that is in no list, a value out of range.
    pub fn parse(line: &str, methods: &Methods) -> Result<Self, SettingsError> {
        let mut fields = line.split_ascii_whitespace();
        fn field<'a>(
            fields: &mut impl Iterator<Item = &'a str>,
            name: &str,
        ) -> Result<&'a str, SettingsError> {
            let field = fields.next().unwrap_or_default();
            field
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
                .ok_or_else(|| SettingsError::Line([name, "= expected"].concat()))
        }
        let mut next = |name: &str| field(&mut fields, name);
        fn value<T: FromStr>(name: &str, text: &str) -> Result<T, SettingsError> {
            text.parse().map_err(|_| {
                SettingsError::Line([name, "=", text, " cannot be read"].concat().to_string())
            })
        }
        let settings = Self {
            memory: Bytes(value("memory_bytes", next("memory_bytes")?)?),
            block_bytes: value("block_bytes", next("block_bytes")?)?,
            detect: Choice::parse("detect", methods.detect, next("detect")?)?,
            depth: Choice::parse("depth", methods.depth, next("depth")?)?,
            dispatch: Choice::parse("dispatch", methods.dispatch, next("dispatch")?)?,
            reclaim: Choice::parse("reclaim", methods.reclaim, next("reclaim")?)?,
            request_max: Bytes(value("request_max_bytes", next("request_max_bytes")?)?),
            in_flight_max: value("in_flight_max", next("in_flight_max")?)?,
            unread_percent: value("unread_percent", next("unread_percent")?)?,
            hinted: methods.hinted(next("hinted")?)?,
            next_file: methods.next_file(next("next_file")?)?,
            measure: Choice::parse("measure", methods.measure, next("measure")?)?,
            shape: Choice::parse("shape", methods.shape, next("shape")?)?,
        };
        settings.check()?;
        Ok(settings)
    }
}
