//! Paths of the control sockets of mounts, by which `forerun top` finds them.
//!
//! Each daemon makes one in a folder of its user, named after its process, unless `--control` says
//! otherwise. The folder is the user's alone (mode 0700), as the sockets are: a mount's report names
//! files that others may not see.
//!
//! ```text
//! root           /run/forerun/4711.sock
//! other users    $XDG_RUNTIME_DIR/forerun/4711.sock, or /run/user/UID/forerun/4711.sock
//! ```
//!
//! A daemon that was killed leaves its socket behind; a client that gets no connection to it
//! removes it. A mount works without such a folder; it just cannot be watched then.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::control::{Answer, Question, ask_within, connect};
use super::point;
use super::report::Report;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::plain;

/// Time limit of the answers of all mounts when they are looked for: one takes a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// The folder of this user's sockets.
#[derive(Clone, Debug)]
pub struct Sockets {
    folder: PathBuf,
}

impl Sockets {
    /// Finds the folder, which need not be there.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let set = |value: &Option<OsString>| {
            let value = value.as_ref().filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let user = rustix::process::geteuid();
        let folder = match (set(&environment.forerun_runtime_dir), user.is_root()) {
            (Some(folder), _) => folder,
            (None, true) => "/run/forerun".into(),
            (None, false) => set(&environment.xdg_runtime_dir)
                .unwrap_or_else(|| format!("/run/user/{}", user.as_raw()).into())
                .join("forerun"),
        };
        Self { folder }
    }

    /// A name for the socket of this process; makes the folder.
    ///
    /// # Errors
    /// The folder cannot be made, or is not this user's alone.
    pub fn name(&self) -> io::Result<PathBuf> {
        let mut builder = fs::DirBuilder::new();
        match builder.mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => self.check()?,
        }
        // It may be on a file system that is read-only by now.
        rustix::fs::access(&self.folder, rustix::fs::Access::WRITE_OK)?;
        Ok(self.folder.join(format!("{}.sock", std::process::id())))
    }

    /// A folder of another user could hold another user's socket.
    fn check(&self) -> io::Result<()> {
        let there = fs::symlink_metadata(&self.folder)?;
        let ours = there.uid() == rustix::process::geteuid().as_raw();
        if there.is_dir() && ours && there.mode() & 0o077 == 0 {
            return Ok(());
        }
        let why = format!("{} is not this user's alone", self.folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }

    /// The mounts that run and answer, in the order of their mount points.
    #[must_use]
    pub fn running(&self) -> Vec<(PathBuf, Report)> {
        if self.check().is_err() {
            return Vec::new();
        }
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = names.map(|entry| entry.path()).filter(|path| {
            let is_socket = path.extension().is_some_and(|end| end == "sock");
            is_socket && !is_left_over(path)
        });
        // All at once: a daemon that is stopped answers none.
        let ask = |path: PathBuf| match ask_within(&path, &Question::Stats, PATIENCE) {
            Ok(Answer::Stats(report)) => Some((path, *report)),
            _ => None,
        };
        let mut running: Vec<_> = thread::scope(|scope| {
            let asked: Vec<_> = paths.map(|path| scope.spawn(|| ask(path))).collect();
            let answers = asked.into_iter().map(|asked| asked.join().ok().flatten());
            answers.flatten().collect()
        });
        running.sort_by(|(_, a), (_, b)| a.mountpoint.cmp(&b.mountpoint));
        running
    }

    /// The socket of a mount, which is given by its mount point or by the socket itself.
    ///
    /// # Errors
    /// Neither of the two.
    pub fn find(&self, wanted: &Path) -> Result<PathBuf, Failure> {
        let absolute =
            std::path::absolute(wanted).map_err(|e| Failure::unusable(wanted, plain(&e)))?;
        // First by name alone: a query of the attributes of a mount that hangs would hang with it.
        let by_name = |path: &Path| {
            let path: PathBuf = path.components().collect();
            let found = self.running().into_iter();
            let mut found = found.filter(|(_, report)| Path::new(&report.mountpoint) == path);
            found.next().map(|(socket, _)| socket)
        };
        if let Some(socket) = by_name(&absolute) {
            return Ok(socket);
        }
        let nowhere = || {
            let folder = self.folder.display();
            let why =
                format!("no mount listens here: neither a socket, nor a mount that {folder} has");
            Failure::unusable(wanted, why)
        };
        // Its daemon may be stopped, and then the question for attributes has no answer either.
        if point::is_ours(&absolute.components().collect::<PathBuf>()) {
            return Err(nowhere());
        }
        let there = fs::metadata(wanted).map_err(|e| Failure::unusable(wanted, plain(&e)))?;
        if there.file_type().is_socket() {
            return Ok(absolute);
        }
        let real = wanted.canonicalize().ok();
        real.as_deref().and_then(by_name).ok_or_else(nowhere)
    }

    /// The folder, for messages.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Whether the socket has no listener any more; the file is then removed.
fn is_left_over(path: &Path) -> bool {
    match connect(path, Instant::now()) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            true
        }
        Err(_) => true,
        Ok(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn sockets(folder: &Path) -> Sockets {
        Sockets::of(&Environment {
            forerun_runtime_dir: Some(folder.into()),
            xdg_runtime_dir: None,
        })
    }

    #[test]
    fn the_folder_is_the_users_alone_or_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("forerun");
        let name = sockets(&folder).name().unwrap();
        assert!(name.starts_with(&folder));
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(sockets(&folder).name().is_err());
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        assert!(sockets(&link).name().is_err());
    }

    #[test]
    fn the_socket_of_a_killed_mount_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let sockets = sockets(&parent.path().join("forerun"));
        let name = sockets.name().unwrap();
        drop(UnixListener::bind(&name).unwrap());
        assert!(name.exists());
        assert!(sockets.running().is_empty());
        assert!(!name.exists());
    }

    #[test]
    fn mounts_that_do_not_answer_are_waited_for_together() {
        let parent = tempfile::tempdir().unwrap();
        let sockets = sockets(&parent.path().join("forerun"));
        let folder = sockets.name().unwrap();
        let silent = |n: u32| UnixListener::bind(folder.with_file_name(format!("{n}.sock")));
        let silent: Vec<_> = (0..20).map(|n| silent(n).unwrap()).collect();
        let begun = Instant::now();
        assert!(sockets.running().is_empty());
        // One after the other they would take more than this.
        assert!(begun.elapsed() < PATIENCE * 10);
        drop(silent);
    }

    #[test]
    fn users_have_their_runtime_folder() {
        let environment = Environment {
            forerun_runtime_dir: Some("".into()),
            xdg_runtime_dir: Some("/run/user/7".into()),
        };
        let folder = Sockets::of(&environment).folder;
        let root = rustix::process::geteuid().is_root();
        let expected = if root {
            "/run/forerun"
        } else {
            "/run/user/7/forerun"
        };
        assert_eq!(folder, Path::new(expected));
    }
}
