//! Streams and victims: a reclaim method hears where readers are, and shortens their streams.
//!
//! Called wherever streams change, and when a frame is needed. It calls no other stage.
//!
//! A stream that has lost its last block is shorter from then on, and its reader's detector does
//! not learn of it: the miss to come lies inside the window, and counts as thrashing.

use super::read::READER;
use super::{Engine, Producers};
use crate::budget::Shares;
use crate::known;
use crate::reclaim::{Event, Victim};
use crate::stream::Streams;
use crate::table::{Frame, flag};
use crate::units::{Nanos, ReaderId};

impl Engine {
    /// The frame to give up next; its block is still in the table.
    pub(super) fn victim(&mut self) -> Option<Frame> {
        const NOT: u8 = flag::PINNED | flag::FILLING | flag::VACANT;
        let victim = self.memory.victim(self.work.now)?;
        let frame = victim.frame();
        debug_assert!(
            self.memory.table.flags(frame) & NOT == 0 && !self.memory.is_held(frame),
            "the victim {frame:?} cannot go"
        );
        if let Victim::LastOf(id, frame) = victim {
            let (_, block) = self.memory.table.holds(frame);
            self.change_streams(id.owner, |streams| streams.shorten(id.start, block));
        }
        Some(frame)
    }

    /// Changes a reader's streams and keeps the number of active ones right.
    pub(super) fn change_streams<R>(
        &mut self,
        owner: ReaderId,
        change: impl FnOnce(&mut Streams) -> R,
    ) -> Option<R> {
        let counted = |streams: &mut Streams| {
            let before = streams.bytes();
            (change(streams), streams.bytes() - before)
        };
        let ((changed, more), reader) = known(self.readers.change(owner, counted), READER)?;
        self.memory.charge(more);
        self.memory.tell(Event::Moved {
            owner,
            file: reader.file,
            streams: reader.streams(),
        });
        Some(changed)
    }

    /// The frames, and the parts that producers have of them.
    pub(super) fn shares(&self) -> Shares {
        let Producers { plan, files } = &self.producers;
        Shares {
            frames: self.memory.frames_usable(),
            plan: plan.as_ref().map_or(0, |plan| plan.blocks()),
            ahead: files.as_ref().map_or(0, |files| files.blocks()),
        }
    }

    /// The program behind a reader has used so much processor time.
    pub(super) fn cpu_time(&mut self, owner: ReaderId, time: Nanos) -> Option<()> {
        self.readers.reader(owner)?;
        self.memory.tell(Event::CpuTime { owner, time });
        Some(())
    }
}
