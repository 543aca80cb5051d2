//! The file system of a path, as the list of mounts has it.
//!
//! The number of a mount (`statx`, `STATX_MNT_ID`) is the key, not a prefix of its path and not `st_dev`: bind mounts
//! have another path, and subvolumes of btrfs and files of overlayfs another `st_dev` than their mount. An overlay is
//! followed to the file system of the layer that holds the path: files of an overlay are opened there, with the
//! read-ahead of that file system.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, major, minor, statx};

use crate::failure::Failure;
use crate::files::plain;

/// An overlay may lie on an overlay; the kernel stacks two at most.
const OVERLAYS_MAX: u32 = 4;

/// Device number: major, minor.
pub type Number = (u32, u32);

/// A file system that has a device, or seems to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Type of the file system; none for a block device that was named itself.
    pub file_system: Option<String>,
    /// Device number of the mount, or of the block device.
    pub device: Number,
    /// Device number of the mount's source, where that is a block device: btrfs has no other.
    pub source: Option<Number>,
}

/// A line of the list of mounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    id: u64,
    device: Number,
    point: PathBuf,
    kind: String,
    source: PathBuf,
    options: String,
}

/// Finds the file system of a path.
///
/// # Errors
/// A path that is not there, or a file system that cannot be tuned.
pub fn of(path: &Path) -> Result<Place, Failure> {
    let unusable = |e: std::io::Error| Failure::unusable(path, plain(&e));
    let there = fs::metadata(path).map_err(unusable)?;
    if there.file_type().is_block_device() {
        let device = (major(there.rdev()), minor(there.rdev()));
        return Ok(Place {
            file_system: None,
            device,
            source: None,
        });
    }
    let real = path.canonicalize().map_err(unusable)?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(unusable)?;
    let mounts = parse(&mounts);
    find(&real, &mounts, &mount_id, OVERLAYS_MAX).map_err(|why| Failure::unusable(path, why))
}

/// The number of the mount a path is on.
fn mount_id(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    let is_told = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    is_told.then_some(found.stx_mnt_id)
}

type MountId<'a> = &'a dyn Fn(&Path) -> Option<u64>;

fn find(path: &Path, mounts: &[Mount], id: MountId<'_>, overlays: u32) -> Result<Place, String> {
    let wanted = id(path);
    let mount = mounts.iter().rev().find(|mount| match wanted {
        Some(wanted) => mount.id == wanted,
        // Kernels before 5.8 do not tell: the last mount that is above the path.
        None => path.starts_with(&mount.point),
    });
    let mount = mount.ok_or("its mount is not in /proc/self/mountinfo")?;
    if mount.kind == "overlay" {
        let layer = layer_of(path, mount)?;
        if overlays == 0 {
            return Err("overlays lie on overlays without an end".to_owned());
        }
        return find(&layer, mounts, id, overlays - 1)
            .map_err(|why| format!("overlayfs, whose layer {} is on {why}", layer.display()));
    }
    if let Some(why) = refusal(&mount.kind) {
        return Err(format!("{}: {why}", mount.kind));
    }
    let source = fs::metadata(&mount.source).ok();
    let source = source.filter(|source| source.file_type().is_block_device());
    Ok(Place {
        file_system: Some(mount.kind.clone()),
        device: mount.device,
        source: source.map(|source| (major(source.rdev()), minor(source.rdev()))),
    })
}

/// Why files of such a file system cannot be read ahead by another constant.
fn refusal(kind: &str) -> Option<&'static str> {
    if kind == "fuse" || kind.starts_with("fuse.") || kind == "fuseblk" {
        return Some(
            "a daemon of FUSE reads the storage: name a folder of the file system below the daemon",
        );
    }
    match kind {
        "tmpfs" | "ramfs" | "hugetlbfs" | "rootfs" | "devtmpfs" => {
            Some("its files are in memory, and nothing is read ahead")
        }
        "zfs" => Some("it reads ahead by itself (zfetch), and not by read_ahead_kb"),
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "afs" | "lustre"
        | "gfs2" | "ocfs2" | "orangefs" => Some(
            "its files are another machine's: the bdi is that of a connection, and no disk can be measured",
        ),
        "proc" | "sysfs" | "devpts" | "cgroup" | "cgroup2" | "debugfs" | "tracefs" | "bpf"
        | "securityfs" | "configfs" | "mqueue" | "pstore" | "efivarfs" => {
            Some("its files are made up by the kernel")
        }
        _ => None,
    }
}

/// The path in the layer of an overlay that holds it, the upper one first, as the overlay shows it.
fn layer_of(path: &Path, overlay: &Mount) -> Result<PathBuf, String> {
    let below = path.strip_prefix(&overlay.point).unwrap_or(Path::new(""));
    let layers = layers(&overlay.options);
    let found = layers.iter().find(|layer| layer.join(below).exists());
    found.map(|layer| layer.join(below)).ok_or_else(|| {
        let names: Vec<_> = layers.iter().map(|l| l.display().to_string()).collect();
        format!(
            "overlayfs: none of its layers ({}) can be seen from here, as in a container: name a path on one of them",
            names.join(", ")
        )
    })
}

/// `upperdir=/u` and `lowerdir=/a:/b` (or `lowerdir+=/a`) among the options; colons of names are escaped.
fn layers(options: &str) -> Vec<PathBuf> {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for option in split_unescaped(options, ',') {
        if let Some(name) = option.strip_prefix("upperdir=") {
            upper.push(unescaped(name));
        } else if let Some(name) = option.strip_prefix("lowerdir+=") {
            lower.push(unescaped(name));
        } else if let Some(names) = option.strip_prefix("lowerdir=") {
            lower.extend(
                split_unescaped(names, ':')
                    .iter()
                    .map(|name| unescaped(name)),
            );
        }
    }
    upper.extend(lower.into_iter().filter(|name| !name.is_empty()));
    upper.into_iter().map(PathBuf::from).collect()
}

fn split_unescaped(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut is_escaped) = (0, false);
    for (place, c) in text.char_indices() {
        if c == at && !is_escaped {
            parts.push(&text[begin..place]);
            begin = place + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[begin..]);
    parts
}

fn unescaped(text: &str) -> String {
    let mut is_escaped = false;
    let keep = |c: &char| {
        is_escaped = *c == '\\' && !is_escaped;
        !is_escaped
    };
    text.chars().filter(keep).collect()
}

/// Reads the list of mounts; lines of another form are left out.
fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_line(line: &str) -> Option<Mount> {
    let (before, behind) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let id = before.next()?.parse().ok()?;
    let (major, minor) = before.nth(1)?.split_once(':')?;
    let point = before.nth(1)?;
    let mut behind = behind.split(' ');
    Some(Mount {
        id,
        device: (major.parse().ok()?, minor.parse().ok()?),
        point: decoded(point).into(),
        kind: behind.next()?.to_owned(),
        source: decoded(behind.next()?).into(),
        options: decoded(behind.next().unwrap_or_default()),
    })
}

/// Blanks, tabs, ends of lines and backslashes are in octal.
fn decoded(text: &str) -> String {
    let names = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let decode = |text: String, (code, plain): (&str, &str)| text.replace(code, plain);
    names.into_iter().fold(text.to_owned(), decode)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        20 1 8:2 / / rw - ext4 /dev/sda2 rw\n\
        21 20 0:30 / /tmp rw - tmpfs tmpfs rw\n\
        22 20 0:31 / /z rw - zfs pool/z rw\n\
        23 20 0:32 / /export/a\\040b rw - nfs4 server:/export rw\n\
        24 20 8:2 /data /bound rw - ext4 /dev/sda2 rw\n\
        25 20 0:33 / /f rw - fuse.forerun forerun rw\n\
        26 20 0:40 / /merged rw - overlay overlay rw,lowerdir=/no\\134:lower:LOWER,upperdir=/none,workdir=/w\n\
        27 20 0:41 / /container rw - overlay overlay rw,lowerdir=/nowhere/1:/nowhere/2\n\
        no line of this form\n";

    fn found(path: &str, id: u64, mounts: &str) -> Result<Place, String> {
        find(
            Path::new(path),
            &parse(mounts),
            &|at: &Path| Some(if at == Path::new(path) { id } else { 20 }),
            OVERLAYS_MAX,
        )
    }

    #[test]
    fn a_bind_mount_is_the_file_system_it_shows() {
        let place = found("/bound/x", 24, MOUNTS).unwrap();
        assert_eq!(
            (place.device, place.file_system.as_deref()),
            ((8, 2), Some("ext4"))
        );
        // Without a number the last mount above the path is it.
        let place = find(Path::new("/bound/x"), &parse(MOUNTS), &|_| None, 1).unwrap();
        assert_eq!(place.device, (8, 2));
    }

    #[test]
    fn file_systems_that_cannot_be_tuned_are_named() {
        for (path, id, words) in [
            ("/tmp/a", 21, "tmpfs: its files are in memory"),
            ("/z/a", 22, "zfs: it reads ahead by itself"),
            ("/export/a b/c", 23, "nfs4: its files are another machine's"),
            ("/f/a", 25, "fuse.forerun: a daemon of FUSE"),
            (
                "/container/a",
                27,
                "overlayfs: none of its layers (/nowhere/1, /nowhere/2)",
            ),
            ("/a", 99, "not in /proc/self/mountinfo"),
        ] {
            let why = found(path, id, MOUNTS).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn an_overlay_is_followed_to_the_layer_that_holds_the_path() {
        let lower = tempfile::tempdir().unwrap();
        std::fs::create_dir(lower.path().join("x")).unwrap();
        let mounts = MOUNTS.replace("LOWER", lower.path().to_str().unwrap());
        assert_eq!(found("/merged/x", 26, &mounts).unwrap().device, (8, 2));
        let why = found("/merged/y", 26, &mounts).unwrap_err();
        assert!(why.contains("(/none, /no:lower, "), "{why}");
    }

    #[test]
    fn layers_are_read_in_both_forms_of_the_options() {
        let names = |options: &str| {
            let layers = layers(options);
            layers
                .iter()
                .map(|l| l.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("rw,lowerdir=/a:/b\\:c,upperdir=/u"),
            ["/u", "/a", "/b:c"]
        );
        assert_eq!(names("rw,lowerdir+=/a,lowerdir+=/b\\,c"), ["/a", "/b,c"]);
        assert_eq!(names("lowerdir=/a::/data"), ["/a", "/data"]);
    }
}
