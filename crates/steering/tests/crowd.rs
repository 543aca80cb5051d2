//! A crowd of readers on a file system whose scheduler may be changed, over a kernel that only takes notes.

use std::io::Write;

use forerun_core::preset;
use forerun_core::{Bytes, Nanos};
use forerun_steering::disks::Spread;
use forerun_steering::events::{Ahead, Cause as Why, FileKey, Request};
use forerun_steering::{Cause, Kernel, Reader, Steering, Wanted, windows};

const SECOND: u64 = 1_000_000_000;
const DISK: u32 = 7;
/// The device's limit, in pages.
const OWN: u32 = 32;

#[derive(Default)]
struct Notes {
    /// Whether the disks can be made fair, and are.
    can_be_fair: bool,
    is_fair: bool,
    /// Whether nothing is to be set.
    is_paused: bool,
    /// Longest limit that was set since it was asked last.
    longest: u32,
}

impl Kernel<()> for Notes {
    fn limit(&mut self, _: usize) -> Option<u32> {
        Some(OWN)
    }

    fn reader(&mut self, _: usize, _: FileKey, _: &Ahead) -> Result<Reader<()>, Cause> {
        Ok(Reader {
            bytes: 1 << 40,
            number: 3,
            domain: (),
        })
    }

    fn memory(&mut self, (): &()) -> Bytes {
        Bytes(256 << 20)
    }

    fn journal(&mut self, _: usize) -> Option<Box<dyn Write>> {
        None
    }

    fn set(&mut self, _: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause> {
        self.longest = self.longest.max(wanted.pages);
        Ok(Some(event.time))
    }

    fn schedule(&mut self, _: usize, is_fair: bool) -> Option<bool> {
        self.is_fair = is_fair && self.can_be_fair && !self.is_paused;
        (!is_fair || !self.is_paused).then_some(self.is_fair)
    }
}

/// Readers of files of their own, and a disk that is always busy and delivers 64 MB in each second.
struct Load {
    steering: Steering<()>,
    kernel: Notes,
    second: u64,
}

impl Load {
    fn new(looks_for_crowds: bool, can_be_fair: bool) -> Self {
        let settings = preset::default().settings(Bytes(256 << 20)).unwrap();
        let disks: [(&[(u32, bool)], Spread); 1] = [(&[(DISK, true)], Spread::Striped)];
        let mut steering = Steering::new(windows::settings(settings).unwrap(), Nanos(0), &disks);
        if looks_for_crowds {
            steering.look_for_crowds(0);
        }
        let kernel = Notes {
            can_be_fair,
            ..Notes::default()
        };
        Self {
            steering,
            kernel,
            second: 0,
        }
    }

    /// One second, in which each of so many new files is read from its beginning on: 1 MiB, by windows of 128 KiB.
    fn second(&mut self, readers: u64) {
        self.kernel.longest = 0;
        for mark in 1..9 {
            for reader in 0..readers {
                let event = Ahead {
                    time: Nanos(self.second * SECOND + mark * SECOND / 9),
                    cause: Why::Mark,
                    process: 100 + reader as u32,
                    thread: 100 + reader as u32,
                    device: 1,
                    inode: self.second << 32 | reader,
                    index: mark * u64::from(OWN),
                    size: OWN,
                    async_size: OWN,
                    limit: OWN,
                    asked: OWN.into(),
                };
                // Those that are not steered have their cause.
                let _ = self.steering.ahead(0, &event, &mut self.kernel);
            }
        }
        for part in 0..64 {
            for is_complete in [false, true] {
                let end = part + u64::from(is_complete);
                self.steering.request(&Request {
                    time: Nanos(self.second * SECOND + end * (SECOND / 64)),
                    is_complete,
                    device: DISK,
                    sector: (self.second * 64 + part) * 100_000,
                    sectors: 1_000_000 / 512,
                });
            }
        }
        self.second += 1;
        self.steering
            .tick(Nanos(self.second * SECOND), &mut self.kernel);
    }
}

#[test]
fn a_crowd_has_a_fair_queue_and_the_devices_limit_until_it_is_gone() {
    let mut load = Load::new(true, true);
    load.second(64);
    assert!(load.kernel.is_fair && load.steering.is_fair(0));
    load.second(64);
    assert_eq!(load.kernel.longest, 0, "nothing is set");
    assert!(load.kernel.is_fair);
    // Streams that are not seen for a minute have ended.
    while load.second < 64 {
        load.second(0);
    }
    assert!(!load.kernel.is_fair && !load.steering.is_fair(0));
    load.second(2);
    assert!(load.kernel.longest > OWN, "{}", load.kernel.longest);
    assert_eq!(load.steering.counts.crowds, 1);
}

#[test]
fn few_readers_and_those_of_a_scheduler_that_is_left_alone_have_windows() {
    for (looks_for_crowds, can_be_fair, readers) in
        [(true, true, 4), (false, true, 64), (true, false, 64)]
    {
        let mut load = Load::new(looks_for_crowds, can_be_fair);
        load.second(readers);
        load.second(readers);
        assert!(!load.kernel.is_fair && !load.steering.is_fair(0));
        assert!(
            load.kernel.longest > OWN,
            "{readers}: {}",
            load.kernel.longest
        );
        assert_eq!(load.steering.counts.crowds, 0);
    }
}

#[test]
fn after_a_pause_a_crowd_has_its_fair_queue_at_once() {
    let mut load = Load::new(true, true);
    for _ in 0..3 {
        load.second(64);
        assert!(load.kernel.is_fair);
        load.kernel.is_paused = true;
        for _ in 0..5 {
            load.second(64);
            assert!(!load.kernel.is_fair && !load.steering.is_fair(0));
        }
        load.kernel.is_paused = false;
    }
    assert_eq!(load.steering.counts.crowds, 3);
}
