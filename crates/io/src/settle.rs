//! Which version of a file is the last: looks at the source without the engine's lock.
//!
//! Problem: `fstat` of a network or FUSE file system takes as long as its server likes, for ever if
//! it died. Under the engine's lock one such call would stop every file of the driver; at each miss it
//! would cost a call beside the read.
//!
//! Mechanism: a file is looked at by a thread that reads it, at most once in 100 ms ([`Looks`]). The
//! look is made without the lock, between two readings of the file's version number.
//! Under the lock the second reading tells whether another look was settled meanwhile. If none was,
//! this look is the later one and counts; if one was, either may be, and the look is made again.
//!
//! ```text
//! number 4 -- fstat -- lock: still 4 --> this look counts; another version: it begins, number 6
//!                      lock: 6       --> look again
//! ```

use std::io;

use forerun_core::{Bytes, FileId, Input};

use crate::catalog::Version;
use crate::deferred_inputs::DeferredInputs;
use crate::engine_state::EngineState;
use crate::source::{Identity, Source};

/// When a file is looked at for changes. A source that [cannot change](Source::identity) never is.
///
/// The bytes of one read are of one version as far as looks tell: a version that was found between the
/// beginning and the end of a read makes it begin again. One in which the file has only grown does so once: a file
/// that is appended to all the time would never be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Looks {
    /// When it is opened, and by the first read that begins 100 ms after the last look or later, or ends
    /// then after it has waited. A read returns bytes that were the file's at most 100 ms and the time of
    /// one look before; for so long after a change in place it may have bytes of both versions. The clock
    /// has steps of up to 10 ms, and so has the bound. Beside a write the bound counts from its end, and is up to
    /// 5 s longer where reads do not wait for writes: see [`Identity::young`].
    #[default]
    EachInterval,
    /// At the beginning and the end of each read: its bytes are of the one version that the file had all
    /// the while, or it fails, also where the file grows. Costs two calls of `fstat(2)`, hits included.
    EachRead,
}

impl Looks {
    /// Nanoseconds from one look to the next.
    pub(crate) fn interval(self) -> u64 {
        match self {
            Self::EachInterval => 100_000_000,
            Self::EachRead => 0,
        }
    }
}

/// A look at a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The number of its version before.
    pub(crate) before: u64,
    /// Its version then; none if it cannot change.
    pub(crate) seen: Option<Identity>,
}

/// The result of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settled {
    /// The file is as the engine believes.
    Same,
    /// It is not: the new version has begun.
    Changed,
    /// Another look was settled meanwhile.
    LookAgain,
}

impl Look {
    /// Looks now. The caller holds no lock.
    pub(crate) fn at(version: &Version, source: &dyn Source) -> io::Result<Self> {
        version.looks_now();
        let before = version.count();
        let seen = source.identity().inspect_err(|_| version.looks_again())?;
        Ok(Self { before, seen })
    }
}

impl EngineState {
    /// Settles a look. Between the two changes of the version number the old blocks go: a read that
    /// began under the old number sees that it changed, and none begins in between.
    pub(crate) fn settle(
        &mut self,
        file: FileId,
        look: Look,
        deferred: &DeferredInputs,
    ) -> Settled {
        let bytes_max = self.file_bytes_max();
        let (Some(known), Some(seen)) = (self.catalog.get(file), look.seen) else {
            return Settled::Same;
        };
        if known.identity.is_some_and(|known| seen.is_same_as(&known)) {
            return Settled::Same;
        }
        if known.version.count() != look.before {
            known.version.looks_again();
            return Settled::LookAgain;
        }
        self.drain(deferred);
        // Blocks have numbers so far.
        let bytes = seen.bytes.min(bytes_max);
        let version = self.catalog.renew(file, seen, bytes);
        self.feed(Input::Invalidate {
            file,
            bytes: Bytes(bytes),
        });
        if let Some(version) = version {
            version.begun();
        }
        Settled::Changed
    }
}
