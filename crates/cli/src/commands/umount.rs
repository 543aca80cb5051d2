//! `forerun umount`: takes a mount off its path.
//!
//! Root does so with `umount2(2)`, others ask `fusermount3`, as when mounting. A mount that is in
//! use stays where it is, unless `--lazy`. Mounts of anything else are left alone: that is for
//! `umount(8)`.

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::args::Umount;
use crate::failure::Failure;
use crate::files::plain;
use crate::mount::{attach, point};

/// Runs the command.
///
/// # Errors
/// Nothing of ours is mounted there, it is in use, or it is not this user's.
pub fn run(args: &Umount) -> Result<(), Failure> {
    let given = &args.mountpoint;
    let path = point::ours(given)?
        .ok_or_else(|| Failure::unusable(given, "no mount of forerun is here"))?;
    let mut flags = UnmountFlags::NOFOLLOW;
    if args.lazy {
        flags |= UnmountFlags::DETACH;
    }
    match rustix::mount::unmount(&path, flags) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(Failure::broken(
            given,
            "is in use: programs have files open there, or it is their working directory. \
             `forerun umount --lazy` takes it off its path, and their open files stay open",
        )),
        Err(Errno::PERM) => attach::unmount_by_fusermount(&path, args.lazy)
            .map_err(|error| Failure::broken(given, error)),
        Err(error) => Err(Failure::broken(given, plain(&error.into()))),
    }
}
