//! A resource that a bed made outside its state directory's own files, and how to undo it.
//!
//! `up` and `table` write each into the [`state`](crate::state) before they make it, so a resource
//! on the list may exist or not; [`undo`](Thing::undo) asks the kernel. It takes down only what it
//! can tell is ours: a loop device by the image behind it, a mount by its place and type, a folder
//! by being empty. So undoing twice is as good as once, and after a kill at any moment nothing of
//! ours is left and nothing of others is touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::kernel;
use crate::tool;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Thing {
    /// An empty folder, to mount on.
    Folder {
        /// Where.
        path: PathBuf,
    },
    /// The folder of the images, with these files in it.
    Images {
        /// Where.
        path: PathBuf,
        /// Their names.
        files: Vec<String>,
    },
    /// A mount.
    Mount {
        /// On which folder; one of ours.
        path: PathBuf,
        /// How the type of its file system begins.
        kind: String,
    },
    /// A loop device.
    Loop {
        /// The file behind it.
        image: PathBuf,
    },
    /// A queue setting of a loop device, which outlives the device.
    Setting {
        /// The file behind the device.
        image: PathBuf,
        /// The setting's name under `queue`.
        name: String,
        /// The value before.
        before: String,
    },
    /// A memory cgroup.
    Group {
        /// Where.
        path: PathBuf,
    },
}

impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder { path } => write!(f, "folder {}", path.display()),
            Self::Images { path, .. } => write!(f, "images in {}", path.display()),
            Self::Mount { path, kind } => write!(f, "{kind} mounted on {}", path.display()),
            Self::Loop { image } => write!(f, "loop device of {}", image.display()),
            Self::Setting {
                image,
                name,
                before,
            } => {
                write!(f, "{name} of {}, before: {before}", image.display())
            }
            Self::Group { path } => write!(f, "memory group {}", path.display()),
        }
    }
}

impl Thing {
    /// Whether it is there.
    ///
    /// # Errors
    /// The kernel's lists cannot be read.
    pub fn exists(&self) -> Result<bool, Failure> {
        Ok(match self {
            Self::Folder { path } | Self::Images { path, .. } | Self::Group { path } => {
                // Below a mount whose daemon is gone, no file can be looked at, but it is there.
                !matches!(fs::symlink_metadata(path), Err(e) if e.kind() == io::ErrorKind::NotFound)
            }
            Self::Mount { path, kind } => kernel::mounts_on(path)?
                .iter()
                .any(|mount| mount.kind.starts_with(kind.as_str())),
            Self::Loop { image } | Self::Setting { image, .. } => kernel::loop_of(image)?.is_some(),
        })
    }

    /// Takes it down, if it is there.
    ///
    /// # Errors
    /// It is in use, or something foreign is in its place.
    pub fn undo(&self) -> Result<(), Failure> {
        match self {
            Self::Folder { path } | Self::Group { path } => gone(fs::remove_dir(path)).at(path),
            Self::Images { path, files } => {
                for file in files.iter().map(|name| path.join(name)) {
                    gone(fs::remove_file(&file)).at(&file)?;
                }
                gone(fs::remove_dir(path)).at(path)
            }
            Self::Mount { path, kind } => unmount_ours(path, kind),
            Self::Loop { image } => match kernel::loop_of(image)? {
                Some(device) => {
                    tool::run("losetup", ["--detach".as_ref(), device.as_os_str()]).map(|_| ())
                }
                None => Ok(()),
            },
            Self::Setting {
                image,
                name,
                before,
            } => match kernel::loop_of(image)? {
                Some(device) => kernel::set_queue(&device, name, before),
                None => Ok(()),
            },
        }
    }
}

/// A resource that is not there need not be removed.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn unmount_ours(path: &Path, kind: &str) -> Result<(), Failure> {
    // The last mount on a folder is the one on top.
    while let Some(top) = kernel::mounts_on(path)?.pop() {
        if !top.kind.starts_with(kind) {
            let found = format!(
                "a {} that is not ours is mounted here: left alone",
                top.kind
            );
            return Err(Failure::broken(path, found));
        }
        match unmount_once_free(path) {
            // A dead FUSE mount cannot be in orderly use: programs in there get errors already.
            Err(Errno::NOTCONN) => unmount(path, UnmountFlags::DETACH).at(path)?,
            result => result.at(path)?,
        }
    }
    Ok(())
}

/// Time for a detached loop device to release its file, and with it the mount the file is on.
///
/// The kernel lets go when the last program that has the device open closes it, and after that
/// program's own close: udev and every `losetup` look into all devices for some milliseconds. No
/// event tells that moment: the change event is sent before the file is put.
const LETTING_GO: Duration = Duration::from_secs(2);

/// Unmounts as soon as nothing holds it: the kernel closes the files of an io_uring some time after
/// the process is gone, later on a loaded machine.
///
/// # Errors
/// Something still holds it.
pub(crate) fn unmount_once_free(path: &Path) -> rustix::io::Result<()> {
    once_free(LETTING_GO, || unmount(path, UnmountFlags::NOFOLLOW))
}

/// Does it as soon as it is not busy, or fails because it still is.
fn once_free(
    patience: Duration,
    mut action: impl FnMut() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let began = Instant::now();
    loop {
        match action() {
            Err(Errno::BUSY) if began.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoing_what_is_not_there_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let (image, before) = (path.clone(), "none".to_owned());
        for thing in [
            Thing::Folder { path: path.clone() },
            Thing::Group { path: path.clone() },
            Thing::Images {
                path: path.clone(),
                files: vec!["a".into()],
            },
            Thing::Mount {
                path: path.clone(),
                kind: "ext4".into(),
            },
            Thing::Loop {
                image: path.clone(),
            },
            Thing::Setting {
                image,
                name: "scheduler".into(),
                before,
            },
        ] {
            assert!(!thing.exists().unwrap());
            thing.undo().unwrap();
        }
    }

    #[test]
    fn only_our_files_are_removed_and_only_from_our_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images");
        fs::create_dir(&path).unwrap();
        for name in ["disk0.raw", "foreign"] {
            fs::write(path.join(name), "x").unwrap();
        }
        let thing = Thing::Images {
            path: path.clone(),
            files: vec!["disk0.raw".into()],
        };
        assert!(thing.exists().unwrap());
        assert!(thing.undo().is_err());
        assert!(path.join("foreign").exists() && !path.join("disk0.raw").exists());
    }

    #[test]
    fn what_is_busy_is_waited_for_and_not_for_ever() {
        let mut answers = [Err(Errno::BUSY), Err(Errno::BUSY), Err(Errno::NOTCONN)].into_iter();
        let long = Duration::from_secs(3600);
        assert_eq!(
            once_free(long, || answers.next().unwrap()),
            Err(Errno::NOTCONN)
        );
        assert_eq!(answers.next(), None);
        assert_eq!(
            once_free(Duration::ZERO, || Err(Errno::BUSY)),
            Err(Errno::BUSY)
        );
    }

    #[test]
    fn a_mount_of_another_type_is_left_alone() {
        let path = PathBuf::from("/proc");
        let thing = Thing::Mount {
            path,
            kind: "ext4".into(),
        };
        assert!(!thing.exists().unwrap());
        assert!(thing.undo().unwrap_err().to_string().contains("left alone"));
    }
}
