//! The file system of a bed: mounted, unmounted, cold again, with other settings.
//!
//! Used by `up` and, before every single run, by `table`. Cold means unmounted and mounted: that
//! drops every page, inode and block of this file system, and nothing of other file systems, where
//! `drop_caches` would chill the whole machine. The images are in tmpfs and stay.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::mount::MountFlags;

use crate::bed::{Bed, Kind, Queue};
use crate::failure::{At, Failure};
use crate::kernel;
use crate::plan::BedPaths;
use crate::thing::unmount_once_free;
use crate::up::loops;

/// The purpose of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Writing the files.
    ToFill,
    /// Reading them.
    ToMeasure,
}

/// Mounts the file system.
///
/// # Errors
/// A loop device is gone, or the kernel refuses.
pub fn mount(bed: &Bed, place: &BedPaths, mode: Mode) -> Result<(), Failure> {
    let devices = loops(bed, place)?;
    let Some(first) = devices.first() else {
        return Err(Failure::broken(&place.files, "a bed has at least one disk"));
    };
    let flags = match mode {
        Mode::ToFill => MountFlags::NOATIME,
        Mode::ToMeasure => MountFlags::NOATIME | MountFlags::RDONLY,
    };
    let options = match (bed.file_system.kind, mode) {
        // Not to zero inode tables in the background.
        (Kind::Ext4, Mode::ToFill) => "noinit_itable".to_owned(),
        (Kind::Ext4, Mode::ToMeasure) => String::new(),
        (Kind::BtrfsRaid0 | Kind::BtrfsRaid10 | Kind::BtrfsRaid5, _) => {
            let members = devices.iter().map(|d| format!("device={}", d.display()));
            members.collect::<Vec<_>>().join(",")
        }
    };
    let options = CString::new(options).at(&place.files)?;
    let kind = bed.file_system.kind.mount_type();
    rustix::mount::mount(first, &place.files, kind, flags, options.as_c_str()).at(&place.files)
}

/// Unmounts the file system.
///
/// # Errors
/// It is in use.
pub fn unmount(place: &BedPaths) -> Result<(), Failure> {
    unmount_once_free(&place.files).at(&place.files)
}

/// Makes the file system cold, and sets it.
///
/// # Errors
/// It is in use; a setting the kernel refuses.
pub fn again(bed: &Bed, place: &BedPaths, queue: &Queue) -> Result<(), Failure> {
    unmount(place)?;
    mount(bed, place, Mode::ToMeasure)?;
    set(bed, place, queue)
}

/// Turns the delay of emulated disks on or off; local ones have none.
///
/// # Errors
/// The export does not answer.
pub fn delay(place: &BedPaths, is_on: bool) -> Result<(), Failure> {
    let Some(export) = &place.export else {
        return Ok(());
    };
    let path = export.join("delay");
    // The control file cannot be cut to nothing, which `fs::write` does first.
    let mut control = File::options().write(true).open(&path).at(&path)?;
    let word = if is_on { "on" } else { "off" };
    control.write_all(word.as_bytes()).at(&path)
}

/// Sets scheduler and readahead of a mounted bed.
///
/// # Errors
/// A setting the kernel refuses.
pub fn set(bed: &Bed, place: &BedPaths, queue: &Queue) -> Result<(), Failure> {
    let read_ahead_kib = queue.read_ahead_bytes / 1024;
    let devices = loops(bed, place)?;
    for device in &devices {
        set_disk(device, &queue.scheduler, read_ahead_kib)?;
    }
    match (bed.file_system.kind.btrfs_profiles(), devices.first()) {
        (Some(_), Some(first)) => kernel::set_btrfs_read_ahead(first, read_ahead_kib),
        _ => Ok(()),
    }
}

fn set_disk(device: &Path, scheduler: &str, read_ahead_kib: u64) -> Result<(), Failure> {
    let offered = kernel::schedulers(device)?;
    if !offered.iter().any(|name| name == scheduler) {
        let list = offered.join(", ");
        return Err(Failure::Usage(format!(
            "scheduler `{scheduler}`: this kernel has {list}"
        )));
    }
    // Choosing a scheduler makes it anew, also the one chosen: no run inherits another's state.
    kernel::set_queue(device, "scheduler", scheduler)?;
    kernel::set_queue(device, "read_ahead_kb", &read_ahead_kib.to_string())
}
