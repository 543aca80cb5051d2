//! Writing a trace in another format: the conversion of `forerun trace convert`.
//!
//! A request is first made to fit. Where the format knows only blocks, a range becomes one
//! reference for each block it touches, the computing before the first; where it knows only
//! ranges, a block becomes the range of its bytes, and one that is longer than a block is refused; where it
//! counts sectors, ranges are widened to whole ones. Blocks of different devices stay different where the format knows no devices: the
//! device goes into the upper 24 bits of the number.
//!
//! Facts that the format cannot hold are left out and counted, so that a caller can report the
//! loss. A format whose every request has a time refuses a trace without times: none are made up.
//!
//! It streams, except into `oracle-general`, which must know the future.

use std::io::Write;

use super::error::{Cause, TraceError};
use super::fields::SECTOR;
use super::format::{Format, Holds, Places};
use super::record::{Op, Place, Record};

/// How much is written at once.
const CHUNK: usize = 64 << 10;
/// Block numbers below this leave room for the device above them.
const DEVICE_SHIFT: u32 = 40;

/// Counts of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Converted {
    /// Requests read.
    pub requests: u64,
    /// Requests written: more where ranges became blocks.
    pub written: u64,
    /// Writes that the format cannot tell from reads.
    pub lost_writes: u64,
    /// Requests that lost their device, or have it in the block number.
    pub lost_devices: u64,
    /// Requests that lost their time.
    pub lost_arrivals: u64,
    /// Requests whose time is rounded down to the format's unit.
    pub rounded_arrivals: u64,
    /// Ranges that became longer: whole blocks or sectors.
    pub widened: u64,
    /// Requests that lost the computing before them.
    pub lost_computes: u64,
    /// Requests that lost their response time.
    pub lost_responses: u64,
    /// Requests that lost their label.
    pub lost_labels: u64,
    /// Requests that lost their process.
    pub lost_processes: u64,
}

/// Why a trace cannot be converted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConvertError {
    /// It cannot be read.
    Read(TraceError),
    /// A request cannot be written.
    Write {
        /// Which one, from 1.
        request: u64,
        /// The format.
        format: &'static str,
        /// Why.
        cause: Cause,
    },
}

impl core::fmt::Display for ConvertError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write {
                request,
                format,
                cause,
            } => write!(
                f,
                "request {request} cannot be written as {format}: {cause}"
            ),
        }
    }
}

impl core::error::Error for ConvertError {}

/// Writes all requests of a trace in a format, in blocks of this size where it has blocks.
///
/// # Errors
/// A request that cannot be read, or that this format cannot hold; earlier output stays.
pub fn convert(
    records: impl IntoIterator<Item = Result<Record, TraceError>>,
    format: &Format,
    block_bytes: u32,
    out: &mut impl Write,
) -> Result<Converted, ConvertError> {
    let mut encoder = (format.writer)();
    let mut converted = Converted::default();
    let mut chunk = Vec::with_capacity(CHUNK);
    let fail = |request, cause| ConvertError::Write {
        request,
        format: format.name,
        cause,
    };
    for record in records {
        let record = record.map_err(ConvertError::Read)?;
        converted.requests += 1;
        converted.lose(&record, &format.holds);
        let mut bytes = 0;
        for fitted in fit(&record, &format.holds, block_bytes) {
            fitted
                .and_then(|fitted| {
                    bytes += u64::from(fitted.bytes);
                    encoder.put(&fitted, &mut chunk)
                })
                .map_err(|cause| fail(converted.requests, cause))?;
            converted.written += 1;
        }
        let is_range = matches!(record.place, Place::Byte(_)) && record.bytes > 0;
        converted.widened += u64::from(is_range && bytes > record.bytes.into());
        if chunk.len() >= CHUNK {
            let flushed = out.write_all(&chunk);
            flushed.map_err(|error| fail(converted.requests, error.into()))?;
            chunk.clear();
        }
    }
    let flushed = out.write_all(&chunk).map_err(Cause::from);
    flushed
        .and_then(|()| encoder.end(out))
        .and_then(|()| Ok(out.flush()?))
        .map_err(|cause| fail(converted.requests, cause))?;
    Ok(converted)
}

impl Converted {
    fn lose(&mut self, record: &Record, holds: &Holds) {
        self.lost_writes += u64::from(!holds.op && record.op == Op::Write);
        self.lost_devices += u64::from(!holds.device && record.device != 0);
        self.lost_arrivals +=
            u64::from(holds.arrival_unit_ns.is_none() && record.arrival.is_some());
        self.rounded_arrivals += match (holds.arrival_unit_ns, record.arrival) {
            (Some(unit), Some(arrival)) => u64::from(arrival.0 % unit > 0),
            _ => 0,
        };
        self.lost_computes += u64::from(!holds.compute && record.compute.is_some());
        self.lost_responses += u64::from(!holds.response && record.response.is_some());
        self.lost_labels += u64::from(!holds.label && record.label.is_some());
        self.lost_processes += u64::from(!holds.process && record.process.is_some());
    }
}

/// A request in the terms of the format: one, or one for each block.
fn fit(
    record: &Record,
    holds: &Holds,
    block_bytes: u32,
) -> impl Iterator<Item = Result<Record, Cause>> {
    let (record, holds) = (*record, *holds);
    let blocks = match holds.places {
        Places::Blocks | Places::Objects => record.blocks(block_bytes),
        Places::Bytes | Places::Sectors | Places::Within(_) | Places::All => 0..=0,
    };
    let first = *blocks.start();
    blocks.map(move |block| {
        if holds.needs_arrival && record.arrival.is_none() {
            return Err(Cause::field("time", b"", "there: the format needs it"));
        }
        match holds.places {
            Places::Blocks | Places::Objects => {
                let compute = record.compute.filter(|_| block == first);
                as_block(&Record { compute, ..record }, &holds, block, block_bytes)
            }
            Places::Bytes => as_range(&record, block_bytes, 1),
            Places::Sectors => as_range(&record, block_bytes, SECTOR),
            Places::Within(span) => within(&as_range(&record, block_bytes, 1)?, span),
            Places::All => Ok(record),
        }
    })
}

/// A range that no multiple of the span divides.
fn within(record: &Record, span: u64) -> Result<Record, Cause> {
    let blocks = record.blocks(u32::try_from(span).unwrap_or(u32::MAX));
    if blocks.start() == blocks.end() {
        return Ok(*record);
    }
    let found = format!("{:?} of {} bytes", record.place, record.bytes);
    let accepted = "inside one block of the format";
    Err(Cause::field("range", found.as_bytes(), accepted))
}

fn as_block(record: &Record, holds: &Holds, block: u64, block_bytes: u32) -> Result<Record, Cause> {
    let apart = if holds.device { 0 } else { record.device };
    if apart != 0 && (block >> DEVICE_SHIFT != 0 || apart >> (64 - DEVICE_SHIFT) != 0) {
        let accepted = "below 2^24, with blocks below 2^40, where the format has no devices";
        return Err(Cause::field(
            "device",
            apart.to_string().as_bytes(),
            accepted,
        ));
    }
    let bytes = match (holds.places, record.place) {
        (Places::Blocks, _) => 0,
        (_, Place::Byte(_)) => block_bytes,
        (_, Place::Block(_)) => record.bytes,
    };
    Ok(Record {
        place: Place::Block(block | u64::from(apart) << DEVICE_SHIFT),
        bytes,
        ..*record
    })
}

/// A range of whole grains.
fn as_range(record: &Record, block_bytes: u32, grain: u64) -> Result<Record, Cause> {
    let (offset, bytes) = match record.place {
        Place::Byte(offset) => (Some(offset), record.bytes),
        Place::Block(number) if record.bytes == 0 => {
            (number.checked_mul(block_bytes.into()), block_bytes)
        }
        Place::Block(_) if record.bytes > block_bytes => {
            return Err(Cause::Size {
                bytes: record.bytes,
                block_bytes,
            });
        }
        Place::Block(number) => (number.checked_mul(block_bytes.into()), record.bytes),
    };
    let range = offset.and_then(|offset| {
        let start = offset / grain * grain;
        let end = offset
            .checked_add(bytes.into())?
            .checked_next_multiple_of(grain)?;
        let bytes = u32::try_from(end - start).ok()?;
        Some((start, Record::range(start, bytes)?.bytes))
    });
    let accepted = "bytes that end below 2^64, at most 2^32 of them";
    let wrong = || Cause::field("range", format!("{:?}", record.place).as_bytes(), accepted);
    let (start, bytes) = range.ok_or_else(wrong)?;
    Ok(Record {
        place: Place::Byte(start),
        bytes,
        ..*record
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::Nanos;

    fn text(format: &str, records: &[Record]) -> (String, Result<Converted, ConvertError>) {
        let mut out = Vec::new();
        let format = Format::named(format).unwrap();
        let done = convert(records.iter().copied().map(Ok), format, 4096, &mut out);
        (String::from_utf8(out).unwrap(), done)
    }

    #[test]
    fn a_range_becomes_its_blocks_and_says_what_it_lost() {
        let record = Record {
            device: 3,
            op: Op::Write,
            compute: Some(Nanos(1500)),
            arrival: Some(Nanos(9)),
            ..Record::range(4000, 200).unwrap()
        };
        let (plain, done) = text("plain", &[record]);
        assert_eq!(plain, "0 3 1.500\n1 3\n");
        let done = done.unwrap();
        assert_eq!((done.requests, done.written), (1, 2));
        assert_eq!((done.lost_writes, done.lost_arrivals), (1, 1));
        assert_eq!((done.lost_devices, done.lost_computes), (0, 0));
        let (lirs, _) = text("lirs", &[record]);
        assert_eq!(lirs, format!("{}\n{}\n", 3u64 << 40, (3u64 << 40) + 1));
    }

    #[test]
    fn a_block_becomes_a_range_if_it_has_a_time() {
        let mut record = Record::block(5);
        let (_, refused) = text("disksim", &[record]);
        let message = refused.unwrap_err().to_string();
        let wanted = "request 1 cannot be written as disksim: time \"\": must be there";
        assert!(message.starts_with(wanted), "{message}");
        record.arrival = Some(Nanos(1_500_000));
        assert_eq!(text("disksim", &[record]).0, "1.500000 0 40 8 1\n");
        record.place = Place::Block(u64::MAX);
        assert!(text("disksim", &[record]).1.is_err());
    }

    #[test]
    fn objects_that_would_lie_over_each_other_are_refused() {
        let object = |bytes| Record {
            bytes,
            arrival: Some(Nanos(0)),
            ..Record::block(5)
        };
        assert_eq!(text("disksim", &[object(4096)]).0, "0.000000 0 40 8 1\n");
        for format in ["disksim", "spc", "cachelib-block"] {
            let (out, refused) = text(format, &[object(4096), object(4097)]);
            let message = refused.unwrap_err().to_string();
            let wanted = format!(
                "request 2 cannot be written as {format}: 4097 bytes of an object: must be at most 4096 \
                 (--block-bytes), or objects lie over each other"
            );
            assert_eq!((message, out.as_str()), (wanted, ""));
        }
        // A format of objects has their sizes.
        assert!(text("webcachesim", &[object(4097)]).1.is_ok());
    }

    #[test]
    fn sectors_are_whole() {
        let mut record = Record::range(700, 400).unwrap();
        record.arrival = Some(Nanos(0));
        assert_eq!(text("disksim", &[record]).0, "0.000000 0 1 2 1\n");
    }
}
