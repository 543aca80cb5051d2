//! How a watch starts and ends: partitions of one disk, starts that fail, terminals that go, journals that are full.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Advice, fadvise};
use rustix::process::Signal;
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use crate::skipped::skipped;
use crate::wait::{self, eventually};
use crate::{Disk, counted, number, tool};

const MIB: u64 = 1 << 20;

/// Two file systems on partitions of one disk.
struct Partitions {
    folder: TempDir,
    device: String,
}

impl Partitions {
    #[track_caller]
    fn new() -> Option<Self> {
        let made = Self::make();
        if made.is_none() {
            skipped("needs loop devices with partitions and partx");
        }
        made
    }

    fn make() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        fs::write(&image, table()).unwrap();
        let file = File::options().write(true).open(&image).unwrap();
        file.set_len(65 * MIB).unwrap();
        let image = image.to_str().unwrap();
        let device = tool(&["losetup", "--find", "--show", "--partscan", image])?;
        let disk = Self { folder, device };
        // A kernel that reads no such tables is told of them.
        tool(&["partx", "--add", &disk.device]);
        for number in [1, 2] {
            let (part, point) = (format!("{}p{number}", disk.device), disk.point(number));
            fs::create_dir(&point).unwrap();
            tool(&["mkfs.ext4", "-q", "-F", "-O", "^has_journal", &part])?;
            tool(&["mount", &part, point.to_str().unwrap()])?;
        }
        Some(disk)
    }

    fn point(&self, number: u32) -> PathBuf {
        self.folder.path().join(number.to_string())
    }
}

impl Drop for Partitions {
    fn drop(&mut self) {
        for number in [1, 2] {
            tool(&["umount", "--lazy", self.point(number).to_str().unwrap()]);
        }
        tool(&["partx", "--delete", &self.device]);
        tool(&["losetup", "--detach", &self.device]);
    }
}

/// A table of two partitions of 32 MiB, the first at 1 MiB.
fn table() -> Vec<u8> {
    let mut table = vec![0; 512];
    for at in 0..2_u32 {
        let entry = &mut table[446 + 16 * at as usize..][..16];
        entry[4] = 0x83;
        let sectors = 32 * MIB as u32 / 512;
        entry[8..12].copy_from_slice(&(2048 + at * sectors).to_le_bytes());
        entry[12..16].copy_from_slice(&sectors.to_le_bytes());
    }
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    table
}

#[test]
fn a_file_is_not_watched_for_its_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clip");
    fs::write(&file, "a clip").unwrap();
    for arguments in [&["--dry-run"][..], &[]] {
        let mut command = Command::new(cargo_bin("forerun"));
        command.arg("watch").args(arguments).arg(&file);
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("clip: it is no folder"), "{told}");
    }
}

#[test]
fn partitions_of_one_disk_are_watched_together() {
    // For tracefs, which it mounts.
    let Some(_other) = Disk::new() else { return };
    let Some(disk) = Partitions::new() else {
        return;
    };
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--until-input-ends"])
        .args([disk.point(1), disk.point(2)])
        .env("FORERUN_RUNTIME_DIR", disk.folder.path().join("run"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdin.take());
    let mut said = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    assert!(wait::end(&mut child).unwrap().success(), "{said}");
    assert_eq!(said.matches("watching ").count(), 2, "{said}");
}

/// Records that stand in the folder of a disk.
fn records(disk: &Disk) -> Vec<String> {
    let all = fs::read_dir(disk.runtime()).unwrap().flatten();
    let names = all.map(|of| of.file_name().to_string_lossy().into_owned());
    let is_record = |name: &String| name.starts_with("watch-") || name.starts_with("scheduler-");
    names.filter(is_record).collect()
}

#[test]
fn a_start_that_fails_late_leaves_no_record() {
    let Some(disk) = Disk::new() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    let output = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--metrics", &address])
        .arg(disk.point())
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains(&address),
        "{said}"
    );
    assert_eq!(records(&disk), [""; 0]);
}

/// A watch that answers, begun by a shell behind a command of its own.
fn watch_behind(command: &str, disk: &Disk) -> Child {
    let script = format!("{command}; exec \"$0\" watch --until-input-ends \"$1\"");
    let child = Command::new("sh")
        .args(["-c", &script])
        .args([cargo_bin!("forerun"), &disk.point()])
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("it answers", || answers(disk));
    child
}

#[test]
fn a_watch_that_ignores_the_end_of_its_terminal_from_the_start_goes_on() {
    let Some(disk) = Disk::new() else { return };
    let mut child = watch_behind("trap '' HUP", &disk);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    // A signal is looked at before a question is answered.
    assert!(answers(&disk));
    drop(child.stdin.take());
    assert!(wait::end(&mut child).unwrap().success());
}

#[test]
fn a_watch_raises_its_soft_limit_of_descriptors() {
    let Some(disk) = Disk::new() else { return };
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let most = most.map_or("unlimited".into(), |most| most.to_string());
    let mut child = watch_behind("ulimit -S -n 256", &disk);
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.unwrap().split_ascii_whitespace().nth(3).unwrap();
    assert_eq!(soft, most);
    drop(child.stdin.take());
    assert!(wait::end(&mut child).unwrap().success());
}

fn answers(disk: &Disk) -> bool {
    let mut command = Command::new(cargo_bin!("forerun"));
    command
        .args(["ctl".as_ref(), disk.point().as_os_str(), "stats".as_ref()])
        .env("FORERUN_RUNTIME_DIR", disk.runtime());
    command.output().unwrap().status.success()
}

#[test]
fn a_journal_that_cannot_be_written_is_told_and_ends_the_watch_with_an_error() {
    let Some(disk) = Disk::new() else { return };
    if !Path::new("/dev/full").exists() {
        return skipped("needs /dev/full");
    }
    let mut watching = disk.watch(&["--journal", "/dev/full"]);
    disk.read_until(|watch| counted(watch, "limits_set", 0));
    let mut error = Value::Null;
    eventually("the error is told", || {
        error = disk.stats()["journal_error"].clone();
        !error.is_null()
    });
    assert!(error.to_string().contains("No space left"), "{error}");
    watching.signal(Signal::TERM);
    let mut text = String::new();
    watching.lines.read_to_string(&mut text).unwrap();
    assert_eq!(wait::end(&mut watching.child).unwrap().code(), Some(1));
    assert!(
        text.contains("limits set "),
        "the account all the same: {text}"
    );
}

#[test]
fn each_open_file_of_a_process_is_put_back() {
    let Some(disk) = Disk::new() else { return };
    let path = disk.point().join("file");
    // Readers that a busy machine holds up are no streams any more when the watch ends.
    eventually("both are put back", || {
        let watching = disk.watch(&[]);
        let mut files = [0, 16 * MIB].map(|at| {
            let mut file = File::open(&path).unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            file
        });
        for file in &mut files {
            file.read_exact(&mut vec![0; 12 << 20]).unwrap();
        }
        number(&watching.end(), "put back at the end ") == 2
    });
}
