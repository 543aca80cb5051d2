//! Kinds of values in the columns that a report reads.
//!
//! Problem: a row of another program, or of an edited file, has `"elapsed_ns": "12"`; a reader that takes it for a missing
//! value draws a page without the run and without a word. Mechanism: each column has a kind, and a row with a value of
//! another kind is refused by its line. A column that may be missing may be `null`.

use serde_json::Value;

use super::advice::{ADVICE, CONSTANT_DEPTH};
use super::points::Row;

/// The values that a column takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Text,
    Texts,
    Truth,
    Object,
}

impl Kind {
    fn has(self, value: &Value) -> bool {
        let is_number = |value: &Value| value.as_f64().is_some_and(|number| number >= 0.0);
        match (self, value) {
            (_, Value::Null) => true,
            (Self::Texts, Value::Array(all)) => all.iter().all(Value::is_string),
            (Self::Texts, _) => false,
            (Self::Number, value) => is_number(value),
            (Self::Text, value) => value.is_string(),
            (Self::Truth, value) => value.is_boolean(),
            (Self::Object, value) => value.is_object(),
        }
    }

    fn accepted(self) -> &'static str {
        match self {
            Self::Number => "a number of at least 0",
            Self::Text => "text",
            Self::Texts => "a list of texts",
            Self::Truth => "true or false",
            Self::Object => "an object",
        }
    }
}

const KINDS: &[(Kind, &[&str])] = &[
    (
        Kind::Number,
        &[
            "elapsed_ns",
            "elapsed_least_ns",
            "elapsed_most_ns",
            "elapsed_units",
            "throughput_bytes_per_second",
            "throughput_least_bytes_per_second",
            "throughput_most_bytes_per_second",
            "reads",
            "bytes",
            "block_bytes",
            "hits",
            "late_hits",
            "misses",
            "miss_ratio",
            "over_bound",
            "response_p99_ns",
            "cache_bytes",
            "memory_bytes",
            "cache_objects",
        ],
    ),
    (
        Kind::Text,
        &[
            "preset",
            "policy",
            "device",
            "clock",
            "trace",
            "workload",
            "pattern",
            "load",
            "flags",
            "bound_kind",
            "error",
        ],
    ),
    (Kind::Texts, &[ADVICE]),
    (Kind::Truth, &["saturated", CONSTANT_DEPTH]),
    (Kind::Object, &["settings"]),
];

/// Checks the kinds of a row's values.
///
/// # Errors
/// The first column with a value of another kind, with that value and its kind.
pub fn check(row: &Row) -> Result<(), String> {
    for (kind, names) in KINDS {
        for name in *names {
            let value = row.get(*name).filter(|value| !kind.has(value));
            if let Some(value) = value {
                let found: String = value.to_string().chars().take(40).collect();
                return Err(format!("{name} is {found}: must be {}", kind.accepted()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_another_kind_is_named_with_the_kind_that_is_expected() {
        let said = |row: Value| check(row.as_object().unwrap()).err().unwrap_or_default();
        for (row, wanted) in [
            (json!({"preset": 1}), "preset is 1: must be text"),
            (
                json!({"preset": "a", "elapsed_ns": "12"}),
                "elapsed_ns is \"12\": must be a number of at least 0",
            ),
            (
                json!({"elapsed_ns": -1}),
                "elapsed_ns is -1: must be a number of at least 0",
            ),
            (
                json!({"saturated": "no"}),
                "saturated is \"no\": must be true or false",
            ),
            (json!({"settings": []}), "settings is []: must be an object"),
            (
                json!({"advice": "x"}),
                "advice is \"x\": must be a list of texts",
            ),
            (
                json!({"preset": "a", "elapsed_ns": 1.5, "response_p99_ns": null, "other": [0]}),
                "",
            ),
        ] {
            assert_eq!(said(row), wanted);
        }
    }
}
