//! The tables of mapped devices (device mapper, LVM): targets `linear` and `striped`.
//!
//! Read by `DM_TABLE_STATUS` on `/dev/mapper/control`, which is for root. A table is a list of targets, each
//! with a run of sectors and parameters in words (`Documentation/admin-guide/device-mapper` of Linux):
//!
//! ```text
//! 0    8192     linear   8:16 2048                        device, first sector there
//! 8192 1048576  striped  2 128 8:32 0 8:48 2048           count, strip in sectors, then each as above
//! ```
//!
//! A linear target is the device below it, followed down to disks, md or other tables; the members of a
//! striped one are taken as they are. Any other target is refused by its name. An encrypted device
//! is refused by its identifier, before its table is asked for: that has the key in it.
//!
//! Not tried on real tables: the kernel this was written on has no device mapper.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use forerun_core::Bytes;

use super::block::{Below, SECTOR, System};
use super::ioctl::{self, TableBuffer};
use super::space::Space;
use super::tables::{half, text, word};
use super::{DiskArray, DiskMember, GeometrySource, Level, Refusal};

const CONTROL: &str = "/dev/mapper/state";

/// `struct dm_ioctl` and `struct dm_target_spec`, by `linux/dm-ioctl.h`.
const HEAD_BYTES: usize = 312;
const SPEC_BYTES: usize = 40;
/// Ask for the table, not the status; the answer was cut.
const STATUS_TABLE: u32 = 1 << 4;
const BUFFER_FULL: u32 = 1 << 8;

/// A target of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Target {
    begin: u64,
    bytes: u64,
    kind: String,
    parameters: String,
}

/// The table of a mapped device, as the kernel returns it.
pub(super) fn ask(number: (u32, u32)) -> io::Result<Vec<u8>> {
    let state = File::options().read(true).write(true).open(CONTROL)?;
    let mut buffer = Box::new([0; size_of::<TableBuffer>()]);
    question(number, &mut buffer[..HEAD_BYTES]);
    ioctl::table_status(state.as_fd(), &mut buffer)?;
    Ok(buffer.to_vec())
}

/// The question for the table of the device of this number.
fn question((major, minor): (u32, u32), buffer: &mut [u8]) {
    // Version 4.0.0; data behind the head; a device by its number, as the kernel packs it.
    let packed = minor & 0xff | major << 8 | (minor & !0xff) << 12;
    let halves = [(0, 4), (16, HEAD_BYTES as u32), (28, STATUS_TABLE)];
    for (at, value) in halves {
        buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    buffer[40..48].copy_from_slice(&u64::from(packed).to_ne_bytes());
}

/// The targets in an answer; none if it was cut.
fn parse(buffer: &[u8]) -> Option<Vec<Target>> {
    let (data, count, flags) = (
        half(buffer, 16) as usize,
        half(buffer, 20),
        half(buffer, 28),
    );
    if flags & BUFFER_FULL != 0 {
        return None;
    }
    let mut targets = Vec::new();
    let mut at = data;
    for _ in 0..count {
        if at.checked_add(SPEC_BYTES)? > buffer.len() {
            return None;
        }
        let next = half(buffer, at + 20) as usize;
        let end = data.checked_add(next).filter(|end| *end > at)?;
        targets.push(Target {
            begin: word(buffer, at).saturating_mul(SECTOR),
            bytes: word(buffer, at + 8).saturating_mul(SECTOR),
            kind: text(buffer, at + 24, 16),
            parameters: text(buffer, at + SPEC_BYTES, end - at),
        });
        // Each is found from the beginning of the data.
        at = end;
    }
    Some(targets)
}

/// The device in this folder with all below it.
pub(super) fn below(
    system: &System,
    folder: &Path,
    number: (u32, u32),
    level: u32,
) -> Result<Below, Refusal> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unknown = |target: &str| Refusal::Target {
        name: name.clone().into_owned(),
        target: target.to_owned(),
    };
    let uuid = system.text(&folder.join("dm/uuid")).unwrap_or_default();
    if uuid.starts_with("CRYPT-") {
        return Err(unknown("crypt"));
    }
    let table = (system.table)(number).map_err(|error| Refusal::Table {
        name: name.clone().into_owned(),
        error,
    })?;
    let targets = parse(&table).ok_or_else(|| unknown("a table that is cut"))?;
    let mut space = Space::default();
    let mut source = GeometrySource::DeviceMapper;
    for target in &targets {
        let words: Vec<&str> = target.parameters.split_whitespace().collect();
        match target.kind.as_str() {
            "linear" => {
                let (device, begin) = place(&words).ok_or_else(|| unknown("linear"))?;
                let below = system.below_at(device, level)?;
                space.embed(target.begin, target.bytes, &below.space, begin);
                if targets.len() == 1 && below.source != GeometrySource::Disk {
                    source = below.source;
                }
            }
            "striped" => {
                let array = striped(system, &words)?.ok_or_else(|| unknown("striped"))?;
                space.push(target.begin, target.bytes, array);
            }
            other => return Err(unknown(other)),
        }
    }
    Ok(Below {
        source,
        space: space.sorted(),
    })
}

/// `8:16 2048`.
fn place(words: &[&str]) -> Option<((u32, u32), u64)> {
    let [device, begin, ..] = words else {
        return None;
    };
    let (major, minor) = device.split_once(':')?;
    let begin: u64 = begin.parse().ok()?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    Some((number, begin.checked_mul(SECTOR)?))
}

/// `2 128 8:32 0 8:48 2048`; none if it says something else.
fn striped(system: &System, words: &[&str]) -> Result<Option<DiskArray>, Refusal> {
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let (Some(count @ 1..), Some(strip @ 1..)) = (number(0), number(1)) else {
        return Ok(None);
    };
    let pairs: Vec<_> = words[2..].chunks_exact(2).map(place).collect();
    let Some(pairs) = pairs.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    if pairs.len() as u64 != count {
        return Ok(None);
    }
    let members = pairs
        .into_iter()
        .map(|(device, begin)| system.member_of(device, begin))
        .collect::<Result<Vec<DiskMember>, _>>()?;
    Ok(Some(DiskArray {
        level: Level::Raid0,
        strip: Bytes(strip.saturating_mul(SECTOR)),
        members,
    }))
}

#[cfg(test)]
pub(super) mod tests;
