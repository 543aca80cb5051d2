//! The reference strings of the LIRS work: one block number a line.
//!
//! Numbers are ordinals of first touch, so they serve for counting hits and mean nothing as
//! places. A line `*` marks a break between phases and is no reference. Numbers are written in
//! decimal; some of the files end without a line end.

use std::io::Write;

use super::super::error::Cause;
use super::super::fields::digits;
use super::super::record::Record;
use super::{BLOCKS_ONLY, Decode, Encode, Format, is_comment, offset_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "lirs",
    summary: "buffer-cache reference strings of the LIRS work",
    source: "Jiang and Zhang, LIRS, SIGMETRICS 2002; the traces its authors published",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: BLOCKS_ONLY,
    reader: |_| Box::new(Lirs),
    writer: || Box::new(Lirs),
};

const FORM: &str = "one block number, or * for a break";

struct Lirs;

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
        Ok(writeln!(out, "{}", offset_of(record))?)
    }
}
