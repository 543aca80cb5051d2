//! Turns: which want a device gets next, and how long a run may be meanwhile.
//!
//! Called by the [queues](super) whenever a device may take one more request. Wants are shown to the
//! [dispatch](crate::dispatch) method with their place and the amount of work at which they are due; idle ones only
//! where nothing else is queued. One rule stands before it: beside requests that hang a fetch goes out whole before another
//! takes memory. A device whose slots are not known has one for each want.
//!
//! A [run](super::runs) is wants that continue each other on the device. Its slice is granted with its first request; windows that
//! continue it are cut to the rest. Example: a slice of 3 MB of which 2.4 MB went out leaves a window 0.6 MB.

use super::{Device, Queues, Want};
use crate::dispatch::{Head, Waiting};
use crate::units::{Bytes, DeviceId, Nanos};

/// A run may be so many times as long as one that begins now. Estimates sway by less: with one, each run ends at
/// their lowest, and 1024 readers of an array in 16 MiB get 119 MB/s in place of 154.
const SLICES: u64 = 4;

impl Queues {
    /// How long a window may be whose first request begins here: the rest of the slice of the run that it
    /// continues, or else a slice.
    pub(crate) fn slice_left(&self, device: &Device, position: u64) -> Bytes {
        let runs = device.queue.runs();
        if runs == 0 {
            return Bytes(u64::MAX);
        }
        let head = self.head(device);
        let rest = head.slice.0.saturating_sub(head.run.0);
        match device.arm.switches_to(position) || rest == 0 {
            true => self.slice(device, runs + 1),
            false => Bytes(rest),
        }
    }

    /// How long a run may get that begins now, of so many.
    fn slice(&self, device: &Device, runs: usize) -> Bytes {
        self.dispatch.slice(device.depth(), device.second(), runs)
    }

    /// Where the device stands. A run that began when its costs were far off does not keep its slice.
    fn head(&self, device: &Device) -> Head {
        let head = device.arm.head;
        let now = self.slice(device, device.arm.runs);
        Head {
            slice: head.slice.min(Bytes(now.0.saturating_mul(SLICES))),
            depth: device.depth(),
            ..head
        }
    }

    /// A request that is taken out next and begins a run gets its slice.
    pub(super) fn grant_slice(&mut self, id: DeviceId, ticket: u64) {
        let Some(device) = self.devices.get(&id) else {
            return;
        };
        let begins =
            |want: &Want| want.request().is_some() && device.arm.switches_to(want.position);
        if !device.queue.get(ticket).is_some_and(begins) {
            return;
        }
        let runs = device.queue.runs();
        let slice = self.slice(device, runs);
        if let Some(device) = self.devices.get_mut(&id) {
            device.arm.grant(slice, runs);
        }
    }

    /// The want that a device gets next, if it has a slot for it.
    pub(super) fn choose(&self, device: &Device, now: Nanos, frames: u32) -> Option<u64> {
        if device.load.live() >= self.most(device, now, frames) {
            return None;
        }
        let queue = &device.queue;
        if device.load.bytes_lost > 0 {
            // No other fetch takes memory before this one has gone out whole.
            let decided = |(_, want): &(_, &Want)| want.request().is_some() && queue.is_due(want);
            if let Some((ticket, _)) = queue.iter().find(decided) {
                return Some(ticket);
            }
        }
        // Of wants that are due at once those with memory go first.
        let order = || {
            let with = |has| move |(_, want): &(u64, &Want)| want.request().is_some() == has;
            let may_go = || queue.iter().filter(|(_, want)| queue.may_go(want));
            may_go()
                .filter(with(true))
                .chain(may_go().filter(with(false)))
        };
        let head = self.head(device);
        let mut waiting = order().map(|(_, want)| Waiting {
            position: want.position,
            due: device.due(want),
            is_short: want.class.is_at_random(),
        });
        let chosen = self.dispatch.next(&head, &mut waiting);
        let chosen = order().nth(chosen).or_else(|| order().next());
        chosen.map(|(ticket, _)| ticket)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::profile::Profile;
    use crate::profile::RATE_RANGE;
    use crate::queues::queue::{Class, Wanted};
    use crate::queues::request::Request;
    use crate::units::{Block, Extent, FileId, ReaderId};

    const DISK: DeviceId = DeviceId(0);
    const MIB: u64 = 1 << 20;

    /// A queue of this disk, one request at a time.
    fn queues(profile: &Profile) -> Queues {
        let settings = crate::plain::settings(Bytes(64 * MIB));
        let mut queues = Queues::new(&settings);
        queues.told(DISK, profile);
        queues
    }

    /// A mebibyte of a file that lies at this position.
    fn ask(queues: &mut Queues, reader: u32, position: u64) {
        let came = queues.devices[&DISK].came();
        let owner = Some(ReaderId(reader));
        let extent = Extent {
            file: FileId(reader),
            first: Block(0),
            count: 256,
        };
        let request = queues.requests.add(Request {
            device: DISK,
            position,
            extent,
            owner,
            piece: None,
            demand: true,
            ticket: 0,
            sent: None,
            waiters: Vec::new(),
            orphans: Vec::new().into(),
        });
        let want = Want {
            fetch: Wanted::Request(request),
            class: Class::Program,
            owner,
            came,
            position,
            bytes: Bytes(MIB),
        };
        queues.push(DISK, want);
    }

    /// Sends the next of the readers that always have another request; its reader.
    fn serve(queues: &mut Queues) -> u32 {
        let want = queues.next(DISK, Nanos(0), u32::MAX).unwrap();
        let request = want.request().unwrap();
        assert!(queues.begin(&want, Nanos(0), u32::MAX).is_some());
        queues.end(request, Nanos(0), true);
        let reader = want.owner.unwrap().0;
        ask(queues, reader, want.position + MIB);
        reader
    }

    #[test]
    fn the_next_reader_of_a_number_owes_nothing_for_the_one_before() {
        let disk = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let mut queues = queues(&disk.with_servers(1).unwrap());
        ask(&mut queues, 7, 1 << 32);
        queues.forget(DISK, ReaderId(7), |_| true);
        let want = queues.next(DISK, Nanos(0), u32::MAX).unwrap();
        let request = queues.begin(&want, Nanos(0), u32::MAX).unwrap();
        assert_eq!(request.owner, None);
        let arm = &queues.devices[&DISK].arm;
        assert_eq!(arm.due(Some(ReaderId(7)), 5), 5);
    }

    /// A server that has 300 requests.
    fn crowded() -> (Queues, Vec<crate::units::RequestId>) {
        let server = Profile::constant(Nanos(1_000_000), 1_000_000_000).unwrap();
        let mut queues = queues(&server.with_servers(400).unwrap().with_most(400));
        queues.in_flight_max = 400;
        for reader in 0..300 {
            ask(&mut queues, reader, u64::from(reader) << 32);
        }
        let mut sent = Vec::new();
        while let Some(want) = queues.next(DISK, Nanos(0), u32::MAX) {
            assert!(queues.begin(&want, Nanos(0), u32::MAX).is_some());
            sent.extend(want.request());
        }
        (queues, sent)
    }

    #[test]
    fn those_written_off_because_they_will_be_late_are_seen_to_hang() {
        for late in [1, 255, 256] {
            let (mut queues, sent) = crowded();
            for request in &sent[..late] {
                queues.write_off(*request, false);
            }
            let later = Nanos(3_600_000_000_000);
            assert_eq!(queues.looked_at(later, true), [DISK], "{late}");
            let hung = queues.hung(DISK, later);
            assert!(sent[..late].iter().all(|one| hung.contains(one)), "{late}");
            assert!(!queues.has_lost());
            queues.write_off(sent[0], true);
            assert!(queues.has_lost());
        }
    }

    /// At most 256 are passed over at a time.
    #[test]
    fn more_requests_that_hang_than_are_passed_over_count_until_there_is_room() {
        let (mut queues, sent) = crowded();
        let later = Nanos(3_600_000_000_000);
        for (ended, live) in [(0..0, 44), (0..256, 0)] {
            for request in &sent[ended] {
                queues.end(*request, later, false);
            }
            for request in queues.hung(DISK, later) {
                queues.write_off(request, true);
                let request = queues.requests.get_mut(request).unwrap();
                request.sent.as_mut().unwrap().hangs = true;
            }
            assert_eq!(queues.devices[&DISK].load.live(), live);
        }
    }

    /// For the first request a rate of 1 TB/s is estimated, a depth of 8 GB; then the right one.
    #[test]
    fn a_run_that_began_when_costs_were_far_off_ends_with_a_slice_of_now() {
        let profile = |rate| {
            let disk = Profile::constant(Nanos(8_000_000), rate).unwrap();
            disk.with_servers(1).unwrap()
        };
        for readers in [2, 10, 64] {
            let mut queues = queues(&profile(*RATE_RANGE.end()));
            // Its slice is granted now; the others come when there was work.
            ask(&mut queues, readers, 1 << 40);
            let first = serve(&mut queues);
            for reader in 0..readers {
                ask(&mut queues, reader, u64::from(reader + 1) << 32);
            }
            let rate = 80_000_000;
            queues.told(DISK, &profile(rate));
            let depth = queues.devices[&DISK].depth();
            let slice = queues.dispatch.slice(depth, Bytes(rate), 1);
            let run = (0..).take_while(|_| serve(&mut queues) == first).count();
            assert!(run as u64 <= SLICES * slice.0 / MIB + 1, "{readers}: {run}");
        }
    }
}
