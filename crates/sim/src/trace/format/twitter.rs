//! Twitter's cache traces of 2020: requests to 54 clusters of in-memory caches.
//!
//! `timestamp,key,key size,value size,client,operation,TTL`, without a header, in seconds and bytes. The size of
//! an object is key and value together. The operations get and gets read; set, add, replace, cas, append, prepend,
//! incr and decr write; delete is left out and counted, as are clients and times to live.

use super::csv::columns::{Columns, Ops, Role, SECOND};
use super::csv::rows::{Rows, RowsWriter};
use super::{BLOCKS_ONLY, Format, Holds, Places};

/// The format.
pub const FORMAT: Format = Format {
    name: "twitter",
    summary: "Twitter cache traces, csv without header",
    source: "Yang, Yue, Rashmi, In-memory cache clusters at Twitter, OSDI 2020; the traces' README",
    form: FORM,
    is_marked: true,
    is_sure: super::any_of_it,
    doubt: "",
    holds: Holds {
        places: Places::Objects,
        op: true,
        arrival_unit_ns: Some(SECOND),
        needs_arrival: true,
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Rows::of(columns(), FORM)),
    writer: || Box::new(RowsWriter::new(columns(), None)),
};

const FORM: &str = "seconds,key,key bytes,value bytes,client,get|set|..,TTL";

fn columns() -> Columns {
    let roles = [
        Role::Time(SECOND),
        Role::Block,
        Role::Bytes(1),
        Role::Bytes(1),
        Role::Skipped,
        Role::Op,
        Role::Skipped,
    ];
    let writes = "set/add/replace/cas/append/prepend/incr/decr";
    Columns {
        ops: Ops::new("get/gets", writes, "delete"),
        ..Columns::of(&roles)
    }
}
