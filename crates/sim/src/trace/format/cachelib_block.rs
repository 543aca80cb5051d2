//! CacheLib's traces of Meta's block storage (Tectonic), as cachebench's block replay reads them.
//!
//! A header names the columns in any order; a block of up to 8 MiB has a name, and a request begins `io_offset`
//! bytes into it. Blocks are numbered, and lie 8 MiB apart in the order of their numbers. `getChunkData` reads,
//! `putChunk` writes, a row counts `op_count` times. Users, hosts and shards are not read.

use super::super::error::Cause;
use super::csv::columns::{Columns, Names, Ops, Role, SECOND};
use super::csv::rows::{First, Rows, RowsWriter};
use super::{BLOCKS_ONLY, Format, Holds, Places};

/// The format.
pub const FORMAT: Format = Format {
    name: "cachelib-block",
    summary: "CacheLib block storage traces, csv with header; a row counts op_count times",
    source: "Wong et al., Baleen, FAST 2024; cachebench's BlockChunkReplayGenerator",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Within(BLOCK_BYTES),
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

const FORM: &str = "a header with block_id, io_offset, io_size, op_name and op_count, then rows";

const HEADER: &str = "op_time,block_id,io_size,io_offset,op_name,op_count";

/// The longest block of Tectonic.
const BLOCK_BYTES: u64 = 8 << 20;

const NAMES: Names = &[
    ("op_time", Role::Time(SECOND)),
    ("block_id", Role::Block),
    ("block_id_size", Role::Skipped),
    ("io_size", Role::Bytes(1)),
    ("io_offset", Role::Offset(1)),
    ("user_name", Role::Skipped),
    ("user_namespace", Role::Skipped),
    ("op_name", Role::Op),
    ("op_count", Role::Count),
    ("host_name", Role::Skipped),
    ("rs_shard_id", Role::Skipped),
];

/// Whether a line names an object and how often a request for it counts, whatever else it names.
pub(super) fn is_header(line: &[u8]) -> bool {
    let mut cells = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    cells.any(|cell| cell == b"op_count") && Columns::of_header(line, NAMES).is_some()
}

fn first(line: &[u8]) -> Result<First, Cause> {
    let columns = Columns::of_header(line, NAMES).transpose()?;
    let needed = [
        Role::Block,
        Role::Offset(1),
        Role::Bytes(1),
        Role::Op,
        Role::Count,
    ];
    let columns = columns.filter(|columns| needed.iter().all(|role| columns.has(*role)));
    let columns = columns.ok_or_else(|| Cause::form(line, FORM))?;
    Ok(First::Header(with_ops(columns)))
}

fn with_ops(columns: Columns) -> Columns {
    Columns {
        ops: Ops::new("getChunkData*", "putChunk*", ""),
        object_bytes: Some(BLOCK_BYTES),
        ..columns
    }
}
