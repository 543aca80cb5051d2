//! The engine: inputs in, decisions out, nothing else.
//!
//! Drivers call [`Engine::handle`] with one input, then [`Engine::poll`] until there is no output left.
//! Stages stand in the order a read passes them, and calls go down:
//! ```text
//! change    files come and change, readers open and close
//! next      folders are walked: files opened ahead
//! complete  blocks arrive or fail; the reads that waited are listed
//! read      a demand read: hit, late hit or miss; serve it or let it wait
//! hint      reads announced: the plan fetches instead
//! window    detect + depth + admission: the blocks to fetch ahead
//! shape     where a window ends on a striped array
//! defer     a miss or a mark waits without memory until its device has a slot
//! hung      a request never ends: its memory is lost, not that of others
//! cancel    a fetch is not wanted any more
//! fetch     frames for the blocks, requests for the devices
//! send      dispatch: which request a device gets next
//! streams   runs of blocks ahead of their readers; victims
//! pace      how requests of a file come: in time, late, not at all
//! held      frames of announced pieces
//! place     layout: which device holds a block, and where on it
//! ```
//!
//! Work for a stage above goes to a [list](work), drained in one loop. Inputs that make no sense are counted, no more.

mod cancel;
mod change;
mod complete;
mod defer;
mod fetch;
mod held;
mod hint;
mod hung;
mod next;
mod pace;
mod place;
mod read;
mod send;
mod shape;
mod streams;
pub mod view;
mod window;
mod work;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::depth::Depth;
use crate::files_ahead::FilesAhead;
use crate::ledger::Ledger;
use crate::memory::Memory;
use crate::next_file::Place;
use crate::plan::Plan;
use crate::protocol::{Input, Output, Wants};
use crate::queues::{Queues, Want, Wanted};
use crate::readers::Readers;
use crate::reads::Reads;
use crate::settings::{Settings, SettingsError};
use crate::shape::Shape;
use crate::spec::Choice;
use crate::table::Table;
use crate::units::{Bytes, DeviceId, Nanos, ReaderId};
use work::Work;

/// Memory charged for a read under way: its entry and the frames it pins.
const READ_BYTES: i64 = 512;
/// Memory charged for a fetch under way: its entry and its waiters.
const REQUEST_BYTES: i64 = 256;

/// See the [module](self).
#[derive(Debug)]
pub struct Engine {
    setup: Setup,
    memory: Memory,
    readers: Readers,
    queues: Queues,
    reads: Reads,
    producers: Producers,
    /// Work that stages left behind, outputs that were not polled yet, and the time of the input.
    work: Work,
    ledger: Ledger,
}

/// Those that decide on fetches beside the streams of readers.
#[derive(Debug)]
struct Producers {
    /// Announced blocks of readers, while any are known.
    plan: Option<Box<Plan>>,
    /// Folders, and the files open ahead of the programs that walk them.
    files: Option<FilesAhead>,
}

/// The settings, and the methods of windows that were built from them; each reader has a detector of its own.
#[derive(Debug)]
struct Setup {
    settings: Settings,
    depth: Box<dyn Depth>,
    shape: Box<dyn Shape>,
    /// Whether detectors want to see hits as well.
    sees_every_read: bool,
    /// Whether they want to see each block.
    sees_every_block: bool,
}

impl Setup {
    fn new(settings: Settings) -> Self {
        let detect = settings.detect.build();
        Self {
            depth: settings.depth.build(),
            shape: settings.shape.build(),
            sees_every_read: detect.sees_every_read(),
            sees_every_block: detect.sees_every_block(),
            settings,
        }
    }
}

impl Engine {
    /// Most blocks of one [`Input::Read`]; drivers split longer reads, part after part. 16 MiB of pages: what a store
    /// of 30 ms gives meanwhile at 500 MB/s, so a read of ten megabytes is one round trip; and a bound on the work
    /// under one call.
    pub const READ_MAX: u32 = 4096;

    /// Most entries of one [`Input::Folder`]. 65,536 take 2.6 MiB and some milliseconds to sort,
    /// and larger folders are seldom read whole.
    pub const FOLDER_MAX: usize = 1 << 16;

    /// A fresh engine.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        settings.check()?;
        let reclaim = settings.reclaim.build();
        let (frames, block_bytes) = (settings.frames(), settings.block_bytes);
        let next_file = settings.next_file.as_ref().map(Choice::build);
        Ok(Self {
            producers: Producers {
                plan: None,
                files: next_file.map(|method| FilesAhead::new(method, settings.memory.0)),
            },
            memory: Memory::new(frames, block_bytes, reclaim),
            readers: Readers::default(),
            queues: Queues::new(&settings),
            reads: Reads::default(),
            work: Work::default(),
            ledger: Ledger::default(),
            setup: Setup::new(settings),
        })
    }

    /// The settings it was built from.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.setup.settings
    }

    /// The resident table, to be looked up from any thread.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.memory.table
    }

    /// Whether the hit path must be closed: the detect method wants to see every read, so the
    /// driver hands every read to the engine, hits included.
    #[must_use]
    pub fn sees_every_read(&self) -> bool {
        self.setup.sees_every_read
    }

    /// Whether the driver is to hand in a `Release` as soon as it has one, instead of with the next
    /// other input: a read waits for memory, or one that was announced is not over before.
    #[must_use]
    pub fn wants_releases(&self) -> bool {
        let plan = self.producers.plan.as_ref();
        self.reads.starving() > 0 || plan.is_some_and(|plan| plan.is_read())
    }

    /// Whether [`Input::Decide`] is due before time goes on.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        let plan = self.producers.plan.as_ref();
        plan.is_some_and(|plan| plan.is_undecided())
    }

    /// Whether requests wait for a device with one that hangs by now, or reads for memory: to be told time by an
    /// [`Input::Decide`], and asked again some times a second.
    #[must_use]
    pub fn is_held_up(&self, now: Nanos) -> bool {
        self.queues.is_held_up(now, self.reads.starving() > 0)
    }

    /// Whether a method decides by the time that programs compute, so that [`Input::CpuTime`] is
    /// worth while: some times a second, for readers whose time has changed.
    #[must_use]
    pub fn uses_cpu_time(&self) -> bool {
        self.memory.uses_cpu_time()
    }

    /// Whether a method expects files: folders need not be told otherwise.
    #[must_use]
    pub fn follows_folders(&self) -> bool {
        self.producers.files.is_some()
    }

    /// Takes one input. Drain [`Engine::poll`] before the next. `now` is
    /// recorded, stall time is counted with it, and estimates of devices and hinted policies reckon
    /// with how long disks and readers took; nothing else is decided by it. Before time goes on an
    /// [`Engine::is_undecided`] one gets an [`Input::Decide`].
    pub fn handle(&mut self, now: Nanos, input: Input) {
        self.work.now = now;
        let begun = self.note_begun(&input);
        let accepted = match input {
            Input::Device { device, profile } => {
                self.queues.told(device, &profile);
                self.work.devices.push_back(device);
                Some(())
            }
            Input::Congested {
                device,
                is_congested,
            } => self.queues.congested(device, is_congested),
            Input::File {
                file,
                placement,
                bytes,
            } => self.add_file(file, &placement, bytes),
            Input::Open { reader, file } => self.open(reader, file),
            Input::Read {
                read,
                reader,
                access,
                fresh,
                wants,
            } => self.begin_read(read, reader, access, fresh, wants),
            Input::Release { read } => self.release(read),
            Input::Touch {
                reader,
                first,
                count,
            } => self.touch(reader, first, count),
            Input::Hits { reader, blocks } => self.count_hits(reader, blocks),
            Input::Hint {
                reader,
                first,
                count,
                more,
            } => self.hint(reader, first, count, more),
            Input::CpuTime { reader, time } => self.cpu_time(reader, time),
            Input::Decide => {
                self.write_off_hung();
                self.carry_out_plan(None);
                self.work.devices.extend(self.queues.wanted());
                Some(())
            }
            Input::Completed { request, outcome } => self.complete(request, outcome),
            Input::Invalidate { file, bytes } => self.invalidate(file, bytes),
            Input::Limit { memory } => self.limit(memory),
            Input::Folder { folder, entries } => self.list_folder(folder, entries),
            Input::Entered {
                folder,
                entry,
                reader,
                opener,
            } => self.enter(Place { folder, entry }, reader, opener),
            Input::Ahead {
                folder,
                entry,
                reader,
            } => self.answer_ahead(Place { folder, entry }, reader),
            Input::Close { reader } => self.close(reader),
            Input::Forget { file } => self.forget(file),
        };
        if accepted.is_none() {
            self.ledger.refused_inputs += 1;
        }
        self.drain();
        if let Some(reader) = begun {
            self.begun(reader);
        }
        self.pay_bookkeeping();
        self.feed_starved();
        debug_assert!(self.work.is_empty(), "work is left between two inputs");
    }

    /// The reader that reads, or closes; the blocks that it reads are noted.
    fn note_begun(&mut self, input: &Input) -> Option<ReaderId> {
        let (reader, first, count) = match *input {
            Input::Close { reader } => return Some(reader),
            Input::Read {
                reader,
                access,
                wants,
                ..
            } if wants != Wants::Idle => (reader, access.block, access.count.min(Self::READ_MAX)),
            Input::Read { reader, .. } => return Some(reader),
            Input::Touch {
                reader,
                first,
                count,
            } => (reader, first, count),
            _ => return None,
        };
        self.note_read(reader, first, count);
        Some(reader)
    }

    /// Takes up the work that stages left, and the work that comes of it.
    fn drain(&mut self) {
        loop {
            if let Some((device, want)) = self.work.granted.pop_front() {
                self.grant(device, want);
            } else if let Some(read) = self.work.reads.pop_front() {
                self.go_on(read);
            } else if let Some(device) = self.work.devices.pop_front() {
                self.dispatch(device);
            } else {
                return;
            }
        }
    }

    /// A device has a slot for a want without memory: its fetch is decided now.
    fn grant(&mut self, id: DeviceId, want: Want) {
        self.queues.decide(id, Some(want));
        match want.fetch {
            Wanted::Demand { read, file, .. } => {
                self.open_window_of(id, file, want.position);
                self.fetch_deferred(read);
            }
            Wanted::Window {
                reader,
                access,
                end,
            } => self.open_deferred(reader, access, end),
            Wanted::Request(_) => debug_assert!(false, "a request is sent, not decided again"),
        }
        self.queues.decide(id, None);
        self.work.devices.push_back(id);
    }

    /// Reads that waited for memory try again, in order, while there is some.
    fn feed_starved(&mut self) {
        while self.memory.obtainable() > 0
            && let Some(id) = self.reads.next_starved()
        {
            let others = self.reads.starving();
            let tried = self.try_read(id);
            if tried.is_none() {
                self.reads.starve_first(id);
            }
            // Of a read that found no frame a part may have been fetched.
            self.drain();
            // More starve where its device had a slot, and there was no frame for it after all.
            if tried.is_none() || self.reads.starving() > others {
                return;
            }
        }
    }

    /// The next output of the last input; none once all were taken.
    pub fn poll(&mut self) -> Option<Output> {
        self.work.out.pop_front()
    }

    /// The counters, as of now.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let files = self.producers.files.as_ref();
        let counts = files.map(FilesAhead::counts).unwrap_or_default();
        Ledger {
            memory_peak: self.memory.peak(),
            files_ahead: counts.ahead,
            files_ahead_used: counts.used,
            files_ahead_wasted: counts.wasted,
            files_ahead_open: files.map_or(0, FilesAhead::open),
            ..self.ledger
        }
    }

    fn count_hits(&mut self, reader: ReaderId, blocks: u64) -> Option<()> {
        self.readers.reader(reader)?;
        let blocks = u32::try_from(blocks).ok()?;
        self.ledger.reads += u64::from(blocks);
        self.ledger.hits += u64::from(blocks);
        Some(())
    }

    /// Takes memory away, or gives it back.
    fn limit(&mut self, memory: Bytes) -> Option<()> {
        let minimum = Table::memory_for(Table::FRAMES_MIN, self.setup.settings.block_bytes);
        if memory < minimum {
            return None;
        }
        let withheld = self.setup.settings.memory.0.saturating_sub(memory.0);
        if self.memory.withhold(withheld) {
            // Its share was reckoned from more than there is now.
            self.end_plan();
        }
        Some(())
    }

    /// Sets frames aside for bookkeeping that has grown, and returns those it no longer needs.
    fn pay_bookkeeping(&mut self) {
        self.memory.settle();
        while self.memory.owes_frame() {
            match self.obtain() {
                Some(frame) => self.memory.set_aside(frame),
                None if self.end_plan() => {}
                None => return,
            }
        }
    }
}
