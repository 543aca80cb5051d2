//! Exclusive: what was read goes first, because somebody else keeps it.
//!
//! For a cache below another one. The kernel holds what readers of a mount have taken, so holding
//! it here too would waste the memory; what is worth keeping are blocks fetched ahead that their
//! reader has not come to. li05 keeps the two apart in one kernel (section 3.1); here the
//! ordinary cache is another program's.
//!
//! One queue in order of arrival. A victim is the oldest block that was read or whose reader has
//! closed the file, and only if there is none the oldest unread one. Unread blocks passed over go
//! to the back, so a search costs as many steps as there are unread blocks for a read one.

use alloc::boxed::Box;

use super::{Blocks, Queue, Reclaim};
use crate::spec::{Knows, Method, Spec};
use crate::table::{Frame, flag};

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "exclusive",
        summary: "blocks read go first, then the oldest unread",
        source: "li05 section 3.1, with the ordinary cache elsewhere",
        unfit: "programs that read a block twice with no cache above",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Exclusive::default()),
};

#[derive(Debug, Default)]
struct Exclusive {
    queue: Queue,
    /// Blocks in the queue that are not needed any more, marked `REFERENCED`.
    spent: u32,
}

impl Reclaim for Exclusive {
    fn inserted(&mut self, blocks: &mut Blocks<'_>, frame: Frame) {
        self.queue.push(blocks.links, frame);
    }

    fn touched(&mut self, blocks: &mut Blocks<'_>, frame: Frame) {
        self.abandoned(blocks, frame);
    }

    fn abandoned(&mut self, blocks: &mut Blocks<'_>, frame: Frame) {
        if blocks.table.flags(frame) & flag::REFERENCED == 0 {
            blocks.table.set(frame, flag::REFERENCED);
            self.spent += 1;
        }
    }

    fn victim(&mut self, blocks: &mut Blocks<'_>) -> Option<Frame> {
        for wanted in [flag::REFERENCED, 0] {
            if wanted != 0 && self.spent == 0 {
                continue;
            }
            for _ in 0..self.queue.len() {
                let frame = self.queue.pop(blocks.links)?;
                let flags = blocks.table.flags(frame);
                if flags & wanted == wanted && flags & flag::PINNED == 0 {
                    self.spent -= u32::from(flags & flag::REFERENCED != 0);
                    return Some(frame);
                }
                self.queue.push(blocks.links, frame);
            }
        }
        None
    }

    fn sweep(&mut self, blocks: &mut Blocks<'_>, gone: &dyn Fn(Frame) -> bool) {
        let table = blocks.table;
        let mut spent = 0;
        self.queue.sweep(blocks.links, |frame| {
            let gone = gone(frame);
            spent += u32::from(!gone && table.flags(frame) & flag::REFERENCED != 0);
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
    use crate::table::{Links, Table};
    use crate::units::{Block, FileId};
    use std::vec::Vec;

    #[test]
    fn blocks_read_go_before_older_unread_ones_and_pinned_ones_stay() {
        let table = Table::new(8);
        let mut links = Links::new(8);
        let mut blocks = Blocks {
            table: &table,
            links: &mut links,
        };
        let mut exclusive = Exclusive::default();
        for n in 0..6 {
            table.insert(Frame(n), FileId(0), Block(n), flag::UNREAD);
            exclusive.inserted(&mut blocks, Frame(n));
        }
        exclusive.touched(&mut blocks, Frame(2));
        exclusive.touched(&mut blocks, Frame(3));
        exclusive.abandoned(&mut blocks, Frame(5));
        table.set(Frame(3), flag::PINNED);
        let victims: Vec<u32> = core::iter::from_fn(|| exclusive.victim(&mut blocks))
            .map(|f| f.0)
            .collect();
        assert_eq!(victims[..2], [2, 5], "read or abandoned, not pinned");
        assert_eq!(victims.len(), 5, "all but the pinned one");
        assert_eq!((exclusive.len(), exclusive.spent), (1, 1));
    }
}
