//! libCacheSim's oracleGeneral: binary requests that carry the time of their own next use.
//!
//! 24 little-endian bytes without padding: `u32 seconds, u64 object, u32 bytes, i64 next`, where
//! `next` is the index of the next request for the same object, or -1 (also 2^63 - 1) for none.
//! This reader computes next uses itself, so `next` is only checked to be possible.
//!
//! Nothing marks a file as of this format: it is guessed last, where next uses of the first records agree with
//! the objects, and text and any bytes that fit another format are refused. To write it, the future must be known, so all requests are kept
//! until the end, 20 bytes each beside the numbering of objects; there is a limit to how many.

use std::io::Write;

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::record::Record;
use super::{BLOCKS_ONLY, Decode, Encode, Format, Holds, Places, Unit, offset_of};
use crate::count::Numbering;

/// The format.
pub const FORMAT: Format = Format {
    name: "oracle-general",
    summary: "libCacheSim's binary requests with next use, one object each",
    source: "libCacheSim, traceReader/customizedReader/oracle",
    form: FORM,
    is_marked: false,
    is_sure: links_its_uses,
    doubt: "guessed only where next uses fit the objects",
    holds: Holds {
        places: Places::Objects,
        // A request without a time gets zero.
        arrival_unit_ns: Some(SECOND),
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(OracleDecoder::default()),
    writer: || Box::new(Writer::default()),
};

const FORM: &str = "24-byte records: u32 seconds, u64 object, u32 bytes, i64 next use";

const SECOND: u64 = 1_000_000_000;
const RECORD: usize = 24;
/// 2^28 requests take 6 GiB to write: the memory of a large machine.
const WRITTEN_MAX: usize = 1 << 28;

/// Whether times go forward, and each next use comes later and is no other's; one within the beginning is of
/// the same object, counted from 0 or from 1.
fn links_its_uses(head: &[u8]) -> bool {
    let records: Vec<_> = head
        .chunks_exact(RECORD)
        .take(GUESSED)
        .filter_map(parts)
        .collect();
    let is_forward = records.is_sorted_by_key(|(seconds, ..)| *seconds);
    let counted_from = |first: i64| {
        let mut used = std::collections::BTreeSet::new();
        (0_i64..).zip(&records).all(|(at, (_, object, _, next))| {
            let mut later = (at + 1..).zip(&records[at as usize + 1..]);
            let again = later
                .find(|(_, later)| later.1 == *object)
                .map(|(again, _)| again);
            match (again, *next) {
                (Some(again), next) => next == again + first,
                (None, -1 | i64::MAX) => true,
                (None, next) => {
                    let is_behind = next - first >= records.len() as i64 && next < INDEX_MAX;
                    is_behind && used.insert(next)
                }
            }
        })
    };
    is_forward && (counted_from(0) || counted_from(1))
}

/// Records looked at for that.
const GUESSED: usize = 64;
/// No trace has so many requests: 26 TB of records.
const INDEX_MAX: i64 = 1 << 40;

#[derive(Default)]
struct OracleDecoder {
    is_binary: bool,
}

impl Decode for OracleDecoder {
    fn unit(&self) -> Unit {
        Unit::Bytes(RECORD)
    }

    fn take(&mut self, unit: &[u8]) -> Result<Option<Record>, Cause> {
        let Some((seconds, object, bytes, next)) = parts(unit) else {
            return Err(Cause::form(unit, FORM));
        };
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        if !self.is_binary && unit.iter().all(is_text) {
            return Err(Cause::form(unit, FORM));
        }
        self.is_binary = true;
        if next < -1 {
            let accepted = "an index, or -1 for none";
            return Err(Cause::field(
                "next use",
                next.to_string().as_bytes(),
                accepted,
            ));
        }
        Ok(Some(Record {
            bytes,
            arrival: Some(Nanos(u64::from(seconds) * SECOND)),
            ..Record::block(object)
        }))
    }
}

fn parts(unit: &[u8]) -> Option<(u32, u64, u32, i64)> {
    let (seconds, rest) = unit.split_first_chunk()?;
    let (object, rest) = rest.split_first_chunk()?;
    let (bytes, next) = rest.split_first_chunk()?;
    Some((
        u32::from_le_bytes(*seconds),
        u64::from_le_bytes(*object),
        u32::from_le_bytes(*bytes),
        i64::from_le_bytes(next.try_into().ok()?),
    ))
}

/// The requests so far: seconds, size, and the object by its number.
#[derive(Default)]
struct Writer {
    requests: Vec<(u32, u32, u32)>,
    objects: Numbering,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, _out: &mut Vec<u8>) -> Result<(), Cause> {
        let limit = Cause::Long { max: WRITTEN_MAX };
        let object = self.objects.number(offset_of(record));
        let (Some(object), true) = (object, self.requests.len() < WRITTEN_MAX) else {
            return Err(limit);
        };
        let seconds = record.arrival.map_or(0, |arrival| arrival.0) / SECOND;
        let seconds = u32::try_from(seconds).map_err(|_| {
            let accepted = "below 2^32 s: count times from the trace's beginning";
            Cause::field("time", seconds.to_string().as_bytes(), accepted)
        })?;
        self.requests.push((seconds, record.bytes, object));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<(), Cause> {
        let mut next_of = vec![u32::MAX; self.objects.len()];
        let mut nexts = vec![u32::MAX; self.requests.len()];
        for (at, request) in self.requests.iter().enumerate().rev() {
            // Below 2^28, so it fits.
            nexts[at] = std::mem::replace(&mut next_of[request.2 as usize], at as u32);
        }
        let ids = self.objects.ids();
        for ((seconds, bytes, object), next) in self.requests.drain(..).zip(nexts) {
            let next = if next == u32::MAX {
                -1
            } else {
                i64::from(next)
            };
            out.write_all(&seconds.to_le_bytes())?;
            out.write_all(&ids[object as usize].to_le_bytes())?;
            out.write_all(&bytes.to_le_bytes())?;
            out.write_all(&next.to_le_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::record::Place;
    use super::*;

    #[test]
    fn the_next_use_is_written() {
        let (mut writer, mut out) = ((FORMAT.writer)(), Vec::new());
        for object in [7, 8, 7, 7] {
            writer.put(&Record::block(object), &mut out).unwrap();
        }
        assert!(out.is_empty());
        writer.end(&mut out).unwrap();
        let nexts: Vec<_> = out
            .chunks(RECORD)
            .map(|unit| parts(unit).unwrap())
            .collect();
        let wanted = [(0, 7, 0, 2), (0, 8, 0, -1), (0, 7, 0, 3), (0, 7, 0, -1)];
        assert_eq!(nexts, wanted);
    }

    #[test]
    fn text_and_impossible_next_uses_are_refused() {
        let mut reader = OracleDecoder::default();
        assert!(reader.take(b"0.000 0 2389632 16 1\n200").is_err());
        assert!(reader.take(&[0xfe; RECORD]).is_err());
        assert!(reader.take(&[0; RECORD - 1]).is_err());
        assert_eq!(
            reader.take(&[0; RECORD]).unwrap().unwrap().place,
            Place::Block(0)
        );
    }
}
