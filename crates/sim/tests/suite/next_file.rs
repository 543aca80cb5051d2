//! Files opened ahead: the gain of a walk over folders on a disk, and the cost of random order.
//!
//! The disk takes 8 ms to go anywhere, be it one file further, so a gain comes only of files that
//! lie side by side in a batch; one that takes less for a short way gains more.

use forerun_baselines::METHODS;
use forerun_core::Settings;
use forerun_core::spec::Choice;
use forerun_sim::replay::replay;
use forerun_sim::{Report, Text, workload};

use crate::stage::{DISK, run_into, settings};

/// More than all folders here, and less than two passes over them.
const MEMORY: u64 = 256 << 20;
const SMALL_MEMORY: u64 = 4 << 20;

fn with(method: &str, memory: u64) -> Settings {
    let mut settings = settings("mount", memory);
    settings.next_file = Choice::parse("next_file", METHODS.next_file, method).unwrap();
    settings
}

fn walk(method: &str, folders: &str, memory: u64) -> Report {
    run_into(with(method, memory), DISK, folders, &mut ())
}

/// How many times longer it takes without a method.
fn gain(method: &str, folders: &str, memory: u64) -> (f64, Report) {
    let (plain, ahead) = (walk("none", folders, memory), walk(method, folders, memory));
    assert_eq!(plain.bytes, ahead.bytes);
    assert_eq!(plain.ledger.files_ahead, 0);
    let gain = plain.elapsed.0 as f64 / ahead.elapsed.0 as f64;
    let [plain, took] = [&plain, &ahead].map(|report| report.elapsed.0 / 1_000_000);
    let (used, wasted) = (
        ahead.ledger.files_ahead_used,
        ahead.ledger.files_ahead_wasted,
    );
    println!(
        "{folders} {method}: {took} ms, {plain} without: {gain:.2}; {used} used, {wasted} wasted"
    );
    (gain, ahead)
}

#[test]
fn folders_in_listing_order_are_read_at_least_twice_as_fast() {
    let few = "directory(files=256)";
    for (method, folders, files) in [
        ("directory", 10, 30),
        ("directory", 4, 300),
        (few, 4, 300),
        ("directory", 3, 3000),
    ] {
        let folders = format!("folders(folders={folders},folder_files={files})");
        let (gain, report) = gain(method, &folders, MEMORY);
        assert!(gain >= 2.0, "{folders} {method}: {gain}");
        assert_eq!(report.ledger.files_ahead_wasted, 0);
    }
}

#[test]
fn no_order_is_read_slower_than_without_a_method() {
    for files in [1, 2, 3, 30, 300] {
        for order in 0..4 {
            for method in ["directory", "history"] {
                let folders =
                    format!("folders(folders=2,folder_files={files},order={order},passes=2)");
                let (gain, _) = gain(method, &folders, SMALL_MEMORY);
                assert!(gain > 0.97, "{folders} {method}: {gain}");
            }
        }
    }
}

#[test]
fn random_order_wastes_next_to_nothing() {
    let (mut opened, mut wasted) = (0, 0);
    for (files, passes) in [(30, 10), (100, 4), (300, 2)] {
        for seed in 0..10 {
            let folders =
                format!("folders(folder_files={files},order=2,passes={passes},seed={seed})");
            let report = walk("directory", &folders, SMALL_MEMORY);
            let (opens, l) = (4 * files * passes, report.ledger);
            assert!(l.files_ahead_wasted <= 16 + l.files_ahead_used + opens / 16);
            assert!(l.files_ahead_wasted <= 16, "{folders}: {l:?}");
            opened += opens;
            wasted += l.files_ahead_wasted;
        }
    }
    println!("{wasted} of {opened} files");
    assert!(wasted * 100 <= opened);
}

#[test]
fn a_random_order_that_repeats_is_read_faster_by_history() {
    let folders = "folders(folder_files=300,order=3,passes=3)";
    let (gain, report) = gain("history", folders, SMALL_MEMORY);
    assert!(gain >= 1.1, "{gain}");
    assert!(report.ledger.files_ahead_used > 2000);
}

#[test]
fn walks_replay_and_one_that_computes_loses_its_waits() {
    let folders = "folders(folder_files=60,order=0,think_ns=9000000)";
    for method in ["directory", "history"] {
        let mut text = Text::new(String::new());
        run_into(with(method, SMALL_MEMORY), DISK, folders, &mut text);
        let text = text.finish().unwrap();
        let replayed = replay(text.as_bytes()).unwrap_or_else(|e| panic!("{method}: {e}"));
        assert!(replayed.complete);
    }
    let computes = workload::parse(folders).unwrap().readers().len() as u64 * 9_000_000;
    let report = walk("directory", folders, MEMORY);
    let stalled = report.elapsed.0 - computes;
    let plain = walk("none", folders, MEMORY).elapsed.0 - computes;
    println!(
        "{} ms of stall, {} without",
        stalled / 1_000_000,
        plain / 1_000_000
    );
    assert!(stalled * 5 < plain);
}
