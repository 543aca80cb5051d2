//! The live engine with hints: the gain of right ones, and the cost of wrong ones.
//!
//! One process reads pieces of two files in a shuffled order; the files lie on two disks of 8 ms
//! and 80 MB/s. The order has no pattern, so without hints one disk works at a time.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_sim::announce::Announced;
use forerun_sim::device::{self, Device};
use forerun_sim::workload::{self, Announcements, Steps, Turns, Workload};
use forerun_sim::wrap::{Fault, Faults};
use forerun_sim::{Report, Scene, Text, replay};

use crate::stage::{self, DISK};

const SHUFFLED: &str = "shuffled(file_bytes=20000000)";
const MEMORY: u64 = 16 << 20;

/// A run: on how many disks, with hints of which so many of a hundred are wrong or missing.
#[derive(Clone)]
struct Run {
    settings: Settings,
    disks: usize,
    wrong_percent: u8,
    missing_percent: u8,
    faults: Option<Faults>,
}

fn with(policy: &str) -> Run {
    let mut settings = stage::settings("forerun", MEMORY);
    settings.hinted = METHODS.hinted(policy).unwrap();
    Run {
        settings,
        disks: 2,
        wrong_percent: 0,
        missing_percent: 0,
        faults: None,
    }
}

/// Demand reads alone: files of a megabyte are found by their reads in any order, and half fetched ahead.
fn alone() -> Run {
    let mut run = with("none");
    run.settings.detect = Choice::parse("detect", METHODS.detect, "none").unwrap();
    run
}

impl Run {
    fn announced<'a>(&self, workload: &'a dyn Workload) -> Announced<'a> {
        Announced {
            workload,
            wrong_percent: self.wrong_percent,
            missing_percent: self.missing_percent,
            seed: 5,
        }
    }

    fn recorded(&self, workload: &dyn Workload) -> (Report, String) {
        let disk = || device::parse(DISK).unwrap();
        let devices = (0..self.disks).map(|_| match self.faults {
            Some(faults) => Box::new(Fault::new(disk(), faults)) as Box<dyn Device>,
            None => disk(),
        });
        let scene = Scene {
            striping: None,
            devices: devices.collect(),
            ..Scene::new(self.settings.clone(), disk(), workload)
        };
        let mut text = Text::new(String::new());
        let report = scene.run(&mut text).unwrap_or_else(|e| panic!("{e}"));
        assert!(report.ledger.memory_peak <= self.settings.memory);
        assert_eq!(report.ledger.refused_inputs, 0);
        (report, text.finish().unwrap())
    }

    fn on(&self, workload: &str) -> Report {
        let workload = workload::parse(workload).unwrap();
        self.recorded(&self.announced(&*workload)).0
    }
}

/// Times are exact in virtual time; these bounds are the claims, not measurements.
#[test]
fn forestall_with_right_hints_is_as_fast_as_both_disks_at_once() {
    let without = alone().on(SHUFFLED);
    let forestall = with("forestall").on(SHUFFLED);
    let busiest = forestall.devices.iter().map(|d| d.usage.busy).max();
    assert_eq!(Some(forestall.elapsed), busiest, "a disk never idles");
    assert!(2 * forestall.elapsed.0 < without.elapsed.0);
    assert_eq!(forestall.ledger.misses, 0);
    let ledger = forestall.ledger;
    assert_eq!((ledger.hints_read, ledger.hints_missed), (ledger.hints, 0));
    assert_eq!(
        ledger.used, ledger.prefetched,
        "nothing was fetched in vain"
    );
}

#[test]
fn every_method_that_prefetches_comes_close_to_that() {
    let without = with("none").on(SHUFFLED);
    for policy in PREFETCHING {
        let report = with(policy).on(SHUFFLED);
        // Half the time, and a twentieth for the start and the end, where one disk is alone.
        assert!(20 * report.elapsed.0 < 11 * without.elapsed.0, "{policy}");
    }
}

/// A reader that computes as long as a disk takes needs one disk, and never waits once the first
/// block is there.
#[test]
fn forestall_hides_the_disks_behind_computing() {
    let report = with("forestall").on("shuffled(file_bytes=20000000,think_ns=9000000)");
    let reads: u64 = report.readers.iter().map(|r| r.reads).sum();
    let computed = 9_000_000 * reads;
    assert!(
        report.elapsed.0 < computed + computed / 100,
        "{}",
        report.elapsed
    );
}

/// Wrong hints fetch unwanted blocks. Prefetch credit bounds that: a few requests where all are
/// wrong; and where half are, the other half gains more than it costs.
#[test]
fn wrong_and_missing_hints_cost_little_against_none() {
    for method in METHODS.hinted {
        let policy = method.spec.name;
        let without = with("none").on(SHUFFLED).elapsed.0;
        for (wrong_percent, missing_percent) in [(100, 0), (50, 0), (0, 50), (50, 50)] {
            let run = Run {
                wrong_percent,
                missing_percent,
                ..with(policy)
            };
            let report = run.on(SHUFFLED);
            assert!(
                10 * report.elapsed.0 <= 11 * without,
                "{policy}, {wrong_percent} % wrong, {missing_percent} % missing: {} ns, without \
                 hints {without}",
                report.elapsed
            );
        }
    }
}

/// Hints in another order than the reads: each five reversed, as workers that overtake each other.
#[derive(Debug)]
struct Disordered<'a>(&'a dyn Workload);

impl Workload for Disordered<'_> {
    fn files(&self) -> Vec<Bytes> {
        self.0.files()
    }

    fn readers(&self) -> Vec<usize> {
        self.0.readers()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        self.0.steps(reader)
    }

    fn turns(&self) -> Option<Turns<'_>> {
        self.0.turns()
    }

    fn hints(&self) -> Announcements<'_> {
        let mut hints: Vec<_> = self.0.hints().collect();
        hints.chunks_mut(5).for_each(<[_]>::reverse);
        Box::new(hints.into_iter())
    }
}

#[test]
fn reads_a_few_places_out_of_turn_take_their_places() {
    let shuffled = workload::parse(SHUFFLED).unwrap();
    let run = with("forestall");
    let announced = run.announced(&*shuffled);
    let in_turn = run.recorded(&announced).0;
    let (report, _) = run.recorded(&Disordered(&announced));
    let ledger = report.ledger;
    assert_eq!((ledger.hints_read, ledger.hints_missed), (ledger.hints, 0));
    assert!(20 * report.elapsed.0 < 21 * in_turn.elapsed.0);
}

#[test]
fn more_hints_than_the_memory_allows_are_not_taken_and_what_is_taken_is_followed() {
    let mut run = with("forestall");
    run.settings.memory = Bytes(1 << 20);
    let report = run.on("shuffled(file_bytes=8000000,read_bytes=4096)");
    let ledger = report.ledger;
    assert!((100..3900).contains(&ledger.hints), "{}", ledger.hints);
    assert_eq!(ledger.hints_read, ledger.hints);
}

#[test]
fn a_failing_disk_fails_only_the_reads_it_fails() {
    let mut lost = 0;
    for method in METHODS.hinted {
        let mut run = with(method.spec.name);
        run.faults = Some(Faults {
            seed: 3,
            failed_per_mille: 200,
            short_per_mille: 100,
            ..Faults::default()
        });
        let report = run.on(SHUFFLED);
        let errors: u64 = report.readers.iter().map(|r| r.errors).sum();
        // Three of ten fetches fail; a read is lost only if its second try fails, too.
        assert!(errors < 60, "{}: {errors}", method.spec.name);
        lost += errors;
        assert!(report.ledger.failed + report.ledger.demand_failed > 0);
    }
    assert!(lost > 0, "some reads must have failed twice");
}

/// Twice as much data as memory, read again and again: a method that knows the order keeps the next
/// blocks, while the order of last use keeps blocks that come much later.
#[test]
fn knowing_the_order_saves_requests_where_blocks_are_read_again() {
    let run = |policy: &str| with(policy).on("shuffled(file_bytes=12000000,passes=4)");
    let requests = |policy: &str| run(policy).device_requests();
    let (lru, opt) = (requests("demand-lru"), requests("demand-opt"));
    assert!(10 * opt < 9 * lru, "{opt} of {lru}");
    assert!(requests("forestall") < lru);
}

#[test]
fn a_run_with_hints_replays_and_one_seed_gives_one_run() {
    for method in METHODS.hinted {
        let run = Run {
            wrong_percent: 20,
            missing_percent: 20,
            ..with(method.spec.name)
        };
        let workload = workload::parse("shuffled(file_bytes=3000000,think_ns=1000000)").unwrap();
        let (_, journal) = run.recorded(&run.announced(&*workload));
        let (_, again) = run.recorded(&run.announced(&*workload));
        assert_eq!(journal, again, "{}", method.spec.name);
        let replayed = replay::replay(journal.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        assert!(replayed.complete);
        assert!(journal.contains("hint 0 first"), "{}", method.spec.name);
    }
}

const PREFETCHING: [&str; 4] = [
    "fixed-horizon",
    "aggressive",
    "reverse-aggressive",
    "forestall",
];

/// A tenth wrong brings a tenth more to fetch, and a tenth of the reads waits for its disk alone.
#[test]
fn a_tenth_of_wrong_hints_leaves_most_of_the_gain() {
    let without = with("none").on(SHUFFLED).elapsed.0;
    for policy in PREFETCHING {
        let run = Run {
            wrong_percent: 10,
            ..with(policy)
        };
        let report = run.on(SHUFFLED);
        assert!(10 * report.elapsed.0 < 7 * without, "{policy}");
    }
}

/// Files that stay open hold nothing back, however many there are.
#[test]
fn one_order_over_many_open_files_is_followed_as_well() {
    let many = "shuffled(file_bytes=1000000,files=40)";
    let without = alone().on(many).elapsed.0;
    for policy in PREFETCHING {
        let report = with(policy).on(many);
        assert!(10 * report.elapsed.0 < 6 * without, "{policy}");
        assert_eq!(report.ledger.hints_missed, 0, "{policy}");
    }
}

/// A detector that sees a sequential pattern fetches it in long runs; announced in short reads by
/// turns, it must still reach the disk in runs.
#[test]
fn announcing_what_a_detector_sees_anyway_costs_little() {
    for readers in [1, 4, 10] {
        let text = format!("many-readers(file_bytes=6000000,readers={readers})");
        let run = |policy: &str| {
            let mut run = with(policy);
            (run.disks, run.settings.memory) = (1, Bytes(64 << 20));
            run.on(&text).elapsed.0
        };
        let (announced, detected) = (run("forestall"), run("none"));
        // A fifth: readers that share a disk go on for a slice each, not in rounds as announced,
        // so most of the hints of many readers are lost, and those that are not break runs.
        assert!(
            5 * announced <= 6 * detected,
            "{readers} readers: {announced} ns, not announced {detected}"
        );
    }
}
