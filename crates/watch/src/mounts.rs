//! Mounts: which file system a path belongs to, where its limit of readahead is, and which disks are below it.
//!
//! Asked once at the start for each PATH, a folder, a file or a block device. The answers come from
//! `/proc/self/mountinfo` and `/sys`, which never wait for a server.
//!
//! ```text
//! /data --statx--> mount 36 --mountinfo--> ext4, 8:1 --/sys/dev/block/8:1--> sda1 --> bdi 8:0, disk sda
//!                                          btrfs, 0:41 --/sys/fs/btrfs/UUID--> bdi btrfs-1, its devices
//! ```
//!
//! The limit is written through the file system's bdi alone. The file of the same name below `/sys/block` freezes the
//! queue of its device on several kernels (6.11 to 6.18), for much longer than a window.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forerun_surface::failure::Failure;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags};

use crate::sysfs::{Leaf, Spread, Sys, numbers};

/// File systems whose pages the kernel does not read ahead from a block device.
const REFUSED: &[(&str, &str)] = &[
    (
        "fuse",
        "a FUSE file system: watch the one its files come from",
    ),
    ("nfs", "a network file system: its server decides"),
    ("cifs", "a network file system: its server decides"),
    ("smb", "a network file system: its server decides"),
    ("ceph", "a network file system: its server decides"),
    ("9p", "a network file system: its server decides"),
    ("afs", "a network file system: its server decides"),
    (
        "virtiofs",
        "a FUSE file system: watch the one its files come from",
    ),
    ("tmpfs", "its files are in memory"),
    ("ramfs", "its files are in memory"),
    ("devtmpfs", "its files are in memory"),
    ("hugetlbfs", "its files are in memory"),
    (
        "zfs",
        "ZFS reads ahead by itself, past the kernel's readahead",
    ),
    ("overlay", "an overlay: watch the file systems below it"),
    ("bcachefs", "it has no bdi of one device"),
];

/// A line of mountinfo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) device: (u32, u32),
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: PathBuf,
}

/// A file system that is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSystem {
    /// Its device, as events number it.
    pub device: u32,
    /// Its type.
    pub kind: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The name of its bdi.
    pub bdi: String,
    /// The file with its limit of readahead.
    pub limit: PathBuf,
    /// The devices that it sends its reads to: one, or of btrfs several.
    pub queues: Vec<u32>,
    /// The disks below it, as events number them, and whether each says that it turns.
    pub disks: Vec<(u32, bool)>,
    /// How they lie together.
    pub spread: Spread,
    /// The folder or file below which files are watched; none for all of it.
    pub below: Option<PathBuf>,
}

/// Major and minor number as the kernel packs them in events.
pub(crate) fn packed((major, minor): (u32, u32)) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// The mounts that a process sees.
pub(crate) fn table_of(process: u32) -> io::Result<Vec<Mount>> {
    let text = fs::read(format!("/proc/{process}/mountinfo"))?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .collect())
}

/// `36 35 8:1 /root /point options [optional ..] - type source super`
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let text = |field: &[u8]| std::str::from_utf8(field).ok().map(str::to_owned);
    let id = text(fields.next()?)?.parse().ok()?;
    let device = numbers(&text(fields.nth(1)?)?)?;
    let point = unescaped(fields.nth(1)?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(rest.next()?).into_owned();
    let source = unescaped(rest.next()?);
    Some(Mount {
        id,
        device,
        point,
        kind,
        source,
    })
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        (rest, _) = match value {
            Some(byte) => (&after[3..], bytes.push(byte)),
            None => (after, bytes.push(*first)),
        };
    }
    std::ffi::OsStr::from_bytes(&bytes).into()
}

/// The file systems of a path: one, or those of a block device.
///
/// # Errors
/// The path is not there, or of a kind that cannot be watched, by name.
pub fn file_system(path: &Path) -> Result<FileSystem, Failure> {
    let absolute =
        fs::canonicalize(path).map_err(|error| Failure::unusable(path, plain(&error)))?;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let told = rustix::fs::statx(CWD, &absolute, AtFlags::NO_AUTOMOUNT, wanted)
        .map_err(|error| Failure::unusable(path, error))?;
    let table = table_of(std::process::id()).map_err(|error| Failure::unusable(path, error))?;
    let is_device = FileType::from_raw_mode(told.stx_mode.into()) == FileType::BlockDevice;
    let mount = match is_device {
        true => {
            let device = (told.stx_rdev_major, told.stx_rdev_minor);
            let mut of_device = table
                .iter()
                .filter(|mount| mount.device == device || mount.source == absolute);
            of_device.next().ok_or_else(|| {
                Failure::unusable(path, "no file system of this device is mounted")
            })?
        }
        false => {
            let of_path = table.iter().find(|mount| mount.id == told.stx_mnt_id);
            of_path
                .ok_or_else(|| Failure::unusable(path, "its mount is not in the table of mounts"))?
        }
    };
    let below = (!is_device && absolute != mount.point).then_some(absolute);
    of_mount(path, mount, below)
}

/// The file systems of paths, each once, with the paths below which files are watched.
pub(crate) fn of_all(paths: &[PathBuf]) -> Result<Vec<(FileSystem, Vec<PathBuf>)>, Failure> {
    let mut found: Vec<(FileSystem, Vec<PathBuf>, bool)> = Vec::new();
    for path in paths {
        let of = file_system(path)?;
        let place = found.iter().position(|(own, ..)| own.device == of.device);
        let place = place.unwrap_or_else(|| {
            found.push((of.clone(), Vec::new(), false));
            found.len() - 1
        });
        let (_, below, is_all) = &mut found[place];
        match of.below {
            Some(path) => below.push(path),
            None => *is_all = true,
        }
    }
    let all = |(of, below, is_all)| (of, if is_all { Vec::new() } else { below });
    Ok(found.into_iter().map(all).collect())
}

fn of_mount(path: &Path, mount: &Mount, within: Option<PathBuf>) -> Result<FileSystem, Failure> {
    let kind = mount.kind.as_str();
    let is_named = |name: &str| {
        kind == name
            || kind.starts_with(&format!("{name}."))
            || (name == "nfs" && kind.starts_with("nfs"))
            || (name == "smb" && kind.starts_with("smb"))
    };
    let no = REFUSED.iter().find(|(name, _)| is_named(name));
    if let Some((_, why)) = no {
        return Err(Failure::unusable(path, format!("{kind}: {why}")));
    }
    let sys = Sys::default();
    let below = match kind {
        "btrfs" => name_of(&mount.source).and_then(|name| sys.of_btrfs(&name)),
        _ => sys.of_block(mount.device),
    };
    let below = below
        .ok_or_else(|| Failure::unusable(path, format!("{kind}: no block device is below it")))?;
    let limit = sys.limit(&below.bdi);
    if !limit.exists() {
        let why = format!(
            "{kind}: its limit of readahead, {}, is not there",
            limit.display()
        );
        return Err(Failure::unusable(path, why));
    }
    let of_leaf = |leaf: &Leaf| (packed(leaf.number), leaf.is_rotational);
    Ok(FileSystem {
        device: packed(mount.device),
        kind: mount.kind.clone(),
        point: mount.point.clone(),
        bdi: below.bdi,
        limit,
        queues: below.queues.into_iter().map(packed).collect(),
        disks: below.leaves.iter().map(of_leaf).collect(),
        spread: below.spread,
        below: within,
    })
}

/// The name of a device by its path, which may be a link.
fn name_of(source: &Path) -> Option<String> {
    let source = fs::canonicalize(source).ok()?;
    source.file_name()?.to_str().map(str::to_owned)
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_with_a_hostile_name() {
        let line = b"36 35 98:3 /mnt1 /mnt\\0402\\134 rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        let expected = Mount {
            id: 36,
            device: (98, 3),
            point: "/mnt 2\\".into(),
            kind: "ext4".into(),
            source: "/dev/root".into(),
        };
        assert_eq!(mount(line), Some(expected));
        assert_eq!(mount(b"36 35 98 / / rw - ext4 x y"), None);
        assert_eq!(mount(b""), None);
    }

    #[test]
    fn file_systems_without_a_disk_are_refused_by_name() {
        for (kind, device) in [
            ("tmpfs", (0, 30)),
            ("fuse.sshfs", (0, 31)),
            ("nfs4", (0, 32)),
            ("zfs", (0, 33)),
            ("overlay", (0, 34)),
        ] {
            let mount = Mount {
                id: 1,
                device,
                point: "/x".into(),
                kind: kind.into(),
                source: "none".into(),
            };
            let message = of_mount(Path::new("/x"), &mount, None)
                .unwrap_err()
                .to_string();
            assert!(
                message.starts_with("/x: ") && message.contains(kind),
                "{message}"
            );
        }
        let message = file_system(Path::new("/proc/self"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("proc"), "{message}");
        let message = file_system(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(message.contains("/nowhere: no such file"), "{message}");
    }

    #[test]
    fn numbers_are_packed_as_in_events() {
        assert_eq!(packed((7, 3)), 0x0070_0003);
        assert_eq!(packed((0, 41)), 41);
    }
}
