//! Objects of a server that come slowly take little time from those that come at once, however many they are.
//! In virtual time, told five times a second as by a driver.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::{Rig, sequential};
use crate::protocol::{Fetch, FetchOutcome, Input, Wants};
use crate::units::{Bytes, DeviceId, FileId, Nanos, ReadId, ReaderId, RequestId};
use crate::{Placement, Profile, preset};

const SECOND: u64 = 1_000_000_000;
const STEP: u64 = SECOND / 200;
const LOOK: u64 = SECOND / 5;
/// Of an object.
const BLOCKS: u32 = 1024;
/// A program reads so many at a time.
const READ: u32 = 32;
/// A client's pause after an answer 503, and another time to the first byte.
const RETRY: u64 = 130_000_000;

/// A server that begins to answer after 30 ms, and programs that read an object each from its front to its end.
struct Server {
    rig: Rig,
    slow: u32,
    /// Bytes a second of objects below `slow`; others have 80 MB/s.
    rate: u64,
    /// Each such request takes [`RETRY`] longer.
    late_each: Option<u64>,
    /// How many went out.
    requests: u64,
    /// When requests went out, and how much longer they take.
    sent: BTreeMap<RequestId, (u64, u64)>,
    /// Where each program stands, and its read under way.
    programs: Vec<(u32, Option<ReadId>)>,
    next_read: u32,
    /// Longest wait of a read of objects that are not slow.
    longest: u64,
    asked: BTreeMap<ReadId, u64>,
}

impl Server {
    fn new(memory: u64, slow: u32, rate: u64, most: u32) -> Self {
        let forerun = preset::find("forerun").unwrap();
        let mut rig = Rig::of(forerun.settings(Bytes(memory)).unwrap());
        let device = DeviceId(0);
        let profile = Profile::constant(Nanos(30_000_000), 80_000_000).unwrap();
        let profile = profile.with_servers(16).unwrap().with_most(most);
        rig.input(Input::Device { device, profile });
        Self {
            rig,
            slow,
            rate,
            late_each: None,
            requests: 0,
            sent: BTreeMap::new(),
            programs: Vec::new(),
            next_read: 0,
            longest: 0,
            asked: BTreeMap::new(),
        }
    }

    fn begin(&mut self) {
        let number = self.programs.len() as u32;
        let (file, reader) = (FileId(number), ReaderId(number));
        self.rig.input(Input::File {
            file,
            placement: Placement::linear(DeviceId(0), Bytes(u64::from(number) << 30)),
            bytes: Bytes(u64::from(BLOCKS) * 4096),
        });
        self.rig.input(Input::Open { reader, file });
        self.programs.push((0, None));
    }

    fn read(&mut self, number: u32, first: u32, count: u32) -> ReadId {
        let read = ReadId(self.next_read);
        self.next_read += 1;
        self.rig.input(Input::Read {
            read,
            reader: ReaderId(number),
            access: sequential(first, count),
            wants: Wants::Blocks,
            fresh: first.is_multiple_of(READ),
        });
        read
    }

    /// How long the server takes for this one.
    fn time(&self, fetch: &Fetch) -> u64 {
        let is_slow = fetch.extent.file.0 < self.slow;
        let rate = if is_slow { self.rate } else { 80_000_000 };
        30_000_000 + u64::from(fetch.extent.count) * 4096 * SECOND / rate
    }

    fn step(&mut self) {
        let now = self.rig.now + STEP;
        for fetch in &self.rig.outstanding {
            let (requests, late_each) = (&mut self.requests, self.late_each);
            self.sent.entry(fetch.request).or_insert_with(|| {
                *requests += 1;
                let is_late = late_each.is_some_and(|each| requests.is_multiple_of(each));
                (self.rig.now, if is_late { RETRY } else { 0 })
            });
        }
        let cancelled = std::mem::take(&mut self.rig.cancelled);
        for fetch in self.rig.outstanding.clone() {
            let (begun, longer) = self.sent[&fetch.request];
            let is_over = now - begun >= self.time(&fetch) + longer;
            let outcome = if is_over {
                FetchOutcome::Done
            } else if cancelled.contains(&fetch.request) {
                let rate = u128::from(self.rate);
                let bytes = u128::from((now - begun).saturating_sub(30_000_000)) * rate;
                let blocks = (bytes / u128::from(SECOND) / 4096) as u32;
                FetchOutcome::Cancelled { blocks }
            } else {
                continue;
            };
            let is_it = |other: &Fetch| other.request == fetch.request;
            let at = self.rig.outstanding.iter().position(is_it).unwrap();
            self.sent.remove(&fetch.request);
            self.rig.now = now - 1_000_000;
            self.rig.complete(at, outcome);
        }
        self.rig.now = now;
        if now / LOOK != (now - STEP) / LOOK && self.rig.engine.is_held_up(Nanos(now)) {
            self.rig.input(Input::Decide);
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        let now = self.rig.now;
        for number in 0..self.programs.len() {
            loop {
                let (at, under_way) = self.programs[number];
                if let Some(read) = under_way {
                    let Some(served) = self.rig.served.iter().position(|it| *it == read) else {
                        break;
                    };
                    self.rig.served.swap_remove(served);
                    let count = self.rig.engine.reads.get(read).unwrap().pinned.len() as u32;
                    self.rig.input(Input::Release { read });
                    self.programs[number] = (at + count, None);
                    let asked = self.asked.remove(&read).unwrap();
                    if number as u32 >= self.slow {
                        self.longest = self.longest.max(now - asked);
                    }
                } else if at < BLOCKS {
                    let read = self.read(number as u32, at, READ - at % READ);
                    self.programs[number].1 = Some(read);
                    self.asked.insert(read, now);
                } else {
                    break;
                }
            }
        }
        self.rig.now = now;
    }
}

/// The longest wait of a read of so many programs beside so many of slow objects, in so many mebibytes.
fn longest(memory: u64, (slow, rate): (u32, u64), others: u32, most: u32) -> u64 {
    let mut server = Server::new(memory << 20, slow, rate, most);
    for _ in 0..slow {
        server.begin();
    }
    for _ in 0..400 {
        server.step();
    }
    for _ in 0..others {
        server.begin();
    }
    let is_reading = |server: &Server| {
        let mut others = server.programs.iter().skip(slow as usize);
        others.any(|(at, _)| *at < BLOCKS)
    };
    while is_reading(&server) {
        server.step();
        assert!(server.rig.now < 200 * SECOND, "they are read in the end");
    }
    server.longest
}

#[test]
fn objects_that_come_slowly_take_little_time_from_others() {
    let cases = [
        (16, 16, 3),
        (16, 60, 6),
        (32, 32, 3),
        (64, 60, 6),
        (256, 64, 3),
    ];
    for (memory, slow, bound) in cases {
        // As a mount has.
        let most = (memory as u32 / 2).clamp(8, 64);
        for rate in [30_000, 300_000, 2_000_000] {
            for others in [1, 8] {
                let longest = longest(memory, (slow, rate), others, most);
                assert!(
                    longest <= bound * SECOND,
                    "{memory} MiB, {slow} objects of {rate} bytes a second, {others} others, at most {most} \
                     requests: a read waits for {longest} ns"
                );
            }
        }
    }
}

/// How many requests the objects of so many programs take.
fn requests(memory: u64, programs: u32, late_each: Option<u64>) -> u64 {
    let mut server = Server::new(memory << 20, 0, 1, 8);
    server.late_each = late_each;
    for _ in 0..programs {
        server.begin();
    }
    while server.programs.iter().any(|(at, _)| *at < BLOCKS) {
        server.step();
        assert!(server.rig.now < 200 * SECOND, "they are read in the end");
    }
    server.requests
}

/// A mount of 16 MiB read four objects of a store that answered 503 to one request in five in ranges of 41 kB.
#[test]
fn requests_of_which_some_come_late_are_at_most_four_times_as_many_in_little_memory() {
    for memory in [5, 6, 8, 16, 32] {
        for programs in [1, 4, 8] {
            let even = requests(memory, programs, None);
            for late_each in [5, 20] {
                let late = requests(memory, programs, Some(late_each));
                assert!(
                    late <= 4 * even,
                    "{memory} MiB, {programs} programs, one late of {late_each}: {late} requests, not {even}"
                );
            }
        }
    }
}
