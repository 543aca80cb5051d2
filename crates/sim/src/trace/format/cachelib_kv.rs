//! CacheLib's traces of key-value caches, 2022 to 2024, as cachebench replays them.
//!
//! A header names the columns, of which there were four sets: `key,op,size,op_count,key_size` and, later, `ttl`,
//! `op_time`, `cache_hits`, `usecase`, `sub_usecase`. A row counts `op_count` times: 58 rows of the sample are
//! 175 requests. The size of an object is key and value together; a GET that missed has a value of 0 bytes. GET
//! and GET_LEASE read, SET and SET_LEASE write, DELETE is left out and counted. Times to live are not read.

use super::super::error::Cause;
use super::csv::columns::{Columns, Names, Ops, Role, SECOND};
use super::csv::rows::{First, Rows, RowsWriter};
use super::{BLOCKS_ONLY, Format, Holds, Places};

/// The format.
pub const FORMAT: Format = Format {
    name: "cachelib-kv",
    summary: "CacheLib key-value traces, csv with header; a row counts op_count times",
    source: "Berg et al., CacheLib, OSDI 2020; cachebench's KVReplayGenerator",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Objects,
        op: true,
        arrival_unit_ns: Some(SECOND),
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Rows::after(first, FORM)),
    writer: || {
        let columns = Columns::of_header(HEADER.as_bytes(), NAMES).and_then(Result::ok);
        let columns = columns.map_or_else(|| Columns::of(&[]), with_ops);
        Box::new(RowsWriter::new(columns, Some(HEADER)))
    },
};

const FORM: &str = "a header with key, op, size, op_count and key_size, then rows";

const HEADER: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl";

const NAMES: Names = &[
    ("op_time", Role::Time(SECOND)),
    ("key", Role::Block),
    ("key_size", Role::Bytes(1)),
    ("op", Role::Op),
    ("op_count", Role::Count),
    ("size", Role::Bytes(1)),
    ("cache_hits", Role::Skipped),
    ("ttl", Role::Skipped),
    ("usecase", Role::Skipped),
    ("sub_usecase", Role::Skipped),
];

/// Whether a line names an object and how often a request for it counts, whatever else it names.
pub(super) fn is_header(line: &[u8]) -> bool {
    let mut cells = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    cells.any(|cell| cell == b"op_count") && Columns::of_header(line, NAMES).is_some()
}

fn first(line: &[u8]) -> Result<First, Cause> {
    let columns = Columns::of_header(line, NAMES).transpose()?;
    let needed = [Role::Block, Role::Op, Role::Count, Role::Bytes(1)];
    let columns = columns.filter(|columns| needed.iter().all(|role| columns.has(*role)));
    let columns = columns.ok_or_else(|| Cause::form(line, FORM))?;
    Ok(First::Header(with_ops(columns)))
}

fn with_ops(columns: Columns) -> Columns {
    Columns {
        ops: Ops::new("GET/GET_LEASE", "SET/SET_LEASE", "DELETE"),
        ..columns
    }
}
