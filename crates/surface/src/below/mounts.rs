//! The table of mounts.
//!
//! The number of a mount (`statx`, `STATX_MNT_ID`) is the key, not a prefix of its path and not `st_dev`: bind mounts
//! have another path, and subvolumes of btrfs and files of overlayfs another `st_dev` than their mount. Names in the table
//! may be any bytes.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::Number;

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// The number of the mount it is attached to.
    pub below: u64,
    /// The number of its device, or of none.
    pub device: Number,
    /// The folder or file of the file system that is mounted: `/` unless it is a bind mount or a subvolume.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Type of the file system.
    pub kind: String,
    /// The file systems that are mounted.
    pub source: PathBuf,
    /// Options of the file system.
    pub options: String,
}

impl Mount {
    /// Device number of its source, where that is a block device: btrfs has no other.
    #[must_use]
    pub fn source_device(&self) -> Option<Number> {
        device_of(&self.source)
    }

    /// Why the kernel's readahead of a device is not what its files are read with; none if it is.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let kind = self.kind.as_str();
        let is_named =
            |name: &&str| kind == *name || kind.strip_prefix(name).is_some_and(is_subtype);
        let why = REFUSED.iter().find(|(names, _)| names.iter().any(is_named));
        why.map(|(_, why)| format!("{kind}: {why}"))
    }
}

/// `fuse.sshfs`, and versions: `nfs4`, `smb3`.
fn is_subtype(rest: &str) -> bool {
    rest.starts_with('.') || !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

const REFUSED: &[(&[&str], &str)] = &[
    (
        &["fuse", "fuseblk", "virtiofs"],
        "a daemon of FUSE reads the storage: name a folder of the file system below the daemon",
    ),
    (
        &["tmpfs", "ramfs", "hugetlbfs", "rootfs", "devtmpfs"],
        "its files are in memory, and nothing is read ahead",
    ),
    (
        &["zfs"],
        "it reads ahead by itself (zfetch), past the kernel's readahead",
    ),
    (
        &[
            "nfs", "cifs", "smb", "ceph", "9p", "afs", "lustre", "gfs2", "ocfs2", "orangefs",
        ],
        "its files are another machine's: the bdi is that of a connection, and no disk can be measured",
    ),
    (
        &[
            "proc",
            "sysfs",
            "devpts",
            "cgroup",
            "debugfs",
            "tracefs",
            "bpf",
            "securityfs",
            "configfs",
            "mqueue",
            "pstore",
            "efivarfs",
        ],
        "its files are made up by the kernel",
    ),
    (&["bcachefs"], "it has no bdi of one device"),
];

/// The mounts that a process sees.
///
/// # Errors
/// The process has ended.
pub fn table_of(process: u32) -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read(format!("/proc/{process}/mountinfo"))?))
}

/// The mounts that this process sees.
///
/// # Errors
/// There is no `/proc`.
pub fn own_table() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

/// The number of the mount a path is on; none before Linux 5.8.
#[must_use]
pub fn mount_id(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::MNT_ID).ok()?;
    let is_told = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    is_told.then_some(found.stx_mnt_id)
}

/// The device number of a block device; none of anything else.
#[must_use]
pub fn device_of(path: &Path) -> Option<Number> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
    let kind = FileType::from_raw_mode(found.stx_mode.into());
    (kind == FileType::BlockDevice).then_some((found.stx_rdev_major, found.stx_rdev_minor))
}

/// The mount of a path, which this tells the number of the mount for; without one the last mount that is above the path.
#[must_use]
pub fn mount_of<'a>(
    path: &Path,
    mounts: &'a [Mount],
    id: &dyn Fn(&Path) -> Option<u64>,
) -> Option<&'a Mount> {
    let wanted = id(path);
    mounts.iter().rev().find(|mount| match wanted {
        Some(wanted) => mount.id == wanted,
        None => path.starts_with(&mount.point),
    })
}

/// Reads the table; lines of another form are left out.
#[must_use]
pub fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    lines.filter_map(parse_line).collect()
}

/// `36 35 8:1 /root /point options [optional ..] - type source super`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let text = |field: &[u8]| std::str::from_utf8(field).ok().map(str::to_owned);
    let (id, below) = (text(fields.next()?)?, text(fields.next()?)?);
    let device = super::sysfs::numbers(&text(fields.next()?)?)?;
    let root = decoded(fields.next()?);
    let point = decoded(fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
        id: id.parse().ok()?,
        below: below.parse().ok()?,
        device,
        root,
        point,
        kind: String::from_utf8_lossy(rest.next()?).into_owned(),
        source: decoded(rest.next().unwrap_or_default()),
        options: decoded(rest.next().unwrap_or_default())
            .to_string_lossy()
            .into_owned(),
    })
}

/// Space, tab, newline and backslash are written as three octal digits.
fn decoded(field: &[u8]) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_with_a_hostile_name() {
        let line = b"36 35 98:3 /mnt1 /mnt\\0402\\134\xff rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        let expected = Mount {
            id: 36,
            below: 35,
            device: (98, 3),
            root: "/mnt1".into(),
            point: std::ffi::OsStr::from_bytes(b"/mnt 2\\\xff").into(),
            kind: "ext4".into(),
            source: "/dev/root".into(),
            options: "rw,errors=continue".into(),
        };
        assert_eq!(parse_line(line), Some(expected));
        assert_eq!(parse(b"36 35 98 / / rw - ext4 x y\n\nno line"), []);
    }

    #[test]
    fn file_systems_without_a_readahead_of_a_device_are_refused_by_name() {
        let refusal = |kind: &str| {
            let line = format!("1 0 0:30 / /x rw - {kind} none rw");
            parse(line.as_bytes())[0].refusal()
        };
        for (kind, words) in [
            ("tmpfs", "tmpfs: its files are in memory"),
            ("fuse.sshfs", "fuse.sshfs: a daemon of FUSE"),
            ("nfs4", "nfs4: its files are another machine's"),
            ("smb3", "smb3: its files are another machine's"),
            ("zfs", "zfs: it reads ahead by itself"),
            ("cgroup2", "cgroup2: its files are made up"),
            ("bcachefs", "bcachefs: it has no bdi"),
        ] {
            let why = refusal(kind).unwrap();
            assert!(why.starts_with(words), "{why}");
        }
        for kind in ["ext4", "xfs", "btrfs", "f2fs", "overlay", "nfsd_like"] {
            assert_eq!(refusal(kind), None, "{kind}");
        }
    }

    #[test]
    fn a_bind_mount_is_known_by_its_number_and_else_by_its_place() {
        let table = parse(
            b"20 1 8:2 / / rw - ext4 /dev/sda2 rw\n24 20 8:3 /data /bound rw - xfs /dev/sda3 rw\n",
        );
        let of = |path: &str, id: Option<u64>| {
            mount_of(Path::new(path), &table, &|_| id).map(|mount| mount.device)
        };
        assert_eq!(of("/bound/x", Some(20)), Some((8, 2)));
        assert_eq!(of("/bound/x", None), Some((8, 3)));
        assert_eq!(of("/bounds", None), Some((8, 2)));
        assert_eq!(of("/a", Some(99)), None);
    }
}
