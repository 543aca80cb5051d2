//! Values that a watch left changed: put back by its guardian, by the next start, and not sooner.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Signal;
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
