//! Next file: which file will be opened next, in folders whose files are opened one by one?
//!
//! A folder of small files costs a cold open and a cold read a file, and detectors of runs inside
//! a file never see two of them. A method here looks at the order in which programs open the files
//! of [`Folder`](crate::folder::Folder)s and predicts the next ones. How many are opened ahead,
//! when, and when they are closed again is not decided here: that is the engine's stage
//! `engine/next.rs` with [its runs](crate::files_ahead).
//!
//! ```text
//! entered: 7, 8, 9  --->  Follows(run)      next(run, 9) = 10, next(run, 10) = 11, ..
//! entered: 3        --->  Breaks(run)       files opened ahead for it are closed
//! ```
//!
//! [Design note 0011](../../../docs/design/0011-next-file.md).

pub mod directory;

use alloc::boxed::Box;

use crate::folder::{Folders, Pass};
use crate::spec::{Method, Param};
use crate::units::{Bytes, FolderId};

/// The methods. One entry a method.
pub static LIST: &[Method<Box<dyn NextFile>>] = &[directory::METHOD];

/// A file of a folder, as its listing says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Its rank among the names of the folder.
    pub name_rank: u32,
    /// Its inode number: roughly where it lies on the disk.
    pub inode: u64,
    /// Its size; 0 if that is not known.
    pub bytes: u64,
}

/// An entry of a known folder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Place {
    /// The folder.
    pub folder: FolderId,
    /// Its position in the listing.
    pub entry: u32,
}

/// A program opened a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Which.
    pub place: Place,
    /// Tells programs, or threads of them, apart.
    pub opener: u64,
    /// Whether this pass over the folder had the entry before.
    pub pass: Pass,
    /// Whether the method's bookkeeping may grow.
    pub has_room: bool,
}

/// A sequence of opens that a method follows, by a number of its choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunId(pub u64);

/// Evidence of an open about the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Nothing.
    Unsure,
    /// It belongs to a run, which [`NextFile::next`] continues.
    Follows {
        /// The run.
        run: RunId,
        /// It goes on where another one ended: it begins with the window that was reached there.
        carried: bool,
    },
    /// It shows that a run is over before its end.
    Breaks(RunId),
}

/// How far a method may be followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most files of a run opened ahead.
    pub files: u32,
    /// Most bytes fetched of each part of one that programs read, as its beginning; 0 for as many as the device delivers in
    /// the time of a switch, and [`HEAD_LEAST`] at least.
    pub bytes: Bytes,
}

/// Predicts files. The rules are checked by the suite `conformance` over every entry of [`LIST`].
///
/// The engine guarantees that every open of a known folder is shown once, in order, and that
/// [`NextFile::forget`] comes before a folder is listed with other entries.
///
/// # Examples
/// After any file comes the next one of the listing, from the first open on.
///
/// ```
/// use forerun_core::folder::Folders;
/// use forerun_core::next_file::{Limits, NextFile, Opened, Place, RunId, Step};
/// use forerun_core::{Bytes, FolderId};
///
/// #[derive(Debug)]
/// struct InOrder;
///
/// impl NextFile for InOrder {
///     fn limits(&self) -> Limits {
///         Limits { files: 8, bytes: Bytes(64 << 10) }
///     }
///     fn entered(&mut self, opened: &Opened, _: &Folders) -> Step {
///         let run = RunId(u64::from(opened.place.folder.0));
///         Step::Follows { run, carried: false }
///     }
///     fn next(&self, _: RunId, after: Place, folders: &Folders) -> Option<Place> {
///         let next = Place { entry: after.entry.checked_add(1)?, ..after };
///         folders.entry(next).map(|_| next)
///     }
///     fn forget(&mut self, _: FolderId) {}
/// }
/// ```
pub trait NextFile: core::fmt::Debug + Send {
    /// How far it may be followed. It MUST always be the same.
    fn limits(&self) -> Limits;

    /// A program opened a file of a known folder.
    ///
    /// - Equal histories MUST give equal answers.
    /// - It MUST NOT follow opens in random order but by rare chance: of a large folder, one in a
    ///   hundred of them.
    fn entered(&mut self, opened: &Opened, folders: &Folders) -> Step;

    /// The file that comes after another one of a run, which it follows. A question: it MUST change
    /// nothing. The answer, if there is one,
    ///
    /// - MUST be an entry of a known folder,
    /// - MUST NOT be the file itself.
    fn next(&self, run: RunId, after: Place, folders: &Folders) -> Option<Place>;

    /// A folder is not known any more, or has other entries. Nothing of it MUST be answered later.
    fn forget(&mut self, folder: FolderId);

    /// Bytes of its bookkeeping beyond a constant and [`crate::folder::FOLDER_BYTES`] for each
    /// known folder. It MUST NOT grow by an open that [has no room](Opened::has_room).
    fn bytes(&self) -> u64 {
        0
    }
}

/// How many right predictions begin a run.
pub const CONFIRM: Param = Param {
    name: "confirm",
    summary: "right steps in a row before files are opened ahead; 2 are rare by chance and soon made",
    default: 2,
    min: 1,
    max: 64,
};

/// See [`Limits::files`].
pub const FILES: Param = Param {
    name: "files",
    summary: "most files opened ahead; only as many as were used before are ever unused, and a large \
              folder gains by each that lies beside another one",
    default: 4096,
    min: 1,
    max: 4096,
};

/// Whole small files, and 3 ms of a disk: less than going there.
pub const HEAD_LEAST: Bytes = Bytes(256 << 10);

/// See [`Limits::bytes`].
pub const BYTES: Param = Param {
    name: "bytes",
    summary: "most bytes fetched of each part of a file before it is opened; 0 for as many as the device delivers in \
              the time of a switch, and 256 KiB at least",
    default: 0,
    min: 0,
    max: 16 << 20,
};
