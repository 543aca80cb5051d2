//! The commands, one file each. A command takes its arguments and two streams, and returns its
//! result; it prints through those streams alone and never exits by itself.

pub mod bench;
pub mod completions;
pub mod ctl;
pub mod layout;
pub mod list;
pub mod man;
pub mod mount;
pub mod profile;
pub mod read;
pub mod replay;
pub mod reproduce;
pub mod simulate;
pub mod top;
pub mod trace;
pub mod trial;
pub mod umount;
