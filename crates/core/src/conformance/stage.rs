//! A stage for tests of single reclaim methods: a table, its links, and readers with streams,
//! without an engine.
//!
//! Blocks become resident in frames of the test's choice, and calls are the test's: a method gets
//! the [`Cache`] that it would get from an engine whose plan holds nothing, and the [`Event`]s of a
//! window, a read and a close in the engine's order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bits::Bits;
use crate::detect::Direction;
use crate::reclaim::{Cache, Event, Reclaim, Victim};
use crate::stream::Streams;
use crate::table::{Frame, Links, Table, flag};
use crate::units::{Block, Extent, FileId, Nanos, ReaderId};

/// See the [module](self).
#[derive(Debug)]
pub struct Stage {
    /// The blocks.
    pub table: Table,
    links: Links,
    held: Bits,
    readers: BTreeMap<ReaderId, (FileId, Streams)>,
    /// The time.
    pub now: Nanos,
}

impl Stage {
    /// So many frames, all free.
    #[must_use]
    pub fn new(frames: u32) -> Self {
        Self {
            table: Table::new(frames),
            links: Links::new(frames),
            held: Bits::default(),
            readers: BTreeMap::new(),
            now: Nanos(0),
        }
    }

    /// A block is in the table from now on, with these flags.
    pub fn insert(&self, frame: Frame, file: FileId, block: Block, flags: u8) {
        self.table.insert(frame, file, block, flags);
    }

    /// Flags of a frame are set, the engine's included.
    pub fn set(&self, frame: Frame, flags: u8) {
        self.table.set(frame, flags);
    }

    /// Flags of a frame are cleared, the engine's included.
    pub fn clear(&self, frame: Frame, flags: u8) {
        self.table.clear(frame, flags);
    }

    /// A block leaves the table.
    pub fn remove(&self, frame: Frame) {
        self.table.remove(frame);
    }

    /// The argument of a method's calls.
    pub fn cache(&mut self) -> Cache<'_> {
        Cache {
            frames: self.table.frames(),
            table: &self.table,
            links: &mut self.links,
            held: &self.held,
            now: self.now,
        }
    }

    /// Tells of a reader's streams, once they have changed.
    fn change<R>(
        &mut self,
        method: &mut dyn Reclaim,
        owner: ReaderId,
        file: FileId,
        change: impl FnOnce(&mut Streams, Nanos) -> R,
    ) -> R {
        let mut reader = self.readers.remove(&owner).unwrap_or_default();
        reader.0 = file;
        let changed = change(&mut reader.1, self.now);
        let streams = &reader.1;
        let moved = Event::Moved {
            owner,
            file,
            streams,
        };
        method.hear(&mut self.cache(), moved);
        self.readers.insert(owner, reader);
        changed
    }

    /// A window of a reader opens, forward.
    pub fn window(&mut self, method: &mut dyn Reclaim, owner: ReaderId, extent: Extent) {
        self.change(method, owner, extent.file, |streams, now| {
            let stream = streams.continued(extent.first, Direction::Forward, now);
            stream.windows_end = stream.windows_end.max(extent.end());
        });
        method.hear(&mut self.cache(), Event::Window { owner, extent });
    }

    /// A reader takes these blocks, as far as they are resident.
    pub fn read(&mut self, method: &mut dyn Reclaim, owner: ReaderId, extent: Extent) {
        for block in extent.blocks() {
            let Some(found) = self.table.find(extent.file, block) else {
                continue;
            };
            if found.flags & flag::UNREAD != 0 {
                self.clear(found.frame, flag::UNREAD);
                method.hear(&mut self.cache(), Event::Used(found.frame));
            }
            method.hear(&mut self.cache(), Event::Touched(found.frame));
        }
        let stream = self.change(method, owner, extent.file, |streams, now| {
            streams.advance(extent.first, extent.count, now)
        });
        let read = Event::Read {
            owner,
            extent,
            stream,
        };
        method.hear(&mut self.cache(), read);
    }

    /// A reader closes its file.
    pub fn close(&mut self, method: &mut dyn Reclaim, owner: ReaderId) {
        let Some((file, _)) = self.readers.get(&owner) else {
            return;
        };
        self.change(method, owner, *file, |streams, _| streams.clear());
        method.hear(&mut self.cache(), Event::Closed(owner));
        self.readers.remove(&owner);
    }

    /// A method's victim: its block has left the table, and its stream is shorter.
    pub fn give_up(&mut self, method: &mut dyn Reclaim) -> Option<(FileId, Block)> {
        let victim = method.victim(&mut self.cache())?;
        let frame = victim.frame();
        let (file, block) = self.table.holds(frame);
        if let Victim::LastOf(id, _) = victim {
            self.change(method, id.owner, file, |streams, _| {
                streams.shorten(id.start, block);
            });
        }
        self.remove(frame);
        Some((file, block))
    }

    /// The frames given up until there is none; their blocks stay in the table.
    pub fn victims(&mut self, method: &mut dyn Reclaim) -> Vec<u32> {
        let victims = core::iter::from_fn(|| Some(method.victim(&mut self.cache())?.frame().0));
        victims.collect()
    }
}
