//! The traces of the ARC paper, and others in its form: OLTP, P1 to P14, DS1, S1 to S3.
//!
//! `start count ignored number`: a request for `count` blocks of 512 bytes from block `start` on, and its own
//! number, from 0. The third column is not read; the fourth must count. Lines of the first two columns alone are
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
    is_sure: counts_from_zero,
    holds: Holds {
        places: Places::Sectors,
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Arc::default()),
    writer: || Box::new(Arc::default()),
};

/// Whether the first two lines are numbers 0 and 1: any four numbers may be a line of something else.
fn counts_from_zero(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n');
    let numbers = lines
        .filter(|line| !is_comment(line))
        .map(|line| split(line).nth(3));
    numbers.take(2).eq([Some(&b"0"[..]), Some(b"1")])
}

const FORM: &str = "start count ignored number, the number one more than in the line before";

#[derive(Default)]
struct Arc {
    /// Words in a line, once there was one.
    words: Option<usize>,
    /// The number of the next request; a trace may begin at any.
    next: Option<u64>,
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
                if self.next.is_some_and(|next| next != number) {
                    return Err(Cause::form(line, FORM));
                }
                self.next = number.checked_add(1);
                sectors(start, count)?
            }
            _ => return Err(Cause::form(line, FORM)),
        };
        Ok(Some(record))
    }
}

impl Encode for Arc {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        let ((start, count), number) = (sectors_of(record), self.next.unwrap_or(0));
        self.next = Some(number + 1);
        Ok(writeln!(out, "{start} {count} 0 {number}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_without_a_gap() {
        let mut arc = Arc::default();
        let record = arc.take(b"230027 8 0 0").unwrap();
        assert_eq!(record, Record::range(230_027 * 512, 4096));
        assert!(arc.take(b"1842745 64 0 1").is_ok());
        assert!(arc.take(b"216082 8 0 3").is_err());
        assert!(Arc::default().take(b"5 1").is_ok());
        assert!(Arc::default().take(b"5").is_err());
        assert!(Arc::default().take(b"5 1 0 0 0").is_err());
    }
}
