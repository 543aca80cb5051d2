//! State behind the engine's lock: the engine, and all that must change together with it.
//!
//! [`EngineHost`](crate::engine_host::EngineHost) takes the lock and calls in here; nothing in here blocks. One
//! input goes in, its outputs are carried out as far as that takes no time (an answer is put where
//! its reader waits, a fetch becomes a request), and the rest is left in two lists for the lock
//! holder: threads to wake and requests to submit.
//!
//! It does not submit, wake or write anything itself: those take time, or come back in.

mod readers;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::mem;
use std::sync::Arc;

use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_core::journal::Entry;
use forerun_core::layout::LayoutMap;
use forerun_core::table::{Table, flag};
use forerun_core::{
    Bytes, DeviceId, Engine, Fetch, FileId, Input, Output, Placement, Profile, ReaderId, RequestId,
};

use crate::arena::{Arena, Target};
use crate::backend::{Member, Request};
use crate::catalog::Catalog;
use crate::clock::Ticker;
use crate::deferred_inputs::{DeferredInput, DeferredInputs};
use crate::folder::{Order, Orders};
use crate::geometry::{DiskMember, Geometry};
use crate::numbers::Numbered;
use crate::placing::Placing;
use crate::settle::Looks;
use crate::source::{GiveUp, Identity, Key};
use crate::trimming::Trimming;
use crate::wait::Waiter;
use readers::OpenReader;

/// Where a file lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// On the device of this number.
    Real(u64),
    /// The same, and a server is behind it, which gets so many requests at once at most, or as many as
    /// the memory allows.
    Served(u64, Option<u32>),
    /// On one of those the engine imagines.
    Imagined,
}

/// The system's account of a new file, asked for before the lock was taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Where on its device it begins.
    pub(crate) location: Option<Bytes>,
    /// Prior costs of its device.
    pub(crate) prior: Option<Profile>,
    /// On which array it lies, if it does.
    pub(crate) array: Option<FoundArray>,
}

/// The array on which a file lies.
#[derive(Clone, Debug)]
pub(crate) struct FoundArray {
    pub(crate) geometry: Geometry,
    /// Prior costs of its members, by their numbers.
    pub(crate) priors: HashMap<u64, Option<Profile>>,
}

impl FoundArray {
    /// The number of a member: that of its device, and of disks behind one controller the part above.
    pub(crate) fn number(member: &DiskMember) -> u64 {
        let (major, minor) = member.device.number;
        libc::makedev(major, minor) | u64::from(member.part) << 48
    }
}

/// Imagined devices are numbered from here on, above every `st_dev`.
const IMAGINED: u64 = u64::MAX - u16::MAX as u64;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct EngineState {
    engine: Engine,
    ticker: Ticker,
    arena: Arc<Arena>,
    profile: Profile,
    placing: Placing,
    /// The most memory the engine uses now.
    pub(crate) limit: Bytes,
    /// Which frames need no pages.
    pub(crate) surplus: Trimming,
    /// Lines not written yet, if a journal is kept.
    pub(crate) journal: Option<String>,
    pub(crate) catalog: Catalog,
    readers: Numbered<OpenReader>,
    reads: Numbered<(ReaderId, Arc<Waiter>)>,
    devices: HashMap<u64, DeviceId>,
    taken: Vec<DeferredInput>,
    /// A read was answered with blocks since the last decision.
    answered: bool,
    /// Threads whose answer is there.
    pub(crate) woken: Vec<Arc<Waiter>>,
    /// Requests to submit, in order.
    #[expect(
        clippy::vec_box,
        reason = "boxed once, on its way through several queues"
    )]
    pub(crate) fetches: Vec<Box<Request>>,
    /// How requests are given up, where their source can or a copy holds them up.
    give_ups: HashMap<RequestId, Arc<GiveUp>>,
    /// Those that are to be.
    pub(crate) given_up: Vec<Arc<GiveUp>>,
    /// Folders that are known.
    pub(crate) folders: Numbered<()>,
    /// Orders to the host that opens files ahead.
    pub(crate) orders: Orders,
    /// Requests made and not completed.
    pub(crate) in_flight: u32,
    /// No read may begin any more.
    pub(crate) stopped: bool,
}

/// With so many requests of a mebibyte a network file system is busy.
const SERVED_MAX: u32 = 9;

impl EngineState {
    pub(crate) fn new(
        engine: Engine,
        ticker: Ticker,
        arena: Arc<Arena>,
        profile: Profile,
        placing: Placing,
        journal: bool,
    ) -> Self {
        let head = || forerun_core::journal::head(engine.settings()) + "\n";
        Self {
            journal: journal.then(head),
            limit: engine.settings().memory,
            surplus: Trimming::new(arena.frames()),
            engine,
            ticker,
            arena,
            profile,
            placing,
            catalog: Catalog::default(),
            readers: Numbered::default(),
            reads: Numbered::default(),
            devices: HashMap::new(),
            taken: Vec::new(),
            answered: false,
            woken: Vec::new(),
            fetches: Vec::new(),
            give_ups: HashMap::new(),
            given_up: Vec::new(),
            folders: Numbered::default(),
            orders: Orders::default(),
            in_flight: 0,
            stopped: false,
        }
    }

    /// Hands one input to the engine and carries out its outputs.
    pub(crate) fn feed(&mut self, input: Input) {
        let now = self.ticker.now();
        if let Some(journal) = &mut self.journal {
            // Writing to a string does not fail.
            let _ = writeln!(journal, "{}", Entry::Input(now, input.clone()));
        }
        self.engine.handle(now, input);
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Fetch(fetch) => self.fetch(&fetch),
                Output::Cancel { request } => self.cancel(request),
                Output::Serve { read, served } => self.serve(read, served),
                Output::OpenAhead { folder, entry } => self.orders.add(Order::Open(folder, entry)),
                Output::CloseAhead { reader } => self.orders.add(Order::Close(reader)),
            }
            if let Some(journal) = &mut self.journal {
                let _ = writeln!(journal, "{}", Entry::Output(output));
            }
        }
    }

    /// Hands in the deferred inputs, in order.
    pub(crate) fn drain(&mut self, deferred: &DeferredInputs) {
        let mut taken = mem::take(&mut self.taken);
        deferred.take(&mut taken);
        for event in taken.drain(..) {
            if let DeferredInput::Release(read) = event {
                self.end_read(read);
            }
            self.feed(event.into());
        }
        self.taken = taken;
    }

    /// [`Arena::file_bytes_max`].
    pub(crate) fn file_bytes_max(&self) -> u64 {
        self.arena.file_bytes_max()
    }

    /// The number of a file, which is told to the engine if it is new.
    pub(crate) fn file(
        &mut self,
        key: Key,
        place: Place,
        identity: Option<Identity>,
        bytes: u64,
        found: Found,
        looks: Looks,
    ) -> FileId {
        if let Some(file) = self.catalog.find(&key) {
            return file;
        }
        let on_array = found.array.as_ref().and_then(|array| self.on_array(array));
        let is_found = on_array.is_some();
        let placement = on_array.unwrap_or_else(|| self.elsewhere(place, &found, bytes));
        let layout = LayoutMap::new(&placement, self.arena.block_bytes() as u32);
        let Some(layout) = layout else {
            unreachable!("arrays were checked, and one run of one device is a layout")
        };
        let file = self
            .catalog
            .add(key, identity, bytes, layout, is_found, looks);
        self.feed(Input::File {
            file,
            placement,
            bytes: Bytes(bytes),
        });
        file
    }

    /// Where a file lies on an array that was found; none if it cannot lie so in blocks of this size.
    fn on_array(&mut self, array: &FoundArray) -> Option<Placement> {
        let block_bytes = self.arena.block_bytes() as u32;
        let device = |member: &DiskMember| {
            let number = FoundArray::number(member);
            let prior = array.priors.get(&number).cloned().flatten();
            self.device(number, None, prior)
        };
        let placement = array.geometry.placement(block_bytes, device).ok()?;
        LayoutMap::new(&placement, block_bytes).map(|_| placement)
    }

    /// Where a file lies of which less is known.
    fn elsewhere(&mut self, place: Place, found: &Found, bytes: u64) -> Placement {
        let block_bytes = self.arena.block_bytes() as u64;
        let devices = self.devices_of(place, found.prior.clone());
        self.placing
            .place(&devices, found.location, bytes, block_bytes)
    }

    /// The devices of a new file, at least one.
    fn devices_of(&mut self, place: Place, prior: Option<Profile>) -> Vec<DeviceId> {
        match place {
            Place::Real(device) if !self.placing.is_array() => {
                vec![self.device(device, None, prior)]
            }
            Place::Served(device, most) if !self.placing.is_array() => {
                vec![self.device(device, Some(most.unwrap_or(SERVED_MAX)), prior)]
            }
            // Real devices are numbered from the other end.
            _ => {
                let imagined = self.placing.imagined(self.catalog.next().0);
                let devices = imagined.map(|at| self.device(IMAGINED + at, None, prior.clone()));
                devices.collect()
            }
        }
    }

    /// The number of a device, which is told to the engine if it is new.
    fn device(&mut self, place: u64, most: Option<u32>, prior: Option<Profile>) -> DeviceId {
        // More devices than numbers share the last one: slower, but nothing breaks.
        let next = DeviceId(self.devices.len().min(usize::from(u16::MAX)) as u16);
        let device = *self.devices.entry(place).or_insert(next);
        if device == next {
            let mut profile = prior.unwrap_or_else(|| self.profile.clone());
            if let Some(most) = most {
                profile = profile.with_most(most);
            }
            self.feed(Input::Device { device, profile });
        }
        device
    }

    /// Whether the version of a file is still the one of this number.
    pub(crate) fn is_version(&self, file: FileId, count: u64) -> bool {
        let known = self.catalog.get(file);
        known.is_some_and(|known| known.version.count() == count)
    }

    /// The least and the most memory a limit may allow.
    pub(crate) fn memory_range(&self) -> (Bytes, Bytes) {
        let settings = self.engine.settings();
        (
            Table::memory_for(Table::FRAMES_MIN, settings.block_bytes),
            settings.memory,
        )
    }

    /// Limits the memory the engine uses; if pages may be given back, also the pages in use. The frames it has then.
    pub(crate) fn limit(&mut self, memory: Bytes, give_back: bool) -> u32 {
        self.limit = memory;
        self.feed(Input::Limit { memory });
        let beside = Table::bookkeeping(self.arena.frames()).0;
        let frames = memory.0.saturating_sub(beside) / self.arena.block_bytes() as u64;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        let frames = frames.clamp(Table::FRAMES_MIN, self.arena.frames());
        self.surplus.allow(give_back.then_some(frames));
        frames
    }

    /// Forgets files that were closed long ago, if too many are.
    pub(crate) fn forget_surplus(&mut self, deferred: &DeferredInputs) {
        let Some(left) = self.catalog.surplus() else {
            return;
        };
        self.drain(deferred);
        while let Some(file) = self.catalog.take_closed(left) {
            self.feed(Input::Forget { file });
        }
    }

    /// Turns a fetch into a request for the frames its blocks have right now.
    fn fetch(&mut self, fetch: &Fetch) {
        let Fetch {
            request: number,
            device,
            extent,
            ..
        } = *fetch;
        let block_bytes = self.arena.block_bytes() as u64;
        let offset = u64::from(extent.first.0) * block_bytes;
        let table = self.engine.table();
        let filling = |block| {
            let found = table.find(extent.file, block)?;
            (found.flags & flag::FILLING != 0).then_some(found.frame)
        };
        let mut complete = true;
        // One after the other, not gathered first: there are hundreds.
        let frames = extent.blocks().map_while(|block| {
            let frame = filling(block);
            complete &= frame.is_some();
            frame
        });
        // SAFETY: the engine reserved these frames for this fetch and gives them to no other until it
        // completed; readers that still copy out of them are waited for before the request is
        // submitted (`threads::wait_until_clear`).
        let mut target = unsafe { Target::new(self.arena.clone(), frames) };
        if !complete {
            target = Target::empty(self.arena.clone());
        }
        self.surplus.fills(target.runs());
        let known = self.catalog.get_mut(extent.file);
        let source = known
            .as_ref()
            .filter(|_| target.bytes() > 0)
            .and_then(|k| k.sources().next().cloned());
        let (position, member, version, bytes) = match known {
            Some(known) => {
                known.in_flight += 1;
                let left = known.version.bytes().saturating_sub(offset);
                let bytes = left.min(u64::from(extent.count) * block_bytes);
                let copies = known.layout.copies(offset);
                let place = |copy| known.layout.copy(offset, copy);
                let copy = (0..copies).find(|copy| place(*copy).device == device);
                let copy = copy.unwrap_or(0);
                let member = known.layout.devices().len() > 1 && known.is_found;
                let member = member.then_some(Member {
                    device,
                    copy: (copy as u32, copies as u32),
                });
                (place(copy).position, member, known.version.wanted(), bytes)
            }
            None => (Bytes(0), None, 0, 0),
        };
        self.in_flight += 1;
        let file = extent.file;
        let given_up = Arc::<GiveUp>::default();
        self.give_ups.insert(number, given_up.clone());
        self.fetches.push(Box::new(Request {
            number,
            device,
            member,
            file,
            version,
            source,
            position,
            offset,
            bytes,
            target,
            skip: 0,
            attempts: 0,
            tried: Vec::new(),
            given_up: Some(given_up),
        }));
    }

    /// A fetch is not worth waiting for.
    fn cancel(&mut self, request: RequestId) {
        self.given_up.extend(self.give_ups.remove(&request));
    }

    /// Notes that a request is over.
    pub(crate) fn landed(&mut self, request: RequestId, file: FileId) {
        self.give_ups.remove(&request);
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(known) = self.catalog.get_mut(file) {
            known.in_flight = known.in_flight.saturating_sub(1);
        }
    }

    /// Whether any method expects files.
    pub(crate) fn follows_folders(&self) -> bool {
        self.engine.follows_folders()
    }

    /// Whether every read must enter the engine.
    pub(crate) fn sees_every_read(&self) -> bool {
        self.engine.sees_every_read()
    }

    /// Whether any method decides by the time that owners compute.
    pub(crate) fn uses_cpu_time(&self) -> bool {
        self.engine.uses_cpu_time()
    }

    /// Whether there is room for a hint of so many blocks; none if no method follows hints.
    pub(crate) fn takes_hint(&self, blocks: u32) -> Option<bool> {
        self.engine.takes_hint(blocks)
    }

    /// Most pieces that can be announced.
    pub(crate) fn hints_max(&self) -> u32 {
        self.engine.hints_max()
    }

    /// The streams of all readers.
    pub(crate) fn streams(&self) -> Vec<StreamView> {
        self.engine.streams()
    }

    /// Reads that wait for an answer.
    pub(crate) fn reads_waiting(&self) -> usize {
        self.engine.reads_waiting()
    }

    /// Time has passed: requests that hang hold up others of their device no longer.
    pub(crate) fn look_for_hung(&mut self) {
        let now = self.ticker.now();
        if self.engine.is_held_up(now) {
            self.feed(Input::Decide);
        }
    }

    /// Costs of a device, once they rest on enough requests.
    pub(crate) fn estimate(&self, place: u64) -> Option<Profile> {
        let view = self.engine.device(*self.devices.get(&place)?)?;
        view.confidence.is_enough().then_some(view.profile)
    }

    /// How many bytes may be awaited at once; any number if none.
    pub(crate) fn awaited_max(&self) -> Option<Bytes> {
        let settings = self.engine.settings();
        let mut measure = settings.measure.build();
        measure.told(&self.profile);
        // Fetches of such a device wait in the engine, without memory, until it has a slot.
        let any = measure.limit() < u32::MAX;
        (!any).then_some(self.limit)
    }

    /// The devices, each with its number if it is a real one.
    pub(crate) fn queues(&self) -> Vec<(Option<u64>, DeviceView)> {
        let place = |view: &DeviceView| {
            let mut known = self.devices.iter();
            known
                .find(|(_, device)| **device == view.device)
                .map(|(place, _)| *place)
                .filter(|place| *place < IMAGINED)
        };
        let devices = self.engine.devices().into_iter();
        devices.map(|view| (place(&view), view)).collect()
    }

    /// All that happened by now was fed. A reader that was answered releases its blocks at once, if
    /// releases are wanted: that is the same instant, and the next holder of the lock decides.
    pub(crate) fn decide(&mut self) {
        let releases_at_once = mem::take(&mut self.answered) && self.engine.wants_releases();
        if self.engine.is_undecided() && !releases_at_once {
            self.feed(Input::Decide);
        }
    }

    /// Whether releases are to be fed at once: see [`Engine::wants_releases`].
    pub(crate) fn wants_releases(&self) -> bool {
        self.engine.wants_releases()
    }

    /// The table; it does not change while the lock is held.
    pub(crate) fn table(&self) -> &forerun_core::table::Table {
        self.engine.table()
    }
}
