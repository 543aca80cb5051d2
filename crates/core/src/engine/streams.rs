//! Streams and victims: the engine's half of reclaim methods that split the memory.
//!
//! Called wherever streams change, a frame is needed, a block arrives or a window opens. Here
//! stands which stream a block belongs to; `memory/prefetched.rs` has the other half, the order of
//! streams and their blocks. It calls no other stage.
//!
//! A stream that has lost its last block is shorter from then on, and its reader's detector does
//! not learn of it: the miss to come lies inside the window, and counts as thrashing.

#[cfg(test)]
use alloc::vec::Vec;

use super::Engine;
use super::read::READER;
use crate::known;
use crate::reclaim::{StreamId, Victim};
use crate::stream::Streams;
use crate::table::{Frame, flag};
use crate::units::{Extent, FileId, Nanos, ReaderId};

impl Engine {
    /// The frame to give up next; its block is still in the table.
    pub(super) fn victim(&mut self) -> Option<Frame> {
        loop {
            match self.memory.victim(self.now)? {
                Victim::Frame(frame) => {
                    const NOT: u8 = flag::PINNED | flag::FILLING | flag::VACANT;
                    debug_assert!(
                        self.memory.table.flags(frame) & NOT == 0 && !self.memory.is_held(frame),
                        "the victim {frame:?} cannot go"
                    );
                    return Some(frame);
                }
                // A stream with none is ranked no more, so this ends.
                Victim::Last(id) => match self.last_of(id)? {
                    Some(frame) => return Some(frame),
                    None => continue,
                },
            }
        }
    }

    /// Takes the last block of a stream, if it has one that can go. `None` if there is no such
    /// stream.
    fn last_of(&mut self, id: StreamId) -> Option<Option<Frame>> {
        let reader = self.readers.get(&id.owner);
        let stream = reader.and_then(|r| Some((r.file, *r.streams.begun_at(id.start)?)));
        debug_assert!(stream.is_some(), "a victim of {id:?}, which is not known");
        let (file, stream) = stream?;
        let last = self.memory.take_last(file, &stream);
        let (block, frame) = last.unzip();
        self.change_streams(id.owner, |streams| streams.shorten(id.start, block));
        Some(frame)
    }

    /// Changes a reader's streams and keeps the number of active ones right.
    pub(super) fn change_streams(&mut self, reader: ReaderId, change: impl FnOnce(&mut Streams)) {
        let Some(state) = known(self.readers.get_mut(&reader), READER) else {
            return;
        };
        let before = state.streams.active();
        change(&mut state.streams);
        let after = state.streams.active();
        if !state.is_ahead {
            self.active_streams = self.active_streams + after - before;
        }
        self.memory.follow(reader, state.file, &mut state.streams);
    }

    /// The program behind a reader has used so much processor time.
    pub(super) fn cpu_time(&mut self, reader: ReaderId, time: Nanos) -> Option<()> {
        self.readers.get(&reader)?;
        if self.memory.uses_cpu_time() {
            self.change_streams(reader, |streams| streams.owner_has_used(time));
        }
        Some(())
    }

    /// A block became resident that was fetched for this reader.
    pub(super) fn arrived(&mut self, owner: Option<ReaderId>, file: FileId, frame: Frame) {
        let is_unread = self.memory.table.flags(frame) & flag::UNREAD != 0;
        let is_ahead = is_unread && self.memory.ranks_streams() && {
            let (_, block) = self.memory.table.holds(frame);
            let reader = owner.and_then(|owner| self.readers.get_mut(&owner));
            let reader = reader.filter(|reader| reader.file == file);
            reader.is_some_and(|reader| reader.streams.arrive(block))
        };
        self.memory.inserted(frame, is_ahead);
    }

    /// A window opens: blocks in it that were abandoned are its stream's again.
    pub(super) fn adopt(&mut self, reader: ReaderId, window: Extent) {
        if !self.memory.ranks_streams() {
            return;
        }
        for block in window.blocks() {
            if let Some(found) = self.memory.table.find(window.file, block)
                && found.flags & (flag::UNREAD | flag::FILLING) == flag::UNREAD
                && let Some(state) = self.readers.get_mut(&reader)
                && state.streams.arrive(block)
            {
                self.memory.adopted(found.frame);
            }
        }
        self.change_streams(reader, |_| ());
    }
}

#[cfg(test)]
impl Engine {
    /// Each resident block can be found by a search for a victim, and all are counted.
    pub(super) fn check_prefetched(&self) {
        let readers = self.readers.iter();
        let streams: Vec<_> = readers
            .flat_map(|(id, r)| r.streams.by_use().into_iter().map(|s| (*id, r.file, s)))
            .collect();
        self.memory.check(&streams);
    }
}
