//! Filling a window: how many files a run may ask for, which, and in which order they are emitted.
//!
//! ```text
//! room     least of: window - open, law of waste, blocks of the budget; or the rest of the folder, by the law of time
//! expect   method.next(tail), again and again; files opened or asked for are passed over
//! emit     by inode number
//! ```
//!
//! Of a file that is read whole as much is fetched as the device delivers in the time of a switch: one server at first,
//! and twice as many where the window has doubled; at most twice the longest file of the folder that was read so.
//! The head is read while the rest is on its way. Example:
//! on a store of 30 ms and 80 MB/s 2.4 MB of each of the first 4 objects, of later ones up to 38 MB by 16 servers. There
//! a window is filled at each file, because no order of a batch saves a switch.
//!
//! Control law of time, on a disk that does one thing at a time: each file of which fetched blocks were read saved a
//! switch, in which the disk could have read D blocks, the [competitive depth](crate::profile). Once the rest of a
//! run's folder fits into `D * saved - asked - wasted` blocks, and is at most 16 ([`FILL`]) times as many files, all
//! of it is asked for at once: side by side on the disk they cost no switches. So time for nothing is at most the
//! time saved. Example: D of 640 kB and a folder of 1,000 files of 31 kB: after 62 files the other 938, 29 MB.
//!
//! Called by [the runs](super) whenever one goes on.

use alloc::vec::Vec;

use super::habit::{Habit, Parts};
use super::{
    ASKED_MAX, Asked, Budget, Counts, FILL, FREE, FilesAhead, IDLE, OPENS, SAVED_MIN, State, WINDOW,
};
use crate::next_file::{HEAD_LEAST, Place, RunId};
use crate::protocol::Output;
use crate::units::Bytes;

impl FilesAhead {
    /// Fills a run's window: on disks if half of it is used up.
    pub(crate) fn extend(&mut self, id: RunId, budget: &Budget) {
        let Some(at) = self.walks.runs.iter().position(|run| run.id == id) else {
            return;
        };
        let run = &self.walks.runs[at];
        let is_half = run.open <= run.filled / 2;
        if !budget.any_worker && !is_half {
            return;
        }
        let is_used = run.used > 0 && run.used >= run.filled / 2;
        let window = match is_used {
            true => run.window.saturating_mul(2).min(self.limits.files),
            false => run.window,
        };
        let wanted = window.saturating_sub(run.open);
        let room = match self.rest(at, budget) {
            Some(files) => {
                // The folders after it are filled as well.
                self.walks.runs[at].window = self.limits.files;
                files
            }
            None => self.room(wanted),
        };
        let batch = self.expect(at, room, budget);
        let run = &mut self.walks.runs[at];
        run.filled = run.open;
        if is_half || is_used {
            run.used = 0;
        }
        if is_used && !batch.is_empty() {
            run.window = run.window.max(window);
            self.walks.start = (self.walks.start * 2).min(WINDOW);
        }
        if batch.is_empty() {
            let run = &self.walks.runs[at];
            let is_over = self.method.next(id, run.tail, &self.folders).is_none();
            if run.open == 0 && is_over {
                self.end_run(id);
            } else if wanted > 0 && !is_over {
                self.make_room(id);
            }
        }
        let inode = |place: &Place| self.folders.entry(*place).map(|entry| entry.inode);
        let mut sorted = batch;
        sorted.sort_by_key(|place| (inode(place), *place));
        for Place { folder, entry } in sorted {
            self.out.push(Output::OpenAhead { folder, entry });
        }
    }

    /// How many of so many files may be asked for by the law of waste.
    fn room(&self, wanted: u32) -> usize {
        let Counts {
            used,
            wasted,
            opens,
            ..
        } = self.counts;
        let asked = self.outstanding();
        let most = FREE.saturating_add(used).saturating_add(opens / OPENS);
        let room = most.saturating_sub(asked.saturating_add(wasted));
        let free = ASKED_MAX.saturating_sub(usize::try_from(asked).unwrap_or(usize::MAX));
        (wanted as usize)
            .min(free)
            .min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// How many files are left of a run, if all of them may be asked for by the law of time.
    fn rest(&self, at: usize, budget: &Budget) -> Option<usize> {
        let run = &self.walks.runs[at];
        let Counts {
            saved,
            wasted,
            wasted_blocks,
            ..
        } = self.counts;
        let asked = self.outstanding();
        let free = (ASKED_MAX as u64).min(self.limits.files.into());
        let files_max = saved.saturating_mul(FILL).saturating_sub(wasted).min(free);
        let files_max = files_max.saturating_sub(asked);
        let in_time = saved.saturating_mul(budget.depth);
        let blocks_max = in_time.saturating_sub(wasted_blocks).min(budget.blocks);
        let blocks_max = blocks_max.saturating_sub(self.files.blocks);
        if budget.servers > 1 || saved < SAVED_MIN || files_max == 0 || blocks_max == 0 {
            return None;
        }
        let (mut files, mut blocks, mut tail) = (0, 0, run.tail);
        let heads = self.heads(run.window, budget);
        let habit = self.habits.of(tail.folder);
        // Chains may be circles.
        for _ in 0..ASKED_MAX {
            let Some(place) = self.method.next(run.id, tail, &self.folders) else {
                return usize::try_from(files).ok().filter(|files| *files > 0);
            };
            let folder = self.folders.get(place.folder)?;
            tail = place;
            if folder.is_over(place.entry) || self.files.asked.contains_key(&place) {
                continue;
            }
            let bytes = folder.entry(place.entry).map_or(0, |entry| entry.bytes);
            blocks += blocks_of(bytes, &habit, heads, budget).max(1);
            files += 1;
            if files > files_max || blocks > blocks_max {
                return None;
            }
        }
        None
    }

    /// The next files of a run, which are pending from now on.
    fn expect(&mut self, at: usize, room: usize, budget: &Budget) -> Vec<Place> {
        let mut batch = Vec::new();
        let heads = self.heads(self.walks.runs[at].window, budget);
        let run = &mut self.walks.runs[at];
        let mut of = run.tail.folder;
        let mut habit = self.habits.of(of);
        // Chains may be circles, and long ones of files opened already.
        for _ in 0..ASKED_MAX {
            if batch.len() >= room {
                break;
            }
            let Some(place) = self.method.next(run.id, run.tail, &self.folders) else {
                break;
            };
            let Some(folder) = self.folders.get(place.folder) else {
                break;
            };
            if !folder.is_over(place.entry) && !self.files.asked.contains_key(&place) {
                let bytes = folder.entry(place.entry).map_or(0, |entry| entry.bytes);
                if of != place.folder {
                    of = place.folder;
                    habit = self.habits.of(of);
                }
                let blocks = blocks_of(bytes, &habit, heads, budget);
                if self.files.blocks + blocks > budget.blocks {
                    break;
                }
                self.files.blocks += blocks;
                let asked = Asked {
                    run: run.id,
                    blocks,
                    state: State::Pending,
                    parts: Parts::default(),
                };
                self.files.asked.insert(place, asked);
                run.due.push_back(place);
                run.open += 1;
                batch.push(place);
            }
            run.tail = place;
        }
        batch
    }

    /// Blocks fetched of a file of a run with such a window.
    fn heads(&self, window: u32, budget: &Budget) -> Heads {
        let in_blocks = |bytes: Bytes| bytes.0.div_ceil(budget.block_bytes.max(1));
        let least = in_blocks(HEAD_LEAST);
        match in_blocks(self.limits.bytes) {
            0 => {
                let servers = u64::from(window / WINDOW).clamp(1, budget.servers.max(1));
                let most = least.max(budget.depth.saturating_mul(servers));
                Heads { least, most }
            }
            most => Heads { least: most, most },
        }
    }

    /// A run stands still while another one lacks room: its files are given up.
    fn make_room(&mut self, id: RunId) {
        let now = self.counts.opens;
        let others = self.walks.runs.iter().filter(|run| run.id != id);
        let idle = others.filter(|run| now.saturating_sub(run.went_on) > IDLE);
        if let Some(run) = idle.min_by_key(|run| run.went_on) {
            self.end_run(run.id);
        }
    }
}

/// Blocks of a file's head: of one of which little is known, and of any.
#[derive(Clone, Copy, Debug)]
struct Heads {
    least: u64,
    most: u64,
}

/// Blocks fetched of a file of so many bytes; of one whose size is not known, the least of any head. No file takes more than
/// a quarter of the budget.
fn blocks_of(bytes: u64, habit: &Habit, heads: Heads, budget: &Budget) -> u64 {
    let blocks = match bytes {
        0 => heads.least,
        _ => bytes.div_ceil(budget.block_bytes.max(1)),
    };
    let most = heads.most.min(habit.believed(heads.least));
    let parts = habit.parts(blocks, most);
    let sum = parts.iter().map(|part| part.count).sum::<u64>();
    sum.min((budget.blocks / 4).max(1))
}
