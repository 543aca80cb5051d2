//! Phases: one device up to a time, another from then on.
//!
//! For devices that change: a neighbour comes or goes, a volume's credits end, a member of an array
//! degrades. A request is served by the device of the phase in which it is submitted, so those
//! under way at the change end as they would have.
//!
//! ```text
//! phases  0 s: 8 ms, 80 MB/s        10 s: 80 ms, 8 MB/s
//! submit at 9.99 s -> the first     submit at 10.01 s -> the second
//! ```
//!
//! Its profile is that of the first phase: the future is unknown.

use forerun_core::{Bytes, Nanos, Profile};

use crate::device::{Completion, Device, Process, Request, Usage};

/// See the [module](self).
#[derive(Debug)]
pub struct Phased {
    first: Box<dyn Device>,
    /// Later ones, in the order of time.
    later: Vec<(Nanos, Box<dyn Device>)>,
}

impl Phased {
    /// The first device, and others each from a time on.
    #[must_use]
    pub fn new(first: Box<dyn Device>, mut later: Vec<(Nanos, Box<dyn Device>)>) -> Self {
        later.sort_by_key(|(from, _)| *from);
        Self { first, later }
    }

    fn at(&mut self, now: Nanos) -> &mut dyn Device {
        let passed = self.later.partition_point(|(from, _)| *from <= now);
        match passed.checked_sub(1) {
            Some(at) => &mut *self.later[at].1,
            None => &mut *self.first,
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Device> {
        let later = self.later.iter().map(|(_, device)| &**device);
        core::iter::once(&*self.first).chain(later)
    }
}

impl Device for Phased {
    fn profile(&self) -> Profile {
        self.first.profile()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.at(now).submit(now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.all().filter_map(Device::next_event).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.first.advance(now, done);
        for (_, device) in &mut self.later {
            device.advance(now, done);
        }
        done.sort_by_key(|ended| ended.at);
    }

    fn is_full_for(&self, process: Process) -> bool {
        self.all().any(|device| device.is_full_for(process))
    }

    fn is_congested(&self) -> bool {
        self.all().any(Device::is_congested)
    }

    fn usage(&self) -> Usage {
        self.all().fold(Usage::default(), |sum, device| {
            let one = device.usage();
            Usage {
                requests: sum.requests + one.requests,
                bytes: Bytes(sum.bytes.0.saturating_add(one.bytes.0)),
                switches: sum.switches + one.switches,
                busy: Nanos(sum.busy.0.saturating_add(one.busy.0)),
            }
        })
    }

    fn servers(&self) -> u32 {
        let servers = self.all().map(Device::servers);
        servers.fold(0, u32::saturating_add)
    }

    fn capacity(&self) -> Option<Bytes> {
        self.all().filter_map(Device::capacity).min()
    }
}
