//! Users without a session: of cron, `su` or a container, who have no folder below `/run/user`.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::{can_mount, folder, has_fusermount, is_mounted, skipped};

/// A user of this test alone, with a program that user may run, and a source and a mount point.
struct User {
    number: u32,
    folder: TempDir,
    sockets: PathBuf,
}

impl User {
    fn new(test: u32) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        if !has_fusermount() {
            skipped("needs fusermount3");
            return None;
        }
        let number = 1_000_000 + 2 * std::process::id() + test;
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
        let _ = fs::remove_dir_all(&self.sockets);
    }
}

#[test]
fn top_ctl_and_umount_find_the_mount_of_a_user_without_a_session() {
    let Some(user) = User::new(0) else {
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
    let Some(user) = User::new(1) else {
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
fn a_named_folder_of_sockets_that_is_not_there_is_refused_by_its_name() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    for flags in [&["--foreground"][..], &[]] {
        let output = Command::new(cargo_bin!("forerun"))
            .args(["mount", "--memory", "16MiB"])
            .args(flags)
            .args(["source", "point"].map(|name| folder.path().join(name)))
            .env("FORERUN_RUNTIME_DIR", folder.path().join("a/b"))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let name = format!(
            "FORERUN_RUNTIME_DIR={}/a/b: no such directory",
            folder.path().display()
        );
        assert!(said.contains(&name), "{said}");
        assert!(!is_mounted(&folder.path().join("point")));
    }
}
