//! Trimming: pages of frames that hold nothing, given back to the system while a limit is in force.
//!
//! The engine keeps within a [limit](crate::Driver::limit_memory) by setting frames aside; their
//! pages stay with the process until they are given back. Which frames are set
//! aside changes a little all the time, so their number is the limit: no more frames may have pages
//! than the limit allows, and a [`SLACK`]. When there are more, frames are looked at in turn, some each
//! time the engine's lock is left, and the pages of those that hold nothing are given back.
//!
//! Kept beside the engine under its lock, told of every request, asked by
//! [`EngineHost`](crate::engine_host::EngineHost). Without a limit it only counts requests.

use forerun_core::table::{Frame, Table, flag};

use crate::arena::{Arena, Run};
use crate::threads;

/// Frames looked at each time: 64 MiB of blocks of 4 KiB. That takes some ten microseconds, and ten
/// milliseconds where all of them have pages to give back.
const LOOKED_AT: u32 = 1 << 14;

/// The part of the allowed frames that may have pages on top: so many are given back for each time
/// all frames are looked at, so that a frame given back costs a look at a few hundred.
const SLACK: u32 = 64;

/// A bit for each frame: 0.003 % of the memory.
#[derive(Debug)]
struct Bits(Box<[u64]>);

impl Bits {
    fn new(frames: u32) -> Self {
        Self(vec![0; frames.div_ceil(u64::BITS) as usize].into_boxed_slice())
    }

    fn has(&self, frame: u32) -> bool {
        self.0[(frame / u64::BITS) as usize] >> (frame % u64::BITS) & 1 != 0
    }

    /// Sets or clears a bit; whether that changed it.
    fn put(&mut self, frame: u32, value: bool) -> bool {
        let changes = self.has(frame) != value;
        self.0[(frame / u64::BITS) as usize] ^= u64::from(changes) << (frame % u64::BITS);
        changes
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Trimming {
    frames: u32,
    /// Requests made since a limit is in force fill these, also some that the engine has given up
    /// meanwhile. Empty without a limit, as the next: bookkeeping has little room.
    filling: Bits,
    /// Given back and not filled since.
    without_pages: Bits,
    /// Requests under way that fill frames.
    requests: u32,
    /// How many of these were made before the limit. Their frames are not known, so nothing is
    /// given back until they are over.
    unknown: u32,
    /// How many those are.
    given_back: u32,
    /// The most frames that may have pages; none without a limit.
    allowed: Option<u32>,
    /// The frame to look at next.
    next: u32,
}

impl Trimming {
    pub(crate) fn new(frames: u32) -> Self {
        Self {
            frames,
            filling: Bits::new(0),
            without_pages: Bits::new(0),
            requests: 0,
            unknown: 0,
            given_back: 0,
            allowed: None,
            next: 0,
        }
    }

    /// A request fills these frames from now on.
    pub(crate) fn fills(&mut self, runs: &[Run]) {
        self.requests += u32::from(!runs.is_empty());
        if self.allowed.is_none() {
            return;
        }
        for frame in runs.iter().flat_map(Run::numbers) {
            self.filling.put(frame, true);
            if self.without_pages.put(frame, false) {
                self.given_back -= 1;
            }
        }
    }

    /// A request does not fill them any more.
    pub(crate) fn filled(&mut self, runs: &[Run]) {
        self.requests -= u32::from(!runs.is_empty());
        let (Some(run), Some(_)) = (runs.first(), self.allowed) else {
            return;
        };
        // No two requests fill one frame, so this tells which of the two kinds it is.
        if !self.filling.has(run.first.0) {
            self.unknown -= 1;
            return;
        }
        for frame in runs.iter().flat_map(Run::numbers) {
            self.filling.put(frame, false);
        }
    }

    /// Allows so many frames to have pages, or all.
    pub(crate) fn allow(&mut self, frames: Option<u32>) {
        let before = std::mem::replace(&mut self.allowed, frames);
        if before.is_some() == frames.is_some() {
            return;
        }
        // Without a limit the system may hold memory, and brings pages that were not asked for:
        // their state is not known any more.
        let noted = if frames.is_some() { self.frames } else { 0 };
        self.filling = Bits::new(noted);
        self.without_pages = Bits::new(noted);
        self.unknown = self.requests;
        self.given_back = 0;
    }

    /// How often [`give_back`](Self::give_back) looks until it has seen them all.
    pub(crate) fn turns(frames: u32) -> u32 {
        frames.div_ceil(LOOKED_AT)
    }

    /// Whether more frames have pages than are allowed, and some can be given back.
    pub(crate) fn is_any(&self) -> bool {
        let most = |allowed: u32| allowed.saturating_add(allowed / SLACK);
        let limit = self.allowed.map(most);
        self.unknown == 0 && limit.is_some_and(|most| self.frames - self.given_back > most)
    }

    /// Gives back the pages of those that hold nothing, of the frames whose turn it is. The caller
    /// holds the engine's lock, and no backend holds memory between requests.
    pub(crate) fn give_back(&mut self, table: &Table, arena: &Arena, domain: u32) {
        let end = self.next.saturating_add(LOOKED_AT).min(self.frames);
        let mut runs: Vec<Run> = Vec::new();
        for frame in self.next..end {
            let flags = table.flags(Frame(frame)) & (flag::VACANT | flag::PINNED);
            if flags != flag::VACANT || self.filling.has(frame) {
                continue;
            }
            if self.without_pages.put(frame, true) {
                self.given_back += 1;
                Run::push(&mut runs, Frame(frame));
            }
        }
        self.next = if end == self.frames { 0 } else { end };
        let mut clear: Vec<Run> = Vec::new();
        for run in runs {
            if threads::is_clear(domain, &[run]) {
                clear.push(run);
                continue;
            }
            // A copy may wait for a page of its program. Its frame has another turn.
            for first in run.numbers().map(Frame) {
                match threads::is_clear(domain, &[Run { first, count: 1 }]) {
                    true => Run::push(&mut clear, first),
                    false => self.keep(first),
                }
            }
        }
        for run in clear {
            // SAFETY: these frames are vacant, so no thread begins to read them; none that did
            // without a lock is at it still, readers that were served have no pin on them. No
            // request fills them. The engine gives them to no other block meanwhile, because its lock
            // is held, and a later owner fills them before they are read.
            unsafe { arena.discard(run) };
        }
    }

    /// This frame keeps its pages for now.
    fn keep(&mut self, frame: Frame) {
        self.without_pages.put(frame.0, false);
        self.given_back -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::arena::Target;

    #[test]
    fn a_frame_that_a_thread_copies_out_of_is_not_waited_for_and_alone_has_another_turn() {
        const DOMAIN: u32 = u32::MAX - 4;
        let announcer = threads::announcer().unwrap();
        let hazard = announcer.hold(DOMAIN, Frame(9), || true).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (arena, table) = (Arena::new(256, 4096).unwrap(), Table::new(256));
            let mut surplus = Trimming::new(256);
            surplus.allow(Some(64));
            surplus.give_back(&table, &arena, DOMAIN);
            tell.send((surplus, arena, table)).unwrap();
        });
        let given_back = told.recv_timeout(std::time::Duration::from_secs(60));
        drop(hazard);
        let (mut surplus, arena, table) = given_back.unwrap();
        assert!(!surplus.without_pages.has(9));
        assert_eq!(surplus.given_back, 255, "it alone has its pages still");
        assert!(!surplus.is_any(), "nor is it looked at each time");
        surplus.give_back(&table, &arena, DOMAIN);
        assert_eq!(surplus.given_back, 256);
    }

    #[test]
    fn vacant_frames_lose_their_pages_and_those_a_request_fills_do_not() {
        let arena = Arc::new(Arena::new(256, 4096).unwrap());
        let table = Table::new(256);
        // SAFETY: this arena is used here alone.
        let mut target = unsafe { Target::new(arena.clone(), (0..256).map(Frame)) };
        target.fill(0, target.bytes(), |_, slice| slice.fill(7));
        let mut surplus = Trimming::new(256);
        let busy = [Run {
            first: Frame(100),
            count: 50,
        }];
        let early = [Run {
            first: Frame(7),
            count: 2,
        }];
        surplus.fills(&early);
        assert!(!surplus.is_any());
        surplus.allow(Some(64));
        surplus.fills(&busy);
        assert!(
            !surplus.is_any(),
            "what the early request fills is not known"
        );
        surplus.filled(&early);
        assert!(surplus.is_any());
        surplus.give_back(&table, &arena, u32::MAX - 3);
        assert!(!surplus.is_any());
        let mut kept = Vec::new();
        target.fill(0, target.bytes(), |_, slice| {
            kept = slice.chunks(4096).map(|frame| frame[0]).collect();
        });
        let expected = |frame| if (100..150).contains(&frame) { 7 } else { 0 };
        assert_eq!(kept, (0..256).map(expected).collect::<Vec<u8>>());
        surplus.filled(&busy);
        surplus.fills(&[Run {
            first: Frame(0),
            count: 30,
        }]);
        assert!(surplus.is_any(), "they have pages again");
        surplus.allow(None);
        assert!(!surplus.is_any() && surplus.given_back == 0);
    }
}
