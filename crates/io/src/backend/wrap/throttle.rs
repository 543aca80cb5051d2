//! The throttle: a device of the past in front of any backend, in real time.
//!
//! Each device is [one] server, or [several]; its model says when a request ends, by absolute times.
//!
//! So a thread that wakes late delays one answer and not the device, and a queue that never runs
//! empty gets exactly the rate. The bytes are read from the wrapped backend meanwhile and handed
//! over at the deadline, by a thread a device that sleeps with the finest timer it may have.
//!
//! One server is the same model as the simulator's `switching` device, several are that of its
//! `object_store`; neither knows distances, a cache or reordering.

mod one;
mod several;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forerun_core::profile::ProfileError;
use forerun_core::{Bytes, DeviceId, Nanos, Profile, RequestId};

use self::one::One;
use self::several::Several;
use super::{Entry, Start};
use crate::backend::{Backend, Outcome, Request, Sink};
use crate::error::Error;
use crate::sync::{Condvar, Mutex};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "throttle",
    summary: "emulates a device with a switching cost and a transfer rate in real time",
    source: "li04 section 2.1's cost model; object_store ThrottledStore",
};

/// A device to emulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emulation {
    /// The time of a request before its first byte, unless it continues the one before.
    pub switching: Nanos,
    /// How fast bytes come then, of all requests together.
    pub bytes_per_second: u64,
    /// How many requests it works on at once, at least 1; of several none continues another.
    pub servers: u32,
}

/// The requests of an emulated device, all devices together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeviceUse {
    /// Requests.
    pub requests: u64,
    /// Those that began where the one before ended.
    pub continued: u64,
    /// Bytes.
    pub bytes: Bytes,
    /// Time it was serving.
    pub busy: Nanos,
}

/// When requests end.
#[derive(Debug)]
enum Model {
    One(One),
    Several(Several),
}

/// One device.
struct Device {
    model: Model,
    /// Requests that ended and were not handed over, in the order of their ends.
    ended: VecDeque<RequestId>,
    /// Those under way, each with its bytes as soon as the wrapped backend brought them.
    tickets: HashMap<RequestId, Option<(Box<Request>, Outcome)>>,
    /// Beside the counters of the model.
    used: DeviceUse,
    stopping: bool,
}

/// A device and the thread that waits for it.
struct Station {
    device: Mutex<Device>,
    changed: Condvar,
}

struct ThrottleState {
    emulation: Emulation,
    sink: Arc<dyn Sink>,
    stations: Mutex<HashMap<DeviceId, Arc<Station>>>,
}

/// See the [module](self).
pub struct Throttle {
    shared: Arc<ThrottleState>,
    inner: Arc<dyn Backend>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Emulation {
    /// The costs of such a device.
    ///
    /// # Errors
    /// A cost or a number of servers out of range.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        Profile::constant(self.switching, self.bytes_per_second)?.with_servers(self.servers)
    }
}

impl Device {
    fn new(emulation: Emulation) -> Self {
        let model = match emulation.servers {
            0 | 1 => Model::One(One::new(emulation)),
            _ => Model::Several(Several::new(emulation)),
        };
        Self {
            model,
            ended: VecDeque::new(),
            tickets: HashMap::new(),
            used: DeviceUse::default(),
            stopping: false,
        }
    }

    /// Takes a request that came at `now`.
    fn accept(&mut self, now: Nanos, number: RequestId, position: u64, bytes: u64) {
        self.used.requests += 1;
        self.used.bytes.0 += bytes;
        match &mut self.model {
            Model::One(one) => one.accept(now, number, position, bytes),
            Model::Several(several) => several.accept(now, number, bytes, &mut self.ended),
        }
        self.tickets.insert(number, None);
    }

    /// When the next request may end.
    fn next_event(&self) -> Option<Nanos> {
        match &self.model {
            Model::One(one) => one.next_event(),
            Model::Several(several) => several.next_event(),
        }
    }

    /// Notes the requests that ended by `now`.
    fn advance(&mut self, now: Nanos) {
        match &mut self.model {
            Model::One(one) => one.advance(now, &mut self.ended),
            Model::Several(several) => several.advance(now, &mut self.ended),
        }
    }

    fn used(&self) -> DeviceUse {
        let (continued, busy) = match &self.model {
            Model::One(one) => (one.continued, one.busy),
            Model::Several(several) => (0, several.busy),
        };
        DeviceUse {
            continued,
            busy,
            ..self.used
        }
    }

    /// The first request that ended, if its bytes are there.
    fn take(&mut self) -> Option<(Box<Request>, Outcome)> {
        let first = self.ended.front()?;
        let arrived = self.tickets.get_mut(first)?.take()?;
        self.tickets.remove(first);
        self.ended.pop_front();
        Some(arrived)
    }
}

impl Throttle {
    /// Wraps a backend.
    ///
    /// # Errors
    /// The wrapped backend cannot start.
    pub fn start(
        sink: Arc<dyn Sink>,
        emulation: Emulation,
        inner: Start<'_>,
    ) -> Result<Arc<Self>, Error> {
        let shared = Arc::new(ThrottleState {
            emulation,
            sink,
            stations: Mutex::default(),
        });
        let inner = inner(shared.clone())?;
        Ok(Arc::new(Self {
            shared,
            inner,
            threads: Mutex::default(),
        }))
    }

    /// The requests so far.
    #[must_use]
    pub fn used(&self) -> DeviceUse {
        let mut sum = DeviceUse::default();
        for station in self.shared.stations.lock().values() {
            let used = station.device.lock().used();
            sum.requests += used.requests;
            sum.continued += used.continued;
            sum.bytes.0 += used.bytes.0;
            sum.busy.0 += used.busy.0;
        }
        sum
    }

    /// The device's station, with its thread started if it is new.
    fn station(&self, device: DeviceId) -> Arc<Station> {
        let mut stations = self.shared.stations.lock();
        let entry = stations.entry(device).or_insert_with(|| {
            let station = Arc::new(Station {
                device: Mutex::new(Device::new(self.shared.emulation)),
                changed: Condvar::default(),
            });
            let (serving, sink) = (station.clone(), self.shared.sink.clone());
            let thread = std::thread::Builder::new()
                .name(format!("forerun-disk-{device}"))
                .spawn(move || serving.serve(&*sink));
            match thread {
                Ok(thread) => self.threads.lock().push(thread),
                // Nobody would hand bytes over: let requests pass as they come instead.
                Err(_) => station.device.lock().stopping = true,
            }
            station
        });
        entry.clone()
    }
}

impl Station {
    /// Hands requests over as they end, in order.
    fn serve(&self, sink: &dyn Sink) {
        sharpen_timer();
        while let Some((request, outcome)) = self.next() {
            sink.completed(request, outcome);
        }
    }

    /// Waits for the first request that ends: for its end, then for its bytes.
    fn next(&self) -> Option<(Box<Request>, Outcome)> {
        let mut device = self.device.lock();
        loop {
            let now = now();
            device.advance(now);
            if let Some(arrived) = device.take() {
                return Some(arrived);
            }
            if device.stopping && device.tickets.is_empty() {
                return None;
            }
            let event = device.next_event().filter(|_| device.ended.is_empty());
            device = match (event, &device.model) {
                (None, _) => self.changed.wait(device),
                // No request that comes meanwhile ends before.
                (Some(at), Model::One(_)) => {
                    drop(device);
                    sleep_until(at);
                    self.device.lock()
                }
                (Some(at), Model::Several(_)) => {
                    let end = Instant::now() + Duration::from_nanos(at.since(now).0);
                    self.changed.wait_until(device, end)
                }
            };
        }
    }

    /// Keeps the bytes that the wrapped backend brought until their request ends; gives them back if
    /// none waits for them.
    fn keep(&self, request: Box<Request>, outcome: Outcome) -> Option<(Box<Request>, Outcome)> {
        let mut device = self.device.lock();
        match device.tickets.get_mut(&request.number) {
            Some(ticket @ None) => {
                *ticket = Some((request, outcome));
                self.changed.notify_one();
                None
            }
            _ => Some((request, outcome)),
        }
    }
}

impl Backend for Throttle {
    fn submit(&self, request: Box<Request>) {
        let station = self.station(request.device);
        {
            let mut device = station.device.lock();
            if !device.stopping {
                let (position, bytes) = (request.begin(), request.wanted());
                device.accept(now(), request.number, position, bytes);
                station.changed.notify_one();
            }
        }
        self.inner.submit(request);
    }

    fn stop(&self) {
        for station in self.shared.stations.lock().values() {
            station.device.lock().stopping = true;
            station.changed.notify_one();
        }
        for thread in self.threads.lock().drain(..) {
            // A panic in the thread was reported by itself; there is nothing to add.
            let _ = thread.join();
        }
        self.inner.stop();
    }
}

impl Sink for ThrottleState {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        let station = self.stations.lock().get(&request.device).cloned();
        let undelivered = match station {
            Some(station) => station.keep(request, outcome),
            None => Some((request, outcome)),
        };
        if let Some((request, outcome)) = undelivered {
            self.sink.completed(request, outcome);
        }
    }
}

/// Now, on the clock that [`sleep_until`] sleeps by.
fn now() -> Nanos {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid, writable timespec for the duration of the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn sleep_until(deadline: Nanos) {
    let until = libc::timespec {
        tv_sec: (deadline.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline.0 % 1_000_000_000) as libc::c_long,
    };
    // An interruption is no harm: the caller looks at the clock again.
    // SAFETY: `until` is a valid timespec; no remainder is asked for with an absolute time.
    unsafe {
        let flags = libc::TIMER_ABSTIME;
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, flags, &until, std::ptr::null_mut())
    };
}

/// Asks for exact wake-ups of this thread: no timer slack, and before ordinary threads. Both may
/// be refused, which costs accuracy only.
fn sharpen_timer() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: both calls concern this thread alone, and `priority` is a valid sched_param.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority);
    }
}
