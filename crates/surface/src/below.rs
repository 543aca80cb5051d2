//! Below a path: its file system, the bdi with its limit of readahead, and the disks at the bottom.
//!
//! ```text
//! /data --statx--> mount 36 --mountinfo--> ext4, 8:1 --/sys/dev/block/8:1--> sda1 --> bdi 8:0, disk sda
//!                                          btrfs, 0:41 --/sys/fs/btrfs/UUID--> bdi btrfs-1, its devices
//! ```
//!
//! The answers come from the table of mounts and from `/sys`, which never wait for a server. `forerun watch` steers what
//! is found here, and `forerun tune` sets it.

pub mod mounts;
pub mod sysfs;

/// Device number: major, minor.
pub type Number = (u32, u32);
