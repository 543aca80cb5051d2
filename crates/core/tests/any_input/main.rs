//! The engine under any inputs, with any settings: the body of the fuzz target `engine`, a little of
//! it in every test.
//!
//! The fuzz target compiles the three modules of this program, so that both run the same events.
//! `PROPTEST_CASES=n` runs more.

mod draw;
mod event;
mod run;

use proptest::prelude::*;
use run::{Seen, run};

proptest! {
    #[test]
    fn any_inputs_under_any_settings_leave_nothing_behind(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        run(&bytes, &mut Seen::default());
    }
}

/// Bytes of a seed.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..3000).map(byte).collect()
}

#[test]
fn every_input_is_taken_and_refused_and_reads_are_deferred() {
    let mut seen = Seen::default();
    for seed in 0..160 {
        run(&bytes(seed), &mut seen);
    }
    println!("{seen:?}");
    assert_eq!(
        seen.inputs.len(),
        20,
        "every input there is, reads in three ways"
    );
    for (name, [taken, _]) in &seen.inputs {
        assert!(*taken > 0, "{name} is always refused");
    }
    assert!(seen.files_ahead.iter().all(|files| *files > 50), "{seen:?}");
    assert!(seen.deferred > 100 && seen.out_of_order > 100);
}
