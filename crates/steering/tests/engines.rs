//! Engines of many domains, and a limit's way from an event to an open file, over a kernel that only takes notes.

use std::io::{self, Write};

use forerun_core::{Bytes, Nanos, preset};
use forerun_steering::disks::Spread;
use forerun_steering::events::{Ahead, Cause as Why, FileKey, Request};
use forerun_steering::{Cause, Kernel, Reader, Steering, Wanted, windows};

const SECOND: u64 = 1_000_000_000;
/// More than engines there may be.
const MANY: u32 = 200;
/// The device's limit, in pages.
const OWN: u32 = 32;
const FULL: i32 = 28;

/// Each process reads in a domain of its own, which has so many MiB as its number and 16 more; the system's number is 0.
#[derive(Default)]
struct Notes {
    has_journal: bool,
    journals: usize,
    set: Vec<u32>,
    /// An engine that has folders.
    folders: Option<usize>,
    /// Why no reader is found.
    refuses: Option<Cause>,
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(FULL))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn memory(domain: u32) -> Bytes {
    Bytes(u64::from(domain + 16) << 20)
}

impl Kernel<u32> for Notes {
    fn limit(&mut self, _: usize) -> Option<u32> {
        Some(OWN)
    }

    fn reader(&mut self, _: usize, _: FileKey, event: &Ahead) -> Result<Reader<u32>, Cause> {
        if let Some(cause) = self.refuses {
            return Err(cause);
        }
        Ok(Reader {
            bytes: 1 << 40,
            number: 3,
            domain: event.process,
        })
    }

    fn memory(&mut self, domain: &u32) -> Bytes {
        memory(*domain)
    }

    fn has_folders(&self, engine: usize) -> bool {
        self.folders == Some(engine)
    }

    fn journal(&mut self, _: usize) -> Option<Box<dyn Write>> {
        self.journals += 1;
        self.has_journal.then(|| Box::new(Full) as Box<dyn Write>)
    }

    fn set(&mut self, _: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause> {
        self.set.push(wanted.pages);
        Ok(Some(event.time))
    }

    fn schedule(&mut self, _: usize, _: bool) -> Option<bool> {
        Some(false)
    }
}

fn steering(file_systems: usize) -> Steering<u32> {
    let settings = preset::default().settings(Bytes(4 << 30)).unwrap();
    let disk: (&[(u32, bool)], Spread) = (&[(7, true)], Spread::Striped);
    let settings = windows::settings(settings).unwrap();
    Steering::new(settings, Nanos(0), &vec![disk; file_systems])
}

fn event(process: u32, index: u64, limit: u32, time: u64) -> Ahead {
    Ahead {
        time: Nanos(time),
        cause: Why::Mark,
        process,
        thread: process,
        device: 1,
        inode: process.into(),
        index,
        size: OWN,
        async_size: OWN,
        limit,
        asked: OWN.into(),
    }
}

/// The memory that is told to the engine of a domain.
fn told(steering: &mut Steering<u32>, at: usize, domain: u32, kernel: &mut Notes) -> Bytes {
    let place = steering.domain(at, &domain, Nanos(0), kernel).unwrap();
    steering.engines[place].windows.memory()
}

#[test]
fn a_domain_gets_the_engine_of_one_whose_readers_are_gone() {
    let (mut steering, mut kernel) = (steering(1), Notes::default());
    for process in 1..MANY {
        let time = u64::from(process) * 100 * SECOND;
        let event = event(process, 64, OWN, time);
        steering.ahead(0, &event, &mut kernel).unwrap();
        let told = told(&mut steering, 0, process, &mut kernel).0;
        let own = memory(process).0;
        assert!(told.abs_diff(own) <= own / 16, "{process}: {told}");
        steering.tick(Nanos(time + 90 * SECOND), &mut kernel);
    }
    assert_eq!(steering.engines.len(), kernel.journals);
    assert!(steering.engines.len() <= 64, "{}", steering.engines.len());
}

#[test]
fn bytes_outside_of_the_watched_folders_are_none_that_could_be_steered() {
    for (cause, counted) in [
        (Cause::Excluded, u64::from(OWN) * 4096),
        (Cause::Elsewhere, 0),
    ] {
        let (mut steering, mut kernel) = (steering(1), Notes::default());
        kernel.refuses = Some(cause);
        let refused = steering.ahead(0, &event(1, 64, OWN, 1), &mut kernel);
        assert_eq!((refused, steering.counts.bytes), (Err(cause), counted));
    }
}

#[test]
fn a_domain_without_an_engine_gets_that_of_the_system_on_its_file_system() {
    let (mut steering, mut kernel) = (steering(2), Notes::default());
    for process in 1..MANY {
        let event = event(process, 64, OWN, u64::from(process));
        steering.ahead(0, &event, &mut kernel).unwrap();
    }
    let mut place = |at, domain| steering.domain(at, &domain, Nanos(0), &mut kernel);
    let system = place(0, 0);
    assert!(system.is_some() && place(0, MANY) == system);
    assert_ne!(place(0, 1), system, "one of the first");
    let other = place(1, MANY);
    assert!(other.is_some() && other != system && other == place(1, 0));
    assert_eq!(steering.engines.len(), 64 + 2);
}

#[test]
fn an_engine_that_fills_folders_is_not_given_away() {
    let (mut steering, mut kernel) = (steering(1), Notes::default());
    for domain in 1..MANY {
        kernel.folders = steering.domain(0, &1, Nanos(0), &mut kernel);
        let place = steering.domain(0, &domain, Nanos(0), &mut kernel);
        assert!(domain == 1 || place != kernel.folders, "{domain}");
    }
}

#[test]
fn file_systems_on_one_disk_are_both_told_of_its_requests() {
    let mut steering = steering(2);
    for number in 0..100 {
        for (is_complete, time) in [(false, 0), (true, 8_000_000)] {
            steering.request(&Request {
                time: Nanos(number * 10_000_000 + time),
                is_complete,
                device: 7,
                sector: number << 20,
                sectors: 256,
            });
        }
    }
    let samples: Vec<u64> = steering.disks.iter().map(|disks| disks.samples()).collect();
    assert!(samples[0] > 0 && samples[0] == samples[1], "{samples:?}");
}

#[test]
fn after_a_loss_no_request_is_taken_to_be_under_way() {
    let mut steering = steering(2);
    for sector in 0..3 {
        steering.request(&Request {
            time: Nanos(SECOND + sector),
            is_complete: false,
            device: 7,
            sector,
            sectors: 1,
        });
    }
    assert!(
        steering
            .disks
            .iter_mut()
            .all(|of| of.oldest() == Nanos(SECOND))
    );
    steering.lost();
    for disks in &mut steering.disks {
        assert_eq!(disks.oldest(), Nanos(u64::MAX));
        let work = disks.take_work(Nanos(2 * SECOND)).unwrap();
        assert_eq!(work.busy, Nanos(0));
    }
}

#[test]
fn the_error_that_ends_a_journal_is_kept() {
    let (mut steering, mut kernel) = (steering(1), Notes::default());
    kernel.has_journal = true;
    assert!(steering.journal_error().is_none());
    let event = event(1, 64, OWN, 0);
    steering.ahead(0, &event, &mut kernel).unwrap();
    let error = steering.journal_error().and_then(io::Error::raw_os_error);
    assert_eq!(error, Some(FULL), "and the reader is steered all the same");
}

#[test]
fn an_open_file_is_ours_until_its_program_advises_it() {
    let (mut steering, mut kernel) = (steering(1), Notes::default());
    let is_ours = |steering: &Steering<u32>| {
        let mut streams = steering.streams.iter();
        streams.next().is_some_and(|(_, stream)| stream.is_ours)
    };
    let mut limit = OWN;
    for step in 2..20 {
        let event = event(1, step * 32, limit, step);
        steering.ahead(0, &event, &mut kernel).unwrap();
        limit = *kernel.set.last().unwrap_or(&OWN);
        assert!(is_ours(&steering), "{step}");
    }
    assert!(limit > OWN);
    let doubled = event(1, 20 * 32, 2 * OWN, 20);
    let refused = steering.ahead(0, &doubled, &mut kernel);
    assert!(refused == Err(Cause::OwnLimit) && !is_ours(&steering));
    let mark = event(1, 21 * 32, limit, 21);
    steering.ahead(0, &mark, &mut kernel).unwrap();
    assert!(is_ours(&steering));
    // Of a file that its program reads at random the kernel sets no marks.
    let miss = Ahead {
        cause: Why::Miss,
        ..event(1, 22 * 32, limit, 22)
    };
    steering.ahead(0, &miss, &mut kernel).unwrap();
    assert!(!is_ours(&steering));
}
