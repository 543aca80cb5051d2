//! `changes`: the checker itself. A plain folder passes, and a mount that knows nothing of changes
//! does not.
//!
//! Needs root, because half of the readers are another user, and for the mount FUSE. A run of three
//! seconds has some thousand changes; a machine that is slow has fewer, and more runs: the passthrough
//! keeps bytes and attributes for a second, so the first changes are enough.

#[path = "../../skipped.rs"]
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use skipped::skipped;

fn bed() -> Command {
    Command::new(env!("CARGO_BIN_EXE_forerun-bed"))
}

/// A folder that other users may enter.
fn open_folder(place: &Path, name: &str) -> PathBuf {
    let path = place.join(name);
    fs::create_dir(&path).unwrap();
    for folder in [place, &path] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    path
}

fn changes(source: &Path, mountpoint: &Path) -> Output {
    let mut command = bed();
    let command = command.arg("changes").args([source, mountpoint]);
    let command = command.args(["--time", "3s", "--readers", "6", "--seed", "4711"]);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn report(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_plain_folder_has_no_violation() {
    println!("changes: seed 4711");
    let place = tempfile::tempdir().unwrap();
    let source = open_folder(place.path(), "source");
    let output = changes(&source, &source);
    if output.status.code() == Some(2) && said(&output).contains("not root") {
        skipped(said(&output));
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}{text}", said(&output));
    let report = report(&output);
    assert_eq!(report["violations"], serde_json::json!({}));
    assert_eq!(report["unchecked"], 0);
    assert!(report["opens"].as_u64().unwrap() > 0, "{text}");
    assert!(report["contents_seen"].as_u64().unwrap() > 0, "{text}");
    assert_eq!(fs::read_dir(&source).unwrap().count(), 0);
}

struct Mounted(Child, PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.1).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Mounts the passthrough; none: skipped.
fn passthrough(source: &Path, mountpoint: &Path) -> Option<Mounted> {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        skipped("not root, or no /dev/fuse");
        return None;
    }
    let mut command = bed();
    let command = command.arg("passthrough").args([source, mountpoint]);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let name = mountpoint.to_str().unwrap();
    let begun = Instant::now();
    while !fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .contains(name)
    {
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "no mount in ten minutes"
        );
        if let Some(status) = child.try_wait().unwrap() {
            skipped(format!("no passthrough mount: {status}"));
            return None;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    Some(Mounted(child, mountpoint.into()))
}

#[test]
fn a_mount_that_knows_nothing_of_changes_has_many() {
    println!("changes: seed 4711");
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let source = open_folder(&place, "source");
    let mountpoint = open_folder(&place, "mount");
    let Some(mounted) = passthrough(&source, &mountpoint) else {
        return;
    };
    let mut unseen = vec!["stale", "cut", "opened_without_right"];
    for _ in 0..10 {
        let output = changes(&source, &mountpoint);
        let has_violations = output.status.code() == Some(1);
        assert!(
            has_violations || output.status.success(),
            "{}",
            said(&output)
        );
        let is_named = said(&output).contains("violations, seed 4711");
        assert!(is_named || !has_violations, "{}", said(&output));
        let report = report(&output);
        println!("{report}");
        let is_seen = |kind: &str| report["violations"][kind].as_u64() > Some(0);
        unseen.retain(|kind| !is_seen(kind));
        if unseen.is_empty() {
            break;
        }
    }
    assert!(unseen.is_empty(), "{unseen:?}");
    drop(mounted);
    assert_eq!(fs::read_dir(&source).unwrap().count(), 0);
}

#[test]
fn a_mount_of_something_else_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let [source, other] = ["source", "other"].map(|name| open_folder(place.path(), name));
    let output = changes(&source, &other);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = said(&output);
    assert!(
        text.contains("does not show SOURCE") || text.contains("not root"),
        "{text}"
    );
}
