//! State of the engine, for reports: streams with their windows, devices with their
//! queues.
//!
//! For reports of a driver, at any time between two inputs. A copy: nothing here is used to
//! decide, and asking changes nothing. In the order of their numbers, so that two equal engines
//! give equal answers.
//!
//! ```text
//!   begin            at                                   end
//!     |== consumed ===|-------------- ahead --------------|
//!                               |<--- window: size ------>|
//!                               |          |<-async_size->|
//! ```

use alloc::vec::Vec;

use super::Engine;
use crate::detect::{Direction, Window};
use crate::measure::Confidence;
use crate::profile::Profile;
use crate::stream::Stream;
use crate::units::{Block, Bytes, DeviceId, FileId, ReaderId};

/// A stream: a run of blocks fetched ahead for one reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StreamView {
    /// Its reader.
    pub reader: ReaderId,
    /// In which file.
    pub file: FileId,
    /// Where the run began.
    pub begin: Block,
    /// The first block its reader has not come to.
    pub at: Block,
    /// Blocks from there on that were fetched, or are on the way.
    pub ahead: u64,
    /// The last window opened for it; of size zero if there was none.
    pub window: Window,
    /// Reads that wait for a block of it; others [wait](Engine::reads_waiting) for blocks of no stream.
    pub waiting: u32,
}

/// A device and its work.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceView {
    /// Which.
    pub device: DeviceId,
    /// Fetches that wait in the engine for their turn, decided or not.
    pub queued: usize,
    /// Fetches the driver has and has not completed.
    pub in_flight: u32,
    /// Its costs, as far as they are known.
    pub profile: Profile,
    /// The evidence for them.
    pub confidence: Confidence,
}

impl Engine {
    /// Memory that holds no blocks now: the table, and all that was set aside for streams,
    /// requests, histories and plans.
    #[must_use]
    pub fn bookkeeping(&self) -> Bytes {
        let frames = u64::from(self.memory.frames_usable());
        let blocks = frames * self.block_bytes();
        Bytes(self.setup.settings.memory.0.saturating_sub(blocks))
    }

    /// The streams of all open files, by reader and, in one file, the one used last at the end.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamView> {
        let waiting = self.reads.waiting();
        let mut views = Vec::new();
        for reader in self.readers.ids() {
            let Some(state) = self.readers.reader(reader) else {
                continue;
            };
            let from = waiting.partition_point(|(id, _)| *id < reader);
            let mine = waiting[from..].iter().take_while(|(id, _)| *id == reader);
            let (first, streams) = (views.len(), state.streams().by_use());
            views.extend(streams.iter().map(|s| view(reader, state.file, s)));
            for (_, block) in mine {
                // Streams may overlap; the engine takes the one that began last, and so do we.
                if let Some(at) = streams.iter().rposition(|s| s.covers(*block)) {
                    views[first + at].waiting += 1;
                }
            }
        }
        views
    }

    /// Reads that wait for an answer, of streams and of none.
    #[must_use]
    pub fn reads_waiting(&self) -> usize {
        self.reads.waiting().len()
    }

    /// A device; none if it is not known.
    #[must_use]
    pub fn device(&self, device: DeviceId) -> Option<DeviceView> {
        self.queues.device(device).map(|state| DeviceView {
            device,
            queued: state.queued(),
            in_flight: state.in_flight(),
            profile: state.profile().clone(),
            confidence: state.measure().confidence(),
        })
    }

    /// The devices, by number.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceView> {
        let views = self.queues.ids().filter_map(|id| self.device(id));
        views.collect()
    }
}

fn view(reader: ReaderId, file: FileId, stream: &Stream) -> StreamView {
    let direction = stream.direction;
    let last = direction.position(Block(u32::MAX));
    let block = |at: u64| direction.block(at).unwrap_or(Block(last));
    // The part of the last window that its reader comes to first, or last.
    let begin = stream.windows_end.saturating_sub(stream.last_window.into());
    let start = match direction {
        Direction::Forward => begin,
        Direction::Backward => stream.windows_end.saturating_sub(1),
    };
    let window = Window {
        direction,
        ..Window::forward(
            block(start),
            stream.last_window,
            stream.last_async.min(stream.last_window),
        )
    };
    StreamView {
        reader,
        file,
        begin: block(stream.start.into()),
        at: block(stream.touched),
        ahead: stream.ahead(),
        window,
        waiting: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Access;
    use crate::preset;
    use crate::protocol::{FetchOutcome, Input, Output, Wants};
    use crate::units::{Bytes, Nanos, ReadId};

    /// Hands in an input; the fetches it caused.
    fn handle(engine: &mut Engine, input: Input) -> Vec<crate::Fetch> {
        engine.handle(Nanos(0), input);
        let outputs = core::iter::from_fn(|| engine.poll());
        let fetches = outputs.filter_map(|output| match output {
            Output::Fetch(fetch) => Some(fetch),
            _ => None,
        });
        fetches.collect()
    }

    #[test]
    fn a_stream_its_window_and_who_waits_are_seen_and_so_is_the_devices_queue() {
        let settings = preset::find("mount").unwrap().settings(Bytes(16 << 20));
        let mut engine = Engine::new(settings.unwrap()).unwrap();
        let (device, file, reader) = (DeviceId(0), FileId(0), ReaderId(3));
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let profile = profile.with_servers(1).unwrap();
        let placement = crate::Placement::linear(device, Bytes(0));
        let bytes = Bytes(1 << 30);
        handle(&mut engine, Input::Device { device, profile });
        handle(
            &mut engine,
            Input::File {
                file,
                placement,
                bytes,
            },
        );
        handle(&mut engine, Input::Open { reader, file });
        assert!(engine.streams().is_empty());
        let ask = |read, first| Input::Read {
            read: ReadId(read),
            reader,
            access: Access {
                block: Block(first),
                head: 0,
                count: 16,
                previous: None,
            },
            fresh: true,
            wants: Wants::Presence,
        };
        let fetches = handle(&mut engine, ask(0, 0));
        let [stream] = engine.streams()[..] else {
            panic!("{:?}", engine.streams());
        };
        assert_eq!((stream.begin, stream.at), (Block(0), Block(0)));
        assert_eq!((stream.reader, stream.waiting), (reader, 1));
        assert_eq!(stream.window.start, Block(0));
        assert_eq!(u64::from(stream.window.size), stream.ahead);
        assert!(stream.window.size > 16 && stream.window.async_size > 0);
        let [device] = &engine.devices()[..] else {
            panic!("{:?}", engine.devices());
        };
        assert_eq!(device.in_flight as usize, fetches.len());
        let queued = device.queued;
        handle(&mut engine, ask(1, 10_000));
        assert_eq!(engine.devices()[0].queued, queued + 1, "a read elsewhere");
        for fetch in fetches {
            let (request, outcome) = (fetch.request, FetchOutcome::Done);
            handle(&mut engine, Input::Completed { request, outcome });
        }
        let stream = engine.streams()[0];
        assert_eq!((stream.at, stream.waiting), (Block(16), 0));
    }
}
