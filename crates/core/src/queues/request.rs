//! The in-flight table: fetches decided and not completed, with the reads that wait for them.
//!
//! Kept by the [queues](super). A block in flight is in the resident table too, flagged `FILLING`, and its
//! link names the request here: so a demand read joins a fetch under way with one lookup, and no
//! block can be fetched twice at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::load::Sent;
use crate::hinted::BlockNo;
use crate::table::Frame;
use crate::units::{DeviceId, Extent, ReadId, ReaderId, RequestId};

/// A fetch decided.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) device: DeviceId,
    /// Where on the device it begins, in bytes.
    pub(crate) position: u64,
    pub(crate) extent: Extent,
    /// For whom it was decided; none if it was planned, or the reader was gone before it went out.
    pub(crate) owner: Option<ReaderId>,
    /// The piece of the plan that it is for, as long as there is that plan.
    pub(crate) piece: Option<BlockNo>,
    /// Whether a reader waited for part of it when it was decided.
    pub(crate) demand: bool,
    /// Its place in the device's queue, until the driver has it.
    pub(crate) ticket: u64,
    /// Once the driver has it.
    pub(crate) sent: Option<Box<Sent>>,
    /// Reads that wait for a block of it.
    pub(crate) waiters: Vec<ReadId>,
    /// Its frames, once the blocks were dropped from the table while it ran; empty before.
    pub(crate) orphans: Box<[Frame]>,
}

/// The table grows by so many, which stay where they are: to grow by moving would take the memory
/// of both copies just when most requests are under way, and memory other than blocks is counted.
const CHUNK: usize = 8;

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    chunks: Vec<Box<[Option<Request>]>>,
    /// Numbers without a request, the next one last.
    free: Vec<u32>,
}

impl Requests {
    /// A fetch decided; it waits for nothing yet.
    pub(crate) fn add(&mut self, request: Request) -> RequestId {
        if self.free.is_empty() {
            let first = (self.chunks.len() * CHUNK) as u32;
            self.chunks.push((0..CHUNK).map(|_| None).collect());
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        let free = self.free.pop();
        debug_assert!(free.is_some(), "a chunk was added for want of numbers");
        let id = RequestId(free.unwrap_or_default());
        let slot = self.slot(id);
        debug_assert!(
            slot.as_ref().is_some_and(|slot| slot.is_none()),
            "a free number has an empty slot"
        );
        if let Some(slot) = slot {
            *slot = Some(request);
        }
        id
    }

    fn slot(&mut self, id: RequestId) -> Option<&mut Option<Request>> {
        let chunk = self.chunks.get_mut(id.0 as usize / CHUNK)?;
        chunk.get_mut(id.0 as usize % CHUNK)
    }

    /// In ascending order of their numbers, free ones as none.
    fn slots(&self) -> impl Iterator<Item = &Option<Request>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Request> {
        let chunk = self.chunks.get(id.0 as usize / CHUNK)?;
        chunk.get(id.0 as usize % CHUNK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slot(id)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.slot(id)?.take()?;
        self.free.push(id.0);
        Some(request)
    }

    /// Numbers of the requests for which `wanted` holds, in ascending order.
    pub(crate) fn which(&self, wanted: impl Fn(&Request) -> bool) -> Vec<RequestId> {
        (0..)
            .zip(self.slots())
            .filter(|(_, slot)| slot.as_ref().is_some_and(&wanted))
            .map(|(id, _)| RequestId(id))
            .collect()
    }
}
