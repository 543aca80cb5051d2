//! Windows: ask the detector, tell it how deep, cut to the stream's share of memory.
//!
//! Called when a block is missing or carries the lookahead mark, once its device has a slot ([`defer`](super::defer)).
//! Here detect, depth and admission (cutting to the share) meet; the result goes to
//! the fetch stage.
//!
//! Control law of the share: all streams with blocks ahead of their reader together may hold `unread_percent` of the
//! memory, each the same part. A window may not take its stream above that part, but it always holds the demand, so a
//! stream never stops moving and is never worse off than without a window.
//!
//! Example: 64 MiB, 75 %, 12 streams with blocks ahead: 4 MiB each. A stream with 3 MiB ahead meets its mark; depth
//! allows 2 MiB, and the window is 1 MiB.

use super::Engine;
use super::place::FILE;
use super::read::READER;
use crate::depth::{DeviceFacts, StreamFacts};
use crate::detect::{Access, Ahead, Cause, Direction, Window};
use crate::known;
use crate::queues::{Device, Wanted};
use crate::reclaim::Event;
use crate::stream::Stream;
use crate::table::{Table, flag};
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, ReaderId, saturate};

struct View<'a> {
    table: &'a Table,
    file: FileId,
    limit: u32,
    room: u32,
    block_bytes: u64,
    in_flight_max: u32,
    servers_a_stream: u32,
    device: &'a Device,
    location: Bytes,
}

impl Ahead for View<'_> {
    fn limit(&self) -> u32 {
        self.limit
    }

    fn cached(&self, block: Block) -> bool {
        self.table.find(self.file, block).is_some()
    }

    fn unread(&self, block: Block) -> bool {
        self.table
            .find(self.file, block)
            .is_some_and(|found| found.flags & flag::UNREAD != 0)
    }

    fn switch(&self, distance: u32) -> u32 {
        let distance = Bytes(u64::from(distance) * self.block_bytes);
        let profile = self.device.profile();
        saturate(profile.competitive_depth(distance, self.location).0 / self.block_bytes)
    }

    fn servers(&self) -> u32 {
        self.device.profile().servers().min(self.in_flight_max)
    }

    fn servers_a_stream(&self) -> u32 {
        self.servers_a_stream
    }

    fn room(&self) -> u32 {
        self.room
    }

    fn is_congested(&self) -> bool {
        self.device.is_congested()
    }
}

/// Bounds of the next window of a stream.
struct Bounds {
    limit: u32,
    /// Most blocks that the share of memory allows.
    room: u32,
    /// Requests of the stream on which the device works at once.
    servers: u32,
}

impl Engine {
    /// A block wanted is missing: fetch it, and the detector's window ahead.
    pub(super) fn miss(&mut self, reader: ReaderId, access: Access) {
        let Some((file, lost)) = self
            .readers
            .reader(reader)
            .map(|r| (r.file, r.detect.inside_window(access.block)))
        else {
            return;
        };
        self.ledger.thrashed += u64::from(lost);
        let demand = access.extent(file);
        self.memory.tell(Event::Missed(demand));
        self.change_streams(reader, |streams| streams.lost(access.block));
        let window = self.ask(reader, access, Some(Cause::Miss));
        let ahead = window.map(|w| Extent::new(file, w.start, w.size));
        if !ahead.is_some_and(|w| w.contains(access.block)) {
            self.fetch_only(reader, demand);
        }
        self.open_window(reader, Some(demand), window);
        // A window that is read backward ends with the blocks wanted: the memory may end before.
        if self.memory.table.find(file, access.block).is_none() {
            self.fetch_only(reader, demand);
        }
    }

    /// A lookahead mark was met: the next window is wanted.
    pub(super) fn want_window(&mut self, reader: ReaderId, access: Access) {
        let Some(end) = self.end_of_windows(reader, access.block) else {
            return;
        };
        let window = Wanted::Window {
            reader,
            access,
            end,
        };
        if let Some((place, _)) = self.device_of(reader, end) {
            self.defer(place.device, window);
        }
    }

    /// A deferred window has its slot, unless a read that went on from there had it meanwhile.
    pub(super) fn open_deferred(&mut self, reader: ReaderId, access: Access, end: Block) {
        if self.end_of_windows(reader, access.block) == Some(end) {
            let window = self.ask(reader, access, Some(Cause::Mark));
            self.open_window(reader, None, window);
        }
    }

    /// A read has its turn, and so has the window that begins with its block and still waits for that of another
    /// reader of the file.
    pub(super) fn open_window_of(&mut self, device: DeviceId, file: FileId, position: u64) {
        let readers = &self.readers;
        let reads_it = |id| readers.reader(id).is_some_and(|reader| reader.file == file);
        if let Some(Wanted::Window {
            reader,
            access,
            end,
        }) = self.queues.take_window(device, position, reads_it)
        {
            self.open_deferred(reader, access, end);
        }
    }

    /// The first block that no window of this stream has covered.
    fn end_of_windows(&self, reader: ReaderId, block: Block) -> Option<Block> {
        let stream = self.readers.reader(reader)?.streams().at(block);
        match stream {
            Some(stream) => stream.direction.block(stream.windows_end),
            None => block.0.checked_add(1).map(Block),
        }
    }

    /// Fetches a window and tells its detector if the memory allowed only a part of it.
    pub(super) fn open_window(
        &mut self,
        reader: ReaderId,
        demand: Option<Extent>,
        window: Option<Window>,
    ) {
        let Some(window) = window else { return };
        let Some(file) = self.file_id_of(reader) else {
            return;
        };
        for (first, count) in window.pieces() {
            let extent = Extent { file, first, count };
            let owner = reader;
            self.memory.tell(Event::Window { owner, extent });
            let cut = self.fetch(reader, extent, demand, Some(window));
            self.rejoin(extent);
            if let Some(end) = cut
                && let Some(state) = self.readers.reader_mut(reader)
            {
                state.detect.cut(end);
                self.change_streams(reader, |streams| streams.cut(window.start, end));
                return;
            }
        }
    }

    /// A read begins, or comes to its next block, for methods that see every one.
    pub(super) fn show_read(&mut self, reader: ReaderId, access: Access) {
        let Some(file) = self.file_id_of(reader) else {
            return;
        };
        let demand = access.extent(file);
        // Two windows at most: the current one and the one ahead.
        for _ in 0..2 {
            let window = self.ask(reader, access, None);
            if window.is_none() {
                return;
            }
            self.open_window(reader, Some(demand), window);
        }
    }

    /// Shows the reader's detector a trigger of this cause, or else a read, and notes the window in its stream.
    fn ask(&mut self, reader: ReaderId, access: Access, cause: Option<Cause>) -> Option<Window> {
        let bounds = self.bounds(reader, &access)?;
        let file = self.file_id_of(reader)?;
        let place = self.place(file, access.block)?;
        let device = self.queues.device(place.device)?;
        let blocks = known(self.readers.file(file), FILE)?.blocks;
        let state = known(self.readers.reader_mut(reader), READER)?;
        let spare = self.memory.obtainable();
        let view = View {
            table: &self.memory.table,
            file,
            limit: bounds.limit,
            room: spare.saturating_sub(self.memory.reserve()),
            block_bytes: self.setup.settings.block_bytes.into(),
            in_flight_max: self.setup.settings.in_flight_max,
            servers_a_stream: bounds.servers,
            device,
            location: place.position,
        };
        let window = match cause {
            Some(cause) => state.detect.trigger(cause, &access, &view)?,
            None => state.detect.read(&access, &view)?,
        };
        if window.size == 0 || u64::from(window.start.0) >= blocks {
            return None;
        }
        let room = u64::from(view.room.min(bounds.room)).saturating_sub(window.size.into());
        let window = self.shaped(reader, &access, window, room)?;
        self.ledger.windows += 1;
        // Pieces apart are as few as the device has servers: no run of blocks ahead.
        if window.stride.is_none_or(|stride| stride.is_read_through) {
            self.note(reader, window.begins_at(&access), window);
        }
        Some(window)
    }

    /// How long the next window may be.
    fn bounds(&self, reader: ReaderId, access: &Access) -> Option<Bounds> {
        let state = self.readers.reader(reader)?;
        let new = Stream::new(access.block, Direction::Forward, self.work.now);
        let known = state.streams().of_read(access.block, access.count);
        let stream = known.unwrap_or(&new);
        let asked = u64::from(access.count);
        // More than the memory holds would be given up before it is read.
        let frames = self.memory.frames_usable();
        let (here, device) = self.device_of(reader, access.block)?;
        let streams = saturate(self.streams_with(stream));
        let device = DeviceFacts::new(device.profile(), device.distance(), streams);
        let servers = device.servers_a_stream();
        let limit = self.deep(reader, access, stream, here.position, &device)?;
        let limit = saturate(limit).min(frames);
        let room = self.share(stream).map_or(u64::MAX, |share| {
            let room = share.saturating_sub(stream.ahead()).max(asked);
            // A part of a read is of no use before the rest has come.
            room - room % asked
        });
        let room = saturate(room);
        let limit = limit.min(room);
        Some(Bounds {
            limit,
            room,
            servers,
        })
    }

    /// Limit of the depth method, in blocks instead of bytes, and cut to the slice: of each member
    /// of the file's layout alike, since a long window spreads over all of them.
    fn deep(
        &self,
        reader: ReaderId,
        access: &Access,
        stream: &Stream,
        location: Bytes,
        device: &DeviceFacts<'_>,
    ) -> Option<u64> {
        let unit = self.block_bytes();
        let end = stream.next_block().unwrap_or(access.block);
        let file = self.readers.reader(reader)?.file;
        let next = self.turn(reader, end)?;
        let next_device = self.queues.device(next.device)?;
        let all = u64::from(self.spread(file));
        let facts = StreamFacts {
            asked: Bytes(u64::from(access.count) * unit),
            consumed: Bytes(stream.consumed() * unit),
            is_from_begin: stream.is_from_begin(),
            ahead: Bytes(stream.ahead() * unit),
            last_window: Bytes(u64::from(stream.last_window) * unit),
            waited: stream.waited,
            location,
        };
        let limit = self.setup.depth.limit(&facts, device).0;
        let slice = self.queues.slice_left(next_device, next.position.0).0;
        let slice = slice.saturating_mul(all);
        let times = if self.setup.depth.is_for_each_device() {
            all
        } else {
            1
        };
        let limit = limit.saturating_mul(times);
        // Of a slice little longer than the window, both windows get half: the next turn's would grow from a short one.
        let is_short = slice > limit && slice - limit < limit / 2;
        let bytes = match is_short {
            true => slice / 2,
            false => slice.min(limit),
        };
        Some(bytes.div_ceil(unit).max(1))
    }

    /// Streams that have blocks ahead of their reader, and this one: at least 1.
    fn streams_with(&self, stream: &Stream) -> usize {
        let streams = self.readers.active() + usize::from(stream.ahead() == 0);
        streams.max(1)
    }

    /// Blocks a stream may have ahead of its reader; `None` if there is no bound.
    fn share(&self, stream: &Stream) -> Option<u64> {
        let percent = self.setup.settings.unread_percent;
        if percent == 100 {
            return None;
        }
        Some(self.shares().streams_max(percent) / self.streams_with(stream) as u64)
    }

    pub(super) fn note(&mut self, reader: ReaderId, block: Block, window: Window) {
        let now = self.work.now;
        self.change_streams(reader, |streams| {
            let stream = streams.continued(block, window.direction, now);
            let (_, end) = window.direction.span(window.start, window.size);
            stream.windows_end = stream.windows_end.max(end);
            stream.last_window = window.size;
            stream.last_async = window.async_size;
            stream.waited = false;
        });
    }
}
