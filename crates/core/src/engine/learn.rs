//! Learning: the depth method is told of windows and of ends of streams.
//!
//! Called by the window stage for each window, and by `streams` whenever some ended. Of the
//! other stages it asks [`place`](super::place) alone. Windows that leave gaps out belong to no stream, and the first one of a
//! file that is opened ahead is a guess about files, not about lengths: neither is told of.

use super::Engine;
use crate::depth::{DeviceFacts, Ended, Opened, Stake, StreamFacts};
use crate::detect::Window;
use crate::device::Device;
use crate::stream::Stream;
use crate::units::{Block, Bytes, DeviceId, Extent, FileId, ReaderId};

/// Whether a request there would continue the device's last one.
pub(super) fn is_there(device: &Device, position: Bytes) -> bool {
    device.last_end == position.0 && device.queue.is_empty()
}

impl Engine {
    /// Facts of a device for the depth stage, about this stream.
    pub(super) fn device_facts<'a>(
        &self,
        id: DeviceId,
        device: &'a Device,
        stream: &Stream,
    ) -> DeviceFacts<'a> {
        DeviceFacts {
            profile: device.profile(),
            distance: device.distance,
            id,
            streams: u32::try_from(self.streams_with(stream)).unwrap_or(u32::MAX),
        }
    }

    /// Streams that have blocks ahead of their reader, and this one: at least 1.
    pub(super) fn streams_with(&self, stream: &Stream) -> usize {
        let streams = self.active_streams + usize::from(stream.ahead() == 0);
        streams.max(1)
    }

    /// Whether the first block of a window lies where its device's last request ends, so that the
    /// device need not switch. Asked before the window is fetched: afterwards it is the last request.
    pub(super) fn continues(&self, file: FileId, window: &Window) -> bool {
        let place = self.place(file, window.start);
        let device = place.and_then(|place| Some((place, self.devices.get(&place.device)?)));
        device.is_some_and(|(place, device)| is_there(device, place.position))
    }

    /// Facts of a stream about its next window.
    pub(super) fn stream_facts(&self, stream: &Stream) -> StreamFacts {
        let unit = u64::from(self.settings.block_bytes);
        StreamFacts {
            consumed: Bytes(stream.consumed() * unit),
            ahead: Bytes(stream.ahead() * unit),
            last_window: Bytes(u64::from(stream.last_window) * unit),
            waited: stream.waited,
            stake: stream.stake,
            ..StreamFacts::default()
        }
    }

    /// A window of a stream was opened, of which the memory allowed the blocks before `end`.
    pub(super) fn learn_window(
        &mut self,
        reader: ReaderId,
        demand: Option<Extent>,
        window: &Window,
        end: u64,
        continues: bool,
    ) {
        let stake = self.stake(reader, demand, window, end, continues);
        if let Some(stake) = stake
            && let Some(state) = self.readers.get_mut(&reader)
            && let Some(stream) = state.streams.at_mut(window.start)
        {
            stream.stake = stake;
        }
    }

    fn stake(
        &mut self,
        reader: ReaderId,
        demand: Option<Extent>,
        window: &Window,
        end: u64,
        continues: bool,
    ) -> Option<Stake> {
        if window.stride.is_some_and(|stride| !stride.is_read_through) {
            return None;
        }
        let unit = u64::from(self.settings.block_bytes);
        let state = self.readers.get(&reader)?;
        let stream = state.streams.at(window.start)?;
        let blocks = self.files.get(&state.file)?.blocks;
        let end = end.min(blocks);
        let (begin, is_last) = stream.direction.run(window.start, end, blocks)?;
        let facts = StreamFacts {
            asked: Bytes(demand.map_or(0, |demand| u64::from(demand.count)) * unit),
            is_early: demand.is_none(),
            ahead: Bytes(begin.saturating_sub(stream.touched) * unit),
            members: self.spread(state.file),
            ..self.stream_facts(stream)
        };
        let opened = Opened {
            bytes: Bytes(end.checked_sub(window.start.0.into())? * unit),
            is_last,
        };
        let place = self.place(state.file, window.start)?;
        let device = self.devices.get(&place.device)?;
        let facts = StreamFacts {
            location: place.position,
            continues,
            ..facts
        };
        let before = self.depth.state_bytes();
        let device = self.device_facts(place.device, device, stream);
        let stake = self.depth.opened(&facts, &device, &opened);
        let grown = self.depth.state_bytes() - before;
        self.memory.charge(i64::try_from(grown).unwrap_or(i64::MAX));
        Some(stake)
    }

    /// Streams of a reader ended.
    pub(super) fn learn_ends(&mut self, reader: ReaderId, ended: &[crate::stream::Ended]) {
        let Some(file) = self.readers.get(&reader).map(|reader| reader.file) else {
            return;
        };
        let unit = u64::from(self.settings.block_bytes);
        let blocks = self.files.get(&file).map_or(0, |file| file.blocks);
        for crate::stream::Ended { stream, is_changed } in ended {
            let at = stream
                .direction
                .block(stream.start.into())
                .unwrap_or(Block(0));
            let Some(place) = self.place(file, at) else {
                continue;
            };
            let Some(device) = self.devices.get(&place.device) else {
                continue;
            };
            let end = Ended {
                consumed: Bytes(stream.consumed() * unit),
                members: self.spread(file),
                is_cut: *is_changed || stream.direction.is_end(stream.touched, blocks),
                stake: stream.stake,
            };
            let device = self.device_facts(place.device, device, stream);
            self.depth.ended(&end, &device);
        }
    }
}
