//! `forerun tune --measure`, `--apply` and `--undo` on a loop device of the test's own: however a run ends, its settings are as
//! before. Root, loop devices and mkfs.ext4 are needed; without them each test is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::skipped::skipped;
use super::wait::{self, eventually};

/// Files of 8 MiB; the image is as small as ext4 makes it usable.
const FILES: usize = 3;

/// An ext4 on a loop device, with 128 KiB of read-ahead.
struct Disk {
    folder: TempDir,
    device: String,
}

fn tool(name: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(name)
        .args(arguments)
        .output()
        .map_err(|e| format!("{name}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

impl Disk {
    fn new() -> Option<Self> {
        match Self::make() {
            Ok(disk) => Some(disk),
            Err(why) => {
                skipped(why);
                None
            }
        }
    }

    fn make() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root".to_owned());
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        fs::File::create(&image).unwrap().set_len(48 << 20).unwrap();
        let image = image.to_str().unwrap();
        tool("mkfs.ext4", &["-q", "-O", "^has_journal", image])?;
        let device = tool("losetup", &["--show", "-f", image])?;
        let disk = Self { folder, device };
        let point = disk.point();
        fs::create_dir(&point).unwrap();
        tool("mount", &[&disk.device, point.to_str().unwrap()])?;
        fs::write(disk.read_ahead(), "128")
            .map_err(|e| format!("its read-ahead cannot be set: {e}"))?;
        for file in 0..FILES {
            let path = point.join(file.to_string());
            fs::write(&path, vec![1; 8 << 20]).unwrap();
            fs::File::open(path).unwrap().sync_all().unwrap();
        }
        fs::write(disk.folder.path().join("disk.toml"), DISK).unwrap();
        Ok(disk)
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("point")
    }

    fn read_ahead(&self) -> PathBuf {
        let number = fs::read_to_string(self.block().join("dev")).unwrap();
        Path::new("/sys/class/bdi")
            .join(number.trim())
            .join("read_ahead_kb")
    }

    fn block(&self) -> PathBuf {
        Path::new("/sys/block").join(self.device.trim_start_matches("/dev/"))
    }

    fn value(&self) -> String {
        fs::read_to_string(self.read_ahead())
            .unwrap()
            .trim()
            .to_owned()
    }

    fn scheduler(&self) -> String {
        fs::read_to_string(self.block().join("queue/scheduler")).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("forerun"));
        command
            .arg("tune")
            .arg(self.point())
            .args(arguments)
            .env("FORERUN_RUNTIME_DIR", self.runtime());
        if !arguments.contains(&"--undo") {
            command
                .arg("--profile")
                .arg(self.folder.path().join("disk.toml"));
        }
        command
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        (
            status.code(),
            String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned(),
        )
    }

    /// A trial that is stopped while the read-ahead is changed; thousands of its runs are still to come.
    fn stopped_trial(&self) -> Child {
        let mut command = self.command(&["--readers", "1,2,3,4,5,6,7,8", "--measure", "3600"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        eventually("the read-ahead is changed", || {
            signal(child.id(), Signal::STOP);
            eventually("it has stopped", || is_stopped(&child));
            let is_changed = self.value() != "128";
            if !is_changed {
                signal(child.id(), Signal::CONT);
            }
            is_changed
        });
        child
    }

    fn records(&self) -> usize {
        let there = fs::read_dir(self.runtime()).into_iter().flatten().flatten();
        there
            .filter(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("tune-tried")
            })
            .count()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = tool("umount", &[self.point().to_str().unwrap()]);
        let _ = tool("losetup", &["-d", &self.device]);
    }
}

/// Costs of a disk, so that nothing is measured.
const DISK: &str = "servers = 1\n[[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
    [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process.cast_signed()).unwrap(), signal).unwrap();
}

/// Whether no thread of a process runs.
fn is_stopped(process: &Child) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // `4711 (forerun) T ..`; a thread that has ended has no such file.
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| stat.is_empty() || rest.starts_with(" T"))
    })
}

/// The one child of a process.
fn guardian_of(process: &Child) -> u32 {
    let id = process.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.trim().parse().unwrap()
}

#[test]
fn settings_that_were_tried_come_back_after_any_signal() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let scheduler = disk.scheduler();
    for kind in [Signal::TERM, Signal::INT, Signal::KILL] {
        let mut trial = disk.stopped_trial();
        signal(trial.id(), kind);
        signal(trial.id(), Signal::CONT);
        let ended = wait::end(&mut trial).expect("it ends");
        if kind == Signal::KILL {
            eventually("the guardian puts the read-ahead back", || {
                disk.value() == "128"
            });
        }
        let code = (kind != Signal::KILL).then_some(1);
        assert_eq!((disk.value().as_str(), ended.code()), ("128", code));
        eventually("its record is gone", || disk.records() == 0);
        assert_eq!(disk.scheduler(), scheduler);
    }
}

#[test]
fn settings_whose_guardian_was_killed_too_come_back_at_the_next_start() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let mut trial = disk.stopped_trial();
    signal(guardian_of(&trial), Signal::KILL);
    signal(trial.id(), Signal::KILL);
    wait::end(&mut trial).expect("it ends");
    assert_ne!(disk.value(), "128");
    assert_eq!(disk.records(), 1);
    let (code, said) = disk.run(&["--readers", "1"]);
    assert_eq!((code, disk.value().as_str()), (Some(0), "128"), "{said}");
    assert_eq!(disk.records(), 0);
    // Without a guardian a trial ends by itself, and puts back what it changed.
    let mut trial = disk.stopped_trial();
    signal(guardian_of(&trial), Signal::KILL);
    signal(trial.id(), Signal::CONT);
    assert_eq!(wait::end(&mut trial).expect("it ends").code(), Some(1));
    assert_eq!(disk.value(), "128");
}

#[test]
fn a_value_that_somebody_else_sets_meanwhile_stays() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let mut trial = disk.stopped_trial();
    fs::write(disk.read_ahead(), "768").unwrap();
    signal(trial.id(), Signal::KILL);
    wait::end(&mut trial).expect("it ends");
    eventually("the guardian has ended its work", || disk.records() == 0);
    assert_eq!(disk.value(), "768");
    // While it lives it ends its trial.
    fs::write(disk.read_ahead(), "128").unwrap();
    let mut trial = disk.stopped_trial();
    fs::write(disk.read_ahead(), "768").unwrap();
    signal(trial.id(), Signal::CONT);
    assert_eq!(wait::end(&mut trial).expect("it ends").code(), Some(1));
    assert_eq!(disk.value(), "768");
}

#[test]
fn what_is_applied_stays_until_it_is_undone() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let (code, said) = disk.run(&["--undo"]);
    assert!(
        code == Some(2) && said.contains("--undo: nothing was applied here"),
        "{said}"
    );
    let (code, said) = disk.run(&["--readers", "10", "--apply"]);
    assert_eq!(code, Some(0), "{said}");
    let applied = disk.value();
    assert!(
        said.contains(&format!("read_ahead_kb: 128 -> {applied}")),
        "{said}"
    );
    assert!(applied.parse::<u64>().unwrap() >= 512, "{said}");
    let (code, said) = disk.run(&["--undo"]);
    assert_eq!((code, disk.value().as_str()), (Some(0), "128"), "{said}");
    // An administrator's value stays, and that is said.
    disk.run(&["--readers", "10", "--apply"]);
    fs::write(disk.read_ahead(), "768").unwrap();
    let (code, said) = disk.run(&["--undo"]);
    assert!(
        code == Some(1) && said.contains("another program has set it to 768, which stays"),
        "{said}"
    );
    assert_eq!(disk.value(), "768");
}

#[test]
fn too_little_time_is_refused_with_the_least_before_anything_changes() {
    let Some(disk) = Disk::new() else {
        return;
    };
    let (code, said) = disk.run(&["--measure", "1", "--readers", "1"]);
    assert!(
        code == Some(2) && said.contains("--measure 1: ") && said.contains("take at least"),
        "{said}"
    );
    let (code, said) = disk.run(&["--measure", "3600", "--readers", "100"]);
    assert!(
        code == Some(2) && said.contains("--readers 100: must lie from 1 to 24 with these files"),
        "{said}"
    );
    assert_eq!((disk.value().as_str(), disk.records()), ("128", 0));
}

#[test]
fn a_trial_with_a_tuned_kernel_names_the_way_to_take_and_leaves_no_setting() {
    let Some(disk) = Disk::new().filter(|_| super::can_mount()) else {
        return;
    };
    let output = Command::new(cargo_bin!("forerun"))
        .args(["try", "--tuned", "--seconds", "20", "--readers", "2"])
        .args(["--memory", "16MiB"])
        .arg(disk.point())
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    for words in [
        "Tuned: read-ahead ",
        "        forerun\n1 reader ",
        "\ntuned kernel beside kernel: ",
        "\nforerun beside ",
        "The simplest of equal ways is taken.",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let is_left_out = said.contains("Without a watch (");
    assert_ne!(is_left_out, said.contains("\nwatch beside "), "{said}");
    assert_eq!((disk.value().as_str(), disk.records()), ("128", 0));
}
