//! Undo: values of the kernel that are changed for a while, and how they come back.
//!
//! `forerun tune` tries read-ahead and schedulers for minutes; `forerun watch` raises a read-ahead for 50 us, thousands of
//! times. Both must leave everything as it was, however they end:
//!
//! ```text
//! knob       one value in a file below /sys
//! record     its value before and the ones that are ours, written ahead of each change
//! guardian   a process that carries the record out where the first one was killed or stopped
//!            killed both: the next start finds the record
//! ```
//!
//! A value that another program has set meanwhile stays.

pub mod guardian;
pub mod knob;
pub mod record;
