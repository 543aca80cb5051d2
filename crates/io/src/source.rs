//! Sources: where the bytes of a file or object come from.
//!
//! A source is made when a file is opened, and shared by its readers and its fetches, so its resources
//! (a descriptor, a connection) are let go with the last of both. It names the object, says how large
//! it is, and reads ranges of it into given memory. Sources with the same [`Key`] are one file of the
//! engine and share its blocks.
//!
//! ```text
//!            file                   object of a store           generated content
//! key        device, inode          URL and version             seed, number, size
//! version    looked at, changes     part of the key: a range    never changes
//!                                   of another one is refused
//! reads      io_uring or preadv(2)  range requests, pending     made in place
//! ```
//!
//! A new source is a type that implements [`Source`]; it is opened with
//! [`Driver::open_source`](crate::Driver::open_source).

pub mod file;
pub mod generated;
pub mod pending;
pub mod remote;
pub mod tree;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

pub use file::{Identity, OpenFile, PIECES_MAX, is_young, number};
pub use generated::Generated;
pub(crate) use pending::GIVEN_UP;
pub use pending::{GiveUp, Pending};

use forerun_core::Profile;
use forerun_core::table::Frame;

use crate::arena::{Arena, Target};

/// Identity of a source's object. Equal keys mean equal bytes for as long as the [identity](Source::identity) stays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// A file or block device: its device, and the [`number`] of its inode.
    Inode(u64, u64),
    /// Content made from a seed.
    Generated {
        /// The seed.
        seed: u64,
        /// The number of the file under this seed.
        index: u64,
        /// Its size.
        bytes: u64,
    },
    /// An object of a server.
    Object {
        /// Its address.
        name: Arc<str>,
        /// Its version, as the server calls it: an ETag or a generation.
        version: Arc<str>,
    },
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inode(_, inode) => write!(f, "inode {inode}"),
            Self::Generated { index, .. } => write!(f, "generated file {index}"),
            Self::Object { name, .. } => f.write_str(name),
        }
    }
}

/// Reads a range of a source past every engine, for measurements and tests; shorter at the end of the source.
///
/// # Errors
/// Those of the source; no memory for the range.
///
/// # Examples
/// ```
/// use forerun_io::source::{Generated, fetch};
///
/// let source = Generated { seed: 1, index: 0, bytes: 10_000 };
/// assert_eq!(fetch(&source, 8_192, 4_096)?.len(), 1_808);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn fetch(source: &dyn Source, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
    let block_bytes = bytes.max(1).next_multiple_of(FETCH_UNIT);
    let arena = Arc::new(Arena::new(1, block_bytes)?);
    // SAFETY: the arena was just made, and its only frame is in this target alone.
    let mut target = unsafe { Target::new(arena, [Frame(0)]) };
    let there = source.bytes()?.saturating_sub(offset).min(bytes.into());
    let read = source.read(&mut target, offset, 0)?;
    let mut range = vec![0; read.min(usize::try_from(there).unwrap_or(usize::MAX))];
    let end = range.len();
    target.fill(0, end, |at, memory| {
        range[at..at + memory.len()].copy_from_slice(memory);
    });
    Ok(range)
}

/// The smallest block of an arena.
const FETCH_UNIT: u32 = 4096;

/// Reads one file or object.
///
/// # Examples
///
/// An object that lies in memory. A program that has its bytes elsewhere, behind a protocol of its own,
/// reads them in [`read`](Source::read).
///
/// ```
/// use std::io;
/// use std::sync::Arc;
///
/// use forerun_core::{Bytes, preset};
/// use forerun_io::arena::Target;
/// use forerun_io::source::{Key, Source};
/// use forerun_io::{Config, Driver};
///
/// #[derive(Debug)]
/// struct Text(&'static str);
///
/// impl Source for Text {
///     fn key(&self) -> Key {
///         Key::Object { name: "text".into(), version: "1".into() }
///     }
///     fn bytes(&self) -> io::Result<u64> {
///         Ok(self.0.len() as u64)
///     }
///     fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
///         let rest = self.0.as_bytes().get(offset as usize + skip..).unwrap_or_default();
///         Ok(target.copy(skip, target.bytes(), rest))
///     }
/// }
///
/// let driver = Driver::new(Config::new(preset::default().settings(Bytes(1 << 20))?))?;
/// let reader = driver.open_source(Arc::new(Text("read ahead")))?;
/// let mut word = [0; 5];
/// assert_eq!(reader.read_at(&mut word, 5)?, 5);
/// assert_eq!(&word, b"ahead");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: fmt::Debug + Send + Sync {
    /// Names its object. MUST always be the same.
    fn key(&self) -> Key;

    /// The device or server it is on: requests to it queue together, and their costs are measured together.
    /// A file has the number of its device (`st_dev`), and a block device its own (`st_rdev`); numbers of others MUST be above `1 << 32`. `None` if it
    /// takes no time. MUST always be the same.
    fn device(&self) -> Option<u64> {
        None
    }

    /// Whether a call may wait for a server, perhaps for ever: see [`served`](crate::served). MUST always be the
    /// same.
    fn is_served(&self) -> bool {
        false
    }

    /// Most requests to its device at once, where that is more than files get. MUST always be the same.
    fn requests_max(&self) -> Option<u32> {
        None
    }

    /// Prior costs of its device, until they are measured. `None`: as any.
    fn profile(&self) -> Option<Profile> {
        None
    }

    /// The open file behind it, for backends that read by descriptor and for the system's account of its place.
    fn file(&self) -> Option<&OpenFile> {
        None
    }

    /// Its size, as of now; asked when it is opened.
    ///
    /// # Errors
    /// The original error.
    fn bytes(&self) -> io::Result<u64>;

    /// When it was changed last, if its opening told; `None` where that is not known without a question.
    fn modified(&self) -> Option<SystemTime> {
        None
    }

    /// Its version, as of now; `None` if it cannot change, because another version has another [key](Source::key)
    /// and reading it fails. MUST be `None` always or never.
    ///
    /// # Errors
    /// The original error.
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(None)
    }

    /// Reads from `offset + skip` on into the target's memory from `skip` on, until it is full or the source ends.
    /// Returns where it stopped in the target: at least `skip`, and less than the target's length only at the end
    /// of the source. Called by several threads at once, for other ranges.
    ///
    /// # Errors
    /// The original error of the read. One with a number ([`raw_os_error`](io::Error::raw_os_error)) reaches the
    /// reader as it is, another one as `EIO`; of an object with its name, in a [`ReadError`](crate::error::ReadError).
    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize>;

    /// Begins the same read and returns at once; it ends later, by [`Pending::end`], on a thread of the source's.
    /// Given back it is carried out by [`read`](Source::read), on a thread of the driver's, as by default.
    fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
        Some(pending)
    }
}
