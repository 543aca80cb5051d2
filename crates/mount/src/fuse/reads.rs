//! Reads of a mount: their threads, their order, and their memory.
//!
//! Called by the adapter on the threads that take requests, and by the engine's callbacks when
//! blocks arrive. A read that must wait for a device is deferred in the engine as a few words: it
//! gets a thread and a buffer only once its bytes are in memory.
//!
//! ```text
//! request --> all there? --yes--> here: buffer, copied, answered
//!                  \ no
//!                   v
//!             engine: fetched ...... there --> worker: buffer, copied, answered
//!                  ^                              \ gone again
//!                  +---- some more times <--------+
//!                                                 \--> lane of the device: buffer, by block
//! ```
//!
//! The last way is for memory too small to hold a read at once, and for errors of files that may change meanwhile: one
//! such read at a time for each device. An object stays as it is, so an error of it is answered. No deadlock: a buffer is
//! held only while bytes are copied, and a read that takes each block as it arrives completes with a single frame.
//!
//! A device that does not answer holds up nobody but its own reads: what waits is counted by device
//! ([admission]), and whatever asks the source of a [served](forerun_io::served) file is done in its
//! [lane](crate::lanes).

mod admission;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use forerun_io::Reader;
use forerun_io::footprint::Pages;
use forerun_surface::daemon::caught;
use fuser::Errno;

use self::admission::Admission;
use super::room::Room;
use super::wire::errno;
use crate::fs::beneath;
use crate::fs::ends::{Answer, Verdict};
use crate::fs::nodes::Node;
use crate::lanes::{LaneOf, Lanes};
use crate::lock;
use crate::mounted::Mounted;
use crate::open_file::OpenFile;
use crate::read_times::TimedReply;

/// Threads that answer completed reads, most. They copy and never wait: more than copy at once on
/// most machines. One is always there; another begins when all of them are busy.
pub const WORKERS: usize = 8;

/// The stack of a worker; 24 KiB of it are ever touched.
const STACK_BYTES: usize = 256 << 10;

/// How long a worker waits for something to do before it ends: longer than pauses between reads of a
/// program, so that none starts a thread for each.
const IDLE: Duration = Duration::from_secs(10);

/// How often a read whose blocks were gone again waits for them anew. Once or twice happens where
/// memory is short; a read that fails eight times does not fit.
const ROUNDS_MAX: u32 = 8;

/// Tells how many bytes may be awaited at once now.
pub type AwaitedMax = Box<dyn Fn() -> u64 + Send + Sync>;

/// Has the kernel drop pages of a file that came with an error.
pub type Drops = Box<dyn Fn(Node) + Send + Sync>;

/// Work on a buffer; without one the system has no memory left.
type Work = Box<dyn FnOnce(Option<&mut [u8]>) -> Next + Send>;

/// The step after the buffer is given back.
type Next = Option<Box<dyn FnOnce() + Send>>;

/// Something to be done once there is room.
struct Job {
    bytes: usize,
    work: Work,
}

struct State {
    room: Room,
    ready: VecDeque<Job>,
    admission: Admission<Read>,
    /// Threads that wait for a buffer.
    wanting: usize,
    workers: usize,
    /// Workers that wait for something to do, or for room to do it in.
    idle: usize,
    ended: bool,
}

struct Shared {
    /// Limit of bytes awaited at once, which can change.
    awaited_max: AwaitedMax,
    lanes: Arc<Lanes>,
    drops: OnceLock<Drops>,
    state: Mutex<State>,
    /// Something a worker could do.
    work: Condvar,
    /// Room came back.
    room: Condvar,
}

/// See the [module](self). The workers end when it is dropped.
pub struct Reads {
    shared: Arc<Shared>,
}

/// A read of the kernel's.
pub struct Read {
    /// Of this open file, which stays open as long.
    pub file: Arc<OpenFile>,
    /// From here on.
    pub offset: u64,
    /// So many bytes.
    pub bytes: usize,
    /// For this thread.
    pub thread: u32,
    /// Past the kernel's page cache.
    pub direct: bool,
    /// The file was looked at, because it ended before the kernel's size.
    pub looked: bool,
    /// Destination of the answer.
    pub reply: TimedReply,
}

/// How far a read came.
enum Copied {
    /// It was answered.
    Answered,
    /// Bytes of it are not in memory.
    Gone(Read),
    /// It ends where the kernel may not take the file to end.
    Doubted(Read),
}

impl Reads {
    /// Starts a worker. `awaited_max` tells how many bytes may be awaited at once.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(room: usize, lanes: Arc<Lanes>, awaited_max: AwaitedMax) -> io::Result<Self> {
        let state = State {
            room: Room::new(room),
            ready: VecDeque::new(),
            admission: Admission::default(),
            wanting: 0,
            workers: 1,
            idle: 0,
            ended: false,
        };
        let shared = Arc::new(Shared {
            awaited_max,
            lanes,
            drops: OnceLock::new(),
            state: state.into(),
            work: Condvar::new(),
            room: Condvar::new(),
        });
        shared.begin_worker()?;
        Ok(Self { shared })
    }

    /// Starts the reads of a mount.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn of(mounted: Arc<dyn Mounted>, room: usize, lanes: Arc<Lanes>) -> io::Result<Self> {
        Self::start(
            room,
            lanes,
            Box::new(move || mounted.engine().awaited_max()),
        )
    }

    /// Pages of reads whose end is in doubt are dropped so.
    pub fn drop_by(&self, drops: Drops) {
        let _ = self.shared.drops.set(drops);
    }

    /// Does a read, here or elsewhere, now or later. Of a served file it is called in its lane,
    /// because it looks whether the file changed.
    pub fn begin(&self, read: Read) {
        let Some(reader) = read.file.reader() else {
            return read.reply.error(Errno::EBADF);
        };
        if let Err(error) = reader.look_if_due() {
            return read.reply.error(errno(beneath::errno(&error)));
        }
        if read.is_resident() {
            self.shared.here(read);
        } else {
            self.shared.enter(read);
        }
    }

    /// Copies the beginning of a file, as it is in memory, and does something with it; none if there is
    /// no room for that now, or it is not in memory.
    pub fn now<T>(
        &self,
        file: &OpenFile,
        bytes: usize,
        give: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let mut buffer = lock(&self.shared.state).room.take(bytes).ok()??;
        let copied = file.read_resident(&mut buffer[..bytes], 0, true);
        let given = copied.map(|count| give(&buffer[..count]));
        self.shared.give_back(buffer);
        given
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.work.notify_all();
    }
}

impl Read {
    fn is_resident(&self) -> bool {
        let reader = self.file.reader();
        reader.is_some_and(|reader| reader.is_resident(self.offset, self.bytes))
    }

    fn device(&self) -> u64 {
        let reader = self.file.reader();
        reader.and_then(Reader::device).unwrap_or_default()
    }

    /// Whether another attempt would end with this error, too.
    fn is_refused(&self, error: &io::Error) -> bool {
        let is_unchanging = |reader: &Reader| !reader.may_change();
        let only_a_read_can_tell = beneath::errno(error) == rustix::io::Errno::AGAIN;
        self.file.reader().is_some_and(is_unchanging) && !only_a_read_can_tell
    }

    /// Goes this way with the read. A panic ends the read alone: its reply goes with it, as an I/O error.
    fn caught(self, way: impl FnOnce(Self) -> Copied) -> Copied {
        let mut copied = Copied::Answered;
        caught(|| copied = way(self));
        copied
    }

    /// Copies the bytes in memory and answers.
    fn copy(self, buffer: Option<&mut [u8]>, fresh: bool) -> Copied {
        let Some(buffer) = buffer else {
            self.reply.error(Errno::ENOMEM);
            return Copied::Answered;
        };
        match self.file.read_resident(buffer, self.offset, fresh) {
            Some(count) => self.answer(&buffer[..count]),
            None => Copied::Gone(self),
        }
    }

    /// Reads block by block and answers.
    fn take(self) -> Copied {
        let Ok(mut buffer) = Pages::new(self.bytes.max(1)) else {
            self.reply.error(Errno::ENOMEM);
            return Copied::Answered;
        };
        let buffer = &mut buffer[..self.bytes];
        match self.file.read(buffer, self.offset) {
            Ok(count) => return self.answer(&buffer[..count]),
            Err(error) => self.reply.error(errno(error)),
        }
        Copied::Answered
    }

    /// Answers with these bytes, unless the kernel may fill them up with zeros: see
    /// [`ends`](crate::fs::ends). A read past its page cache it never does.
    fn answer(self, bytes: &[u8]) -> Copied {
        let file = self.file.clone();
        let Some(ends) = file.ends().filter(|_| !self.direct) else {
            self.reply.data(bytes);
            return Copied::Answered;
        };
        let answer = Answer {
            offset: self.offset,
            asked: self.bytes,
            given: bytes.len(),
            thread: self.thread,
            received: self.reply.begun(),
        };
        match ends.answer(&answer) {
            Verdict::Doubtful => return Copied::Doubted(self),
            Verdict::Known => self.reply.data(bytes),
            Verdict::Cut => {
                self.reply.data(bytes);
                ends.cut_given(answer.thread, Instant::now());
            }
        }
        file.answered();
        Copied::Answered
    }
}

impl State {
    /// The next job that can be done, with its buffer.
    fn next(&mut self) -> Option<(Job, io::Result<Option<Pages>>)> {
        let bytes = self.ready.front()?.bytes;
        if !self.room.has(bytes) {
            return None;
        }
        let job = self.ready.pop_front()?;
        let buffer = self.room.take(job.bytes);
        Some((job, buffer))
    }
}

impl Shared {
    /// A read enters the engine, or waits until others have left.
    fn enter(self: &Arc<Self>, read: Read) {
        let most = (self.awaited_max)();
        let device = read.device();
        let mut state = lock(&self.state);
        let bytes = read.bytes;
        let Some(read) = state.admission.enter(device, bytes, read, most) else {
            return;
        };
        drop(state);
        let round = u32::from(read.looked);
        self.await_bytes(read, round);
    }

    /// A read was answered, or is in doubt: others of its device may enter.
    fn leave(self: &Arc<Self>, device: u64, bytes: usize, copied: Copied) {
        if let Copied::Doubted(read) = copied {
            self.doubted(read);
        }
        let most = (self.awaited_max)();
        let mut state = lock(&self.state);
        state.admission.leave(device, bytes);
        while let Some(read) = state.admission.next(device, most) {
            drop(state);
            self.await_elsewhere(read, 0);
            state = lock(&self.state);
        }
    }

    /// [`Shared::await_bytes`] for a thread that must not wait for a server.
    fn await_elsewhere(self: &Arc<Self>, read: Read, round: u32) {
        if !read.file.is_served() {
            return self.await_bytes(read, round);
        }
        let (shared, lane) = (self.clone(), read.file.lane);
        self.lanes
            .later(lane, move || shared.await_bytes(read, round));
    }

    /// Has the engine bring the bytes; after that a worker goes on. `round` counts how often that
    /// was done for this read.
    fn await_bytes(self: &Arc<Self>, read: Read, round: u32) {
        let shared = self.clone();
        let (file, offset, bytes) = (read.file.clone(), read.offset, read.bytes);
        let come = move |there: io::Result<()>| match there {
            Ok(()) if round < ROUNDS_MAX => shared.when_room(read, round),
            Err(error) if read.is_refused(&error) => shared.when_failed(read, error),
            _ => shared.last_way(read),
        };
        match file.reader() {
            Some(reader) => reader.when_resident_or_failed(offset, bytes, round == 0, come),
            None => come(Err(rustix::io::Errno::BADF.into())),
        }
    }

    /// The bytes have come: a worker copies them once there is room.
    fn when_room(self: &Arc<Self>, read: Read, round: u32) {
        let (shared, bytes, device) = (self.clone(), read.bytes, read.device());
        let work = Box::new(move |buffer: Option<&mut [u8]>| -> Next {
            match read.caught(|read| read.copy(buffer, false)) {
                Copied::Gone(read) => {
                    Some(Box::new(move || shared.await_elsewhere(read, round + 1)))
                }
                copied => Some(Box::new(move || shared.leave(device, bytes, copied))),
            }
        });
        self.later(Job { bytes, work });
    }

    /// The source has refused the bytes: a worker says so.
    fn when_failed(self: &Arc<Self>, read: Read, error: io::Error) {
        let (shared, bytes, device) = (self.clone(), read.bytes, read.device());
        let work = Box::new(move |_: Option<&mut [u8]>| -> Next {
            let refused = read.caught(|read| {
                let number = read.file.failed(&error);
                read.reply.error(errno(number));
                Copied::Answered
            });
            Some(Box::new(move || shared.leave(device, bytes, refused)))
        });
        self.later(Job { bytes: 1, work });
    }

    /// Reads on a thread of its device's, which may wait for ever.
    fn last_way(self: &Arc<Self>, read: Read) {
        let (shared, device, bytes) = (self.clone(), read.device(), read.bytes);
        self.lanes.later(LaneOf::LastWay(device), move || {
            let copied = read.caught(Read::take);
            shared.leave(device, bytes, copied);
        });
    }

    /// A read met the end of its file where the kernel may take it to be longer. The file may have grown
    /// since it was looked at; if not, the read is refused.
    fn doubted(self: &Arc<Self>, mut read: Read) {
        let shared = self.clone();
        self.lanes.later(LaneOf::Doubts(read.device()), move || {
            if mem::replace(&mut read.looked, true) {
                return shared.refuse(read);
            }
            match read.file.reader().map(Reader::look) {
                Some(Err(error)) => read.reply.error(errno(beneath::errno(&error))),
                _ => shared.enter(read),
            }
        });
    }

    /// Answers with an error. The kernel asks for each of many pages again, the program after it, and for
    /// attributes first once the pages are gone.
    fn refuse(&self, read: Read) {
        let Read {
            file,
            offset,
            bytes,
            ..
        } = &read;
        if let Some(ends) = file.ends() {
            ends.refuses(*offset, *bytes);
        }
        let (file, error) = (file.clone(), file.refuses());
        read.reply.error(errno(error));
        if let Some(drops) = self.drops.get() {
            drops(file.node);
        }
    }

    /// Leaves a job to the workers.
    fn later(self: &Arc<Self>, job: Job) {
        let mut state = lock(&self.state);
        state.ready.push_back(job);
        let begins = state.ready.len() > state.idle && state.workers < WORKERS;
        state.workers += usize::from(begins);
        drop(state);
        self.work.notify_one();
        if begins && let Err(error) = self.begin_worker() {
            // There is one; fewer are slower.
            tracing::debug!("no further thread for answers: {error}");
            lock(&self.state).workers -= 1;
        }
    }

    fn begin_worker(self: &Arc<Self>) -> io::Result<()> {
        let shared = self.clone();
        thread::Builder::new()
            .name("forerun-read".into())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.work())
            .map(drop)
    }

    /// Copies the bytes in memory on this thread; it waits for room at most as long as others copy.
    fn here(self: &Arc<Self>, read: Read) {
        let bytes = read.bytes;
        let mut state = lock(&self.state);
        let buffer = loop {
            match state.room.take(bytes) {
                Ok(None) => {
                    state.wanting += 1;
                    let woken = self.room.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.wanting -= 1;
                }
                other => break other,
            }
        };
        drop(state);
        let shared = self.clone();
        let work = move |buffer: Option<&mut [u8]>| -> Next {
            // Given up in between: it waits as any other.
            match read.caught(|read| read.copy(buffer, true)) {
                Copied::Answered => None,
                Copied::Gone(read) => Some(Box::new(move || shared.enter(read))),
                Copied::Doubted(read) => Some(Box::new(move || shared.doubted(read))),
            }
        };
        drop(self.carry_out(buffer, bytes, work));
    }

    /// Carries out work with a buffer, takes that back, and does the step after it.
    fn carry_out(
        &self,
        buffer: io::Result<Option<Pages>>,
        bytes: usize,
        work: impl FnOnce(Option<&mut [u8]>) -> Next,
    ) -> MutexGuard<'_, State> {
        let next = match buffer {
            Ok(Some(mut buffer)) => {
                let next = work(buffer.get_mut(..bytes));
                self.give_back(buffer);
                next
            }
            _ => work(None),
        };
        if let Some(next) = next {
            caught(next);
        }
        lock(&self.state)
    }

    fn give_back(&self, buffer: Pages) {
        let mut state = lock(&self.state);
        state.room.give_back(buffer);
        if state.wanting > 0 {
            self.room.notify_all();
        }
        if !state.ready.is_empty() {
            self.work.notify_one();
        }
    }

    /// The life of a worker.
    fn work(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let Some((job, buffer)) = state.next() else {
                state.idle += 1;
                let woken = self.work.wait_timeout(state, IDLE);
                let (woken, time) = woken.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.idle -= 1;
                if time.timed_out() && state.ready.is_empty() && state.workers > 1 {
                    state.workers -= 1;
                    return;
                }
                continue;
            };
            drop(state);
            state = self.carry_out(buffer, job.bytes, job.work);
        }
    }
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.shared.state);
        let queues = (state.ready.len(), state.admission.devices());
        write!(f, "Reads {{ ready, devices waited for: {queues:?} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    const PIECE: usize = 1 << 18;

    fn reads(room: usize) -> Reads {
        let lanes = Lanes::new(1);
        Reads::start(room * PIECE, lanes, Box::new(|| 1 << 20)).unwrap()
    }

    #[test]
    fn no_more_go_on_than_there_is_room_for_and_all_get_their_turn() {
        for room in [1, 2, 20] {
            let reads = reads(room);
            let (tell, told) = channel();
            let at_once = Arc::new(AtomicUsize::new(0));
            for number in 0..1000_usize {
                let (tell, at_once) = (tell.clone(), at_once.clone());
                let work: Work = Box::new(move |buffer| {
                    let others = at_once.fetch_add(1, Ordering::SeqCst);
                    buffer.unwrap().fill(number as u8);
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    tell.send(others < room).unwrap();
                    None
                });
                reads.shared.later(Job { bytes: PIECE, work });
            }
            drop(tell);
            let within: Vec<bool> = told.iter().collect();
            assert!(within.len() == 1000 && within.iter().all(|within| *within));
        }
    }

    #[test]
    fn steps_that_panic_end_no_worker() {
        let reads = reads(1);
        let (tell, told) = channel::<()>();
        for _ in 0..10 * WORKERS {
            let tell = tell.clone();
            let step = move || std::panic::resume_unwind(Box::new(tell));
            let work: Work = Box::new(move |_| Some(Box::new(step)));
            reads.shared.later(Job { bytes: PIECE, work });
        }
        drop(tell);
        let ended = told.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn what_follows_a_copy_needs_no_room() {
        let reads = reads(1);
        let (tell, told) = channel();
        let shared = reads.shared.clone();
        let work: Work = Box::new(move |_| {
            Some(Box::new(move || {
                let has_room = lock(&shared.state).room.has(PIECE);
                tell.send(has_room).unwrap();
            }))
        });
        reads.shared.later(Job { bytes: PIECE, work });
        assert!(told.recv().unwrap());
    }
}
