//! A disk: a device of `forerun-sim`, run in real time by one thread.
//!
//! The device decides when a request ends, exactly as in the simulator; the thread waits for that moment and
//! calls `finish`:
//!
//! ```text
//! submit (any thread): stamp with now -> queue -> ring
//! the disk's thread:   drain the queue into the device, advance it to its next event if that has
//!                      come, finish ended ones; wait for the next event or for a ring
//! ```
//!
//! A request counts from the moment it was submitted, not from when the thread saw it, and
//! deadlines are absolute, so being late once delays nothing after it. How late it was is metered.
//! The thread owns the device; there is no lock that a slower thread could hold against it.
//!
//! It moves no bytes and has no files. A request once submitted cannot be taken back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use forerun_core::{Bytes, Nanos};
use forerun_sim::device::{Completion, Device, Outcome, Request, Usage};

use crate::clock::{self, Bell, Priority};

/// Counters of a disk, readable while it runs.
#[derive(Debug, Default)]
pub struct Meter {
    /// Requests that ended.
    pub requests: AtomicU64,
    /// Bytes asked for.
    pub bytes: AtomicU64,
    /// Requests that did not continue where the one before ended.
    pub switches: AtomicU64,
    /// Time the device worked.
    pub busy_ns: AtomicU64,
    /// Time from a request's deadline until it was finished, added up.
    pub late_ns: AtomicU64,
    /// The latest of them.
    pub late_max_ns: AtomicU64,
    /// Whether its thread got real-time priority.
    pub is_realtime: AtomicBool,
}

struct Submitted<J> {
    at: Nanos,
    position: u64,
    bytes: u64,
    job: J,
}

/// A running disk. Dropping it finishes submitted requests and ends its thread.
pub struct Disk<J> {
    queue: Option<mpsc::Sender<Submitted<J>>>,
    bell: Arc<Bell>,
    meter: Arc<Meter>,
    thread: Option<JoinHandle<()>>,
}

impl<J> fmt::Debug for Disk<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("meter", &self.meter).finish()
    }
}

impl<J: Send + 'static> Disk<J> {
    /// Starts a disk that is the device which `make` makes, on the disk's own thread: a device stays on one.
    ///
    /// # Errors
    /// The device cannot be made; no more threads.
    pub fn start<E: fmt::Display + 'static>(
        name: &str,
        make: impl FnOnce() -> Result<Box<dyn Device>, E> + Send + 'static,
        finish: impl FnMut(J, Outcome) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, submitted) = mpsc::channel();
        let (told, made) = mpsc::channel();
        let bell = Arc::new(Bell::default());
        let meter = Arc::new(Meter::default());
        let (rung, metered) = (bell.clone(), meter.clone());
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            let punctual = clock::be_punctual(Priority::Disk);
            metered.is_realtime.store(punctual, Ordering::Relaxed);
            let device = make().map_err(|e| e.to_string());
            // The receiver waits for this word.
            let _ = told.send(device.as_ref().map(drop).map_err(String::clone));
            let Ok(device) = device else { return };
            let mut work = Work {
                device,
                waiting: HashMap::new(),
                next_id: 0,
                last: Nanos(0),
                meter: &metered,
                finish,
            };
            work.run(&submitted, &rung);
        })?;
        match made.recv() {
            Ok(Ok(())) => Ok(Self {
                queue: Some(queue),
                bell,
                meter,
                thread: Some(thread),
            }),
            Ok(Err(why)) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
            Err(_) => Err(io::Error::other("the disk's thread ended")),
        }
    }

    /// Asks for `bytes` at `position`; `job` is handed to `finish` when they would have arrived.
    pub fn submit(&self, position: u64, bytes: u64, job: J) {
        let at = clock::now();
        if let Some(queue) = &self.queue {
            let submitted = Submitted {
                at,
                position,
                bytes,
                job,
            };
            // Only a disk whose thread panicked has no receiver; its jobs end by being dropped.
            if queue.send(submitted).is_ok() {
                self.bell.ring();
            }
        }
    }

    /// Its counters.
    #[must_use]
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl<J> Drop for Disk<J> {
    fn drop(&mut self) {
        self.queue = None;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// The thread's side of a disk.
struct Work<'a, J, F> {
    device: Box<dyn Device>,
    waiting: HashMap<u64, J>,
    next_id: u64,
    /// The latest moment passed to the device: its time must not run backwards.
    last: Nanos,
    meter: &'a Meter,
    finish: F,
}

impl<J, F: FnMut(J, Outcome)> Work<'_, J, F> {
    fn run(&mut self, submitted: &mpsc::Receiver<Submitted<J>>, bell: &Bell) {
        let mut done = Vec::new();
        loop {
            let count = bell.count();
            let open = self.drain(submitted);
            let next = self.device.next_event();
            match next {
                Some(event) if event <= clock::now() => {
                    self.last = self.last.max(event);
                    self.device.advance(self.last, &mut done);
                    for completion in done.drain(..) {
                        self.complete(completion);
                    }
                }
                None if !open => return,
                _ => bell.wait(count, next),
            }
        }
    }

    /// Hands submitted requests to the device. False once nothing more can come.
    fn drain(&mut self, submitted: &mpsc::Receiver<Submitted<J>>) -> bool {
        loop {
            match submitted.try_recv() {
                Ok(one) => self.accept(one),
                Err(mpsc::TryRecvError::Empty) => return true,
                Err(mpsc::TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn accept(&mut self, one: Submitted<J>) {
        self.last = self.last.max(one.at);
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, one.job);
        let request = Request::new(id, Bytes(one.position), Bytes(one.bytes));
        self.device.submit(self.last, request);
    }

    /// Counted first: at its last request's end the counters are whole.
    fn complete(&mut self, completion: Completion) {
        let late = clock::now().0.saturating_sub(completion.at.0);
        let usage = self.device.usage();
        let meter = self.meter;
        meter.requests.fetch_add(1, Ordering::Relaxed);
        meter.late_ns.fetch_add(late, Ordering::Relaxed);
        meter.late_max_ns.fetch_max(late, Ordering::Relaxed);
        meter.bytes.store(usage.bytes.0, Ordering::Relaxed);
        meter.switches.store(usage.switches, Ordering::Relaxed);
        meter.busy_ns.store(usage.busy.0, Ordering::Relaxed);
        if let Some(job) = self.waiting.remove(&completion.id) {
            (self.finish)(job, completion.outcome);
        }
    }
}

impl Meter {
    /// The counters of the device: the requests that ended, and all else of those that were submitted.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let [requests, bytes, switches, busy] =
            [&self.requests, &self.bytes, &self.switches, &self.busy_ns]
                .map(|count| count.load(Ordering::Relaxed));
        Usage {
            requests,
            bytes: Bytes(bytes),
            switches,
            busy: Nanos(busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use forerun_sim::device;

    use super::*;

    const DEVICE: &str = "switching(cost_ns=2000000,rate_bytes_per_second=80000000)";

    /// Requests one after the other, a third of them continuing the one before.
    fn requests(count: u64) -> Vec<Request> {
        let mut at = 0;
        (0..count)
            .map(|id| {
                if id % 3 != 1 {
                    at = (id * 7919 % 1009) << 20;
                }
                let bytes = 4096 * (1 + id * 31 % 64);
                let request = Request::new(id, Bytes(at), Bytes(bytes));
                at += bytes;
                request
            })
            .collect()
    }

    /// When each ends in virtual time, all submitted at 0, and the device's counters.
    fn modelled(requests: &[Request]) -> (Vec<Nanos>, Usage) {
        let mut device = device::parse(DEVICE).unwrap();
        for request in requests {
            device.submit(Nanos(0), *request);
        }
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX), &mut done);
        (done.iter().map(|one| one.at).collect(), device.usage())
    }

    /// A later end is the machine's doing: `make bench` shows it.
    #[test]
    fn no_request_ends_before_its_modelled_time_and_the_device_works_as_long_as_modelled() {
        let requests = requests(300);
        let (sender, ended) = mpsc::channel();
        let disk = Disk::start(
            "disk",
            || device::parse(DEVICE),
            move |id: u64, _| {
                sender.send((id, clock::now())).unwrap();
            },
        )
        .unwrap();
        let began = clock::now();
        for request in &requests {
            disk.submit(request.at.0, request.bytes.0, request.id);
        }
        let ended: Vec<(u64, Nanos)> = ended.iter().take(requests.len()).collect();
        let meter = disk.meter.clone();
        drop(disk);
        // The modelled ones were all submitted at once, before any here.
        let (modelled, usage) = modelled(&requests);
        for ((number, (id, real)), model) in (0..).zip(&ended).zip(&modelled) {
            assert_eq!(number, *id, "first come, first served");
            assert!(real.0 >= began.0 + model.0, "{number}: {real} {model}");
        }
        assert_eq!(meter.usage(), usage);
    }

    #[test]
    fn what_was_submitted_ends_although_the_disk_is_dropped() {
        let (sender, ended) = mpsc::channel();
        let disk = Disk::start(
            "disk",
            || device::parse(DEVICE),
            move |id: u64, outcome| {
                sender.send((id, outcome)).unwrap();
            },
        )
        .unwrap();
        disk.submit(0, 4096, 7);
        drop(disk);
        assert_eq!(ended.try_recv(), Ok((7, Outcome::Done)));
    }
}
