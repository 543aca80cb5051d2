//! Two-list LRU: blocks enter the inactive list, and a second access earns the active one.
//!
//! Linux 2.6's page cache, where Li and Shen 2005 calls it AccessHistory: blocks fetched ahead and
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
//! is as much as one three-byte link a block allows (see the design note 0002). It is neither
//! scan-resistant nor does it know whose blocks it takes: under memory pressure blocks fetched
//! ahead go before their readers come (Li and Shen 2005, section 3).

use alloc::boxed::Box;

use super::{Cache, Queue, Reclaim, Victim};
use crate::spec::{Knows, Method, Spec};
use crate::table::{Frame, flag};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "lru",
        summary: "two-list LRU, blocks read and blocks fetched ahead in one order",
        source: "li05 section 2 (AccessHistory); Linux 2.6",
        unfit: "more streams than memory: blocks fetched ahead are lost before they are read",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(TwoList::default()),
};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct TwoList {
    inactive: Queue,
    active: Queue,
}

impl TwoList {
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
    fn inserted(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        cache.push(&mut self.inactive, frame);
    }

    fn touched(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        if cache.flags(frame) & flag::REFERENCED == 0 {
            cache.set(frame, flag::REFERENCED | flag::ARMED);
        } else {
            cache.set(frame, flag::ACTIVE);
        }
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        // Each block is looked at once: pinned and activated ones go back, and if nothing else is
        // left the second round finds the deactivated blocks.
        for _ in 0..2 {
            self.balance(cache);
            for _ in 0..self.inactive.len() {
                let frame = cache.pop(&mut self.inactive)?;
                let flags = cache.flags(frame);
                if flags & flag::ACTIVE != 0 {
                    cache.push(&mut self.active, frame);
                } else if flags & flag::PINNED != 0 {
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

    /// The two lists as plain lists, oldest first: (frame, referenced, activated).
    #[derive(Default)]
    struct Model {
        inactive: VecDeque<(u32, bool, bool)>,
        active: VecDeque<u32>,
    }

    impl Model {
        fn touch(&mut self, frame: u32) {
            for entry in &mut self.inactive {
                if entry.0 == frame {
                    entry.2 |= entry.1;
                    entry.1 = true;
                }
            }
        }

        fn victim(&mut self, pinned: &[u32]) -> Option<u32> {
            for _ in 0..2 {
                while self.active.len() > self.inactive.len() {
                    let frame = self.active.pop_front()?;
                    self.inactive.push_back((frame, false, false));
                }
                for _ in 0..self.inactive.len() {
                    let entry = self.inactive.pop_front()?;
                    if entry.2 {
                        self.active.push_back(entry.0);
                    } else if pinned.contains(&entry.0) {
                        self.inactive.push_back(entry);
                    } else {
                        return Some(entry.0);
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
            steps in prop::collection::vec((0..4u8, 0..24u32), 0..300)
        ) {
            let mut stage = Stage::new(24);
            let mut lru = TwoList::default();
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
                        lru.inserted(&mut stage.cache(), frame);
                        model.inactive.push_back((n, false, false));
                    }
                    1 if resident => {
                        lru.touched(&mut stage.cache(), frame);
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
                    3 => {
                        let victim = match lru.victim(&mut stage.cache()) {
                            Some(Victim::Frame(frame)) => Some(frame.0),
                            other => { prop_assert_eq!(other, None); None }
                        };
                        prop_assert_eq!(victim, model.victim(&pinned));
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
