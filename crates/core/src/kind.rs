//! Kind: which sort of device it is, and all that follows from that.
//!
//! Some rules hold for one sort of device only: where any worker takes any request, those of one stream work side by
//! side; where a request may never be answered, some memory is kept from it. Spread over the stages such rules
//! contradict each other unseen. So they stand here: a stage asks for a consequence, and nothing else for the kind.
//!
//! ```text
//! consequence       disk  array  server  follows from it
//! any_worker         no    no     yes    several requests of a stream at once (depth), no order of files (files ahead)
//! may_never_answer   no    no     yes    short requests, an eighth of the memory kept, late answers apart (queues)
//! takes_its_time     no    no     yes    one answer on time says that costs are as they were (measure)
//! side_by_side        1     1       8    requests at once while nothing is known, or costs are measured (measure)
//! ```
//!
//! A memory is a disk whose switches cost nothing: its costs say so, and no rule is its own. Example: a network file
//! system with 64 connections is `Server { most: 64 }`. Its first read asks for eight parts at once, and where one comes
//! late the costs stay as they are, because its object may be why.

/// The sort of a device, as far as it was told. Told wrongly it costs time: a disk that is told as a server gets its
/// requests out of order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// One arm, or a number of them that is not known.
    Disk,
    /// Several arms, each with data of its own.
    Array,
    /// Workers of which any takes any request: a store, a network file system.
    Server {
        /// Requests that it may have at most.
        most: u32,
    },
}

impl Kind {
    const fn is_server(self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Whether any worker takes any request, so that its place is no matter.
    pub(crate) fn any_worker(self) -> bool {
        self.is_server()
    }

    /// Whether a request may be late, or never answered, while others are: its object may be why.
    pub(crate) fn may_never_answer(self) -> bool {
        self.is_server()
    }

    /// Whether a request takes the same time again. That of a disk depends on how far it has turned.
    pub(crate) fn takes_its_time(self) -> bool {
        self.is_server()
    }

    /// Requests at once that are taken as alone, but fewer if it was told to work on fewer. Of a server late ones may
    /// be so because of their objects, and a hundred programs have their turn in three seconds if each takes a
    /// quarter of one.
    pub(crate) const fn side_by_side(self) -> u32 {
        if self.is_server() { 8 } else { 1 }
    }
}
