//! Tracepoints: the number and the layout of an event, as its `format` file in tracefs states them.
//!
//! The fields of a tracepoint move from one kernel to the next, so their offsets are read and never assumed:
//!
//! ```text
//! ID: 617
//!     field:unsigned long i_ino;   offset:8;   size:8;  signed:0;
//! ```
//!
//! Called once at the start, for each event that is watched. A field that is missing is an error with its name.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use forerun_surface::failure::Failure;

use crate::sample::Seeing;

/// Where a field stands in the bytes of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Its value, of an integer of any size; none where the event is shorter.
    #[must_use]
    pub fn of(&self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        match *bytes {
            [a] => Some(a.into()),
            [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }
}

/// An event of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tracepoint {
    /// Its number, for `perf_event_open` and at the head of each event.
    pub id: u64,
    fields: Vec<(String, Field)>,
}

impl Tracepoint {
    /// Reads a `format` file; none if it states no number.
    #[must_use]
    pub fn parse(format: &str) -> Option<Self> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID:"))?;
        let fields = format.lines().filter_map(field);
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: fields.collect(),
        })
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(own, _)| own == name);
        found.map(|(_, field)| *field)
    }

    /// The event `group:name` of a mounted tracefs.
    ///
    /// # Errors
    /// The kernel has no such event, or its file cannot be read.
    pub fn read(tracefs: &Path, group: &str, name: &str) -> Result<Self, Failure> {
        let path = tracefs.join("events").join(group).join(name).join("format");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::Usage(format!(
                "this kernel has no event {group}:{name} (those of readahead came with Linux 6.18; \
                 --seeing block does without)"
            )),
            _ => Failure::unusable(&path, error),
        })?;
        Self::parse(&text).ok_or_else(|| Failure::unusable(&path, "states no ID"))
    }

    /// The events of a way of seeing; of the best that the kernel has where none is named.
    ///
    /// # Errors
    /// An event that the kernel does not have.
    pub fn all(tracefs: &Path, wanted: Option<Seeing>) -> Result<(Seeing, Vec<Self>), Failure> {
        let is_there = |(group, name): &(&str, &str)| {
            tracefs
                .join("events")
                .join(group)
                .join(name)
                .join("format")
                .exists()
        };
        let best = match Seeing::Readahead.urgent().iter().all(is_there) {
            true => Seeing::Readahead,
            false => Seeing::Block,
        };
        let seeing = wanted.unwrap_or(best);
        let names = seeing.events().into_iter();
        let points = names.map(|(group, name)| Self::read(tracefs, group, name));
        Ok((seeing, points.collect::<Result<_, _>>()?))
    }

    /// The field of this name, of the event `event`.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn need(&self, event: &str, name: &str) -> Result<Field, Failure> {
        self.field(name).ok_or_else(|| {
            Failure::Usage(format!(
                "the event {event} of this kernel has no field {name}"
            ))
        })
    }
}

/// `field:dev_t s_dev; offset:16; size:4; signed:0;`, with tabs between the parts.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let name = name.split('[').next()?.to_owned();
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    Some((name, Field { offset, size }))
}

/// Where tracefs is mounted.
///
/// # Errors
/// Nowhere, or it may not be read.
pub fn tracefs() -> Result<&'static Path, Failure> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    for place in places {
        match fs::read_dir(place.join("events")) {
            Ok(_) => return Ok(place),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Failure::Usage(format!(
                    "{}: permission denied: needs root, or CAP_DAC_READ_SEARCH",
                    place.display()
                )));
            }
            Err(_) => {}
        }
    }
    let remedy = "mount -t tracefs nodev /sys/kernel/tracing";
    Err(Failure::Usage(format!("tracefs is not mounted: {remedy}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: &str = "name: page_cache_sync_ra\nID: 617\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \n\tfield:dev_t s_dev;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:loff_t prev_pos;\toffset:56;\tsize:8;\tsigned:1;\n\
        print fmt: \"dev=%d\", REC->s_dev\n";

    #[test]
    fn fields_stand_where_the_format_says() {
        let event = Tracepoint::parse(FORMAT).unwrap();
        assert_eq!(event.id, 617);
        let mut raw = [0; 64];
        raw[16..20].copy_from_slice(&0x0700_0003_u32.to_ne_bytes());
        raw[56..64].copy_from_slice(&u64::MAX.to_ne_bytes());
        let value = |name: &str, raw: &[u8]| event.field(name).and_then(|field| field.of(raw));
        assert_eq!(value("s_dev", &raw), Some(0x0700_0003));
        assert_eq!(value("prev_pos", &raw), Some(u64::MAX));
        assert_eq!(value("prev_pos", &raw[..60]), None, "a shorter event");
        assert_eq!(value("rwbs", &raw), None, "no integer");
        assert!(event.field("rwbs").is_some() && event.field("ino").is_none());
    }

    #[test]
    fn an_event_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Tracepoint::read(folder.path(), "readahead", "page_cache_sync_ra");
        let message = missing.unwrap_err().to_string();
        assert!(
            message.contains("readahead:page_cache_sync_ra"),
            "{message}"
        );
        let event = Tracepoint::parse(FORMAT).unwrap();
        let message = event.need("a:b", "i_ino").unwrap_err().to_string();
        assert!(
            message.contains("a:b") && message.contains("i_ino"),
            "{message}"
        );
    }

    #[test]
    fn a_kernel_without_events_of_readahead_is_seen_by_those_of_the_block_layer() {
        let folder = tempfile::tempdir().unwrap();
        let make = |seeing: Seeing| {
            for (group, name) in seeing.events() {
                let at = folder.path().join("events").join(group).join(name);
                fs::create_dir_all(&at).unwrap();
                fs::write(at.join("format"), FORMAT).unwrap();
            }
        };
        let all = |wanted| Tracepoint::all(folder.path(), wanted);
        make(Seeing::Block);
        let (seeing, points) = all(None).unwrap();
        assert_eq!((seeing, points.len()), (Seeing::Block, 3));
        let message = all(Some(Seeing::Readahead)).unwrap_err().to_string();
        assert!(message.contains("--seeing block"), "{message}");
        make(Seeing::Readahead);
        assert_eq!(all(None).unwrap().0, Seeing::Readahead);
        assert_eq!(all(Some(Seeing::Block)).unwrap().0, Seeing::Block);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(ID: ?\\d{0,30}|\\tfield:\\PC{0,20};|offset:\\d{0,25};|\\PC{0,9}|\n){0,20}",
            raw: Vec<u8>) {
            if let Some(event) = Tracepoint::parse(&text) {
                for (_, field) in &event.fields {
                    let _ = field.of(&raw);
                }
            }
        }
    }
}
