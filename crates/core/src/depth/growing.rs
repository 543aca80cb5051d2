//! Growing competitive depth: the longer a run has been, the further ahead it is worth fetching.
//!
//! Let D be the competitive depth. The window is `max(D, alpha x bytes consumed)`, and it grows
//! only while the reader really waits. Each window costs one switch worth D bytes, so a run of x
//! bytes pays about one switch for every factor (1 + alpha) of growth instead of one for every D:
//! with alpha = 1/4, device time falls from 1.99 to 1.10 times the optimum's for a file of 200 D.
//! The waste at the end of a run stays at most `max(D, alpha x consumed)`, so the rule's worst case
//! over all run lengths is 2.043 instead of 2 (algorithm and closed form: `docs/design/0003`).
//! The engine's is another, because of ramp, marks and streams in turn: the table of [`depth`](super).
//!
//! A store works on many requests at once. A stream there has its part of these n servers:
//!
//! ```text
//! window = max(D, alpha x consumed, min(n x D, max(consumed, first)))
//! first  = min(n x read, 4 D)       within a file
//!          4 D - ahead              once it was read from its begin
//! ```
//!
//! A store of 16 servers and D of 2.4 MB: its only reader gets 2.4 MB, or 9.6 MB in reads of 1 MiB; then as many bytes as
//! it has consumed, up to 38 MB. A reader that began with its file mostly reads it to its end, and has 9.6 MB ahead at
//! once, as far as the detector's windows grow: more would delay the first of them on the link. A window that is
//! longer than one read of its reader and shorter than two is as long as two: D of 180 kB and reads of 128 KiB give 256 KiB.
//!
//! Goes beyond Li et al. 2004, whose depth is the case alpha = 0 (`docs/DIFFERENCES.md`).

use alloc::boxed::Box;

use super::{Depth, DeviceFacts, StreamFacts};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::{Bytes, scaled};

pub(super) const METHOD: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "growing",
        summary: "competitive depth, growing with the bytes a stream has consumed, while it waits",
        source: "li04 section 2, extended",
        unfit: "runs that all end just past a window that has grown",
        knows: Knows::Online,
        params: &[Param {
            name: "alpha_percent",
            summary: "window over bytes consumed; 25 costs 4.3 points of worst case and wins 89 \
                      on files of 200 D",
            default: 25,
            min: 0,
            max: 100,
        }],
    },
    build: |values| {
        Box::new(Growing {
            alpha_percent: values.get("alpha_percent"),
        })
    },
};

/// A stream has so many depths ahead at first, as many bytes as a link of four connections brings in the time of a switch, so a program
/// that ends there has made others, and its own bytes, wait for a switch's time at most.
const FIRST_DEPTHS: u64 = 4;

#[derive(Debug)]
struct Growing {
    alpha_percent: u64,
}

impl Depth for Growing {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        let competitive = device.depth(stream.location);
        let grown = Bytes(scaled(stream.consumed.0, self.alpha_percent, 100));
        let servers = u64::from(device.servers_a_stream());
        let times = |of: u64, count| Bytes(of.saturating_mul(count));
        let a_read_each = times(stream.asked.min(competitive).0, servers);
        let most = times(competitive.0, FIRST_DEPTHS);
        let first = match stream.is_from_begin {
            true => Bytes(most.0.saturating_sub(stream.ahead.0)),
            false => a_read_each.min(most),
        };
        let wide = times(competitive.0, servers).min(stream.consumed.max(first));
        let longest = grown.max(wide);
        let waits = stream.waited || stream.consumed == Bytes(0);
        let allowed = match waits {
            true => longest,
            false => longest.min(stream.last_window),
        };
        whole_reads(competitive.max(allowed), stream.asked)
    }
}

/// A window that would end within the second read of its reader ends with that read, because without its
/// end the reader waits as long as without its beginning.
fn whole_reads(window: Bytes, read: Bytes) -> Bytes {
    match window.0 > read.0 && window.0 < read.0.saturating_mul(2) {
        true => Bytes(read.0.saturating_mul(2)),
        false => window.max(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// A device of 8 ms and 80 MB/s has a competitive depth of 640,000 bytes.
    #[test]
    fn windows_grow_while_the_reader_waits_and_hold_whole_reads() {
        let profile = Profile::default();
        let device = DeviceFacts::new(&profile, Bytes(0), u32::MAX);
        for (asked, consumed, last_window, waited, expected) in [
            (4096, 0, 0, true, 640_000),
            (4096, 100_000_000, 1_000_000, true, 25_000_000),
            (4096, 100_000_000, 1_000_000, false, 1_000_000),
            (4096, 100_000_000, 30_000_000, false, 25_000_000),
            (4096, 100_000_000, 0, false, 640_000),
            (500_000, 0, 0, true, 1_000_000),
            (320_000, 0, 0, true, 640_000),
            (640_000, 0, 0, true, 640_000),
            (700_000, 0, 0, true, 700_000),
        ] {
            let stream = StreamFacts {
                asked: Bytes(asked),
                consumed: Bytes(consumed),
                is_from_begin: false,
                ahead: Bytes(0),
                last_window: Bytes(last_window),
                waited,
                location: Bytes(0),
            };
            let limit = METHOD.of(&[25]).limit(&stream, &device);
            assert_eq!(limit, Bytes(expected), "{stream:?}");
        }
    }

    /// A store of 30 ms and 80 MB/s a request has a competitive depth of 2,400,000 bytes.
    #[test]
    fn a_stream_of_a_store_begins_with_four_depths_at_the_begin_of_a_file_and_a_read_for_each_server_within()
     {
        let store = Profile::constant(crate::units::Nanos(30_000_000), 80_000_000).unwrap();
        let store = store.with_servers(16).unwrap().with_most(256);
        for (streams, asked, within, from_begin) in [
            (1, 65_536, 2_400_000, 9_600_000),
            (1, 1_000_000, 9_600_000, 9_600_000),
            (1, 10_000_000, 10_000_000, 10_000_000),
            (8, 1_000_000, 2_400_000, 4_800_000),
            (8, 2_000_000, 4_000_000, 4_800_000),
            (64, 1_000_000, 2_400_000, 2_400_000),
        ] {
            let device = DeviceFacts::new(&store, Bytes(0), streams);
            let limit = |is_from_begin| {
                let stream = StreamFacts {
                    asked: Bytes(asked),
                    is_from_begin,
                    ..StreamFacts::default()
                };
                METHOD.of(&[25]).limit(&stream, &device).0
            };
            let both = (limit(false), limit(true));
            assert_eq!(
                both,
                (within, from_begin),
                "{streams} streams, reads of {asked}"
            );
        }
    }

    #[test]
    fn what_is_ahead_at_the_begin_of_a_file_counts() {
        let store = Profile::constant(crate::units::Nanos(30_000_000), 80_000_000).unwrap();
        let store = store.with_servers(16).unwrap().with_most(256);
        let device = DeviceFacts::new(&store, Bytes(0), 1);
        for (consumed, ahead, expected) in [
            (500_000, 2_000_000, 7_600_000),
            (500_000, 8_600_000, 2_400_000),
            (20_000_000, 8_600_000, 20_000_000),
        ] {
            let stream = StreamFacts {
                asked: Bytes(65_536),
                consumed: Bytes(consumed),
                is_from_begin: true,
                ahead: Bytes(ahead),
                waited: true,
                ..StreamFacts::default()
            };
            let limit = METHOD.of(&[25]).limit(&stream, &device);
            assert_eq!(limit, Bytes(expected), "{stream:?}");
        }
    }
}
