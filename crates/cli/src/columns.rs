//! Rows of columns, as CSV: names in the first line, lists with spaces between their values.

use serde_json::Value;

use crate::failure::Failure;

/// The columns of a row, in their order.
pub type Columns = Vec<(&'static str, Value)>;

/// Rows of the same columns.
///
/// # Errors
/// None that a row in memory has.
pub fn csv(rows: impl Iterator<Item = Columns>) -> Result<String, Failure> {
    let failed = |e: &dyn std::fmt::Display| Failure::Run(format!("cannot print: {e}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = true;
    for columns in rows {
        if std::mem::take(&mut header) {
            let names = columns.iter().map(|(name, _)| *name);
            writer.write_record(names).map_err(|e| failed(&e))?;
        }
        let values = columns.iter().map(|(_, value)| plain(value));
        writer.write_record(values).map_err(|e| failed(&e))?;
    }
    let bytes = writer.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
