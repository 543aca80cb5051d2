//! The commands, one file each. A command takes its arguments and two streams, and returns its
//! result; it prints through those streams alone and never exits by itself.

#[cfg(feature = "files")]
pub mod bench;
#[cfg(feature = "install")]
pub mod completions;
#[cfg(feature = "mount")]
pub mod ctl;
#[cfg(feature = "mount")]
pub mod doctor;
pub mod explain;
#[cfg(feature = "files")]
pub mod layout;
pub mod list;
#[cfg(feature = "install")]
pub mod man;
#[cfg(feature = "mount")]
pub mod mount;
#[cfg(feature = "files")]
pub mod profile;
#[cfg(feature = "files")]
pub mod read;
pub mod replay;
pub mod simulate;
pub mod sweep;
#[cfg(feature = "top")]
pub mod top;
pub mod trace;
#[cfg(feature = "mount")]
pub mod trial;
#[cfg(feature = "mount")]
pub mod tune;
#[cfg(feature = "mount")]
pub mod umount;
pub mod version;
#[cfg(feature = "mount")]
pub mod watch;
