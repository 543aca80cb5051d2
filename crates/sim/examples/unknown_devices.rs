//! Throughput on a device without a description beside one with: the table of
//! `docs/MEASURED.md`, a row a device, number of readers and memory.
//!
//! ```text
//! cargo run --release -p forerun-sim --example unknown_devices
//! ```
//!
//! Each reader reads a file of its own. Both runs have the preset `forerun`; one is told the
//! profile of the device and keeps to it, the other is told nothing and measures. `after` compares
//! the bytes of the eight seconds that begin after two seconds and 32 requests, `all` those of 60
//! seconds (20 on devices faster than 300 MB/s). Words behind the command choose rows by the
//! device's name.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "../tests/suite/unknown/table.rs"]
mod table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", table::HEAD);
    for device in table::DEVICES {
        if words.is_empty() || words.iter().any(|word| device.contains(word.as_str())) {
            for row in table::rows(device) {
                println!("{row}");
            }
        }
    }
}
