//! Values that a watch left changed: put back by its guardian, by the next start, and not sooner.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use snapbox::cmd::cargo_bin;

use crate::Disk;
use crate::skipped::skipped;
use crate::wait::{self, eventually};

impl Disk {
    /// A record of a limit that stands raised, and the limit raised so.
    fn raise(&self, count: u32) -> PathBuf {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let bdi = fs::canonicalize(self.sys("bdi")).unwrap();
        let bdi = bdi.file_name().unwrap().to_str().unwrap();
        let head = format!("forerun-record 1 {}", boot.trim());
        let line = format!("{} 128 4096 {count}", self.limit().display());
        let path = self.runtime().join(format!("watch-{bdi}"));
        fs::write(&path, format!("{head:<511}\n{line:<511}\n")).unwrap();
        fs::write(self.limit(), "4096").unwrap();
        path
    }

    /// The process that holds the record of the limit.
    fn holder(&self) -> u32 {
        let records = fs::read_dir(self.runtime()).unwrap().flatten();
        let of_limit = |name: &str| name.starts_with("watch-") && !name.ends_with(".sock");
        let mut records = records.filter(|of| of_limit(&of.file_name().to_string_lossy()));
        let end = format!(
            ":{} 0 EOF",
            records.next().unwrap().metadata().unwrap().ino()
        );
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let line = locks.lines().find(|line| line.ends_with(&end)).unwrap();
        line.split_ascii_whitespace()
            .nth(4)
            .unwrap()
            .parse()
            .unwrap()
    }

    fn scheduler(&self) -> String {
        let text = fs::read_to_string(self.sys("queue/scheduler")).unwrap();
        let chosen = text.split_once('[').unwrap().1.split_once(']').unwrap();
        chosen.0.to_owned()
    }

    /// Leaves the disk with a fair scheduler, as a watch does that is killed; the one before, and the record. None, and a line
    /// for the summary, where the kernel has no such scheduler.
    #[track_caller]
    fn make_fair(&self) -> Option<(String, PathBuf)> {
        let (before, knob) = (self.scheduler(), self.sys("queue/scheduler"));
        if fs::write(&knob, "bfq").is_err() {
            skipped("needs the scheduler bfq");
            return None;
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let head = format!("forerun-record 1 {}", boot.trim());
        let line = format!("{} {before} bfq 1", knob.display());
        let path = self.runtime().join("scheduler-7:99");
        fs::write(&path, format!("{head:<511}\n{line:<511}\n")).unwrap();
        Some((before, path))
    }
}

/// A guardian over the records, as a watch starts it.
fn guardian(records: &[&Path]) -> (Child, ChildStdin) {
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--guardian"])
        .args(records)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pipe = child.stdin.take().unwrap();
    (child, pipe)
}

#[test]
fn a_guardian_holds_no_folder_and_that_of_a_daemon_no_standard_error() {
    for of_daemon in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("record"), "").unwrap();
        let mut child = Command::new(cargo_bin!("forerun"))
            .args(["watch", "--guardian", "record"])
            .args(of_daemon.then_some("--report-ready"))
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 6];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"ready\n");
        let link = |path: String| fs::read_link(path).unwrap();
        let of = child.id();
        assert_eq!(link(format!("/proc/{of}/cwd")), Path::new("/"));
        let first = child.stderr.as_ref().unwrap().as_raw_fd();
        let is_first = link(format!("/proc/{of}/fd/2")) == link(format!("/proc/self/fd/{first}"));
        assert_eq!(is_first, !of_daemon);
        drop(child.stdin.take());
        assert!(wait::end(&mut child).unwrap().success());
        assert!(!folder.path().join("record").exists(), "found by its path");
    }
}

#[test]
fn a_guardian_outlives_the_signals_that_end_or_pause_all_of_a_unit() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    fs::write(&record, "").unwrap();
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--guardian", record.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    let pid = Pid::from_child(&child);
    for signal in [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2] {
        kill_process(pid, signal).unwrap();
    }
    drop(child.stdin.take());
    let ended = wait::end(&mut child).unwrap();
    assert!(ended.success() && !record.exists(), "{ended}");
}

/// Ends a process of this number.
struct Ends(u32);

impl Drop for Ends {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.cast_signed()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[test]
fn a_watch_in_the_background_holds_nothing_of_the_program_that_started_it() {
    let Some(disk) = Disk::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--background", "--journal", "journal"])
        .arg(disk.point())
        .current_dir(folder.path())
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = child.stderr.as_ref().unwrap().as_raw_fd();
    let pipe = fs::read_link(format!("/proc/self/fd/{first}")).unwrap();
    assert!(wait::end(&mut child).unwrap().success());
    let daemon = disk.holder();
    let _ends = Ends(daemon);
    let children = fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).unwrap();
    let both = [daemon.to_string(), children.trim().to_owned()];
    let link = |of: &str, name: &str| fs::read_link(format!("/proc/{of}/{name}")).unwrap();
    eventually("both let go", || {
        both.iter()
            .all(|of| link(of, "cwd") == Path::new("/") && link(of, "fd/2") != pipe)
    });
    disk.read_until(|watch| watch["limits_set"].as_u64() > Some(0));
    drop(Ends(daemon));
    let is_there = || Path::new(&format!("/proc/{daemon}/exe")).exists();
    eventually("the watch ends", || !is_there());
    assert!(folder.path().join("journal").exists());
}

#[test]
fn a_guardian_puts_back_what_a_stopped_watch_left_raised_and_what_a_killed_one_did() {
    let Some(disk) = Disk::new() else { return };
    let record = disk.raise(1);
    let (mut child, mut pipe) = guardian(&[&record]);
    // The watch said that it raises, and nothing more comes.
    pipe.write_all(b".").unwrap();
    eventually("the limit of a stopped watch is back", || disk.kib() == 128);
    disk.raise(2);
    drop(pipe);
    assert!(wait::end(&mut child).unwrap().success());
    assert_eq!(disk.kib(), 128, "killed");
    // A value that somebody set meanwhile stays.
    let record = disk.raise(3);
    fs::write(disk.limit(), "512").unwrap();
    let (mut child, pipe) = guardian(&[&record]);
    drop(pipe);
    assert!(wait::end(&mut child).unwrap().success());
    assert_eq!(disk.kib(), 512);
}

#[test]
fn the_next_watch_puts_back_what_both_left_raised() {
    let Some(disk) = Disk::new() else { return };
    disk.raise(1);
    let Some((before, _)) = disk.make_fair() else {
        return;
    };
    let watching = disk.watch(&[]);
    assert_eq!(disk.kib(), 128);
    assert_eq!(disk.scheduler(), before);
    drop(watching);
}

#[test]
fn a_guardian_puts_a_scheduler_back_when_its_watch_is_gone_and_no_sooner() {
    let Some(disk) = Disk::new() else { return };
    let Some((before, schedulers)) = disk.make_fair() else {
        return;
    };
    let (mut child, mut pipe) = guardian(&[&disk.raise(1), &schedulers]);
    pipe.write_all(b".").unwrap();
    eventually("the limit of a stopped watch is back", || disk.kib() == 128);
    assert_eq!(
        disk.scheduler(),
        "bfq",
        "a watch that stands still for a while"
    );
    drop(pipe);
    assert!(wait::end(&mut child).unwrap().success());
    assert_eq!(disk.scheduler(), before);
}

#[test]
fn a_watch_whose_guardian_is_stopped_ends_all_the_same() {
    let Some(disk) = Disk::new() else { return };
    let mut watching = disk.watch(&[]);
    let children = format!("/proc/{0}/task/{0}/children", watching.child.id());
    let guardian = fs::read_to_string(children).unwrap();
    let guardian = Pid::from_raw(guardian.trim().parse().unwrap()).unwrap();
    kill_process(guardian, Signal::STOP).unwrap();
    watching.signal(Signal::TERM);
    let ended = wait::end(&mut watching.child);
    let _ = kill_process(guardian, Signal::KILL);
    assert!(ended.unwrap().success());
    assert_eq!(disk.kib(), 128);
}

#[test]
fn a_killed_watch_takes_its_guardian_with_it() {
    let Some(disk) = Disk::new() else { return };
    let before = disk.kib();
    let watching = disk.watch(&[]);
    let children = format!("/proc/{0}/task/{0}/children", watching.child.id());
    let children = fs::read_to_string(children).unwrap();
    let guardian = PathBuf::from(format!("/proc/{}/exe", children.trim()));
    let is_there = || fs::read_link(&guardian).is_ok();
    assert!(is_there());
    watching.signal(Signal::KILL);
    eventually("the guardian ends", || !is_there());
    assert_eq!(disk.kib(), before);
}
