//! The engine's lock, the deferred inputs before it, and the dispatch queue behind it.
//!
//! Entered by readers (a read that is not a plain hit), by the driver (open, close, ledger) and by
//! backend threads (a request ended). There is no thread of its own: a thread with an input takes
//! the lock, hands it in, leaves, and then wakes readers and submits requests; one of a program writes lines.
//!
//! ```text
//! touches, releases --> deferred --+
//! reads, completions --> lock { drain deferred; feed input } --> dispatch queue --> backend
//!                                                             \--> answers --> readers
//! ```
//!
//! Requests reach the backend in the order of the engine's decisions, because the queue is filled
//! under the lock and emptied by one thread at a time. A backend may complete a request inside
//! `submit`: the thread that empties the queue then finds more in it, and nothing nests.

mod ending;

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::table::{Frame, Table};
use forerun_core::{
    Block, ErrorCode, FetchOutcome, FileId, Input, Ledger, ReadId, ReaderId, Served,
};

use crate::alarm::Alarm;
use crate::arena::Arena;
use crate::backend::{Backend, Outcome, Request, Sink};
use crate::catalog::Version;
use crate::deferred_inputs::{DeferredInput, DeferredInputs};
use crate::dispatch_queue::DispatchQueue;
use crate::engine_state::EngineState;
use crate::folder::OpensAhead;
use crate::foreign::guarded;
use crate::journal_file::JournalFile;
use crate::reader::Position;
use crate::settle::{Look, Looks, Settled};
use crate::source::{GIVEN_UP, Source};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::threads;
use crate::trimming::Trimming;
use crate::wait::{Call, Waiter};

/// Bytes of journal lines gathered before they are written.
const JOURNAL_CHUNK: usize = 64 * 1024;

/// Most bytes of them while others are written: a writer so slow ends the journal, and holds up the one thread that
/// waits for it.
const JOURNAL_MAX: usize = 16 << 20;

/// How often the missing rest of a read is asked for before it counts as lost.
const ATTEMPTS_MAX: u32 = 16;

/// How often is looked whether a reader still copies out of a frame, before its request is held: some 70 ms. A copy takes
/// less than one, and a thread that lost its processor has it back by then; others wait as long at most.
const LOOKS_MAX: u32 = 1000;

/// Returned when the read must be retried (`EAGAIN`).
const FAILED: Served = Served::Failed {
    error: ErrorCode(libc::EAGAIN),
};

/// See the [module](self).
pub(crate) struct EngineHost {
    pub(crate) table: Arc<Table>,
    pub(crate) arena: Arc<Arena>,
    /// Frames that the engine uses at most, by the limit.
    pub(crate) frames: AtomicU32,
    /// Blocks are two to this power bytes.
    pub(crate) block_shift: u32,
    /// Tells this arena's frames from those of other drivers in the hazards.
    pub(crate) domain: u32,
    /// Whether every read must enter the engine.
    pub(crate) sees_every_read: bool,
    /// When files are looked at.
    pub(crate) looks: Looks,
    /// Whether the engine is told how long owners computed.
    pub(crate) uses_cpu_time: bool,
    state: Mutex<EngineState>,
    deferred: DeferredInputs,
    dispatch_queue: DispatchQueue,
    backend: OnceLock<Arc<dyn Backend>>,
    halted: AtomicBool,
    /// Requests were in flight that did not end in time, and perhaps never do.
    abandoned: AtomicBool,
    landed: Condvar,
    /// Set while requests are in flight.
    pub(crate) alarm: Arc<Alarm>,
    journal: JournalFile,
    /// The host that opens files ahead.
    host: OnceLock<Arc<dyn OpensAhead>>,
}

/// The result of a read that entered the engine.
pub(crate) enum Answer {
    /// The file is another by now: begin again.
    Changed,
    /// The engine's answer, under this number.
    Served(ReadId, Served),
}

/// A read for the engine.
pub(crate) struct Ask {
    pub(crate) reader: ReaderId,
    pub(crate) file: FileId,
    /// The number of the version that is read.
    pub(crate) version: u64,
    pub(crate) previous: Option<Block>,
    pub(crate) head: u32,
    pub(crate) first: Block,
    pub(crate) count: u32,
    pub(crate) fresh: bool,
}

impl Ask {
    fn input(&self, read: ReadId, wants: Wants) -> Input {
        let head = if wants == Wants::Blocks { self.head } else { 0 };
        Input::Read {
            read,
            reader: self.reader,
            access: Access::new(self.first, self.count)
                .with_head(head)
                .with_previous(self.previous),
            fresh: self.fresh,
            wants,
        }
    }
}

impl EngineHost {
    pub(crate) fn new(
        state: EngineState,
        table: Arc<Table>,
        arena: Arc<Arena>,
        looks: Looks,
        journal: Option<Box<dyn Write + Send>>,
    ) -> Arc<Self> {
        static DOMAINS: AtomicU32 = AtomicU32::new(0);
        Arc::new(Self {
            table,
            block_shift: arena.block_bytes().trailing_zeros(),
            frames: AtomicU32::new(arena.frames()),
            arena,
            domain: DOMAINS.fetch_add(1, Ordering::Relaxed),
            sees_every_read: state.sees_every_read(),
            looks,
            uses_cpu_time: state.uses_cpu_time(),
            state: Mutex::new(state),
            deferred: DeferredInputs::default(),
            dispatch_queue: DispatchQueue::default(),
            backend: OnceLock::new(),
            halted: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            landed: Condvar::default(),
            alarm: Arc::default(),
            journal: JournalFile::new(journal),
            host: OnceLock::new(),
        })
    }

    /// The backend, once it stands on this driver's sink.
    pub(crate) fn connect(&self, backend: Arc<dyn Backend>) {
        let _ = self.backend.set(backend);
    }

    /// Has this host open files ahead.
    pub(crate) fn opens_ahead(&self, host: Arc<dyn OpensAhead>) {
        let _ = self.host.set(host);
    }

    /// The host that opens files ahead.
    pub(crate) fn host(&self) -> Option<&Arc<dyn OpensAhead>> {
        self.host.get()
    }

    /// Does something under the lock, then carries out its outputs without the lock.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut EngineState) -> R) -> R {
        let mut state = self.state.lock();
        let result = work(&mut state);
        if self.leave(state) {
            self.try_write_journal();
        }
        result
    }

    /// Does something under the lock after the deferred inputs, perhaps on a thread of the driver: that one must not wait
    /// for the writer of the journal, or all requests of its ring or device would. True if there are lines to write.
    fn without_writing<R>(&self, work: impl FnOnce(&mut EngineState) -> R) -> (R, bool) {
        let mut state = self.state.lock();
        state.drain(&self.deferred);
        let result = work(&mut state);
        (result, self.leave(state))
    }

    /// Does something under the lock after the deferred inputs.
    pub(crate) fn after_deferred<R>(&self, work: impl FnOnce(&mut EngineState) -> R) -> R {
        self.with(|state| {
            state.drain(&self.deferred);
            work(state)
        })
    }

    /// Carries out the outputs; true if there are lines of the journal to write.
    fn leave(&self, mut state: MutexGuard<'_, EngineState>) -> bool {
        self.tell_deferred(&mut state);
        if state.surplus.is_any() {
            let (table, arena) = (&self.table, &self.arena);
            state.surplus.give_back(table, arena, self.domain);
        }
        let woken = mem::take(&mut state.woken);
        let given_up = mem::take(&mut state.given_up);
        let orders = state.orders.take();
        if !state.fetches.is_empty() {
            self.dispatch_queue.put(state.fetches.drain(..));
            self.alarm.set();
        }
        let journal_bytes = state.journal.as_ref().map_or(0, String::len);
        let journal_ends = journal_bytes >= JOURNAL_MAX;
        if journal_ends {
            state.journal = None;
        }
        drop(state);
        if journal_ends {
            // Without the lock: a log may call the driver, or wait.
            self.journal.ends_behind(journal_bytes);
        }
        for waiter in woken {
            guarded(|| waiter.wake());
        }
        for request in given_up {
            guarded(|| request.ask());
        }
        self.submit();
        self.tell_host(orders);
        journal_bytes >= JOURNAL_CHUNK
    }

    /// Some time has passed with requests in flight.
    pub(crate) fn look_for_hung(&self) {
        self.without_writing(|state| {
            state.look_for_hung();
            if state.in_flight == 0 {
                self.alarm.clear();
            }
        });
        if let Some(backend) = self.backend.get() {
            backend.look_for_hung();
        }
    }

    /// Looks at every frame once for pages that can be given back; the lock is free in between.
    pub(crate) fn give_back_surplus(&self) {
        for _ in 0..Trimming::turns(self.arena.frames()) {
            self.without_writing(|_| ());
        }
    }

    /// Inputs under one lock are of one instant: announced reads are planned for. Tells
    /// releasing readers whether they are to hand releases in at once.
    fn tell_deferred(&self, state: &mut EngineState) {
        state.decide();
        while self.deferred.tell(state.wants_releases()) {
            state.drain(&self.deferred);
            state.decide();
        }
    }

    /// Empties the dispatch queue, unless another thread is at it, which then finds our requests.
    fn submit(&self) {
        let is_clear = |request: &Request| {
            request.is_given_up() || threads::is_clear(self.domain, request.target.runs())
        };
        while let Some(request) = self.dispatch_queue.begin(is_clear) {
            let _turn = Turn(&self.dispatch_queue);
            if request.is_given_up() {
                self.completed(request, Err(GIVEN_UP));
            } else if self.becomes_clear(&request) {
                self.hand_over(request);
            } else {
                self.dispatch_queue.hold(request);
            }
        }
    }

    /// Waits for readers that copy out of the frames of a request; not for long, if the timer looks again.
    fn becomes_clear(&self, request: &Request) -> bool {
        let looks_max = if self.alarm.has_timer() {
            LOOKS_MAX
        } else {
            u32::MAX
        };
        threads::wait_until_clear(self.domain, request.target.runs(), looks_max)
    }

    fn hand_over(&self, request: Box<Request>) {
        let refusal = match self.backend.get() {
            _ if request.source.is_none() => libc::EBADF,
            Some(backend) if !self.halted.load(Ordering::Acquire) => {
                return backend.submit(request);
            }
            _ => libc::ESHUTDOWN,
        };
        self.completed(request, Err(refusal));
    }

    /// Asks the engine for blocks and waits for its answer.
    pub(crate) fn read(&self, ask: &Ask) -> io::Result<Answer> {
        let waiter = Waiter::of_this_thread();
        let begun = self.after_deferred(|state| {
            if state.stopped {
                return Err(io::Error::from_raw_os_error(libc::ESHUTDOWN));
            }
            if !state.is_version(ask.file, ask.version) {
                return Ok(false);
            }
            let input = |read| ask.input(read, Wants::Blocks);
            state.begin_read(ask.reader, waiter.clone(), input);
            Ok(true)
        });
        match begun {
            Ok(true) => {
                let (read, served) = waiter.wait();
                Ok(Answer::Served(read, served))
            }
            Ok(false) => Ok(Answer::Changed),
            Err(e) => Err(e),
        }
    }

    /// Has the engine fetch blocks and calls once they are there (or would have to be asked for in
    /// earnest: the file changed, an error, the end of the run). Nothing is held until then. The call does not come if
    /// the reader of this position has closed. True if there are lines of the journal to write, by a thread of a program.
    pub(crate) fn call_when_there(
        &self,
        ask: &Ask,
        position: &Arc<Position>,
        wants: Wants,
        call: Call,
    ) -> bool {
        let mut call = Some(call);
        let (is_open, is_long) = self.without_writing(|state| {
            let is_open = state.is_open(ask.reader, position);
            if is_open
                && !state.stopped
                && state.is_version(ask.file, ask.version)
                && let Some(call) = call.take()
            {
                let input = |read| ask.input(read, wants);
                state.begin_read(ask.reader, Waiter::calling(call), input);
            }
            is_open
        });
        if let Some(call) = call.filter(|_| is_open) {
            call(FAILED);
        }
        is_long
    }

    /// Queues an input for the next holder of the lock, or takes the lock if the queue says so.
    pub(crate) fn queue(&self, later: DeferredInput) {
        if self.deferred.queue(later) {
            self.after_deferred(|_| ());
        }
    }

    /// [`EngineState::settle`] for a caller that holds the lock.
    pub(crate) fn settle(&self, state: &mut EngineState, file: FileId, look: Look) -> Settled {
        state.settle(file, look, &self.deferred)
    }

    /// [`EngineState::forget_surplus`] for a caller that holds the lock.
    pub(crate) fn forget_surplus(&self, state: &mut EngineState) {
        state.forget_surplus(&self.deferred);
    }

    /// Closes a reader, and forgets files that were closed long ago. A call that a thread of the driver makes may have the
    /// last reference to it.
    pub(crate) fn close(&self, reader: ReaderId, file: FileId) {
        let (abandoned, _) = self.without_writing(|state| {
            let abandoned = state.close(reader, file);
            self.forget_surplus(state);
            abandoned
        });
        drop(abandoned);
    }

    /// Looks whether the file changed; if so the new version begins. It also did if another thread
    /// found that meanwhile.
    pub(crate) fn look(
        &self,
        file: FileId,
        version: &Version,
        source: &dyn Source,
    ) -> io::Result<bool> {
        let look = Look::at(version, source)?;
        let settled = self.with(|state| state.settle(file, look, &self.deferred));
        Ok(settled != Settled::Same)
    }

    /// Returns once no change is under way.
    pub(crate) fn wait_for_changes(&self) {
        drop(self.state.lock());
    }

    /// Where a block lies, found with the table at rest.
    pub(crate) fn find_exactly(&self, file: FileId, block: Block) -> Option<Frame> {
        let state = self.state.lock();
        state.table().find(file, block).map(|found| found.frame)
    }

    /// How a request that ended ends for the engine; none if its rest must be asked for again.
    fn judge(
        state: &mut EngineState,
        request: &mut Request,
        outcome: Outcome,
    ) -> Option<FetchOutcome> {
        let failed = |error| {
            Some(FetchOutcome::Failed {
                error: ErrorCode(error),
            })
        };
        let version = state.catalog.get(request.file).map(|k| k.version.wanted());
        if version != Some(request.version) {
            return failed(libc::ESTALE);
        }
        match outcome {
            Ok(n) if n >= request.bytes => {
                state.catalog.failed(request.file, &request.tried);
                Some(FetchOutcome::Done)
            }
            Ok(n) => {
                let block_bytes = request.target.arena().block_bytes();
                request.skip = n as usize / block_bytes * block_bytes;
                request.attempts += 1;
                if request.attempts < ATTEMPTS_MAX {
                    None
                } else {
                    failed(libc::EIO)
                }
            }
            // Every reader of the file closed it before the request reached the device.
            Err(_) if request.source.is_none() => Some(FetchOutcome::Cancelled { blocks: 0 }),
            Err(GIVEN_UP) if request.is_given_up() => {
                let blocks = request.target.filled() / request.target.arena().block_bytes();
                let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
                Some(FetchOutcome::Cancelled { blocks })
            }
            Err(error) if Self::goes_on_by_another(state, request, error) => None,
            Err(error) => {
                state.catalog.failed(request.file, &request.tried);
                failed(request.tried.first().map_or(error, |(_, first)| *first))
            }
        }
    }

    /// Whether a request whose source failed is carried out by that of another reader, whose descriptor or
    /// credentials may be good: all are tried where this one's are refused. Whatever else fails fails alike for all of
    /// them, and may take long, so it is tried by one that was opened since, and no other.
    fn goes_on_by_another(state: &EngineState, request: &mut Request, error: i32) -> bool {
        let known = state.catalog.get(request.file);
        let (Some(known), Some(source)) = (known, &mut request.source) else {
            return false;
        };
        request.tried.push((source.clone(), error));
        let is_refused = [libc::EACCES, libc::EPERM, libc::EBADF, libc::ESTALE].contains(&error);
        let most = if is_refused { usize::MAX } else { 1 };
        let mut sources = known.sources().take(most);
        let is_tried = |of: &Arc<_>| request.tried.iter().any(|(it, _)| Arc::ptr_eq(it, of));
        let Some(next) = sources.find(|of| !is_tried(of)) else {
            return false;
        };
        source.clone_from(next);
        request.tried.len() < ATTEMPTS_MAX as usize
    }

    /// The counters as of now.
    pub(crate) fn ledger(&self) -> Ledger {
        self.with(EngineState::ledger)
    }

    /// [`EngineState::ledger_as_reported`].
    pub(crate) fn ledger_as_reported(&self) -> Ledger {
        self.with(|state| state.ledger_as_reported())
    }

    /// A request ended: the engine hears of it, if the file is still the one it wanted.
    fn completed(&self, mut request: Box<Request>, outcome: Outcome) {
        // Until the lock is free: the end of a source may wait, call the driver or panic.
        let source = request.source.clone();
        let (ended, _) = self.without_writing(|state| {
            let Some(outcome) = Self::judge(state, &mut request, outcome) else {
                state.fetches.push(request);
                return None;
            };
            let Request { number, file, .. } = *request;
            state.landed(number, file);
            state.surplus.filled(request.target.runs());
            state.feed(Input::Completed {
                request: number,
                outcome,
            });
            if state.in_flight == 0 {
                self.landed.notify_all();
            }
            Some(request)
        });
        guarded(|| drop((ended, source)));
    }
}

/// The turn of a thread at the dispatch queue, which also a panic of a backend or a source ends: all other requests
/// would be left in the queue.
struct Turn<'a>(&'a DispatchQueue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The driver as the backend sees it. Weak, because the driver owns the backend.
pub(crate) struct Port(pub(crate) Weak<EngineHost>);

impl Sink for Port {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        if let Some(engine_host) = self.0.upgrade() {
            engine_host.completed(request, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use forerun_core::{Bytes, preset};

    use crate::{Config, Driver, Reader};

    /// A wait that takes longer has failed.
    const BOUND: Duration = Duration::from_secs(60);

    fn driver() -> Driver {
        let settings = preset::default().settings(Bytes(8 << 20)).unwrap();
        Driver::new(Config::new(settings)).unwrap()
    }

    /// Opens a file and has its first block fetched.
    fn ask(driver: &Driver, index: u64) -> (Reader, Receiver<bool>) {
        let reader = driver.open_generated(1, index, 1 << 20).unwrap();
        let (tell, told) = channel();
        reader.when_resident(0, 4096, true, move |there| tell.send(there).unwrap());
        (reader, told)
    }

    #[test]
    fn a_copy_that_does_not_end_holds_up_the_request_for_its_frame_alone() {
        let first = driver();
        let (_reader, told) = ask(&first, 1);
        assert_eq!(told.recv_timeout(BOUND), Ok(true));
        let frame = first.engine_host().find_exactly(FileId(0), Block(0));
        // The same frame in another driver.
        let driver = Arc::new(driver());
        let domain = driver.engine_host().domain;
        let announcer = threads::announcer().unwrap();
        let hazard = announcer.hold(domain, frame.unwrap(), || true).unwrap();
        let (tell, told) = channel();
        std::thread::spawn({
            let driver = driver.clone();
            move || {
                let held = ask(&driver, 1);
                tell.send((ask(&driver, 2), held)).unwrap();
            }
        });
        let asked = told.recv_timeout(BOUND);
        let other = asked
            .as_ref()
            .map(|((_, told), _)| told.recv_timeout(BOUND));
        let held = asked
            .as_ref()
            .map(|(_, (_, told))| told.try_recv().is_err());
        drop(hazard);
        assert_eq!((other, held), (Ok(Ok(true)), Ok(true)));
        let (_, (_reader, held)) = asked.unwrap();
        assert_eq!(held.recv_timeout(BOUND), Ok(true));
    }

    #[test]
    fn a_request_that_a_copy_holds_up_for_long_is_given_up_and_its_other_blocks_are_fetched() {
        const BLOCKS: u64 = 32;
        let ask_all = |driver: &Driver| {
            let reader = driver.open_generated(1, 1, 1 << 20).unwrap();
            let (tell, told) = channel();
            reader.when_resident(0, (BLOCKS << 12) as usize, true, |_| ());
            for block in 0..BLOCKS {
                let tell = tell.clone();
                reader.when_resident(block << 12, 1, true, move |_| tell.send(block).unwrap());
            }
            (reader, told)
        };
        let receive = |told: &Receiver<u64>, count| {
            let blocks = (0..count).map(|_| told.recv_timeout(BOUND));
            blocks.collect::<Result<Vec<_>, _>>()
        };
        let first = driver();
        let (_reader, told) = ask_all(&first);
        receive(&told, BLOCKS).unwrap();
        let frame = first
            .engine_host()
            .find_exactly(FileId(0), Block(BLOCKS as u32 / 2));
        // The same frame in another driver.
        let driver = driver();
        let domain = driver.engine_host().domain;
        let announcer = threads::announcer().unwrap();
        let hazard = announcer.hold(domain, frame.unwrap(), || true).unwrap();
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            let (reader, told) = ask_all(&driver);
            let others = receive(&told, BLOCKS - 1);
            tell.send((others, told, reader, driver)).unwrap();
        });
        let asked = asked.recv_timeout(2 * BOUND);
        drop(hazard);
        let (others, told, _reader, _driver) = asked.unwrap();
        others.unwrap();
        receive(&told, 1).unwrap();
    }
}
