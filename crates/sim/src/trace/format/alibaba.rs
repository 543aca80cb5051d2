//! Alibaba's block traces of 2020: a month of 1,000 virtual disks.
//!
//! `device_id,opcode,offset,length,timestamp`, without a header; offset and length in bytes, microseconds since
//! 1970. Rows of the same shape with other units exist, so a trace is guessed only where its times lie after the
//! year 2001 in this unit.

use super::csv::columns::{Columns, Ops, Role};
use super::csv::rows::{Rows, RowsWriter};
use super::{Format, Holds, Places, TIMED_SECTORS, cells_in};

/// The format.
pub const FORMAT: Format = Format {
    name: "alibaba",
    summary: "Alibaba block traces 2020, csv without header",
    source: "Li et al., An In-Depth Analysis of Cloud Block Storage Workloads, IISWC 2020; the traces' README",
    form: FORM,
    is_marked: true,
    is_sure: |head| cells_in(head, 4, MICROSECONDS),
    doubt: "guessed only where the last column is microseconds after 2001",
    holds: Holds {
        places: Places::Bytes,
        arrival_unit_ns: Some(MICROSECOND),
        ..TIMED_SECTORS
    },
    reader: |_| Box::new(Rows::of(columns(), FORM)),
    writer: || Box::new(RowsWriter::new(columns(), None)),
};

const FORM: &str = "device,R|W,offset,bytes,microseconds since 1970";

const MICROSECOND: u64 = 1000;

/// From 2001 to 2096.
const MICROSECONDS: core::ops::Range<u64> = 1_000_000_000_000_000..4_000_000_000_000_000;

fn columns() -> Columns {
    let roles = [
        Role::Device,
        Role::Op,
        Role::Offset(1),
        Role::Bytes(1),
        Role::Time(MICROSECOND),
    ];
    Columns {
        ops: Ops::new("R", "W", ""),
        ..Columns::of(&roles)
    }
}
