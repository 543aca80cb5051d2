//! The readers of published traces: every format, named or guessed, compressed or not.
//!
//! The first byte chooses the format, one more than there are guesses it; the second the sorting
//! window; the rest is the file. Must hold: no panic; an error names a place, is one line, and ends
//! the trace; its requests are written in every format that can hold them, and a trace of blocks that
//! was read twice is laid out alike.

use std::io::Cursor;

use forerun_fuzz::fuzz;
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{Manner, Requests};
use forerun_sim::trace::convert::convert;
use forerun_sim::trace::{Options, Record, TraceError, format, read};

/// Requests looked at: the rest of a long input tells nothing new.
const REQUESTS: usize = 4096;

fn main() {
    fuzz("trace", read_and_write);
}

fn read_and_write(bytes: &[u8]) -> String {
    let [chosen, window, file @ ..] = bytes else {
        return String::new();
    };
    let format = format::LIST.get(usize::from(*chosen) % (format::LIST.len() + 1));
    let options = Options {
        sort_window: usize::from(*window),
        ..Options::default()
    };
    let file = Cursor::new(file.to_vec());
    let (good, error) = match read("t", file, format, &options) {
        Ok(records) => taken(records),
        Err(error) => (Vec::new(), Some(error)),
    };
    if let Some(error) = &error {
        let message = error.to_string();
        assert!(error.position().is_some(), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
    for format in format::LIST {
        let records = good.iter().map(|record| Ok(*record));
        let _ = convert(records, format, 4096, &mut Vec::new());
    }
    let manner = Manner {
        block_bytes: 1 << 20,
        with_writes: true,
        think: None,
    };
    let recorded = |kept| {
        let records = good.iter().map(|record| Ok((None, *record)));
        Recorded::of(Requests::new(Box::new(records), manner), kept)
    };
    // A request of 2^32 bytes is 4096 blocks: all of them have room.
    let (one, other) = (recorded(None), recorded(Some(Room::ENDLESS)));
    if let (Ok(one), Ok(other)) = (one, other) {
        assert_eq!(one.blocks().ids(), other.blocks().ids());
    }
    format!(
        "{} {:?}",
        good.is_empty(),
        error.map(|error| error.to_string())
    )
}

/// The requests up to the first error, after which there is nothing.
fn taken(mut records: forerun_sim::trace::Records) -> (Vec<Record>, Option<TraceError>) {
    let mut good = Vec::new();
    while good.len() < REQUESTS {
        match records.next() {
            Some(Ok(record)) => good.push(record),
            Some(Err(error)) => {
                assert!(records.next().is_none());
                return (good, Some(error));
            }
            None => break,
        }
    }
    (good, None)
}
