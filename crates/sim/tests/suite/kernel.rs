//! A kernel in the simulator: what limits are worth to readers, and the limits that a watch sets.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings, preset};
use forerun_sim::device;
use forerun_sim::kernel::{Event, Machine};
use forerun_sim::simulate::Outcome;
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::workload::{self, Workload};
use forerun_steering::Counts;

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 256 * MIB;

fn readers(readers: usize, file_bytes: u64) -> ManyReaders {
    ManyReaders {
        file_bytes,
        read_bytes: 128 << 10,
        think_ns: 0,
        readers,
        shared: false,
    }
}

fn settings(depth: &str) -> Settings {
    let mut settings = preset::default().settings(Bytes(MEMORY)).unwrap();
    settings.depth = Choice::parse("depth", METHODS.depth, depth).unwrap();
    settings
}

/// A run on the disk of the bed, 8 ms and 80 MB/s; its events, too.
fn run(
    workload: &dyn Workload,
    limit: u32,
    watch: Option<Settings>,
) -> (Outcome, Counts, Vec<Event>) {
    let mut events = Vec::new();
    let machine = Machine {
        workload,
        device: device::parse("switching(cost_ns=8000000,rate_bytes_per_second=80000000)").unwrap(),
        cache: Bytes(MEMORY),
        limit,
        watch,
    };
    let (outcome, counts) = machine.run(&mut |event| events.push(event)).unwrap();
    (outcome, counts, events)
}

/// MB/s of a run.
fn rate(workload: &ManyReaders, outcome: &Outcome) -> f64 {
    let bytes = workload.readers as u64 * workload.file_bytes;
    bytes as f64 * 1e3 / outcome.elapsed as f64
}

fn sets(events: &[Event]) -> Vec<(u32, u32)> {
    let set = |event: &Event| match event {
        Event::Set(process, pages) => Some((*process, *pages)),
        _ => None,
    };
    events.iter().filter_map(set).collect()
}

#[test]
fn a_longer_limit_helps_while_the_windows_fit_memory() {
    let of = |count, bytes, limit| {
        let workload = readers(count, bytes);
        rate(&workload, &run(&workload, limit, None).0)
    };
    // A Linux 6.18 on an emulated disk of these costs has 23.0 and 70.8 MB/s.
    let (short, long) = (of(10, 32 * MIB, 32), of(10, 32 * MIB, 1024));
    assert!((22.0..=24.0).contains(&short), "{short}");
    assert!((68.0..=73.0).contains(&long), "{long}");
    // Two windows of each of 64 readers are twice the memory.
    let (fits, thrashes) = (of(64, 16 * MIB, 256), of(64, 16 * MIB, 1024));
    assert!(fits > 1.03 * thrashes, "{fits} {thrashes}");
}

#[test]
fn a_watch_gets_what_the_best_limit_gets_with_few_readers_and_with_many() {
    for (count, best, worst) in [(1, 2048, 32), (10, 1024, 32), (64, 256, 2048)] {
        let workload = readers(count, 32 * MIB);
        let of = |limit, watch| rate(&workload, &run(&workload, limit, watch).0);
        let (best, worst) = (of(best, None), of(worst, None));
        let watched = of(32, Some(settings("turn")));
        println!("{count}: best {best} watch {watched} worst {worst}");
        assert!(watched >= 0.85 * best, "{count}: {watched} of {best}");
        assert!(count != 10 || watched >= 2.5 * worst, "{count}: {watched}");
    }
}

#[test]
fn the_limits_of_a_run_repeat_and_are_others_with_another_depth() {
    let workload = readers(8, 16 * MIB);
    let of = |depth| run(&workload, 32, Some(settings(depth)));
    let (growing, competitive) = (of("growing"), of("competitive"));
    assert_eq!(growing, of("growing"));
    assert!(!sets(&competitive.2).is_empty());
    assert_ne!(sets(&growing.2), sets(&competitive.2));
}

#[test]
fn every_page_is_counted_once() {
    let workload = readers(5, 3 * MIB + 4096);
    for watch in [None, Some(settings("turn"))] {
        let (outcome, counts, events) = run(&workload, 32, watch.clone());
        assert_eq!(outcome.reads, 5 * (768 + 1));
        assert_eq!(
            outcome.reads,
            outcome.hits + outcome.late_hits + outcome.misses
        );
        assert_eq!(
            (outcome.fetches, outcome.evicted_unused),
            (outcome.reads, 0)
        );
        assert_eq!(
            (counts.streams, events.is_empty()),
            (if watch.is_some() { 5 } else { 0 }, watch.is_none())
        );
    }
}

#[test]
fn a_read_that_is_late_has_waited_since_it_was_due() {
    // 100 MB/s of a disk that has 80.
    let late = "clients(clients=1,file_bytes=50000000,read_bytes=1000000,bytes_per_second=100000000,every_ns=0)";
    let workload = workload::parse(late).unwrap();
    let (outcome, ..) = run(&*workload, 256, None);
    let last_due = 490_000_000;
    let longest = outcome.responses.longest().0;
    assert!(longest >= outcome.elapsed - last_due, "{longest}");
    assert!(longest > 100_000_000, "{longest}");
}

#[test]
fn bytes_that_a_read_asks_for_and_does_not_take_are_not_read() {
    // Eight asked for, of which two are taken.
    let retried = "retried(file_bytes=4194304,ask_bytes=32768,take_bytes=8192,think_ns=0)";
    let workload = workload::parse(retried).unwrap();
    let (outcome, ..) = run(&*workload, 32, None);
    assert_eq!(outcome.reads, 1024);
}
