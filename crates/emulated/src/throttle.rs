//! The throttle: devices of the simulator in front of a driver's backend, in real time.
//!
//! A request goes to its device's [`Disk`], which decides when it ends, and to the backend behind, which brings
//! its bytes meanwhile; the disk's thread hands it over at its end:
//!
//! ```text
//! submit --> disk of the device: queue, ends at 9.2 ms ------> hand over --> sink
//!        \-> backend behind: bytes there after 0.1 ms -> ticket --^
//! ```
//!
//! Where the bytes come later than the end, the disk's thread waits for them, so requests of a device are handed
//! over in the order of their ends. A request whose disk's thread cannot be started ends with `EAGAIN`: without its
//! disk it would be faster than the device.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use forerun_core::profile::ProfileError;
use forerun_core::{DeviceId, Nanos, Profile, RequestId};
use forerun_io::Error;
use forerun_io::backend::{Backend, Outcome, Request, Sink};
use forerun_io::emulate::{DeviceUse, Emulate, Emulated};
use forerun_io::wrap::Start;
use forerun_sim::device::Device;
use forerun_sim::device::object_store::ObjectStore;
use forerun_sim::device::switching::Switching;
use rustix::io::Errno;

use crate::disk::{Disk, Meter};

/// A device to emulate: of one server, the model `switching` of the simulator; of several, which share the rate,
/// its `object_store`. Neither knows distances, a cache or reordering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Emulation {
    switching: Nanos,
    bytes_per_second: u64,
    servers: u32,
}

impl Emulation {
    /// A device with a `switching` cost before the first byte of a request that does not continue the one before
    /// (of several servers none does), and a rate that all its requests share.
    ///
    /// # Errors
    /// A cost or a number of servers that no [`Profile`] may state.
    pub fn new(
        switching: Nanos,
        bytes_per_second: u64,
        servers: u32,
    ) -> Result<Self, ProfileError> {
        Profile::constant(switching, bytes_per_second)?.with_servers(servers)?;
        Ok(Self {
            switching,
            bytes_per_second,
            servers,
        })
    }

    /// The time of a request before its first byte.
    #[must_use]
    pub fn switching(&self) -> Nanos {
        self.switching
    }

    /// The rate of all requests together.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    /// The number of requests it works on at once.
    #[must_use]
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Its costs.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let alone = Profile::constant(self.switching, self.bytes_per_second);
        // Checked when it was made, so the default is never taken.
        let profile = alone.and_then(|alone| alone.with_servers(self.servers));
        profile.unwrap_or_default()
    }

    /// The device, for virtual time and for real time.
    #[must_use]
    pub fn device(&self) -> Box<dyn Device> {
        match self.servers {
            0 | 1 => Box::new(Switching::new(self.profile())),
            servers => Box::new(ObjectStore::sharing(
                self.switching,
                self.bytes_per_second,
                servers,
            )),
        }
    }
}

impl Emulate for Emulation {
    fn profile(&self) -> Profile {
        Emulation::profile(self)
    }

    fn start(
        self: Box<Self>,
        sink: Arc<dyn Sink>,
        inner: Start<'_>,
    ) -> Result<Arc<dyn Emulated>, Error> {
        Ok(Throttle::start(sink, *self, inner)?)
    }
}

/// The bytes of a request, as soon as they are there.
#[derive(Default)]
struct Ticket {
    arrived: Mutex<Option<(Box<Request>, Outcome)>>,
    changed: Condvar,
}

/// The side that the backend behind reports to.
struct Arrivals {
    sink: Arc<dyn Sink>,
    tickets: Mutex<HashMap<RequestId, Arc<Ticket>>>,
}

/// See the [module](self).
pub struct Throttle {
    emulation: Emulation,
    arrivals: Arc<Arrivals>,
    inner: Arc<dyn Backend>,
    start: StartDisk,
    stations: Mutex<HashMap<DeviceId, Station>>,
}

type StartDisk = fn(Emulation, DeviceId, Arc<dyn Sink>) -> io::Result<Disk<Arc<Ticket>>>;

/// The disk of a device, and its counters, which outlive it. Without a disk, after the end, requests pass as they come.
struct Station {
    disk: Option<Disk<Arc<Ticket>>>,
    meter: Arc<Meter>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let tickets = Mutex::default();
        let arrivals = Arc::new(Arrivals { sink, tickets });
        let inner = inner(arrivals.clone())?;
        Ok(Arc::new(Self {
            emulation,
            arrivals,
            inner,
            start: start_disk,
            stations: Mutex::default(),
        }))
    }

    /// Lets the disk of a request's device decide when it ends; an error where that disk cannot be started.
    fn enter(&self, request: &Request) -> io::Result<()> {
        let mut stations = lock(&self.stations);
        let station = match stations.entry(request.device) {
            Entry::Occupied(station) => station.into_mut(),
            Entry::Vacant(place) => {
                let sink = self.arrivals.sink.clone();
                let disk = (self.start)(self.emulation, request.device, sink)?;
                place.insert(Station {
                    meter: disk.meter().clone(),
                    disk: Some(disk),
                })
            }
        };
        if let Some(disk) = &station.disk {
            let ticket = Arc::new(Ticket::default());
            lock(&self.arrivals.tickets).insert(request.number, ticket.clone());
            disk.submit(request.begin(), request.wanted(), ticket);
        }
        Ok(())
    }
}

fn start_disk(
    emulation: Emulation,
    device: DeviceId,
    sink: Arc<dyn Sink>,
) -> io::Result<Disk<Arc<Ticket>>> {
    let make = move || Ok::<_, Infallible>(emulation.device());
    let hand_over = move |ticket: Arc<Ticket>, _| {
        let (request, outcome) = ticket.wait();
        sink.completed(request, outcome);
    };
    Disk::start(&format!("forerun-disk-{device}"), make, hand_over)
}

impl Ticket {
    fn wait(&self) -> (Box<Request>, Outcome) {
        let mut arrived = lock(&self.arrived);
        loop {
            match arrived.take() {
                Some(arrived) => return arrived,
                None => {
                    let woken = self.changed.wait(arrived);
                    arrived = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Backend for Throttle {
    fn submit(&self, request: Box<Request>) {
        match self.enter(&request) {
            Ok(()) => self.inner.submit(request),
            Err(_) => {
                let again = Errno::AGAIN.raw_os_error();
                self.arrivals.sink.completed(request, Err(again));
            }
        }
    }

    fn look_for_hung(&self) {
        self.inner.look_for_hung();
    }

    /// Hands over all requests under way, each at its end.
    fn stop(&self) {
        // Dropped without the lock: a disk ends with its last request.
        let disks: Vec<_> = lock(&self.stations)
            .values_mut()
            .map(|station| station.disk.take())
            .collect();
        drop(disks);
        self.inner.stop();
    }
}

impl Emulated for Throttle {
    fn used(&self) -> DeviceUse {
        let stations = lock(&self.stations);
        let mut sum = DeviceUse {
            is_realtime: !stations.is_empty(),
            ..DeviceUse::default()
        };
        for Station { meter, .. } in stations.values() {
            let used = meter.usage();
            sum.requests += used.requests;
            sum.continued += used.requests.saturating_sub(used.switches);
            sum.bytes.0 += used.bytes.0;
            sum.busy.0 += used.busy.0;
            sum.late.0 += meter.late_ns.load(Ordering::Relaxed);
            let late_max = meter.late_max_ns.load(Ordering::Relaxed);
            sum.late_max = sum.late_max.max(Nanos(late_max));
            sum.is_realtime &= meter.is_realtime.load(Ordering::Relaxed);
        }
        sum
    }
}

impl Sink for Arrivals {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        let ticket = lock(&self.tickets).remove(&request.number);
        let Some(ticket) = ticket else {
            return self.sink.completed(request, outcome);
        };
        *lock(&ticket.arrived) = Some((request, outcome));
        ticket.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_device_that_no_profile_may_state_is_refused_and_the_others_have_its_costs() {
        assert!(Emulation::new(Nanos(0), 0, 1).is_err());
        assert!(Emulation::new(Nanos(u64::MAX), 80_000_000, 1).is_err());
        assert!(Emulation::new(Nanos(0), 80_000_000, 0).is_err());
        for servers in [1, 8] {
            let device = Emulation::new(Nanos(8_000_000), 80_000_000, servers).unwrap();
            assert_eq!(device.profile().servers(), servers);
            assert_eq!(device.device().servers(), servers);
        }
    }

    /// A device whose disk cannot be started at first.
    struct Lacking;

    static LACKS: AtomicBool = AtomicBool::new(true);

    impl Emulate for Lacking {
        fn profile(&self) -> Profile {
            Profile::default()
        }

        fn start(
            self: Box<Self>,
            sink: Arc<dyn Sink>,
            inner: Start<'_>,
        ) -> Result<Arc<dyn Emulated>, Error> {
            let emulation = Emulation::new(Nanos(1_000), 80_000_000, 1).unwrap();
            let mut throttle = Throttle::start(sink, emulation, inner)?;
            Arc::get_mut(&mut throttle).unwrap().start =
                |emulation, device, sink| match LACKS.load(Ordering::Relaxed) {
                    true => Err(io::ErrorKind::OutOfMemory.into()),
                    false => start_disk(emulation, device, sink),
                };
            Ok(throttle)
        }
    }

    #[test]
    fn a_request_whose_disk_cannot_be_started_ends_with_an_error_and_the_next_tries_anew() {
        let memory = forerun_core::Bytes(16 << 20);
        let settings = forerun_core::preset::default().settings(memory).unwrap();
        let mut config = forerun_io::Config::new(settings);
        config.lab.emulate = Some(Box::new(Lacking));
        let driver = forerun_io::Driver::new(config).unwrap();
        let reader = driver.open_generated(1, 0, 100_000).unwrap();
        let refused = reader.read_at(&mut [0; 4096], 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::AGAIN.raw_os_error()));
        assert_eq!(driver.device_use().unwrap().requests, 0);
        LACKS.store(false, Ordering::Relaxed);
        assert_eq!(reader.read_at(&mut [0; 4096], 0).unwrap(), 4096);
        assert!(driver.device_use().unwrap().requests > 0);
    }

    #[test]
    fn the_default_profile_is_that_of_a_disk_of_8_ms_and_80_mb_a_second() {
        let disk = Emulation::new(Nanos(8_000_000), 80_000_000, 1).unwrap();
        assert_eq!(disk.profile(), Profile::default().with_servers(1).unwrap());
    }
}
