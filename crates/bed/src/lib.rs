//! forerun-bed: emulated disks under the kernel's own page cache, readahead and scheduler.
//!
//! A device of `forerun-sim`, run in real time, decides the cost of a read; the kernel decides the
//! reads and their times. So the kernel's readahead and `forerun mount` meet on the same disk, with
//! the same programs:
//!
//! ```text
//! reader -> [forerun mount ->] ext4 or btrfs -> /dev/loopN (direct I/O) -> FUSE export
//!                                                     -> emulated device -> image in tmpfs
//! ```
//!
//! One way through the files: [`bed`] (the TOML) -> [`plan`] -> [`up`], which writes each [`thing`]
//! into the [`state`] directory before it is made, and [`down`], which undoes them in reverse
//! order. [`serve`] is the daemon: [`export`], [`store`]. [`read`] is the program
//! both candidates run, [`mod@table`] the whole comparison, and [`small`] that of small files.
//! [`changes`] needs no bed: it checks the reads of a mount while its source changes; nor does
//! [`objects`], a store behind a network, nor [`local`]: it compares the rates of one large file of a disk that is there.
//!
//! It needs root, names the missing parts where it cannot run, and touches no device or mount it
//! did not make. It is a tool of the project, not part of an installation.

#![forbid(unsafe_code)]

pub mod args;
pub mod bed;
pub mod changes;
pub mod cold;
pub mod compare;
pub mod content;
pub mod down;
pub mod export;
pub mod fill;
mod joined;
pub mod kernel;
pub mod local;
pub mod memory_group;
pub mod mix;
pub mod mounted;
pub mod needs;
pub mod objects;
pub mod passthrough;
pub mod plan;
pub mod profile;
pub mod read;
pub mod serve;
pub mod servers;
pub mod small;
pub mod soak;
pub mod state;
pub mod status;
pub mod store;
pub mod table;
pub mod thing;
pub mod tool;
pub mod up;
mod watched;

pub use forerun_emulated::clock;
pub use forerun_surface::failure;
