//! Devices without a description: estimates from completed requests are as good as a profile.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Nanos, Profile, Settings};
use forerun_sim::device::{self, Device};
use forerun_sim::phased::Phased;
use forerun_sim::workload::{self, many_readers::ManyReaders};
use forerun_sim::{Report, Scene};

use crate::stage::settings;
use crate::unknown::table::nothing_of;

const SECOND: u64 = 1_000_000_000;
const MEMORY: u64 = 64 << 20;

fn readers(readers: usize, file_bytes: u64) -> ManyReaders {
    ManyReaders {
        file_bytes,
        read_bytes: 64 << 10,
        think_ns: 0,
        readers,
        shared: false,
    }
}

/// Larger blocks than usual, for shorter runs.
fn with_large_blocks() -> Settings {
    let mut settings = settings("forerun", MEMORY);
    settings.block_bytes = 32 << 10;
    settings
}

fn given(mut settings: Settings) -> Settings {
    settings.measure = Choice::parse("measure", METHODS.measure, "given").unwrap();
    settings
}

fn built(name: &str) -> Box<dyn Device> {
    device::parse(name).unwrap()
}

/// A run that knows this device.
fn knowing(device: &str, workload: &ManyReaders, until: u64) -> Report {
    let mut scene = Scene::new(given(with_large_blocks()), built(device), workload);
    scene.until = Some(Nanos(until));
    scene.run(&mut ()).unwrap()
}

/// A run that is told this of the device, and measures it.
fn measuring(device: Box<dyn Device>, told: Profile, workload: &ManyReaders, until: u64) -> Report {
    let mut scene = Scene::new(with_large_blocks(), device, workload);
    scene.told = Some(told);
    scene.until = Some(Nanos(until));
    scene.run(&mut ()).unwrap()
}

/// Slow, fast, far and striped devices.
const DEVICES: &[&str] = &[
    "switching(cost_ns=1000000,rate_bytes_per_second=300000000)",
    "switching(cost_ns=12000000,rate_bytes_per_second=220000000)",
    "switching(cost_ns=30000000,rate_bytes_per_second=100000000)",
    "hp97560",
    "hitachi_t7k250_160",
    "cheetah_15k_st373454",
    "array:hp97560",
    "object_store(first_byte_ns=30000000,stream_bytes_per_second=8000000,total_bytes_per_second=800000000)",
    "object_store(first_byte_ns=200000000,stream_bytes_per_second=8000000,total_bytes_per_second=800000000)",
];

/// The required rate of a run that measures, relative to one that knows. Requests of a modelled
/// store that go out together come back together, for ever; where few readers keep some ten of them
/// in flight, the times of the first ones decide how many wait for the same bytes in either run.
fn least(device: &str) -> f64 {
    match device.starts_with("object_store") {
        true => 0.7,
        false => 0.9,
    }
}

/// All requests of one reader of a store are as long as each other. Where 30 ms and 80 MB/s a stream were told and they
/// take 160 ms, the first byte or the rate may be why: it is 8 MB/s here, and shorter requests would be faster.
const ALIKE: f64 = 0.55;

/// The bytes that a run takes from a time on, as a part of those of another.
fn part(of: impl Fn(u64) -> Report, other: impl Fn(u64) -> Report, from: u64, to: u64) -> f64 {
    let bytes = |run: &dyn Fn(u64) -> Report| run(to).bytes.0 - run(from).bytes.0;
    bytes(&of) as f64 / bytes(&other) as f64
}

#[test]
fn a_device_that_nobody_described_is_used_as_one_that_was_after_two_seconds() {
    for name in DEVICES {
        for count in [1, 10, 64] {
            let capacity = built(name).capacity().map_or(1 << 42, |end| end.0);
            let file = (capacity / count as u64).min(1 << 34) / 4096 * 4096;
            let workload = readers(count, file);
            let of = |at| measuring(built(name), nothing_of(name), &workload, at);
            let part = part(
                of,
                |at| knowing(name, &workload, at),
                2 * SECOND,
                14 * SECOND,
            );
            println!("{name}, {count} readers: {part:.3}");
            let least = match count {
                1 if name.starts_with("object_store") => ALIKE,
                _ => least(name),
            };
            assert!(part > least, "{name}, {count} readers: {part:.3}");
        }
    }
}

#[test]
fn a_profile_wrong_by_a_hundred_either_way_is_corrected() {
    let name = "switching(cost_ns=8000000,rate_bytes_per_second=80000000)";
    for (cost, rate) in [
        (80_000, 8_000_000_000),
        (800_000_000, 800_000),
        (80_000, 800_000),
    ] {
        for servers in [1, 100] {
            let told = Profile::constant(Nanos(cost), rate).unwrap();
            let told = told.with_servers(servers).unwrap();
            let workload = readers(10, 1 << 30);
            let of = |at| measuring(built(name), told.clone(), &workload, at);
            let part = part(
                of,
                |at| knowing(name, &workload, at),
                4 * SECOND,
                12 * SECOND,
            );
            println!("told {cost} ns, {rate} bytes/s, {servers} servers: {part:.3}");
            assert!(part > 0.9, "{cost} {rate} {servers}: {part:.3}");
        }
    }
}

/// When a run has sent so many requests more than at a time.
fn requests_later(run: impl Fn(u64) -> Report, from: u64, requests: u64) -> u64 {
    let before = run(from).ledger.requests;
    let mut at = from;
    while run(at).ledger.requests < before + requests {
        at += SECOND / 10;
    }
    at
}

#[test]
fn a_device_that_changes_is_known_again_after_64_requests() {
    let disk = "switching(cost_ns=8000000,rate_bytes_per_second=80000000)";
    let slow = "switching(cost_ns=80000000,rate_bytes_per_second=8000000)";
    // As long as a neighbour takes half.
    let half = "switching(cost_ns=16000000,rate_bytes_per_second=40000000)";
    let far = "object_store(first_byte_ns=200000000,stream_bytes_per_second=8000000,total_bytes_per_second=20000000)";
    let near = "object_store(first_byte_ns=20000000,stream_bytes_per_second=80000000,total_bytes_per_second=200000000)";
    let steps = [
        (disk, slow),
        (slow, disk),
        (disk, half),
        (half, disk),
        (near, far),
        (far, near),
    ];
    for (before, after) in steps {
        // Requests of a modelled store that go out together come back together, so one number of readers is chance.
        let some: &[usize] = match after.starts_with("object_store") {
            true => &[8, 9, 10, 11, 12],
            false => &[10],
        };
        for counts in [&[1], some, &[64]] {
            let parts: Vec<f64> = counts
                .iter()
                .map(|count| known_again(before, after, *count))
                .collect();
            let part = parts.iter().sum::<f64>() / parts.len() as f64;
            println!("{before} -> {after}, {counts:?} readers: {part:.3} of {parts:.3?}");
            assert!(
                part > least(after),
                "{before} -> {after}, {counts:?}: {part:.3}"
            );
        }
    }
}

/// The bytes of the ten seconds that begin 64 requests after a change, as a part of those of a run that knows.
fn known_again(before: &str, after: &str, count: usize) -> f64 {
    let workload = readers(count, 1 << 32);
    let at = 10 * SECOND;
    let run = |until| {
        let later = vec![(Nanos(at), built(after))];
        let device = Box::new(Phased::new(built(before), later));
        measuring(device, nothing_of(before), &workload, until)
    };
    let from = requests_later(run, at, 64);
    let to = from + 10 * SECOND;
    let new = run(to).bytes.0 - run(from).bytes.0;
    let known = |until| knowing(after, &workload, until).bytes.0;
    new as f64 / (known(to) - known(from)) as f64
}

/// Bytes a second of so many readers, whose client has so many connections, from five to fifteen seconds after a store
/// has become this far, in milliseconds.
fn of_store(count: usize, connections: u32, told: u64, far: [u64; 2]) -> f64 {
    let store = |far: u64| built(&format!("object_store(first_byte_ns={far}000000)"));
    let at = 10 * SECOND;
    let run = |until| {
        let mut settings = settings("forerun", 256 << 20);
        settings.block_bytes = 32 << 10;
        let device = Phased::new(store(far[0]), vec![(Nanos(at), store(far[1]))]);
        let workload = readers(count, 1 << 40);
        let mut scene = Scene::new(settings, Box::new(device), &workload);
        let profile = Profile::constant(Nanos(told * 1_000_000), 80_000_000).unwrap();
        scene.told = Some(profile.with_servers(16).unwrap().with_most(connections));
        scene.until = Some(Nanos(until));
        scene.run(&mut ()).unwrap().bytes.0
    };
    (run(at + 15 * SECOND) - run(at + 5 * SECOND)) as f64 / 10.0
}

#[test]
fn a_store_is_used_whatever_was_told_of_it_and_soon_again_once_it_is_ten_times_as_far() {
    let many: &[usize] = &[64];
    for (counts, connections) in [(&[10, 11][..], 64), (many, 64), (many, 256)] {
        for far in [20, 200] {
            // Requests that go out together come back together, so one number of readers is chance.
            let all = |told, first| {
                let rates = counts.iter();
                let rates = rates.map(|count| of_store(*count, connections, told, [first, far]));
                rates.sum::<f64>() / counts.len() as f64
            };
            let known = all(far, far);
            let [unknown, later] = [far, far / 10 + 1].map(|first| all(30, first) / known);
            let case = format!(
                "{counts:?} readers, {connections} connections, {far} ms: {:.1} MB/s, {unknown:.3} unknown, \
                 {later:.3} from a tenth",
                known / 1e6,
            );
            println!("{case}");
            assert!(unknown > 0.8 && later > 0.8, "{case}");
        }
    }
}

/// Eight servers, all the time with more to do than they can: now and then one request has them
/// all.
#[test]
fn measuring_goes_on_at_a_fiftieth_of_the_throughput_at_most() {
    let name = "object_store(first_byte_ns=8000000,requests_in_flight=8)";
    let workload = readers(64, 1 << 32);
    let of = |at| measuring(built(name), nothing_of(name), &workload, at);
    let part = part(
        of,
        |at| knowing(name, &workload, at),
        10 * SECOND,
        40 * SECOND,
    );
    println!("{part:.3}");
    assert!(part > 0.98, "{part:.3}");
}

/// A store of which nothing is known but that it is a server, read by one program, whose reads are that long:
/// milliseconds until all is read. Without the assumption of eight workers it is 65, 177, 388 and 415; the last four are
/// reads of ten megabytes, which in parts of 4 MiB take 33, 83, 223 and 464.
#[test]
fn a_new_server_is_taken_for_eight_workers_until_they_are_counted() {
    for (first_byte, bytes, read_bytes, limit) in [
        (5, 10_000_000, 1 << 20, 55),
        (5, 100_000_000, 1 << 20, 165),
        (30, 100_000_000, 1 << 20, 270),
        (30, 100_000_000, 64 << 10, 290),
        (5, 10_000_000, 10_000_000, 19),
        (30, 10_000_000, 10_000_000, 44),
        (100, 10_000_000, 10_000_000, 114),
        (100, 100_000_000, 10_000_000, 456),
    ] {
        let workload = format!("sequential(file_bytes={bytes},read_bytes={read_bytes})");
        let workload = workload::parse(&workload).unwrap();
        let device = built(&format!("object_store(first_byte_ns={first_byte}000000)"));
        let mut scene = Scene::new(settings("forerun", 256 << 20), device, &*workload);
        let told = Profile::constant(Nanos(30_000_000), 80_000_000).unwrap();
        scene.told = Some(told.with_most(256));
        let report = scene.run(&mut ()).unwrap();
        let took = report.elapsed.0 / 1_000_000;
        let case = format!("{first_byte} ms, {bytes} in reads of {read_bytes}");
        assert!(took <= limit, "{case}: {took} ms");
        assert_eq!(report.ledger.wasted(), 0);
    }
}
