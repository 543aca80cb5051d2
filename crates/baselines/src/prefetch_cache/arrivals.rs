//! Arrivals: the unread blocks in the order in which they became resident.
//!
//! A queue of frames gives up its front only ([`Queue`](forerun_core::reclaim::Queue)), so a block that was read
//! would stay in it until its turn comes, and count as unread. This one holds positions instead, in
//! runs, and a run costs as much as two blocks of a queue:
//!
//! ```text
//!   arrive 0..32 of file 1, 100..132 of file 2, 32..64 of file 1
//!   runs   [1: 0..32] [2: 100..132] [1: 32..64]
//! ```
//!
//! The oldest block is the first in the first run that is still unread; positions that are not are
//! passed over, each once. Runs without an unread block are dropped when there are a quarter more
//! runs than were in use.
//!
//! A block that went by another way and was fetched again has two positions, and goes at the first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use forerun_core::reclaim::Cache;
use forerun_core::table::{Frame, flag};
use forerun_core::{Block, FileId};

/// Longest run: that of a request of 1 MiB. A run is looked through as a whole when dead ones are
/// dropped.
const RUN_MAX: u32 = 256;
/// Fewest runs among which dead ones are looked for.
const RUNS_MIN: usize = 64;
/// Charge of a run: its 12 bytes, in a ring that grows by a quarter.
const RUN_BYTES: u64 = 16;

/// Room for a quarter more, or for the fewest.
fn grown(runs: usize) -> usize {
    runs.saturating_add((runs / 4).max(RUNS_MIN))
}

/// Blocks `first..end`; empty if the two are equal.
#[derive(Clone, Copy, Debug)]
struct RunOfBlocks {
    file: FileId,
    first: u32,
    end: u32,
}

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    runs: VecDeque<RunOfBlocks>,
    /// More runs than this may be dead ones.
    limit: usize,
}

/// Whether the block of a frame is resident, unread and in the order of arrival, not reclaimed from it.
const UNREAD: u8 = flag::UNREAD | flag::FILLING | flag::VACANT | flag::REFERENCED;

impl Arrivals {
    /// A block became resident, unread.
    pub(super) fn push(&mut self, cache: &Cache<'_>, file: FileId, block: Block) {
        if let Some(last) = self.runs.back_mut()
            && (last.file, last.end) == (file, block.0)
            && last.end - last.first < RUN_MAX
            && let Some(end) = block.0.checked_add(1)
        {
            last.end = end;
            return;
        }
        if self.runs.len() > self.limit.max(RUNS_MIN) {
            self.drop_dead(cache);
            self.limit = grown(self.runs.len());
        }
        if self.runs.len() == self.runs.capacity() {
            self.runs
                .reserve_exact(grown(self.runs.len()) - self.runs.len());
        }
        self.runs.push_back(RunOfBlocks {
            file,
            first: block.0,
            end: block.0.saturating_add(1),
        });
    }

    /// Takes the oldest block that is still unread, not pinned, and not held by the plan.
    pub(super) fn take(&mut self, cache: &Cache<'_>) -> Option<Frame> {
        let mut pinned: Vec<RunOfBlocks> = Vec::new();
        let mut oldest = None;
        while oldest.is_none()
            && let Some(run) = self.runs.front_mut()
        {
            if run.first == run.end {
                self.runs.pop_front();
                continue;
            }
            let (file, first) = (run.file, run.first);
            run.first += 1;
            match cache.find(file, Block(first)) {
                Some(found) if found.flags & UNREAD != flag::UNREAD => {}
                // Fetched again by the plan, which tells of it when it lets go.
                Some(found) if cache.is_held(found.frame) => {}
                Some(found) if found.flags & flag::PINNED != 0 => {
                    let end = first + 1;
                    pinned.push(RunOfBlocks { file, first, end });
                }
                found => oldest = found.map(|found| found.frame),
            }
        }
        for run in pinned.into_iter().rev() {
            self.runs.push_front(run);
        }
        oldest
    }

    fn drop_dead(&mut self, cache: &Cache<'_>) {
        self.runs.retain_mut(|run| {
            let is_unread = |block: u32| {
                let found = cache.find(run.file, Block(block));
                found.is_some_and(|found| found.flags & UNREAD == flag::UNREAD)
            };
            let first = (run.first..run.end).find(|block| is_unread(*block));
            run.first = first.unwrap_or(run.end);
            first.is_some()
        });
    }

    pub(super) fn bytes(&self) -> u64 {
        self.runs.len() as u64 * RUN_BYTES
    }

    #[cfg(test)]
    pub(super) fn has(&self, file: FileId, block: Block) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|run| run.file == file && (run.first..run.end).contains(&block.0))
    }
}
