//! Exclusive: blocks that were read go first, because another cache keeps them.
//!
//! For a cache below another one. The kernel holds blocks that readers of a mount have taken, so
//! holding it here too would waste the memory; the ones worth keeping are blocks fetched ahead that
//! their reader has not come to. Li and Shen 2005 keeps the two apart in one kernel (section 3.1);
//! here the ordinary cache is another program's.
//!
//! One queue in order of arrival. A victim is the oldest block that was read or whose reader has
//! closed the file, and only if there is none the oldest unread one. Unread blocks passed over go
//! to the back, and after 4,096 of them the next one goes, read or not.
//!
//! Blocks read beyond a part of the memory go even before memory that was never used: the first
//! touch of a page costs as much as a fast disk takes to fill it. Example: a file of 64 MiB read
//! once in 256 MiB of memory uses 16 MiB of it and those ahead of the reader.

use alloc::boxed::Box;

use super::{Cache, Event, Queue, Reclaim, SPARED_MAX, Victim};
use crate::spec::{Knows, Method, Param, Spec};
use crate::table::{Frame, flag};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "exclusive",
        summary: "blocks read go first, then the oldest unread",
        source: "li05 section 3.1, with the ordinary cache elsewhere",
        unfit: "programs that read a block twice with no cache above",
        knows: Knows::Online,
        params: &[Param {
            name: "keep_percent",
            summary: "blocks read that stay while memory is free, in per cent of it",
            default: 100,
            min: 0,
            max: 100,
        }],
    },
    build: |values| {
        Box::new(Exclusive {
            keep_percent: values.get("keep_percent"),
            ..Exclusive::default()
        })
    },
};

/// At least so many blocks read stay: a reader may take one in pieces.
const KEEP_MIN: u64 = 64;

#[derive(Debug, Default)]
struct Exclusive {
    keep_percent: u64,
    queue: Queue,
    /// Blocks in the queue that are not needed any more, marked `REFERENCED`.
    spent: u32,
}

impl Reclaim for Exclusive {
    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        match event {
            Event::Inserted { frame, .. } => cache.push(&mut self.queue, frame),
            Event::Touched(frame) | Event::Abandoned(frame)
                if cache.flags(frame) & flag::REFERENCED == 0 =>
            {
                cache.set(frame, flag::REFERENCED);
                self.spent += 1;
            }
            _ => {}
        }
    }

    fn has_spare(&self, frames: u32) -> bool {
        let keep = u64::from(frames) * self.keep_percent / 100;
        u64::from(self.spent) > keep.max(KEEP_MIN)
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let all = self.queue.len();
        let spared_max = match self.spent {
            0 => 0,
            _ => all.min(SPARED_MAX),
        };
        for passed in 0..spared_max + all {
            let frame = cache.pop(&mut self.queue)?;
            let flags = cache.flags(frame);
            let is_spent = flags & flag::REFERENCED != 0;
            if flags & flag::PINNED == 0 && (is_spent || passed >= spared_max) {
                debug_assert!(!is_spent || self.spent > 0, "{frame:?} was not counted");
                self.spent -= u32::from(is_spent);
                return Some(Victim::Frame(frame));
            }
            cache.push(&mut self.queue, frame);
        }
        None
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        let mut spent = 0;
        cache.sweep(&mut self.queue, |frame, flags| {
            let gone = gone(frame);
            spent += u32::from(!gone && flags & flag::REFERENCED != 0);
            gone
        });
        self.spent = spent;
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::stage::Stage;
    use crate::units::{Block, FileId};

    #[test]
    fn blocks_read_go_before_older_unread_ones_and_pinned_ones_stay() {
        let mut stage = Stage::new(8);
        let mut exclusive = Exclusive::default();
        for n in 0..6 {
            let table = &stage.table;
            table.insert(Frame(n), FileId(0), Block(n), flag::UNREAD);
            let (frame, owner) = (Frame(n), None);
            exclusive.hear(&mut stage.cache(), Event::Inserted { frame, owner });
        }
        exclusive.hear(&mut stage.cache(), Event::Touched(Frame(2)));
        exclusive.hear(&mut stage.cache(), Event::Touched(Frame(3)));
        exclusive.hear(&mut stage.cache(), Event::Abandoned(Frame(5)));
        stage.table.set(Frame(3), flag::PINNED);
        let victims = stage.victims(&mut exclusive);
        assert_eq!(victims[..2], [2, 5], "read or abandoned, not pinned");
        assert_eq!(victims.len(), 5, "all but the pinned one");
        assert_eq!((exclusive.len(), exclusive.spent), (1, 1));
    }

    #[test]
    fn a_victim_is_found_among_so_many_however_long_the_queue_is() {
        let frames = 3 * SPARED_MAX;
        let mut stage = Stage::new(frames);
        let mut exclusive = Exclusive::default();
        for n in 0..frames {
            let table = &stage.table;
            table.insert(Frame(n), FileId(0), Block(n), flag::UNREAD);
            let (frame, owner) = (Frame(n), None);
            exclusive.hear(&mut stage.cache(), Event::Inserted { frame, owner });
        }
        exclusive.hear(&mut stage.cache(), Event::Touched(Frame(frames - 1)));
        let first = exclusive.victim(&mut stage.cache()).map(Victim::frame);
        let (second, third) = (SPARED_MAX * 2 + 1, frames - 1);
        assert_eq!(
            first,
            Some(Frame(SPARED_MAX)),
            "the oldest after those passed over"
        );
        let next = [(); 2].map(|()| exclusive.victim(&mut stage.cache()).map(Victim::frame));
        assert_eq!(next, [second, third].map(|frame| Some(Frame(frame))));
    }

    #[test]
    fn blocks_read_beyond_a_part_of_the_frames_go_before_frames_never_used() {
        let mut stage = Stage::new(1000);
        let mut exclusive = Exclusive {
            keep_percent: 10,
            ..Exclusive::default()
        };
        for n in 0..101 {
            let table = &stage.table;
            table.insert(Frame(n), FileId(0), Block(n), flag::UNREAD);
            let (frame, owner) = (Frame(n), None);
            exclusive.hear(&mut stage.cache(), Event::Inserted { frame, owner });
            assert!(!exclusive.has_spare(1000), "{n} read");
            exclusive.hear(&mut stage.cache(), Event::Touched(Frame(n)));
        }
        assert!(exclusive.has_spare(1000));
        assert!(!Exclusive::default().has_spare(0), "some always stay");
    }
}
