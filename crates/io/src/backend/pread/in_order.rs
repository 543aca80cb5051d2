//! Reads that reach a disk in the order in which they were submitted, several at a time.
//!
//! The strips of one disk of an array follow each other on the disk and not in the file, so no single
//! read has several of them. Threads that read one each overtake each other on their way, and a disk that gets a
//! strip too early pays two switches; io_uring hands reads that btrfs would wait for to threads as well (seen with Linux
//! 6.18). Linux's older interface, `io_submit(2)`, takes a list of reads on the caller's thread, in its order, and
//! the block layer joins those that follow each other:
//!
//! ```text
//! lane of member 2: strips 2, 6, 10, 14 -> one io_submit -> one request of 256 KiB at the disk
//! ```
//!
//! A read that continues the last one submitted waits while the disk has two such lists: it has enough to do, and the
//! list grows meanwhile.
//!
//! The lane's thread submits; another takes completions, until an event file tells it to end. It is never ended by
//! taking the context away: the number of a context is an address, which the next one set up may have, and the thread
//! would take the completions of that. A read that the file system carries out before
//! `io_submit` returns costs the overlap and nothing else. A read that ends early, is refused or is no direct one
//! is made anew where that is found.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use forerun_core::Bytes;

use super::lane::Reads;
use crate::backend::{Request, Sink, read_here};
use crate::source::{OpenFile, PIECES_MAX, Source};
use crate::sync::{Condvar, Mutex};

/// Reads the kernel has at once: as many as Linux queues at a disk. A thousand lanes have as many as Linux allows all
/// programs together (`fs.aio-max-nr`).
const READS_MAX: usize = 64;

/// Ended reads that are taken in one call.
const EVENTS: usize = 32;

/// `IOCB_CMD_POLL`.
const POLL: u16 = 5;
/// `IOCB_CMD_PREADV`.
const READ: u16 = 7;

/// The number of the completion that tells the thread to end: no flight is at this address.
const END: u64 = 0;

/// `struct iocb` of the kernel, for reads and polls: all else is 0.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
    data: u64,
    key_and_flags: u64,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    /// Of a poll: the conditions.
    pieces: u64,
    count: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

/// `struct io_event` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    result_2: i64,
}

/// Lists that a disk has: one that it carries out, and one for afterwards.
const LISTS: usize = 2;

/// Reads in flight.
#[derive(Default)]
struct InFlight {
    /// Reads of each list.
    lists: BTreeMap<u64, usize>,
    /// Where the last one ends on the device.
    end: Option<Bytes>,
    /// The number of the next list.
    next: u64,
}

impl InFlight {
    fn reads(&self) -> usize {
        self.lists.values().sum()
    }

    fn ended(&mut self, list: u64, reads: usize) {
        if let Some(left) = self.lists.get_mut(&list) {
            *left = left.saturating_sub(reads);
            if *left == 0 {
                self.lists.remove(&list);
            }
        }
    }
}

/// A read that the kernel has, and the memory it points to.
struct Flight {
    control: ControlBlock,
    _pieces: Vec<libc::iovec>,
    request: Box<Request>,
    list: u64,
}

struct AioContext {
    /// `aio_context_t`.
    context: libc::c_ulong,
    sink: Arc<dyn Sink>,
    in_flight: Mutex<InFlight>,
    /// A read has ended.
    ended: Condvar,
    /// Readable as soon as the thread is to end.
    end: File,
}

/// See the [module](self).
pub(super) struct InOrder {
    shared: Arc<AioContext>,
    thread: Option<JoinHandle<()>>,
}

impl InOrder {
    /// Sets the interface up, for one lane.
    ///
    /// # Errors
    /// The system has none, forbids it, or has no room for as many reads.
    pub(super) fn start(sink: Arc<dyn Sink>) -> io::Result<Self> {
        let end = event_file()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the number of the context into a variable that is there for the call.
        let set_up = unsafe { libc::syscall(libc::SYS_io_setup, READS_MAX + 1, &raw mut context) };
        if set_up < 0 {
            return Err(io::Error::last_os_error());
        }
        let shared = Arc::new(AioContext {
            context,
            sink,
            in_flight: Mutex::default(),
            ended: Condvar::default(),
            end,
        });
        shared.poll_end()?;
        let taking = shared.clone();
        let thread = std::thread::Builder::new().name("forerun-ended".into());
        let thread = Some(thread.spawn(move || taking.take_ended())?);
        Ok(Self { shared, thread })
    }
}

impl Reads for InOrder {
    fn most(&self) -> usize {
        READS_MAX
    }

    fn make_way(&self, position: Bytes) {
        let mut in_flight = self.shared.in_flight.lock();
        while in_flight.end == Some(position) && in_flight.lists.len() >= LISTS {
            in_flight = self.shared.ended.wait(in_flight);
        }
    }

    fn read(&self, requests: VecDeque<Box<Request>>) {
        let list = self.shared.new_list(requests.back().map(|last| &**last));
        let mut flights = Vec::with_capacity(requests.len());
        for request in requests {
            match Flight::new(request, list) {
                Ok(flight) => flights.push(Box::into_raw(flight)),
                Err(request) => self.shared.read_here(request),
            }
        }
        let mut rest = &flights[..];
        while !rest.is_empty() {
            let room = self.shared.wait_for_room().min(rest.len());
            match self.shared.hand_in(list, &rest[..room]) {
                0 => {
                    // The kernel does not take the first of them, which says nothing of the others.
                    // SAFETY: it came from `into_raw` above, and the kernel refused it.
                    let refused = unsafe { Box::from_raw(rest[0]) };
                    self.shared.read_here(refused.request);
                    rest = &rest[1..];
                }
                taken => rest = &rest[taken..],
            }
        }
    }

    fn settle(&self) {
        let mut in_flight = self.shared.in_flight.lock();
        while in_flight.reads() > 0 {
            in_flight = self.shared.ended.wait(in_flight);
        }
    }
}

impl Drop for InOrder {
    /// A read that never ends keeps its thread, and the context with it.
    fn drop(&mut self) {
        if self.shared.in_flight.lock().reads() > 0 {
            return;
        }
        // Eight bytes into an event file that counts to 2^64 are always taken.
        let _ = (&self.shared.end).write(&1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported by itself; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Flight {
    /// A direct read of a file; the request back if it is none, which would be carried out at once.
    fn new(request: Box<Request>, list: u64) -> Result<Box<Self>, Box<Request>> {
        let file = match file(&request) {
            Some(file) if file.is_direct() && !file.is_served() => file.as_raw_fd(),
            _ => return Err(request),
        };
        let mut pieces = Vec::new();
        request.target.pieces(request.skip, PIECES_MAX, &mut pieces);
        let control = ControlBlock {
            opcode: READ,
            descriptor: file as u32,
            pieces: pieces.as_ptr() as u64,
            count: pieces.len() as u64,
            offset: (request.offset + request.skip as u64) as i64,
            ..ControlBlock::default()
        };
        let mut flight = Box::new(Self {
            control,
            _pieces: pieces,
            request,
            list,
        });
        flight.control.data = &raw const *flight as u64;
        Ok(flight)
    }
}

fn event_file() -> io::Result<File> {
    // SAFETY: a plain call.
    let file = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, open and owned by nothing else.
    Ok(unsafe { File::from_raw_fd(file) })
}

fn file(request: &Request) -> Option<&OpenFile> {
    request.source.as_ref()?.file()
}

impl AioContext {
    /// Asks for a completion, [`END`], once the event file is readable.
    fn poll_end(&self) -> io::Result<()> {
        let mut control = ControlBlock {
            data: END,
            opcode: POLL,
            descriptor: self.end.as_raw_fd() as u32,
            pieces: libc::POLLIN as u64,
            ..ControlBlock::default()
        };
        let list = [&raw mut control];
        // SAFETY: the list and its entry are there for the call, which copies them; a poll has no memory.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1, list.as_ptr()) };
        match taken {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The number of a list that ends with this request.
    fn new_list(&self, last: Option<&Request>) -> u64 {
        let mut in_flight = self.in_flight.lock();
        in_flight.end = last.map(|last| Bytes(last.position.0.saturating_add(last.bytes)));
        in_flight.next += 1;
        in_flight.next
    }

    /// Waits until the kernel may have more; how many more.
    fn wait_for_room(&self) -> usize {
        let mut in_flight = self.in_flight.lock();
        while in_flight.reads() >= READS_MAX {
            in_flight = self.ended.wait(in_flight);
        }
        READS_MAX - in_flight.reads()
    }

    /// How many of these the kernel took, from the first on. It says that of less than all only if it
    /// refuses the next.
    fn hand_in(&self, list: u64, flights: &[*mut Flight]) -> usize {
        // Counted before, as they may have ended when the call returns.
        let mut in_flight = self.in_flight.lock();
        *in_flight.lists.entry(list).or_default() += flights.len();
        drop(in_flight);
        let controls: Vec<*mut ControlBlock> = flights
            .iter()
            // SAFETY: each flight is alive and ours alone until the kernel has taken it.
            .map(|flight| unsafe { &raw mut (**flight).control })
            .collect();
        // SAFETY: the list is there for the call. The memory of each entry is kept by its flight, which lives
        // until its completion was taken: the vector on its heap, the arena and the descriptor by its request.
        let taken = unsafe {
            let count = controls.len() as libc::c_long;
            libc::syscall(libc::SYS_io_submit, self.context, count, controls.as_ptr())
        };
        let taken = usize::try_from(taken).unwrap_or(0);
        self.in_flight.lock().ended(list, flights.len() - taken);
        taken
    }

    /// The life of the thread: until the event file is readable.
    fn take_ended(&self) {
        let mut events = [Event::default(); EVENTS];
        loop {
            // SAFETY: the events are there for the call, as many as said; no timeout is passed.
            let taken = unsafe {
                let none = std::ptr::null::<libc::timespec>();
                let (least, most) = (1 as libc::c_long, EVENTS as libc::c_long);
                let into = events.as_mut_ptr();
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    least,
                    most,
                    into,
                    none,
                )
            };
            match usize::try_from(taken) {
                Ok(taken) => {
                    let mut is_over = false;
                    for event in &events[..taken] {
                        match event.data {
                            END => is_over = true,
                            _ => self.completed(event),
                        }
                    }
                    if is_over {
                        return;
                    }
                }
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn completed(&self, event: &Event) {
        // SAFETY: the number is the address of a flight that the kernel had, from `into_raw`; each is
        // reported once.
        let flight = unsafe { Box::from_raw(event.data as *mut Flight) };
        let Flight {
            mut request, list, ..
        } = *flight;
        match advance(&mut request, event.result) {
            Ok(Some(bytes)) => self.sink.completed(request, Ok(bytes)),
            Ok(None) => self.read_here(request),
            Err(error) => self.sink.completed(request, Err(error)),
        }
        self.in_flight.lock().ended(list, 1);
        self.ended.notify_all();
    }

    fn read_here(&self, mut request: Box<Request>) {
        let outcome = read_here(&mut request);
        self.sink.completed(request, outcome);
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // SAFETY: a plain call; nothing is in flight, and no thread is left that uses the context.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// Takes a completion's result: the bytes in the target, or none if another read is needed.
fn advance(request: &mut Request, result: i64) -> Result<Option<u64>, i32> {
    let Some(file) = file(request) else {
        return Err(libc::EBADF);
    };
    match usize::try_from(result) {
        Ok(read) => {
            let done = request.skip + read;
            let is_done = done >= request.target.bytes() || file.is_end(read, done);
            Ok(is_done.then_some(done as u64))
        }
        Err(_) => file
            .retry(io::Error::from_raw_os_error(
                i32::try_from(-result).unwrap_or(libc::EIO),
            ))
            .map(|()| None)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)),
    }
}
