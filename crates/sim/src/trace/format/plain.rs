//! Plain text, for traces made by hand or by a script: `block [disk] [compute_us]`.
//!
//! Blocks are numbers or names, which the first line decides for the whole file: where it has a
//! number all must be numbers, so that a typing error is found; where it has a name every word is
//! a name, and blocks are numbered in the order of first use. Names take memory, so there is a
//! limit to how many. The computing time before the reference may have decimals. `#` begins a
//! comment. A name has no comma, so that a csv file is not mistaken for names.

use forerun_core::Nanos;

use super::super::error::Cause;
use super::super::fields::{Ids, in_units, small, split, time};
use super::super::record::Record;
use super::{BLOCKS_ONLY, Decode, Encode, Format, Holds, is_comment, offset_of};

/// The format.
pub const FORMAT: Format = Format {
    name: "plain",
    summary: "block, optional disk and computing time, one reference a line",
    source: "forerun",
    form: FORM,
    is_marked: true,
    is_sure: is_one_column,
    doubt: "guessed only where a line is one word",
    holds: Holds {
        device: true,
        compute: true,
        ..BLOCKS_ONLY
    },
    reader: |_| Box::new(Plain::default()),
    writer: || Box::new(Plain::default()),
};

/// Two and three columns are as well time, object and size of a cache trace; and they may stand between other marks than
/// blanks.
fn is_one_column(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n');
    let mut lines = lines.filter(|line| !is_comment(line));
    let is_mark = |byte: &u8| b";|{".contains(byte);
    lines.all(|line| split(line).count() < 2 && !line.iter().any(is_mark))
}

const FORM: &str = "block [disk] [compute_us]";

const MICROSECOND: u64 = 1000;

#[derive(Default)]
struct Plain {
    blocks: Ids,
}

impl Decode for Plain {
    fn take(&mut self, line: &[u8]) -> Result<Option<Record>, Cause> {
        if is_comment(line) {
            return Ok(None);
        }
        let mut words = split(line);
        let (block, disk, compute) = (words.next(), words.next(), words.next());
        let (Some(block), None) = (block, words.next()) else {
            return Err(Cause::form(line, FORM));
        };
        let device = disk.map_or(Ok(0), |word| small("disk", word))?;
        let compute = compute.map(|word| time("compute_us", word, MICROSECOND));
        let block = Record::block(self.blocks.number(block)?);
        Ok(Some(Record {
            device,
            is_named: self.blocks.are_names(),
            compute: compute.transpose()?.map(Nanos),
            ..block
        }))
    }
}

impl Encode for Plain {
    fn put(&mut self, record: &Record, out: &mut Vec<u8>) -> Result<(), Cause> {
        let mut line = offset_of(record).to_string();
        if record.device > 0 || record.compute.is_some() {
            line += &format!(" {}", record.device);
        }
        if let Some(Nanos(compute)) = record.compute {
            line += &format!(" {}", in_units(compute, MICROSECOND));
        }
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(lines: &[&str]) -> Result<Vec<u64>, Cause> {
        let mut plain = Plain::default();
        let records = lines.iter().map(|line| plain.take(line.as_bytes()));
        records
            .filter_map(Result::transpose)
            .map(|record| record.map(|r| offset_of(&r)))
            .collect()
    }

    #[test]
    fn names_are_numbered_in_the_order_of_first_use() {
        let found = blocks(&["b 1 2.5", "# a comment", "a", "7", "b"]);
        assert_eq!(found.unwrap(), [0, 1, 2, 0]);
    }

    #[test]
    fn a_name_among_numbers_is_found() {
        assert_eq!(blocks(&["7", "9 1"]).unwrap(), [7, 9]);
        assert!(matches!(
            blocks(&["7", "b"]),
            Err(Cause::Field { field: "block", .. })
        ));
        assert!(blocks(&["a,b"]).is_err());
        assert!(blocks(&["1 2 3 4"]).is_err());
    }
}
