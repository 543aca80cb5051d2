//! Two-list LRU: blocks enter the inactive list, and a second access earns the active one.
//!
//! Linux 2.6's page cache, which Li and Shen 2005 calls AccessHistory: blocks fetched ahead and
//! blocks read stand in one order. A block enters the inactive list when it becomes resident. The
//! first access marks it referenced, the second activates it. Victims come from the old end of the
//! inactive list; when the active list is the longer one, its oldest blocks are deactivated.
//!
//! ```text
//!   inserted -> [ newest  inactive  oldest ] -> victim, unless activated meanwhile
//!                    ^ deactivated                    |
//!               [ newest   active   oldest ] <--------+
//! ```
//!
//! An activated block moves when it reaches the old end of the inactive list, not at once: that
//! is as much as one three-byte link a block allows (see the design note 0002). It is not
//! scan-resistant, and under memory pressure blocks fetched ahead go before their readers come (Li and
//! Shen 2005, section 3), so unread blocks may be *spared*: passed over at the old end some times. Then one that its
//! reader awaits is passed over once more, until the bytes are taken.
//!
//! Example: 32 streams in 1536 frames, each with one window of 32 blocks ahead. An order of
//! all has 512 blocks read between an unread one and the old end, half a round of the streams. Spared
//! three times it lives four times as long, two rounds. One that is never read goes then.

use alloc::boxed::Box;

use super::{Cache, Event, Queue, Reclaim, SPARED_MAX, Victim};
use crate::spec::{Knows, Method, Param, Spec};
use crate::table::{Frame, flag};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "lru",
        summary: "two-list LRU, blocks read and blocks fetched ahead in one order",
        source: "li05 section 2 (AccessHistory); Linux 2.6",
        unfit: "more streams than memory: blocks fetched ahead are lost before they are read",
        knows: Knows::Online,
        params: &[Param {
            name: "spare",
            summary: "how often an unread block is passed over at the old end; 0 is Linux, 3 makes up \
                      for three quarters of the memory unread",
            default: 0,
            min: 0,
            max: SPARE_MAX,
        }],
    },
    build: |values| {
        Box::new(TwoList {
            spare: values.get("spare") as u8,
            ..TwoList::default()
        })
    },
};

/// As many as two flags count.
const SPARE_MAX: u64 = 3;
/// Of an unread block, the flags that count how often it was passed over: a number of two bits.
const PASSED: u8 = flag::REFERENCED | flag::ACTIVE;
/// Of a block that is not unread any more: its reader awaits it, or has just come to it, and its bytes were not taken.
/// An activated block is referenced, too.
const AWAITED: u8 = flag::ACTIVE;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct TwoList {
    /// How often an unread block is passed over.
    spare: u8,
    inactive: Queue,
    active: Queue,
}

impl TwoList {
    /// Whether this block at the old end is unread, and to be passed over; then it was once more.
    fn spares(&self, cache: &mut Cache<'_>, frame: Frame, flags: u8) -> bool {
        let passed = (flags & PASSED) / flag::REFERENCED;
        if flags & flag::UNREAD == 0 || passed >= self.spare {
            return false;
        }
        cache.clear(frame, PASSED);
        cache.set(frame, (passed + 1) * flag::REFERENCED);
        true
    }

    /// Keeps the active list from outgrowing the inactive one.
    fn balance(&mut self, cache: &mut Cache<'_>) {
        while self.active.len() > self.inactive.len() {
            let Some(frame) = cache.pop(&mut self.active) else {
                debug_assert!(false, "the longer list is empty");
                return;
            };
            cache.clear(frame, flag::ACTIVE | flag::REFERENCED);
            cache.set(frame, flag::ARMED);
            cache.push(&mut self.inactive, frame);
        }
    }
}

impl Reclaim for TwoList {
    fn hear(&mut self, cache: &mut Cache<'_>, event: Event<'_>) {
        match event {
            Event::Inserted { frame, .. } => cache.push(&mut self.inactive, frame),
            Event::Touched(frame) if cache.flags(frame) & flag::REFERENCED == 0 => {
                cache.clear(frame, AWAITED);
                cache.set(frame, flag::REFERENCED | flag::ARMED);
            }
            Event::Touched(frame) => cache.set(frame, flag::ACTIVE),
            Event::Used(frame) => {
                cache.clear(frame, PASSED);
                if self.spare > 0 {
                    cache.set(frame, AWAITED);
                }
            }
            _ => {}
        }
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        // Each block is looked at once, and again as often as it is spared: pinned and activated ones go
        // back, and if nothing else is left one more round finds the deactivated blocks.
        let mut spared = 0;
        for _ in 0..2 + self.spare {
            self.balance(cache);
            for _ in 0..self.inactive.len() {
                let frame = cache.pop(&mut self.inactive)?;
                let flags = cache.flags(frame);
                if flags & (PASSED | flag::UNREAD) == AWAITED {
                    cache.clear(frame, AWAITED);
                    cache.push(&mut self.inactive, frame);
                } else if flags & (flag::ACTIVE | flag::UNREAD) == flag::ACTIVE {
                    cache.push(&mut self.active, frame);
                } else if flags & flag::PINNED != 0 {
                    cache.push(&mut self.inactive, frame);
                } else if spared < SPARED_MAX && self.spares(cache, frame, flags) {
                    spared += 1;
                    cache.push(&mut self.inactive, frame);
                } else {
                    return Some(Victim::Frame(frame));
                }
            }
        }
        // The whole inactive list is pinned.
        for _ in 0..self.active.len() {
            let frame = cache.pop(&mut self.active)?;
            if cache.flags(frame) & flag::PINNED == 0 {
                return Some(Victim::Frame(frame));
            }
            cache.push(&mut self.active, frame);
        }
        None
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        cache.sweep(&mut self.inactive, |frame, _| gone(frame));
        cache.sweep(&mut self.active, |frame, _| gone(frame));
    }

    fn len(&self) -> u32 {
        self.inactive.len() + self.active.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    use super::*;
    use crate::reclaim::stage::Stage;
    use crate::units::{Block, FileId};

    #[derive(Clone, Copy)]
    struct Entry {
        frame: u32,
        /// How often it is spared yet, while it is unread.
        unread: Option<u8>,
        awaited: bool,
        referenced: bool,
        activated: bool,
    }

    impl Entry {
        fn of(frame: u32, unread: Option<u8>) -> Self {
            Self {
                frame,
                unread,
                awaited: false,
                referenced: false,
                activated: false,
            }
        }
    }

    /// The two lists as plain lists, oldest first.
    #[derive(Default)]
    struct Model {
        inactive: VecDeque<Entry>,
        active: VecDeque<u32>,
    }

    impl Model {
        fn touch(&mut self, frame: u32) {
            for entry in &mut self.inactive {
                if entry.frame == frame {
                    entry.unread = None;
                    entry.awaited = false;
                    entry.activated |= entry.referenced;
                    entry.referenced = true;
                }
            }
        }

        fn wait(&mut self, frame: u32) {
            for entry in &mut self.inactive {
                if entry.frame == frame {
                    entry.unread = None;
                    entry.awaited = true;
                }
            }
        }

        fn victim(&mut self, pinned: &[u32], spare: u8) -> Option<u32> {
            for _ in 0..2 + spare {
                while self.active.len() > self.inactive.len() {
                    let frame = self.active.pop_front()?;
                    self.inactive.push_back(Entry::of(frame, None));
                }
                for _ in 0..self.inactive.len() {
                    let mut entry = self.inactive.pop_front()?;
                    if entry.awaited && spare > 0 {
                        entry.awaited = false;
                        self.inactive.push_back(entry);
                    } else if entry.activated {
                        self.active.push_back(entry.frame);
                    } else if pinned.contains(&entry.frame) {
                        self.inactive.push_back(entry);
                    } else if let Some(spared @ 1..) = entry.unread {
                        entry.unread = Some(spared - 1);
                        self.inactive.push_back(entry);
                    } else {
                        return Some(entry.frame);
                    }
                }
            }
            let first = self.active.iter().position(|f| !pinned.contains(f))?;
            self.active.rotate_left(first);
            self.active.pop_front()
        }
    }

    proptest! {
        #[test]
        fn gives_up_blocks_in_the_order_of_two_plain_lists(
            steps in prop::collection::vec((0..5u8, 0..24u32), 0..300),
            spare in 0..=SPARE_MAX as u8,
        ) {
            let mut stage = Stage::new(24);
            let mut lru = TwoList { spare, ..TwoList::default() };
            let mut model = Model::default();
            let mut pinned: Vec<u32> = Vec::new();
            let mut free: Vec<u32> = (0..24).collect();
            for (what, n) in steps {
                let frame = Frame(n);
                let resident = !free.contains(&n);
                match what {
                    0 if !resident => {
                        free.retain(|f| *f != n);
                        stage.table.insert(frame, FileId(0), Block(n), flag::UNREAD);
                        let inserted = Event::Inserted { frame, owner: None };
                        lru.hear(&mut stage.cache(), inserted);
                        model.inactive.push_back(Entry::of(n, Some(spare)));
                    }
                    1 if resident => {
                        if stage.table.flags(frame) & flag::UNREAD != 0 {
                            stage.table.clear(frame, flag::UNREAD);
                            lru.hear(&mut stage.cache(), Event::Used(frame));
                        }
                        lru.hear(&mut stage.cache(), Event::Touched(frame));
                        model.touch(n);
                    }
                    2 if resident => {
                        if pinned.contains(&n) {
                            pinned.retain(|f| *f != n);
                            stage.table.clear(frame, flag::PINNED);
                        } else {
                            pinned.push(n);
                            stage.table.set(frame, flag::PINNED);
                        }
                    }
                    4 if resident && stage.table.flags(frame) & flag::UNREAD != 0 => {
                        stage.table.clear(frame, flag::UNREAD);
                        lru.hear(&mut stage.cache(), Event::Used(frame));
                        model.wait(n);
                    }
                    3 => {
                        let victim = match lru.victim(&mut stage.cache()) {
                            Some(Victim::Frame(frame)) => Some(frame.0),
                            other => { prop_assert_eq!(other, None); None }
                        };
                        prop_assert_eq!(victim, model.victim(&pinned, spare));
                        if let Some(n) = victim {
                            stage.table.remove(Frame(n));
                            free.push(n);
                        }
                    }
                    _ => {}
                }
                prop_assert_eq!(lru.len() as usize, model.inactive.len() + model.active.len());
            }
        }
    }
}
