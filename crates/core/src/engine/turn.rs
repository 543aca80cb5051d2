//! Turns: the facts by which the dispatch stage chooses, and how long a window may be meanwhile.
//!
//! Asked by [`send`](super::send), [`window`](super::window) and [`fetch`](super::fetch). For every request at a device,
//! with frames or [deferred](super::defer): where it begins there, and at which amount of the
//! device's work it is due. A leaf: it changes nothing and calls no other stage but
//! [`place`](super::place).

use alloc::vec::Vec;

use super::Engine;
use super::pace::Pace;
use crate::budget::Shares;
use crate::deferred::Deferred;
use crate::device::Device;
use crate::dispatch::Waiting;
use crate::profile::Profile;
use crate::request::Request;
use crate::units::{Bytes, FileId, ReaderId, RequestId};

/// Beyond so many deferred requests each counts as a run: to sort them costs more than the few that
/// continue another change, since slices are no shorter by then.
const RUNS_COUNTED: usize = 512;

/// While requests hang, a fetch takes at most this part of the frames that do not hang with them. Half of
/// those may be in flight: 64 objects more can be tried before the next that hang are known.
const HUNG_PART: u32 = 128;

/// A request that makes no sense any more: first in line, to be gone.
const VOID: Waiting = Waiting {
    position: u64::MAX,
    due: 0,
};

impl Engine {
    /// Whether requests for a device of this profile are deferred in the engine, without memory,
    /// until it has a slot. A request for any other takes its frames at once.
    #[must_use]
    pub fn waits_in_here(&self, profile: &Profile) -> bool {
        let mut device = Device::new(self.settings.measure.build());
        device.measure.told(profile);
        self.holds_back(&device)
    }

    /// Whether requests for this device are deferred until it has a slot.
    pub(super) fn holds_back(&self, device: &Device) -> bool {
        self.dispatch.holds_back() && device.measure.limit() < u32::MAX
    }

    /// A queued request, as the dispatch method sees it.
    pub(super) fn waiting(&self, id: RequestId) -> Waiting {
        let request = self.requests.get(id);
        debug_assert!(request.is_some(), "a queue holds requests that exist");
        request.map_or(VOID, |request| Waiting {
            position: request.position,
            due: self.due(request.owner, request.member, request.came),
        })
    }

    /// A deferred request, as the dispatch method sees it.
    pub(super) fn waiting_deferred(&self, deferred: &Deferred) -> Waiting {
        let (reader, member) = (Some(deferred.reader), deferred.member as usize);
        Waiting {
            position: deferred.position,
            due: self.due(reader, member, deferred.came),
        }
    }

    /// The virtual finish time of a reader's work on a device, or the device's work when the
    /// request came, whichever is later.
    fn due(&self, reader: Option<ReaderId>, member: usize, came: u64) -> u64 {
        let reader = reader.and_then(|reader| self.readers.get(&reader));
        let account = reader.and_then(|reader| reader.accounts.get(member));
        account.map_or(came, |account| came.max(*account))
    }

    /// How long a window may be whose first request begins here: the rest of the slice of the run that it
    /// continues, or else a slice.
    pub(super) fn slice_left(&self, device: &Device, position: u64) -> Bytes {
        if !self.holds_back(device) {
            return Bytes(u64::MAX);
        }
        let runs = self.runs(device);
        if runs == 0 {
            return Bytes(u64::MAX);
        }
        let head = device.head();
        let rest = head.slice.0.saturating_sub(head.run.0);
        match device.switches_to(position) || rest == 0 {
            true => self.slice(device, runs + 1),
            false => Bytes(rest),
        }
    }

    /// How long a run may get that begins now, of so many.
    pub(super) fn slice(&self, device: &Device, runs: usize) -> Bytes {
        self.dispatch.slice(device.depth(), device.second(), runs)
    }

    /// How many runs wait at a device: requests that continue no other that waits.
    pub(super) fn runs(&self, device: &Device) -> usize {
        if device.deferred.len() > RUNS_COUNTED {
            return device.deferred.len();
        }
        let queue = device.queue.iter();
        let queued = queue.filter_map(|id| self.requests.get(*id));
        let queued = queued.map(|request: &Request| {
            let bytes = self.bytes_of(request.extent);
            (request.position, request.position.saturating_add(bytes.0))
        });
        let deferred = device.deferred.iter();
        let deferred = deferred.map(|d| (d.position, d.position.saturating_add(d.bytes.0)));
        let (mut begins, mut ends): (Vec<u64>, Vec<u64>) = queued.chain(deferred).unzip();
        ends.sort_unstable();
        begins.sort_unstable();
        begins.dedup();
        let begins = begins.iter();
        begins.filter(|at| ends.binary_search(at).is_err()).count()
    }

    /// Most requests that a device may have now, beside those that hang. Those of a server that may never
    /// answer, and of any device while requests hang, hold at most half the memory that is left beside those
    /// of other devices, because it is lost to others until then.
    pub(super) fn most(&self, device: &Device) -> u32 {
        let frames = u64::from(self.memory.frames_usable());
        let all: u64 = self.devices.iter().map(|(_, d)| d.bytes_in_flight()).sum();
        let others = all - device.bytes_live();
        let left = (frames * u64::from(self.settings.block_bytes)).saturating_sub(others);
        let longest = u64::from(self.request_max()) * u64::from(self.settings.block_bytes);
        let most = match device.profile().is_served() || self.hung_frames() > 0 {
            true => device.limit_in(Bytes(left / 2), Bytes(longest), self.now),
            false => device.limit(self.now),
        };
        most.min(self.settings.in_flight_max)
    }

    /// The frames, and the parts that producers have of them.
    pub(super) fn shares(&self) -> Shares {
        Shares {
            frames: self.memory.frames_usable(),
            plan: self.plan.as_ref().map_or(0, |plan| plan.blocks()),
            ahead: self.next_file.blocks(),
        }
    }

    /// Frames of requests that hang, lost until those end.
    pub(super) fn hung_frames(&self) -> u32 {
        let hung: u64 = self.devices.iter().map(|(_, d)| d.bytes_hung()).sum();
        let frames = hung.div_ceil(u64::from(self.settings.block_bytes));
        u32::try_from(frames).unwrap_or(u32::MAX)
    }

    /// Frames beside those.
    fn frames_left(&self) -> u32 {
        self.memory
            .frames_usable()
            .saturating_sub(self.hung_frames())
    }

    /// Most blocks that a fetch may take. While requests hang, any other may hang as well: each takes a
    /// small part of the frames that are left, so that there is always some for the next.
    pub(super) fn fetch_max(&self) -> u32 {
        match self.hung_frames() {
            0 => u32::MAX,
            _ => (self.frames_left() / HUNG_PART).max(1),
        }
    }

    /// The same for this file: one block, enough to see whether it comes, while another of it hangs.
    pub(super) fn fetch_max_of(&self, file: FileId) -> u32 {
        match self.pace(file) {
            Pace::Hangs => 1,
            _ => self.fetch_max(),
        }
    }

    /// Most blocks of one request.
    pub(super) fn request_max(&self) -> u32 {
        let longest = self.settings.request_max.0 / u64::from(self.settings.block_bytes);
        u32::try_from(longest)
            .unwrap_or(u32::MAX)
            .min(self.fetch_max())
    }
}
