//! Mounts in the background beside the program that started them: it may be gone, and what it holds is its own.

use std::path::Path;
use std::process::{Command, Stdio};

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
