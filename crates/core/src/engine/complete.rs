//! Completion: blocks arrive or fail, and the reads that waited are tried again.
//!
//! Reads go on once the completion is dealt with whole (see [`work`](super::work)).
//!
//! Control law of failures: a fetch may carry blocks without a reader, so its error says nothing
//! about a reader's own block. A read that waited for a failed fetch gets its first block fetched
//! alone; only if that fails is the error the reader's. Failed prefetches are counted and
//! otherwise forgotten. A cancelled fetch is no failure: its waiting reads are tried again.

use super::{Engine, REQUEST_BYTES};
use crate::known;
use crate::protocol::{FetchOutcome, Served};
use crate::queues::{DEVICE, Request};
use crate::readers::Pace;
use crate::reclaim::Event;
use crate::table::{Found, flag};
use crate::units::{Block, Extent, FileId, ReadId, ReaderId, RequestId};

/// The invariant by which blocks in flight are found.
pub(super) const IN_FLIGHT: &str = "a block in flight is in the table";

impl Engine {
    pub(super) fn complete(&mut self, id: RequestId, outcome: FetchOutcome) -> Option<()> {
        let now = self.work.now;
        let request = self.queues.requests.get(id)?;
        let (device, sent) = (request.device, request.sent.as_ref()?.sample.sent);
        let before = known(self.queues.device(device), DEVICE)?.ended();
        let (request, is_late) = self.queues.end(id, now, outcome == FetchOutcome::Done)?;
        self.memory.charge(-REQUEST_BYTES);
        match outcome {
            FetchOutcome::Failed { .. } | FetchOutcome::Cancelled { blocks: 0 } => {}
            _ if is_late => self.set_pace(request.extent.file, Pace::Late),
            _ => self.set_pace(request.extent.file, Pace::Even),
        }
        let is_whole = outcome == FetchOutcome::Done && request.orphans.is_empty();
        if request.orphans.is_empty() {
            self.settle_blocks(&request, outcome);
        } else {
            for frame in request.orphans {
                self.memory.give_back(frame);
            }
        }
        if let Some(piece) = request.piece {
            // Time behind others in the device's queue is not its own.
            self.piece_ended(piece, is_whole, now.since(sent.max(before)));
        }
        self.work.devices.push_back(request.device);
        Some(())
    }

    fn settle_blocks(&mut self, request: &Request, outcome: FetchOutcome) {
        let Extent { file, first, count } = request.extent;
        let (arrived, failure) = match outcome {
            FetchOutcome::Done => (count, Served::End),
            FetchOutcome::Short { blocks } => (blocks.min(count), Served::End),
            FetchOutcome::Failed { error } => (0, Served::Failed { error }),
            FetchOutcome::Cancelled { blocks } => (blocks.min(count), Served::End),
        };
        let cancelled = matches!(outcome, FetchOutcome::Cancelled { .. });
        for block in request.extent.blocks() {
            if block.0 - first.0 < arrived {
                self.arrive(request.owner, file, block);
            } else {
                self.lose(file, block, cancelled);
            }
        }
        for &waiter in &request.waiters {
            let lost = self.reads.get(waiter).is_some_and(|r| {
                request.extent.contains(r.access.block) && r.access.block.0 - first.0 >= arrived
            });
            if lost && !cancelled {
                self.fail(waiter, count == 1, failure);
            } else {
                self.work.reads.push_back(waiter);
            }
        }
    }

    /// A block that its request was to fetch.
    fn filling(&self, file: FileId, block: Block) -> Option<Found> {
        let found = known(self.memory.table.find(file, block), IN_FLIGHT)?;
        debug_assert!(
            found.flags & flag::FILLING != 0,
            "a block in flight is filling"
        );
        Some(found)
    }

    fn arrive(&mut self, owner: Option<ReaderId>, file: FileId, block: Block) {
        let Some(found) = self.filling(file, block) else {
            return;
        };
        if found.flags & flag::UNREAD != 0 {
            self.ledger.in_flight -= 1;
            self.ledger.resident_unused += 1;
        }
        self.memory.table.set(found.frame, flag::ARMED);
        self.memory.table.clear(found.frame, flag::FILLING);
        let frame = found.frame;
        self.memory.tell_of(frame, Event::Inserted { frame, owner });
    }

    fn lose(&mut self, file: FileId, block: Block, cancelled: bool) {
        let Some(found) = self.filling(file, block) else {
            return;
        };
        if found.flags & flag::UNREAD != 0 {
            self.ledger.in_flight -= 1;
            self.ledger.failed += u64::from(!cancelled);
            self.ledger.cancelled += u64::from(cancelled);
        } else {
            self.ledger.demand_failed += u64::from(!cancelled);
        }
        self.memory.table.remove(found.frame);
        self.memory.give_back(found.frame);
    }

    /// The first block of a waiting read did not arrive.
    fn fail(&mut self, id: ReadId, fetched_alone: bool, failure: Served) {
        let Some(read) = known(self.reads.get_mut(id), "a read that waits is under way") else {
            return;
        };
        if read.alone && fetched_alone {
            self.answer(id, failure);
        } else {
            read.alone = true;
            self.work.reads.push_back(id);
        }
    }
}
