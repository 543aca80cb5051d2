//! Traces and the counts made of them: formats, published traces, counting policies, samples.

mod foreign;
mod formats;
mod policies;
mod published;
mod samples;
#[path = "../../../skipped.rs"]
mod skipped;
