//! Tencent's traces of cloud block storage, 2018: ten days of 5,584 volumes.
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`, without a header: seconds since 1970, sectors of 512 bytes, 0 for a
//! read and 1 for a write. Five columns of numbers say little, so a trace is guessed only where its times lie
//! after the year 2001.

use super::csv::columns::{Columns, Ops, Role, SECOND};
use super::csv::rows::{Rows, RowsWriter};
use super::{Format, Holds, Places, SECTOR, TIMED_SECTORS, cells_in};

/// The format.
pub const FORMAT: Format = Format {
    name: "tencent",
    summary: "Tencent cloud block storage traces, csv without header",
    source: "Zhang et al., OSCA, USENIX ATC 2020; the traces' README",
    form: FORM,
    is_marked: true,
    is_sure: |head| cells_in(head, 0, SECONDS),
    doubt: "guessed only where the first column is seconds after 2001",
    holds: Holds {
        places: Places::Sectors,
        arrival_unit_ns: Some(SECOND),
        ..TIMED_SECTORS
    },
    reader: |_| Box::new(Rows::of(columns(), FORM)),
    writer: || Box::new(RowsWriter::new(columns(), None)),
};

const FORM: &str = "seconds since 1970,first sector,sectors,0|1 (1=write),volume";

/// From 2001 to 2096.
const SECONDS: core::ops::Range<u64> = 1_000_000_000..4_000_000_000;

fn columns() -> Columns {
    let roles = [
        Role::Time(SECOND),
        Role::Offset(SECTOR),
        Role::Bytes(SECTOR),
        Role::Op,
        Role::Device,
    ];
    Columns {
        ops: Ops::new("0", "1", ""),
        ..Columns::of(&roles)
    }
}
