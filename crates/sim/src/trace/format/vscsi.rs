//! vSCSI: requests of virtual disks as VMware's hypervisor logs them, CloudPhysics' traces too.
//!
//! Fixed little-endian records in two versions, which the version field of the first record tells:
//!
//! ```text
//! 1, 32 bytes: u32 serial, bytes, segments; u16 command, version; u64 first_sector, time_us
//! 2, 40 bytes: u16 command, version; u32 serial, bytes, segments; u64 first_sector, time_us,
//!              response_us
//! ```
//!
//! The commands are SCSI's READ and WRITE of 6, 10, 12 and 16 bytes; any other one is an error,
//! which is also how a file of another format is found out. That version 2 counts responses in
//! microseconds is assumed from its time stamps. Serial numbers and segments are not read.

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{SECTORS, from_sector};
use super::super::record::{Op, Record};
use super::{Decode, Encode, Format, Holds, TIMED_SECTORS, Unit, arrival_of, sectors_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "vscsi",
    summary: "binary records of virtual SCSI disks, versions 1 and 2",
    source: "Waldspurger et al., SHARDS, FAST 2015; libCacheSim, traceReader/customizedReader",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        device: false,
        arrival_unit_ns: Some(MICROSECOND),
        ..TIMED_SECTORS
    },
    reader: |_| Box::new(Vscsi::default()),
    writer: || Box::new(Writer { serial: 0 }),
};

const FORM: &str = "a 32-byte record of version 1 or a 40-byte one of version 2";

const MICROSECOND: u64 = 1000;
/// The part both versions have; in version 2 the response follows.
const RECORD: usize = 32;
const RESPONSE: usize = 8;
const COMMAND: u16 = 0x28;

/// Where the fields stand: version 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

#[derive(Default)]
struct Vscsi {
    version: Option<Version>,
    /// A request of version 2 whose response is next.
    unanswered: Option<Record>,
}

impl Decode for Vscsi {
    fn unit(&self) -> Unit {
        match self.unanswered {
            Some(_) => Unit::Bytes(RESPONSE),
            None => Unit::Bytes(RECORD),
        }
    }

    fn take(&mut self, unit: &[u8]) -> Result<Option<Record>, Cause> {
        if let Some(record) = self.unanswered.take() {
            let response = little(unit, 0, RESPONSE);
            return Ok(Some(Record {
                response: Some(Nanos(micros("response", response)?)),
                ..record
            }));
        }
        let version = match self.version {
            Some(version) => version,
            None => version(unit).ok_or_else(|| Cause::form(unit, FORM))?,
        };
        self.version = Some(version);
        let record = request(version, unit)?;
        if version == Version::One {
            return Ok(Some(record));
        }
        self.unanswered = Some(record);
        Ok(None)
    }

    fn end(&mut self) -> Result<(), Cause> {
        match self.unanswered {
            None => Ok(()),
            Some(_) => Err(Cause::Cut {
                found: RECORD,
                accepted: RECORD + RESPONSE,
            }),
        }
    }
}

/// The version is in the upper byte of its field.
fn version(unit: &[u8]) -> Option<Version> {
    if little(unit, 14, 2) >> 8 == 1 {
        Some(Version::One)
    } else if little(unit, 2, 2) >> 8 == 2 {
        Some(Version::Two)
    } else {
        None
    }
}

fn request(version: Version, unit: &[u8]) -> Result<Record, Cause> {
    let (number, told, command, bytes) = match version {
        Version::One => (1, 14, 12, 4),
        Version::Two => (2, 2, 0, 8),
    };
    if little(unit, told, 2) >> 8 != number {
        return Err(Cause::form(unit, FORM));
    }
    let op = match little(unit, command, 2) {
        0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
        0x0a | 0x2a | 0x8a | 0xaa => Op::Write,
        other => {
            let found = format!("{other:#x}");
            let accepted = "a SCSI read (0x28 ..) or write (0x2a ..)";
            return Err(Cause::field("command", found.as_bytes(), accepted));
        }
    };
    let (first, bytes) = (little(unit, 16, 8), little(unit, bytes, 4));
    let range = from_sector(first, bytes);
    let wrong = || Cause::field("first sector", first.to_string().as_bytes(), SECTORS);
    Ok(Record {
        op,
        arrival: Some(Nanos(micros("time", little(unit, 24, 8))?)),
        ..range.ok_or_else(wrong)?
    })
}

fn micros(field: &'static str, value: u64) -> Result<u64, Cause> {
    value.checked_mul(MICROSECOND).ok_or_else(|| {
        Cause::field(
            field,
            value.to_string().as_bytes(),
            "below 2^64 ns, in microseconds",
        )
    })
}

/// A little-endian number; bytes that are not there are zero.
fn little(unit: &[u8], at: usize, bytes: usize) -> u64 {
    let bytes = unit.iter().skip(at).take(bytes).rev();
    bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
}

struct Writer {
    serial: u32,
}

impl Encode for Writer {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend(self.serial.to_le_bytes());
        self.serial = self.serial.wrapping_add(1);
        out.extend(record.bytes.to_le_bytes());
        out.extend(1u32.to_le_bytes());
        let write = record.op.either(0, 2);
        out.extend((COMMAND + write).to_le_bytes());
        out.extend(0x0100u16.to_le_bytes());
        out.extend(sectors_of(record).0.to_le_bytes());
        out.extend((arrival_of(record) / MICROSECOND).to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(command: u16) -> Vec<u8> {
        let mut unit = Vec::new();
        unit.extend(command.to_le_bytes());
        unit.extend(0x0200u16.to_le_bytes());
        for value in [7u32, 4096, 1] {
            unit.extend(value.to_le_bytes());
        }
        for value in [8u64, 5] {
            unit.extend(value.to_le_bytes());
        }
        unit
    }

    #[test]
    fn version_two_has_a_response_after_each_request() {
        let mut vscsi = Vscsi::default();
        assert_eq!(vscsi.take(&second(0x2a)), Ok(None));
        assert!(vscsi.end().is_err());
        assert_eq!(vscsi.unit(), Unit::Bytes(RESPONSE));
        let record = vscsi.take(&9u64.to_le_bytes()).unwrap().unwrap();
        assert_eq!(record.response, Some(Nanos(9000)));
        assert_eq!(record.arrival, Some(Nanos(5000)));
        assert_eq!((record.bytes, record.op), (4096, Op::Write));
        assert_eq!(sectors_of(&record), (8, 8));
    }

    #[test]
    fn another_command_or_version_is_refused() {
        assert!(Vscsi::default().take(&second(0x12)).is_err());
        assert!(Vscsi::default().take(&[0; RECORD]).is_err());
    }
}
