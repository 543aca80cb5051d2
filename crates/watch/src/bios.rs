//! Bios: the second way of seeing, for kernels without the events of readahead (before Linux 6.18).
//!
//! Every kernel tells by `block:block_bio_queue` which thread sends which sectors to a device, and whether it reads them
//! ahead; not which file they are of, where the reader is, or which limit its open file has. All of that is rebuilt, so
//! that the rest of the watch sees the events that a newer kernel tells:
//!
//! ```text
//! bio of a thread at a new place     [where is it](crate::whereabouts): descriptor and position of its read call
//! bios that follow within 1 ms       the same window
//! the next one behind the end        the mark of that window was met: `Ahead { cause: Mark, size, .. }`
//! a bio within the last window       a page that was read ahead was given up: `Ahead { cause: Miss, .. }`
//! ```
//!
//! A run of sectors of one process is a stream, as long as its file lies in one piece; at the next piece the process is
//! looked at again. A program with FADV_RANDOM reads in runs, too, but never beyond what it asks for: such a run is none.
//! A bio above the limit is of a program that set its own; one of more than 1 MiB is sent in several, and not seen so.

use std::collections::HashMap;

use forerun_core::Nanos;
use forerun_steering::events::FileKey;

use crate::sample::{Ahead, Cause, Request};

/// A window's bios are sent one after the other; a bio after a longer pause begins another.
const PAUSE: u64 = 1_000_000;
const SECTORS_A_PAGE: u64 = 8;
/// Shorter bios begin no run: random reads of a database. The windows of a stream are as long from the second on.
const PAGES_MIN: u64 = 8;
/// Looks that make a run a stream.
const VOTES: u32 = 2;
/// Windows after which a file that was not found out is looked for no more.
const TRIES: u64 = 8;
/// Runs that are followed, of one process and of how many.
const RUNS_MAX: usize = 1 << 10;
const PROCESSES_MAX: usize = 1 << 12;

/// The file of a run, and the place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    /// The file.
    pub key: FileKey,
    /// The page at which the read begins.
    pub page: u64,
    /// Pages that it asks for; 0 if that is not known.
    pub asked: u64,
    /// The file system's own limit, in pages.
    pub limit: u32,
    /// Its descriptor.
    pub number: i32,
    /// Whether the thread is in that read call; else the page is the position of the open file.
    pub is_in_call: bool,
    /// Whether the call has an offset of its own, so that the position tells nothing.
    pub has_offset: bool,
}

/// Sectors that a process read one behind the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    thread: u32,
    device: u32,
    /// Its file; none if that was not found out.
    key: Option<FileKey>,
    /// First sector and page of the window before, and of the last one.
    before: (u64, u64),
    last: (u64, u64),
    /// Where the last one ends.
    end: (u64, u64),
    time: Nanos,
    windows: u64,
    /// Pages of a read call.
    asked: u64,
    limit: u32,
    /// Whether that limit was set by us.
    is_set: bool,
    number: Option<i32>,
    has_offset: bool,
    votes: u32,
}

/// An event that was rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The bio belongs to a window that was told.
    Nothing,
    /// As a newer kernel would tell it.
    Ahead(Ahead),
    /// Bytes of a file that was not found out.
    Unknown(u64),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Bios {
    runs: HashMap<u32, Vec<Run>>,
}

impl Bios {
    /// A bio that reads ahead. `find` says where its thread reads, by its call or by the descriptor that is known.
    pub fn saw(
        &mut self,
        bio: &Request,
        (process, thread): (u32, u32),
        find: impl FnOnce(Option<i32>) -> Option<Whereabouts>,
    ) -> Seen {
        if self.runs.len() >= PROCESSES_MAX && !self.runs.contains_key(&process) {
            self.runs.clear();
        }
        let runs = self.runs.entry(process).or_default();
        let of = |run: &&mut Run| run.device == bio.device;
        if let Some(run) = runs
            .iter_mut()
            .filter(of)
            .find(|run| run.end.0 == bio.sector)
        {
            run.thread = thread;
            return run.goes_on(bio, process, find);
        }
        let is_within = |run: &&mut Run| (run.before.0..run.end.0).contains(&bio.sector);
        let mut runs_of_device = runs.iter_mut().filter(of);
        if let Some(run) = runs_of_device.find(|run| run.key.is_some() && is_within(run)) {
            run.thread = thread;
            return run.lost(bio, process);
        }
        if pages(bio) < PAGES_MIN {
            return Seen::Nothing;
        }
        let found = find(None);
        // Another piece of a file that is read already.
        let same = |run: &&mut Run| {
            let is_it =
                found.is_some_and(|found| run.key == Some(found.key) && run.has(found.page));
            is_it || found.is_none() && run.is_ahead() && run.thread == thread
        };
        let mut near = runs.iter_mut().filter(same);
        if let (Some(run), None) = (near.next(), near.next()) {
            run.jumps(bio);
            run.thread = thread;
            return run.goes_on(bio, process, |_| found);
        }
        if runs.len() >= RUNS_MAX {
            let oldest = (0..runs.len()).min_by_key(|at| runs[*at].time);
            if let Some(at) = oldest {
                runs.swap_remove(at);
            }
        }
        runs.push(Run::new(bio, thread, found));
        match found {
            Some(_) => Seen::Nothing,
            None => Seen::Unknown(pages(bio)),
        }
    }

    /// The open file of a process's stream got this limit.
    pub fn set(&mut self, process: u32, key: FileKey, limit: u32) {
        let runs = self.runs.get_mut(&process);
        let own = runs
            .into_iter()
            .flatten()
            .filter(|run| run.key == Some(key));
        own.for_each(|run| (run.limit, run.is_set) = (limit, true));
    }

    /// Forgets runs that were not seen for long.
    pub fn forget(&mut self, before: Nanos) {
        self.runs.retain(|_, runs| {
            runs.retain(|run| run.time > before);
            !runs.is_empty()
        });
    }
}

fn pages(bio: &Request) -> u64 {
    bio.sectors.div_ceil(SECTORS_A_PAGE)
}

impl Run {
    fn new(bio: &Request, thread: u32, found: Option<Whereabouts>) -> Self {
        let page = found.map_or(0, |found| found.page);
        let begin = (bio.sector, page);
        Self {
            thread,
            device: bio.device,
            key: found.map(|found| found.key),
            before: begin,
            last: begin,
            end: (bio.sector + bio.sectors, page + pages(bio)),
            time: bio.time,
            windows: 1,
            asked: found.map_or(0, |found| found.asked),
            limit: found.map_or(0, |found| found.limit),
            is_set: false,
            number: found.map(|found| found.number),
            has_offset: found.is_some_and(|found| found.has_offset),
            votes: 0,
        }
    }

    /// Whether a read at this page is within the windows, so that a bio elsewhere is for what follows them.
    fn has(&self, page: u64) -> bool {
        (self.before.1..=self.end.1).contains(&page)
    }

    /// Pages of the last window.
    fn size(&self) -> u64 {
        self.end.1 - self.last.1
    }

    /// The file goes on in another place of the device.
    fn jumps(&mut self, bio: &Request) {
        for place in [&mut self.before, &mut self.last, &mut self.end] {
            place.0 = bio.sector;
        }
    }

    /// A bio right behind the end.
    fn goes_on(
        &mut self,
        bio: &Request,
        process: u32,
        find: impl FnOnce(Option<i32>) -> Option<Whereabouts>,
    ) -> Seen {
        let Some(key) = self.key else {
            return self.is_unknown(bio, find);
        };
        // A read call that asks for more than the limit gets as much.
        let most = u64::from(self.limit).max(self.asked);
        let is_same = bio.time.since(self.time).0 < PAUSE && self.size() + pages(bio) <= most;
        self.time = bio.time;
        let (size, begin) = (self.size(), self.last.1);
        self.end = (self.end.0 + bio.sectors, self.end.1 + pages(bio));
        if is_same {
            return Seen::Nothing;
        }
        (self.before, self.last) = (self.last, (bio.sector, self.end.1 - pages(bio)));
        self.windows += 1;
        if !self.is_ahead() {
            let at = find(self.number).filter(|at| at.key == key);
            at.into_iter().for_each(|at| self.vote(&at));
            if !self.is_ahead() {
                return Seen::Nothing;
            }
        }
        // A window above the limit is of a program that set its own.
        if !self.is_set && size > u64::from(self.limit).max(self.asked) {
            self.limit = u32::try_from(size).unwrap_or(u32::MAX);
        }
        Seen::Ahead(self.event(Cause::Mark, process, (begin, size)))
    }

    /// Whether it is a stream: its windows lie ahead of its reader.
    fn is_ahead(&self) -> bool {
        self.votes >= VOTES
    }

    /// A look at the reader. In a call it is at the call's begin, and what it asks for is not ahead. Out of a call it has read
    /// on to the position of its open file; as that may be the one of before, one look is not enough.
    fn vote(&mut self, at: &Whereabouts) {
        self.asked = self.asked.max(at.asked);
        self.has_offset |= at.has_offset;
        let end = self.end.1;
        self.votes += match (at.is_in_call, self.has_offset) {
            (true, false) if end > at.page + at.asked => VOTES,
            // The kernel reads ahead of a random read, too, where one before it ended.
            (true, true) if end > at.page + at.asked => 1,
            (false, false) if end > at.page => 1,
            _ => return self.votes = 0,
        };
    }

    /// A run of a file that was not found out is looked at again, a few times.
    fn is_unknown(
        &mut self,
        bio: &Request,
        find: impl FnOnce(Option<i32>) -> Option<Whereabouts>,
    ) -> Seen {
        let is_new = bio.time.since(self.time).0 >= PAUSE && self.windows < TRIES;
        let windows = self.windows + u64::from(is_new);
        let found = is_new.then(|| find(None)).flatten();
        *self = Self::new(bio, self.thread, found);
        match found {
            Some(_) => Seen::Nothing,
            None => {
                self.windows = windows;
                Seen::Unknown(pages(bio))
            }
        }
    }

    /// A bio within the windows that were read ahead.
    fn lost(&mut self, bio: &Request, process: u32) -> Seen {
        let behind = (self.end.0 - bio.sector).div_ceil(SECTORS_A_PAGE);
        let page = self.end.1.saturating_sub(behind);
        self.time = bio.time;
        let event = self.event(Cause::Miss, process, (page, self.size()));
        let begin = (bio.sector, page);
        (self.before, self.last) = (begin, begin);
        self.end = (bio.sector + bio.sectors, page + pages(bio));
        Seen::Ahead(event)
    }

    fn event(&self, cause: Cause, process: u32, (index, size): (u64, u64)) -> Ahead {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let key = self.key.unwrap_or(FileKey {
            device: 0,
            inode: 0,
        });
        Ahead {
            time: self.time,
            cause,
            process,
            thread: self.thread,
            device: key.device,
            inode: key.inode,
            index,
            size,
            async_size: size,
            limit: self.limit,
            asked: self.asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: FileKey = FileKey {
        device: 1,
        inode: 2,
    };
    const MS: u64 = 1_000_000;

    fn bio(time: u64, sector: u64, pages: u64) -> Request {
        Request {
            time: Nanos(time * MS),
            is_complete: false,
            device: 7,
            sector,
            sectors: pages * SECTORS_A_PAGE,
        }
    }

    fn at(page: u64, asked: u64) -> Option<Whereabouts> {
        Some(Whereabouts {
            key: KEY,
            page,
            asked,
            limit: 32,
            number: 3,
            is_in_call: true,
            has_offset: false,
        })
    }

    fn saw(bios: &mut Bios, bio: &Request, found: Option<Whereabouts>) -> Seen {
        bios.saw(bio, (10, 11), |_| found)
    }

    fn mark(seen: Seen) -> (u64, u32, u32) {
        match seen {
            Seen::Ahead(event) if event.cause == Cause::Mark => {
                assert_eq!((event.inode, event.process, event.thread), (2, 10, 11));
                (event.index, event.size, event.limit)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn windows_are_told_apart_by_their_pause_and_told_at_the_next_one() {
        let mut bios = Bios::default();
        assert_eq!(saw(&mut bios, &bio(1, 800, 16), at(100, 32)), Seen::Nothing);
        // The same window, sent at once.
        assert_eq!(saw(&mut bios, &bio(1, 928, 16), None), Seen::Nothing);
        // The reader is in the same call still: what comes lies beyond.
        assert_eq!(
            mark(saw(&mut bios, &bio(9, 1056, 32), at(100, 32))),
            (100, 32, 32)
        );
        bios.set(10, KEY, 1024);
        assert_eq!(
            mark(saw(&mut bios, &bio(18, 1312, 200), None)),
            (132, 32, 1024)
        );
        assert_eq!(saw(&mut bios, &bio(18, 2912, 56), None), Seen::Nothing);
        assert_eq!(
            mark(saw(&mut bios, &bio(27, 3360, 256), None)),
            (164, 256, 1024)
        );
    }

    #[test]
    fn reads_of_what_was_asked_for_are_no_stream() {
        let mut bios = Bios::default();
        saw(&mut bios, &bio(1, 800, 32), at(100, 32));
        for call in 1..5 {
            let next = bio(1 + 9 * call, 800 + 256 * call, 32);
            let seen = saw(&mut bios, &next, at(100 + 32 * call, 32));
            assert_eq!(seen, Seen::Nothing, "{call}");
        }
    }

    #[test]
    fn a_page_that_is_read_again_was_lost() {
        let mut bios = Bios::default();
        saw(&mut bios, &bio(1, 800, 32), at(100, 32));
        saw(&mut bios, &bio(9, 1056, 32), at(100, 32));
        let seen = saw(&mut bios, &bio(18, 1136, 32), None);
        let Seen::Ahead(event) = seen else {
            panic!("{seen:?}")
        };
        assert_eq!(
            (event.cause, event.index, event.size),
            (Cause::Miss, 142, 32)
        );
        // From there on it goes on.
        assert_eq!(
            mark(saw(&mut bios, &bio(27, 1392, 32), None)),
            (142, 32, 32)
        );
    }

    #[test]
    fn a_file_in_two_pieces_is_one_stream() {
        let mut bios = Bios::default();
        saw(&mut bios, &bio(1, 800, 32), at(100, 32));
        saw(&mut bios, &bio(9, 1056, 32), at(100, 32));
        // Its thread is out of the call already, and has no other stream.
        assert_eq!(
            mark(saw(&mut bios, &bio(18, 90_000, 32), None)),
            (132, 32, 32)
        );
        assert_eq!(
            mark(saw(&mut bios, &bio(27, 90_256, 32), None)),
            (164, 32, 32)
        );
        // Another file of it is none of this one.
        let other = Whereabouts {
            key: FileKey { inode: 3, ..KEY },
            ..at(0, 32).unwrap()
        };
        assert_eq!(
            saw(&mut bios, &bio(36, 5000, 32), Some(other)),
            Seen::Nothing
        );
    }

    #[test]
    fn a_file_that_was_not_found_out_counts_its_bytes() {
        let mut bios = Bios::default();
        assert_eq!(saw(&mut bios, &bio(1, 800, 32), None), Seen::Unknown(32));
        assert_eq!(
            saw(&mut bios, &bio(1, 1056, 16), at(0, 1)),
            Seen::Unknown(16),
            "at once"
        );
        // Its thread was in no call at first, and is now.
        assert_eq!(saw(&mut bios, &bio(9, 1184, 32), at(48, 1)), Seen::Nothing);
        assert_eq!(
            mark(saw(&mut bios, &bio(18, 1440, 32), at(60, 1))),
            (48, 32, 32)
        );
        bios.forget(Nanos(18 * MS));
        assert!(bios.runs.is_empty());
    }

    #[test]
    fn a_window_above_the_limit_is_a_programs_own() {
        let mut bios = Bios::default();
        saw(&mut bios, &bio(1, 800, 64), at(100, 32));
        assert_eq!(
            mark(saw(&mut bios, &bio(9, 1312, 64), at(100, 32))),
            (100, 64, 64)
        );
        // It stays so where windows become shorter, and a limit that was set is one of ours.
        assert_eq!(
            mark(saw(&mut bios, &bio(18, 1824, 20), None)),
            (164, 64, 64)
        );
        assert_eq!(
            mark(saw(&mut bios, &bio(27, 1984, 64), None)),
            (228, 20, 64)
        );
        bios.set(10, KEY, 256);
        assert_eq!(
            mark(saw(&mut bios, &bio(36, 2496, 64), None)),
            (248, 64, 256)
        );
    }

    #[test]
    fn windows_without_a_pause_end_at_the_limit() {
        let mut bios = Bios::default();
        saw(&mut bios, &bio(1, 800, 32), at(100, 32));
        assert_eq!(
            mark(saw(&mut bios, &bio(1, 1056, 32), at(100, 32))),
            (100, 32, 32)
        );
        assert_eq!(mark(saw(&mut bios, &bio(1, 1312, 32), None)), (132, 32, 32));
    }

    #[test]
    fn random_reads_begin_no_stream() {
        let mut bios = Bios::default();
        // Pages of a file that lies in one piece, some near each other.
        for (time, page) in [5000, 100, 5030, 160, 9000, 40, 5090]
            .into_iter()
            .enumerate()
        {
            let next = bio(9 * time as u64, 80_000 + page * SECTORS_A_PAGE, 16);
            assert_eq!(saw(&mut bios, &next, at(page, 16)), Seen::Nothing, "{page}");
        }
    }

    #[test]
    fn of_too_many_runs_the_oldest_is_forgotten() {
        let mut bios = Bios::default();
        for number in 0..=RUNS_MAX as u64 {
            let found = at(0, 32).map(|found| Whereabouts {
                key: FileKey {
                    inode: number,
                    ..KEY
                },
                ..found
            });
            saw(&mut bios, &bio(number, 10_000 * number, 32), found);
        }
        let runs = &bios.runs[&10];
        assert_eq!(runs.len(), RUNS_MAX);
        let is_there = |inode| {
            runs.iter()
                .any(|run| run.key == Some(FileKey { inode, ..KEY }))
        };
        assert!(!is_there(0) && is_there(1) && is_there(RUNS_MAX as u64));
    }

    #[test]
    fn short_random_reads_are_not_looked_at() {
        let mut bios = Bios::default();
        let find = |_| panic!("in /proc for each of 10,000 a second");
        let seen = bios.saw(&bio(1, 800, PAGES_MIN - 1), (10, 11), find);
        assert_eq!(seen, Seen::Nothing);
        assert_eq!(
            saw(&mut bios, &bio(2, 900, PAGES_MIN), None),
            Seen::Unknown(PAGES_MIN)
        );
    }

    #[test]
    fn a_thread_out_of_its_call_is_known_by_the_position_of_its_file() {
        // By its position behind the windows, which is that of a reader; at their end, of one with FADV_RANDOM.
        for (behind, has_offset, is_stream) in
            [(32, false, true), (0, false, false), (32, true, false)]
        {
            let mut bios = Bios::default();
            let mut is_told = false;
            saw(&mut bios, &bio(0, 800, 32), at(100, 32));
            for window in 1..5 {
                let found = at(132 + 32 * window - behind, 0).map(|found| Whereabouts {
                    is_in_call: false,
                    has_offset,
                    ..found
                });
                let next = bio(9 * window, 800 + 256 * window, 32);
                let seen = saw(&mut bios, &next, found);
                assert!(window > 1 || seen == Seen::Nothing, "one look: {seen:?}");
                is_told |= seen != Seen::Nothing;
            }
            assert_eq!(is_told, is_stream, "{behind} {has_offset}");
        }
    }

    #[test]
    fn a_reader_with_offsets_is_a_stream_when_it_was_seen_twice() {
        let mut bios = Bios::default();
        let found = |page| {
            at(page, 16).map(|found| Whereabouts {
                has_offset: true,
                ..found
            })
        };
        saw(&mut bios, &bio(0, 800, 32), found(100));
        assert_eq!(saw(&mut bios, &bio(9, 1056, 32), found(116)), Seen::Nothing);
        assert_eq!(
            mark(saw(&mut bios, &bio(18, 1312, 32), found(132))),
            (132, 32, 32)
        );
    }

    proptest::proptest! {
        #[test]
        fn any_order_of_bios_is_taken(steps in proptest::collection::vec(
            (0u64..4, 0u64..3000, 0u64..600, 0u64..400, proptest::bool::ANY), 1..100))
        {
            let (mut bios, mut time) = (Bios::default(), 0);
            for (pause, sector, pages, page, is_found) in steps {
                time += pause;
                let found = at(page, pages).filter(|_| is_found);
                let _ = saw(&mut bios, &bio(time, sector, pages), found);
            }
        }
    }
}
