//! `forerun doctor` and real mounts: one that works, and others whose daemon or source is stopped or gone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::silent::Silent;
use super::{Mounted, folder, run, wait};

/// The lines about these, as verdict, check and observation; ends although all else hangs.
fn lines_about(
    folder: &Path,
    arguments: &[&Path],
    checks: &[&str],
) -> Vec<(String, String, String)> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut doctor = Command::new(cargo_bin!("forerun"))
        .args(["doctor", "--format", "json"])
        .args(arguments)
        .env("FORERUN_RUNTIME_DIR", folder.join("run"))
        .stdout(file.reopen().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ended = wait::end(&mut doctor).expect("it ends");
    let whole: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
    assert_eq!(
        ended.code(),
        Some(i32::from(whole["verdict"] == "fail")),
        "{whole}"
    );
    let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
    let all = whole["checks"].as_array().unwrap().iter();
    let about = all.filter(|check| checks.contains(&check["check"].as_str().unwrap()));
    about
        .map(|check| {
            (
                text(check, "verdict"),
                text(check, "check"),
                text(check, "found"),
            )
        })
        .collect()
}

const OF_MOUNTS: &[&str] = &["mount", "source"];

/// The only line about a mount and its source. A machine that stands still for a second has other ones, and is looked at
/// again.
#[track_caller]
fn only_line(folder: &Path, mount: &Path, verdict: &str, check: &str, words: &str) {
    let is_it = |lines: &[(String, String, String)]| match lines {
        [(of, about, found)] => {
            (of.as_str(), about.as_str()) == (verdict, check) && found.contains(words)
        }
        _ => false,
    };
    let mut lines = lines_about(folder, &[mount], OF_MOUNTS);
    for _ in 1..10 {
        if is_it(&lines) {
            break;
        }
        lines = lines_about(folder, &[mount], OF_MOUNTS);
    }
    assert!(is_it(&lines), "{lines:?}");
}

#[test]
fn a_mount_is_well_then_stopped_then_gone() {
    let Some(mut mounted) = Mounted::new(&[]) else {
        return;
    };
    let folder = mounted.folder.path().to_owned();
    let point = folder.join("point");
    only_line(&folder, &point, "ok", "mount", "at most 32MiB");
    let link = folder.join("link");
    symlink(&point, &link).unwrap();
    only_line(&folder, &link, "ok", "mount", "up ");
    mounted.signal(Signal::STOP);
    only_line(&folder, &point, "fail", "mount", "no answer within 1 s");
    mounted.signal(Signal::CONT);
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    only_line(&folder, &point, "fail", "mount", "its daemon has ended");
}

#[test]
fn a_stopped_mount_is_named_by_all_commands_and_comes_off_after_doctor() {
    let Some(mut mounted) = Mounted::new(&[]) else {
        return;
    };
    let folder = mounted.folder.path().to_owned();
    let (source, point) = (folder.join("source"), folder.join("point"));
    mounted.signal(Signal::STOP);
    only_line(&folder, &point, "fail", "mount", "no answer within 1 s");
    for (words, told) in [
        (
            vec!["ctl".as_ref(), point.as_os_str(), "stats".as_ref()],
            "a mount is here, and nothing answers for it",
        ),
        (
            vec!["mount".as_ref(), source.as_os_str(), point.as_os_str()],
            "a mount is here that does not answer within 5 s",
        ),
    ] {
        let mut command = Command::new(cargo_bin!("forerun"));
        let command = command
            .args(&words)
            .env("FORERUN_RUNTIME_DIR", folder.join("run"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(told), "{said}");
    }
    // No process of those commands is left in a call on it, which would keep it in use.
    let umounted = Command::new(cargo_bin!("forerun"))
        .arg("umount")
        .arg(&point)
        .output()
        .unwrap();
    assert!(umounted.status.success(), "{umounted:?}");
    mounted.signal(Signal::CONT);
    mounted.daemon.wait().unwrap();
}

#[test]
fn a_source_that_hangs_is_named_and_not_waited_for() {
    let Some(silent) = Silent::new(&[]) else {
        return;
    };
    let above = folder();
    let slow = silent.mounted.source("slow").canonicalize().unwrap();
    fs::remove_dir(above.path().join("source")).unwrap();
    symlink(&slow, above.path().join("source")).unwrap();
    let Some(of_slow) = Mounted::of(above, &[]) else {
        return;
    };
    let (folder, point) = (of_slow.folder.path().to_owned(), of_slow.point(""));
    silent.orders().silent = true;
    only_line(
        &folder,
        &point,
        "fail",
        "source",
        "does not answer within 1 s",
    );
    // The other mount works: only files below `slow` hang.
    only_line(
        silent.mounted.folder.path(),
        &silent.mounted.point(""),
        "ok",
        "mount",
        "up ",
    );
    silent.cut_off();
    silent.orders().held_go();
}

#[test]
fn a_full_disk_below_the_control_sockets_is_seen() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let full = mounted.folder.path().join("full");
    fs::create_dir(&full).unwrap();
    let arguments = ["-t", "tmpfs", "-o", "size=64k,mode=700", "none"].map(AsRef::as_ref);
    let tmpfs = run("mount", &[&arguments[..], &[full.as_os_str()]].concat());
    assert!(tmpfs.status.success());
    fs::create_dir(full.join("run")).unwrap();
    rustix::fs::chmod(full.join("run"), rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
    let lines = lines_about(&full, &[], &["sockets"]);
    run("umount", &["-l".as_ref(), full.as_os_str()]);
    assert_eq!(lines[0].0, "fail", "{lines:?}");
    assert!(
        lines[0].2.contains("cannot make its control socket"),
        "{lines:?}"
    );
}
