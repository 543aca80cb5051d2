//! Checks of SOURCE and MOUNTPOINT before anything is mounted.
//!
//! Called once by the command. A mount whose daemon was killed stays in place until it is unmounted
//! (`ENOTCONN` for every access); a dead mount of forerun is unmounted here, so that mounting again
//! works.
//!
//! A mount point inside SOURCE is accepted: the folder below it is kept as [`Covered`]. A SOURCE
//! inside the mount point is refused, because the mount would hide its own source.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use forerun_core::Bytes;
use forerun_io::source::tree::Tree;
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
    if mounts()?.iter().any(|mount| mount.path == path) {
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
    let mounts = list.split(|byte| *byte == b'\n').filter_map(parse);
    let ours = mounts.filter(|mount| mount.kind == attach::TYPE);
    ours.map(|mount| (mount.path, mount.source)).collect()
}

/// Whether a mount of ours is on this path, by the kernel's list alone.
#[must_use]
pub fn is_ours(path: &Path) -> bool {
    mounts().is_ok_and(|mounts| last_is_ours(&mounts, path))
}

/// Whether the uppermost mount on this path is ours.
fn last_is_ours(mounts: &[Mounted], path: &Path) -> bool {
    let last = mounts.iter().rfind(|mount| mount.path == path);
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

/// A line of the kernel's list of mounts.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Mounted {
    pub(super) number: u64,
    /// The number of the mount it is attached to.
    pub(super) below: u64,
    pub(super) path: PathBuf,
    pub(super) kind: String,
    pub(super) source: PathBuf,
    pub(super) device: (u32, u32),
}

/// The kernel's list.
pub(super) fn mounts() -> Result<Vec<Mounted>, Failure> {
    let path = Path::new("/proc/self/mountinfo");
    let text = fs::read(path).map_err(|e| Failure::unusable(path, plain(&e)))?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// A line of mountinfo: its number, that of the mount below, the device, the fifth word is the path, those
/// after `-` are the type and the source.
fn parse(line: &[u8]) -> Option<Mounted> {
    let mut words = line.split(|byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (number, below, device) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?);
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let path = unescaped(words.nth(1)?);
    let mut words = words.skip_while(|word| *word != b"-").skip(1);
    let (kind, source) = (words.next()?, words.next().unwrap_or_default());
    Some(Mounted {
        number,
        below,
        path,
        kind: String::from_utf8_lossy(kind).into_owned(),
        source: unescaped(source),
        device,
    })
}

/// Blanks and the like stand as three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'\\').then(|| octal(after.get(..3)?)).flatten();
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_line_of_mountinfo_gives_path_and_type() {
        let line = b"29 1 0:26 / /a\\040b\\134c\xff rw shared:4 master:1 - fuse.forerun /s rw";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.path.as_os_str().as_bytes(), b"/a b\\c\xff");
        assert_eq!(mounted.kind, attach::TYPE);
        assert_eq!(mounted.source, Path::new("/s"));
        assert_eq!((mounted.number, mounted.below), (29, 1));
        assert_eq!(mounted.device, (0, 26));
        assert_eq!(parse(b""), None);
    }

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
