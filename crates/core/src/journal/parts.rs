//! Parts of a journal line, each written and read by one value.
//!
//! Called by the rows of [lines](super::lines). A number stands behind the word that names it, a flag is one of two words,
//! and `-` stands for an absent value.

use alloc::sync::Arc;
use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use super::LineError;
use super::words::{Words, three, unexpected};
use crate::detect::Access;
use crate::next_file::Entry;
use crate::profile::Profile;
use crate::spec::Or;
use crate::units::Nanos;

/// Something in words of its own.
pub(super) trait Line: Sized {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;
    fn read(words: &mut Words<'_>) -> Result<Self, LineError>;
}

/// A part of a line, with the blank before it.
pub(super) trait Part<T> {
    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result;
    fn read(&self, words: &mut Words<'_>) -> Result<T, LineError>;
}

/// A number of this kind.
pub(super) struct Plain(pub(super) &'static str);

impl<T: Display + FromStr> Part<T> for Plain {
    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {value}")
    }

    fn read(&self, words: &mut Words<'_>) -> Result<T, LineError> {
        words.number(self.0)
    }
}

/// A number behind its name.
pub(super) struct Named(pub(super) &'static str);

impl<T: Display + FromStr> Part<T> for Named {
    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} {value}", self.0)
    }

    fn read(&self, words: &mut Words<'_>) -> Result<T, LineError> {
        words.field(self.0)
    }
}

/// A number of a kind behind its name, or a dash if there is none.
pub(super) struct Maybe(pub(super) &'static str, pub(super) &'static str);

impl<T: Display + FromStr> Part<Option<T>> for Maybe {
    fn write(&self, value: &Option<T>, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} {}", self.0, Or(value.as_ref(), "-"))
    }

    fn read(&self, words: &mut Words<'_>) -> Result<Option<T>, LineError> {
        words.keyword(self.0)?;
        match words.follows("-") {
            true => Ok(None),
            false => words.number(self.1).map(Some),
        }
    }
}

/// A number at the end of a line, which is left out if it is 0.
pub(super) struct Rest(pub(super) &'static str);

impl Part<u32> for Rest {
    fn write(&self, value: &u32, f: &mut Formatter<'_>) -> fmt::Result {
        match value {
            0 => Ok(()),
            _ => Plain(self.0).write(value, f),
        }
    }

    fn read(&self, words: &mut Words<'_>) -> Result<u32, LineError> {
        match words.is_empty() {
            true => Ok(0),
            false => words.number(self.0),
        }
    }
}

/// One of two words, the first for true.
pub(super) struct Either(pub(super) &'static str, pub(super) &'static str);

impl Part<bool> for Either {
    fn write(&self, value: &bool, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", if *value { self.0 } else { self.1 })
    }

    fn read(&self, words: &mut Words<'_>) -> Result<bool, LineError> {
        let Self(yes, no) = *self;
        match words.word(yes)? {
            word if word == yes => Ok(true),
            word if word == no => Ok(false),
            word => Err(unexpected(yes, word)),
        }
    }
}

/// Something that has words of its own.
pub(super) struct Whole;

impl<T: Line> Part<T> for Whole {
    fn write(&self, value: &T, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(" ")?;
        value.write(f)
    }

    fn read(&self, words: &mut Words<'_>) -> Result<T, LineError> {
        T::read(words)
    }
}

/// The blocks of a read, and where its reader stood. One for presence alone has no blocks before its first.
pub(super) struct Seen {
    pub(super) has_head: bool,
}

impl Part<Access> for Seen {
    fn write(&self, access: &Access, f: &mut Formatter<'_>) -> fmt::Result {
        Maybe("previous", "").write(&access.previous, f)?;
        if self.has_head {
            Named("head").write(&access.head, f)?;
        }
        write!(f, " first {} count {}", access.block, access.count)
    }

    fn read(&self, words: &mut Words<'_>) -> Result<Access, LineError> {
        let previous = Maybe("previous", "a block or -").read(words)?;
        let head = match self.has_head {
            true => words.field("head")?,
            false => 0,
        };
        Ok(Access {
            block: words.field("first")?,
            head,
            count: words.field("count")?,
            previous,
        })
    }
}

/// The costs of a device.
pub(super) struct Costs;

impl Part<Profile> for Costs {
    fn write(&self, profile: &Profile, f: &mut Formatter<'_>) -> fmt::Result {
        let switching = profile.switching_points().iter();
        let rate = profile.rate_points().iter();
        write!(f, " servers {} switching ", profile.servers())?;
        points(f, switching.map(|(at, value)| (at.0, value.0)))?;
        f.write_str(" rate ")?;
        points(f, rate.map(|(at, value)| (at.0, *value)))?;
        match profile.most() {
            u32::MAX => Ok(()),
            most => write!(f, " most {most}"),
        }
    }

    fn read(&self, words: &mut Words<'_>) -> Result<Profile, LineError> {
        let servers = words.field("servers")?;
        words.keyword("switching")?;
        let switching = words.points()?.into_iter();
        let switching = switching.map(|(at, value)| (at, Nanos(value))).collect();
        words.keyword("rate")?;
        let rate = words.points()?;
        // Most devices have no bound of their own.
        let most = match words.is_empty() {
            true => u32::MAX,
            false => words.field("most")?,
        };
        Profile::new(switching, rate)
            .and_then(|profile| profile.with_servers(servers))
            .map(|profile| profile.with_most(most))
            .map_err(|e| unexpected("a profile", &alloc::format!("{e}")))
    }
}

/// `0:131072:4096,1:131090:0`: rank by name, inode number, bytes; a dash if there are none.
pub(super) struct Entries;

impl Part<Arc<[Entry]>> for Entries {
    fn write(&self, entries: &Arc<[Entry]>, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(" entries ")?;
        if entries.is_empty() {
            return f.write_str("-");
        }
        list(f, entries.iter(), |f, entry| {
            write!(f, "{}:{}:{}", entry.name_rank, entry.inode, entry.bytes)
        })
    }

    fn read(&self, words: &mut Words<'_>) -> Result<Arc<[Entry]>, LineError> {
        words.keyword("entries")?;
        if words.follows("-") {
            return Ok(Arc::default());
        }
        words.list("rank:inode:bytes,.. or -", |text| {
            let (name_rank, inode, bytes) = three(text)?;
            Some(Entry {
                name_rank,
                inode,
                bytes,
            })
        })
    }
}

/// Pairs of numbers between commas.
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
