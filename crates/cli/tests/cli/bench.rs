//! `forerun bench`: tiny runs in both clocks, over generated, made and given files.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::skipped::skipped;
use super::{Folder, bytes, forerun, output_of};

const KEYS: [&str; 22] = [
    "preset",
    "readers",
    "bytes",
    "elapsed_ns",
    "elapsed_least_ns",
    "elapsed_most_ns",
    "throughput_bytes_per_second",
    "response_p50_ns",
    "response_p90_ns",
    "response_p99_ns",
    "response_p99_9_ns",
    "response_max_ns",
    "device_requests",
    "request_bytes_mean",
    "hits",
    "late_hits",
    "misses",
    "wasted_bytes",
    "stall_ns",
    "memory_bytes",
    "memory_peak_bytes",
    "source_cache",
];

const ESTIMATE_KEYS: [&str; 8] = [
    "device",
    "switching_ns",
    "rate_bytes_per_second",
    "servers",
    "depth_bytes",
    "basis",
    "requests",
    "switches",
];

type Row = BTreeMap<String, Value>;

fn rows(arguments: &str) -> Vec<Row> {
    let text = output_of(&format!("bench --format json {arguments}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn number(row: &Row, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {:?}", row[key]))
}

#[test]
fn a_row_a_preset_with_every_key_in_both_clocks() {
    for clock in ["real", "virtual"] {
        let presets = "forerun,cp,ap,linux-2.6.24,linux-2.6.22,one-block,none";
        let rows = rows(&format!(
            "--clock {clock} --preset {presets} --file-bytes 1MB --readers 3"
        ));
        assert_eq!(rows.len(), 7);
        for (row, preset) in rows.iter().zip(presets.split(',')) {
            assert_eq!(row["preset"], preset);
            assert_eq!(row["clock"], clock);
            assert!(KEYS.iter().all(|key| row.contains_key(*key)), "{row:?}");
            assert_eq!(
                (number(row, "readers"), number(row, "bytes")),
                (3, 3_000_000)
            );
            let asked = number(row, "hits") + number(row, "late_hits") + number(row, "misses");
            // 64 KiB reads are whole blocks but the last: nothing is asked for twice.
            assert_eq!(asked, 3 * 245);
            assert!(number(row, "memory_peak_bytes") <= 256 << 20);
            let device = row["estimate"][0].as_object().unwrap();
            assert!(
                ESTIMATE_KEYS.iter().all(|key| device.contains_key(*key)),
                "{device:?}"
            );
        }
    }
}

#[test]
fn virtual_time_is_the_same_every_time() {
    let text = "bench --clock virtual --readers 2 --file-bytes 10MB --preset cp,linux-2.6.24";
    let table = output_of(text);
    assert_eq!(table, output_of(text));
    let cells = |line: &str| line.split("  ").filter(|cell| !cell.is_empty()).count();
    let mut parts = table.split("\n\n");
    for columns in [6, 6, 8] {
        let lines: Vec<_> = parts.next().unwrap().lines().collect();
        assert!(
            lines.len() == 3 && lines.iter().all(|line| cells(line) == columns),
            "{table}"
        );
    }
}

#[test]
fn every_pattern_runs_in_both_clocks_and_asks_for_the_same_bytes() {
    for pattern in [
        "sequential",
        "interleaved(streams=4)",
        "strided",
        "random",
        "reordered",
    ] {
        let run = |clock: &str| {
            rows(&format!(
                "--pattern {pattern} --clock {clock} --file-bytes 2MB --read-bytes 10000"
            ))
        };
        let (real, modelled) = (run("real"), run("virtual"));
        assert_eq!(real[0]["bytes"], modelled[0]["bytes"], "{pattern}");
        assert!(number(&real[0], "bytes") > 0, "{pattern}");
    }
}

#[test]
fn csv_has_a_head_and_a_line_a_preset() {
    let text = output_of("bench --format csv --file-bytes 100kB --preset cp,none");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        KEYS.iter()
            .all(|key| lines[0].split(',').any(|column| column == *key)),
        "{text}"
    );
    assert!(
        lines[1].starts_with("cp,real,sequential,") && lines[2].starts_with("none,"),
        "{text}"
    );
}

#[test]
fn a_shared_file_is_fetched_once() {
    let rows = rows("--shared --readers 4 --file-bytes 1MB --emulate switching=1ms,rate=80MB/s");
    assert_eq!(number(&rows[0], "bytes"), 4_000_000);
    assert!(
        number(&rows[0], "device_bytes") <= 1_003_520,
        "{:?}",
        rows[0]
    );
}

#[test]
fn more_than_the_directory_has_room_for_is_refused_before_the_first_file() {
    let folder = Folder::new();
    // No file may be longer, so that without the refusal none is made for long.
    let line = format!(
        "ulimit -f 8; exec {:?} bench --readers 9999 --file-bytes 2TiB {:?}",
        cargo_bin!("forerun"),
        folder.path("")
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("21988.0 TB of files to make, and "), "{said}");
    assert!(said.contains(" are free: must be at most that"), "{said}");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
}

#[test]
fn files_in_memory_are_not_said_to_be_dropped_from_the_page_cache() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        skipped("needs /dev/shm");
        return;
    };
    let path = folder.path().display();
    let rows = rows(&format!("{path} --preset kernel --file-bytes 1MB"));
    assert_eq!(rows[0]["source_cache"], "buffered");
}

#[test]
fn files_are_made_once_checked_and_read_by_the_kernel_too() {
    let folder = Folder::new();
    let bench = format!(
        "--preset kernel,forerun --readers 2 --file-bytes 300000 --runs 3 {}",
        folder.name("")
    );
    let first = rows(&bench);
    assert_eq!(first[0]["preset"], "kernel");
    assert_eq!(first[0]["hits"], Value::Null);
    assert_eq!(number(&first[0], "bytes"), 600_000);
    let made: Vec<_> = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(made.len(), 2);
    rows(&bench);
    let mut content = fs::read(&made[0]).unwrap();
    content[123_456] ^= 1;
    fs::write(&made[0], content).unwrap();
    for preset in ["kernel", "forerun", "none"] {
        forerun(&format!(
            "bench --preset {preset} --readers 2 --file-bytes 300000 {}",
            folder.name("")
        ))
        .code(1)
        .stdout_eq("")
        .stderr_eq(format!(
            "600.0 kB stay for the next bench: [..]\nforerun: {}: byte 123456: wrong byte\n",
            made[0].display()
        ));
    }
    fs::write(&made[0], "short").unwrap();
    forerun(&format!(
        "bench --readers 2 --file-bytes 300000 {}",
        folder.name("")
    ))
    .code(2)
    .stderr_eq("forerun: [..]: is there with 5 bytes instead of 300000\n");
}

#[test]
fn given_files_have_a_reader_each() {
    let folder = Folder::new();
    let (a, b) = (
        folder.file("a", &bytes(100_000)),
        folder.file("b", &bytes(5)),
    );
    let rows_of_each = rows(&format!("{a} {b}"));
    assert_eq!(
        (
            number(&rows_of_each[0], "readers"),
            number(&rows_of_each[0], "bytes")
        ),
        (2, 100_005)
    );
    assert_eq!(
        number(&rows(&format!("--readers 5 {a} {b}"))[0], "bytes"),
        300_010
    );
    assert_eq!(
        number(&rows(&format!("--readers 5 --shared {a}"))[0], "bytes"),
        500_000
    );
}

/// Without a word its bytes would be missing from the figures.
#[test]
fn a_file_that_no_reader_would_read_is_refused() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a", b"12"), folder.file("b", b"34"));
    for (words, why) in [
        (
            "--shared --readers 2",
            "--shared: one file, and 2 are named",
        ),
        ("--readers 1", "--readers 1: 2 files are named"),
    ] {
        let said = forerun(&format!("bench {words} {a} {b}")).code(2);
        said.stderr_eq(format!("[..]{why}[..]\n"));
    }
}

#[test]
fn empty_files_are_read_in_no_time() {
    for clock in ["real", "virtual"] {
        let rows = rows(&format!("--clock {clock} --file-bytes 0 --readers 2"));
        assert_eq!(
            (
                number(&rows[0], "bytes"),
                number(&rows[0], "device_requests")
            ),
            (0, 0)
        );
    }
}

#[test]
fn readers_that_think_take_longer() {
    let think = "--file-bytes 1MB --think 5ms --read-bytes 100kB";
    for clock in ["real", "virtual"] {
        let elapsed = number(&rows(&format!("--clock {clock} {think}"))[0], "elapsed_ns");
        assert!(elapsed >= 50_000_000, "{clock}: {elapsed}");
    }
}

#[test]
fn the_engine_believes_the_profile_and_the_device_costs_what_is_emulated() {
    let folder = Folder::new();
    let profile = "[[switching]]\ndistance_bytes = 0\nswitching_ns = 1000000\n\
                   [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 16000000\n";
    let profile = folder.file("profile.toml", profile.as_bytes());
    let device = "--emulate switching=2ms,rate=80MB/s --file-bytes 4MB --readers 4 --preset cp";
    for clock in ["real", "virtual"] {
        let run = |more: &str| rows(&format!("--clock {clock} {device} {more}")).remove(0);
        let (told, untold) = (run(&format!("--profile {profile}")), run(""));
        // A depth of 16 kB where 160 kB would be right costs several times the requests.
        let (more, less) = (
            number(&told, "device_requests"),
            number(&untold, "device_requests"),
        );
        assert!(more > 2 * less, "{clock}: {more} {less}");
        // In real time the machine has a part in the second figure.
        if clock == "virtual" {
            assert!(number(&told, "elapsed_ns") > number(&untold, "elapsed_ns"));
        }
    }
}

/// The distance of the two clocks depends on the machine's other work: `make bench` shows it. On
/// any machine no run is shorter than its device takes.
#[test]
fn no_clock_is_faster_than_the_emulated_device() {
    let run = "--emulate switching=4ms,rate=80MB/s --file-bytes 4MB --readers 8 --memory 32MiB";
    for (clock, preset) in [
        ("real", "forerun"),
        ("real", "linux-2.6.24"),
        ("virtual", "forerun"),
        ("virtual", "linux-2.6.24"),
    ] {
        let row = rows(&format!("--clock {clock} --preset {preset} {run}")).remove(0);
        let (bytes, asked) = (number(&row, "device_bytes"), number(&row, "bytes"));
        assert!(asked == 32_000_000 && bytes >= asked, "{row:?}");
        // At least one switch, and 12.5 ns a byte.
        let least = 4_000_000 + bytes * 25 / 2;
        let elapsed = number(&row, "elapsed_ns");
        assert!(elapsed >= least, "{clock} {preset}: {elapsed}, not {least}");
    }
}

const HINTS: &str = "--hints --emulate switching=5ms,rate=100MB/s --disks 2 --file-bytes 4MB";

/// A shuffled order over two disks: announced, both work all the time; else one waits for the
/// other. The ratio is that of virtual time: `make bench` shows it in real time.
#[test]
fn announced_reads_are_followed_in_either_clock_and_use_both_disks() {
    let folder = Folder::new();
    let path = folder.path("").display().to_string();
    for clock in [path.as_str(), "--clock virtual"] {
        let run = format!("{clock} {HINTS} --preset forestall,linux-2.6.24");
        let rows = rows(&run);
        assert_eq!(number(&rows[0], "hints"), number(&rows[0], "hints_read"));
        assert_eq!(
            (number(&rows[1], "hints"), number(&rows[0], "seed")),
            (0, 1)
        );
        assert_eq!(rows[0]["pattern"], "shuffled");
        let elapsed = |row: &Row| number(row, "elapsed_ns");
        let (announced, not) = (elapsed(&rows[0]), elapsed(&rows[1]));
        if clock == "--clock virtual" {
            assert!(20 * announced < 11 * not, "{announced} {not}");
        } else {
            // At best both disks share the work alike.
            let least = number(&rows[0], "device_bytes") * 5;
            assert!(announced >= least, "{announced}, not {least}");
        }
    }
}

#[test]
fn a_table_says_how_far_runs_are_apart_and_which_files_stay() {
    let folder = Folder::new();
    let path = folder.path("").display().to_string();
    let table = output_of(&format!(
        "bench {path} --file-bytes 1MB --readers 2 --runs 3 --preset none,linux-2.6.24,forerun"
    ));
    let head = table.lines().next().unwrap();
    let words: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(words[2..5], ["elapsed", "least", "most"], "{table}");
    assert!(table.lines().all(|line| line.len() <= 100), "{table}");
    for format in ["table", "csv", "json"] {
        let again = format!("bench {path} --file-bytes 1MB --readers 2 --format {format}");
        let stays = "2.00 MB stay for the next bench: [..]forerun-bench-1-*\n";
        forerun(&again).success().stderr_eq(stays);
    }
    let single =
        output_of("bench --file-bytes 1MB --clock virtual --emulate switching=1ms,rate=1GB/s");
    assert!(
        !single.contains("least") && !single.contains("stay"),
        "{single}"
    );
    let row = &rows(&format!("{path} --file-bytes 1MB --readers 2 --runs 3"))[0];
    let [least, median, most] =
        ["elapsed_least_ns", "elapsed_ns", "elapsed_most_ns"].map(|key| number(row, key));
    assert!(least <= median && median <= most, "{least} {median} {most}");
}

#[test]
fn responses_of_all_reads_have_percentiles_in_both_clocks() {
    let folder = Folder::new();
    let path = folder.path("").display().to_string();
    let emulated =
        "--emulate switching=1ms,rate=100MB/s --file-bytes 2MB --read-bytes 50000 --preset none";
    let modelled = format!("--clock virtual {emulated}");
    let kernel = format!("{path} --file-bytes 2MB --readers 3 --preset kernel,forerun");
    for flags in [&modelled, emulated, &kernel] {
        for row in rows(flags) {
            let tail = ["p50", "p90", "p99", "p99_9", "max"];
            let tail = tail.map(|name| number(&row, &format!("response_{name}_ns")));
            assert!(tail.is_sorted() && tail[0] > 0, "{flags}: {tail:?}");
            assert!(
                tail[4] <= number(&row, "elapsed_most_ns"),
                "{flags}: {tail:?}"
            );
            assert_eq!(row["saturated"], false);
        }
    }
    // Forty reads without computing between them are all of the time: the longest is no shorter than their mean.
    let row = &rows(&modelled)[0];
    let mean = number(row, "elapsed_ns") / 40;
    assert!(number(row, "response_max_ns") >= mean, "{row:?}");
    let table = output_of(&format!("bench {modelled}"));
    let head = table.lines().find(|line| line.contains("p99.9")).unwrap();
    assert_eq!(head.split_whitespace().count(), 6, "{table}");
}

#[test]
fn the_seed_and_what_the_hints_are_stand_below_the_table() {
    let run = format!("bench --clock virtual {HINTS} --seed 4 --wrong-percent 20");
    let table = output_of(&run);
    let last = "\nshuffled, seed 4; hints: 20 % wrong, 0 % missing\n";
    assert!(table.ends_with(last), "{table}");
    assert_eq!(table, output_of(&run));
}

#[test]
fn the_estimated_costs_stand_below_the_table_and_come_near_the_disks() {
    let flags = "--clock virtual --readers 4 --file-bytes 40MB --read-bytes 64KiB --preset forerun \
                 --emulate switching=12ms,rate=220MB/s";
    let table = output_of(&format!("bench {flags}"));
    let (_, below) = table
        .split_once("\nestimated costs of the devices:\n")
        .unwrap();
    assert!(
        below.starts_with("forerun  modelled  12.0 ms  220.0 MB/s  1 server  depth 2.64 MB  (")
            && below.ends_with(" requests)\n"),
        "{table}"
    );
    let row = &rows(flags)[0];
    let device = &row["estimate"][0];
    assert_eq!(device["basis"], "requests");
    let requests = device["requests"].as_u64().unwrap();
    assert!(
        requests > 0 && requests <= number(row, "device_requests"),
        "{row:?}"
    );
}

#[test]
fn a_fixed_profile_is_told_whatever_is_read_and_the_kernel_estimates_nothing() {
    let folder = Folder::new();
    let profile = folder.file("disk", PROFILE.as_bytes());
    let flags = format!("--profile {profile} --profile-fixed --file-bytes 1MB --preset cp");
    let device = &rows(&flags)[0]["estimate"][0];
    assert_eq!(device["device"], "generated");
    assert_eq!(device["basis"], "told");
    assert_eq!(device["requests"], 0);
    assert_eq!(device["depth_bytes"], 640_000);
    let path = folder.path("").display().to_string();
    let kernel = rows(&format!("{path} --file-bytes 1MB --preset kernel"));
    assert!(kernel[0]["estimate"].is_null(), "{kernel:?}");
}

#[test]
fn a_fixed_profile_is_not_measured_in_either_clock_and_leaves_a_kernel_its_queue() {
    let folder = Folder::new();
    let (profile, journal) = (
        folder.file("disk", PROFILE.as_bytes()),
        folder.name("journal"),
    );
    for clock in ["real", "virtual"] {
        for (preset, measure) in [
            ("linux-2.6.24", "given(at_once=1)"),
            ("cp", "given(at_once=1)"),
            ("forerun", "given(at_once=0)"),
        ] {
            let fixed = format!("--profile {profile} --profile-fixed --clock {clock}");
            rows(&format!(
                "{fixed} --preset {preset} --file-bytes 1MB --journal {journal}"
            ));
            let text = std::fs::read_to_string(&journal).unwrap();
            let head = text.lines().nth(1).unwrap();
            assert!(
                head.contains(&format!(" measure={measure} ")),
                "{clock}: {head}"
            );
        }
    }
}

const PROFILE: &str = "
[[switching]]
distance_bytes = 0
switching_ns = 8000000

[[rate]]
location_bytes = 0
rate_bytes_per_second = 80000000
";
