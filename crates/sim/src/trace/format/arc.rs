//! The traces of the ARC paper, and others in its form: OLTP, P1 to P14, DS1, S1 to S3.
//!
//! `start count ignored number`: a request for `count` blocks of 512 bytes from block `start` on. The third column
//! is not read; the fourth counts requests, or is 0 in all lines (OLTP). Lines of the first two columns alone are
//! read where the format is named. With `--block-bytes 512` a reference is a block, as in the paper.

use std::io::Write;

use super::super::error::Cause;
use super::super::fields::{sectors, split, whole};
use super::super::record::Record;
use super::{BLOCKS_ONLY, Decode, Encode, Format, Holds, Places, is_comment, sectors_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "arc",
    summary: "traces of the ARC paper: OLTP, P1 to P14, DS1, S1 to S3",
    source: "Megiddo and Modha, ARC, FAST 2003; the traces its authors published",
    form: FORM,
    is_marked: true,
    is_sure: begins_at_zero,
    doubt: "guessed only where the third column is 0 and the last one begins at 0",
    holds: Holds {
        places: Places::Sectors,
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Arc::default()),
    writer: || Box::new(Arc::default()),
};

/// Whether the ignored column is 0 and the numbers begin at 0: any four numbers may be a line of something else.
fn begins_at_zero(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n');
    let ends = lines.filter(|line| !is_comment(line)).map(|line| {
        let mut words = split(line).skip(2);
        (words.next(), words.next())
    });
    let zero = Some(&b"0"[..]);
    let begin: Vec<_> = ends.take(2).collect();
    matches!(begin.as_slice(), [(a, b), (c, d)]
        if *a == zero && *b == zero && *c == zero && (*d == zero || *d == Some(b"1")))
}

const FORM: &str = "start count ignored number, the number that of the line before or one more";

#[derive(Default)]
struct Arc {
    /// Words in a line, once there was one.
    words: Option<usize>,
    /// The number of the request before; a trace may begin at any.
    last: Option<u64>,
}

impl Decode for Arc {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) {
            return Ok(None);
        }
        let words: Vec<&[u8]> = split(line).take(5).collect();
        if *self.words.get_or_insert(words.len()) != words.len() {
            return Err(Cause::form(line, FORM));
        }
        let record = match words.as_slice() {
            [start, count] => sectors(start, count)?,
            [start, count, ignored, number] => {
                whole("ignored", ignored)?;
                let number = whole("number", number)?;
                let last = self.last.replace(number).unwrap_or(number);
                if number.checked_sub(last).is_none_or(|step| step > 1) {
                    return Err(Cause::form(line, FORM));
                }
                sectors(start, count)?
            }
            _ => return Err(Cause::form(line, FORM)),
        };
        Ok(Some(record))
    }
}

impl Encode for Arc {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        let (start, count) = sectors_of(record);
        let number = self.last.map_or(0, |last| last + 1);
        self.last = Some(number);
        Ok(writeln!(out, "{start} {count} 0 {number}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_requests_have_no_gap_and_step_not_back() {
        let mut arc = Arc::default();
        let record = arc.take(b"230027 8 0 0").unwrap();
        assert_eq!(record, Record::range(230_027 * 512, 4096));
        assert!(arc.take(b"1842745 64 0 1").is_ok());
        assert!(arc.take(b"1842746 64 0 1").is_ok());
        assert!(arc.take(b"216082 8 0 3").is_err());
        assert!(arc.take(b"216082 8 0 1").is_err());
        assert!(Arc::default().take(b"5 1").is_ok());
        assert!(Arc::default().take(b"5").is_err());
        assert!(Arc::default().take(b"5 1 0 0 0").is_err());
    }
}
