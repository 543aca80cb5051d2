//! The reference strings of the LIRS work: one block number a line.
//!
//! Numbers are ordinals of first touch, so they serve for counting hits and mean nothing as
//! places. A line `*` marks a break between phases and is no reference. Numbers are written in
//! decimal; some of the files end without a line end.

use super::super::error::Cause;
use super::super::fields::digits;
use super::super::record::Record;
use super::{BLOCKS_ONLY, Decode, Encode, Format, Options, is_comment, offset_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "lirs",
    summary: "buffer-cache reference strings of the LIRS work",
    source: "Jiang and Zhang, LIRS, SIGMETRICS 2002; the traces its authors published",
    form: FORM,
    is_marked: true,
    holds: BLOCKS_ONLY,
    reader,
    writer,
};

const FORM: &str = "one block number, or * for a break";

struct Lirs;

fn reader(_: &Options) -> Box<dyn Decode> {
    Box::new(Lirs)
}

fn writer() -> Box<dyn Encode> {
    Box::new(Lirs)
}

impl Decode for Lirs {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        let word = line.trim_ascii();
        if word == b"*" || is_comment(word) {
            return Ok(None);
        }
        match digits(word) {
            Some(number) => Ok(Some(Record::block(number))),
            None => Err(Cause::form(line, FORM)),
        }
    }
}

impl Encode for Lirs {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend_from_slice(format!("{}\n", offset_of(record)).as_bytes());
        Ok(())
    }
}
