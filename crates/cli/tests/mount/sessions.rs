//! Users without a session (cron, `su`, a container): they have no folder below `/run/user`.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::{can_mount, folder, has_fusermount, is_mounted, skipped};

/// A user of the system, as `fusermount3` takes no other, with a program that user may run, and a source and a mount point.
struct User {
    number: u32,
    folder: TempDir,
    sockets: PathBuf,
}

impl User {
    fn new(name: &str) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let device = fs::metadata("/dev/fuse").unwrap();
        if !has_fusermount() || device.mode() & 0o006 != 0o006 {
            skipped("needs fusermount3 and a /dev/fuse that users may open");
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let user = users
            .lines()
            .find(|line| line.split(':').next() == Some(name));
        let Some(number) = user.and_then(|user| user.split(':').nth(2)?.parse().ok()) else {
            skipped("needs the users nobody and daemon");
            return None;
        };
        let folder = folder();
        fs::copy(cargo_bin!("forerun"), folder.path().join("forerun")).unwrap();
        fs::write(folder.path().join("source/a"), "content").unwrap();
        for name in ["source", "source/a", "point"] {
            let path = folder.path().join(name);
            chown(&path, Some(number), Some(number)).unwrap();
        }
        let sockets = format!("/tmp/forerun-{number}").into();
        Some(Self {
            number,
            folder,
            sockets,
        })
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("point")
    }

    fn forerun(&self, words: &[&str], paths: &[&Path]) -> Output {
        Command::new(self.folder.path().join("forerun"))
            .args(words)
            .args(paths)
            .uid(self.number)
            .gid(self.number)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // As `su` leaves it: the folder of another user.
            .env("XDG_RUNTIME_DIR", "/run/user/0")
            .output()
            .unwrap()
    }

    fn mount(&self) -> String {
        let source = self.folder.path().join("source");
        let words = ["mount", "--memory", "16MiB"];
        let output = self.forerun(&words, &[&source, &self.point()]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    /// The output of a command that succeeds.
    fn says(&self, words: &[&str], paths: &[&Path]) -> String {
        let output = self.forerun(words, paths);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-lq").arg(self.point()).status();
        let _ = fs::remove_dir(&self.sockets);
    }
}

#[test]
fn top_ctl_and_umount_find_the_mount_of_a_user_without_a_session() {
    let Some(user) = User::new("nobody") else {
        return;
    };
    let point = user.point();
    let said = user.mount();
    assert_eq!(said, "");
    let there = fs::symlink_metadata(&user.sockets).unwrap();
    assert_eq!((there.uid(), there.mode() & 0o7777), (user.number, 0o700));
    let listed = user.says(&["top", "--list"], &[]);
    assert!(listed.contains(point.to_str().unwrap()), "{listed}");
    let limits = user.says(&["ctl", point.to_str().unwrap(), "limits"], &[]);
    assert!(limits.contains("memory_limit_bytes"), "{limits}");
    user.says(&["umount"], &[&point]);
    assert!(!is_mounted(&point));
}

#[test]
fn a_folder_of_sockets_that_another_user_made_is_not_used_and_the_mount_works() {
    let Some(user) = User::new("daemon") else {
        return;
    };
    for mode in [0o700, 0o777] {
        DirBuilder::new().mode(0o700).create(&user.sockets).unwrap();
        fs::set_permissions(&user.sockets, Permissions::from_mode(mode)).unwrap();
        let said = user.mount();
        let name = user.sockets.to_str().unwrap();
        assert!(
            said.contains("will not find this mount") && said.contains(name),
            "{said}"
        );
        assert_eq!(fs::read_dir(&user.sockets).unwrap().count(), 0);
        let top = user.forerun(&["top", "--list"], &[]);
        let said = String::from_utf8(top.stderr).unwrap();
        assert_eq!(top.status.code(), Some(2), "{said}");
        assert!(said.contains(name), "{said}");
        user.says(&["umount"], &[&user.point()]);
        fs::remove_dir(&user.sockets).unwrap();
    }
}

#[test]
fn a_named_folder_of_sockets_that_cannot_be_used_is_refused_by_its_name() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    for (flags, name, why) in [
        (&["--foreground"][..], "a/b", "no such directory"),
        (&[], "a/b", "no such directory"),
        (&[], "file", "must be a directory of this user alone"),
    ] {
        let output = Command::new(cargo_bin!("forerun"))
            .args(["mount", "--memory", "16MiB"])
            .args(flags)
            .args(["source", "point"].map(|name| folder.path().join(name)))
            .env("FORERUN_RUNTIME_DIR", folder.path().join(name))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let named = format!(
            "FORERUN_RUNTIME_DIR={}/{name}: {why}",
            folder.path().display()
        );
        assert!(said.contains(&named), "{said}");
        assert!(!is_mounted(&folder.path().join("point")));
    }
}
