//! Mounts in the background beside the program that started them: they outlive it, and hold none of its descriptors.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use snapbox::cmd::cargo_bin;

use super::{can_mount, folder, forerun, is_mounted, wait};

/// The command of a mount in this folder, of these words.
fn mount(program: &Path, words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(words)
        .args([folder.join("source"), folder.join("point")])
        .env("FORERUN_RUNTIME_DIR", folder.join("run"))
        .stdin(Stdio::null());
    command
}

fn umount(folder: &Path) {
    let taken = forerun(&["umount".as_ref(), folder.join("point").as_ref()]);
    assert_eq!(taken.0, 0, "{}", taken.1);
}

#[test]
fn a_mount_whose_starting_program_is_gone_is_taken_off() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let (gone, output) = std::io::pipe().unwrap();
    drop(gone);
    let words = ["mount", "--memory", "16MiB", "--report-ready"];
    let mut daemon = mount(cargo_bin!("forerun"), &words, folder.path())
        .stdout(output)
        .spawn()
        .unwrap();
    wait::end(&mut daemon).expect("the daemon ends");
    let is_left = is_mounted(&folder.path().join("point"));
    if is_left {
        umount(folder.path());
    }
    assert!(!is_left, "a dead mount is left");
}

/// A shell's script in which `"$@"` is a mount in the background.
fn script(text: &str, more: &[&str], folder: &Path) -> Command {
    let forerun = cargo_bin!("forerun").to_str().unwrap();
    let words = ["-c", text, "sh", forerun, "mount", "--memory", "16MiB"];
    mount(Path::new("sh"), &[&words[..], more].concat(), folder)
}

/// The lock of a shell that mounted in the background with this variable: whether another may have it then.
fn lock_beside_a_mount(variable: (&str, &str)) -> Option<Result<(), Errno>> {
    if !can_mount() {
        return None;
    }
    let folder = folder();
    let path = folder.path().join("lock");
    let lock = File::create(&path).unwrap();
    // The shell has the lock by this open.
    let text = "exec 9>\"$LOCK\" && flock 9 && \"$@\"";
    let started = script(text, &[], folder.path())
        .env("LOCK", &path)
        .env(variable.0, variable.1)
        .status();
    assert!(started.unwrap().success());
    assert!(is_mounted(&folder.path().join("point")));
    let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
    umount(folder.path());
    Some(locked)
}

#[test]
fn a_lock_of_the_starting_program_is_not_held_by_the_mount() {
    let variable = ("AWS_SHARED_CREDENTIALS_FILE", "/dev/fd/10");
    if let Some(locked) = lock_beside_a_mount(variable) {
        assert_eq!(locked, Ok(()), "the mount holds it");
    }
}

#[test]
fn a_descriptor_that_is_named_in_the_environment_goes_to_the_mount() {
    let variable = ("AWS_SHARED_CREDENTIALS_FILE", "/dev/fd/9");
    if let Some(locked) = lock_beside_a_mount(variable) {
        assert_eq!(locked, Err(Errno::WOULDBLOCK), "the mount does not have it");
    }
}

#[test]
fn a_descriptor_that_is_named_in_the_command_line_goes_to_the_mount() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("source/a"), "a").unwrap();
    let record = folder.path().join("record");
    // As `--record >(cat)` of other shells.
    let text = "\"$@\" 9>&1 >&2 | cat >\"$RECORD\"";
    let mut shell = script(text, &["--record=/dev/fd/9"], folder.path())
        .env("RECORD", &record)
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &shell, || {
        is_mounted(&folder.path().join("point"))
    });
    assert_eq!(fs::read(folder.path().join("point/a")).unwrap(), b"a");
    umount(folder.path());
    assert!(wait::end(&mut shell).unwrap().success());
    let lines = fs::read_to_string(record).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
}
