//! The engine under any stream of inputs, with any settings.
//!
//! The bytes are read by the modules of the test `any_input` of `forerun-core`, which runs the same
//! events, a few of them, in every test. They state the invariants. Settings come from the lists of all
//! families, with values from the whole ranges; devices have 1 to 8 servers, many, or do not say;
//! fetches end in any order; numbers are few, so that inputs meet, or as large as they get.

use forerun_fuzz::fuzz;

#[path = "../../crates/core/tests/any_input/draw.rs"]
mod draw;
#[path = "../../crates/core/tests/any_input/event.rs"]
mod event;
#[path = "../../crates/core/tests/any_input/run.rs"]
mod run;

fn main() {
    fuzz("engine", |bytes| {
        let mut seen = run::Seen::default();
        run::run(bytes, &mut seen);
        // How often, in powers of two.
        let few = |count: u64| u64::BITS - count.leading_zeros();
        let inputs = seen
            .inputs
            .iter()
            .map(|(name, counts)| (*name, counts.map(few)));
        let inputs: Vec<_> = inputs
            .map(|(name, counts)| format!("{name} {}", letters(&counts)))
            .collect();
        let others = [
            seen.deferred,
            seen.out_of_order,
            seen.files_ahead[0],
            seen.files_ahead[1],
        ];
        format!("{inputs:?} {}", letters(&others.map(few)))
    });
}

/// Small numbers as letters, because digits are no difference.
fn letters(numbers: &[u32]) -> String {
    let letter = |number: &u32| char::from(b'a' + (*number).min(25) as u8);
    numbers.iter().map(letter).collect()
}
