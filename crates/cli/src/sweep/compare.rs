//! Comparing rows: column by column, those of the result.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cells::ORIGIN;
use super::rows::Row;

/// The columns in which two rows of one run differ, as `misses 12 -> 10 (-16.67 %)`.
#[must_use]
pub fn differences(before: &Row, after: &Row) -> Vec<String> {
    let names = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    let result = names.filter(|name| !ORIGIN.contains(&name.as_str()));
    let of = |row: &Row, name: &str| row.get(name).cloned().unwrap_or(Value::Null);
    result
        .map(|name| (name, of(before, name), of(after, name)))
        .filter(|(_, before, after)| before != after)
        .map(
            |(name, before, after)| match (before.as_f64(), after.as_f64()) {
                (Some(from), Some(to)) if from != 0.0 => {
                    let percent = (to / from - 1.0) * 100.0;
                    format!("{name} {before} -> {after} ({percent:+.2} %)")
                }
                _ => format!("{name} {before} -> {after}"),
            },
        )
        .collect()
}

/// The settings of a row, for people.
#[must_use]
pub fn settings(row: &Row) -> String {
    let settings = row.get("settings").and_then(Value::as_object);
    let parts = settings.into_iter().flatten().map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}={value}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Rows by their settings, the last of each.
#[must_use]
pub fn by_settings(rows: &[Row]) -> BTreeMap<String, &Row> {
    rows.iter().map(|row| (settings(row), row)).collect()
}
