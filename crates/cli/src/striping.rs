//! The array a user describes: `strip=64KiB,disks=4`, with the layout behind it if it is another
//! than RAID-0.
//!
//! Parsed by `args` for `--stripe`, and as a part of `--emulate`. The layouts, and the strips they
//! take, come from the core's list.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use forerun_core::Bytes;
use forerun_core::layout::{LIST, Layout, raid0};
use forerun_core::spec::{Choice, Method};

use crate::quantity::{self, QuantityError};

/// Disks of an array: as many as a hinted method plans for, and each is a thread when it is
/// emulated.
pub const DISKS: RangeInclusive<u16> = 2..=64;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Striping {
    level: &'static Method<Box<dyn Layout>>,
    strip: Bytes,
    disks: u16,
}

/// The parts given so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    strip: Option<Bytes>,
    disks: Option<u16>,
    level: Option<&'static Method<Box<dyn Layout>>>,
}

/// Why it is no array.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StripingError {
    /// A word there is not.
    #[error(
        "{word:?} is not of the form strip=64KiB,disks=4 with one of {} behind it",
        levels()
    )]
    Form {
        /// The word.
        word: String,
    },
    /// One was given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// One that must be given is missing.
    #[error("{0} is missing: an array needs both, as in strip=64KiB,disks=4")]
    Missing(&'static str),
    /// A number of disks that cannot be read, or out of range.
    #[error("disks={0}: must be a whole number from {min} to {max}", min = DISKS.start(), max = DISKS.end())]
    Disks(String),
    /// A strip that cuts blocks, or is out of the layout's range.
    #[error(
        "strip={given}: must be a multiple of 4KiB, from 4KiB to {max}",
        given = quantity::size(*strip), max = quantity::size(Bytes(raid0::STRIP_MAX))
    )]
    Strip {
        /// The given strip.
        strip: Bytes,
    },
    /// A layout that is not made of so many.
    #[error(
        "{level} of {disks} disks: there is none; raid10 needs an even number, raid6 at least 3"
    )]
    Count {
        /// The layout.
        level: &'static str,
        /// How many.
        disks: u16,
    },
    /// A value that cannot be read.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

/// Blocks are so long where the user cannot say otherwise, and the page of every machine divides
/// them.
const BLOCK_BYTES: u64 = 4096;

fn striped() -> impl Iterator<Item = &'static Method<Box<dyn Layout>>> {
    let is_striped = |method: &&Method<_>| !method.spec.params.is_empty();
    LIST.iter().filter(is_striped)
}

fn levels() -> String {
    let names: Vec<_> = striped().map(|method| method.spec.name).collect();
    names.join(", ")
}

impl Parts {
    /// Takes a part, if it is one of an array.
    ///
    /// # Errors
    /// It is, and makes no sense.
    pub fn take(&mut self, part: &str) -> Result<bool, StripingError> {
        fn set<T>(name: &'static str, slot: &mut Option<T>, value: T) -> Result<(), StripingError> {
            match slot.replace(value) {
                None => Ok(()),
                Some(_) => Err(StripingError::Twice(name)),
            }
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name.trim() {
            "strip" => set("strip", &mut self.strip, quantity::parse_size(value)?)?,
            "disks" => set("disks", &mut self.disks, parse_disks(value)?)?,
            level => match striped().find(|method| method.spec.name == level) {
                Some(method) => set("the layout", &mut self.level, method)?,
                None => return Ok(false),
            },
        }
        Ok(true)
    }

    /// The array, if anything of one was given.
    ///
    /// # Errors
    /// Half of one, or one there is not.
    pub fn finish(self) -> Result<Option<Striping>, StripingError> {
        if self.strip.is_none() && self.disks.is_none() && self.level.is_none() {
            return Ok(None);
        }
        let array = Striping {
            level: self.level.unwrap_or(&raid0::METHOD),
            strip: self.strip.ok_or(StripingError::Missing("strip"))?,
            disks: self.disks.ok_or(StripingError::Missing("disks"))?,
        };
        array.check().map(|()| Some(array))
    }
}

impl Striping {
    fn check(&self) -> Result<(), StripingError> {
        let strip = self.strip;
        let is_whole = strip.0.is_multiple_of(BLOCK_BYTES) && strip.0 >= BLOCK_BYTES;
        let choice = self.choice().filter(|_| is_whole);
        let choice = choice.ok_or(StripingError::Strip { strip })?;
        let accepts = |layout: Box<dyn Layout>| layout.accepts(self.disks.into());
        match accepts(choice.build()) {
            true => Ok(()),
            false => Err(StripingError::Count {
                level: self.level.spec.name,
                disks: self.disks,
            }),
        }
    }

    fn choice(&self) -> Option<Choice<Box<dyn Layout>>> {
        let choice = Choice::of(self.level);
        choice.with("strip_bytes", self.strip.0).ok()
    }

    /// Number of disks.
    #[must_use]
    pub fn disks(&self) -> u16 {
        self.disks
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> Choice<Box<dyn Layout>> {
        // Checked when it was made, so the default is never taken.
        self.choice().unwrap_or_else(|| Choice::of(self.level))
    }

    /// As the runtime takes it.
    #[must_use]
    pub fn of_driver(&self) -> forerun_io::Striping {
        forerun_io::Striping {
            layout: self.layout(),
            disks: self.disks,
        }
    }
}

fn parse_disks(text: &str) -> Result<u16, StripingError> {
    let disks = text.trim().parse().ok();
    let disks = disks.filter(|disks| DISKS.contains(disks));
    disks.ok_or_else(|| StripingError::Disks(text.to_owned()))
}

impl FromStr for Striping {
    type Err = StripingError;

    fn from_str(text: &str) -> Result<Self, StripingError> {
        let mut parts = Parts::default();
        for part in text.split(',') {
            if !parts.take(part)? {
                return Err(StripingError::Form { word: part.into() });
            }
        }
        parts.finish()?.ok_or(StripingError::Missing("strip"))
    }
}

impl fmt::Display for Striping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strip = quantity::size(self.strip);
        write!(
            f,
            "disks={},strip={strip},{}",
            self.disks, self.level.spec.name
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_array_is_given_whole_and_in_range() {
        let read = |text: &str| text.parse::<Striping>().map_err(|e| e.to_string());
        let four = read("strip=64KiB,disks=4").unwrap();
        assert_eq!(four.to_string(), "disks=4,strip=64KiB,raid0");
        assert_eq!(
            read("raid5, disks=4, strip=64KiB")
                .unwrap()
                .layout()
                .spec()
                .name,
            "raid5"
        );
        for (text, error) in [
            ("", "\"\" is not of the form"),
            ("strip=64KiB", "disks is missing"),
            ("disks=4,raid5", "strip is missing"),
            ("disks=4,disks=4", "disks is given twice"),
            (
                "disks=1,strip=64KiB",
                "disks=1: must be a whole number from 2 to 64",
            ),
            ("disks=65,strip=64KiB", "disks=65: must"),
            (
                "disks=4,strip=6000B",
                "strip=6000B: must be a multiple of 4KiB, from 4KiB to 1GiB",
            ),
            ("disks=4,strip=2GiB", "strip=2GiB: must"),
            ("disks=4,strip=0B", "strip=0B: must"),
            (
                "disks=3,strip=64KiB,raid10",
                "raid10 of 3 disks: there is none",
            ),
            ("disks=2,strip=64KiB,raid6", "raid6 of 2 disks"),
            ("disks=4,strip=64KiB,raid4", "\"raid4\" is not of the form"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|(strip|disks|raid)[=,0-9a-zA-Z./]*") {
            if let Ok(array) = text.parse::<Striping>() {
                prop_assert_eq!(array.to_string().parse(), Ok(array));
            }
        }
    }
}
