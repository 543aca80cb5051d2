//! Advice of `forerun advise`, as a section of the page.

use serde_json::Value;

use super::points::Row;

/// The column of a row that is advice: its lines.
pub const ADVICE: &str = "advice";

/// The column of a run of a constant depth beside an advice, which was chosen from the others: no point of a chart.
pub const CONSTANT_DEPTH: &str = "constant_depth";

/// The lines of a row, if it is advice.
#[must_use]
pub fn lines(row: &Row) -> Option<Vec<&str>> {
    let lines = row.get(ADVICE)?.as_array()?;
    Some(lines.iter().filter_map(Value::as_str).collect())
}
