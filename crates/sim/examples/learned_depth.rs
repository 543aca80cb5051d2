//! How much it helps to know how long streams are: the table of `docs/design/0014`, a row a length,
//! number of requests at a time and composition.
//!
//! ```text
//! cargo run --release -p forerun-sim --example learned_depth
//! ```
//!
//! Requests read whole files, or pieces anywhere in long files, on a disk of 8 ms and 80 MB/s; D is
//! 640 kB. In each composition the depth method is exchanged and nothing else. MB/s are those of
//! the 200 requests after the first 200. Words behind the command choose rows that hold one of
//! them.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "../tests/learned/table.rs"]
mod table;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", table::HEAD);
    for composition in table::COMPOSITIONS {
        for case in table::cases() {
            let name = table::name(composition, &case);
            if words.is_empty() || words.iter().any(|word| name.contains(word.as_str())) {
                println!("{}", table::row(composition, &case));
            }
        }
    }
}
