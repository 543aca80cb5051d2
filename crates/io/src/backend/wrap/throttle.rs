//! The throttle: a device of the past in front of any backend, in real time.
//!
//! Each device is one server. A request's service time is the switching cost, unless it begins
//! where the one before ended, plus its bytes at the transfer rate; its end is an absolute
//! deadline, computed when it is submitted:
//!
//! ```text
//! busy_until = max(busy_until, now) + (continues ? 0 : switching) + bytes / rate
//! ```
//!
//! So a thread that wakes late delays one answer and not the device, and a queue that never runs
//! empty gets exactly the rate. The bytes are read from the wrapped backend meanwhile and handed
//! over at the deadline, by a thread a device that sleeps with the finest timer it may have.
//!
//! It is the same model as the simulator's `switching` device; it knows no distances, no cache
//! and no reordering.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;

use forerun_core::{Bytes, DeviceId, Nanos, RequestId};

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
    /// What a request costs before its first byte, unless it continues the one before.
    pub switching: Nanos,
    /// How fast bytes come then.
    pub bytes_per_second: u64,
}

/// What an emulated device was asked for, all devices together.
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

/// A request on its way: the server keeps them in order, which is the order of deadlines.
struct Ticket {
    number: RequestId,
    deadline: Nanos,
    arrived: Option<(Box<Request>, Outcome)>,
}

/// One device.
#[derive(Default)]
struct Server {
    busy_until: Nanos,
    next_position: Option<u64>,
    queue: VecDeque<Ticket>,
    used: DeviceUse,
    stopping: bool,
}

/// A device and those who wait for it.
#[derive(Default)]
struct Station {
    server: Mutex<Server>,
    changed: Condvar,
}

struct Shared {
    emulation: Emulation,
    sink: Arc<dyn Sink>,
    stations: Mutex<HashMap<DeviceId, Arc<Station>>>,
}

/// See the [module](self).
pub struct Throttle {
    shared: Arc<Shared>,
    inner: Arc<dyn Backend>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Emulation {
    fn service(&self, bytes: u64, continues: bool) -> Nanos {
        let transfer = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.max(1));
        let transfer = u64::try_from(transfer).unwrap_or(u64::MAX);
        Nanos(transfer.saturating_add(if continues { 0 } else { self.switching.0 }))
    }
}

impl Server {
    /// Takes a request of `bytes` at `position` that came at `now`; the time it will be done.
    fn accept(&mut self, emulation: &Emulation, now: Nanos, position: u64, bytes: u64) -> Nanos {
        let continues = self.next_position == Some(position);
        let service = emulation.service(bytes, continues);
        self.next_position = Some(position.saturating_add(bytes));
        self.busy_until = Nanos(self.busy_until.max(now).0.saturating_add(service.0));
        self.used.requests += 1;
        self.used.continued += u64::from(continues);
        self.used.bytes.0 += bytes;
        self.used.busy.0 += service.0;
        self.busy_until
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
        let shared = Arc::new(Shared {
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

    /// What was asked for so far.
    #[must_use]
    pub fn used(&self) -> DeviceUse {
        let mut sum = DeviceUse::default();
        for station in self.shared.stations.lock().values() {
            let used = station.server.lock().used;
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
            let station = Arc::new(Station::default());
            let (serving, sink) = (station.clone(), self.shared.sink.clone());
            let thread = std::thread::Builder::new()
                .name(format!("forerun-disk-{device}"))
                .spawn(move || serving.serve(&*sink));
            match thread {
                Ok(thread) => self.threads.lock().push(thread),
                // Nobody would hand bytes over: let requests pass as they come instead.
                Err(_) => station.server.lock().stopping = true,
            }
            station
        });
        entry.clone()
    }
}

impl Station {
    /// Hands requests over at their deadlines, in order.
    fn serve(&self, sink: &dyn Sink) {
        sharpen_timer();
        while let Some((request, outcome)) = self.next() {
            sink.completed(request, outcome);
        }
    }

    /// Waits for the first request in the queue: its deadline, then its bytes.
    fn next(&self) -> Option<(Box<Request>, Outcome)> {
        let mut server = self.server.lock();
        loop {
            match server.queue.front() {
                Some(ticket) if now() < ticket.deadline => {
                    let deadline = ticket.deadline;
                    drop(server);
                    sleep_until(deadline);
                    server = self.server.lock();
                }
                Some(ticket) if ticket.arrived.is_some() => {
                    return server.queue.pop_front()?.arrived;
                }
                None if server.stopping => return None,
                Some(_) | None => server = self.changed.wait(server),
            }
        }
    }

    /// Keeps what the wrapped backend brought for its deadline; gives it back if nobody waits.
    fn keep(&self, request: Box<Request>, outcome: Outcome) -> Option<(Box<Request>, Outcome)> {
        let mut server = self.server.lock();
        let awaited = |t: &&mut Ticket| t.number == request.number && t.arrived.is_none();
        let Some(ticket) = server.queue.iter_mut().find(awaited) else {
            return Some((request, outcome));
        };
        ticket.arrived = Some((request, outcome));
        self.changed.notify_one();
        None
    }
}

impl Backend for Throttle {
    fn submit(&self, request: Box<Request>) {
        let station = self.station(request.device);
        {
            let mut server = station.server.lock();
            let (position, bytes) = (request.begin(), request.wanted());
            let deadline = server.accept(&self.shared.emulation, now(), position, bytes);
            if !server.stopping {
                let number = request.number;
                server.queue.push_back(Ticket {
                    number,
                    deadline,
                    arrived: None,
                });
                station.changed.notify_one();
            }
        }
        self.inner.submit(request);
    }

    fn stop(&self) {
        for station in self.shared.stations.lock().values() {
            station.server.lock().stopping = true;
            station.changed.notify_one();
        }
        for thread in self.threads.lock().drain(..) {
            // A panic in the thread was reported by itself; there is nothing to add.
            let _ = thread.join();
        }
        self.inner.stop();
    }
}

impl Sink for Shared {
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

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Emulation = Emulation {
        switching: Nanos(8_000_000),
        bytes_per_second: 80_000_000,
    };

    #[test]
    fn a_request_pays_for_the_switch_unless_it_continues_and_queues_behind_the_one_before() {
        let mut server = Server::default();
        assert_eq!(
            server.accept(&DISK, Nanos(1_000), 0, 80_000),
            Nanos(9_001_000)
        );
        assert_eq!(
            server.accept(&DISK, Nanos(2_000), 80_000, 80_000),
            Nanos(10_001_000)
        );
        assert_eq!(
            server.accept(&DISK, Nanos(20_000_000), 0, 8_000),
            Nanos(28_100_000)
        );
        assert_eq!(server.used.continued, 1);
        assert_eq!(server.used.busy, Nanos(9_000_000 + 1_000_000 + 8_100_000));
    }
}
