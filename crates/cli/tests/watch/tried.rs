//! Trials of settings beside a watch of the same bdi: whichever comes second is refused, and told by whom.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use snapbox::cmd::cargo_bin;

use crate::wait::{self, eventually};
use crate::{Disk, failed};

/// A disk of 8 ms and 80 MB/s.
const PROFILE: &str = "\
    [[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
    [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";

#[test]
fn a_trial_of_settings_and_a_watch_of_one_disk_exclude_each_other() {
    let Some(disk) = Disk::new() else { return };
    let watching = disk.watch(&[]);
    let point = disk.point();
    let point = point.to_str().unwrap();
    let profile = disk.folder.path().join("profile.toml");
    fs::write(&profile, PROFILE).unwrap();
    let words = [
        "tune",
        point,
        "--readers",
        "1",
        "--measure",
        "60",
        "--profile",
    ];
    let words = [&words[..], &[profile.to_str().unwrap()]].concat();
    let (code, said) = failed(&disk, &words);
    let process = format!("`forerun watch` (process {})", watching.child.id());
    assert!(code == Some(2) && said.contains(&process), "{said}");
    let profile = profile.to_str().unwrap();
    for words in [
        &[
            "tune",
            point,
            "--readers",
            "1",
            "--apply",
            "--profile",
            profile,
        ][..],
        &["tune", point, "--undo"],
        &["try", point],
        &["try", point, "--tuned"],
    ] {
        let (code, said) = failed(&disk, words);
        assert!(
            code == Some(2) && said.contains(&process),
            "{words:?}: {said}"
        );
    }
    watching.end();
    assert_eq!(disk.kib(), 128);
}

#[test]
fn a_watch_is_refused_while_settings_are_tried() {
    let Some(disk) = Disk::new() else { return };
    let profile = disk.folder.path().join("profile.toml");
    fs::write(&profile, PROFILE).unwrap();
    let mut trial = Command::new(cargo_bin!("forerun"))
        .arg("tune")
        .arg(disk.point())
        .args(["--readers", "1", "--measure", "60", "--profile"])
        .arg(&profile)
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let bdi = fs::canonicalize(disk.sys("bdi")).unwrap();
    let bdi = bdi.file_name().unwrap().to_str().unwrap().to_owned();
    let record = disk.runtime().join(format!("watch-{bdi}"));
    let is_locked = || {
        let inode = fs::metadata(&record).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.contains(&format!(":{inode} ")).then_some(())
    };
    eventually("the trial has the bdi", || is_locked().is_some());
    let (code, said) = failed(&disk, &["watch", disk.point().to_str().unwrap()]);
    let process = format!("(process {})", trial.id());
    kill_process(
        Pid::from_raw(trial.id().cast_signed()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    wait::end(&mut trial).unwrap();
    assert!(code == Some(2) && said.contains(&process), "{said}");
    assert!(said.contains("`forerun tune`"), "{said}");
    assert_eq!(disk.kib(), 128);
}
