//! Streams: which events are of one reader that goes through one file.
//!
//! An event names a thread, a file and a page, and no open file. Events of one process in one file whose pages follow
//! each other are a stream; an event that follows none begins one, if it is at a mark: a miss alone may be a random read,
//! and the kernel sets marks only where it reads ahead itself.
//!
//! ```text
//! pages   0        32             96                         a stream: its marks
//!         |--------#--------------#------------...
//!                  last event     this one: not further ahead than two of its windows
//! ```
//!
//! A page that the kernel read ahead and that is missing when the stream comes to it was given up meanwhile:
//! *thrashing*, and the windows of its domain become shorter.

use std::collections::{HashMap, HashSet};

use forerun_core::Nanos;

use crate::Cause;
use crate::events::{Ahead, Cause as Why, FileKey};
use crate::windows::Number;

/// Streams that are followed; a file's reads beyond are left as they are.
pub const STREAMS_MAX: usize = 1 << 16;
/// A stream that was not seen for so many times as long as between its last two events has ended ..
const PATIENCE: u64 = 8;
/// .. but not before this, and after this in any case.
const LEAST: u64 = 2_000_000_000;
const MOST: u64 = 60_000_000_000;

/// Where a stream's reads are steered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steered {
    /// By this engine's windows.
    By {
        /// Which domain.
        domain: usize,
        /// Its number there.
        number: Number,
    },
    /// Not at all.
    Not(Cause),
}

/// A stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Its process, and the thread seen last.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The page it was seen at first.
    pub first: u64,
    /// The page it was seen at last.
    pub last: u64,
    /// Events of it.
    pub events: u64,
    /// The descriptor that it was found at; negative if none was.
    pub number: i32,
    /// The end of the window before the one that the kernel opened then.
    end: u64,
    /// When it was seen, and how long after the time before.
    pub seen: Nanos,
    every: Nanos,
    /// Size of its file, in pages.
    pub pages: u64,
    /// The window that its engine gave it last, in pages.
    pub window: u32,
    /// The limit that its open file was given last, and when.
    pub set: Option<(u32, Nanos)>,
    /// Whether it was read ahead when it was seen last, with a limit that is not its program's own.
    pub is_ours: bool,
    /// See there.
    pub steered: Steered,
}

/// The part that an event has in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// The stream at this place goes on; it lost a page, or not.
    Known {
        /// Its place among the streams of the file.
        place: usize,
        /// Whether a page that was read ahead is gone.
        has_lost: bool,
    },
    /// A stream that begins.
    New,
    /// None: a miss that follows no stream.
    None,
}

type AtEnd = HashMap<u32, HashSet<FileKey>>;

/// All streams.
#[derive(Debug, Default)]
pub struct Streams {
    files: HashMap<FileKey, Vec<Stream>>,
    /// By thread, the files of its streams that were at their end when they were seen last. Of thousands of streams these are
    /// the few that go when their thread begins another.
    at_end: AtEnd,
    count: usize,
}

impl Streams {
    /// The stream of an event.
    #[must_use]
    pub fn of(&self, key: FileKey, event: &Ahead) -> Of {
        let streams = self.files.get(&key).map_or(&[][..], Vec::as_slice);
        let reach = u64::from(event.size.max(event.limit)).saturating_mul(2);
        let of_process = streams
            .iter()
            .enumerate()
            .filter(|(_, s)| s.process == event.process);
        let near = of_process.filter_map(|(place, stream)| {
            let ahead = event.index.checked_sub(stream.last)?;
            let is_own = stream.thread == event.thread;
            (ahead <= reach).then_some((!is_own, ahead, place))
        });
        match (near.min(), event.cause) {
            (Some((_, _, place)), _) => Of::Known {
                place,
                has_lost: has_lost(&streams[place], event),
            },
            (None, Why::Mark) if self.count < STREAMS_MAX => Of::New,
            _ => Of::None,
        }
    }

    /// Begins a stream.
    pub fn begin(&mut self, key: FileKey, event: &Ahead, pages: u64, steered: Steered) -> usize {
        self.count += 1;
        let stream = Stream {
            process: event.process,
            thread: event.thread,
            first: event.index,
            last: event.index,
            events: 0,
            number: -1,
            end: end_of(event),
            seen: event.time,
            every: Nanos(0),
            pages,
            window: 0,
            set: None,
            is_ours: false,
            steered,
        };
        note_end(&mut self.at_end, key, &stream);
        let streams = self.files.entry(key).or_default();
        streams.push(stream);
        streams.len() - 1
    }

    /// A stream.
    pub fn get(&mut self, key: FileKey, place: usize) -> Option<&mut Stream> {
        self.files.get_mut(&key)?.get_mut(place)
    }

    /// An event was seen of it, and its window is known.
    pub fn saw(&mut self, key: FileKey, place: usize, event: &Ahead) {
        let streams = self.files.get_mut(&key);
        if let Some(stream) = streams.and_then(|streams| streams.get_mut(place)) {
            stream.every = event.time.since(stream.seen);
            stream.seen = event.time;
            stream.thread = event.thread;
            stream.events += 1;
            stream.last = event.index;
            stream.end = end_of(event);
            note_end(&mut self.at_end, key, stream);
        }
    }

    /// Takes out the streams that have ended. Those that a fair queue serves by turns are seen a hundred times within some
    /// milliseconds and then not for the slices of all others, so nothing follows from the time between two events.
    pub fn ended(&mut self, now: Nanos, by_turns: bool, mut each: impl FnMut(FileKey, Stream)) {
        let least = if by_turns { MOST } else { LEAST };
        self.take(|stream| stream.has_ended(now, least), &mut each);
    }

    /// Takes out those of a thread that has begun another and came to the end of these.
    pub fn finished(&mut self, thread: u32, mut each: impl FnMut(FileKey, Stream)) {
        for key in self.at_end.remove(&thread).into_iter().flatten() {
            let Some(streams) = self.files.get_mut(&key) else {
                continue;
            };
            let is_over = |stream: &Stream| stream.thread == thread && stream.is_at_end();
            take_of_file(key, streams, &mut self.count, &is_over, &mut each);
            if streams.is_empty() {
                self.files.remove(&key);
            }
        }
    }

    /// Takes out all.
    pub fn all(&mut self, mut each: impl FnMut(FileKey, Stream)) {
        self.take(|_| true, &mut each);
    }

    fn take(&mut self, is_over: impl Fn(&Stream) -> bool, each: &mut dyn FnMut(FileKey, Stream)) {
        let count = &mut self.count;
        self.files.retain(|key, streams| {
            take_of_file(*key, streams, count, &is_over, each);
            !streams.is_empty()
        });
        self.at_end.clear();
        for (key, streams) in &self.files {
            let at_end = &mut self.at_end;
            streams.iter().for_each(|of| note_end(at_end, *key, of));
        }
    }

    /// Each with its file.
    pub fn iter(&self) -> impl Iterator<Item = (FileKey, &Stream)> {
        let files = self.files.iter();
        files.flat_map(|(key, streams)| streams.iter().map(|stream| (*key, stream)))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }
}

fn note_end(at_end: &mut AtEnd, key: FileKey, stream: &Stream) {
    if stream.is_at_end() {
        at_end.entry(stream.thread).or_default().insert(key);
    }
}

/// Takes out of the streams of a file those of which this is true.
fn take_of_file(
    key: FileKey,
    streams: &mut Vec<Stream>,
    count: &mut usize,
    is_over: &dyn Fn(&Stream) -> bool,
    each: &mut dyn FnMut(FileKey, Stream),
) {
    streams.retain(|stream| {
        let is_over = is_over(stream);
        if is_over {
            *count -= 1;
            each(key, *stream);
        }
        !is_over
    });
}

impl Stream {
    fn has_ended(&self, now: Nanos, least: u64) -> bool {
        let patience = self.every.0.saturating_mul(PATIENCE).clamp(least, MOST);
        now.since(self.seen).0 > patience
    }

    /// Whether the kernel's window reaches the end of the file, so that no mark is left.
    fn is_at_end(&self) -> bool {
        self.end.saturating_add(u64::from(self.window)) >= self.pages
    }
}

/// The end of the window that the kernel had before this event, where the next one begins.
fn end_of(event: &Ahead) -> u64 {
    match event.cause {
        Why::Mark => event.index.saturating_add(event.async_size.into()),
        Why::Miss => event.index,
    }
}

/// Whether a missing page lies in the window that the kernel opened at the stream's last event. Its size is that of the
/// window in force now.
fn has_lost(stream: &Stream, event: &Ahead) -> bool {
    let end = stream.end.saturating_add(event.size.into());
    event.cause == Why::Miss && event.index > stream.last && event.index < end
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) const KEY: FileKey = FileKey {
        device: 1,
        inode: 2,
    };

    pub(crate) fn event(cause: Why, thread: u32, index: u64, size: u32, time: u64) -> Ahead {
        Ahead {
            time: Nanos(time),
            cause,
            process: 10,
            thread,
            device: KEY.device,
            inode: KEY.inode,
            index,
            size,
            async_size: size,
            limit: 32,
            asked: 32,
        }
    }

    const NOT: Steered = Steered::Not(Cause::Excluded);

    fn known(place: usize) -> Of {
        Of::Known {
            place,
            has_lost: false,
        }
    }

    #[test]
    fn marks_that_follow_each_other_are_one_stream_and_others_are_not() {
        let mut streams = Streams::default();
        let mark = |thread, index| event(Why::Mark, thread, index, 32, 0);
        assert_eq!(streams.of(KEY, &mark(10, 16)), Of::New);
        assert_eq!(streams.begin(KEY, &mark(10, 16), 1000, NOT), 0);
        assert_eq!(streams.of(KEY, &mark(10, 48)), known(0));
        assert_eq!(
            streams.of(KEY, &mark(11, 48)),
            known(0),
            "another thread of the process"
        );
        assert_eq!(streams.of(KEY, &mark(10, 500)), Of::New);
        assert_eq!(streams.of(KEY, &mark(10, 15)), Of::New, "backward");
        let miss = event(Why::Miss, 10, 500, 32, 0);
        assert_eq!(streams.of(KEY, &miss), Of::None);
        let stranger = Ahead {
            process: 11,
            ..mark(11, 48)
        };
        assert_eq!(streams.of(KEY, &stranger), Of::New);
        // Two threads side by side: each has its own.
        streams.begin(KEY, &mark(12, 20), 1000, NOT);
        assert_eq!(streams.of(KEY, &mark(10, 40)), known(0));
        assert_eq!(streams.of(KEY, &mark(12, 40)), known(1));
        assert_eq!(streams.of(KEY, &mark(13, 40)), known(1), "the nearest");
    }

    #[test]
    fn a_page_of_a_window_that_is_missing_was_lost() {
        let mut streams = Streams::default();
        // The window before ends at 64, and the next one has 64 pages, too.
        streams.begin(KEY, &event(Why::Mark, 10, 32, 32, 0), 1000, NOT);
        for (index, has_lost) in [
            (40, true),
            (64, true),
            (127, true),
            (128, false),
            (32, false),
        ] {
            let miss = event(Why::Miss, 10, index, 64, 0);
            let of = Of::Known { place: 0, has_lost };
            assert_eq!(streams.of(KEY, &miss), of, "{index}");
        }
    }

    #[test]
    fn a_stream_ends_when_it_is_not_seen_for_long_or_its_thread_went_on() {
        let second = 1_000_000_000;
        let mut streams = Streams::default();
        streams.begin(KEY, &event(Why::Mark, 10, 16, 32, 0), 1000, NOT);
        streams.saw(KEY, 0, &event(Why::Mark, 10, 48, 32, second));
        let ended = |streams: &mut Streams, now, by_turns| {
            let mut ended = 0;
            streams.ended(Nanos(now), by_turns, |_, _| ended += 1);
            ended
        };
        assert_eq!(ended(&mut streams, 8 * second, false), 0);
        let mut finished = 0;
        streams.finished(10, |_, _| finished += 1);
        assert_eq!(finished, 0, "in the middle of its file");
        assert_eq!(ended(&mut streams, 60 * second, true), 0);
        assert_eq!(ended(&mut streams, 10 * second, false), 1);
        streams.begin(KEY, &event(Why::Mark, 10, 970, 32, 0), 1000, NOT);
        streams.finished(11, |_, _| finished += 1);
        assert_eq!(finished, 0, "another thread's");
        streams.finished(10, |_, _| finished += 1);
        assert_eq!((finished, streams.count()), (1, 0));
    }

    /// The streams of a thread that are at their end, found by going through all.
    fn at_end(streams: &Streams, thread: u32) -> Vec<(FileKey, u64)> {
        let its = streams.iter();
        let its = its.filter(|(_, of)| of.thread == thread && of.is_at_end());
        let mut its: Vec<_> = its.map(|(key, of)| (key, of.first)).collect();
        its.sort_unstable_by_key(|(key, first)| (key.inode, *first));
        its
    }

    proptest! {
        #[test]
        fn a_thread_finishes_all_of_its_streams_at_their_end_and_no_other(
            steps in proptest::collection::vec((0u32..4, 0u64..3, 0u64..60, 0u8..8), 1..200),
        ) {
            let mut streams = Streams::default();
            for (at, (thread, inode, index, step)) in steps.into_iter().enumerate() {
                let time = at as u64 * LEAST / 8;
                let key = FileKey { inode, ..KEY };
                let event = event(Why::Mark, thread, index, 32, time);
                match (step, streams.of(key, &event)) {
                    (0, _) => streams.ended(Nanos(time), false, |_, _| ()),
                    (1, _) => {
                        let expected = at_end(&streams, thread);
                        let mut finished = Vec::new();
                        streams.finished(thread, |key, of| finished.push((key, of.first)));
                        finished.sort_unstable_by_key(|(key, first)| (key.inode, *first));
                        prop_assert_eq!(finished, expected);
                        prop_assert_eq!(streams.count(), streams.iter().count());
                    }
                    (_, Of::Known { place, .. }) => {
                        streams.get(key, place).unwrap().window = u32::from(step);
                        streams.saw(key, place, &event);
                    }
                    _ => {
                        streams.begin(key, &event, 80, NOT);
                    }
                }
            }
        }
    }
}
