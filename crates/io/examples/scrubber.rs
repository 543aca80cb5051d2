//! A scrubber: reads a file in the gaps that other readers leave, and lists the parts that cannot be read.
//!
//! `cargo run --release -p forerun-io --example scrubber -- FILE` takes 1 MiB a second at most and prints the parts
//! that fail. In a program it stands beside other readers of the same driver.
//!
//! Problem: a disk that is read all day is to be verified. Reads of a thread of its own would have that thread's fair
//! share of the disk, and each costs the others a switch there and one back.
//!
//! Mechanism: reads of the idle class ([`Reader::when_resident_idle`]). Such a read waits without memory while any
//! other is queued for its device, has no window ahead, and needs no buffer: that its blocks arrived is the proof.
//!
//! Example: four readers keep a disk busy for 13 s, and the scrubber gets nothing. They end, and it gets 1 MiB a
//! second.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it has nothing to be woken for, and its output is for people"
)]

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver, Reader};

/// Bytes of one read: one request of a disk, which transfers it in less time than two switches take.
const PIECE: u64 = 1 << 20;
/// One piece in this time.
const TICK: Duration = Duration::from_secs(1);
/// Where a piece fails, each part of this size is read alone.
const PART: usize = 4096;

/// A part that cannot be read.
#[derive(Debug)]
struct Unreadable {
    offset: u64,
    error: io::Error,
}

/// A file that is being verified.
struct Scrubber {
    reader: Reader,
    /// All bytes before were verified.
    at: u64,
    /// The read of the piece that begins there, if it is under way.
    read: Option<Receiver<bool>>,
    unreadable: Vec<Unreadable>,
}

impl Scrubber {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            at: 0,
            read: None,
            unreadable: Vec::new(),
        }
    }

    /// Goes on by one piece at most; waits for nothing while the file can be read. Called once a [`TICK`].
    fn tick(&mut self) {
        let arrived = self.read.as_ref().map(Receiver::try_recv);
        match arrived {
            Some(Err(TryRecvError::Empty)) => return,
            Some(Ok(true)) => self.at += PIECE,
            Some(Ok(false) | Err(TryRecvError::Disconnected)) => self.search(),
            None => {}
        }
        self.read = (!self.is_over()).then(|| {
            let (told, read) = channel();
            // A scrubber that is gone needs no answer.
            let call = move |arrived| told.send(arrived).unwrap_or_default();
            let bytes = PIECE as usize;
            self.reader.when_resident_idle(self.at, bytes, call);
            read
        });
    }

    /// A piece failed: its parts are read one by one, as by any program.
    fn search(&mut self) {
        let end = (self.at + PIECE).min(self.reader.size());
        while self.at < end {
            if let Err(error) = self.reader.read_at(&mut [0; PART], self.at) {
                let offset = self.at;
                self.unreadable.push(Unreadable { offset, error });
            }
            self.at += PART as u64;
        }
    }

    fn is_over(&self) -> bool {
        self.at >= self.reader.size()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: scrubber FILE")?;
    let settings = preset::default().settings(Bytes(64 << 20))?;
    let driver = Driver::new(Config::new(settings))?;
    let mut scrubber = Scrubber::new(driver.open(Path::new(&path))?);
    while !scrubber.is_over() {
        scrubber.tick();
        std::thread::sleep(TICK);
    }
    let bytes = scrubber.reader.size();
    println!(
        "{bytes} bytes, {} parts unreadable",
        scrubber.unreadable.len()
    );
    for Unreadable { offset, error } in scrubber.unreadable {
        println!("{offset}: {error}");
    }
    Ok(())
}

/// The same engine, driver and scrubber beside a disk in virtual time: every run is the same, and none sleeps.
#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use forerun_baselines::METHODS;
    use forerun_core::spec::Choice;
    use forerun_core::{Nanos, Profile};
    use forerun_io::backend::{Backend, Request, Sink};
    use forerun_io::emulate::{DeviceUse, Emulate, Emulated};
    use forerun_io::wrap::Start;
    use forerun_io::{BackendChoice, Clock, Error, FaultPlan};

    use super::*;

    /// A disk of 8 ms and 80 MB/s, in nanoseconds.
    const SWITCH: u64 = 8_000_000;
    const RATE: u64 = 80_000_000;
    const SECOND: u64 = 1_000_000_000;
    /// One read of a program.
    const READ: usize = 64 << 10;

    /// The disk: one request after the other, in the order in which they come.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        queue: VecDeque<Box<Request>>,
        /// When the first of the queue ends.
        end: u64,
        position: u64,
        now: u64,
        inner: Option<Arc<dyn Backend>>,
    }

    impl State {
        /// The first of the queue begins now.
        fn begin(&mut self) {
            let Some(request) = self.queue.front() else {
                return;
            };
            let (begin, bytes) = (request.begin(), request.wanted());
            let switch = if begin == self.position { 0 } else { SWITCH };
            self.end = self.now + switch + bytes * SECOND / RATE;
            self.position = begin + bytes;
        }
    }

    impl Disk {
        fn now(&self) -> u64 {
            self.0.lock().unwrap().now
        }

        /// Time goes on to the end of a request, or to this moment if that comes first or there is none.
        fn go_on(&self, until: u64) {
            let mut state = self.0.lock().unwrap();
            if state.queue.is_empty() || until < state.end {
                assert_ne!(until, u64::MAX, "nothing is under way");
                state.now = until;
                return;
            }
            state.now = state.end;
            let request = state.queue.pop_front().unwrap();
            state.begin();
            let inner = state.inner.clone().unwrap();
            drop(state);
            inner.submit(request);
        }

        fn is_idle(&self) -> bool {
            self.0.lock().unwrap().queue.is_empty()
        }
    }

    impl Emulate for Disk {
        fn profile(&self) -> Profile {
            let profile = Profile::constant(Nanos(SWITCH), RATE).unwrap();
            profile.with_servers(1).unwrap()
        }

        fn start(
            self: Box<Self>,
            sink: Arc<dyn Sink>,
            inner: Start<'_>,
        ) -> Result<Arc<dyn Emulated>, Error> {
            self.0.lock().unwrap().inner = Some(inner(sink)?);
            Ok(Arc::new(*self))
        }
    }

    impl Backend for Disk {
        fn submit(&self, request: Box<Request>) {
            let mut state = self.0.lock().unwrap();
            state.queue.push_back(request);
            if state.queue.len() == 1 {
                state.begin();
            }
        }

        fn stop(&self) {
            self.0.lock().unwrap().inner = None;
        }
    }

    impl Emulated for Disk {
        fn used(&self) -> DeviceUse {
            DeviceUse::default()
        }
    }

    fn driver(disk: &Disk, fault: Option<FaultPlan>) -> Driver {
        let mut settings = preset::default().settings(Bytes(32 << 20)).unwrap();
        // The driver's clock only counts, so there is no time to learn costs from.
        settings.measure = Choice::parse("measure", METHODS.measure, "given").unwrap();
        let mut config = Config::new(settings).backend(BackendChoice::named("memory").unwrap());
        config.lab.emulate = Some(Box::new(disk.clone()));
        config.lab.clock = Clock::Logical;
        config.lab.fault = fault;
        Driver::new(config).unwrap()
    }

    /// A program that reads a file from its beginning and computes after each read.
    struct Program {
        reader: Reader,
        at: u64,
        compute: u64,
        /// It computes until then.
        ready: u64,
        read: Option<Receiver<bool>>,
    }

    impl Program {
        /// Reads until it waits or computes.
        fn go_on(&mut self, now: u64) {
            while !self.is_over() && self.ready <= now {
                if let Some(read) = &self.read {
                    let Ok(arrived) = read.try_recv() else { return };
                    assert!(arrived);
                    let taken = self.reader.read_resident_at(&mut [0; READ], self.at, false);
                    self.at += taken.unwrap_or(0) as u64;
                    self.ready = now + taken.map_or(0, |_| self.compute);
                }
                let (told, read) = channel();
                self.read = Some(read);
                let call = move |arrived| told.send(arrived).unwrap_or_default();
                self.reader.when_resident(self.at, READ, true, call);
            }
        }

        fn is_over(&self) -> bool {
            self.at == self.reader.size()
        }
    }

    /// The time that programs took to read so many bytes each, computing so long after each read; and the pieces
    /// that a scrubber of this interval verified meanwhile.
    fn run(programs: u64, bytes: u64, compute: u64, interval: Option<u64>) -> (u64, u64) {
        let disk = Disk::default();
        let driver = driver(&disk, None);
        let open = |index, bytes| driver.open_generated(1, index, bytes).unwrap();
        let mut scrubber = Scrubber::new(open(programs, 1 << 30));
        let program = |index| Program {
            reader: open(index, bytes),
            at: 0,
            compute,
            ready: 0,
            read: None,
        };
        let mut programs: Vec<Program> = (0..programs).map(program).collect();
        let mut tick = interval.unwrap_or(u64::MAX);
        loop {
            let now = disk.now();
            programs.iter_mut().for_each(|program| program.go_on(now));
            if programs.iter().all(Program::is_over) {
                break;
            }
            if tick <= now {
                scrubber.tick();
                tick += interval.unwrap_or(0);
            }
            let computing = programs.iter().map(|program| program.ready);
            let ready = computing.filter(|ready| *ready > now).min();
            disk.go_on(ready.unwrap_or(u64::MAX).min(tick));
        }
        let result = (disk.now(), scrubber.at / PIECE);
        while !disk.is_idle() {
            disk.go_on(u64::MAX);
        }
        result
    }

    #[test]
    fn programs_that_keep_the_disk_busy_lose_a_hundredth_at_most() {
        // Ten times as often as in earnest. Reads of a program's class cost one of them 17 %, two 15 %, four 9 %.
        // Of several lengths, because a piece that begins as the last program ends is chance.
        let interval = Some(SECOND / 10);
        for programs in [1, 2, 4, 16] {
            let (mut alone, mut beside) = (0, 0);
            for mib in [60, 64, 66, 70] {
                alone += run(programs, mib << 20, 0, None).0;
                let (time, pieces) = run(programs, mib << 20, 0, interval);
                beside += time;
                assert!(pieces <= 1, "{programs}, {mib} MiB: {pieces} pieces");
            }
            assert!(
                beside <= alone + alone / 100,
                "{programs}: {alone} ns, {beside}"
            );
        }
    }

    #[test]
    fn gaps_are_used_and_cost_programs_little() {
        // Four programs of 3 MB/s.
        let compute = SECOND / 50;
        let (alone, _) = run(4, 64 << 20, compute, None);
        let (beside, pieces) = run(4, 64 << 20, compute, Some(SECOND));
        assert!(beside <= alone + alone / 100, "{alone} ns, {beside}");
        let seconds = alone / SECOND;
        assert!(pieces + 2 >= seconds, "{pieces} pieces in {seconds} s");
    }

    #[test]
    fn every_part_that_cannot_be_read_is_listed() {
        let error_permille = 1000;
        let fault = FaultPlan {
            error_permille,
            ..FaultPlan::default()
        };
        let driver = driver(&Disk::default(), Some(fault));
        let mut scrubber = Scrubber::new(driver.open_generated(1, 0, PIECE + 1).unwrap());
        while !scrubber.is_over() {
            scrubber.tick();
        }
        let offsets = scrubber.unreadable.iter().map(|part| part.offset);
        assert!(offsets.eq((0..=PIECE).step_by(PART)));
        let mut errors = scrubber.unreadable.iter().map(|part| &part.error);
        assert!(errors.all(|error| error.raw_os_error() == Some(libc::EIO)));
    }
}
