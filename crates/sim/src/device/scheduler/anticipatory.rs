//! Anticipatory: an idle disk waits a little for its last process, whose next read is likely near.
//!
//! A process that reads synchronously asks for its next block only when it has the last one. A
//! scheduler that never waits serves another process in between, and pays two seeks for each read;
//! it takes the process for idle that only thinks ("deceptive idleness", Iyer and Druschel, SOSP
//! 2001):
//!
//! ```text
//! A reads 10, B reads 900, A reads 11 ..     look           10 900  11 901  12 902 ..
//!                                            anticipatory   10 11 12 ..    900 901 902 ..
//! ```
//!
//! For each process T is the decaying mean of its think time (from the end of its last request here
//! to its next), and D that of its seek distance. After a request of process A ended at `end`, with
//! a request of another process next in the elevator:
//!
//! ```text
//! T = 7/8 T + 1/8 t,  D = 7/8 D + 1/8 d          the first samples all weigh the same
//! idle until end + wait_ns    if T <= wait_ns and D < |next - end of A|, or A is new
//! ```
//!
//! The elevator goes upwards, and back to a request close behind. A request older than `expire_ns`
//! is served first, so that no process keeps a disk to itself. Requests that follow each other in
//! the queue become one, as in a block layer. With `requests_max` a process sleeps while so many wait, unless the disk
//! idles for it; `congested_from` tells when kernels refuse readahead. Linux's batches of writes do not occur.

use std::collections::BTreeMap;

use forerun_core::spec::{Knows, Method, Param, Spec, Values};
use forerun_core::{Bytes, Nanos};

use super::{Head, Key, Next, Scheduler, Waiting};
use crate::device::{Process, Request};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "anticipatory",
        summary: "upwards, but waits for the next read of the process served last",
        source: "Iyer and Druschel, SOSP 2001; Linux 2.6, as-iosched",
        unfit: "processes that read at random, and disks that order requests themselves",
        knows: Knows::Online,
        params: PARAMS,
    },
    build: |values| Box::new(Anticipatory::new(values)),
};

const PARAMS: &[Param] = &[
    Param {
        name: "wait_ns",
        summary: "longest wait; 6 ms is Linux's antic_expire, an average seek and half a turn",
        default: 6_000_000,
        min: 0,
        max: 1_000_000_000,
    },
    Param {
        name: "expire_ns",
        summary: "age from which a request goes first; 125 ms is Linux's read_expire",
        default: 125_000_000,
        min: 1_000_000,
        max: 60_000_000_000,
    },
    Param {
        name: "merge_bytes",
        summary: "longest merged request; 512 KiB is Linux's max_sectors_kb for SCSI; 0: none",
        default: 512 << 10,
        min: 0,
        max: 1 << 30,
    },
    Param {
        name: "look_ns",
        summary: "how often ages are looked at; Linux does so once in read_expire; 0: at every request",
        default: 125_000_000,
        min: 0,
        max: 60_000_000_000,
    },
    Param {
        name: "requests_max",
        summary: "requests that wait before a process with one more sleeps; Linux's nr_requests is 128; 0: any number",
        default: 0,
        min: 0,
        max: 1 << 20,
    },
    Param {
        name: "congested_from",
        summary: "requests from which on the queue is congested; Linux's is 7/8 of nr_requests, 112; 0: never",
        default: 0,
        min: 0,
        max: 1 << 20,
    },
    Param {
        name: "congested_until",
        summary: "requests below which it is so no longer; Linux's is 13/16 of nr_requests, 104",
        default: 104,
        min: 0,
        max: 1 << 20,
    },
];

/// The weight of a new value in a mean, as a shift: an eighth, so that three or four reads show the
/// present behaviour of a process.
const WEIGHT: u32 = 3;

/// Processes that are remembered: beyond these, the one that asked longest ago is forgotten.
const PROCESSES_MAX: usize = 1024;

/// A request so close behind the head is as good as one twice as far ahead of it.
const BACK_MAX: u64 = 1 << 20;

/// Statistics of a process on this disk.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    /// Requests of it that have not ended.
    open: u32,
    /// When the last one ended, and where.
    ended: Option<(Nanos, Bytes)>,
    think: u64,
    distance: u64,
    /// Samples of both.
    samples: u64,
    asked: Nanos,
}

#[derive(Debug)]
struct Anticipatory {
    wait: u64,
    expire: u64,
    merge: Bytes,
    look: u64,
    most: usize,
    /// Requests from which on the queue is congested, and until when.
    congested: (usize, usize),
    /// When the oldest request's age was looked at last.
    looked: Nanos,
    processes: BTreeMap<Process, Habits>,
    /// The process served last.
    last: Option<Process>,
    /// The disk idles for it.
    is_waiting: bool,
}

impl Anticipatory {
    fn new(values: &Values<'_>) -> Self {
        Self {
            wait: values.get("wait_ns"),
            expire: values.get("expire_ns"),
            merge: Bytes(values.get("merge_bytes")),
            look: values.get("look_ns"),
            most: values.get("requests_max") as usize,
            congested: ["congested_from", "congested_until"]
                .map(|name| values.get(name) as usize)
                .into(),
            looked: Nanos(0),
            processes: BTreeMap::new(),
            last: None,
            is_waiting: false,
        }
    }

    /// The elevator: the next one upwards, unless one lies close behind; else from the lowest
    /// again.
    fn elevator(&self, waiting: &Waiting, head: Bytes) -> Option<Key> {
        let ahead = waiting.at_or_after(head);
        let behind = waiting.before(head);
        let behind = behind.filter(|key| head.0 - key.0.0 <= BACK_MAX);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) if 2 * (head.0 - behind.0.0) < ahead.0.0 - head.0 => {
                Some(behind)
            }
            (ahead, behind) => ahead.or(behind).or_else(|| waiting.at_or_after(Bytes(0))),
        }
    }

    /// Until when to wait for the process served last, if it may ask for something nearer than
    /// this.
    fn waits(&self, next: &Request, head: &Head) -> Option<Nanos> {
        let last = self.last.filter(|last| *last != next.process)?;
        let habits = self.processes.get(&last)?;
        let (ended, at) = habits.ended.filter(|_| habits.open == 0)?;
        let is_nearer = habits.samples == 0 || habits.distance < next.at.0.abs_diff(at.0);
        let is_quick = habits.samples == 0 || habits.think <= self.wait;
        let until = Nanos(ended.0.saturating_add(self.wait));
        (is_nearer && is_quick && until > head.now).then_some(until)
    }

    fn forget_some(&mut self) {
        if self.processes.len() <= PROCESSES_MAX {
            return;
        }
        let idle = self.processes.iter().filter(|(_, habits)| habits.open == 0);
        let oldest = idle.min_by_key(|(_, habits)| habits.asked);
        if let Some(oldest) = oldest.map(|(process, _)| *process) {
            self.processes.remove(&oldest);
        }
    }
}

impl Scheduler for Anticipatory {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        let (oldest, came) = waiting.oldest_since()?;
        if head.now.since(self.looked).0 >= self.look {
            self.looked = head.now;
            if head.now.since(came).0 >= self.expire {
                return Some(Next::Serve(oldest));
            }
        }
        let next = self.elevator(waiting, head.at)?;
        let until = self.waits(waiting.get(next)?, &head);
        self.is_waiting = until.is_some();
        Some(until.map_or(Next::Serve(next), Next::Wait))
    }

    fn came(&mut self, now: Nanos, request: &Request) {
        let cap = self.wait.saturating_mul(2);
        let habits = self.processes.entry(request.process).or_default();
        if let Some((ended, at)) = habits.ended
            && habits.open == 0
        {
            let think = now.since(ended).0.min(cap);
            habits.think = mean(habits.think, think, habits.samples);
            let distance = request.at.0.abs_diff(at.0);
            habits.distance = mean(habits.distance, distance, habits.samples);
            habits.samples += 1;
        }
        habits.open += 1;
        habits.asked = now;
        self.forget_some();
    }

    fn ended(&mut self, now: Nanos, request: &Request) {
        let habits = self.processes.entry(request.process).or_default();
        habits.open = habits.open.saturating_sub(1);
        habits.ended = Some((now, request.end()));
        self.last = Some(request.process);
    }

    fn merge_max(&self) -> Bytes {
        self.merge
    }

    /// The process that the disk waits for need not.
    fn requests_max(&self, process: Process) -> Option<usize> {
        let is_awaited = self.is_waiting && self.last == Some(process);
        (self.most > 0 && !is_awaited).then_some(self.most)
    }

    fn is_congested(&self, requests: usize, was: bool) -> bool {
        let (from, until) = self.congested;
        from > 0 && (requests >= from || was && requests >= until)
    }
}

/// A mean with one more sample, which weighs an eighth; of the first ones all weigh the same.
fn mean(old: u64, new: u64, samples: u64) -> u64 {
    let weight = (samples + 1).min(1 << WEIGHT);
    let (old, new, weight) = (u128::from(old), u128::from(new), u128::from(weight));
    ((old * (weight - 1) + new) / weight) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Profile;

    use crate::device::Device;
    use crate::device::switching::Switching;
    use crate::wrap::Queued;

    /// Processes that read sequentially, each far from the others, and think so long before each
    /// read: the process of each read, in the order in which they end.
    fn order(text: &str, thinks: &[u64], reads: u64) -> Vec<u32> {
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let mut device = Queued::new(super::super::parse(text).unwrap(), Switching::new(profile));
        let request = |process: u64, read: u64| {
            let at = Bytes((process << 30) + read * 65_536);
            let id = process * 1000 + read;
            Request::new(id, at, Bytes(65_536)).by(Process(process as u32))
        };
        let (mut asks, mut order) = (BTreeMap::new(), Vec::new());
        for process in 0..thinks.len() as u64 {
            asks.insert((0, process), 0);
        }
        loop {
            let next = asks
                .first_key_value()
                .map(|((at, process), read)| (*at, *process, *read));
            let event = device.next_event();
            let mut done = Vec::new();
            match (next, event) {
                (Some((at, process, read)), event) if event.is_none_or(|event| at < event.0) => {
                    asks.remove(&(at, process));
                    device.submit(Nanos(at), request(process, read));
                }
                (_, Some(event)) => device.advance(event, &mut done),
                _ => return order,
            }
            for ended in done {
                let (process, read) = (ended.id / 1000, ended.id % 1000);
                order.push(process as u32);
                if read + 1 < reads {
                    let think = thinks[process as usize];
                    asks.insert((ended.at.0 + think, process), read + 1);
                }
            }
        }
    }

    fn changes(order: &[u32]) -> usize {
        order.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn a_disk_waits_for_a_process_that_is_quick_and_near() {
        let quick = [1_000_000, 1_000_000];
        assert_eq!(order("look", &quick, 20).len(), 40);
        assert!(changes(&order("look", &quick, 20)) > 30);
        let waited = order("anticipatory", &quick, 20);
        // One change at the end, and those that the age of a request asks for.
        assert!(changes(&waited) <= 5, "{waited:?}");
    }

    #[test]
    fn a_disk_does_not_wait_for_a_process_that_thinks_longer_than_the_wait() {
        let slow = [20_000_000, 20_000_000];
        let order = order("anticipatory", &slow, 20);
        assert!(changes(&order) > 30, "{order:?}");
    }

    #[test]
    fn an_old_request_goes_before_the_process_that_is_waited_for() {
        let greedy = order("anticipatory", &[0, 0], 400);
        let longest = greedy
            .chunk_by(|a, b| a == b)
            .map(<[u32]>::len)
            .max()
            .unwrap();
        // 125 ms of reads of 0.8 ms.
        assert!((100..=180).contains(&longest), "{longest}");
        let patient = order("anticipatory(expire_ns=60000000000)", &[0, 0], 400);
        assert_eq!(changes(&patient), 1);
    }

    #[test]
    fn a_full_queue_holds_every_process_but_the_one_the_disk_waits_for() {
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let scheduler = super::super::parse("anticipatory(requests_max=2,merge_bytes=0)").unwrap();
        let mut device = Queued::new(scheduler, Switching::new(profile));
        let full = |device: &Queued<Switching>| {
            [1, 2, 3].map(|process| device.is_full_for(Process(process)))
        };
        let ask = |device: &mut Queued<Switching>, process: u32| {
            let at = Bytes(u64::from(process) << 30);
            let request = Request::new(process.into(), at, Bytes(65_536));
            device.submit(Nanos(0), request.by(Process(process)));
        };
        // One is at the disk.
        ask(&mut device, 1);
        ask(&mut device, 2);
        assert_eq!(full(&device), [false; 3]);
        ask(&mut device, 3);
        assert_eq!(full(&device), [true; 3]);
        let mut done = Vec::new();
        let end = device.next_event().unwrap();
        device.advance(end, &mut done);
        assert_eq!((done.len(), full(&device)), (1, [false, true, true]));
    }

    #[test]
    fn a_queue_is_congested_until_it_is_shorter_than_it_was_at_first() {
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let congested = |text: &str| {
            let scheduler = super::super::parse(text).unwrap();
            let mut device = Queued::new(scheduler, Switching::new(profile.clone()));
            let mut seen = Vec::new();
            for id in 0..5 {
                device.submit(Nanos(0), Request::new(id, Bytes(id << 30), Bytes(65_536)));
                seen.push(device.is_congested());
            }
            while let Some(next) = device.next_event() {
                device.advance(next, &mut Vec::new());
                seen.push(device.is_congested());
            }
            seen
        };
        // One to five requests, that at the disk included, then four to none.
        let (free, full) = (false, true);
        assert_eq!(
            congested("anticipatory(wait_ns=0,congested_from=4,congested_until=2)"),
            [free, free, free, full, full, full, full, full, free, free]
        );
        assert_eq!(congested("anticipatory(wait_ns=0)"), [free; 10]);
    }

    #[test]
    fn the_mean_of_few_samples_is_their_mean() {
        let three = [30, 60, 90];
        let mean = (0..)
            .zip(three)
            .fold(0, |old, (at, new)| mean(old, new, at));
        assert_eq!(mean, 60);
    }

    #[test]
    fn processes_beyond_the_most_are_forgotten() {
        let mut scheduler =
            Anticipatory::new(&Values::new(METHOD.spec.params, &[1, 1, 0, 0, 0, 0, 0]));
        for process in 0..2 * PROCESSES_MAX as u32 {
            let request = Request::new(0, Bytes(0), Bytes(1)).by(Process(process));
            scheduler.came(Nanos(process.into()), &request);
            scheduler.ended(Nanos(process.into()), &request);
        }
        assert!(scheduler.processes.len() <= PROCESSES_MAX);
    }
}
