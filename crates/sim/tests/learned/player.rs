//! A depth method without an engine: windows one after the other, as design note 0003 counts them.
//!
//! Each window costs one switch, D, and its bytes, read or not; the optimum pays one switch a
//! stream and the bytes that it consumes. Streams may be open side by side.

use forerun_core::depth::{self, Depth, DeviceFacts, Ended, Opened, Stake, StreamFacts};
use forerun_core::spec::Choice;
use forerun_core::{Bytes, DeviceId, Nanos, Profile};

/// 8 ms and 80 MB/s.
pub(crate) const DEPTH: u64 = 640_000;

/// A stream that is open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Open {
    /// Where its reader has come, and its windows.
    pub(crate) consumed: u64,
    pub(crate) fetched: u64,
    last: u64,
    stake: Stake,
}

/// See the [module](self).
pub(crate) struct Player {
    depth: Box<dyn Depth>,
    profile: Profile,
    /// Device time of windows, and of the optimum for the consumed bytes, in bytes.
    pub(crate) spent: u64,
    pub(crate) optimum: u64,
}

impl Player {
    pub(crate) fn new(text: &str) -> Self {
        let choice = Choice::parse("depth", depth::LIST, text).expect("a depth method");
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).expect("a profile");
        Self {
            depth: choice.build(),
            profile,
            spent: 0,
            optimum: 0,
        }
    }

    fn device(profile: &Profile) -> DeviceFacts<'_> {
        DeviceFacts {
            profile,
            distance: Bytes(0),
            id: DeviceId(0),
            streams: 1,
        }
    }

    /// Opens a stream; the optimum switches to it.
    pub(crate) fn begin(&mut self) -> Open {
        self.optimum += DEPTH;
        Open::default()
    }

    /// Its reader comes to a byte that was not fetched: a window. Returns its length.
    pub(crate) fn window(&mut self, stream: &mut Open) -> u64 {
        assert_eq!(stream.consumed, stream.fetched);
        let facts = StreamFacts {
            asked: Bytes(1),
            consumed: Bytes(stream.consumed),
            last_window: Bytes(stream.last),
            waited: true,
            stake: stream.stake,
            ..StreamFacts::default()
        };
        let device = Self::device(&self.profile);
        let bytes = self.depth.limit(&facts, &device);
        let opened = Opened {
            bytes,
            is_last: false,
        };
        stream.stake = self.depth.opened(&facts, &device, &opened);
        stream.fetched += bytes.0;
        stream.last = bytes.0;
        self.spent += DEPTH + bytes.0;
        self.consume(stream, 1);
        bytes.0
    }

    /// Its reader takes bytes that were fetched.
    pub(crate) fn consume(&mut self, stream: &mut Open, bytes: u64) {
        stream.consumed += bytes;
        assert!(stream.consumed <= stream.fetched);
        self.optimum += bytes;
    }

    /// Its reader leaves it.
    pub(crate) fn end(&mut self, stream: &Open) {
        let ended = Ended {
            consumed: Bytes(stream.consumed),
            members: 1,
            is_cut: false,
            stake: stream.stake,
        };
        self.depth.ended(&ended, &Self::device(&self.profile));
    }

    /// A stream of this length, alone.
    pub(crate) fn play(&mut self, length: u64) {
        let mut stream = self.begin();
        while stream.consumed < length {
            if stream.consumed == stream.fetched {
                self.window(&mut stream);
            } else {
                let left = stream.fetched.min(length) - stream.consumed;
                self.consume(&mut stream, left);
            }
        }
        self.end(&stream);
    }
}
