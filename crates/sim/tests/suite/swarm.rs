//! The swarm: a seed chooses a run's whole setup, and every invariant must hold.
//!
//! The seed is printed before its run. 1000 seeds, or `FORERUN_SWARM_SEEDS`; a failing one is
//! run alone with `FORERUN_SWARM_FIRST=seed FORERUN_SWARM_SEEDS=1`.
//!
//! Invariants of every run: it ends (no reader waits for ever, and not for a million events more
//! than its reads explain); no block is fetched twice at once, no error is shown to a reader whose
//! block did not fail, no absent block is served (the world's guard); ledger and clocks add up;
//! memory stays in its bound; every reader takes every byte it asked for that did not fail; and run
//! again, the journal replays without a difference.

mod draw;

use std::collections::BTreeSet;

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::spec::{Choice, Method};
use forerun_core::table::Table;
use forerun_core::{Bytes, Nanos, Settings};
use forerun_sim::announce::Announced;
use forerun_sim::device::scheduler;
use forerun_sim::device::{self, Device};
use forerun_sim::random::Random;
use forerun_sim::workload::{self, Workload};
use forerun_sim::wrap::{Fault, Faults};
use forerun_sim::{Report, Scene, Text, replay};

struct Chosen {
    settings: Settings,
    devices: Vec<String>,
    faults: Faults,
    workload: String,
    driver: Nanos,
    copy_rate: u64,
    /// Of a hundred hints, how many are wrong and how many missing; none if nothing is announced.
    hints: Option<(u8, u8)>,
}

fn choose(seed: u64) -> Chosen {
    let mut random = Random::new(seed);
    let workload = draw::workload(seed, &mut random);
    let devices = (0..random.between(1, 3))
        .map(|_| draw::device(&mut random))
        .collect();
    let driver = Nanos(if random.chance(300) {
        random.below(2_000_000)
    } else {
        0
    });
    let copy_rate = if random.chance(300) {
        random.between(1 << 20, 1 << 33)
    } else {
        0
    };
    let faults = choose_faults(&mut random);
    let mut settings = choose_settings(&mut random);
    let hints = random.chance(500).then(|| {
        settings.hinted = Some(choose_method(&mut random, METHODS.hinted));
        let percent = |random: &mut Random| match random.chance(500) {
            true => 0,
            false => random.between(0, 100) as u8,
        };
        (percent(&mut random), percent(&mut random))
    });
    Chosen {
        settings,
        devices,
        faults,
        workload,
        driver,
        copy_rate,
        hints,
    }
}

fn choose_settings(random: &mut Random) -> Settings {
    let preset = random.pick(PRESETS).unwrap();
    let mut settings = preset.settings(Bytes(64 << 20)).unwrap();
    if random.chance(300) {
        settings.detect = choose_method(random, METHODS.detect);
        settings.depth = choose_method(random, METHODS.depth);
        settings.dispatch = choose_method(random, METHODS.dispatch);
        settings.reclaim = choose_method(random, METHODS.reclaim);
        settings.measure = choose_method(random, METHODS.measure);
        settings.next_file = Some(choose_method(random, METHODS.next_file));
    }
    settings.block_bytes = 512 << random.below(8);
    let minimum = Table::memory_for(Table::FRAMES_MIN, settings.block_bytes);
    settings.memory.0 = minimum.0 + random.magnitude(24);
    settings.request_max.0 = u64::from(settings.block_bytes) << random.below(9);
    settings.in_flight_max = 1 << random.below(8);
    settings.unread_percent = random.between(1, 100) as u8;
    settings.check().unwrap();
    settings
}

/// A method of a family, with parameters from their ranges.
fn choose_method<B>(random: &mut Random, list: &'static [Method<B>]) -> Choice<B> {
    let method = random.pick(list).unwrap();
    let params = method.spec.params.iter();
    params.fold(Choice::of(method), |choice, param| {
        let value = param
            .min
            .saturating_add(random.magnitude(40))
            .min(param.max);
        choice.with(param.name, value).unwrap()
    })
}

fn choose_faults(random: &mut Random) -> Faults {
    let rate = |random: &mut Random, most: u64| {
        if random.chance(500) {
            0
        } else {
            random.between(1, most) as u16
        }
    };
    Faults {
        seed: random.number(),
        failed_per_mille: rate(random, 300),
        short_per_mille: rate(random, 300),
        delayed_per_mille: rate(random, 500),
        delay_max: Nanos(random.below(100_000_000)),
    }
}

/// Bytes each reader asks for and can get, and whether it makes any reads at all.
fn asked(workload: &dyn Workload, reader: usize) -> u64 {
    let size = workload.files()[workload.readers()[reader]].0;
    let owner = workload.owner(reader);
    workload
        .steps(owner)
        .filter(|s| s.on.unwrap_or(owner) == reader)
        .map(|s| s.take.0.min(size.saturating_sub(s.offset.0)))
        .sum()
}

fn run(chosen: &Chosen, text: &mut Text<String>) -> Report {
    let workload = workload::parse(&chosen.workload).unwrap();
    let device = |(at, name): (usize, &String)| {
        let faults = Faults {
            seed: chosen.faults.seed ^ at as u64,
            ..chosen.faults
        };
        Box::new(Fault::new(device::parse(name).unwrap(), faults)) as Box<dyn Device>
    };
    let blocks: u64 = (0..workload.readers().len())
        .map(|reader| {
            workload
                .steps(reader)
                .map(|s| 2 + s.bytes.0 / 512)
                .sum::<u64>()
        })
        .sum();
    let (wrong_percent, missing_percent) = chosen.hints.unwrap_or((0, 100));
    let workload = Announced {
        workload: &*workload,
        wrong_percent,
        missing_percent,
        seed: chosen.faults.seed,
    };
    let scene = Scene {
        processors: None,
        striping: None,
        settings: chosen.settings.clone(),
        devices: chosen.devices.iter().enumerate().map(device).collect(),
        workload: &workload,
        driver_per_fetch: chosen.driver,
        copy_bytes_per_second: chosen.copy_rate,
        events_max: 1_000_000 + 20 * blocks,
        joins_instants: chosen.faults.seed.is_multiple_of(2),
        told: None,
        until: None,
    };
    scene.run(text).unwrap_or_else(|e| panic!("{e}"))
}

fn check(chosen: &Chosen, report: &Report) {
    let Chosen {
        settings,
        faults,
        workload,
        ..
    } = chosen;
    assert!(
        report.ledger.memory_peak <= settings.memory,
        "{}",
        report.ledger.memory_peak
    );
    assert_eq!(report.ledger.in_flight, 0);
    assert_eq!(report.ledger.refused_inputs, 0);
    for device in &report.devices {
        assert!(device.utilisation(report.quiet) <= 1.0);
    }
    let workload = workload::parse(workload).unwrap();
    let is_clean = faults.failed_per_mille == 0 && faults.short_per_mille == 0;
    for (reader, one) in report.readers.iter().enumerate() {
        let asked = asked(&*workload, reader);
        assert!(
            one.bytes.0 <= asked,
            "reader {reader} took {} of {asked}",
            one.bytes
        );
        if is_clean {
            assert_eq!((one.bytes.0, one.errors), (asked, 0), "reader {reader}");
        }
        if faults.failed_per_mille == 0 {
            assert_eq!(one.errors, 0, "reader {reader}");
        }
    }
}

/// Events of the swarm: a swarm that never gets into trouble proves little.
#[derive(Debug, Default)]
struct Seen {
    events: u64,
    errors: u64,
    failed: u64,
    evicted: u64,
    evicted_unused: u64,
    late_hits: u64,
    memory_waits: u64,
    refused_prefetches: u64,
    thrashed: u64,
    hints_read: u64,
    hints_missed: u64,
    hints_dropped: u64,
    /// Names of workloads, devices and schedulers.
    names: BTreeSet<String>,
}

impl Seen {
    fn add(&mut self, chosen: &Chosen, report: &Report) {
        let devices = chosen.devices.iter().flat_map(|device| device.split(':'));
        let parts = devices.chain([chosen.workload.as_str()]);
        let names = parts.filter_map(|part| part.split('(').next());
        self.names.extend(names.map(str::to_owned));
        let ledger = &report.ledger;
        self.events += report.events;
        self.errors += report
            .readers
            .iter()
            .map(|reader| reader.errors)
            .sum::<u64>();
        self.failed += ledger.failed;
        self.evicted += ledger.evicted;
        self.evicted_unused += ledger.evicted_unused;
        self.late_hits += ledger.late_hits;
        self.memory_waits += ledger.memory_waits;
        self.refused_prefetches += ledger.refused_prefetches;
        self.thrashed += ledger.thrashed;
        self.hints_read += ledger.hints_read;
        self.hints_missed += ledger.hints_missed;
        self.hints_dropped += ledger.hints_dropped;
    }

    fn is_hard(&self) -> bool {
        let all = [
            self.errors,
            self.failed,
            self.evicted,
            self.evicted_unused,
            self.late_hits,
        ];
        let scarce = [self.memory_waits, self.refused_prefetches, self.thrashed];
        let hints = [self.hints_read, self.hints_missed, self.hints_dropped];
        all.iter()
            .chain(&scarce)
            .chain(&hints)
            .all(|count| *count > 0)
    }
}

/// Entries of a list that were not drawn.
fn missing<B>(list: &'static [Method<B>], seen: &Seen) -> Vec<&'static str> {
    let names = list.iter().map(|method| method.spec.name);
    names.filter(|name| !seen.names.contains(*name)).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, printed with the seeds"
)]
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn swarm_of_seeds_holds_every_invariant() {
    let first = number("FORERUN_SWARM_FIRST", 0);
    let seeds = number("FORERUN_SWARM_SEEDS", 1000);
    let mut seen = Seen::default();
    for seed in first..first + seeds {
        let chosen = choose(seed);
        println!(
            "seed {seed}: {} on {:?}, {:?}, hints {:?}, {}",
            chosen.workload, chosen.devices, chosen.faults, chosen.hints, chosen.settings
        );
        let mut text = Text::new(String::new());
        let report = run(&chosen, &mut text);
        check(&chosen, &report);
        seen.add(&chosen, &report);
        if seed % 8 == 0 {
            let journal = text.finish().unwrap();
            let replayed = replay::replay(journal.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
            assert!(replayed.complete);
        }
    }
    println!("{seeds} seeds: {seen:?}");
    if seeds >= 1000 {
        assert!(seen.is_hard(), "{seen:?}");
        let missing = [
            missing(workload::LIST, &seen),
            missing(device::LIST, &seen),
            missing(scheduler::LIST, &seen),
        ];
        assert_eq!(missing.concat(), [""; 0], "in a list and not drawn");
    }
}
