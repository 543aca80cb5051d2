//! The store around stores that count, fail, change, hang and lie.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a batch may have one range"
)]

mod changes;
mod conformance;
mod failures;
mod probe;
mod ratio;
mod reads;
mod requests;
