//! Longest: the last block of the longest stream goes first.
//!
//! Many readers, each sequential, in little memory: an order by access history gives up the blocks
//! that arrived first, and these are the ones that their readers come to next. Li and Shen 2005,
//! section 3.1, take the block that is used furthest in the future, and the last block of the
//! longest stream is a guess at it that needs no hints. In the order of victims:
//!
//! 1. blocks that no stream has ahead any more (its owner has closed the file, or skipped them);
//! 2. while the prefetch cache is above its part of the memory, the last block of its longest
//!    stream;
//! 3. the ordinary cache in the order of a two-list LRU, which is `lru`'s.
//!
//! Example: a part of 100 blocks, streams of 60 and 50. The first gives up its blocks 59 to 50,
//! and both have 50.
//!
//! A block in flight cannot be given up; the last one that has arrived goes instead of it, so the
//! length of a stream is that of what has arrived.

use alloc::boxed::Box;

use super::lru::TwoList;
use super::{Cache, PrefetchStream, Reclaim, Victim};
use crate::spec::{Knows, Method, Param, Spec};
use crate::table::Frame;

pub(super) const METHOD: Method<Box<dyn Reclaim>> = Method {
    spec: Spec {
        name: "longest",
        summary: "blocks fetched ahead apart: the last block of the longest stream goes first",
        source: "Li and Shen 2005 section 3.1 (PC-Longest), with a fixed part of the memory",
        unfit: "one long stream among idle ones: the idle ones keep their blocks",
        knows: Knows::Online,
        params: &[Param {
            name: "prefetch_percent",
            summary: "part of the memory that blocks fetched ahead may keep when a frame is \
                      needed; 25 is where Li and Shen begin (section 3.3) before they adapt it",
            default: 25,
            min: 1,
            max: 99,
        }],
    },
    build: |values| {
        Box::new(Longest {
            percent: values[0] as u8,
            ordinary: TwoList::default(),
        })
    },
};

#[derive(Debug)]
struct Longest {
    percent: u8,
    ordinary: TwoList,
}

impl Reclaim for Longest {
    fn prefetch_percent(&self) -> Option<u8> {
        Some(self.percent)
    }

    fn rank(&self, stream: &PrefetchStream) -> u64 {
        stream.blocks.into()
    }

    fn inserted(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        self.ordinary.inserted(cache, frame);
    }

    fn touched(&mut self, cache: &mut Cache<'_>, frame: Frame) {
        self.ordinary.touched(cache, frame);
    }

    fn victim(&mut self, cache: &mut Cache<'_>) -> Option<Victim> {
        let last = cache.highest().map(Victim::Last);
        if cache.prefetched.blocks > cache.prefetched.target && last.is_some() {
            return last;
        }
        self.ordinary.victim(cache).or(last)
    }

    fn sweep(&mut self, cache: &mut Cache<'_>, gone: &dyn Fn(Frame) -> bool) {
        self.ordinary.sweep(cache, gone);
    }

    fn len(&self) -> u32 {
        self.ordinary.len()
    }
}
