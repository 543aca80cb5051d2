//! The io_uring backend: one ring, submissions under a lock, one thread for completions.
//!
//! Requests go to the kernel as they come, so it sees the whole queue and no thread blocks for
//! each of them. A request into one run of frames uses registered memory, one
//! into scattered frames a vector. What has no descriptor (generated content) is read by
//! [`super::pread`] threads, and so is what is [served](crate::served): the kernel carries out such
//! reads where they are submitted (seen with Linux 6.18), and the completion thread would wait for
//! the server when it asks whether the file changed.
//!
//! Where io_uring is not to be had (old kernel, seccomp, sysctl) starting fails, and
//! [`super::BackendChoice::Auto`] takes `pread` instead. No polling: on a machine with few cores
//! a kernel thread that polls takes the processor from those who have work.

mod registered;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use io_uring::{IoUring, opcode, squeue, types};

use self::registered::Registered;
use super::{Backend, Entry, Outcome, Request, Setup, Sink, pread};
use crate::source::{OpenFile, PIECES_MAX, Source};
use crate::sync::Mutex;

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "uring",
    summary: "io_uring with direct reads into registered memory, one completion thread",
    source: "Linux io_uring(7); fio's io_uring engine",
    start,
};

/// The completion that only wakes the completion thread.
const WAKE: u64 = u64::MAX;

/// The longest single read the kernel does (`MAX_RW_COUNT`, rounded down to a page).
const READ_MAX: usize = 0x7fff_f000;

/// A request the kernel has, and the vector it reads while it has it.
struct Flight {
    request: Box<Request>,
    descriptor: types::Fd,
    pieces: Vec<libc::iovec>,
    done: usize,
}

// SAFETY: the pieces point into the arena, which the request keeps alive and alone may fill.
unsafe impl Send for Flight {}

#[derive(Default)]
struct Flights {
    slots: Vec<Option<Box<Flight>>>,
    free: Vec<usize>,
    /// Requests beyond what the completion ring holds.
    waiting: VecDeque<Box<Flight>>,
    stopping: bool,
}

struct Shared {
    ring: IoUring,
    sink: Arc<dyn Sink>,
    registered: Registered,
    limit: usize,
    flights: Mutex<Flights>,
}

struct Uring {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    side: pread::Pool,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    let entries = setup.in_flight_max.clamp(8, 1024).next_power_of_two();
    let ring = IoUring::builder().dontfork().build(entries)?;
    let registered = Registered::new(&ring, setup.arena.clone());
    let limit = ring.params().cq_entries() as usize - 1;
    let flights = Mutex::default();
    let shared = Arc::new(Shared {
        ring,
        sink,
        registered,
        limit,
        flights,
    });
    let side = pread::Pool::new(shared.sink.clone(), pread::THREADS);
    let completing = shared.clone();
    let thread = std::thread::Builder::new()
        .name("forerun-uring".into())
        .spawn(move || completing.complete())?;
    Ok(Arc::new(Uring {
        shared,
        thread: Mutex::new(Some(thread)),
        side,
    }))
}

impl Flights {
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn insert(&mut self, flight: Box<Flight>) -> usize {
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(flight);
            return slot;
        }
        self.slots.push(Some(flight));
        self.slots.len() - 1
    }

    fn take(&mut self, slot: usize) -> Option<Box<Flight>> {
        let flight = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(flight)
    }
}

impl Flight {
    fn new(request: Box<Request>, descriptor: RawFd) -> Box<Self> {
        let (done, descriptor) = (request.skip, types::Fd(descriptor));
        Box::new(Self {
            request,
            descriptor,
            pieces: Vec::new(),
            done,
        })
    }

    fn file(&self) -> Option<&OpenFile> {
        match self.request.source.as_deref() {
            Some(Source::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The read of what is still missing.
    fn entry(&mut self, ring: &IoUring, registered: &Registered) -> squeue::Entry {
        let file = self.descriptor;
        let offset = self.request.offset + self.done as u64;
        self.request
            .target
            .pieces(self.done, PIECES_MAX, &mut self.pieces);
        if let [piece] = self.pieces[..] {
            let base = piece.iov_base.cast();
            let length = piece.iov_len.min(READ_MAX) as u32;
            return match registered.chunk(ring, base as usize, length as usize) {
                Some(chunk) => opcode::ReadFixed::new(file, base, length, chunk)
                    .offset(offset)
                    .build(),
                None => opcode::Read::new(file, base, length).offset(offset).build(),
            };
        }
        let count = self.pieces.len() as u32;
        opcode::Readv::new(file, self.pieces.as_ptr(), count)
            .offset(offset)
            .build()
    }

    /// Takes a completion's result; true if the request needs another read.
    fn advance(&mut self, result: i32) -> Result<bool, i32> {
        let end = self.request.target.bytes();
        let Some(file) = self.file() else {
            return Err(libc::EBADF);
        };
        match usize::try_from(result) {
            Ok(n) => {
                let done = self.done + n;
                let more = done < end && !file.is_end(n, done);
                self.done = done;
                Ok(more)
            }
            Err(_) => file
                .retry(io::Error::from_raw_os_error(-result))
                .map(|()| true)
                .map_err(|e| e.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

impl Shared {
    /// Hands a flight to the kernel. The caller holds the lock, which makes it the only one that
    /// writes the submission ring.
    fn push(&self, flights: &mut Flights, mut flight: Box<Flight>) {
        let entry = flight.entry(&self.ring, &self.registered);
        let slot = flights.insert(flight);
        self.push_entry(entry.user_data(slot as u64));
    }

    fn push_entry(&self, entry: squeue::Entry) {
        loop {
            // SAFETY: every use of the submission ring is under the `flights` lock.
            let mut queue = unsafe { self.ring.submission_shared() };
            // SAFETY: what the entry points to (arena, vector, descriptor) is kept by the flight,
            // which stays in its slot until the completion was taken.
            if unsafe { queue.push(&entry) }.is_ok() {
                break;
            }
            drop(queue);
            self.enter();
        }
        self.enter();
    }

    /// Makes the kernel take the submission ring. It only refuses for a moment (EINTR, EAGAIN,
    /// EBUSY while completions wait to be taken, which another thread does).
    fn enter(&self) {
        while let Err(e) = self.ring.submitter().submit() {
            match e.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                _ => {
                    tracing::error!("io_uring_enter: {e}");
                    return;
                }
            }
        }
    }

    /// Takes completions until told to stop and nothing is in flight.
    fn complete(&self) {
        let mut results: Vec<(u64, i32)> = Vec::new();
        loop {
            self.wait();
            // SAFETY: this thread is the only one that reads the completion ring.
            let ring = unsafe { self.ring.completion_shared() };
            results.extend(ring.map(|c| (c.user_data(), c.result())));
            for (slot, result) in results.drain(..) {
                if slot != WAKE {
                    self.finish(slot as usize, result);
                }
            }
            let flights = self.flights.lock();
            if flights.stopping && flights.in_flight() == 0 {
                return;
            }
        }
    }

    fn wait(&self) {
        // SAFETY: this thread is the only one that reads the completion ring.
        if unsafe { self.ring.completion_shared() }.is_empty() {
            // SAFETY: no signal mask is passed, so no memory is involved.
            let _ = unsafe {
                self.ring
                    .submitter()
                    .enter::<libc::sigset_t>(0, 1, ENTER_GETEVENTS, None)
            };
        }
    }

    fn finish(&self, slot: usize, result: i32) {
        let mut flights = self.flights.lock();
        let Some(mut flight) = flights.take(slot) else {
            return;
        };
        let outcome: Outcome = match flight.advance(result) {
            Ok(true) => return self.push(&mut flights, flight),
            Ok(false) => Ok(flight.done as u64),
            Err(error) => Err(error),
        };
        if let Some(next) = flights.waiting.pop_front() {
            self.push(&mut flights, next);
        }
        drop(flights);
        self.sink.completed(flight.request, outcome);
    }
}

/// `IORING_ENTER_GETEVENTS`.
const ENTER_GETEVENTS: u32 = 1;

impl Backend for Uring {
    fn submit(&self, request: Box<Request>) {
        match request.source.as_deref() {
            Some(Source::File(file)) if !file.is_served() => {
                let descriptor = file.as_raw_fd();
                let flight = Flight::new(request, descriptor);
                let mut flights = self.shared.flights.lock();
                if flights.in_flight() >= self.shared.limit {
                    flights.waiting.push_back(flight);
                } else {
                    self.shared.push(&mut flights, flight);
                }
            }
            Some(_) => self.side.submit(request),
            None => self.shared.sink.completed(request, Err(libc::EBADF)),
        }
    }

    fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        {
            let mut flights = self.shared.flights.lock();
            flights.stopping = true;
            self.shared
                .push_entry(opcode::Nop::new().build().user_data(WAKE));
        }
        // A panic in the thread was reported by itself; there is nothing to add.
        let _ = thread.join();
        self.side.stop();
    }

    fn may_hold_memory(&self, may: bool) -> bool {
        // Under this lock reads are described and handed to the kernel in one go: none refers to
        // registered memory and is still on its way.
        let _flights = self.shared.flights.lock();
        self.shared.registered.allow(&self.shared.ring, may)
    }
}

impl Drop for Uring {
    /// A read that never ends keeps its thread, and the ring with it.
    fn drop(&mut self) {
        if self.shared.flights.lock().in_flight() == 0 {
            self.stop();
        }
    }
}
