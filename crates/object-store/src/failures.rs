//! Errors of fetches, kept for the reads they belong to.
//!
//! Problem: the engine has numbers of errors alone, and after a fetch that failed it has the first block of each waiting
//! read fetched once more. The inner store has tried for three minutes by then, and would again. Mechanism: reads of a
//! version are numbered. An error belongs to all reads in its range with a number up to the last one at its time, and
//! another fetch there ends with it at once, until a later read begins there.
//!
//! ```text
//! reads 1, 2 of 0..1M     GET 0..1M    503, kept at 2
//! the engine: 0..4096     no request, 503: the error of reads 1 and 2
//! read 3 of 0..8192       GET 0..8192
//! ```

use std::collections::VecDeque;
use std::error;
use std::ops::Range;
use std::sync::Arc;

use object_store::Error;

use crate::connection::failed;

/// Errors kept at most: as many as requests that are under way.
const KEPT_MAX: usize = 64;

type Source = Box<dyn error::Error + Send + Sync>;

type Kind = Box<dyn Fn(Source) -> Error + Send + Sync>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Failures {
    /// Reads that have begun.
    reads: u64,
    kept: VecDeque<Failure>,
}

/// The error of a fetch.
struct Failure {
    range: Range<u64>,
    /// Its number of `errno(3)`.
    number: i32,
    /// The last read that had begun.
    at: u64,
    /// Whether a read began there after it.
    is_over: bool,
    error: Shared,
}

impl Failures {
    /// The number of a read of these ranges, which begins. Errors of before are not its.
    pub(crate) fn begin(&mut self, ranges: &[Range<u64>]) -> u64 {
        self.reads += 1;
        for failure in &mut self.kept {
            failure.is_over |= ranges.iter().any(|range| failure.is_in(range));
        }
        self.reads
    }

    /// A fetch of a range has failed.
    pub(crate) fn keep(&mut self, range: Range<u64>, number: i32, error: Error) {
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Failure {
            range,
            number,
            at: self.reads,
            is_over: false,
            error: Shared::new(error),
        });
    }

    /// The error in a range of the read of this number.
    pub(crate) fn of_read(&self, range: &Range<u64>, read: u64) -> Option<Error> {
        let mut kept = self.kept.iter().rev();
        let failure = kept.find(|failure| failure.at >= read && failure.is_in(range));
        failure.map(|failure| failure.error.get())
    }

    /// The number of the error with which a fetch from this byte on ends without a request.
    pub(crate) fn of_fetch(&self, begin: u64) -> Option<i32> {
        let mut kept = self.kept.iter().rev();
        let failure = kept.find(|failure| !failure.is_over && failure.range.contains(&begin));
        failure.map(|failure| failure.number)
    }
}

impl Failure {
    fn is_in(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// An error for several reads: of the same kind, with the same source.
struct Shared {
    kind: Kind,
    source: Arc<dyn error::Error + Send + Sync>,
}

impl Shared {
    fn new(error: Error) -> Self {
        /// A kind of error that names the path.
        macro_rules! at_path {
            ($kind:ident, $path:ident) => {
                Box::new(move |source| {
                    let path = $path.clone();
                    Error::$kind { path, source }
                })
            };
        }
        let (kind, source): (Kind, Source) = match error {
            Error::NotFound { path, source } => (at_path!(NotFound, path), source),
            Error::Precondition { path, source } => (at_path!(Precondition, path), source),
            Error::NotModified { path, source } => (at_path!(NotModified, path), source),
            Error::AlreadyExists { path, source } => (at_path!(AlreadyExists, path), source),
            Error::PermissionDenied { path, source } => (at_path!(PermissionDenied, path), source),
            Error::Unauthenticated { path, source } => (at_path!(Unauthenticated, path), source),
            Error::NotSupported { source } => {
                (Box::new(|source| Error::NotSupported { source }), source)
            }
            Error::Generic { store, source } => {
                let kind = move |source| Error::Generic { store, source };
                (Box::new(kind), source)
            }
            other => (Box::new(failed), Box::new(other)),
        };
        let source = source.into();
        Self { kind, source }
    }

    fn get(&self) -> Error {
        (self.kind)(Box::new(self.source.clone()))
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "a read may be of one range"
)]
mod tests {
    use super::*;

    /// A fault of a server.
    fn fault() -> Error {
        let (store, source) = ("inner", "503".into());
        Error::Generic { store, source }
    }

    #[test]
    fn an_error_belongs_to_every_read_in_its_range_that_had_begun() {
        let mut failures = Failures::default();
        let (one, two) = (failures.begin(&[0..10]), failures.begin(&[90..95, 50..60]));
        failures.keep(0..100, 5, fault());
        let later = failures.begin(&[200..300]);
        for _ in 0..2 {
            let error = failures.of_read(&(0..10), one).unwrap();
            assert_eq!(error.to_string(), fault().to_string());
            assert!(matches!(error, Error::Generic { store: "inner", .. }));
            assert!(failures.of_read(&(50..60), two).is_some());
            assert!(failures.of_read(&(100..110), two).is_none());
            assert!(failures.of_read(&(0..10), later).is_none());
        }
    }

    #[test]
    fn a_fetch_ends_with_the_error_until_a_read_begins_in_its_range() {
        let mut failures = Failures::default();
        let one = failures.begin(&[0..10]);
        failures.keep(0..100, 5, fault());
        failures.begin(&[100..110]);
        let of = |failures: &Failures| [0, 99, 100].map(|begin| failures.of_fetch(begin));
        assert_eq!(of(&failures), [Some(5), Some(5), None]);
        failures.begin(&[200..210, 90..91]);
        assert_eq!(of(&failures), [None; 3]);
        assert!(failures.of_read(&(0..10), one).is_some());
    }
}
