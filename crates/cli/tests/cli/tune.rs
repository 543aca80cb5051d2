//! `forerun tune`: advice for a device by its profile, refusals, and the guardian of a record.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::skipped::skipped;
use super::{Folder, forerun, output_of};

const DISK: &[u8] = b"servers = 1\n[[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
    [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";

/// A folder whose device can be tuned; if temporary files have none, the test is skipped.
fn tunable() -> Option<(Folder, String)> {
    let folder = Folder::new();
    let profile = folder.file("disk.toml", DISK);
    let flags = format!(
        "tune {} --profile {profile} --memory 64MiB --readers",
        folder.name(".")
    );
    let tried = Command::new(cargo_bin!("forerun"))
        .args(flags.split_whitespace())
        .arg("1")
        .output()
        .unwrap();
    if tried.status.code() == Some(2) {
        skipped(String::from_utf8_lossy(&tried.stderr));
        return None;
    }
    Some((folder, flags))
}

#[test]
fn a_disk_with_ten_readers_is_advised_more_than_the_default_with_reasons() {
    let Some((_folder, flags)) = tunable() else {
        return;
    };
    let said: Value =
        serde_json::from_str(&output_of(&format!("{flags} 1,10 --format json"))).unwrap();
    assert_eq!(said["depth_bytes"], 640_000);
    assert_eq!(said["advised_from"], "simulated");
    let rate = |kib: u64| {
        let rows = said["simulated"]["rows"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["read_ahead_kib"] == kib && row["readers"] == 10);
        row.unwrap()["bytes_per_second"].as_f64().unwrap()
    };
    let advised = said["advised"]["read_ahead_kib"].as_u64().unwrap();
    assert!((512..=4096).contains(&advised), "{advised}");
    assert!(rate(advised) > 2.0 * rate(128), "{said}");
    assert_eq!(said["applied"], json!([]));
    let text = output_of(&format!("{flags} 10"));
    for words in [
        "8.00 ms a switch, 80.0 MB/s, 1 request at once",
        "640.0 kB of transfer",
        "gain       simulated: ",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    if said["advised"] != said["present"]
        && said["advised"]["read_ahead_kib"] != said["present"]["read_ahead_kib"]
    {
        let rule = format!(
            r#"SUBSYSTEM=="bdi", KERNEL=={}, ATTR{{read_ahead_kb}}="{advised}""#,
            said["bdi"]
        );
        assert!(
            said["udev_rules"][0].as_str().unwrap().contains(&rule),
            "{said}"
        );
        // The file of the queue freezes the device on some kernels.
        let commands = said["commands"].to_string();
        assert!(
            commands.contains("/sys/class/bdi/") && !commands.contains("queue/read_ahead_kb"),
            "{commands}"
        );
    }
}

#[test]
fn values_out_of_range_are_named_with_their_range() {
    let folder = Folder::new();
    let path = folder.name(".");
    for (flags, words) in [
        ("--readers 0", "must be a whole number from 1 to 256"),
        ("--readers 1,257", "must be a whole number from 1 to 256"),
        ("--readers 1,,2", "must be a whole number from 1 to 256"),
        ("--measure 0", "must be a whole number from 1 to 3600"),
        ("--measure 3601", "must be a whole number from 1 to 3600"),
        ("--memory 1X", "is not a unit of size"),
        ("--undo --apply", "cannot be used with"),
        ("--format csv", "possible values: table, json"),
    ] {
        let refused = forerun(&format!("tune {path} {flags}")).code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains(words), "{flags}: {said}");
    }
    forerun("tune /absent/folder").code(2).stdout_eq("");
    forerun("try --tuned s3://bucket/a")
        .code(2)
        .stderr_eq("forerun: --tuned: s3://bucket/a: the kernel reads nothing of a store ahead\n");
}

#[test]
fn a_profile_or_a_memory_that_cannot_be_is_named() {
    let Some((folder, flags)) = tunable() else {
        return;
    };
    let profile = folder.name("disk.toml");
    let refused = forerun(&flags.replace("64MiB", "1000B").replace("--readers", "")).code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("--memory 1000B: must be at least"), "{said}");
    fs::write(profile, "servers = 0").unwrap();
    forerun(&format!("{flags} 1")).code(2).stdout_eq("");
}

#[test]
fn file_systems_without_a_disk_are_refused_by_name() {
    forerun("tune /proc/self")
        .code(2)
        .stderr_eq("forerun: /proc/self: proc: its files are made up by the kernel\n");
    if fs::metadata("/dev/shm").is_ok() {
        let refused = forerun("tune /dev/shm").code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(
            said.contains("/dev/shm: tmpfs: its files are in memory"),
            "{said}"
        );
    }
}

/// A guardian of a record of one value, 128 before and 1024 by us.
fn guardian(folder: &Folder, name: &str) -> (Child, String) {
    let read_ahead = folder.file("read_ahead_kb", b"1024");
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let head = format!("forerun-record 1 {}", boot_id.trim());
    let line = format!("{read_ahead} 128 512,1024 7");
    let record = format!("{head:<511}\n{line:<511}\n");
    let record = folder.file(name, record.as_bytes());
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["watch", "--guardian", &record])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
    assert_eq!(&word, b"ready\n");
    (child, record)
}

/// The end of the process that holds the other end of its input: the kernel closes it whatever killed that process.
fn end(mut guardian: Child) {
    drop(guardian.stdin.take());
    assert!(guardian.wait().unwrap().success());
}

#[test]
fn a_guardian_puts_values_back_when_its_input_ends_and_none_that_others_set() {
    let folder = Folder::new();
    let value = || fs::read_to_string(folder.path("read_ahead_kb")).unwrap();
    let (waiting, record) = guardian(&folder, "tune-tried-1");
    assert_eq!(
        value(),
        "1024",
        "nothing is put back while the first process lives"
    );
    end(waiting);
    assert_eq!(value(), "128");
    assert!(!fs::exists(record).unwrap());
    // Another program's value stays.
    let (waiting, _) = guardian(&folder, "tune-tried-2");
    fs::write(folder.path("read_ahead_kb"), "4096").unwrap();
    end(waiting);
    assert_eq!(value(), "4096");
    // Without a record all was put back already.
    let (waiting, record) = guardian(&folder, "tune-tried-3");
    fs::remove_file(record).unwrap();
    end(waiting);
    assert_eq!(value(), "1024");
}
