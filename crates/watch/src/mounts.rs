//! Mounts: the file systems of the paths that are watched.
//!
//! Asked once at the start for each PATH, a folder, a file or a block device; what lies below it is found by
//! [`below`](forerun_surface::below). A folder, a bind mount or a subvolume is watched with the files below it, the mount point
//! of a whole file system with all files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use forerun_steering::disks::Spread;
use forerun_surface::below::mounts::{self, Mount};
use forerun_surface::below::sysfs::{Leaf, Sys};
use forerun_surface::failure::Failure;

const NO_MOUNT: &str = "its mount is not in the table of mounts";

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
    pub below: Option<Below>,
}

/// A folder with all below it, or a file, by two paths: bind mounts lead to it by others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Below {
    /// Its path here.
    pub path: PathBuf,
    /// That on its file system.
    pub inner: PathBuf,
}

impl Below {
    fn new(path: PathBuf, mount: &Mount) -> Option<Self> {
        let inner = inner(&mount.root, &mount.point, &path)?;
        Some(Self { path, inner })
    }

    /// Whether a file of its file system is below it: by a path that leads here, or by that on the file system.
    pub(crate) fn has(&self, path: Option<&Path>, inner: Option<&Path>) -> bool {
        path.is_some_and(|path| path.starts_with(&self.path))
            || inner.is_some_and(|inner| inner.starts_with(&self.inner))
    }

    /// The folder or file of a path that is there, and its file system.
    pub(crate) fn of(path: &Path) -> Option<(u32, Self)> {
        let absolute = fs::canonicalize(path).ok()?;
        let table = mounts::own_table().ok()?;
        let mount = mounts::mount_of(&absolute, &table, &mounts::mount_id)?;
        Some((packed(mount.device), Self::new(absolute, mount)?))
    }
}

/// A file that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// Its file system.
    pub(crate) device: u32,
    /// The path that its reader has for it, and whether that is a path of our mount namespace.
    pub(crate) path: &'a Path,
    pub(crate) is_here: bool,
    /// That on its file system, if it is known.
    pub(crate) inner: Option<&'a Path>,
}

impl<'a> Named<'a> {
    /// The reader's path, as far as that tells the place: a container has a /data of its own.
    pub(crate) fn path(&self) -> Option<&'a Path> {
        (self.is_here || self.inner.is_none()).then_some(self.path)
    }
}

/// A path below the point of a mount, as the path on the file system whose folder is mounted there.
pub(crate) fn inner(root: &Path, point: &Path, path: &Path) -> Option<PathBuf> {
    Some(root.join(path.strip_prefix(point).ok()?))
}

/// Major and minor number as the kernel packs them in events.
pub(crate) fn packed((major, minor): (u32, u32)) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// The file system of a path, or of a block device.
///
/// # Errors
/// The path is not there, or of a kind that cannot be watched, by name.
pub fn file_system(path: &Path) -> Result<FileSystem, Failure> {
    let absolute =
        fs::canonicalize(path).map_err(|error| Failure::unusable(path, plain(&error)))?;
    let table = mounts::own_table();
    let table = table.map_err(|error| Failure::unusable(path, error))?;
    let device = mounts::device_of(&absolute);
    let mount = match device {
        Some(device) => {
            let no = "no file system of this device is mounted";
            let mut all = table.iter();
            all.find(|mount| is_of(mount, device, &absolute)).ok_or(no)
        }
        None => mounts::mount_of(&absolute, &table, &mounts::mount_id).ok_or(NO_MOUNT),
    };
    let mount = mount.map_err(|no| Failure::unusable(path, no))?;
    let below = match device {
        Some(_) => Ok(None),
        None => within(absolute, mount),
    };
    let below = below.map_err(|no| Failure::unusable(path, no))?;
    of_mount(mount, below).map_err(|why| Failure::unusable(path, why))
}

/// The folder or file that a path leads to; none for the whole file system. A bind mount, or a subvolume of btrfs, is a part.
fn within(path: PathBuf, mount: &Mount) -> Result<Option<Below>, &'static str> {
    if path == mount.point && mount.root == Path::new("/") {
        return Ok(None);
    }
    Below::new(path, mount).map(Some).ok_or(NO_MOUNT)
}

/// Whether a mount is of this block device. btrfs has a number of its own, and a source that may be a link to the device.
fn is_of(mount: &Mount, device: (u32, u32), path: &Path) -> bool {
    let is_link = || mount.kind == "btrfs" && mount.source_device() == Some(device);
    mount.device == device || mount.source == path || is_link()
}

/// The file systems of paths, each once, with the paths below which files are watched.
pub(crate) fn of_all(paths: &[PathBuf]) -> Result<Vec<(FileSystem, Vec<Below>)>, Failure> {
    let mut found: Vec<(FileSystem, Vec<Below>, bool)> = Vec::new();
    for path in paths {
        let of = file_system(path)?;
        let place = found.iter().position(|(own, ..)| own.device == of.device);
        let place = place.unwrap_or_else(|| {
            found.push((of.clone(), Vec::new(), false));
            found.len() - 1
        });
        let (_, below, is_all) = &mut found[place];
        match of.below {
            Some(of) => below.push(of),
            None => *is_all = true,
        }
    }
    let all = |(of, below, is_all)| (of, if is_all { Vec::new() } else { below });
    Ok(found.into_iter().map(all).collect())
}

fn of_mount(mount: &Mount, within: Option<Below>) -> Result<FileSystem, String> {
    let kind = &mount.kind;
    if let Some(why) = mount.refusal() {
        return Err(why);
    }
    if kind == "overlay" {
        return Err("overlay: watch the file systems below it".into());
    }
    let below = Sys::default().of(mount)?;
    let of_leaf = |leaf: &Leaf| (packed(leaf.number), leaf.is_rotational == Some(true));
    Ok(FileSystem {
        device: packed(mount.device),
        kind: kind.clone(),
        point: mount.point.clone(),
        bdi: below.bdi,
        limit: below.limit,
        queues: below.queues.into_iter().map(packed).collect(),
        disks: below.leaves.iter().map(of_leaf).collect(),
        spread: match below.is_apart {
            true => Spread::Apart,
            false => Spread::Striped,
        },
        below: within,
    })
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
    fn paths_without_a_disk_are_refused_by_name() {
        let why = |path: &str| file_system(Path::new(path)).unwrap_err().to_string();
        assert!(why("/proc/self").contains("proc: its files are made up"));
        assert!(why("/nowhere").contains("/nowhere: no such file"));
        let line = b"34 1 0:34 / /x rw - overlay none rw";
        let why = of_mount(&mounts::parse(line)[0], None).unwrap_err();
        assert!(why.starts_with("overlay: watch the file systems"), "{why}");
    }

    #[test]
    fn a_device_is_that_of_a_btrfs_whose_source_is_a_link_to_it() {
        let all = fs::read_dir("/dev").unwrap().flatten();
        let device = |path: &Path| Some((path.to_owned(), mounts::device_of(path)?));
        let Some((path, device)) = all.map(|of| of.path()).find_map(|path| device(&path)) else {
            return crate::skipped::skipped("needs a block device in /dev");
        };
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("name");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let is_of = |kind: &str, path: &Path| {
            let line = format!("34 1 0:34 / /x rw - {kind} {} rw", link.display());
            is_of(&mounts::parse(line.as_bytes())[0], device, path)
        };
        assert!(is_of("btrfs", &path) && is_of("btrfs", &link));
        assert!(!is_of("ext4", &path), "its number is the device's");
    }

    #[test]
    fn the_mount_of_a_whole_file_system_is_watched_as_a_whole() {
        let of = |root: &str, path: &str| {
            let line = format!("30 1 8:1 {root} /m rw - ext4 /dev/sda1 rw");
            within(path.into(), &mounts::parse(line.as_bytes())[0])
        };
        assert_eq!(of("/", "/m"), Ok(None));
        for (root, path, inner) in [
            ("/", "/m/data", "/data"),
            ("/part", "/m", "/part"),
            ("/part", "/m/data", "/part/data"),
        ] {
            let below = of(root, path).unwrap().unwrap();
            assert_eq!(below.path, Path::new(path));
            assert_eq!(below.inner, Path::new(inner), "{root} {path}");
        }
        assert_eq!(of("/", "/other"), Err(NO_MOUNT));
    }

    #[test]
    fn a_folder_has_its_files_by_the_path_of_a_bind_mount_too() {
        let line = b"30 1 8:1 /base /m rw - ext4 /dev/sda1 rw";
        let below = Below::new("/m/data".into(), &mounts::parse(line)[0]).unwrap();
        assert_eq!(below.inner, Path::new("/base/data"));
        let has_in = |is_here, root: &str, point: &str, path: &str| {
            let inner = inner(root.as_ref(), point.as_ref(), path.as_ref());
            let file = Named {
                device: 1,
                path: path.as_ref(),
                is_here,
                inner: inner.as_deref(),
            };
            below.has(file.path(), file.inner)
        };
        let has = |root: &str, path: &str| has_in(true, root, "/srv", path);
        assert!(has("/base/data", "/srv/a") && has("/", "/srv/base/data/a"));
        assert!(
            has("/x", "/m/data/a"),
            "the mount of its reader is not known"
        );
        assert!(!has("/base/data2", "/srv/a") && !has("/", "/srv/data/a"));
        let of_container = |root| has_in(false, root, "/m", "/m/data/a");
        assert!(of_container("/base") && !of_container("/other"));
        assert!(has_in(true, "/other", "/m", "/m/data/a"), "mounted over it");
        let (device, of) = Below::of(Path::new("/proc/self/fd")).unwrap();
        assert!(device > 0 && of.inner.starts_with(format!("/{}", std::process::id())));
    }

    #[test]
    fn numbers_are_packed_as_in_events() {
        assert_eq!(packed((7, 3)), 0x0070_0003);
        assert_eq!(packed((0, 41)), 41);
    }
}
