//! Duties of every backend, bare and inside every wrapper.
//!
//! One suite, [`suite`], run over each entry of the list and over each wrapper around it; a new
//! backend is covered by being listed. Below it, the duties of each wrapper beyond that.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use forerun_core::table::Frame;
use forerun_core::{Bytes, DeviceId, FileId, Nanos, RequestId};
use forerun_emulated::throttle::{Emulation, Throttle};
use forerun_io::arena::{Arena, Target};
use forerun_io::backend::{self, Backend, BackendChoice, Member, Outcome, Request, Setup, Sink};
use forerun_io::emulate::Emulated;
use forerun_io::generated;
use forerun_io::source::{Generated, Key, OpenFile, Source};
use forerun_io::wrap::fault::{Fault, FaultPlan};

const BLOCK: u64 = 4096;
const FRAMES: u32 = 600;
const SEED: u64 = 3;

/// Keeps completed requests.
#[derive(Default)]
struct Collected {
    ended: Mutex<Vec<(Box<Request>, Outcome)>>,
    more: Condvar,
}

impl Sink for Collected {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        self.ended.lock().unwrap().push((request, outcome));
        self.more.notify_all();
    }
}

impl Collected {
    /// Waits for `count` completions and takes them. After ten minutes a wait is one for ever: no
    /// test passes sooner or later by it.
    fn take(&self, count: usize) -> Vec<(Box<Request>, Outcome)> {
        let ended = self.ended.lock().unwrap();
        let waited = self
            .more
            .wait_timeout_while(ended, Duration::from_secs(600), |ended| ended.len() < count);
        let mut ended = waited.unwrap().0;
        assert_eq!(
            ended.len(),
            count,
            "requests that never ended, or ended twice"
        );
        std::mem::take(&mut ended)
    }
}

/// A backend under test and its setup.
struct Bench {
    backend: Arc<dyn Backend>,
    sink: Arc<Collected>,
    arena: Arc<Arena>,
    /// Of which disk of an array all requests are.
    member: Option<Member>,
}

/// None, one with the only copy, one with the second of two.
const MEMBERS: [Option<Member>; 3] = [None, Some(member(0, 1)), Some(member(1, 2))];

const fn member(copy: u32, copies: u32) -> Member {
    Member {
        device: DeviceId(0),
        copy: (copy, copies),
    }
}

type Wrap = fn(Arc<dyn Sink>, &'static backend::Entry, &Setup) -> Arc<dyn Backend>;

fn bare(sink: Arc<dyn Sink>, entry: &'static backend::Entry, setup: &Setup) -> Arc<dyn Backend> {
    BackendChoice::Only(entry).start(&sink, setup).unwrap()
}

fn throttled(
    servers: u32,
    sink: Arc<dyn Sink>,
    entry: &'static backend::Entry,
    setup: &Setup,
) -> Arc<dyn Backend> {
    let fast = Emulation::new(Nanos(1_000), 20_000_000_000, servers).unwrap();
    Throttle::start(sink, fast, Box::new(|s| Ok(bare(s, entry, setup)))).unwrap()
}

/// The bare backend and each wrapper in a setting that changes nothing.
const WRAPS: &[(&str, Wrap)] = &[
    ("bare", bare),
    ("fault", |sink, entry, setup| {
        let plan = FaultPlan {
            delay_permille: 100,
            delay_max: Nanos(100_000),
            ..FaultPlan::default()
        };
        Fault::start(sink, plan, Box::new(|s| Ok(bare(s, entry, setup)))).unwrap()
    }),
    ("throttle", |sink, entry, setup| {
        throttled(1, sink, entry, setup)
    }),
    ("throttle of several servers", |sink, entry, setup| {
        throttled(4, sink, entry, setup)
    }),
];

impl Bench {
    fn new(entry: &'static backend::Entry, wrap: Wrap) -> Self {
        let arena = Arc::new(Arena::new(FRAMES, BLOCK as u32).unwrap());
        let sink = Arc::new(Collected::default());
        let setup = Setup {
            arena: arena.clone(),
            in_flight_max: 64,
        };
        Self {
            backend: wrap(sink.clone(), entry, &setup),
            sink,
            arena,
            member: None,
        }
    }

    fn of(self, member: Option<Member>) -> Self {
        Self { member, ..self }
    }

    /// Puts an emulated device before the backend that reads.
    fn emulate(&mut self, emulation: Emulation) -> Arc<Throttle> {
        let setup = Setup {
            arena: self.arena.clone(),
            in_flight_max: 64,
        };
        let inner = Box::new(|s| Ok(bare(s, &backend::pread::ENTRY, &setup)));
        let throttle = Throttle::start(self.sink.clone(), emulation, inner).unwrap();
        self.backend = throttle.clone();
        throttle
    }

    fn request(
        &self,
        number: u32,
        source: &Arc<dyn Source>,
        offset: u64,
        frames: &[u32],
    ) -> Box<Request> {
        let left = source.bytes().unwrap().saturating_sub(offset);
        // SAFETY: the tests give each frame to one request at a time.
        let target = unsafe { Target::new(self.arena.clone(), frames.iter().map(|f| Frame(*f))) };
        Box::new(Request {
            number: RequestId(number),
            device: DeviceId(0),
            member: self.member,
            file: FileId(0),
            version: 0,
            source: Some(source.clone()),
            position: Bytes(offset),
            offset,
            bytes: left.min(frames.len() as u64 * BLOCK),
            target,
            skip: 0,
            attempts: 0,
            tried: Vec::new(),
            given_up: None,
        })
    }

    fn run(&self, request: Box<Request>) -> (Box<Request>, Outcome) {
        self.backend.submit(request);
        self.sink.take(1).pop().unwrap()
    }
}

/// Whether a request brought the right bytes: all it asked for, from byte `skip` on.
fn check((mut request, outcome): (Box<Request>, Outcome), index: u64) {
    let n = outcome.unwrap();
    assert_eq!(n, request.bytes, "bytes at {}", request.offset);
    let (offset, skip) = (request.offset, request.skip);
    request.target.fill(skip, n as usize, |at, slice| {
        assert_eq!(
            generated::check(SEED, index, offset + at as u64, slice),
            Ok(())
        );
    });
}

fn temporary(index: u64, bytes: u64) -> (tempfile::NamedTempFile, Arc<dyn Source>) {
    let mut content = vec![0; bytes as usize];
    generated::fill(SEED, index, 0, &mut content);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&content).unwrap();
    let source = Arc::new(OpenFile::open(file.path()).unwrap());
    (file, source)
}

/// Duties of every backend with a source, inside any wrapper.
fn suite(bench: &Bench, source: &Arc<dyn Source>, index: u64) {
    let bytes = source.bytes().unwrap();
    // One run of frames, scattered frames, frames in reverse, a single one.
    for frames in [&[0, 1, 2, 3][..], &[9, 4, 5, 77], &[3, 2, 1, 0], &[599]] {
        check(
            bench.run(bench.request(1, source, 2 * BLOCK, frames)),
            index,
        );
    }
    // The unaligned tail, and room behind it.
    let last = bytes / BLOCK * BLOCK;
    check(bench.run(bench.request(2, source, last, &[7])), index);
    check(
        bench.run(bench.request(3, source, last, &[7, 8, 30])),
        index,
    );
    // At and past the end.
    for offset in [last + BLOCK, last + 1000 * BLOCK] {
        let (_, outcome) = bench.run(bench.request(4, source, offset, &[5]));
        assert_eq!(outcome, Ok(0));
    }
    // The rest of a request of which the front is there already.
    let mut rest = bench.request(5, source, 0, &[20, 21, 40]);
    rest.skip = BLOCK as usize;
    check(bench.run(rest), index);
    // Many at once, each ends once.
    for number in 0..FRAMES / 2 {
        let offset = u64::from(number) * BLOCK % last;
        bench
            .backend
            .submit(bench.request(number, source, offset, &[2 * number, 2 * number + 1]));
    }
    let mut ended = bench.sink.take(FRAMES as usize / 2);
    ended.sort_by_key(|(request, _)| request.number);
    ended.dedup_by_key(|(request, _)| request.number);
    assert_eq!(ended.len(), FRAMES as usize / 2);
    ended.into_iter().for_each(|one| check(one, index));
}

/// Each wrapper, with requests for each kind of disk.
fn everything() -> impl Iterator<Item = (&'static (&'static str, Wrap), Option<Member>)> {
    let wraps = WRAPS.iter();
    wraps.flat_map(|wrap| MEMBERS.map(|member| (wrap, member)))
}

#[test]
fn every_backend_in_every_wrapper_passes_the_suite() {
    const BYTES: u64 = 40 * BLOCK + 1234;
    for entry in backend::LIST {
        for ((name, wrap), member) in everything() {
            println!("{} in {name}, {member:?}", entry.name);
            let bench = Bench::new(entry, *wrap).of(member);
            let (_file, source) = temporary(4, BYTES);
            suite(&bench, &source, 4);
            let made: Arc<dyn Source> = Arc::new(Generated {
                seed: SEED,
                index: 5,
                bytes: BYTES,
            });
            suite(&bench, &made, 5);
            bench.backend.stop();
        }
    }
}

/// An interface that one has taken down may come back to another under the same number.
#[test]
fn drivers_that_come_and_go_side_by_side_get_their_own_completions() {
    std::thread::scope(|scope| {
        for index in 0..4 {
            scope.spawn(move || {
                let (_file, source) = temporary(index, 8 * BLOCK);
                for _ in 0..60 {
                    let bench = Bench::new(&backend::pread::ENTRY, bare).of(MEMBERS[1]);
                    check(bench.run(bench.request(1, &source, BLOCK, &[1, 2])), index);
                    bench.backend.stop();
                }
            });
        }
    });
}

/// The same content from a server, whose calls a backend makes on threads of their own.
#[derive(Debug)]
struct Served(Generated);

impl Source for Served {
    fn key(&self) -> Key {
        self.0.key()
    }

    fn device(&self) -> Option<u64> {
        Some(1 << 40)
    }

    fn is_served(&self) -> bool {
        true
    }

    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    fn read(&self, target: &mut Target, offset: u64, skip: usize) -> io::Result<usize> {
        self.0.read(target, offset, skip)
    }
}

#[test]
fn every_backend_passes_the_suite_with_an_object_of_a_server() {
    for entry in backend::LIST {
        let bench = Bench::new(entry, bare);
        let source: Arc<dyn Source> = Arc::new(Served(Generated {
            seed: SEED,
            index: 6,
            bytes: 40 * BLOCK + 1234,
        }));
        suite(&bench, &source, 6);
        bench.backend.stop();
    }
}

#[test]
fn an_error_comes_back_as_what_it_was() {
    for entry in backend::LIST {
        for ((_, wrap), member) in everything() {
            let bench = Bench::new(entry, *wrap).of(member);
            // Nothing is mapped at address zero, so reading one's own memory there is an error.
            let memory = std::path::Path::new("/proc/self/mem");
            let source: Arc<dyn Source> = Arc::new(OpenFile::open(memory).unwrap());
            let (_, outcome) = bench.run(bench.request(1, &source, 0, &[1, 2]));
            assert_eq!(outcome, Err(libc::EIO), "{}", entry.name);
            let mut gone = bench.request(2, &source, 0, &[1]);
            gone.source = None;
            assert_eq!(bench.run(gone).1, Err(libc::EBADF), "{}", entry.name);
            bench.backend.stop();
        }
    }
}

fn generated_source() -> Arc<dyn Source> {
    Arc::new(Generated {
        seed: SEED,
        index: 1,
        bytes: 1 << 20,
    })
}

#[test]
fn injected_errors_and_short_reads_are_as_planned() {
    let run = |plan: FaultPlan| -> Vec<Outcome> {
        let wrap = |sink: Arc<dyn Sink>, setup: &Setup| {
            Fault::start(
                sink,
                plan,
                Box::new(|s| Ok(bare(s, &backend::memory::ENTRY, setup))),
            )
            .unwrap()
        };
        let mut bench = Bench::new(&backend::memory::ENTRY, bare);
        let setup = Setup {
            arena: bench.arena.clone(),
            in_flight_max: 64,
        };
        bench.backend = wrap(bench.sink.clone(), &setup);
        let source = generated_source();
        let outcomes = (0..200)
            .map(|n| bench.run(bench.request(n, &source, 0, &[1, 2])).1)
            .collect();
        bench.backend.stop();
        outcomes
    };
    let errors = FaultPlan {
        error_permille: 300,
        error: libc::ENODEV,
        ..FaultPlan::default()
    };
    let outcomes = run(errors);
    let failed = outcomes.iter().filter(|o| **o == Err(libc::ENODEV)).count();
    assert!((30..90).contains(&failed), "{failed} of 200 failed");
    assert_eq!(outcomes, run(errors), "the same seed must do the same");
    assert_ne!(outcomes, run(FaultPlan { seed: 1, ..errors }));
    let short = FaultPlan {
        short_permille: 1000,
        ..FaultPlan::default()
    };
    assert!(
        run(short)
            .iter()
            .all(|o| matches!(o, Ok(n) if (1..2 * BLOCK).contains(n)))
    );
}

#[test]
fn an_emulated_disk_takes_its_time_and_answers_in_order() {
    let mut bench = Bench::new(&backend::pread::ENTRY, bare);
    let throttle = bench.emulate(Emulation::new(Nanos(5_000_000), 80_000_000, 1).unwrap());
    let source = generated_source();
    let start = Instant::now();
    // Three that follow each other, one elsewhere: two switches and four transfers of 8 KiB.
    for (number, offset) in [(0, 0), (1, 8192), (2, 16384), (3, 200 * BLOCK)] {
        bench
            .backend
            .submit(bench.request(number, &source, offset, &[2 * number, 2 * number + 1]));
    }
    let ended = bench.sink.take(4);
    let least = Duration::from_nanos(2 * 5_000_000 + 4 * 8192 * 1_000_000_000 / 80_000_000);
    assert!(
        start.elapsed() >= least,
        "{:?} is less than {least:?}",
        start.elapsed()
    );
    assert_eq!(
        ended.iter().map(|(r, _)| r.number.0).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    let used = throttle.used();
    assert_eq!(
        (used.requests, used.continued, used.bytes),
        (4, 2, Bytes(4 * 8192))
    );
    assert!(used.busy.0.abs_diff(least.as_nanos() as u64) < 10);
    // No request is handed over before its end, and a sum of four has one that is the latest.
    assert!(used.late.0 > 0 && (used.late.0 / 4..=used.late.0).contains(&used.late_max.0));
    bench.backend.stop();
}

#[test]
fn an_emulated_device_of_several_servers_switches_for_all_at_once_and_shares_its_rate() {
    let mut bench = Bench::new(&backend::pread::ENTRY, bare);
    let throttle = bench.emulate(Emulation::new(Nanos(40_000_000), 8_000_000, 4).unwrap());
    let source = generated_source();
    let start = Instant::now();
    // Eight adjacent ones: four switch together, then the other four, though each continues one.
    for number in 0..8 {
        let offset = u64::from(number) * 8192;
        bench
            .backend
            .submit(bench.request(number, &source, offset, &[2 * number, 2 * number + 1]));
    }
    let ended = bench.sink.take(8);
    let least = 2 * Duration::from_nanos(40_000_000 + 8192 * 1_000_000_000 / 8_000_000);
    assert!(start.elapsed() >= least);
    assert!(ended.iter().all(|(_, outcome)| *outcome == Ok(8192)));
    let used = throttle.used();
    assert_eq!(
        (used.requests, used.continued, used.bytes),
        (8, 0, Bytes(8 * 8192))
    );
    assert!(used.busy.0 >= least.as_nanos() as u64, "{used:?}");
    bench.backend.stop();
}

#[test]
fn names_choose_backends_and_wrong_ones_are_answered_with_the_list() {
    assert!(matches!("auto".parse(), Ok(BackendChoice::Auto)));
    for entry in backend::LIST {
        assert!(matches!(entry.name.parse(), Ok(BackendChoice::Only(e)) if e.name == entry.name));
    }
    let error = "floppy".parse::<BackendChoice>().unwrap_err().to_string();
    assert!(
        backend::LIST.iter().all(|e| error.contains(e.name)),
        "{error}"
    );
}
