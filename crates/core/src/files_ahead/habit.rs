//! Habits: which parts of a folder's files its programs read.
//!
//! Problem: a program may read the first bytes of each file (type sniffers), the last ones (footers of zip, parquet,
//! mp4), a part of the middle (thumbnails), all of it, or none. The beginning fetched for the wrong habit is a seek and
//! a transfer for nothing, for each file.
//!
//! Mechanism: of the last [`SEEN_MAX`] files that programs opened, the runs of blocks read are noted. The last
//! [`VOTES`] of a folder that are over vote on three parts of a file; a part is fetched if half of them read it, in
//! the length that half of those reach.
//!
//! ```text
//! blocks   0 1 2 3 .. | .. 40 41 42 .. | .. 98 99
//!          head         middle            tail        a file that was read to its end has a head without limit
//! ```
//!
//! A file is over once it is closed, or once its opener has opened another: a kernel closes late, and files of a tree
//! that does not change stay open. A folder with fewer than two such files has the habit of the files before it.
//! While none is over the open files vote with their reads so far.
//!
//! Example: 3 files of 1,024 blocks are read at block 1,008 to the end: tail of 16 blocks, no head. Of the fourth
//! one, of 200 blocks, blocks 184 to 199 are fetched.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::units::{FolderId, ReaderId, scaled};

/// Files whose reads are noted: more than threads that walk together have open.
const SEEN_MAX: usize = 64;
/// Files that vote: a habit that changes is followed after half as many.
const VOTES: usize = 8;
/// Runs of blocks noted of a file; later ones of a file read in more places are not looked at.
const RUNS_MAX: usize = 4;
/// The head of files that are read to the end.
const WHOLE: u64 = u64::MAX;

/// A run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Whether any block is in both.
    pub(crate) fn meets(&self, other: Self) -> bool {
        self.first.max(other.first) < self.end().min(other.end())
    }
}

/// A file that a program opened.
#[derive(Debug)]
struct Seen {
    folder: FolderId,
    /// None once it is closed.
    reader: Option<ReaderId>,
    opener: u64,
    blocks: u64,
    is_over: bool,
    runs: [Run; RUNS_MAX],
}

impl Seen {
    /// Notes blocks that were read; those beside a run are part of it.
    fn read(&mut self, read: Run) {
        let mut whole = read;
        for run in &mut self.runs {
            if run.count > 0 && run.first <= whole.end() && whole.first <= run.end() {
                let end = run.end().max(whole.end());
                whole.first = run.first.min(whole.first);
                whole.count = end - whole.first;
                *run = Run::default();
            }
        }
        if let Some(free) = self.runs.iter_mut().find(|run| run.count == 0) {
            *free = whole;
        }
    }

    fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().copied().filter(|run| run.count > 0)
    }

    fn is_begun(&self) -> bool {
        self.runs().next().is_some()
    }

    fn head(&self) -> Option<Run> {
        self.runs().find(|run| run.first == 0)
    }

    fn is_whole(&self) -> bool {
        self.head().is_some_and(|run| run.count >= self.blocks)
    }

    fn tail(&self) -> Option<Run> {
        self.runs()
            .find(|run| run.first > 0 && run.end() >= self.blocks)
    }

    fn middle(&self) -> Option<Middle> {
        let inside = |run: &Run| run.first > 0 && run.end() < self.blocks;
        let run = self.runs().filter(inside).min_by_key(|run| run.first)?;
        let blocks = self.blocks;
        Some(Middle { run, blocks })
    }
}

/// A run in the middle of a file of so many blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Middle {
    run: Run,
    blocks: u64,
}

/// From where a place in the middle is reckoned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Anchor {
    Begin,
    End,
    /// The same part of the file.
    Part,
}

impl Anchor {
    /// The likeliest first: between equal lengths they are the same.
    const ALL: [Self; 3] = [Self::Part, Self::Begin, Self::End];

    /// Where the same run would begin in a file of so many blocks.
    fn place(self, of: &Middle, blocks: u64) -> u64 {
        match self {
            Self::Begin => of.run.first,
            Self::End => blocks.saturating_sub(of.blocks.saturating_sub(of.run.first)),
            Self::Part => scaled(of.run.first, blocks, of.blocks.max(1)),
        }
    }
}

/// The parts of a folder's next file that are fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Habit {
    /// Blocks of the head: [`WHOLE`] to the end, or 0.
    head: u64,
    /// Of the longest file that was read to its end.
    longest: u64,
    middle: Option<(Anchor, Middle)>,
    /// Blocks of the tail, or 0.
    tail: u64,
}

/// The parts of a file of a given length: head, middle, tail.
pub(crate) type Parts = [Run; 3];

impl Habit {
    /// Blocks of a part of a file that its programs are believed to read: twice as many as of any file that they read to
    /// the end, and `least` of one of which nothing is known.
    pub(crate) fn believed(&self, least: u64) -> u64 {
        let head = match self.head {
            WHOLE => self.longest.saturating_mul(2),
            length => length,
        };
        let middle = self.middle.map_or(0, |(_, middle)| middle.run.count);
        head.max(middle).max(self.tail).max(least)
    }

    /// Whether programs read on behind the first so many blocks.
    pub(crate) fn reads_behind(&self, blocks: u64) -> bool {
        self.head > blocks
    }

    /// The parts of a file of so many blocks, each of `most` blocks at most; those that meet are one.
    pub(crate) fn parts(&self, blocks: u64, most: u64) -> Parts {
        let head = self.head.min(blocks).min(most);
        let mut parts = [Run::default(); 3];
        let [first, inside, last] = &mut parts;
        first.count = head;
        let tail = self.tail.min(most).min(blocks - head);
        *last = Run {
            first: blocks - tail,
            count: tail,
        };
        if let Some((anchor, middle)) = &self.middle {
            // Between files of other lengths a place is exact to a block.
            let spare = u64::from(middle.blocks != blocks);
            let place = anchor.place(middle, blocks);
            let begin = place.saturating_sub(spare).max(head);
            let end = place.saturating_add(middle.run.count.min(most) + spare);
            let end = end.min(blocks - tail);
            *inside = Run {
                first: begin,
                count: end.saturating_sub(begin),
            };
        }
        parts
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// In the order in which they were opened.
    seen: VecDeque<Seen>,
}

impl Habits {
    /// A program opened a file of so many blocks.
    pub(crate) fn opened(&mut self, folder: FolderId, reader: ReaderId, opener: u64, blocks: u64) {
        self.closed(reader);
        for seen in self.seen.iter_mut().filter(|seen| seen.opener == opener) {
            seen.is_over = true;
        }
        if self.seen.len() >= SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen {
            folder,
            reader: Some(reader),
            opener,
            blocks,
            is_over: false,
            runs: Default::default(),
        });
    }

    /// The file that a reader has open.
    fn of_reader(&mut self, reader: ReaderId) -> Option<&mut Seen> {
        let mut last = self.seen.iter_mut().rev();
        last.find(|seen| seen.reader == Some(reader))
    }

    /// Blocks were read.
    pub(crate) fn read(&mut self, reader: ReaderId, read: Run) {
        if let Some(seen) = self.of_reader(reader) {
            let count = read.count.min(seen.blocks.saturating_sub(read.first));
            if count > 0 {
                seen.read(Run { count, ..read });
            }
        }
    }

    /// A reader is no more.
    pub(crate) fn closed(&mut self, reader: ReaderId) {
        if let Some(seen) = self.of_reader(reader) {
            (seen.reader, seen.is_over) = (None, true);
        }
    }

    /// The habit of a folder's programs.
    pub(crate) fn of(&self, folder: FolderId) -> Habit {
        let over = || self.seen.iter().rev().filter(|seen| seen.is_over);
        let own: Vec<&Seen> = over()
            .filter(|seen| seen.folder == folder)
            .take(VOTES)
            .collect();
        let votes: Vec<&Seen> = match own.len() {
            0 | 1 => over().take(VOTES).collect(),
            _ => own,
        };
        let votes: Vec<&Seen> = match votes.len() {
            0 => self.seen.iter().filter(|seen| seen.is_begun()).collect(),
            _ => votes,
        };
        let wholes = votes.iter().filter(|seen| seen.is_whole());
        Habit {
            head: head(&votes),
            longest: wholes.map(|seen| seen.blocks).max().unwrap_or(0),
            middle: middle(&votes),
            tail: tail(&votes),
        }
    }
}

/// Whether half of the votes are for something.
fn is_half(count: usize, votes: &[&Seen]) -> bool {
    count * 2 >= votes.len()
}

/// A length that half of these reach; of none, 0.
fn half_of(mut lengths: Vec<u64>) -> u64 {
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}

/// A file that was read whole says that more is read only if it is longer than the others' heads.
fn head(votes: &[&Seen]) -> u64 {
    let heads: Vec<(u64, bool)> = votes
        .iter()
        .filter_map(|seen| seen.head().map(|run| (run.count, seen.is_whole())))
        .collect();
    if heads.is_empty() || !is_half(heads.len(), votes) {
        return 0;
    }
    let parts: Vec<u64> = heads.iter().filter(|head| !head.1).map(|h| h.0).collect();
    let count = parts.len();
    let length = half_of(parts);
    let wholes = heads
        .iter()
        .filter(|head| head.1 && head.0 > length)
        .count();
    match wholes >= count {
        true => WHOLE,
        false => length,
    }
}

fn tail(votes: &[&Seen]) -> u64 {
    let tails = votes.iter().filter_map(|seen| seen.tail());
    let tails: Vec<u64> = tails.map(|run| run.count).collect();
    match is_half(tails.len(), votes) {
        true => half_of(tails),
        false => 0,
    }
}

/// The run that most have inside: where it lies in the longest of the files, which tells its place best, if the others
/// have it there, too.
fn middle(votes: &[&Seen]) -> Option<(Anchor, Middle)> {
    let all: Vec<Middle> = votes.iter().filter_map(|seen| seen.middle()).collect();
    let longest = *all.iter().max_by_key(|one| one.blocks)?;
    let agree = |anchor: &Anchor| {
        let near = |one: &&Middle| anchor.place(&longest, one.blocks).abs_diff(one.run.first) <= 1;
        is_half(all.iter().filter(near).count(), votes)
    };
    let anchor = Anchor::ALL.into_iter().find(agree)?;
    let count = half_of(all.iter().map(|one| one.run.count).collect());
    let run = Run {
        count,
        ..longest.run
    };
    Some((anchor, Middle { run, ..longest }))
}
