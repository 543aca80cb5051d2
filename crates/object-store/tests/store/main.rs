//! The store around stores that count, fail, change, hang and lie.

mod changes;
mod conformance;
mod failures;
mod probe;
mod ratio;
mod reads;
mod requests;
