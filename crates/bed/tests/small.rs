//! `small` on a tiny bed: every candidate and program runs, and nothing is left behind.
//!
//! Runs the binary as users do; where the machine cannot make beds, the binary says so and the test
//! is skipped with its reason. In place of `forerun` stands a script that serves the passthrough
//! and ends on SIGTERM: how long anything takes is not asked here.

#[path = "../../skipped.rs"]
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use skipped::skipped;

const BED: &str = r#"
[disks]
count = 1
image_bytes = 150_000_000
device = "DEVICE"
is_rotational = false
[file_system]
kind = "ext4"
[files]
count = 24
folders = 3
file_bytes = 2_000
file_bytes_max = 20_000
seed = 5
[queue]
read_ahead_bytes = 131_072
scheduler = "none"
"#;

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn stand_in(path: &Path) {
    let program = env!("CARGO_BIN_EXE_forerun-bed");
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> {0}.calls\n{program} passthrough \"$2\" \"$3\" &\n\
         trap 'umount \"$3\"; wait; exit 0' TERM\nwait\n",
        path.display()
    );
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The table of a tiny bed on this device, and how the stand-in was called; none: skipped.
fn measured(device: &str, counts: &str) -> Option<(serde_json::Value, String)> {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let [bed, state, forerun] = ["bed.toml", "state", "forerun"].map(|name| place.join(name));
    fs::write(&bed, BED.replace("DEVICE", device)).unwrap();
    stand_in(&forerun);
    let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
    command.arg("small").arg(&bed).arg("--state").arg(&state);
    command.arg("--forerun").arg(&forerun);
    let output = command
        .args(["--runs", "1", "--files", counts, "--memory", "64MiB"])
        .args(["--format", "json"])
        .output()
        .unwrap();
    let text = said(&output);
    if !output.status.success() {
        let cannot = ["cannot run here", "has no direct I/O"];
        assert!(cannot.iter().any(|why| text.contains(why)), "{text}");
        skipped(text);
        return None;
    }
    assert!(!state.exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(state.to_str().unwrap()));
    let calls = fs::read_to_string(place.join("forerun.calls")).unwrap();
    Some((serde_json::from_slice(&output.stdout).unwrap(), calls))
}

#[test]
fn on_a_local_disk_every_program_runs_cold_and_warm_on_every_side() {
    let Some((table, calls)) = measured("local", "24") else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    // Four programs twice and one once, on four candidates.
    assert_eq!(rows.len(), 9 * 4);
    assert!(
        rows.iter()
            .all(|row| row["seconds"].as_f64().unwrap() > 0.0)
    );
    assert_eq!(rows[2]["side"], "forerun");
    assert!(calls.contains("--memory 67108864") && calls.contains("--unchanging"));
    assert!(!calls.contains("--profile"), "{calls}");
}

#[test]
fn on_an_emulated_disk_passes_are_cold_and_the_mount_is_told_of_the_disk() {
    let device = "switching(cost_ns=200000,rate_bytes_per_second=80000000)";
    let Some((table, calls)) = measured(device, "12,24") else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 4 * 2);
    assert_eq!(
        (&rows[0]["files"], &rows[8]["files"]),
        (&12.into(), &24.into())
    );
    assert!(rows.iter().all(|row| row["pass"] == "cold"));
    assert!(calls.lines().all(|call| call.contains("--profile")));
}

/// The image lies in the state directory, so a bed that is half made must not keep it from going.
#[test]
fn a_local_bed_is_taken_down_by_another_program_and_twice() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (bed, state) = (place.join("bed.toml"), place.join("state"));
    fs::write(&bed, BED.replace("DEVICE", "local")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
        let command = command.args(arguments).arg("--state").arg(&state);
        command.output().unwrap()
    };
    let up = run(&["up", bed.to_str().unwrap()]);
    if !up.status.success() {
        skipped(said(&up));
        return;
    }
    let status = said(&run(&["status"]));
    assert!(status.contains("1 x local"), "{status}");
    assert!(
        !status.contains("is gone") && !status.contains("no daemon"),
        "{status}"
    );
    assert_eq!(fs::read_dir(state.join("files/d001")).unwrap().count(), 8);
    // As after a kill between any two steps: a step undone already is no obstacle.
    let files = Command::new("umount").arg(state.join("files")).status();
    assert!(files.unwrap().success());
    let down = run(&["down"]);
    assert!(down.status.success(), "{}", said(&down));
    assert!(!state.exists());
    assert_eq!(run(&["down"]).status.code(), Some(2));
}

#[test]
fn memory_too_little_for_a_mount_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let [bed, state, forerun, folder] =
        ["bed.toml", "state", "forerun", "folder"].map(|name| place.path().join(name));
    fs::write(&bed, BED.replace("DEVICE", "local")).unwrap();
    fs::write(&forerun, "").unwrap();
    let named = |path: &Path| path.to_str().unwrap().to_owned();
    let small = ["small", &named(&bed), "--state", &named(&state)].map(str::to_owned);
    let [local, soak] = ["local", "soak"].map(|command| [command.to_owned(), named(&folder)]);
    for command in [&small[..], &local, &soak] {
        for memory in ["1", "8MiB", "16777215"] {
            let output = Command::new(env!("CARGO_BIN_EXE_forerun-bed"))
                .args(command)
                .args(["--memory", memory, "--forerun", &named(&forerun)])
                .output()
                .unwrap();
            let said = said(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
            assert!(said.contains("at least 16MiB"), "{command:?}: {said}");
            assert!(!state.exists() && !folder.exists());
        }
    }
}
