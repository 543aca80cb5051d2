//! `servers` and `soak`, small: a table of each server, and readers on a mount that is no forerun.
//!
//! Runs the binary as users do. Where the machine lacks something the binary names it and ends with
//! 2, and the test is skipped with that reason. Nothing here is about speed.

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
image_bytes = 200_000_000
device = "switching(cost_ns=200000,rate_bytes_per_second=80000000)"
is_rotational = true
[file_system]
kind = "ext4"
[files]
count = 100
folders = 2
file_bytes = 24_000
file_bytes_max = 1_418_000
mix = "media_clips"
seed = 5
[queue]
read_ahead_bytes = 131_072
scheduler = "none"
"#;

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn bed_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
    command.args(arguments);
    command
}

/// A script in place of forerun: its mount is the passthrough, its ledger this text.
fn stand_in(path: &Path, stats: &str) {
    let program = env!("CARGO_BIN_EXE_forerun-bed");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = ctl ]; then echo '{stats}'; exit; fi\n\
         for last; do :; done\nif [ \"$last\" = --help ]; then exit; fi\n\
         {program} passthrough \"$2\" \"$3\" &\n\
         trap 'umount \"$3\"; wait; exit 0' TERM\nwait\n"
    );
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The table of a server with two clients, on the kernel and on the stand-in; none: skipped.
fn measured(server: &str, more: &[&str]) -> Option<serde_json::Value> {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let [bed, state, forerun, index] =
        ["bed.toml", "state", "forerun", "index"].map(|name| place.join(name));
    fs::write(&bed, BED).unwrap();
    stand_in(&forerun, "");
    let mut command = bed_command(&["servers", server]);
    command
        .arg(&bed)
        .arg("--state")
        .arg(&state)
        .arg("--forerun")
        .arg(&forerun);
    command.args([
        "--clients",
        "2",
        "--read-ahead",
        "128",
        "--schedulers",
        "none,no-such",
    ]);
    command.args([
        "--time", "1s", "--runs", "1", "--memory", "128MiB", "--format", "json",
    ]);
    if server == "search" {
        command.arg("--index").arg(&index);
    }
    let output = command.args(more).output().unwrap();
    if output.status.code() == Some(2) && said(&output).contains("cannot run here") {
        skipped(said(&output));
        return None;
    }
    assert!(output.status.success(), "{}", said(&output));
    assert!(!state.exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(state.to_str().unwrap()));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn holds_answers_of_both_sides(table: &serde_json::Value) {
    let rows = table["rows"].as_array().unwrap();
    let sides: Vec<&str> = rows
        .iter()
        .map(|row| row["side"].as_str().unwrap())
        .collect();
    assert_eq!(sides, ["kernel none 128", "forerun mount"]);
    let positive = |name: &str| rows.iter().all(|row| row[name].as_f64().unwrap() > 0.0);
    assert!(positive("per_second") && positive("p99_ms"), "{table}");
    assert_eq!(table["absent_schedulers"][0], "no-such");
}

#[test]
fn nginx_serves_media_clips_to_wrk_on_every_side() {
    if let Some(table) = measured("media", &[]) {
        holds_answers_of_both_sides(&table);
        assert!(table["served_bytes"].as_u64().unwrap() > 10_000_000);
    }
}

#[test]
fn xapian_answers_queries_on_every_side() {
    if let Some(table) = measured("search", &["--documents", "2000"]) {
        holds_answers_of_both_sides(&table);
        assert!(table["served_bytes"].as_u64().unwrap() > 1_000_000);
    }
}

#[test]
fn a_machine_without_the_servers_is_told_their_packages() {
    let place = tempfile::tempdir().unwrap();
    let (bed, state) = (place.path().join("bed.toml"), place.path().join("state"));
    fs::write(&bed, BED).unwrap();
    for (server, package) in [("media", "package nginx-light"), ("search", "xapian-tools")] {
        let mut command = bed_command(&["servers", server]);
        command
            .arg(&bed)
            .arg("--state")
            .arg(&state)
            .env("PATH", place.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(package), "{}", said(&output));
        assert!(!state.exists());
    }
}

/// A module in place of xapian: it writes a file, refuses a folder that is there, and fails by its name.
const XAPIAN: &str = "
import os, sys

DB_CREATE = DB_NO_TERMLIST = 0

class Document:
    pass

class TermGenerator:
    def set_document(self, document): pass
    def set_termpos(self, position): pass
    def index_text(self, text): pass

class WritableDatabase:
    def __init__(self, path, flags):
        if 'broken' in path and path.endswith('1'):
            raise OSError('no room for ' + path)
        os.mkdir(path)
        self.path, self.count = path, 0
    def add_document(self, document):
        self.count += 1
    def commit(self): pass
    def close(self):
        with open(os.path.join(self.path, 'count'), 'w') as file:
            file.write(str(self.count))
";

/// Adds up the counts of the parts.
const COMPACT: &str = "#!/bin/sh
mkdir \"$4\" && expr $(cat \"$2/count\") + $(cat \"$3/count\") >\"$4/count\"
";

#[test]
fn an_index_is_whole_after_a_build_that_was_interrupted_and_a_failure_is_told() {
    let place = tempfile::tempdir().unwrap();
    let [script, module, compact] =
        ["search.py", "xapian.py", "xapian-compact"].map(|name| place.path().join(name));
    fs::write(&script, include_str!("../src/servers/search.py")).unwrap();
    fs::write(&module, XAPIAN).unwrap();
    fs::write(&compact, COMPACT).unwrap();
    fs::set_permissions(&compact, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path().display());
    let build = |name: &str, documents: &str| {
        let mut command = Command::new(forerun_bed::servers::search::PYTHON);
        command
            .arg(&script)
            .arg("build")
            .arg(place.path().join(name));
        let command = command.args([documents, "7"]).env("PATH", &path);
        command.env("PYTHONPATH", place.path()).output()
    };
    for rest in ["odd.part0", "odd.part1", "odd.whole"] {
        fs::create_dir(place.path().join(rest)).unwrap();
        fs::write(place.path().join(rest).join("flintlock"), "").unwrap();
    }
    let built = match build("odd", "2001") {
        Err(error) => return skipped(format!("no Python: {error}")),
        Ok(built) => built,
    };
    assert!(built.status.success(), "{}", said(&built));
    let count = fs::read_to_string(place.path().join("odd/count")).unwrap();
    assert_eq!(count.trim(), "2001");
    let left = fs::read_dir(place.path()).unwrap().map(Result::unwrap);
    let left: Vec<_> = left.map(|one| one.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains(".part")),
        "{left:?}"
    );

    let broken = build("broken", "2000").unwrap();
    assert!(!broken.status.success());
    let said = said(&broken);
    let last = said.trim_end().lines().next_back().unwrap();
    assert!(
        last.starts_with("OSError: no room for ") && last.ends_with(".part1"),
        "{said}"
    );
}

const AT_REST: &str = r#"{"block_bytes": 4096, "counters": {"prefetched": 0, "used": 0,
    "evicted_unused": 0, "resident_unused": 0, "in_flight": 0, "failed": 0, "cancelled": 0,
    "reads": 0, "hits": 0, "late_hits": 0, "misses": 0}, "open_files": [], "queues": []}"#;

#[test]
fn readers_come_and_are_killed_and_a_soak_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let [forerun, plot, files] = ["forerun", "plot.svg", "files"].map(|name| place.join(name));
    fs::create_dir(&files).unwrap();
    stand_in(&forerun, AT_REST);
    let mut command = bed_command(&["soak"]);
    command
        .arg(&files)
        .arg("--forerun")
        .arg(&forerun)
        .arg("--plot")
        .arg(&plot);
    command.args([
        "--readers",
        "10",
        "--time",
        "3s",
        "--files",
        "4",
        "--file-bytes",
        "1MiB",
    ]);
    let output = command.output().unwrap();
    let text = said(&output);
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0, "{text}");
    if text.contains("forerun mount ended with") {
        skipped(text);
        return;
    }
    assert!(output.status.success(), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| report["counts"][name].as_u64().unwrap();
    assert_eq!(count("failed"), 0, "{text}");
    assert_eq!(count("exited") + count("killed"), count("started"));
    assert!(count("exited") > 0 && count("killed") > 0, "{text}");
    assert!(fs::read_to_string(&plot).unwrap().contains("<polyline"));
}
