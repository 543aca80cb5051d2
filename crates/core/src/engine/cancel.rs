//! Cancelling: the blocks of a fetch are not wanted any more.
//!
//! Called when a file changes, and when the plan calls a fetch off. A request that is still queued
//! disappears. One that the driver has runs on, because its device may still write to the frames:
//! it keeps them as *orphans*, which belong to no block, until it completes.

use alloc::vec::Vec;

use super::complete::IN_FLIGHT;
use super::{Engine, REQUEST_BYTES};
use crate::known;
use crate::table::flag;
use crate::units::{Nanos, ReadId, RequestId};

impl Engine {
    /// The blocks of a fetch are wanted no more.
    pub(super) fn orphan(&mut self, id: RequestId) -> Vec<ReadId> {
        let Some(request) = known(
            self.queues.requests.get_mut(id),
            "a fetch is cancelled while it runs",
        ) else {
            return Vec::new();
        };
        let (extent, piece, is_sent) = (request.extent, request.piece, request.sent.is_some());
        let waiting = core::mem::take(&mut request.waiters);
        let mut frames = Vec::with_capacity(extent.count as usize);
        for block in extent.blocks() {
            let found = self.memory.table.find(extent.file, block);
            let Some(found) = known(found, IN_FLIGHT) else {
                continue;
            };
            if found.flags & flag::UNREAD != 0 {
                self.ledger.in_flight -= 1;
                self.ledger.cancelled += 1;
            }
            self.memory.table.remove(found.frame);
            frames.push(found.frame);
        }
        if is_sent {
            if let Some(request) = self.queues.requests.get_mut(id) {
                request.orphans = frames.into_boxed_slice();
            }
            return waiting;
        }
        self.queues.call_off(id);
        self.memory.charge(-REQUEST_BYTES);
        for frame in frames {
            self.memory.give_back(frame);
        }
        if let Some(piece) = piece {
            self.piece_ended(piece, false, Nanos(0));
        }
        waiting
    }
}
