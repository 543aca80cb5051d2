//! Opening below SOURCE, one name at a time, so that nothing leads out of it.
//!
//! The only file of the mount that opens anything of the source. A name is one component, never `.`
//! or `..`; it is opened relative to its folder's descriptor by `openat2(2)` with
//! `RESOLVE_BENEATH`, `RESOLVE_NO_MAGICLINKS` and `RESOLVE_NO_SYMLINKS`: the kernel refuses every
//! path that would leave the folder, also during a rename. Links are opened as links (`O_PATH |
//! O_NOFOLLOW`), never followed: following is the caller's kernel's work, in the caller's name
//! space.
//!
//! Descriptors are `O_PATH`: they name a file, and neither read it nor wake a device.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forerun_io::source::OpenFile;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The folder that is SOURCE. Here links are followed: the user named them.
///
/// # Errors
/// Errors of `open(2)`.
pub fn open_root(path: &Path) -> Result<File, Errno> {
    rustix::fs::open(path, ROOT, Mode::empty()).map(File::from)
}

/// Whether `openat2(2)` works here: Linux has it since 5.6, and some containers refuse it. Tried before the
/// mount is there, because every file needs it.
///
/// # Errors
/// Its error, other than those of a folder that cannot be opened.
pub fn check(root: &File) -> Result<(), Errno> {
    match openat2(root, OsStr::new("."), ROOT, ResolveFlags::empty()) {
        Err(error @ (Errno::NOSYS | Errno::PERM)) => Err(error),
        _ => Ok(()),
    }
}

const ROOT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The entry of this name in the folder, links as links, on the folder's file system.
///
/// # Errors
/// `EINVAL` for a name that is not one component, `EXDEV` if something is mounted there, else those
/// of `openat2(2)`.
pub fn open_child(folder: impl AsFd, name: &OsStr) -> Result<File, Errno> {
    check_name(name)?;
    openat2(folder, name, CHILD, ResolveFlags::NO_XDEV)
}

/// The same, and the root of a file system mounted there.
///
/// # Errors
/// The same, without `EXDEV`.
pub fn open_mounted(folder: impl AsFd, name: &OsStr) -> Result<File, Errno> {
    check_name(name)?;
    openat2(folder, name, CHILD, ResolveFlags::empty())
}

/// A regular file for reading, past the page cache where that is possible; and whether it is. It is
/// not waited for: something else may have its name by now.
///
/// # Errors
/// Errors of [`open_child`], `EAGAIN` as long as another program holds a write lease on it, and `EOPNOTSUPP` for one
/// with bytes that its size does not tell.
pub fn open_to_read(folder: impl AsFd, name: &OsStr) -> Result<(File, bool), Errno> {
    check_name(name)?;
    direct_if_possible(|flags| {
        let flags = flags | OFlags::NOFOLLOW;
        openat2(&folder, name, flags, ResolveFlags::NO_XDEV)
    })
}

/// The same for a file that a descriptor stands for.
///
/// # Errors
/// Errors of `open(2)`, and `EAGAIN` as above.
pub fn open_again(standing: &File) -> Result<(File, bool), Errno> {
    let path = path_of(standing);
    direct_if_possible(|flags| rustix::fs::open(&path, flags, Mode::empty()).map(File::from))
}

fn direct_if_possible(open: impl Fn(OFlags) -> Result<File, Errno>) -> Result<(File, bool), Errno> {
    const PLAIN: OFlags = OFlags::RDONLY
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);
    let (file, direct) = match open(PLAIN | OFlags::DIRECT) {
        Err(Errno::INVAL) => (open(PLAIN)?, false),
        opened => (opened?, true),
    };
    match OpenFile::hides_its_size(&file) {
        true => Err(Errno::OPNOTSUPP),
        false => Ok((file, direct)),
    }
}

const CHILD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder for listing, from its `O_PATH` descriptor.
///
/// # Errors
/// Errors of `openat2(2)`.
pub fn open_for_listing(folder: impl AsFd) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(folder, OsStr::new("."), flags, ResolveFlags::empty())
}

/// How often a call is made again that a signal interrupted. A server may answer `EINTR` for ever.
const INTERRUPTED_MAX: usize = 16;

/// `EAGAIN` is a server's answer, or the file is opened for reading and has a lease that is being broken: the
/// caller decides how long to wait. Names without `..` give none by renames elsewhere.
fn openat2(
    folder: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    more: ResolveFlags,
) -> Result<File, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    let resolve = resolve | more;
    let open = || rustix::fs::openat2(&folder, name, flags, Mode::empty(), resolve);
    let mut opened = open();
    for _ in 0..INTERRUPTED_MAX {
        if !matches!(opened, Err(Errno::INTR)) {
            break;
        }
        opened = open();
    }
    opened.map(File::from)
}

/// One component that can be looked up.
///
/// # Errors
/// `EINVAL` if it is empty, `.`, `..`, or has a slash or a zero byte in it.
pub fn check_name(name: &OsStr) -> Result<(), Errno> {
    let bytes = name.as_bytes();
    let special = matches!(bytes, b"" | b"." | b"..");
    if special || bytes.contains(&b'/') || bytes.contains(&0) {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// The path by which this process reaches the descriptor's file, under its present name, or if it
/// has none any more.
#[must_use]
pub fn path_of(descriptor: &File) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}

/// The number of an I/O error.
#[must_use]
pub fn errno(error: &io::Error) -> Errno {
    let number = forerun_io::error::number(error);
    number.map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("in");
        fs::create_dir(&inside).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let root = open_root(&inside).unwrap();
        for name in ["", ".", "..", "../in", "/etc", "a/b", "a\0b"] {
            assert_eq!(
                open_child(&root, OsStr::new(name)).unwrap_err(),
                Errno::INVAL,
                "{name:?}"
            );
        }
        let link = open_child(&root, OsStr::new("up")).unwrap();
        assert_eq!(open_for_listing(&link).unwrap_err(), Errno::NOTDIR);
        assert_eq!(
            open_child(&link, OsStr::new("in")).unwrap_err(),
            Errno::NOTDIR
        );
    }
}
