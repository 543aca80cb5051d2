//! Lines of a file of rows, as `report`, `rerun`, `sweep`, its `merge` and `diff` read them.
//!
//! Problem: a program that is killed, or a full disk, cuts the last row. Mechanism: each line is handed on; a last one
//! without an end of line whose object ends too early is a cut row: it is left out, and a warning says so.
//!
//! ```text
//! {"key":"a","misses":1}\n{"key":"b","mis      one row, and a warning about line 2
//! {"key":"a","misses":1}                       one row: an object that is whole needs no end of line
//! important                                    refused: no part of a row begins so
//! ```

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::IgnoredAny;

use crate::failure::Failure;
use crate::files::{named, plain};

/// A longer line is no row.
const BYTES_MAX: u64 = 1 << 20;

/// The end of the last whole row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct End {
    /// Bytes up to there.
    pub bytes: u64,
    /// Whether an end of line stands there.
    pub has_newline: bool,
}

/// The name of a file of rows in messages and headings.
#[must_use]
pub fn name(path: &Path) -> String {
    let path = named(Some(path));
    path.map_or("standard input".to_owned(), |path| {
        path.display().to_string()
    })
}

/// Hands on each line that is not blank.
///
/// # Errors
/// A line that is refused, is too long or cannot be read, with its number.
pub fn read(
    path: &Path,
    from: impl Read,
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<End, Failure> {
    let mut end = End::default();
    let mut lines = BufReader::new(from);
    for number in 1.. {
        let at = |why: String| Failure::Usage(format!("{}: line {number}: {why}", name(path)));
        let mut line = Vec::new();
        let part = lines.by_ref().take(BYTES_MAX + 1);
        let count = { part }.read_until(b'\n', &mut line);
        if count.map_err(|e| at(plain(&e)))? == 0 {
            break;
        }
        if line.len() as u64 > BYTES_MAX {
            return Err(at(format!("a row has at most {BYTES_MAX} bytes")));
        }
        if is_cut(&line) {
            tracing::warn!("{}: line {number} is cut: it is left out", name(path));
            break;
        }
        if !line.iter().all(u8::is_ascii_whitespace) {
            each(&line).map_err(at)?;
        }
        end.bytes += line.len() as u64;
        end.has_newline = line.ends_with(b"\n");
    }
    Ok(end)
}

/// Whether a line is the beginning of an object, and the file ends in it.
fn is_cut(line: &[u8]) -> bool {
    let whole = || serde_json::from_slice::<IgnoredAny>(line);
    line.starts_with(b"{") && !line.ends_with(b"\n") && whole().is_err_and(|error| error.is_eof())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<(Vec<String>, End), Failure> {
        let mut all = Vec::new();
        let end = read(Path::new("rows"), text.as_bytes(), |line| {
            serde_json::from_slice::<IgnoredAny>(line).map_err(|_| "no row".to_owned())?;
            all.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        })?;
        Ok((all, end))
    }

    #[test]
    fn a_row_that_is_cut_anywhere_is_left_out_and_any_other_line_is_refused() {
        let (first, second) = (
            "{\"a\":1}\n",
            "{\"key\":\"b\u{e9}\",\"c\":[1,2],\"d\":null}",
        );
        for cut in (1..second.len()).filter(|cut| second.is_char_boundary(*cut)) {
            let (all, end) = lines(&format!("{first}{}", &second[..cut])).unwrap();
            assert_eq!(all, [first], "{cut}");
            assert_eq!((end.bytes, end.has_newline), (first.len() as u64, true));
        }
        let (all, end) = lines(&format!("{first}\n{second}")).unwrap();
        assert_eq!(all, [first, second]);
        assert!(!end.has_newline && end.bytes == (first.len() + 1 + second.len()) as u64);
        for wrong in [
            "important",
            "{\"a\":1}\n{\"b\":\n{\"c\":1}\n",
            "{\"b\":\n",
            "{a",
        ] {
            let said = lines(wrong).unwrap_err().to_string();
            assert!(
                said.starts_with("rows: line ") && said.ends_with("no row"),
                "{said}"
            );
        }
    }
}
