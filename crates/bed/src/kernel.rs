//! The kernel's view of mounts and loop devices, and the settings a bed turns.
//!
//! Reads /proc/self/mountinfo and /sys; writes `scheduler`, `read_ahead_kb` and `rotational` only,
//! of devices its callers made. Formats are those of Linux 5.9 and later (`bdi` under
//! /sys/fs/btrfs).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::failure::{At, Failure};

/// A mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Where.
    pub path: PathBuf,
    /// The type of its file system.
    pub kind: String,
}

/// The mounts on exactly this folder, the topmost last.
///
/// # Errors
/// The list cannot be read.
pub fn mounts_on(path: &Path) -> Result<Vec<Mount>, Failure> {
    let list = Path::new("/proc/self/mountinfo");
    let text = fs::read(list).at(list)?;
    let mounts = text.split(|b| *b == b'\n').filter_map(mount);
    Ok(mounts.filter(|mount| mount.path == path).collect())
}

/// Makes the folder of a run, in which its mount point is `point`.
///
/// # Errors
/// It cannot be made; a former run that was interrupted left it there.
pub fn make_place(path: &Path) -> Result<(), Failure> {
    let error = match fs::create_dir(path) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AlreadyExists {
        return Err(Failure::unusable(path, error));
    }
    let (path, point) = (path.display(), path.join("point"));
    let text = format!(
        "{path}: a run is at work there, or was interrupted: `umount {}` if it is mounted, then `rm -r {path}`",
        point.display()
    );
    Err(Failure::Usage(text))
}

/// `36 35 98:0 /root /mount/point options [optional ..] - type source super`
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|b| *b == b' ');
    let path = unescape(fields.nth(4)?);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some(Mount {
        path: OsString::from_vec(path).into(),
        kind: String::from_utf8_lossy(kind).into_owned(),
    })
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let octal = digits.and_then(|d| std::str::from_utf8(d).ok());
        match octal.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// The loop device whose file this is.
///
/// # Errors
/// /sys cannot be read.
pub fn loop_of(image: &Path) -> Result<Option<PathBuf>, Failure> {
    let list = Path::new("/sys/block");
    for entry in fs::read_dir(list).at(list)? {
        let entry = entry.at(list)?;
        // Free devices have no such file.
        let Ok(text) = fs::read(entry.path().join("loop/backing_file")) else {
            continue;
        };
        if OsStr::from_bytes(text.trim_ascii_end()) == image.as_os_str() {
            return Ok(Some(Path::new("/dev").join(entry.file_name())));
        }
    }
    Ok(None)
}

/// Whether a loop device reads its file past the page cache. It does not where it cannot, and
/// then a second read of the same bytes comes from memory.
#[must_use]
pub fn is_direct(device: &Path) -> bool {
    let block = Path::new("/sys/block").join(device.file_name().unwrap_or_default());
    fs::read_to_string(block.join("loop/dio")).is_ok_and(|text| text.trim() == "1")
}

fn queue(device: &Path, name: &str) -> PathBuf {
    let block = Path::new("/sys/block").join(device.file_name().unwrap_or_default());
    block.join("queue").join(name)
}

/// A queue setting of a block device; of a scheduler, the one chosen.
///
/// # Errors
/// There is no such setting.
pub fn queue_setting(device: &Path, name: &str) -> Result<String, Failure> {
    let path = queue(device, name);
    let text = fs::read_to_string(&path).at(&path)?;
    Ok(chosen(&text).to_owned())
}

/// `mq-deadline kyber [bfq] none` has bfq chosen; any other text is itself.
fn chosen(text: &str) -> &str {
    let marked = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(text.trim(), |(name, _)| name)
}

/// The schedulers a block device may have.
///
/// # Errors
/// It has none.
pub fn schedulers(device: &Path) -> Result<Vec<String>, Failure> {
    let path = queue(device, "scheduler");
    let text = fs::read_to_string(&path).at(&path)?;
    let names = text.split_whitespace();
    Ok(names
        .map(|name| name.trim_matches(['[', ']']).to_owned())
        .collect())
}

/// The schedulers of this kernel, by all of its block devices: some have no queue, and `none` alone. Empty where it
/// shows no device.
#[must_use]
pub fn all_schedulers() -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let of_each = devices.filter_map(|device| schedulers(&device.path()).ok());
    let names: BTreeSet<String> = of_each.flatten().collect();
    names.into_iter().collect()
}

/// Changes a queue setting of a block device.
///
/// # Errors
/// The kernel refuses the value.
pub fn set_queue(device: &Path, name: &str, value: &str) -> Result<(), Failure> {
    let path = queue(device, name);
    fs::write(&path, value).map_err(|e| Failure::broken(&path, format!("cannot be `{value}`: {e}")))
}

/// Sets the readahead of the mounted btrfs that one of its devices belongs to: it has its own.
///
/// # Errors
/// No such btrfs is mounted.
pub fn set_btrfs_read_ahead(device: &Path, kib: u64) -> Result<(), Failure> {
    let list = Path::new("/sys/fs/btrfs");
    let name = device.file_name().unwrap_or_default();
    for entry in fs::read_dir(list).at(list)? {
        let folder = entry.at(list)?.path();
        if folder.join("devices").join(name).exists() {
            let path = folder.join("bdi/read_ahead_kb");
            return fs::write(&path, kib.to_string()).at(&path);
        }
    }
    Err(Failure::broken(device, "no mounted btrfs has this device"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_an_interrupted_run_left_is_named_with_what_frees_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("run");
        make_place(&place).unwrap();
        let said = make_place(&place).unwrap_err().to_string();
        let umount = format!("`umount {}`", place.join("point").display());
        assert!(said.contains(&umount), "{said}");
        let said = make_place(&place.join("a/b")).unwrap_err().to_string();
        assert!(!said.contains("umount"), "{said}");
    }

    #[test]
    fn a_line_of_mountinfo_is_read_with_its_escapes() {
        let line = br"36 35 98:0 /mnt1 /mnt\0402\134 rw,noatime master:1 - ext3 /dev/root rw";
        let mount = mount(line).unwrap();
        assert_eq!(mount.path, Path::new(r"/mnt 2\"));
        assert_eq!(mount.kind, "ext3");
        assert_eq!(super::mount(b"36 35"), None);
    }

    #[test]
    fn what_is_mounted_is_found() {
        let proc = mounts_on(Path::new("/proc")).unwrap();
        assert_eq!(proc.last().unwrap().kind, "proc");
        assert!(mounts_on(Path::new("/proc/self")).unwrap().is_empty());
    }

    #[test]
    fn the_chosen_scheduler_stands_in_brackets() {
        assert_eq!(chosen("mq-deadline kyber [bfq] none\n"), "bfq");
        assert_eq!(chosen("128\n"), "128");
    }

    #[test]
    fn no_loop_device_has_a_file_that_is_not_there() {
        assert_eq!(loop_of(Path::new("/nowhere/disk0")).unwrap(), None);
    }
}
