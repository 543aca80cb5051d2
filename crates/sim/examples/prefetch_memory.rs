//! Servers whose memory is too small for their prefetches: the table of design note 0009, a row a
//! load, number of requests, memory and think time.
//!
//! ```text
//! cargo run --release -p forerun-sim --example prefetch_memory [LOAD]..
//! ```
//!
//! Rates are those of 20 s of virtual time on one disk, in MB/s. The last column compares the
//! preset `forerun` with the best of its row, including the system with announced requests. Words
//! after the command choose loads.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "../tests/suite/prefetch_memory/server.rs"]
mod server;
#[path = "../tests/suite/prefetch_memory/table.rs"]
mod table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", table::HEAD);
    for case in table::cases() {
        let load = format!("{:?}", case.load);
        if words.is_empty() || words.contains(&load) {
            println!("{}", case.row(&case.rates()));
        }
    }
}
