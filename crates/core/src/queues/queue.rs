//! The queue of one device: everything that could be fetched from it next, in order of arrival.
//!
//! A [`Want`] without memory is a few words: its extents are decided, and take frames, when the device
//! has a slot for it. One that is decided is a [request](super::request) with frames. The dispatch
//! method looks at all of them and takes any, which is why a want says itself where it lies and when it
//! came: thousands of readers may wait. Three questions must not cost a walk, because they follow every
//! fetch: which demand reads without memory wait for a block of this extent, which windows begin here, and how many
//! [runs](super::runs) are there?
//!
//! ```text
//! wants    ticket -> want           7: read 3     8: window of reader 1     9: request 5     10: read 4
//! demands  (file, block, ticket)    (0, 10, 7)                                               (0, 512, 10)
//! windows  (position, ticket)                     (81920, 8)
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::runs::Runs;
use crate::detect::Access;
use crate::units::{Block, Bytes, Extent, FileId, ReadId, ReaderId, RequestId};

/// Something that could be fetched from a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    pub(crate) fetch: Wanted,
    pub(crate) class: Class,
    /// Its reader; none if it was announced, or the reader is gone.
    pub(crate) owner: Option<ReaderId>,
    /// The device's [work](crate::dispatch) when it came.
    pub(crate) came: u64,
    /// Where it begins on the device; of a fetch to be decided, as it stood then.
    pub(crate) position: u64,
    /// How long it is, or will be at least.
    pub(crate) bytes: Bytes,
}

/// The fetch: decided, or to be decided once there is a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// Its frames are taken.
    Request(RequestId),
    /// The blocks that this read misses, the first of which is named.
    Demand {
        read: ReadId,
        file: FileId,
        block: Block,
    },
    /// The window behind the one whose mark this access met, when `end` was the first block that
    /// no window had covered.
    Window {
        reader: ReaderId,
        access: Access,
        end: Block,
    },
}

/// Whether a want goes before others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Of a program that reads: due in the order of virtual finish times.
    Program,
    /// The same of a reader at random, worth a switch or less: among its like in the order of their
    /// places.
    Short,
    /// A first read or a jump, worth a 32nd of a switch or less: before all others, as far as the [express](super::arm)
    /// goes.
    Single,
    /// Of an announced order: behind those, until a read waits for it.
    Planned,
    /// The beginning of a file opened ahead: behind those as well, and where other programs wait until a
    /// read waits for it. Alone its batch goes first, which holds the program's next blocks: to send one
    /// before it costs two seeks, one there and one back.
    Ahead { is_awaited: bool },
    /// Of an idle read: alone in the queue, or not at all, until another read waits for it.
    Idle,
}

impl Class {
    /// Whether it is of a reader at random, worth a switch or less.
    pub(crate) fn is_at_random(self) -> bool {
        matches!(self, Self::Short | Self::Single)
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Queue {
    wants: BTreeMap<u64, Want>,
    demands: BTreeSet<(FileId, Block, u64)>,
    windows: BTreeSet<(u64, u64)>,
    next_ticket: u64,
    /// How many are of programs.
    programs: usize,
    /// How many are of idle reads.
    idle: usize,
    /// Of those of programs, and of files ahead that a read waits for.
    runs: Runs,
}

impl Want {
    fn is_of_program(&self) -> bool {
        matches!(self.class, Class::Program | Class::Short | Class::Single)
    }

    /// Whether it is due as those of programs are, where there is one of a program.
    fn is_awaited(&self) -> bool {
        self.is_of_program() || self.class == Class::Ahead { is_awaited: true }
    }

    /// The number of its request, if it has frames.
    pub(crate) fn request(&self) -> Option<RequestId> {
        match self.fetch {
            Wanted::Request(id) => Some(id),
            _ => None,
        }
    }
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.wants.len()
    }

    /// Whether any but idle ones has no frames.
    pub(super) fn has_deferred(&self) -> bool {
        self.demands.len() + self.windows.len() > self.idle
    }

    /// Whether any is of a program.
    pub(super) fn is_wanted(&self) -> bool {
        self.programs > 0
    }

    pub(super) fn get(&self, ticket: u64) -> Option<&Want> {
        self.wants.get(&ticket)
    }

    /// In order of arrival, each with its ticket.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Want)> {
        self.wants.iter().map(|(ticket, want)| (*ticket, want))
    }

    /// Those of programs, and those that are due as they are.
    pub(super) fn of_programs(&self) -> impl Iterator<Item = &Want> {
        self.wants.values().filter(|want| self.is_due(want))
    }

    /// How many runs they are.
    pub(super) fn runs(&self) -> usize {
        match self.is_wanted() {
            true => self.runs.count,
            false => 0,
        }
    }

    /// Whether a want is due as those of programs are.
    pub(super) fn is_due(&self, want: &Want) -> bool {
        want.is_awaited() && self.is_wanted()
    }

    /// Whether a want may go out now: an idle one beside no others.
    pub(super) fn may_go(&self, want: &Want) -> bool {
        want.class != Class::Idle || self.idle == self.wants.len()
    }

    /// The ticket by which it is found.
    pub(super) fn push(&mut self, want: Want) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match want.fetch {
            Wanted::Demand { file, block, .. } => self.demands.insert((file, block, ticket)),
            Wanted::Window { .. } => self.windows.insert((want.position, ticket)),
            Wanted::Request(_) => true,
        };
        self.programs += usize::from(want.is_of_program());
        self.idle += usize::from(want.class == Class::Idle);
        if want.is_awaited() {
            self.runs.add(&want);
        }
        self.wants.insert(ticket, want);
        ticket
    }

    pub(super) fn take(&mut self, ticket: u64) -> Option<Want> {
        let want = self.wants.remove(&ticket)?;
        self.programs -= usize::from(want.is_of_program());
        self.idle -= usize::from(want.class == Class::Idle);
        if want.is_awaited() {
            self.runs.remove(&want);
        }
        let was_known = match want.fetch {
            Wanted::Demand { file, block, .. } => self.demands.remove(&(file, block, ticket)),
            Wanted::Window { .. } => self.windows.remove(&(want.position, ticket)),
            Wanted::Request(_) => true,
        };
        debug_assert!(was_known, "a want without memory is found by its place");
        Some(want)
    }

    /// A read waits for a request from now on: whether its turn changes by that.
    pub(super) fn await_request(&mut self, ticket: u64) -> bool {
        let is_wanted = self.is_wanted();
        let Some(want) = self.wants.get_mut(&ticket) else {
            return false;
        };
        if !want.is_awaited() {
            self.runs.add(want);
        }
        match &mut want.class {
            Class::Program | Class::Short | Class::Single => false,
            Class::Planned | Class::Idle => {
                self.idle -= usize::from(want.class == Class::Idle);
                want.class = Class::Program;
                self.programs += 1;
                true
            }
            Class::Ahead { is_awaited } => !core::mem::replace(is_awaited, true) && is_wanted,
        }
    }

    /// Takes out the demand reads without memory that wait for a block of this extent for which
    /// `holds` is true, in order of arrival.
    pub(super) fn take_demands(
        &mut self,
        extent: Extent,
        holds: impl Fn(Block) -> bool,
    ) -> Vec<ReadId> {
        let last = extent.end().saturating_sub(1).min(u64::from(u32::MAX)) as u32;
        let range = (extent.file, extent.first, 0)..=(extent.file, Block(last), u64::MAX);
        let found = self.demands.range(range);
        let mut tickets: Vec<u64> = found
            .filter(|(_, block, _)| extent.contains(*block) && holds(*block))
            .map(|(_, _, ticket)| *ticket)
            .collect();
        tickets.sort_unstable();
        let taken = tickets.into_iter().filter_map(|ticket| self.take(ticket));
        taken
            .filter_map(|want| match want.fetch {
                Wanted::Demand { read, .. } => Some(read),
                _ => None,
            })
            .collect()
    }

    /// Takes out the window without memory that begins at this position, of a reader of which `is_of` is true.
    pub(super) fn take_window(
        &mut self,
        position: u64,
        is_of: impl Fn(ReaderId) -> bool,
    ) -> Option<Wanted> {
        let is_it = |ticket: &u64| match self.wants.get(ticket)?.fetch {
            Wanted::Window { reader, .. } => is_of(reader).then_some(*ticket),
            _ => None,
        };
        let begin = self.windows.range((position, 0)..=(position, u64::MAX));
        let ticket = begin.map(|(_, ticket)| ticket).find_map(is_it)?;
        self.take(ticket).map(|want| want.fetch)
    }

    /// A reader is gone. Its number may be another's soon, which owes nothing for it; the requests that are left.
    pub(super) fn disown(&mut self, reader: ReaderId) -> Vec<RequestId> {
        let mut left = Vec::new();
        for want in self.wants.values_mut() {
            if want.owner == Some(reader) {
                want.owner = None;
                left.extend(want.request());
            }
        }
        left
    }

    /// Drops the wants for which `stays` does not hold.
    pub(super) fn retain(&mut self, stays: impl Fn(&Wanted) -> bool) {
        let gone = self.wants.iter().filter(|(_, want)| !stays(&want.fetch));
        let gone: Vec<u64> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            self.take(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(fetch: Wanted, class: Class) -> Want {
        Want {
            fetch,
            class,
            owner: None,
            came: 0,
            position: 0,
            bytes: Bytes(0),
        }
    }

    #[test]
    fn reads_are_found_by_their_block_and_wants_taken_from_anywhere() {
        let mut queue = Queue::default();
        let demand = |read, block| Wanted::Demand {
            read: ReadId(read),
            file: FileId(0),
            block: Block(block),
        };
        for (read, block) in [(1, 10), (2, 512), (3, 11), (4, 10)] {
            queue.push(want(demand(read, block), Class::Program));
        }
        let extent = Extent {
            file: FileId(0),
            first: Block(8),
            count: 4,
        };
        let found = queue.take_demands(extent, |block| block == Block(10));
        assert_eq!(found, [ReadId(1), ReadId(4)]);
        assert_eq!(queue.take(2).map(|want| want.fetch), Some(demand(3, 11)));
        assert_eq!(queue.take(2), None);
        queue.retain(|fetch| *fetch != demand(2, 512));
        assert!(queue.len() == 0 && queue.demands.is_empty());
        assert!(!queue.has_deferred() && !queue.is_wanted());
    }

    #[test]
    fn a_request_is_due_once_a_read_waits_for_it_and_one_ahead_only_beside_others() {
        let mut queue = Queue::default();
        let request = |id| Wanted::Request(RequestId(id));
        let ahead = Class::Ahead { is_awaited: false };
        queue.push(want(request(0), ahead));
        queue.push(want(request(1), Class::Planned));
        let due = |queue: &Queue| -> Vec<u64> {
            let due = queue.iter().filter(|(_, want)| queue.is_due(want));
            due.map(|(ticket, _)| ticket).collect()
        };
        assert!(due(&queue).is_empty() && !queue.is_wanted());
        assert!(!queue.await_request(0) && due(&queue).is_empty());
        assert!(queue.await_request(1));
        assert_eq!(due(&queue), [0, 1]);
        assert!(queue.take(1).is_some() && due(&queue).is_empty());
    }

    #[test]
    fn an_idle_want_goes_beside_no_other_or_once_another_read_waits_for_it() {
        let mut queue = Queue::default();
        let request = |id| Wanted::Request(RequestId(id));
        let go = |queue: &Queue| -> Vec<u64> {
            let go = queue.iter().filter(|(_, want)| queue.may_go(want));
            go.map(|(ticket, _)| ticket).collect()
        };
        queue.push(want(request(0), Class::Idle));
        assert_eq!(go(&queue), [0]);
        queue.push(want(request(1), Class::Planned));
        assert_eq!(go(&queue), [1]);
        assert!(!queue.has_deferred() && queue.await_request(0));
        assert_eq!(go(&queue), [0, 1]);
    }
}
