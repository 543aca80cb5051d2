//! Cause: why a read that was seen cannot be steered.

use std::fmt;

/// See the [module](self).
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
    /// No descriptor is left for looking: of the steering process, or of the system.
    OutOfDescriptors,
    /// No right to its descriptors (Yama, a security module).
    Refused,
    /// Excluded by the user.
    Excluded,
    /// Outside of the folders that are watched: no part of the bytes that could be steered.
    Elsewhere,
    /// Reads in the idle class of I/O are left alone.
    Idle,
    /// The open file has a limit that is neither the device's nor one of ours: the program asked for another.
    OwnLimit,
    /// The limit could not be raised.
    NotRaised,
}

impl Cause {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 14] = [
        Self::KernelThread,
        Self::NoDescriptor,
        Self::SeveralDescriptors,
        Self::ManyDescriptors,
        Self::Closed,
        Self::Ended,
        Self::OtherNamespace,
        Self::OutOfDescriptors,
        Self::Refused,
        Self::Excluded,
        Self::Elsewhere,
        Self::Idle,
        Self::OwnLimit,
        Self::NotRaised,
    ];

    /// Whether another try would end the same way.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Excluded
                | Self::Elsewhere
                | Self::Idle
                | Self::KernelThread
                | Self::OtherNamespace
        )
    }
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
            Self::OutOfDescriptors => "no descriptor left for looking (ulimit -n)",
            Self::Refused => "refused (Yama, a security module)",
            Self::Excluded => "excluded",
            Self::Elsewhere => "outside of the watched folders",
            Self::Idle => "I/O class idle",
            Self::OwnLimit => "the program set its own readahead",
            Self::NotRaised => "the limit could not be raised",
        })
    }
}
