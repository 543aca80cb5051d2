//! A whole bed, small: up, status, read, a kill of the daemon, down; and a table.
//!
//! Runs the binary as users do. Where the machine cannot (not root, no FUSE, no loop devices) the
//! binary itself says so with exit code 2, and the test is skipped with that reason. Nothing here
//! is about speed but one thing that cannot be fast by accident: a disk that takes its time.

#[path = "../../skipped.rs"]
mod skipped;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use forerun_bed::read::Readings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use skipped::skipped;

const BED: &str = r#"
[disks]
count = 1
image_bytes = 200_000_000
device = "switching(cost_ns=1000000,rate_bytes_per_second=80000000)"
is_rotational = true
[file_system]
kind = "ext4"
[files]
count = 3
file_bytes = 4_000_000
seed = 5
[queue]
read_ahead_bytes = 131_072
scheduler = "none"
"#;

fn bed_command(arguments: &[&str], state: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
    let command = command.args(arguments).arg("--state").arg(state);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[track_caller]
fn succeeds(arguments: &[&str], state: &Path) -> String {
    let output = bed_command(arguments, state);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

/// Up, or the reason why beds cannot be made here.
fn up(bed: &Path, state: &Path) -> Result<(), String> {
    up_with(bed, state, &[])
}

fn up_with(bed: &Path, state: &Path, options: &[&str]) -> Result<(), String> {
    let arguments = [&["up", bed.to_str().unwrap()], options].concat();
    let output = bed_command(&arguments, state);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(2) if said(&output).contains("cannot run here") => Err(said(&output)),
        _ => panic!("up: {}", said(&output)),
    }
}

fn loops_and_mounts(state: &Path) -> Vec<String> {
    let name = state.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let blocks = fs::read_dir("/sys/block").unwrap();
    let files =
        blocks.filter_map(|b| fs::read_to_string(b.ok()?.path().join("loop/backing_file")).ok());
    let lines = mounts.lines().map(str::to_owned);
    lines
        .chain(files)
        .filter(|line| line.contains(name))
        .collect()
}

fn read(folder: &Path, readers: &str) -> Readings {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
    let command = command
        .arg("read")
        .arg(folder)
        .args(["--readers", readers, "--seed", "5"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_bed_comes_up_takes_its_time_and_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (bed, state) = (place.join("bed.toml"), place.join("state"));
    fs::write(&bed, BED).unwrap();
    if let Err(reason) = up(&bed, &state) {
        skipped(reason);
        return;
    }
    let again = bed_command(&["up", bed.to_str().unwrap()], &state);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));

    let began = Instant::now();
    let readings = read(&state.join("files"), "3");
    assert_eq!(readings.bytes, 12_000_000);
    // 12 MB at 80 MB/s are 150 ms, without any switch.
    assert!(began.elapsed().as_millis() >= 150);
    let status = succeeds(&["status"], &state);
    assert!(
        !status.contains("is gone") && status.contains("disk0: "),
        "{status}"
    );

    succeeds(&["down"], &state);
    assert_eq!(loops_and_mounts(&state), [""; 0]);
    assert!(!state.exists());
}

/// The read-ahead in KiB of the btrfs on the disks of this bed.
fn read_ahead_of_btrfs(state: &Path) -> String {
    let is_ours = |device: fs::DirEntry| {
        let image = fs::read_to_string(device.path().join("loop/backing_file"));
        image.is_ok_and(|image| image.contains(state.to_str().unwrap()))
    };
    let mut mounted = fs::read_dir("/sys/fs/btrfs").unwrap().map(Result::unwrap);
    let ours = mounted.find(|one| {
        let devices = fs::read_dir(one.path().join("devices"));
        devices.is_ok_and(|mut devices| devices.any(|device| is_ours(device.unwrap())))
    });
    let setting = ours.expect("a btrfs").path().join("bdi/read_ahead_kb");
    fs::read_to_string(setting).unwrap().trim().to_owned()
}

#[test]
fn a_copied_folder_is_on_the_bed_and_the_read_ahead_of_a_btrfs_is_the_beds() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let [bed, state, from] = ["bed.toml", "copied", "from"].map(|name| place.join(name));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("more"), "of the user").unwrap();
    let text = BED.replace("count = 1", "count = 2");
    let text = text
        .replace("ext4", "btrfs_raid0")
        .replace("131_072", "98_304");
    fs::write(&bed, text).unwrap();
    if let Err(reason) = up_with(&bed, &state, &["--copy", from.to_str().unwrap()]) {
        skipped(reason);
        return;
    }
    let copied = fs::read_to_string(state.join("files/more"));
    let read_ahead = read_ahead_of_btrfs(&state);
    succeeds(&["down"], &state);
    assert_eq!(
        (copied.unwrap().as_str(), read_ahead.as_str()),
        ("of the user", "96")
    );
}

#[test]
fn a_bed_whose_daemon_was_killed_can_be_taken_down() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (bed, state) = (place.join("bed.toml"), place.join("killed"));
    fs::write(&bed, BED).unwrap();
    if let Err(reason) = up(&bed, &state) {
        skipped(reason);
        return;
    }
    kill_daemon_of(&state);
    assert!(succeeds(&["status"], &state).contains("no daemon answers"));
    succeeds(&["down"], &state);
    assert_eq!(loops_and_mounts(&state), [""; 0]);
    assert!(!state.exists());
}

/// Kills the one process whose command line serves this state, and waits until it is gone.
fn kill_daemon_of(state: &Path) {
    let wanted = format!("serve\0--state\0{}\0", state.display());
    let is_daemon = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).ends_with(&wanted))
    };
    let entries = fs::read_dir("/proc").unwrap();
    let mut pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let pid: u32 = pids.find(is_daemon).expect("a daemon");
    let number = Pid::from_raw(pid.cast_signed()).unwrap();
    let end = pidfd_open(number, PidfdFlags::empty()).unwrap();
    kill_process(number, Signal::KILL).unwrap();
    let bound = Timespec::try_from(Duration::from_secs(600)).unwrap();
    let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&bound)).unwrap();
    assert_eq!(ended, 1, "the daemon ends");
}

#[test]
fn a_table_measures_and_takes_its_bed_down() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (bed, state) = (place.join("bed.toml"), place.join("table"));
    fs::write(&bed, BED).unwrap();
    let arguments = [
        "table",
        bed.to_str().unwrap(),
        "--readers",
        "1,3",
        "--read-ahead",
        "64,128",
        "--runs",
        "1",
        "--time",
        "200ms",
        "--format",
        "json",
        "--memory",
        "64MiB",
    ];
    let output = bed_command(&arguments, &state);
    if output.status.code() == Some(2) && said(&output).contains("cannot run here") {
        skipped(said(&output));
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(table["rows"].as_array().unwrap().len(), 4);
    assert_eq!(table["rows"][1]["side"], "kernel none 128");
    assert_eq!(loops_and_mounts(&state), [""; 0]);
    assert!(!state.exists());
}

#[test]
fn a_table_of_more_readers_than_files_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let (bed, state) = (place.path().join("bed.toml"), place.path().join("state"));
    fs::write(&bed, BED).unwrap();
    let output = bed_command(&["table", bed.to_str().unwrap()], &state);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("--readers 64"), "{}", said(&output));
    assert!(!state.exists());
}

#[test]
fn a_dry_run_and_a_wrong_bed_make_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (bed, state) = (place.path().join("bed.toml"), place.path().join("state"));
    fs::write(&bed, BED).unwrap();
    let plan = succeeds(&["up", bed.to_str().unwrap(), "--dry-run"], &state);
    assert!(plan.contains("make ext4 on the loop devices"), "{plan}");
    fs::write(&bed, BED.replace("seed", "sead")).unwrap();
    let output = bed_command(&["up", bed.to_str().unwrap()], &state);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("sead"));
    assert_eq!(bed_command(&["down"], &state).status.code(), Some(2));
    assert!(!state.exists());
}
