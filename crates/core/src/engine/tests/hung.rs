//! Objects of a server that never answer leave memory and requests to the objects that do, however many
//! they are and however much was asked of them. In virtual time, told twice a second as by a driver.

use std::collections::BTreeSet;
use std::format;
use std::vec::Vec;

use super::{Rig, sequential};
use crate::protocol::{Fetch, FetchOutcome, Input, Output, Wants};
use crate::units::{Bytes, DeviceId, FileId, Nanos, ReadId, ReaderId};
use crate::{Engine, Placement, Profile, preset};

const SECOND: u64 = 1_000_000_000;
const BLOCKS: u64 = 1024;
/// A read waits for no longer than this: 3.04 s in the worst case, beside 120 objects of a server of which nothing
/// is known, and in most at most 3 s.
const BOUND: u64 = 3 * SECOND + SECOND / 10;

/// Servers of which some objects, those below `hung`, never answer.
struct Servers {
    rig: Rig,
    /// Servers with such objects; there is one more without.
    silent: u16,
    hung: u32,
    /// Whether the driver can give a fetch up.
    cancels: bool,
    next_read: u32,
}

impl Servers {
    fn new(
        memory: u64,
        (silent, hung): (u16, u32),
        cancels: bool,
        profile: Option<Profile>,
    ) -> Self {
        let forerun = preset::find("forerun").unwrap();
        let mut rig = Rig::of(forerun.settings(Bytes(memory)).unwrap());
        for device in (0..=silent).map(DeviceId) {
            if let Some(profile) = profile.clone() {
                rig.input(Input::Device { device, profile });
            }
        }
        let next_read = 0;
        Self {
            rig,
            silent,
            hung,
            cancels,
            next_read,
        }
    }

    fn open(&mut self, number: u32) {
        let (file, reader) = (FileId(number), ReaderId(number));
        // Of those that answer one beside objects that hang, and one alone.
        let device = match number.checked_sub(self.hung) {
            None => number % u32::from(self.silent),
            Some(0) => 0,
            Some(_) => u32::from(self.silent),
        };
        let device = DeviceId(device as u16);
        self.rig.input(Input::File {
            file,
            placement: Placement::linear(device, Bytes(u64::from(number) << 30)),
            bytes: Bytes(BLOCKS * 4096),
        });
        self.rig.input(Input::Open { reader, file });
    }

    fn read(&mut self, number: u32, first: u32, count: u32) -> ReadId {
        let read = ReadId(self.next_read);
        self.next_read += 1;
        self.rig.input(Input::Read {
            read,
            reader: ReaderId(number),
            access: sequential(first, count),
            wants: Wants::Blocks,
            fresh: true,
        });
        read
    }

    /// Answers the requests of other objects, and releases the reads that were served.
    fn answer(&mut self) -> BTreeSet<ReadId> {
        let mut served = BTreeSet::new();
        loop {
            for read in std::mem::take(&mut self.rig.served) {
                served.insert(read);
                self.rig.input(Input::Release { read });
            }
            for request in std::mem::take(&mut self.rig.cancelled) {
                let is_it = |fetch: &Fetch| fetch.request == request;
                let at = self.rig.outstanding.iter().position(is_it);
                let at = at.filter(|_| self.cancels);
                at.inspect(|at| {
                    self.rig
                        .complete(*at, FetchOutcome::Cancelled { blocks: 0 })
                });
            }
            let live = |fetch: &Fetch| fetch.extent.file.0 >= self.hung;
            let Some(at) = self.rig.outstanding.iter().position(live) else {
                return served;
            };
            self.rig.complete(at, FetchOutcome::Done);
        }
    }

    /// Reads an object from its front to its end, so many blocks at a time.
    fn read_through(&mut self, number: u32, count: u32, case: &str) {
        let mut at = 0;
        while u64::from(at) < BLOCKS {
            let read = self.read(number, at, count);
            let asked = self.rig.now;
            while !self.answer().contains(&read) {
                let waited = self.rig.now - asked;
                let is_within = waited <= BOUND;
                assert!(is_within, "{case}: block {at} waits for {waited} ns");
                self.rig.now += SECOND / 2;
                if self.rig.engine.is_held_up(Nanos(self.rig.now)) {
                    self.rig.input(Input::Decide);
                }
            }
            at += count.min(64);
        }
    }
}

/// In so much memory, beside so many objects that hang of so many servers, each of which was asked for so many
/// blocks.
fn others_are_read(
    mebibytes: u64,
    (silent, hung): (u16, u32),
    count: u32,
    cancels: bool,
    profile: Option<Profile>,
) {
    let case = format!(
        "{mebibytes} MiB, {hung} hang of {silent} servers, {count} blocks a read of {profile:?}, {cancels}"
    );
    let mut server = Servers::new(mebibytes << 20, (silent, hung), cancels, profile);
    for number in 0..hung + 2 {
        server.open(number);
    }
    for number in 0..hung {
        server.read(number, 0, count);
    }
    for live in hung..hung + 2 {
        server.read_through(live, count, &case);
    }
}

#[test]
fn objects_that_hang_leave_memory_to_others_whatever_was_read_of_them() {
    let known = Profile::constant(Nanos(30_000_000), 80_000_000).unwrap();
    let known = known.with_servers(16).unwrap().with_most(64);
    let new = Profile::default().with_most(256);
    let few = known.clone().with_most(8);
    for profile in [None, Some(new), Some(known), Some(few)] {
        for (mebibytes, hung) in [
            (5, 30),
            (8, 12),
            (16, 19),
            (16, 40),
            (16, 100),
            (64, 60),
            (64, 120),
        ] {
            for count in [1, 32, 1024] {
                for silent in [1, 2, 5] {
                    for cancels in [false, true] {
                        others_are_read(mebibytes, (silent, hung), count, cancels, profile.clone());
                    }
                }
            }
        }
    }
}

/// The first request of a device without a profile is never answered. A read that comes later is
/// sent all the same, once it is told that time has passed.
#[test]
fn a_request_that_is_never_answered_holds_up_no_other_for_ever() {
    let settings = preset::find("mount").unwrap().settings(Bytes(16 << 20));
    let mut engine = Engine::new(settings.unwrap()).unwrap();
    let fetches = |engine: &mut Engine, now, input| {
        engine.handle(Nanos(now), input);
        let outputs = core::iter::from_fn(|| engine.poll());
        outputs
            .filter(|output| matches!(output, Output::Fetch(_)))
            .count()
    };
    let mut sent = Vec::new();
    for number in 0..4 {
        fetches(
            &mut engine,
            0,
            Input::File {
                file: FileId(number),
                placement: Placement::linear(DeviceId(0), Bytes(u64::from(number) << 30)),
                bytes: Bytes(16 * 4096),
            },
        );
        fetches(
            &mut engine,
            0,
            Input::Open {
                reader: ReaderId(number),
                file: FileId(number),
            },
        );
        let access = sequential(0, 16);
        sent.push(fetches(
            &mut engine,
            1,
            Input::Read {
                read: ReadId(number),
                reader: ReaderId(number),
                access,
                fresh: true,
                wants: Wants::Blocks,
            },
        ));
    }
    assert_eq!(
        sent,
        [1, 0, 0, 0],
        "one at a time as long as nothing is known"
    );
    let second = 1_000_000_000;
    assert!(!engine.is_held_up(Nanos(second)));
    assert!(engine.is_held_up(Nanos(2 * second)));
    assert_eq!(
        fetches(&mut engine, second, Input::Decide),
        1,
        "the other piece of the first read"
    );
    assert_eq!(
        fetches(&mut engine, 10 * second, Input::Decide),
        3,
        "each of the three others, in one piece beside one that hangs"
    );
    assert!(!engine.is_held_up(Nanos(10 * second)));
}
