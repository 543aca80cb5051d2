//! forerun-object-store: an [`ObjectStore`](object_store::ObjectStore) whose reads are answered by forerun's engine.
//!
//! For programs with DataFusion, Delta, Lance or any other reader that takes an `Arc<dyn ObjectStore>`. Their GETs
//! come from a memory of fixed size, long ranges as several requests side by side, streams with windows ahead. It
//! wraps the program's own store, whose credentials, retries and limits stay as they are; writes and listings pass
//! through.
//!
//! Example, guarantees and limits: [`PrefetchStore`].

#![forbid(unsafe_code)]

mod connection;
mod driver_of_task;
mod failures;
mod object;
mod opening;
mod source;
mod store;
mod table;
mod upload;

pub use store::PrefetchStore;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
