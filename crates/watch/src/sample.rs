//! Samples: the records that the kernel writes into a ring of perf events, taken apart.
//!
//! A pure function of bytes and layouts. One record:
//!
//! ```text
//! type u32, misc u16, size u16 | pid u32, tid u32 | time u64 | size u32, the event's bytes
//!                                PERF_SAMPLE_TID    .._TIME    .._RAW
//! ```
//!
//! A record of another kind, or one that is shorter than its layout, is no sample of ours and is passed over.

use std::str::FromStr;

use forerun_core::Nanos;
pub use forerun_steering::events::{Ahead, Cause, Request};
use forerun_surface::failure::Failure;

use crate::tracepoint::{Field, Tracepoint};

/// The parts of a sample that are asked for: `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW`.
pub const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 10;

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// Bytes of a record before the event's own.
const HEAD: usize = 28;

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// Of the page cache.
    Ahead(Ahead),
    /// Sectors that a thread sends for, to be read ahead: process, thread, and their place.
    Bio(u32, u32, Request),
    /// Of a disk.
    Request(Request),
    /// So many events did not fit the ring.
    Lost(u64),
}

impl Record {
    /// When it happened, as far as it says so.
    #[must_use]
    pub fn time(&self) -> Nanos {
        match self {
            Self::Ahead(ahead) => ahead.time,
            Self::Bio(_, _, request) | Self::Request(request) => request.time,
            Self::Lost(_) => Nanos(0),
        }
    }
}

/// Where the fields of the watched events stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layouts {
    ahead: Vec<(AheadLayout, Cause)>,
    bio: Option<RequestLayout>,
    requests: [RequestLayout; 2],
    /// Pages of 4 KiB in one of the kernel's.
    page: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct AheadLayout {
    id: u64,
    kind: Field,
    inode: Field,
    device: Field,
    index: Field,
    size: Field,
    async_size: Field,
    limit: Field,
    asked: Field,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct RequestLayout {
    id: u64,
    kind: Field,
    device: Field,
    sector: Field,
    sectors: Field,
}

/// The events that tell of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seeing {
    /// Those of the kernel's readahead, of Linux 6.18 and later: file, page, window and limit.
    Readahead,
    /// Those of its block layer: a thread and sectors. The rest is [rebuilt](crate::bios).
    Block,
}

/// Requests of disks, when they are issued and when they complete.
const REQUESTS: [(&str, &str); 2] = [("block", "block_rq_issue"), ("block", "block_rq_complete")];

impl Seeing {
    /// Both, by their names.
    pub const LIST: [(&'static str, Self); 2] =
        [("readahead", Self::Readahead), ("block", Self::Block)];

    /// As it is written on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Readahead => "readahead",
            Self::Block => "block",
        }
    }

    /// The events of reads, of which each wakes the watch.
    #[must_use]
    pub fn urgent(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Readahead => &[
                ("readahead", "page_cache_sync_ra"),
                ("readahead", "page_cache_async_ra"),
            ],
            Self::Block => &[("block", "block_bio_queue")],
        }
    }

    /// All events, those of disks behind the urgent ones.
    #[must_use]
    pub fn events(self) -> Vec<(&'static str, &'static str)> {
        self.urgent().iter().chain(&REQUESTS).copied().collect()
    }
}

impl FromStr for Seeing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::LIST.into_iter().find(|(name, _)| *name == text);
        found
            .map(|(_, seeing)| seeing)
            .ok_or_else(|| "must be readahead or block".into())
    }
}

impl Layouts {
    /// The layouts of the [events](Seeing::events) of a way of seeing, of a kernel whose pages are so many of 4 KiB each.
    ///
    /// # Errors
    /// A field that one of them lacks.
    pub fn new(seeing: Seeing, events: &[Tracepoint], page: u32) -> Result<Self, Failure> {
        let names = seeing.events();
        let at = |at: usize| match events.get(at) {
            Some(event) => Ok((event, names[at].1)),
            None => Err(Failure::Run(format!(
                "the event {} is missing",
                names[at].1
            ))),
        };
        let requests = |first: usize| -> Result<_, Failure> {
            let ((issue, name), (complete, other)) = (at(first)?, at(first + 1)?);
            Ok([request(issue, name)?, request(complete, other)?])
        };
        Ok(match seeing {
            Seeing::Readahead => {
                let ((sync, name), (mark, other)) = (at(0)?, at(1)?);
                let ahead = vec![
                    (ahead(sync, name)?, Cause::Miss),
                    (ahead(mark, other)?, Cause::Mark),
                ];
                Self {
                    ahead,
                    bio: None,
                    requests: requests(2)?,
                    page,
                }
            }
            Seeing::Block => {
                let (bio, name) = at(0)?;
                Self {
                    ahead: Vec::new(),
                    bio: Some(request(bio, name)?),
                    requests: requests(1)?,
                    page,
                }
            }
        })
    }

    /// A record that begins with these bytes; none if it is of no kind that is watched.
    #[must_use]
    pub fn record(&self, bytes: &[u8]) -> Option<Record> {
        match word(bytes, 0)? {
            LOST => Some(Record::Lost(long(bytes, 16)?)),
            SAMPLE => self.sample(bytes),
            _ => None,
        }
    }

    fn sample(&self, bytes: &[u8]) -> Option<Record> {
        let (process, thread) = (word(bytes, 8)?, word(bytes, 12)?);
        let time = Nanos(long(bytes, 16)?);
        let size = word(bytes, 24)? as usize;
        let raw = bytes.get(HEAD..HEAD.checked_add(size)?)?;
        let is = |id: u64, kind: Field| kind.of(raw) == Some(id);
        for (layout, cause) in &self.ahead {
            if is(layout.id, layout.kind) {
                return layout.of(raw, time, *cause, (process, thread), self.page);
            }
        }
        if let Some(bio) = self.bio.as_ref().filter(|own| is(own.id, own.kind)) {
            return Some(Record::Bio(process, thread, bio.of(raw, time, false)?));
        }
        let of = self.requests.iter().position(|own| is(own.id, own.kind))?;
        Some(Record::Request(self.requests[of].of(raw, time, of == 1)?))
    }
}

impl AheadLayout {
    fn of(
        &self,
        raw: &[u8],
        time: Nanos,
        cause: Cause,
        (process, thread): (u32, u32),
        page: u32,
    ) -> Option<Record> {
        let small = |field: Field| field.of(raw).and_then(|value| u32::try_from(value).ok());
        // Of the kernel's own size here, and of 4 KiB from here on.
        let pages = |field: Field| Some(field.of(raw)?.saturating_mul(page.into()));
        let few = |field: Field| pages(field).and_then(|value| u32::try_from(value).ok());
        Some(Record::Ahead(Ahead {
            time,
            cause,
            process,
            thread,
            device: small(self.device)?,
            inode: self.inode.of(raw)?,
            index: pages(self.index)?,
            size: few(self.size)?,
            async_size: few(self.async_size)?,
            limit: few(self.limit)?,
            asked: pages(self.asked)?,
        }))
    }
}

impl RequestLayout {
    fn of(&self, raw: &[u8], time: Nanos, is_complete: bool) -> Option<Request> {
        Some(Request {
            time,
            is_complete,
            device: u32::try_from(self.device.of(raw)?).ok()?,
            sector: self.sector.of(raw)?,
            sectors: self.sectors.of(raw)?,
        })
    }
}

fn ahead(event: &Tracepoint, name: &str) -> Result<AheadLayout, Failure> {
    let field = |field| event.need(name, field);
    Ok(AheadLayout {
        id: event.id,
        kind: field("common_type")?,
        inode: field("i_ino")?,
        device: field("s_dev")?,
        index: field("index")?,
        size: field("size")?,
        async_size: field("async_size")?,
        limit: field("ra_pages")?,
        asked: field("req_count")?,
    })
}

fn request(event: &Tracepoint, name: &str) -> Result<RequestLayout, Failure> {
    let field = |field| event.need(name, field);
    Ok(RequestLayout {
        id: event.id,
        kind: field("common_type")?,
        device: field("dev")?,
        sector: field("sector")?,
        sectors: field("nr_sector")?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    fn event(id: u64, fields: &[(&str, usize, usize)]) -> Tracepoint {
        let mut text = format!("ID: {id}\n");
        for (name, offset, size) in fields {
            writeln!(text, "\tfield:u {name};\toffset:{offset};\tsize:{size};").unwrap();
        }
        Tracepoint::parse(&text).unwrap()
    }

    /// Layouts as another kernel may have them: narrower, in another order.
    fn layouts(page: u32) -> Layouts {
        let ahead = [
            ("common_type", 0, 2),
            ("s_dev", 8, 4),
            ("i_ino", 12, 8),
            ("index", 20, 8),
            ("size", 28, 2),
            ("async_size", 30, 4),
            ("ra_pages", 34, 4),
            ("req_count", 38, 8),
        ];
        let block = [
            ("common_type", 0, 2),
            ("dev", 8, 4),
            ("sector", 12, 8),
            ("nr_sector", 20, 4),
        ];
        let events = [
            event(1, &ahead),
            event(2, &ahead),
            event(3, &block),
            event(4, &block),
        ];
        Layouts::new(Seeing::Readahead, &events, page).unwrap()
    }

    fn sample(raw: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(SAMPLE.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(70_u32.to_ne_bytes());
        bytes.extend(71_u32.to_ne_bytes());
        bytes.extend(9_000_u64.to_ne_bytes());
        bytes.extend((raw.len() as u32).to_ne_bytes());
        bytes.extend(raw);
        bytes
    }

    fn raw_ahead(id: u16) -> Vec<u8> {
        let mut raw = id.to_ne_bytes().to_vec();
        raw.extend([0; 6]);
        raw.extend(5_u32.to_ne_bytes());
        raw.extend(123_456_789_012_u64.to_ne_bytes());
        raw.extend(1_024_u64.to_ne_bytes());
        raw.extend(32_u16.to_ne_bytes());
        raw.extend(16_u32.to_ne_bytes());
        raw.extend(256_u32.to_ne_bytes());
        raw.extend(4_u64.to_ne_bytes());
        raw
    }

    #[test]
    fn a_mark_and_a_miss_are_told_apart_and_read_by_their_layout() {
        for (id, cause) in [(1, Cause::Miss), (2, Cause::Mark)] {
            let expected = Ahead {
                time: Nanos(9_000),
                cause,
                process: 70,
                thread: 71,
                device: 5,
                inode: 123_456_789_012,
                index: 1_024,
                size: 32,
                async_size: 16,
                limit: 256,
                asked: 4,
            };
            let record = layouts(1).record(&sample(&raw_ahead(id)));
            assert_eq!(record, Some(Record::Ahead(expected)));
        }
    }

    #[test]
    fn larger_pages_of_a_kernel_are_counted_in_those_of_4_kib() {
        let Some(Record::Ahead(event)) = layouts(16).record(&sample(&raw_ahead(2))) else {
            panic!("no event");
        };
        let Ahead {
            index,
            size,
            async_size,
            limit,
            asked,
            ..
        } = event;
        assert_eq!((index, asked), (16 * 1_024, 64));
        assert_eq!((size, async_size, limit), (512, 256, 4096));
    }

    #[test]
    fn requests_lost_events_and_strangers() {
        let mut raw = 4_u16.to_ne_bytes().to_vec();
        raw.extend([0; 6]);
        raw.extend(7_u32.to_ne_bytes());
        raw.extend(800_u64.to_ne_bytes());
        raw.extend(256_u32.to_ne_bytes());
        let request = Request {
            time: Nanos(9_000),
            is_complete: true,
            device: 7,
            sector: 800,
            sectors: 256,
        };
        assert_eq!(
            layouts(1).record(&sample(&raw)),
            Some(Record::Request(request))
        );
        let mut lost = LOST.to_ne_bytes().to_vec();
        lost.extend([0; 12]);
        lost.extend(33_u64.to_ne_bytes());
        assert_eq!(layouts(1).record(&lost), Some(Record::Lost(33)));
        assert_eq!(
            layouts(1).record(&sample(&raw_ahead(9))),
            None,
            "another event"
        );
        let short = sample(&raw_ahead(1)[..40]);
        assert_eq!(layouts(1).record(&short), None, "shorter than its layout");
    }

    #[test]
    fn sectors_of_a_thread_are_a_bio() {
        let block = [
            ("common_type", 0, 2),
            ("dev", 8, 4),
            ("sector", 16, 8),
            ("nr_sector", 24, 4),
        ];
        let events = [event(1, &block), event(2, &block), event(3, &block)];
        let layouts = Layouts::new(Seeing::Block, &events, 1).unwrap();
        let mut raw = 1_u16.to_ne_bytes().to_vec();
        raw.extend([0; 6]);
        raw.extend(7_u32.to_ne_bytes());
        raw.extend([0; 4]);
        raw.extend(800_u64.to_ne_bytes());
        raw.extend(256_u32.to_ne_bytes());
        let request = Request {
            time: Nanos(9_000),
            is_complete: false,
            device: 7,
            sector: 800,
            sectors: 256,
        };
        let record = layouts.record(&sample(&raw));
        assert_eq!(record, Some(Record::Bio(70, 71, request)));
        raw[0] = 3;
        let request = Request {
            is_complete: true,
            ..request
        };
        let record = layouts.record(&sample(&raw));
        assert_eq!(record, Some(Record::Request(request)));
        assert!(Layouts::new(Seeing::Block, &events[..2], 1).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(mut bytes: Vec<u8>, kind in 0u32..10, id in 0u16..6) {
            let _ = layouts(1).record(&bytes);
            bytes.splice(0..0, kind.to_ne_bytes());
            let _ = layouts(1).record(&bytes);
            if bytes.len() > HEAD + 2 {
                bytes[HEAD..HEAD + 2].copy_from_slice(&id.to_ne_bytes());
                let _ = layouts(1).record(&bytes);
            }
        }
    }
}
