//! Fetches: frames for the blocks, requests for the devices.
//!
//! Called with an extent by the stages before. Blocks that are resident or in flight are skipped,
//! so nothing is fetched twice; the rest becomes requests of at most `request_max` bytes,
//! queued back to back so that a device that streams can stream; a request lies within one piece of
//! the file's [layout](super::place). The first block of a demand may take any frame; everything
//! else leaves a reserve for demands to come.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::place::{FILE, Side};
use super::{Engine, REQUEST_BYTES};
use crate::depth::DeviceFacts;
use crate::detect::Window;
use crate::hinted::BlockNo;
use crate::known;
use crate::layout::PlaceOnDevice;
use crate::queues::{Class, Device, Request, Want, Wanted};
use crate::table::{Frame, flag};
use crate::units::{Block, DeviceId, Extent, FileId, ReaderId, RequestId, saturate};

/// Windows are not cut into requests shorter than this many blocks, 32 KiB of pages: on a device
/// that pays milliseconds for a switch, a request's own cost is nothing, and a window in one piece
/// cannot be continued in time.
const PIECE_MIN: u32 = 8;
/// Nor, for several servers, into ones shorter than this part of a competitive depth: the transfer of a request is a
/// quarter of its fixed cost then. An eighth was no faster on stores of 30 ms and took twice as many requests.
const PIECE_DEPTHS: u64 = 4;
/// Nor into ones shorter than this. A request costs its client some 0.1 ms of a processor, which a store nearby does not
/// hide: 3 MB of one of 1 ms and 1 GB/s took 24 to 27 ms in parts of 128 to 256 KiB, 35 in ones of 32 KiB.
const PIECE_SERVED: u64 = 256 << 10;

/// A request that blocks are added to.
#[derive(Clone, Copy)]
struct Open {
    id: RequestId,
    /// How many blocks it may get.
    room: u32,
}

impl Engine {
    /// Fetches the missing blocks of `extent`. `demand` names the blocks a reader asked for; the
    /// window, if any, where the lookahead mark goes. Returns the first block that no frame was
    /// found for, or `None` if all were.
    pub(super) fn fetch(
        &mut self,
        owner: ReaderId,
        extent: Extent,
        demand: Option<Extent>,
        window: Option<Window>,
    ) -> Option<Block> {
        let file = known(self.readers.file(extent.file), FILE)?;
        let left = file.blocks.saturating_sub(u64::from(extent.first.0));
        let count = extent.count.min(saturate(left));
        let mark = window.and_then(|w| w.mark());
        let extent = Extent { count, ..extent };
        let side = self.side(extent);
        let mut open: Option<Open> = None;
        let mut cut = None;
        let mut left = self.fetch_max(extent.file);
        for block in extent.blocks() {
            if self.memory.table.find(extent.file, block).is_some() {
                self.close_request(open.take().map(|open| open.id));
                continue;
            }
            let asked = demand.is_some_and(|d| d.contains(block));
            let frame = if left == 0 {
                None
            } else if demand.is_some_and(|d| d.first == block) {
                self.obtain()
            } else {
                self.obtain_spare()
            };
            let Some(frame) = frame else {
                cut = Some(block);
                self.ledger.refused_prefetches += 1;
                break;
            };
            if open.is_some_and(|open| open.room == 0) {
                self.close_request(open.take().map(|open| open.id));
            }
            let Some(mut request) = open.or_else(|| self.open_piece(owner, &side, block, count))
            else {
                break;
            };
            left -= 1;
            request.room -= 1;
            open = Some(request);
            self.reserve(request.id, frame, block, asked, mark == Some(block));
            if !asked && window.is_some_and(|w| w.is_gap(block)) {
                self.read_through(frame);
            }
        }
        self.close_request(open.map(|open| open.id));
        self.dispatch_file(extent.file);
        cut
    }

    /// A request for the piece of the layout that begins at this block, of a window of `window`
    /// blocks.
    fn open_piece(
        &mut self,
        owner: ReaderId,
        side: &Side,
        block: Block,
        window: u32,
    ) -> Option<Open> {
        let file = side.window.file;
        let place = self.copy(file, block, side.copy(block))?;
        let id = self.open_request(place, file, block, Some(owner), None);
        let longest = self.longest(place.device, window, owner);
        let room = longest.min(self.run_of(&place)).max(1);
        Some(Open { id, room })
    }

    /// A request that begins at this block and has none yet.
    pub(super) fn open_request(
        &mut self,
        place: PlaceOnDevice,
        file: FileId,
        first: Block,
        owner: Option<ReaderId>,
        piece: Option<BlockNo>,
    ) -> RequestId {
        self.queues.requests.add(Request {
            device: place.device,
            position: place.position.0,
            extent: Extent::new(file, first, 0),
            owner,
            piece,
            ticket: u64::MAX,
            demand: false,
            sent: None,
            waiters: Vec::new(),
            orphans: Box::default(),
        })
    }

    /// A frame for one more block of a request.
    pub(super) fn reserve(
        &mut self,
        id: RequestId,
        frame: Frame,
        block: Block,
        asked: bool,
        marked: bool,
    ) {
        let Some(request) = known(self.queues.requests.get_mut(id), "an open request exists")
        else {
            return;
        };
        request.extent.count += 1;
        request.demand |= asked;
        let mut flags = flag::FILLING;
        if marked {
            flags |= flag::MARK;
        }
        if asked {
            self.ledger.demanded += 1;
        } else {
            flags |= flag::UNREAD;
            self.ledger.prefetched += 1;
            self.ledger.in_flight += 1;
        }
        self.memory
            .table
            .insert(frame, request.extent.file, block, flags);
        self.memory.set_request(frame, id.0);
    }

    /// A block is fetched only because it lies between others: no read of it is expected.
    fn read_through(&mut self, frame: Frame) {
        self.memory.table.clear(frame, flag::UNREAD);
        self.ledger.prefetched -= 1;
        self.ledger.in_flight -= 1;
        self.ledger.gaps += 1;
    }

    /// A request has all its blocks: into the device's queue.
    pub(super) fn close_request(&mut self, id: Option<RequestId>) {
        let Some(id) = id else { return };
        self.memory.charge(REQUEST_BYTES);
        let Some(request) = self.queues.requests.get(id) else {
            return;
        };
        let want = Want {
            fetch: Wanted::Request(id),
            class: self.class(request),
            owner: request.owner,
            came: self.queues.device(request.device).map_or(0, Device::came),
            position: request.position,
            bytes: self.bytes_of(request.extent),
        };
        self.queues.push(request.device, want);
    }

    fn class(&self, request: &Request) -> Class {
        if request.demand {
            let device = self.queues.device(request.device);
            device.map_or(Class::Program, Device::class)
        } else if request.piece.is_some() {
            Class::Planned
        } else if request.owner.is_some_and(|owner| self.is_ahead(owner)) {
            Class::Ahead { is_awaited: false }
        } else {
            Class::Program
        }
    }

    /// Most blocks of one request of a window of so many, where it goes in parts: half of them, or on a store its part
    /// for each server that the stream has. The first of them is there before the others have their bytes.
    fn longest(&self, device: DeviceId, window: u32, owner: ReaderId) -> u32 {
        let device = self.queues.device(device);
        let bytes = device.map_or(u64::MAX, Device::longest);
        let blocks = (bytes / self.block_bytes()).max(1);
        let longest = self
            .queues
            .request_max(self.memory.frames_usable())
            .min(saturate(blocks));
        match device.filter(|device| self.goes_in_parts(device, owner)) {
            Some(device) => longest.min(self.piece(device, window)),
            None => longest,
        }
    }

    fn piece(&self, device: &Device, window: u32) -> u32 {
        let streams = saturate(self.readers.active().max(1));
        let servers = DeviceFacts::new(device.profile(), device.distance(), streams);
        let least = (device.depth().0 / PIECE_DEPTHS).max(PIECE_SERVED) / self.block_bytes();
        let each = window.div_ceil(servers.servers_a_stream());
        let each = each.max(saturate(least)).min(window.div_ceil(2));
        each.max(PIECE_MIN)
    }

    /// Whether a fetch goes to a device in parts, so that one is read while the other comes. A read at random waits for
    /// all of them. A part of a file ahead is not cut for a device that serves many requests at once: its batch keeps
    /// those busy, and a request of a store costs its time to the first byte, however short it is.
    fn goes_in_parts(&self, device: &Device, owner: ReaderId) -> bool {
        let is_batch = self.is_ahead(owner) && device.profile().servers() > 1;
        let is_whole = is_batch || device.is_crowded() || device.class().is_at_random();
        device.has_limit() && !is_whole && device.bytes_lost() == 0
    }

    fn is_ahead(&self, owner: ReaderId) -> bool {
        let owner = self.readers.reader(owner);
        owner.is_some_and(|owner| owner.is_ahead())
    }

    /// A frame, at the cost of a victim if need be.
    pub(super) fn obtain(&mut self) -> Option<Frame> {
        if self.memory.has_spare() {
            self.make_free();
        }
        if let Some(frame) = self.memory.take_free() {
            return Some(frame);
        }
        self.make_free();
        self.memory.take_free()
    }

    /// Frees frames that readers have let go, or else that of a victim, if there is one.
    fn make_free(&mut self) {
        self.memory.sweep();
        if self.memory.has_free() {
            return;
        }
        if let Some(victim) = self.victim() {
            self.evict(victim);
            self.memory.give_back(victim);
        }
    }

    /// A frame for a block without a waiting read: only while a reserve for demands remains.
    fn obtain_spare(&mut self) -> Option<Frame> {
        if self.memory.obtainable() <= self.memory.reserve() {
            return None;
        }
        self.obtain()
    }

    /// The block of this frame leaves the table.
    pub(super) fn evict(&mut self, frame: Frame) {
        if self.memory.table.flags(frame) & flag::UNREAD != 0 {
            self.ledger.resident_unused -= 1;
            self.ledger.evicted_unused += 1;
        }
        self.ledger.evicted += 1;
        self.memory.table.remove(frame);
    }
}
