//! S3-FIFO: a small queue for new blocks, a main queue for those accessed again, and a list of names.
//!
//! Most blocks are accessed once. They pass through the small queue, a tenth of the memory, and leave
//! without having displaced anything from the main queue. A block accessed more than once by then goes to
//! the main queue, as does one that comes back while its name is still remembered (Yang et al., "FIFO
//! queues are all you need for cache eviction", SOSP 2023, section 4).
//!
//! The count of accesses, 0 to 3, is in the two flags that a method has: REFERENCED is 1, ACTIVE is 2. The
//! names are beside the memory limit: 16 bytes for each block of the main queue.

use std::collections::{BTreeSet, VecDeque};

use forerun_core::reclaim::{Cache, Event, Queue, Reclaim, Victim};
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::table::{Frame, flag};
use forerun_core::{Block, FileId};

pub static S3_FIFO: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "s3-fifo",
        summary: "new blocks in a small queue; those accessed again in the main one",
        source: "Yang et al., SOSP 2023",
        unfit: "more streams than memory: blocks fetched ahead are lost before they are read",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(S3Fifo::default()),
};

#[derive(Debug, Default)]
struct S3Fifo {
    small: Queue,
    main: Queue,
    /// Blocks given up from the small queue, the oldest first.
    names: VecDeque<(FileId, Block)>,
    known: BTreeSet<(FileId, Block)>,
}

fn count(cache: &Cache<'_>, frame: Frame) -> u8 {
    let flags = cache.flags(frame);
    u8::from(flags & flag::REFERENCED != 0) + 2 * u8::from(flags & flag::ACTIVE != 0)
}

fn set_count(cache: &Cache<'_>, frame: Frame, count: u8) {
    cache.clear(frame, flag::REFERENCED | flag::ACTIVE);
    let one = if count & 1 != 0 { flag::REFERENCED } else { 0 };
    let two = if count & 2 != 0 { flag::ACTIVE } else { 0 };
    // The next access is to be reported, too.
    cache.set(frame, one | two | flag::ARMED);
}

impl S3Fifo {
    /// The next block of the small queue that goes.
    fn victim_of_small(&mut self, cache: &mut Cache<'_>) -> Option<Frame> {
        for _ in 0..self.small.len() {
            let frame = cache.pop(&mut self.small)?;
            if cache.flags(frame) & flag::PINNED != 0 {
                cache.push(&mut self.small, frame);
            } else if count(cache, frame) > 1 {
                set_count(cache, frame, 0);
                cache.push(&mut self.main, frame);
            } else {
                self.remember(cache.block(frame));
                return Some(frame);
            }
        }
        None
    }

    /// The next block of the main queue that goes; each access gave it one more round.
    fn victim_of_main(&mut self, cache: &mut Cache<'_>) -> Option<Frame> {
        for _ in 0..4 * self.main.len() {
            let frame = cache.pop(&mut self.main)?;
            let count = count(cache, frame);
            if cache.flags(frame) & flag::PINNED == 0 && count == 0 {
                return Some(frame);
            }
            set_count(cache, frame, count.saturating_sub(1));
            cache.push(&mut self.main, frame);
        }
        None
    }

    fn remember(&mut self, block: (FileId, Block)) {
        if self.known.insert(block) {
            self.names.push_back(block);
        }
        while self.names.len() > (self.main.len() as usize).max(64) {
            if let Some(oldest) = self.names.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

impl Reclaim for S3Fifo {
    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        match event {
            Event::Inserted { frame, .. } => {
                let is_known = self.known.contains(&cache.block(frame));
                let queue = if is_known {
                    &mut self.main
                } else {
                    &mut self.small
                };
                cache.push(queue, frame);
            }
            Event::Touched(frame) => {
                set_count(cache, frame, (count(cache, frame) + 1).min(3));
            }
            _ => {}
        }
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let is_small_full = self.small.len() > self.len() / 10;
        let first = match is_small_full {
            true => self.victim_of_small(cache),
            false => None,
        };
        let frame = first.or_else(|| self.victim_of_main(cache));
        frame
            .or_else(|| self.victim_of_small(cache))
            .map(Victim::Frame)
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        cache.sweep(&mut self.small, |frame, _| gone(frame));
        cache.sweep(&mut self.main, |frame, _| gone(frame));
    }

    fn len(&self) -> u32 {
        self.small.len() + self.main.len()
    }
}
