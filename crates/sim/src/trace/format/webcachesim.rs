//! Traces of web caches as AdaptSize, LRB and webcachesim read them: `time id size`, between blanks.
//!
//! Further columns are features of an object and not read. Lines of three numbers are as well of `plain` (block,
//! disk, computing), so this format is never guessed and must be named. Times are whole seconds.

use super::csv::columns::{Columns, Delimiter, Role, SECOND};
use super::csv::rows::{Rows, RowsWriter};
use super::{BLOCKS_ONLY, Format, Holds, Places};

/// The format.
pub const FORMAT: Format = Format {
    name: "webcachesim",
    summary: "time, object, size between blanks: AdaptSize, LRB, webcachesim",
    source: "Song, Berger, Li, Lloyd, Learning Relaxed Belady, NSDI 2020; webcachesim's README",
    form: FORM,
    is_marked: false,
    is_sure: |_| false,
    doubt: "never guessed",
    holds: Holds {
        places: Places::Objects,
        arrival_unit_ns: Some(SECOND),
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Rows::of(columns(), FORM)),
    writer: || Box::new(RowsWriter::new(columns(), None)),
};

const FORM: &str = "time id size, numbers between blanks";

fn columns() -> Columns {
    Columns {
        delimiter: Delimiter::Blank,
        is_open: true,
        ..Columns::of(&[Role::Time(SECOND), Role::Block, Role::Bytes(1)])
    }
}
