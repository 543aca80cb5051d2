//! Files opened ahead: the gain of a walk over folders on a disk, and the cost of random order.
//!
//! The disk takes 8 ms to go anywhere, be it one file further, so a gain comes only of files that
//! lie side by side in a batch; one that takes less for a short way gains more.

use forerun_baselines::METHODS;
use forerun_core::{Bytes, Settings};
use forerun_sim::replay::replay;
use forerun_sim::workload::{Step, Steps, Turns, Walk, Workload};
use forerun_sim::{Report, Scene, Text, device, workload};

use crate::stage::{DISK, run_into, settings};

/// More than all folders here, and less than two passes over them.
const MEMORY: u64 = 256 << 20;
const SMALL_MEMORY: u64 = 4 << 20;

fn with(method: &str, memory: u64) -> Settings {
    let mut settings = settings("mount", memory);
    settings.next_file = METHODS.next_file(method).unwrap();
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

/// A walk over folders whose program reads these parts of each file.
#[derive(Debug)]
struct Parts {
    folders: Box<dyn Workload>,
    parts: Vec<(u64, u64)>,
}

impl Workload for Parts {
    fn files(&self) -> Vec<Bytes> {
        self.folders.files()
    }

    fn readers(&self) -> Vec<usize> {
        self.folders.readers()
    }

    fn steps(&self, _: usize) -> Steps<'_> {
        let parts = self.parts.iter();
        Box::new(parts.map(|(offset, bytes)| Step::read(*offset, *bytes, 0)))
    }

    fn turns(&self) -> Option<Turns<'_>> {
        let readers = 0..self.readers().len();
        Some(Box::new(
            readers.flat_map(|reader| self.parts.iter().map(move |_| reader)),
        ))
    }

    fn is_packed(&self) -> bool {
        self.folders.is_packed()
    }

    fn walk(&self) -> Option<Walk> {
        self.folders.walk()
    }
}

#[test]
fn a_part_of_each_file_takes_no_longer_and_no_more_bytes_than_without_a_method() {
    const FILE: u64 = 4 << 20;
    let (head, tail) = ((0, 4 << 10), (FILE - (64 << 10), 64 << 10));
    let middle = (FILE / 2, 16 << 10);
    for (name, parts) in [
        ("head", vec![head]),
        ("tail", vec![tail]),
        ("middle", vec![middle]),
        ("tail, then head", vec![(FILE - 8192, 8192), (0, 8192)]),
        ("tail, then middle", vec![tail, (FILE / 2, 256 << 10)]),
    ] {
        for order in 0..3 {
            let text =
                format!("folders(folders=2,folder_files=100,small_bytes={FILE},order={order})");
            let folders = workload::parse(&text).unwrap();
            let walk = Parts {
                folders,
                parts: parts.clone(),
            };
            let run = |method| {
                let scene = Scene::new(with(method, MEMORY), device::parse(DISK).unwrap(), &walk);
                scene.run(&mut ()).unwrap()
            };
            let (plain, ahead) = (run("none"), run("directory"));
            assert_eq!(plain.bytes, ahead.bytes);
            let time = ahead.elapsed.0 as f64 / plain.elapsed.0 as f64;
            let [before, after] = [&plain, &ahead].map(|run| run.ledger.request_bytes.0);
            let unread = ahead.ledger.files_ahead_unread * u64::from(ahead.block_bytes);
            println!(
                "{name}, order {order}: {time:.2} of the time, {after} bytes, {before} without"
            );
            assert!(time <= 1.05, "{name}, order {order}: {time}");
            assert!(
                after * 10 <= before * 12,
                "{name}, order {order}: {after}, {before}"
            );
            assert!(
                unread * 100 <= after * 3,
                "{name}, order {order}: {unread} of {after}"
            );
        }
    }
}
