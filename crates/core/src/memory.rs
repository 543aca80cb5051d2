//! The memory: frames, their holders, and the hard bound.
//!
//! Used by the engine's stages, the only place where a frame changes hands. A frame is free, or
//! holds a block (in flight, resident, or given up while a reader still copies it), or is set
//! aside to pay for bookkeeping beyond the table's own: readers, streams, requests, the plan. So
//! the sum of everything never exceeds the budget, whatever the driver opens. Of the frames with a
//! block in them, those that the plan *holds* stand in no order of reclaim.
//!
//! The rest are the reclaim method's. Its bookkeeping is paid for as the engine's own is.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bits::Bits;
use crate::budget::Shares;
use crate::reclaim::{Cache, Event, Queue, Reclaim, Victim};
use crate::table::{Frame, Links, Table, flag};
use crate::units::{Bytes, Nanos};

/// Bytes charged beyond the table's.
#[derive(Clone, Copy, Debug)]
struct Charges {
    all: u64,
    /// Those of the reclaim method.
    reclaim: u64,
    /// Those taken away by a limit.
    withheld: u64,
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) table: Arc<Table>,
    links: Links,
    reclaim: Box<dyn Reclaim>,
    free: Queue,
    /// Frames whose block left the table and that still stand in an order of reclaim.
    dropped: Vec<Frame>,
    /// Frames from here on were never used.
    untouched: u32,
    /// Frames set aside for bookkeeping.
    aside: Queue,
    charges: Charges,
    /// Frames that the plan holds.
    held: Bits,
    /// Pins of a frame beyond the first one.
    repinned: BTreeMap<u32, u32>,
    /// Most frames that were not free at once, those set aside included.
    taken_peak: u32,
    block_bytes: u32,
}

impl Memory {
    pub(crate) fn new(frames: u32, block_bytes: u32, mut reclaim: Box<dyn Reclaim>) -> Self {
        reclaim.begin(frames);
        let charges = Charges {
            all: reclaim.bytes(),
            reclaim: reclaim.bytes(),
            withheld: 0,
        };
        Self {
            table: Arc::new(Table::new(frames)),
            links: Links::new(frames),
            charges,
            reclaim,
            free: Queue::default(),
            dropped: Vec::new(),
            untouched: 0,
            aside: Queue::default(),
            held: Bits::default(),
            repinned: BTreeMap::default(),
            taken_peak: 0,
            block_bytes,
        }
    }

    /// Frames for blocks, now.
    pub(crate) fn frames_usable(&self) -> u32 {
        self.table.frames() - self.aside.len()
    }

    /// Frames that hold nothing.
    fn unheld(&self) -> u32 {
        self.free.len() + (self.table.frames() - self.untouched)
    }

    /// Frames that could be had without waiting, free or reclaimable (pinned ones included).
    pub(crate) fn obtainable(&self) -> u32 {
        self.unheld() + self.reclaim.len()
    }

    /// Frames a prefetch must leave obtainable.
    pub(crate) fn reserve(&self) -> u32 {
        Shares::reserve(self.frames_usable())
    }

    /// Whether a victim is better than a frame that was never used.
    pub(crate) fn has_spare(&self) -> bool {
        !self.has_free() && self.reclaim.has_spare(self.table.frames())
    }

    /// Whether the method decides by how long owners computed.
    pub(crate) fn uses_cpu_time(&self) -> bool {
        self.reclaim.uses_cpu_time()
    }

    /// Whether the method keeps another hint beside so many runs at most; none if it follows none.
    pub(crate) fn takes_hint(&self, most: u32) -> Option<bool> {
        self.reclaim.takes_hint(most)
    }

    /// Whether a frame that was used is free.
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// A frame without a victim.
    pub(crate) fn take_free(&mut self) -> Option<Frame> {
        let frame = self.free.pop(&mut self.links).or_else(|| {
            let fresh = Frame(self.untouched);
            (fresh.0 < self.table.frames()).then(|| {
                self.untouched += 1;
                fresh
            })
        })?;
        let taken = self.table.frames() - self.unheld();
        self.taken_peak = self.taken_peak.max(taken);
        Some(frame)
    }

    /// Makes room for the bits of [`Memory::hold`].
    pub(crate) fn begin_holding(&mut self) {
        self.held = Bits::below(self.table.frames());
    }

    /// How many bytes those take.
    pub(crate) fn holding_bytes(&self) -> i64 {
        self.held.bytes()
    }

    /// The plan holds this vacant frame from now on, whatever block it gets.
    pub(crate) fn hold(&mut self, frame: Frame) {
        self.held.set(frame.0);
    }

    /// Whether the plan holds a frame.
    pub(crate) fn is_held(&self, frame: Frame) -> bool {
        self.held.has(frame.0)
    }

    /// The plan lets go of a frame: reclaim decides about its block from now on, or will once it
    /// is filled. An orphan's frame has none and stays with its request.
    pub(crate) fn release(&mut self, frame: Frame) {
        self.held.clear(frame.0);
        if self.table.flags(frame) & (flag::FILLING | flag::VACANT) == 0 {
            let owner = None;
            self.tell_of(frame, Event::Inserted { frame, owner });
        }
    }

    /// The plan is over; the frames it still held.
    pub(crate) fn end_holding(&mut self) -> Vec<Frame> {
        let held = core::mem::take(&mut self.held);
        let numbers = (0..self.table.frames()).filter(|number| held.has(*number));
        numbers.map(Frame).collect()
    }

    /// A vacant frame is free again, or will be once its readers have let go.
    pub(crate) fn give_back(&mut self, frame: Frame) {
        debug_assert!(
            self.table.flags(frame) & flag::VACANT != 0,
            "{frame:?} still holds a block"
        );
        self.held.clear(frame.0);
        if self.table.flags(frame) & flag::PINNED == 0 {
            self.free.push(&mut self.links, frame);
        }
    }

    /// The request that fills a frame in flight.
    pub(crate) fn request_of(&self, frame: Frame) -> u32 {
        self.links.get(frame)
    }

    pub(crate) fn set_request(&mut self, frame: Frame, request: u32) {
        self.links.set(frame, request);
    }

    /// A block was read of which a fetch ahead has come.
    pub(crate) fn used(&mut self, frame: Frame) {
        self.table.clear(frame, flag::UNREAD);
        self.tell_of(frame, Event::Used(frame));
    }

    /// Tells of a frame, unless the plan holds it.
    pub(crate) fn tell_of(&mut self, frame: Frame, event: Event<'_>) {
        if !self.is_held(frame) {
            self.tell(event);
        }
    }

    /// The block of this frame is about to leave the table, and was not a victim; whether it stands
    /// in an order of reclaim.
    pub(crate) fn dropped(&mut self, frame: Frame) -> bool {
        let ask = |reclaim: &mut dyn Reclaim, cache: &mut Cache<'_>| reclaim.dropped(cache, frame);
        !self.is_held(frame) && self.ask(Nanos(0), ask)
    }

    /// The next victim.
    pub(crate) fn victim(&mut self, now: Nanos) -> Option<Victim> {
        self.ask(now, |reclaim, cache| reclaim.victim(cache))
    }

    /// Tells the reclaim method of something beside the blocks.
    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.ask(Nanos(0), |reclaim, cache| reclaim.hear(cache, event));
    }

    /// Tells the reclaim method something, or asks it for a victim.
    fn ask<R>(
        &mut self,
        now: Nanos,
        question: impl FnOnce(&mut dyn Reclaim, &mut Cache<'_>) -> R,
    ) -> R {
        let mut cache = Cache {
            frames: self.frames_usable(),
            table: &self.table,
            links: &mut self.links,
            held: &self.held,
            now,
        };
        let answer = question(&mut *self.reclaim, &mut cache);
        let bytes = self.reclaim.bytes();
        let before = core::mem::replace(&mut self.charges.reclaim, bytes);
        self.charge(bytes as i64 - before as i64);
        answer
    }

    /// A frame was vacated out of turn. One that stands in an order of reclaim, from which only the
    /// first can be taken, is free after the next [`Memory::sweep`], with all others until then: to
    /// go through an order for each file that is forgotten would cost more than the file was worth.
    pub(crate) fn vacated(&mut self, frame: Frame, is_in_order: bool) {
        match is_in_order {
            true => {
                self.table.set(frame, flag::MARK);
                self.dropped.push(frame);
            }
            false => self.give_back(frame),
        }
    }

    /// Vacated frames leave the orders of reclaim, and are free.
    pub(crate) fn sweep(&mut self) {
        if self.dropped.is_empty() {
            return;
        }
        let table = Arc::clone(&self.table);
        let gone = |frame| table.flags(frame) & flag::VACANT != 0;
        self.ask(Nanos(0), |reclaim, cache| reclaim.sweep(cache, &gone));
        for frame in core::mem::take(&mut self.dropped) {
            self.table.clear(frame, flag::MARK);
            self.give_back(frame);
        }
    }

    /// A reader takes the bytes: not to be given up until [`Memory::unpin`].
    pub(crate) fn pin(&mut self, frame: Frame) {
        if self.table.flags(frame) & flag::PINNED == 0 {
            self.table.set(frame, flag::PINNED);
        } else {
            *self.repinned.entry(frame.0).or_insert(0) += 1;
        }
    }

    /// Ends one pin; a frame vacated meanwhile becomes free with its last one.
    pub(crate) fn unpin(&mut self, frame: Frame) {
        if let Some(more) = self.repinned.get_mut(&frame.0) {
            *more -= 1;
            if *more == 0 {
                self.repinned.remove(&frame.0);
            }
            return;
        }
        debug_assert!(
            self.table.flags(frame) & flag::PINNED != 0,
            "{frame:?} is unpinned more often than pinned"
        );
        self.table.clear(frame, flag::PINNED);
        if self.table.flags(frame) & (flag::VACANT | flag::MARK) == flag::VACANT {
            self.give_back(frame);
        }
    }

    /// Bookkeeping beyond the table's own, in bytes.
    #[cfg(test)]
    pub(crate) fn charged(&self) -> u64 {
        self.charges.all
    }

    /// Charges or (negative) returns bookkeeping beyond the table's own.
    pub(crate) fn charge(&mut self, bytes: i64) {
        self.charges.all = self.charges.all.saturating_add_signed(bytes);
    }

    /// So many bytes are taken away in all, and paid with frames as bookkeeping is. Whether more than before.
    pub(crate) fn withhold(&mut self, bytes: u64) -> bool {
        let before = core::mem::replace(&mut self.charges.withheld, bytes);
        self.charge(bytes as i64 - before as i64);
        bytes > before
    }

    /// Whether another frame must be set aside for the memory charged. The last
    /// [`Table::FRAMES_MIN`] are never taken: below them nothing could be read at all.
    pub(crate) fn owes_frame(&self) -> bool {
        self.charges.all > self.paid() && self.frames_usable() > Table::FRAMES_MIN
    }

    fn paid(&self) -> u64 {
        u64::from(self.aside.len()) * u64::from(self.block_bytes)
    }

    /// Sets a vacant frame aside.
    pub(crate) fn set_aside(&mut self, frame: Frame) {
        self.aside.push(&mut self.links, frame);
    }

    /// Frees frames set aside for bookkeeping that is gone.
    pub(crate) fn settle(&mut self) {
        while self.paid().saturating_sub(self.charges.all) >= u64::from(self.block_bytes) {
            let Some(frame) = self.aside.pop(&mut self.links) else {
                debug_assert!(false, "frames set aside pay more than there are");
                return;
            };
            self.free.push(&mut self.links, frame);
        }
    }

    /// Most memory held at once, bookkeeping included.
    pub(crate) fn peak(&self) -> Bytes {
        let frames = u64::from(self.taken_peak) * u64::from(self.block_bytes);
        Bytes(Table::bookkeeping(self.table.frames()).0 + frames)
    }
}

#[cfg(test)]
impl Memory {
    /// Every resident block is the plan's or counted once by the method.
    pub(crate) fn check(&self) {
        let frames = (0..self.table.frames()).map(Frame);
        let is_there = |frame: &Frame| {
            self.table.flags(*frame) & (flag::FILLING | flag::VACANT) == 0 && !self.is_held(*frame)
        };
        let resident = frames.filter(is_there).count();
        assert_eq!(
            self.reclaim.len() as usize,
            resident + self.dropped.len(),
            "blocks to be given up, and resident ones"
        );
    }
}
