//! Causes: why a read that was seen cannot be steered, and how many bytes came so.
//!
//! Shown at the end of a watch, and while it runs: a device whose bytes are read past all descriptors is no better off
//! with `forerun watch`.

use std::fmt;

/// Why.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// A file server or a loop device, which have no descriptors.
    KernelThread,
    /// A mapping whose descriptor was closed, or a file registered with io_uring.
    NoDescriptor,
    /// Several open files of one process whose positions do not tell which one reads.
    SeveralDescriptors,
    /// A process with so many descriptors that they are not looked through again yet.
    ManyDescriptors,
    /// It was closed in between.
    Closed,
    /// The process has ended.
    Ended,
    /// A process of another pid namespace.
    OtherNamespace,
    /// No right to its descriptors (Yama, a security module).
    Refused,
    /// Excluded by the user, or outside of the folders that are watched.
    Excluded,
    /// Reads in the idle class of I/O are left alone.
    Idle,
    /// The open file has a limit that is neither the device's nor one of ours: the program asked for another.
    OwnLimit,
    /// The limit could not be raised.
    NotRaised,
}

impl Cause {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 12] = [
        Self::KernelThread,
        Self::NoDescriptor,
        Self::SeveralDescriptors,
        Self::ManyDescriptors,
        Self::Closed,
        Self::Ended,
        Self::OtherNamespace,
        Self::Refused,
        Self::Excluded,
        Self::Idle,
        Self::OwnLimit,
        Self::NotRaised,
    ];
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::KernelThread => "threads of the kernel (nfsd, ksmbd, loop)",
            Self::NoDescriptor => "no descriptor (mapped and closed, io_uring)",
            Self::SeveralDescriptors => "several descriptors of one file",
            Self::ManyDescriptors => "too many descriptors in the process",
            Self::Closed => "closed meanwhile",
            Self::Ended => "process ended",
            Self::OtherNamespace => "another pid namespace",
            Self::Refused => "refused (Yama, a security module)",
            Self::Excluded => "excluded",
            Self::Idle => "I/O class idle",
            Self::OwnLimit => "the program set its own readahead",
            Self::NotRaised => "the limit could not be raised",
        })
    }
}

/// Bytes by cause.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Causes {
    bytes: [u64; Cause::ALL.len()],
}

impl Causes {
    /// So many more.
    pub fn add(&mut self, cause: Cause, bytes: u64) {
        let of = &mut self.bytes[cause as usize];
        *of = of.saturating_add(bytes);
    }

    /// Those there are, the most first.
    #[must_use]
    pub fn most_first(&self) -> Vec<(Cause, u64)> {
        let pairs = Cause::ALL.into_iter().zip(self.bytes);
        let mut pairs: Vec<_> = pairs.filter(|(_, bytes)| *bytes > 0).collect();
        pairs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_counted_apart_and_shown_by_their_bytes() {
        let mut causes = Causes::default();
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(place, cause as usize);
            causes.add(cause, place as u64);
        }
        let shown = causes.most_first();
        assert_eq!(shown.len(), Cause::ALL.len() - 1);
        assert_eq!(shown[0], (Cause::NotRaised, 11));
    }
}
