//! The pread backend: for each device a [lane] of threads that block in `preadv(2)`.
//!
//! Works on every kernel and file system, for files that changed to buffered reading, and for
//! generated content; [`super::uring`] keeps one for reads that its ring must not wait for. Disks of an array are read
//! [in order](in_order) where the system has a way to do so.
//!
//! A source that waits without a thread [takes](crate::source::Source::begin) its reads. Threads are the device's own: a file system whose server is silent holds sixteen of them, and
//! another has sixteen others. Those that hang are replaced, so that other files of the device are read.

mod in_order;
mod lane;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::{Backend, Entry, Member, Request, Setup, Sink};
use crate::foreign::guarded;
use crate::source::Pending;
use crate::sync::{AtomicBool, Mutex, Ordering};
use in_order::InOrder;
use lane::{Lane, OneByOne, Reads};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "pread",
    summary: "for each device up to 16 threads in preadv(2); works everywhere",
    source: "POSIX; fio's psync engine",
    start,
};

/// Enough to keep a queue of requests at any disk, few enough to be cheap when idle.
pub(super) const THREADS: u32 = 16;

/// Whose lane it is: a file system's, or that of one disk below it.
type Key = (Option<u64>, Option<Member>);

/// Threads for a disk of an array that read one by one: while one waits for its read, the other's is at the
/// disk. More would overtake each other.
const MEMBER_THREADS: usize = 2;

/// See the [module](self).
pub(super) struct Pool {
    sink: Arc<dyn Sink>,
    threads_max: usize,
    /// Disks of arrays can be read [in order](InOrder), as far as is known.
    in_order: Arc<AtomicBool>,
    /// By device; none for generated content.
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    let threads = THREADS.min(setup.in_flight_max);
    Ok(Arc::new(Pool::new(sink, threads)))
}

impl Pool {
    pub(super) fn new(sink: Arc<dyn Sink>, threads: u32) -> Self {
        Self {
            sink,
            threads_max: threads.max(1) as usize,
            in_order: Arc::new(AtomicBool::new(true)),
            lanes: Mutex::default(),
        }
    }

    /// Starts a thread that its lane has counted.
    fn spawn(&self, lane: Arc<Lane>, member: Option<Member>) {
        let work = Work {
            lane: lane.clone(),
            sink: self.sink.clone(),
            member,
            in_order: self.in_order.clone(),
        };
        if work.spawn().is_err() {
            for request in lane.lacks_a_thread() {
                self.sink.completed(request, Err(libc::EAGAIN));
            }
        }
    }

    /// Lets the source carry a read out itself, if it can. In a panic it drops the read, which ends with an error.
    fn begin(&self, request: Box<Request>) -> Option<Box<Request>> {
        let Some(source) = request.source.clone() else {
            return Some(request);
        };
        let pending = Pending::new(request, self.sink.clone());
        let given_back = guarded(|| source.begin(pending)).flatten();
        given_back.and_then(Pending::into_request)
    }

    /// The lanes as of now, each with its disk if it is one's.
    fn lanes(&self) -> Vec<(Option<Member>, Arc<Lane>)> {
        let lanes = self.lanes.lock();
        let lanes = lanes.iter().map(|(key, lane)| (key.1, lane.clone()));
        lanes.collect()
    }

    /// How many threads a lane may have.
    fn threads_max(&self, member: Option<Member>) -> usize {
        match (member, self.in_order.load(Ordering::Relaxed)) {
            (None, _) => self.threads_max,
            (Some(_), true) => 1,
            (Some(_), false) => self.threads_max.min(MEMBER_THREADS),
        }
    }
}

/// The context of a lane's thread.
#[derive(Clone)]
struct Work {
    lane: Arc<Lane>,
    sink: Arc<dyn Sink>,
    member: Option<Member>,
    in_order: Arc<AtomicBool>,
}

impl Work {
    /// One thread more, whose number modulo the number of copies is that of the copy. Numbers go up by one, so a
    /// thread with a wrong one starts the next and ends.
    fn spawn(self) -> io::Result<()> {
        let builder = std::thread::Builder::new().name("forerun-pread".into());
        let copy = self.member.map_or((0, 1), |member| member.copy);
        let work = move || {
            // SAFETY: a plain call; no memory is involved.
            let number = unsafe { libc::gettid() } as u32;
            let is_right = number % copy.1.max(1) == copy.0;
            // Where no thread can be started, this one reads, from the other copy.
            if is_right || self.clone().spawn().is_err() {
                self.lane.work(&*self.reads());
            }
        };
        builder.spawn(work).map(drop)
    }

    fn reads(&self) -> Box<dyn Reads> {
        let one_by_one = || Box::new(OneByOne(self.sink.clone()));
        if self.member.is_none() || !self.in_order.load(Ordering::Relaxed) {
            return one_by_one();
        }
        match InOrder::start(self.sink.clone()) {
            Ok(in_order) => Box::new(in_order),
            Err(error) => {
                tracing::info!("io_setup: {error}; disks of arrays are read by threads");
                self.in_order.store(false, Ordering::Relaxed);
                one_by_one()
            }
        }
    }
}

impl Backend for Pool {
    fn look_for_hung(&self) {
        // Not under the lock: where no thread can be started, requests end here, and others are submitted.
        for (member, lane) in self.lanes() {
            for _ in 0..lane.lacks() {
                self.spawn(lane.clone(), member);
            }
        }
    }

    fn submit(&self, request: Box<Request>) {
        let Some(request) = self.begin(request) else {
            return;
        };
        let source = request.source.as_deref();
        let told = guarded(|| source.map(|source| (source.device(), source.requests_max())));
        let Some(told) = told else {
            return self.sink.completed(request, Err(libc::EIO));
        };
        let (device, own) = told.unwrap_or_default();
        let member = request.member;
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry((device, member)).or_default().clone();
        drop(lanes);
        let threads_max = self.threads_max(member).max(own.unwrap_or(0) as usize);
        if lane.put(request, threads_max) {
            self.spawn(lane, member);
        }
    }

    fn stop(&self) {
        for (_, lane) in self.lanes() {
            lane.stop();
            lane.wait_for_the_end();
        }
    }
}

impl Drop for Pool {
    /// Threads end by themselves: one may be in a read that never ends.
    fn drop(&mut self) {
        self.lanes.lock().values().for_each(|lane| lane.stop());
    }
}
