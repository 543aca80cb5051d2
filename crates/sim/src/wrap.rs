//! Wrappers: devices around a device, each adding one thing.
//!
//! Any wrapper fits around any device or wrapper, because each is itself a
//! [`Device`](crate::device::Device). They change what is seen or how requests end, not what a
//! request costs inside.

pub mod fault;
pub mod tracer;

pub use fault::{Fault, Faults};
pub use tracer::{Traced, Tracer};
