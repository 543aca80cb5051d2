//! The io_uring backend: one ring, and one thread that submits and takes completions.
//!
//! Requests go to the kernel as they come, so it sees the whole queue and no thread blocks for
//! each of them. Memory is not registered with the ring: that saved nothing measurable per read, is
//! refused above 8 MiB to users without privileges, and made 16 MiB resident before the first byte. A source without a descriptor (generated content) is read by
//! [`super::pread`] threads, and so is one that is [served](crate::served): the kernel carries out such
//! reads where they are submitted (seen with Linux 6.18).
//!
//! One thread, because the kernel posts a completion on the thread that submitted the read, and not
//! while that sleeps without being interruptible: on a page that waits for this very read, on a server
//! that does not answer. Threads of users and of a mount may do both; this one does neither. It is woken
//! by an eventfd that the ring reads, unless it is awake anyway, and submits requests that came meanwhile in one go.
//!
//! Where io_uring is not to be had (old kernel, seccomp, sysctl) starting fails, and
//! [`super::BackendChoice::Auto`] takes `pread` instead. No polling: on a machine with few cores
//! a kernel thread that polls takes the processor from programs that have work.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Backend, Entry, Outcome, Request, Setup, Sink, pread};
use crate::foreign::guarded;
use crate::source::{OpenFile, PIECES_MAX};
use crate::sync::{Mutex, MutexGuard, give_way};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "uring",
    summary: "io_uring with direct reads, one thread that submits and completes",
    source: "Linux io_uring(7); fio's io_uring engine",
    start,
};

/// The completion of the eventfd's read: there are requests to submit, or it is over.
const WAKE: u64 = u64::MAX;

/// The longest single read the kernel does (`MAX_RW_COUNT`, rounded down to a page).
const READ_MAX: usize = 0x7fff_f000;

/// Submitting a request takes the kernel some 50 us a MiB, and ten times that where the memory was
/// never touched; a completion takes as long. After so many bytes of the one comes the other. Readers wait for
/// completions: the last of twelve requests of 1 MiB was submitted 6 ms after the first had ended. A device waits for
/// submissions: one that tells of eight completions at once has nothing to do until the first of them is answered.
const BATCH_BYTES: usize = 1 << 20;

/// How often the kernel may refuse entries one time after the other: a tenth of a second.
const LOOKS_MAX: u32 = 1024;

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
    /// Requests to be submitted, as far as the completion ring holds them.
    waiting: VecDeque<Box<Flight>>,
    /// The most in flight at once.
    limit: usize,
    /// The thread waits for completions and must be woken.
    asleep: bool,
    stopping: bool,
}

struct Ring {
    ring: IoUring,
    sink: Arc<dyn Sink>,
    flights: Mutex<Flights>,
    /// Wakes the thread.
    event: File,
    /// The count that the ring reads from it.
    count: Box<AtomicU64>,
}

struct Uring {
    ring_state: Arc<Ring>,
    thread: Mutex<Option<JoinHandle<()>>>,
    side: pread::Pool,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    let entries = setup.in_flight_max.clamp(8, 1024).next_power_of_two();
    let ring = IoUring::builder().dontfork().build(entries)?;
    // One for the eventfd.
    let limit = ring.params().cq_entries() as usize - 2;
    let flights = Mutex::new(Flights {
        limit,
        ..Flights::default()
    });
    let ring_state = Arc::new(Ring {
        ring,
        sink,
        flights,
        event: eventfd()?,
        count: Box::default(),
    });
    let side = pread::Pool::new(ring_state.sink.clone(), pread::THREADS);
    let completing = ring_state.clone();
    let thread = std::thread::Builder::new()
        .name("forerun-uring".into())
        .spawn(move || completing.run())?;
    Ok(Arc::new(Uring {
        ring_state,
        thread: Mutex::new(Some(thread)),
        side,
    }))
}

fn eventfd() -> io::Result<File> {
    // SAFETY: a plain call; no memory is involved.
    let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours alone.
    Ok(unsafe { File::from_raw_fd(event) })
}

impl Flights {
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether a request can be submitted: one waits, and its completion has room.
    fn has_next(&self) -> bool {
        self.in_flight() < self.limit && !self.waiting.is_empty()
    }

    fn next(&mut self) -> Option<Box<Flight>> {
        match self.has_next() {
            true => self.waiting.pop_front(),
            false => None,
        }
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
        self.request.source.as_ref()?.file()
    }

    /// The read of the missing rest.
    fn entry(&mut self) -> squeue::Entry {
        let file = self.descriptor;
        let offset = self.request.offset + self.done as u64;
        self.request
            .target
            .pieces(self.done, PIECES_MAX, &mut self.pieces);
        if let [piece] = self.pieces[..] {
            let base = piece.iov_base.cast();
            let length = piece.iov_len.min(READ_MAX) as u32;
            return opcode::Read::new(file, base, length).offset(offset).build();
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

impl Ring {
    /// A request for the thread, which is woken if it sleeps.
    fn put(&self, flight: Box<Flight>) {
        let mut flights = self.flights.lock();
        flights.waiting.push_back(flight);
        self.wake(flights);
    }

    fn wake(&self, mut flights: MutexGuard<'_, Flights>) {
        if std::mem::take(&mut flights.asleep) {
            drop(flights);
            // The count is far from its end, so this neither waits nor fails.
            let _ = (&self.event).write(&1_u64.to_ne_bytes());
        }
    }

    /// Submits requests that wait, up to [`BATCH_BYTES`] and as far as there is room for completions;
    /// whether there was any. Only the thread calls this: the submission ring is its own.
    fn submit_some(&self) -> bool {
        let (mut flights, mut bytes) = (self.flights.lock(), 0);
        while bytes < BATCH_BYTES
            && let Some(mut flight) = flights.next()
        {
            bytes += flight.request.target.bytes();
            let entry = flight.entry();
            let slot = flights.insert(flight);
            self.push(entry.user_data(slot as u64));
        }
        // Others hand in requests meanwhile.
        drop(flights);
        if bytes > 0 {
            self.enter();
        }
        bytes > 0
    }

    fn push(&self, entry: squeue::Entry) {
        loop {
            // SAFETY: this thread is the only one that uses the submission ring.
            let mut queue = unsafe { self.ring.submission_shared() };
            // SAFETY: the memory of the entry (arena, vector, descriptor, count) is kept by the flight,
            // which stays in its slot until the completion was taken, or by the ring's owner.
            if unsafe { queue.push(&entry) }.is_ok() {
                return;
            }
            drop(queue);
            self.enter();
        }
    }

    /// Has the ring read the eventfd.
    fn listen(&self) {
        let (event, count) = (
            types::Fd(self.event.as_raw_fd()),
            self.count.as_ptr().cast(),
        );
        let read = opcode::Read::new(event, count, 8).build();
        self.push(read.user_data(WAKE));
        self.enter();
    }

    /// Makes the kernel take the submission ring. It only refuses for a moment (EINTR, or EAGAIN for want of
    /// memory); entries that it has not taken by then go with those after them, or with the next wait.
    fn enter(&self) {
        for looks in 0..LOOKS_MAX {
            let Err(e) = self.ring.submitter().submit() else {
                return;
            };
            match e.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => give_way(looks),
                // Completions are to be taken first, by this thread, after this.
                Some(libc::EBUSY) => return,
                _ => {
                    tracing::error!("io_uring_enter: {e}");
                    return;
                }
            }
        }
    }

    /// The life of the thread: until told to stop and nothing is in flight.
    fn run(&self) {
        self.listen();
        loop {
            let nothing = !self.finish_some();
            let submitted = self.submit_some();
            let mut flights = self.flights.lock();
            if flights.stopping && flights.in_flight() == 0 && flights.waiting.is_empty() {
                return;
            }
            flights.asleep = nothing && !submitted && !flights.has_next();
            let asleep = flights.asleep;
            drop(flights);
            if asleep {
                self.wait();
            }
        }
    }

    /// Waits for a completion; submits entries that the kernel did not take before.
    fn wait(&self) {
        // SAFETY: no signal mask is passed, so no memory is involved; this thread is the only one that
        // uses the rings.
        let waited = unsafe {
            let left = self.ring.submission_shared().len() as u32;
            self.ring
                .submitter()
                .enter::<libc::sigset_t>(left, 1, ENTER_GETEVENTS, None)
        };
        if waited.is_err() {
            give_way(LOOKS_MAX);
        }
    }

    /// Takes completions, up to [`BATCH_BYTES`]; whether there was any.
    fn finish_some(&self) -> bool {
        let (mut is_any, mut bytes) = (false, 0);
        while bytes < BATCH_BYTES
            && let Some((slot, result)) = self.completion()
        {
            is_any = true;
            match slot {
                WAKE => self.listen(),
                slot => bytes += self.finish(slot as usize, result),
            }
        }
        is_any
    }

    fn completion(&self) -> Option<(u64, i32)> {
        // SAFETY: this thread is the only one that reads the completion ring.
        let mut ring = unsafe { self.ring.completion_shared() };
        ring.next().map(|c| (c.user_data(), c.result()))
    }

    /// One completion; how many bytes it brought.
    fn finish(&self, slot: usize, result: i32) -> usize {
        let mut flights = self.flights.lock();
        let Some(mut flight) = flights.take(slot) else {
            return 0;
        };
        let before = flight.done;
        let outcome: Outcome = match flight.advance(result) {
            Ok(true) => {
                flights.waiting.push_front(flight);
                return 0;
            }
            Ok(false) => Ok(flight.done as u64),
            Err(error) => Err(error),
        };
        drop(flights);
        let bytes = flight.done - before;
        self.sink.completed(flight.request, outcome);
        bytes
    }
}

/// `IORING_ENTER_GETEVENTS`.
const ENTER_GETEVENTS: u32 = 1;

impl Backend for Uring {
    fn submit(&self, request: Box<Request>) {
        let Some(source) = request.source.as_deref() else {
            return self.ring_state.sink.completed(request, Err(libc::EBADF));
        };
        // Those of one disk would overtake each other on their way: btrfs takes a read from the thread that
        // submits it to others (seen with Linux 6.18).
        let descriptor = guarded(|| {
            let is_alone = request.member.is_none() && !source.is_served();
            source.file().filter(|_| is_alone).map(AsRawFd::as_raw_fd)
        });
        match descriptor {
            Some(Some(descriptor)) => self.ring_state.put(Flight::new(request, descriptor)),
            Some(None) => self.side.submit(request),
            None => self.ring_state.sink.completed(request, Err(libc::EIO)),
        }
    }

    fn look_for_hung(&self) {
        self.side.look_for_hung();
    }

    fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        let mut flights = self.ring_state.flights.lock();
        flights.stopping = true;
        self.ring_state.wake(flights);
        // A panic in the thread was reported by itself; there is nothing to add.
        let _ = thread.join();
        self.side.stop();
    }
}

impl Drop for Uring {
    /// A read that never ends keeps its thread, and the ring with it.
    fn drop(&mut self) {
        if self.ring_state.flights.lock().in_flight() == 0 {
            self.stop();
        }
    }
}
