//! Many readers in little memory: the table of `docs/MEASURED.md`, a row a device, memory and number
//! of readers.
//!
//! ```text
//! cargo run --release -p forerun-sim --example crowd
//! ```
//!
//! Each reader reads a file of its own, for ever, in pieces of 64 KiB; the bytes of as many seconds
//! of device time as went before are counted. `none` fetches nothing ahead; `lru` opens windows as
//! long as forerun's and gives up the block used longest ago; MB/s of each. `of fewer` is forerun's
//! over its best with fewer readers in the same memory. Words behind the command choose rows by the
//! device's name.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "../tests/suite/crowd/table.rs"]
mod table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", table::HEAD);
    for device in table::DEVICES {
        if words.is_empty() || words.iter().any(|word| device.0.contains(word.as_str())) {
            for mib in table::MEMORIES {
                table::rows(*device, *mib).for_each(|row| println!("{row}"));
            }
        }
    }
}
