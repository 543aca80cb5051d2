//! The in-flight table: fetches decided and not completed, with the reads that wait for them.
//!
//! Kept by the engine. A block in flight is in the resident table too, flagged `FILLING`, and its
//! link names the request here: so a demand read joins a fetch under way with one lookup, and no
//! block can be fetched twice at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::table::Frame;
use crate::units::{DeviceId, Extent, ReadId, ReaderId, RequestId};

/// A fetch decided.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) device: DeviceId,
    pub(crate) extent: Extent,
    /// For whom it was decided; none if it was planned.
    pub(crate) owner: Option<ReaderId>,
    /// The device's [work](crate::dispatch) when it was decided.
    pub(crate) came: u64,
    /// Whether a reader waited for part of it when it was decided.
    pub(crate) demand: bool,
    /// Whether the driver has it.
    pub(crate) dispatched: bool,
    /// Reads that wait for a block of it.
    pub(crate) waiters: Vec<ReadId>,
    /// Its frames, once the blocks were dropped from the table while it ran; empty before.
    pub(crate) orphans: Box<[Frame]>,
}

/// The table grows by so many: doubling would leave half of it empty, and the memory that is not
/// blocks is counted.
const SLOTS_STEP: usize = 16;

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl Requests {
    pub(crate) fn add(&mut self, request: Request) -> RequestId {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(request);
                RequestId(slot)
            }
            None => {
                if self.slots.len() == self.slots.capacity() {
                    self.slots.reserve_exact(SLOTS_STEP);
                }
                self.slots.push(Some(request));
                RequestId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Request> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.slots.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        Some(request)
    }

    /// Numbers of the requests for which `wanted` holds, in ascending order.
    pub(crate) fn which(&self, wanted: impl Fn(&Request) -> bool) -> Vec<RequestId> {
        (0..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.as_ref().is_some_and(&wanted))
            .map(|(id, _)| RequestId(id))
            .collect()
    }
}
