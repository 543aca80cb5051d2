//! A read that hangs is given up where its memory is wanted for others, by a source that can: the others are read,
//! bytes that had arrived are kept, and the rest is asked for again.
//!
//! The source holds each read until it is given up or the test lets it go on. A wait that would not end is cut
//! after [`BOUND`], far beyond the three seconds that it takes on an idle machine.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use forerun_core::{Bytes, preset};
use forerun_io::arena::Target;
use forerun_io::source::{Key, Pending, Source};
use forerun_io::{Config, Driver, Reader};

const BOUND: Duration = Duration::from_secs(600);
const BYTES: usize = 4 << 20;

/// The byte at this place of every object.
fn byte(at: u64) -> u8 {
    (at / 4096 % 251) as u8
}

/// Reads of all objects that wait, by a number; none once they may go on.
#[derive(Default)]
struct Held {
    reads: Mutex<(u64, Option<HashMap<u64, Pending>>)>,
    /// How many were given up.
    given_up: AtomicU32,
    /// Whether the function that gives a read up panics at its end.
    panics: bool,
}

impl Held {
    fn new(panics: bool) -> Arc<Self> {
        let reads = Mutex::new((0, Some(HashMap::new())));
        let given_up = AtomicU32::default();
        Arc::new(Self {
            reads,
            given_up,
            panics,
        })
    }

    /// Keeps a read; gives it back if it may go on.
    fn keep(self: &Arc<Self>, pending: Pending) -> Option<Pending> {
        let mut reads = self.reads.lock().unwrap();
        let number = reads.0;
        reads.0 += 1;
        if reads.1.is_none() {
            return Some(pending);
        }
        let held = self.clone();
        pending.on_give_up(move || {
            held.given_up.fetch_add(1, Ordering::Relaxed);
            let read = held
                .reads
                .lock()
                .unwrap()
                .1
                .as_mut()
                .and_then(|it| it.remove(&number));
            // Not before this returns.
            std::thread::spawn(move || drop(read));
            if held.panics {
                std::panic::resume_unwind(Box::new(()));
            }
        });
        reads.1.as_mut().unwrap().insert(number, pending);
        None
    }

    /// All go on.
    fn release(&self) {
        let reads = self.reads.lock().unwrap().1.take();
        for pending in reads.into_iter().flat_map(HashMap::into_values) {
            finish(pending);
        }
    }
}

/// Fills a read from where it stands.
fn finish(mut pending: Pending) {
    let (offset, skip) = (pending.offset(), pending.skip());
    let Some(target) = pending.target() else {
        return;
    };
    let end = fill(target, offset, skip, usize::MAX);
    pending.end(Ok(end));
}

fn fill(target: &mut Target, offset: u64, skip: usize, most: usize) -> usize {
    let end = target
        .bytes()
        .min(most)
        .min((BYTES as u64 - offset) as usize);
    target.fill(skip, end, |at, memory| {
        for (place, into) in (offset + at as u64..).zip(memory) {
            *into = byte(place);
        }
    });
    end
}

struct Object {
    name: String,
    /// Where its reads wait; nowhere if it answers.
    held: Option<Arc<Held>>,
    /// So many bytes of each come at once.
    first: usize,
    /// How often its first bytes came.
    fronts: Mutex<u32>,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Source for Object {
    fn key(&self) -> Key {
        let (name, version) = (self.name.as_str().into(), "1".into());
        Key::Object { name, version }
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn requests_max(&self) -> Option<u32> {
        Some(8)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(BYTES as u64)
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        Ok(fill(target, offset, skip, usize::MAX))
    }

    fn begin(self: Arc<Self>, mut pending: Pending) -> Option<Pending> {
        let Some(held) = &self.held else {
            return Some(pending);
        };
        let (offset, first) = (pending.offset(), self.first);
        if first > 0
            && let Some(target) = pending.target()
        {
            fill(target, offset, 0, first);
            *self.fronts.lock().unwrap() += u32::from(offset == 0);
        }
        if let Some(pending) = held.keep(pending) {
            finish(pending);
        }
        None
    }
}

/// Reads the whole in a thread, and tells whether all is right.
fn read_whole(reader: Arc<Reader>) -> Receiver<bool> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut into = vec![0; BYTES];
        let read = reader.read_at(&mut into, 0);
        let is_right = (0..).zip(&into).all(|(at, it)| *it == byte(at));
        // The test may have failed meanwhile.
        let _ = tell.send(matches!(read, Ok(BYTES)) && is_right);
    });
    told
}

/// So many objects hang after their first bytes, in so much memory; others are read, then those.
fn give_up(memory: u64, objects: usize, first: usize, panics: bool) {
    let case = format!("{objects} objects in {memory} bytes, {first} bytes come");
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    let driver = Driver::new(Config::new(settings)).unwrap();
    let held = Held::new(panics);
    let open = |name: String, held| {
        let fronts = Mutex::default();
        let object = Arc::new(Object {
            name,
            held,
            first,
            fronts,
        });
        let reader = driver.open_source(object.clone()).unwrap();
        (object, Arc::new(reader))
    };
    let slow: Vec<_> = (0..objects)
        .map(|number| open(format!("slow {number}"), Some(held.clone())))
        .collect();
    let waiting: Vec<_> = slow
        .iter()
        .map(|(_, reader)| read_whole(reader.clone()))
        .collect();
    // Threads of the others may come to run after these: until one is given up, more are read.
    let begun = Instant::now();
    // More than one where they panic: that of the first keeps no other.
    let is_given_up = || held.given_up.load(Ordering::Relaxed) > u32::from(panics);
    for number in 0.. {
        let (_, live) = open(format!("live {number}"), None);
        assert_eq!(read_whole(live).recv_timeout(BOUND), Ok(true), "{case}");
        if number >= 1 && is_given_up() {
            break;
        }
        assert!(begun.elapsed() < BOUND, "{case}: none was given up");
    }
    held.release();
    for told in waiting {
        assert_eq!(told.recv_timeout(BOUND), Ok(true), "{case}");
    }
    for (object, _) in &slow {
        let fronts = *object.fronts.lock().unwrap();
        assert!(
            first == 0 || fronts == 1,
            "{case}: the front of {object:?} came {fronts} times"
        );
    }
    drop(slow);
    driver.finish().unwrap();
}

#[test]
fn objects_that_hang_are_given_up_and_others_are_read() {
    std::thread::scope(|scope| {
        for (memory, objects) in [(8, 12), (16, 40), (16, 100)] {
            scope.spawn(move || give_up(memory << 20, objects, 0, false));
        }
    });
}

#[test]
fn a_function_that_panics_has_given_its_read_up() {
    give_up(8 << 20, 12, 0, true);
}

#[test]
fn what_came_before_a_read_was_given_up_is_not_asked_for_again() {
    std::thread::scope(|scope| {
        for first in [4096, 65536, 100_000] {
            scope.spawn(move || give_up(16 << 20, 24, first, false));
        }
    });
}
