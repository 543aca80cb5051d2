//! Paths of the control sockets of mounts and watches, by which `forerun top` finds them.
//!
//! Each daemon makes one in a folder of its user, named after its process, unless `--control` says
//! otherwise. The folder is the user's alone (mode 0700), as the sockets are: a mount's report names
//! files that others may not see.
//!
//! ```text
//! root           /run/forerun/4711.sock
//! other users    $XDG_RUNTIME_DIR/forerun/4711.sock, or /run/user/UID/forerun/4711.sock
//! neither        /tmp/forerun-UID/4711.sock: a user of cron, su or a container
//! ```
//!
//! A socket is made in the first of these folders that can be used, and looked for in all: a mount that cron began is
//! found by its user's next session. `FORERUN_RUNTIME_DIR` is one folder in their place.
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
use super::report::Report;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::files::plain;

/// Where a folder of users without another one is; not `TMPDIR`, which two sessions of a user may have different.
const LAST: &str = "/tmp";

/// A socket that is in none of the folders is not looked for.
const ELSEWHERE: &str = "one begun with --control SOCKET is named by that SOCKET";

/// Time limit of the answers of all daemons when they are looked for: one takes a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// The folders of this user's sockets.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// At least one, the preferred one first.
    folders: Vec<PathBuf>,
    /// The user named the folder.
    is_named: bool,
    /// Whether a mount of ours is on a path, by the kernel's list alone.
    is_mounted: fn(&Path) -> bool,
}

impl Sockets {
    /// Finds the folders, which need not be there. `is_mounted` says whether a mount of ours is on a path, by the kernel's
    /// list alone: a question for its attributes may hang.
    #[must_use]
    pub fn of(environment: &Environment, is_mounted: fn(&Path) -> bool) -> Self {
        let set = |value: &Option<OsString>| {
            let value = value.as_ref().filter(|value| !value.is_empty());
            // A daemon leaves the folder in which it was started.
            value.map(|value| std::path::absolute(value).unwrap_or_else(|_| value.into()))
        };
        if let Some(folder) = set(&environment.forerun_runtime_dir) {
            return Self {
                folders: vec![folder],
                is_named: true,
                is_mounted,
            };
        }
        let user = rustix::process::geteuid();
        let mut folders: Vec<PathBuf> = match user.is_root() {
            true => vec!["/run/forerun".into()],
            false => {
                let session = set(&environment.xdg_runtime_dir);
                let usual = PathBuf::from(format!("/run/user/{}", user.as_raw()));
                let of_user = session.into_iter().chain([usual]);
                of_user.map(|folder| folder.join("forerun")).collect()
            }
        };
        folders.push(format!("{LAST}/forerun-{}", user.as_raw()).into());
        folders.dedup();
        Self {
            folders,
            is_named: false,
            is_mounted,
        }
    }

    /// A name for the socket of this process, in the first folder that can be used; makes the folder. None, with a
    /// line of the log, where there is no such folder: the daemon works all the same.
    ///
    /// # Errors
    /// The folder that the user named cannot be used.
    pub fn name(&self) -> Result<Option<PathBuf>, Failure> {
        let mut refused = Vec::new();
        for folder in &self.folders {
            match usable(folder) {
                Ok(()) => return Ok(Some(folder.join(format!("{}.sock", std::process::id())))),
                Err(error) if self.is_named => return Err(named(folder, &error)),
                Err(error) => refused.push(format!("{}: {}", folder.display(), in_words(&error))),
            }
        }
        tracing::warn!(
            "`forerun top` will not find this one: {}",
            refused.join("; ")
        );
        Ok(None)
    }

    /// The first folder that can be used; none is made.
    ///
    /// # Errors
    /// Why each cannot, in words.
    pub fn preferred(&self) -> Result<&Path, String> {
        let mut refused = Vec::new();
        for folder in &self.folders {
            let parent = folder.parent().unwrap_or(folder);
            let looked = match check(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    rustix::fs::access(parent, rustix::fs::Access::WRITE_OK)
                        .map_err(io::Error::from)
                }
                looked => looked,
            };
            match looked {
                Ok(()) => return Ok(folder),
                Err(error) => refused.push(format!("{}: {}", folder.display(), in_words(&error))),
            }
        }
        Err(refused.join("; "))
    }

    /// The folder that the user named, if any, can be looked into.
    ///
    /// # Errors
    /// It is not there, or another user's, too.
    pub fn check_named(&self) -> Result<(), Failure> {
        match self.folders.iter().find(|_| self.is_named) {
            Some(folder) => check(folder).map_err(|error| named(folder, &error)),
            None => Ok(()),
        }
    }

    /// The mounts and watches that run and answer, in the order of their mount points and paths.
    #[must_use]
    pub fn running(&self) -> Vec<(PathBuf, Report)> {
        self.look().0
    }

    /// Those that run and answer, and the sockets of those that listen and do not.
    #[must_use]
    pub fn look(&self) -> (Vec<(PathBuf, Report)>, Vec<PathBuf>) {
        let folders = self.folders.iter().filter(|folder| check(folder).is_ok());
        let names = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let paths = names.map(|entry| entry.path()).filter(|path| {
            let is_socket = path.extension().is_some_and(|end| end == "sock");
            is_socket && !is_left_over(path)
        });
        // All at once: a daemon that is stopped answers none.
        let ask = |path: PathBuf| match ask_within(&path, &Question::Stats, PATIENCE) {
            Ok(Answer::Stats(report)) => Ok((path, *report)),
            _ => Err(path),
        };
        let (mut running, mut silent) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let asked: Vec<_> = paths.map(|path| scope.spawn(|| ask(path))).collect();
            for answer in asked.into_iter().filter_map(|asked| asked.join().ok()) {
                match answer {
                    Ok(answer) => running.push(answer),
                    // One that ended meanwhile is none.
                    Err(path) => silent.extend((!is_left_over(&path)).then_some(path)),
                }
            }
        });
        running.sort_by(|(_, a), (_, b)| a.mountpoint.cmp(&b.mountpoint));
        silent.sort();
        (running, silent)
    }

    /// Daemons that do not answer, for messages; their sockets have the numbers of their processes.
    #[must_use]
    pub fn in_silence(silent: &[PathBuf]) -> Option<String> {
        let named = |path: &PathBuf| match path.file_stem().and_then(|name| name.to_str()) {
            Some(process) => format!("process {process}"),
            None => path.display().to_string(),
        };
        let names: Vec<String> = silent.iter().map(named).collect();
        let seconds = PATIENCE.as_secs();
        (!names.is_empty()).then(|| {
            format!(
                "no answer within {seconds} s from {}, a mount or watch that is stopped or at work",
                names.join(", ")
            )
        })
    }

    /// The socket of a mount or a watch, which is given by its mount point, by one of its paths, or by the socket itself.
    ///
    /// # Errors
    /// Neither of the two.
    pub fn find(&self, wanted: &Path) -> Result<PathBuf, Failure> {
        let absolute =
            std::path::absolute(wanted).map_err(|e| Failure::unusable(wanted, plain(&e)))?;
        // First by name alone: a query of the attributes of a mount that hangs would hang with it.
        let by_name = |path: &Path| {
            let path: PathBuf = path.components().collect();
            let (running, silent) = self.look();
            let mut found = running
                .into_iter()
                .filter(|(_, report)| report.is_at(&path));
            found.next().map(|(socket, _)| socket).ok_or(silent)
        };
        let silent = match by_name(&absolute) {
            Ok(socket) => return Ok(socket),
            Err(silent) => silent,
        };
        let nowhere = |silent: Vec<PathBuf>| {
            if let Some(why) = Self::in_silence(&silent) {
                return Failure::unusable(wanted, why);
            }
            let folders = self.folders();
            let why = format!(
                "no mount or watch listens here: neither a socket, nor a mount or watch that {folders} has; {ELSEWHERE}"
            );
            Failure::unusable(wanted, why)
        };
        // Its daemon may be stopped, and then the question for attributes has no answer either.
        if (self.is_mounted)(&absolute.components().collect::<PathBuf>()) {
            let why = format!(
                "a mount is here, and nothing answers for it in {} within {} s: its daemon is stopped or dead, or \
                 another user's; {ELSEWHERE}",
                self.folders(),
                PATIENCE.as_secs()
            );
            return Err(Failure::unusable(wanted, why));
        }
        let there = fs::metadata(wanted).map_err(|e| Failure::unusable(wanted, plain(&e)))?;
        if there.file_type().is_socket() {
            return Ok(absolute);
        }
        match wanted.canonicalize() {
            Ok(real) if real != absolute => by_name(&real).map_err(nowhere),
            _ => Err(nowhere(silent)),
        }
    }

    /// The folders, for messages.
    #[must_use]
    pub fn folders(&self) -> String {
        let folders = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string());
        folders.collect::<Vec<_>>().join(" or ")
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        _ if error.get_ref().is_some() => error.to_string(),
        _ => plain(error),
    }
}

/// The refusal of the folder that the user named.
fn named(folder: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "FORERUN_RUNTIME_DIR={}: {}",
        folder.display(),
        in_words(error)
    ))
}

/// Makes a folder that is not there, and checks it.
fn usable(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check(folder)?,
    }
    // It may be on a file system that is read-only by now.
    Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?)
}

/// A folder of another user could hold another user's socket, and one that others can rename could become theirs.
fn check(folder: &Path) -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let there = fs::symlink_metadata(folder)?;
    let ours = there.uid() == rustix::process::geteuid().as_raw();
    if !there.is_dir() || !ours || there.mode() & 0o077 != 0 {
        return refused("must be a directory of this user alone (mode 0700), and no link");
    }
    let above = fs::metadata(folder.parent().unwrap_or(folder))?;
    match above.mode() & OTHERS_WRITE != 0 && above.mode() & STICKY == 0 {
        true => refused(
            "other users can rename it: the directory that it is in must have the sticky bit",
        ),
        false => Ok(()),
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
        let environment = Environment {
            forerun_runtime_dir: Some(folder.into()),
            ..Environment::default()
        };
        Sockets::of(&environment, |_| false)
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_folder_is_the_users_alone_or_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("forerun");
        let name = sockets(&folder).name().unwrap().unwrap();
        assert!(name.starts_with(&folder));
        let made = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(made & 0o777, 0o700);
        mode(&folder, 0o755);
        let refused = sockets(&folder).name().unwrap_err().to_string();
        let variable = format!("FORERUN_RUNTIME_DIR={}: must be", folder.display());
        assert!(refused.starts_with(&variable), "{refused}");
        assert!(sockets(&folder).check_named().is_err());
        mode(&folder, 0o700);
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(sockets(&link).name().is_err() && sockets(&link).check_named().is_err());
        // Others could put a folder of their own in its place, unless the sticky bit is set.
        mode(parent.path(), 0o777);
        assert!(sockets(&folder).name().is_err() && sockets(&folder).check_named().is_err());
        mode(parent.path(), 0o1777);
        assert!(sockets(&folder).name().is_ok() && sockets(&folder).check_named().is_ok());
    }

    #[test]
    fn a_folder_that_was_named_and_is_not_there_is_refused_by_its_name() {
        let parent = tempfile::tempdir().unwrap();
        let absent = parent.path().join("a/b");
        for refused in [
            sockets(&absent).name().map(drop),
            sockets(&absent).check_named(),
        ] {
            let refused = refused.unwrap_err().to_string();
            let expected = format!("FORERUN_RUNTIME_DIR={}: ", absent.display());
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    #[test]
    fn the_first_folder_that_can_be_used_has_the_socket_and_all_are_looked_into() {
        let parent = tempfile::tempdir().unwrap();
        let folders = ["absent/forerun", "open", "b", "c"].map(|name| parent.path().join(name));
        fs::create_dir(&folders[1]).unwrap();
        let all = Sockets {
            folders: folders.to_vec(),
            is_named: false,
            is_mounted: |_| false,
        };
        let name = all.name().unwrap().unwrap();
        assert_eq!(name.parent(), Some(&*folders[2]));
        usable(&folders[3]).unwrap();
        for folder in &folders[2..] {
            drop(UnixListener::bind(folder.join("1.sock")).unwrap());
        }
        // The socket of a mount that was killed is removed where it is found.
        assert!(all.running().is_empty());
        assert!(
            folders[2..]
                .iter()
                .all(|folder| !folder.join("1.sock").exists())
        );
        let none = Sockets {
            folders: folders[..2].to_vec(),
            ..all
        };
        assert!(none.name().unwrap().is_none());
    }

    #[test]
    fn the_socket_of_a_killed_mount_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let sockets = sockets(&parent.path().join("forerun"));
        let name = sockets.name().unwrap().unwrap();
        drop(UnixListener::bind(&name).unwrap());
        assert!(name.exists());
        assert!(sockets.running().is_empty());
        assert!(!name.exists());
    }

    #[test]
    fn mounts_that_do_not_answer_are_waited_for_together() {
        let parent = tempfile::tempdir().unwrap();
        let sockets = sockets(&parent.path().join("forerun"));
        let folder = sockets.name().unwrap().unwrap();
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
            ..Environment::default()
        };
        let folders = Sockets::of(&environment, |_| false).folders;
        let user = rustix::process::geteuid();
        let last = format!("/tmp/forerun-{}", user.as_raw());
        let of_user = format!("/run/user/{}/forerun", user.as_raw());
        let expected: &[&str] = match user.is_root() {
            true => &["/run/forerun", &last],
            false => &["/run/user/7/forerun", &of_user, &last],
        };
        assert!(
            folders.iter().eq(expected.iter().map(Path::new)),
            "{folders:?}"
        );
    }
}
