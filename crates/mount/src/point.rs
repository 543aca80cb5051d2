//! Checks of SOURCE and MOUNTPOINT before anything is mounted.
//!
//! Called once by the command. A mount whose daemon was killed stays in place until it is unmounted
//! (`ENOTCONN` for every access); a dead mount of forerun is unmounted here, so that mounting again
//! works.
//!
//! A mount point inside SOURCE is accepted: the folder below it is kept as [`Covered`]. A SOURCE
//! inside the mount point is refused, because the mount would hide its own source.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use forerun_core::Bytes;
use forerun_io::source::tree::Tree;
use forerun_surface::below::mounts::{Mount, own_table, parse};
use rustix::io::Errno;

use super::attach;
use super::fs::beneath;
use super::fs::covered::{Covered, covered};
use super::own_mount::OwnMount;
use crate::failure::Failure;
use crate::files::plain;

/// Dead mounts may lie on top of each other; more than this many is not cleared by us.
const STALE_MAX: usize = 16;

/// The time for a mount that is in the way to say that it lives.
const PATIENCE: Duration = Duration::from_secs(5);

/// The source of a mount.
#[derive(Debug)]
pub enum Source {
    /// A directory.
    Folder {
        /// Its path, absolute and free of links.
        path: PathBuf,
        /// The folder of it that the mount point hides.
        covered: Option<Covered>,
    },
    /// Objects of a store.
    Objects(Arc<dyn Tree>),
}

impl Source {
    /// Its path or address.
    #[must_use]
    pub fn name(&self) -> &Path {
        match self {
            Self::Folder { path, .. } => path,
            Self::Objects(tree) => Path::new(tree.address()),
        }
    }

    /// Memory of its own, beside the engine's.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        match self {
            Self::Folder { .. } => Bytes(0),
            Self::Objects(tree) => tree.memory(),
        }
    }
}

/// Both, checked.
#[derive(Debug)]
pub struct Checked {
    /// The source.
    pub source: Source,
    /// The mount point, absolute and free of links.
    pub mountpoint: PathBuf,
}

/// Checks a directory and its mount point, and clears away dead mounts of ours.
///
/// # Errors
/// The path that cannot be mounted, and why.
pub fn check(source: &Path, mountpoint: &Path, nonempty: bool) -> Result<Checked, Failure> {
    let source_path = folder(source)?;
    check_openat2(&source_path)?;
    let path = mountable(mountpoint, nonempty, |path| {
        if source_path == path {
            let why = "is SOURCE and MOUNTPOINT: the mount would hide its own source";
            return Err(Failure::unusable(source, why));
        }
        if source_path.starts_with(path) {
            let why = format!("is inside the mount point {}", mountpoint.display());
            return Err(Failure::unusable(source, why));
        }
        Ok(())
    })?;
    let hidden = path.starts_with(&source_path).then(|| covered(&path));
    let covered = hidden
        .transpose()
        .map_err(|e| Failure::unusable(mountpoint, io::Error::from(e)))?;
    Ok(Checked {
        source: Source::Folder {
            path: source_path,
            covered,
        },
        mountpoint: path,
    })
}

/// Checks the mount point of a tree, and clears away dead mounts of ours; then the tree is made.
///
/// # Errors
/// Why nothing can be mounted there; why there is no tree.
pub fn check_for(
    tree: impl FnOnce() -> Result<Arc<dyn Tree>, Failure>,
    mountpoint: &Path,
    nonempty: bool,
) -> Result<Checked, Failure> {
    let mountpoint = mountable(mountpoint, nonempty, |_| Ok(()))?;
    Ok(Checked {
        source: Source::Objects(tree()?),
        mountpoint,
    })
}

/// The real path of a mount point on which something can be mounted, if `suits` finds so.
fn mountable(
    mountpoint: &Path,
    nonempty: bool,
    suits: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let path = cleared(mountpoint)?;
    let refused = |why: &str| Failure::unusable(mountpoint, why);
    if !path.is_dir() {
        return Err(refused("is not a directory"));
    }
    suits(&path)?;
    if mounts()?.iter().any(|mount| mount.point == path) {
        return Err(refused("something is mounted here already"));
    }
    let mut names = fs::read_dir(&path).map_err(|e| refused(&plain(&e)))?;
    if !nonempty && names.next().is_some() {
        return Err(refused("is not empty (--nonempty mounts over it)"));
    }
    Ok(path)
}

/// The path of a mount of ours, if one is there; found by its name, so that one that hangs or is dead
/// is found too.
///
/// # Errors
/// The kernel's list cannot be read, or there is no such name.
pub fn ours(mountpoint: &Path) -> Result<Option<PathBuf>, Failure> {
    let mounts = mounts()?;
    let is_ours = |path: &Path| last_is_ours(&mounts, path);
    let absolute = std::path::absolute(mountpoint).map_err(|e| missing(mountpoint, &e))?;
    let absolute: PathBuf = absolute.components().collect();
    if is_ours(&absolute) {
        return Ok(Some(absolute));
    }
    let real = mountpoint
        .canonicalize()
        .map_err(|e| missing(mountpoint, &e))?;
    Ok(is_ours(&real).then_some(real))
}

/// The mount points and sources of our mounts in a list of the kernel, `/proc/self/mountinfo`. The source is a path, of
/// a long one the end behind three dots, or an address.
#[must_use]
pub fn ours_in(list: &[u8]) -> Vec<(PathBuf, PathBuf)> {
    let mounts = parse(list).into_iter();
    let ours = mounts.filter(|mount| mount.kind == attach::TYPE);
    ours.map(|mount| (mount.point, mount.source)).collect()
}

/// Whether a mount of ours is on this path, by the kernel's list alone.
#[must_use]
pub fn is_ours(path: &Path) -> bool {
    mounts().is_ok_and(|mounts| last_is_ours(&mounts, path))
}

/// Whether the uppermost mount on this path is ours.
fn last_is_ours(mounts: &[Mount], path: &Path) -> bool {
    let last = mounts.iter().rfind(|mount| mount.point == path);
    last.is_some_and(|mount| mount.kind == attach::TYPE)
}

fn check_openat2(source: &Path) -> Result<(), Failure> {
    // A source that cannot be opened is named later.
    let works = beneath::open_root(source).map(|root| beneath::check(&root));
    let Ok(Err(error)) = works else {
        return Ok(());
    };
    let why = plain(&error.into());
    Err(Failure::Usage(format!(
        "openat2(2) cannot be called here ({why}): a mount needs Linux 5.6 or later, and in a container a \
         seccomp profile that allows it"
    )))
}

fn folder(path: &Path) -> Result<PathBuf, Failure> {
    let canonical = path.canonicalize().map_err(|e| missing(path, &e))?;
    if canonical.is_dir() {
        Ok(canonical)
    } else {
        Err(Failure::unusable(path, "is not a directory"))
    }
}

fn missing(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        Failure::unusable(path, "no such directory")
    } else {
        Failure::unusable(path, plain(error))
    }
}

/// The real path of a mount point, once no dead mount of ours is on it.
fn cleared(mountpoint: &Path) -> Result<PathBuf, Failure> {
    for _ in 0..STALE_MAX {
        // Unlike attributes, the kernel never answers this one from its cache.
        match answer_of(mountpoint)? {
            Err(Errno::NOTCONN) => clear(mountpoint)?,
            // It is dying: this question was under way when its daemon went.
            Err(Errno::CONNABORTED) => {}
            Err(error) => return Err(missing(mountpoint, &error.into())),
            Ok(_) => {
                return mountpoint
                    .canonicalize()
                    .map_err(|e| missing(mountpoint, &e));
            }
        }
    }
    Err(Failure::unusable(
        mountpoint,
        "dead mounts lie on top of each other",
    ))
}

/// The kernel's answer about a path. A mount of ours on it may have a stopped daemon: it is asked by a thread that can be
/// left behind.
fn answer_of(mountpoint: &Path) -> Result<Result<(), Errno>, Failure> {
    let ask = |path: &Path| rustix::fs::statfs(path).map(drop);
    let absolute = std::path::absolute(mountpoint).map_err(|e| missing(mountpoint, &e))?;
    if !is_ours(&absolute.components().collect::<PathBuf>()) {
        return Ok(ask(mountpoint));
    }
    let (tell, answer) = channel();
    let asked = thread::Builder::new().spawn(move || tell.send(ask(&absolute)));
    let refused = |why: String| Failure::unusable(mountpoint, why);
    asked.map_err(|e| refused(plain(&e)))?;
    answer.recv_timeout(PATIENCE).map_err(|_| {
        refused(format!(
            "a mount is here that does not answer within {} s: its daemon is stopped or hangs",
            PATIENCE.as_secs()
        ))
    })
}

fn clear(mountpoint: &Path) -> Result<(), Failure> {
    let refused = |why: String| Failure::unusable(mountpoint, why);
    let absolute = std::path::absolute(mountpoint).map_err(|e| refused(plain(&e)))?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(refused("is not a directory".into()));
    };
    let path = parent
        .canonicalize()
        .map_err(|e| missing(mountpoint, &e))?
        .join(name);
    if !last_is_ours(&mounts()?, &path) {
        return Err(refused(
            "a dead mount of something else is in the way".into(),
        ));
    }
    tracing::info!("{}: clearing away a dead mount", path.display());
    let take_off = || {
        let (root, found) = OwnMount::at(&path)?;
        // Another program may have cleared the dead one away, and mounted.
        match rustix::fs::fstatfs(&root) {
            Err(Errno::NOTCONN) => found.take_off(&path).map(drop),
            _ => Ok(()),
        }
    };
    take_off().map_err(|e| refused(format!("a dead mount is in the way: {e}")))
}

/// The kernel's list.
pub(super) fn mounts() -> Result<Vec<Mount>, Failure> {
    own_table().map_err(|e| Failure::unusable(Path::new("/proc/self/mountinfo"), plain(&e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::write(&b, "").unwrap();
        let message = |s: &Path, m: &Path| check(s, m, false).unwrap_err().to_string();
        assert!(message(&dir.path().join("x"), &a).ends_with("x: no such directory"));
        assert!(message(&b, &a).ends_with("b: is not a directory"));
        assert!(message(&a, &b).ends_with("b: is not a directory"));
        assert!(message(&a, dir.path()).contains("is inside the mount point"));
        assert!(message(dir.path(), Path::new("/proc")).contains("mounted here already"));
        let inside = check(dir.path(), &a, false).unwrap();
        let Source::Folder { covered, .. } = inside.source else {
            panic!("a folder");
        };
        assert_eq!(covered.unwrap().name, "a");
        fs::write(a.join("c"), "").unwrap();
        assert!(message(dir.path(), &a).contains("is not empty"));
        assert!(check(dir.path(), &a, true).is_ok());
    }
}
