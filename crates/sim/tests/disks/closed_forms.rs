//! Consequences of a drive's figures, with generated requests: rotation, transfer, seeks,
//! sequential rates, the cache, and the profile.

use std::sync::Arc;

use forerun_core::{Bytes, Nanos};
use forerun_sim::device::hdd::{Access, Drawing, Drive};
use forerun_sim::device::scheduler;
use forerun_sim::device::{self, Device, Model, Request, model};
use forerun_sim::random::Random;
use forerun_sim::{conformance, profile};

/// A drive with nothing but rotation: 100 Hz, 100 sectors a track, no skew needed.
const ROTATION_ONLY: &str = "
kind = 'hdd'
rpm = 6000
tracks_per_cylinder = 2
head_switch_ms = 0
zone = [{ cylinders = 100, sectors_per_track = 100 }]
seek.curve = [{ from_cylinders = 1, base_ms = 0 }]
bus.read_bytes_per_second = 1_000_000_000_000
";

fn drawing(text: &str) -> Arc<Drawing> {
    match model::from_toml(text) {
        Ok(Model::Hdd(drawing)) => drawing,
        other => panic!("not a disk: {other:?}"),
    }
}

fn built_in(name: &str) -> Arc<Drawing> {
    match Model::built_in(name) {
        Some(Model::Hdd(drawing)) => drawing,
        other => panic!("not a disk: {other:?}"),
    }
}

fn disks() -> impl Iterator<Item = (&'static str, Arc<Drawing>)> {
    let disk = |name| match Model::built_in(name) {
        Some(Model::Hdd(drawing)) => Some((name, drawing)),
        _ => None,
    };
    model::BUILT_IN
        .iter()
        .filter_map(move |(name, _)| disk(*name))
}

fn read(lbn: u64, sectors: u64) -> Access {
    Access {
        lbn,
        sectors,
        is_write: false,
    }
}

#[track_caller]
fn near(found: f64, expected: f64, part: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= part, "{found} against {expected}");
}

#[test]
fn a_random_sector_waits_half_a_revolution_in_the_mean() {
    let drawing = drawing(ROTATION_ONLY);
    let mut drive = Drive::new(Arc::clone(&drawing));
    let mut random = Random::new(1);
    let (mut now, mut sum) = (Nanos(0), 0);
    for _ in 0..20_000 {
        let end = drive.serve(now, read(random.below(drawing.sectors()), 1));
        sum += end.since(now).0;
        now = Nanos(end.0 + random.below(50_000_000));
    }
    // Half a turn, and the sector itself: a hundredth.
    near(sum as f64 / 20_000.0, 5_000_000.0 + 100_000.0, 0.01);
}

#[test]
fn a_track_takes_a_revolution_and_a_sector_its_share() {
    let mut drive = Drive::new(drawing(ROTATION_ONLY));
    // From angle 0 at time 0; no skew, so the second track continues at once.
    assert_eq!(drive.serve(Nanos(0), read(0, 100)).0, 10_000_001);
    assert_eq!(drive.serve(Nanos(20_000_000), read(0, 300)).0, 50_000_001);
    // One that just missed its sector waits for it to come round.
    assert_eq!(drive.serve(Nanos(60_000_001), read(0, 1)).0, 70_100_001);
}

#[test]
fn seeks_take_what_the_published_formulas_say() {
    let formula = |name: &str, d: f64| match name {
        "hp97560" if d < 383.0 => 3.24 + 0.400 * d.sqrt(),
        "hp97560" => 8.00 + 0.008 * d,
        "hp_c2247a" if d < 300.0 => 3.81 + 0.33 * d.sqrt(),
        "hp_c2247a" => 7.75 + 0.0059 * d,
        _ => 2.0 + 0.01 * d + 0.46 * d.sqrt(),
    };
    for name in ["hp97560", "hp_c2247a", "ibm_lightning_0661"] {
        let drawing = built_in(name);
        assert_eq!(drawing.seek(0), Nanos(0));
        for d in [11, 50, 299, 300, 382, 383, 500, 900, 948] {
            let expected = formula(name, f64::from(d)) * 1e6;
            assert!(
                (drawing.seek(d).0 as f64 - expected).abs() <= 1.0,
                "{name} {d}"
            );
        }
    }
    let first = [2.89, 3.68, 3.81, 3.98, 4.27, 4.65, 4.52, 4.65, 4.82, 4.99];
    let drawing = built_in("hp_c2247a");
    for (d, ms) in (1..).zip(first) {
        assert!((drawing.seek(d).0 as f64 - ms * 1e6).abs() <= 1.0, "{d}");
    }
}

/// The mean seek between pairs of random sectors, in milliseconds.
fn mean_seek(drawing: &Drawing) -> f64 {
    let mut random = Random::new(8);
    let mut cylinder = || drawing.cylinder(random.below(drawing.sectors()));
    let pairs = 200_000;
    let sum: u64 = (0..pairs)
        .map(|_| drawing.seek(cylinder().abs_diff(cylinder())).0)
        .sum();
    sum as f64 / f64::from(pairs) / 1e6
}

#[test]
fn mean_seeks_are_the_figures() {
    for (name, expected, part) in [
        ("ibm_36gb_10k", 7.53, 0.005),
        ("seagate_146gb_10k", 4.7, 0.005),
        ("cheetah_15k_st373454", 3.5, 0.005),
        ("hitachi_t7k250_160", 8.5, 0.005),
        // Reported for the formula, not fitted to it.
        ("ibm_lightning_0661", 12.5, 0.02),
    ] {
        let found = mean_seek(&built_in(name));
        println!("{name}: mean seek {found:.3} ms, figure {expected}");
        near(found, expected, part);
    }
}

#[test]
fn capacities_are_the_figures() {
    assert_eq!(built_in("hp_c2247a").sectors(), 2_054_864);
    assert_eq!(built_in("hp97560").sectors(), 1962 * 19 * 72);
    for (name, gb) in [
        ("ibm_36gb_10k", 36.4),
        ("seagate_146gb_10k", 146.0),
        ("cheetah_15k_st373454", 73.4),
        ("hitachi_t7k250_160", 160.0),
    ] {
        near(built_in(name).capacity().0 as f64, gb * 1e9, 0.001);
    }
}

/// Bytes a second of a long read, less the time before its bytes.
fn rate_at(drawing: &Arc<Drawing>, lbn: u64) -> f64 {
    let sectors = (64 << 20) / drawing.sector_bytes();
    let time = |sectors| Drive::new(Arc::clone(drawing)).serve(Nanos(0), read(lbn, sectors));
    let longer = time(sectors).since(time(1)).0;
    ((sectors - 1) * drawing.sector_bytes()) as f64 / (longer as f64 / 1e9)
}

#[test]
fn sequential_rates_follow_from_sectors_and_skews_in_every_zone() {
    for (name, drawing) in disks() {
        let profile = drawing.profile().unwrap();
        for &(at, expected) in profile.rate_points() {
            let lbn = at.0 / drawing.sector_bytes();
            let long = 128 << 10;
            if lbn + long > drawing.sectors() {
                continue;
            }
            println!("{name}: {:.2} MB/s at {at}", expected as f64 / 1e6);
            // Slipped tracks, which the profile leaves out, cost the HP C2247A up to 2.5 %.
            near(rate_at(&drawing, lbn), expected as f64, 0.03);
        }
    }
}

#[test]
fn the_ibm_drive_has_the_means_of_its_paper() {
    let drawing = built_in("ibm_36gb_10k");
    assert_eq!(drawing.revolution(), Nanos(6_000_000));
    let mut random = Random::new(3);
    let room = drawing.sectors() - (128 << 10);
    let rates: Vec<f64> = (0..200)
        .map(|_| rate_at(&drawing, random.below(room)))
        .collect();
    let mean = rates.iter().sum::<f64>() / 200.0 / 1e6;
    println!("mean rate {mean:.2} MB/s, paper 51.3");
    near(mean, 51.3, 0.01);
    // C1: switching cost times rate, over pairs of random locations.
    let profile = drawing.profile().unwrap();
    let mut depth = 0.0;
    for _ in 0..20_000 {
        let [from, to] = [0; 2].map(|_| random.below(drawing.capacity().0));
        let distance = Bytes(from.abs_diff(to));
        depth += profile.competitive_depth(distance, Bytes(to)).0 as f64 / 20_000.0;
    }
    println!(
        "mean competitive depth {:.1} KB, paper about 540",
        depth / 1e3
    );
    near(depth, 540_000.0, 0.02);
}

#[test]
fn the_ibm_drive_reaches_the_estimated_optimal_throughputs() {
    // C2: whole streams, each read by one request, at random locations.
    let mut random = Random::new(5);
    for (least, most, expected) in [
        (4 << 20, 4 << 20, 45.3),
        (64 << 10, 4 << 20, 40.5),
        (64 << 10, 64 << 10, 5.5),
    ] {
        let mut device = device::parse("ibm_36gb_10k").unwrap();
        let room = device.capacity().unwrap().0 - (8 << 20);
        let (mut now, mut total, mut done) = (Nanos(0), 0, Vec::new());
        for id in 0..4_000 {
            let bytes = Bytes(random.between(least, most) / 4096 * 4096);
            let at = Bytes(random.below(room) / 4096 * 4096);
            device.submit(now, Request::new(id, at, bytes));
            now = device.next_event().unwrap();
            device.advance(now, &mut done);
            total += bytes.0;
        }
        let found = total as f64 / (now.0 as f64 / 1e3);
        println!("streams of {least} to {most}: {found:.2} MB/s, paper {expected}");
        near(found, expected, 0.04);
    }
}

#[test]
fn what_was_read_on_costs_overhead_and_bus() {
    let mut drive = Drive::new(built_in("hp97560"));
    let end = drive.serve(Nanos(0), read(1000, 16));
    // The whole readahead of 256 sectors passes in four turns and three switches.
    let later = Nanos(end.0 + 200_000_000);
    for (lbn, sectors) in [(1016, 16), (1032, 1), (1100, 100)] {
        let time = drive.serve(later, read(lbn, sectors)).since(later).0;
        let expected = 2_200_000 + sectors * 512 * 100;
        assert_eq!(time, expected, "{lbn}");
    }
}

#[test]
fn a_write_throws_out_what_was_cached_and_settles() {
    let mut drive = Drive::new(built_in("hp_c2247a"));
    let mut now = drive.serve(Nanos(0), read(1000, 16));
    let hit = drive.serve(now, read(1000, 16)).since(now).0;
    now.0 += 1_000_000_000;
    let write = Access {
        lbn: 1008,
        sectors: 1,
        is_write: true,
    };
    now = drive.serve(now, write);
    let miss = drive.serve(now, read(1000, 16)).since(now).0;
    assert!(hit < 5_000_000 && miss > hit, "{hit} {miss}");
}

#[test]
fn profiles_from_parameters_are_what_measuring_finds() {
    for name in [
        "hp97560",
        "hp_c2247a",
        "ibm_36gb_10k",
        "cheetah_15k_st373454",
        "hitachi_t7k250_160",
        "switching",
        "ssd",
        "object_store_region",
        "array(disks=4,strip_bytes=65536):ibm_36gb_10k",
    ] {
        let device = device::parse(name).unwrap();
        let stated = device.profile();
        let found = profile::measure(&|| device::parse(name).unwrap());
        let capacity = device.capacity().map_or(64 << 30, |end| end.0);
        for part in 1..4 {
            let at = Bytes(capacity / 4 * part);
            let (rate, cost) = (found.rate(at) as f64, found.switching(at).0 as f64);
            println!(
                "{name}: {:.1} MB/s, {:.2} ms at {at}",
                rate / 1e6,
                cost / 1e6
            );
            near(rate, stated.rate(at) as f64, 0.06);
            // A small read meets one arm of an array, which need not be where the last read was.
            if !name.starts_with("array") {
                near(cost, stated.switching(at).0 as f64, 0.10);
            }
        }
    }
}

#[test]
fn the_example_of_the_manual_is_a_disk() {
    let manual = include_str!("../../../../docs/DEVICES.md");
    let example = manual.split("```toml").nth(1).unwrap();
    let drawing = drawing(example.split("```").next().unwrap());
    near(drawing.capacity().0 as f64, 160e9, 0.001);
}

#[test]
fn what_stands_around_devices_conforms_too() {
    let devices = ["hp97560", "hp_c2247a", "ssd", "object_store", "switching"];
    let around = |scheduler: &str| devices.map(|device| format!("{scheduler}:{device}"));
    let mut names: Vec<String> = scheduler::LIST
        .iter()
        .flat_map(|method| around(method.spec.name))
        .collect();
    names.extend(around("cscan(to_edge=1)"));
    names.extend(around("array(disks=3,strip_bytes=65536)"));
    names.push("array(disks=2):cscan:hp97560".into());
    names.push("array(disks=2):array(disks=2):ssd".into());
    for name in names {
        for seed in 0..10 {
            let result = conformance::device(&|| device::parse(&name).unwrap(), seed);
            assert_eq!(result, Ok(()), "{name} seed {seed}");
        }
    }
}

#[test]
fn sweeping_beats_the_order_of_arrival() {
    let time = |scheduler: &str| {
        let mut device = device::parse(&format!("{scheduler}:hp97560")).unwrap();
        let mut random = Random::new(2);
        let room = device.capacity().unwrap().0 / 8192;
        for id in 0..200 {
            let (at, bytes) = (Bytes(random.below(room) * 8192), Bytes(8192));
            device.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        device.advance(Nanos(u64::MAX), &mut done);
        assert_eq!(done.len(), 200);
        done[199].at
    };
    let [fcfs, sstf, scan, cscan, look] = ["fcfs", "sstf", "scan", "cscan", "look"].map(time);
    println!("fcfs {fcfs} sstf {sstf} scan {scan} cscan {cscan} look {look}");
    assert!(look < fcfs && sstf < fcfs && cscan < fcfs);
    assert!(look <= scan, "the way to the edge is not free");
}

#[test]
fn no_request_at_no_time_makes_a_disk_panic() {
    let mut random = Random::new(11);
    for (_, drawing) in disks() {
        let mut drive = Drive::new(drawing);
        let mut now = Nanos(0);
        for _ in 0..3_000 {
            let access = Access {
                lbn: random.magnitude(63),
                sectors: random.magnitude(20),
                is_write: random.chance(300),
            };
            let end = drive.serve(now, access);
            assert!(end >= now);
            now = Nanos(end.0.saturating_add(random.magnitude(61)));
        }
    }
}

/// Every number of every built-in file replaced by ones that make no sense, one at a time.
#[test]
fn no_model_makes_its_reader_or_its_device_panic() {
    let strange = [
        "0",
        "-1",
        "1",
        "0.5",
        "1e-300",
        "255",
        "65536",
        "1e9",
        "1e308",
        "nan",
        "inf",
        "'7'",
        "18446744073709551615",
        "9223372036854775807",
        "[]",
        "true",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for (_, text) in model::BUILT_IN {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.split('#').next().unwrap_or_default();
            let numbers = code.char_indices().filter(|&(i, c)| {
                let before = code[..i].chars().next_back();
                c.is_ascii_digit() && before.is_some_and(|b| b == ' ' || b == '[')
            });
            for (start, _) in numbers {
                let rest = &code[start..];
                let end = rest
                    .find([' ', ',', ']', '}'])
                    .map_or(code.len(), |n| start + n);
                for value in strange {
                    let changed = format!("{}{value}{}", &code[..start], &code[end..]);
                    let mut all = lines.clone();
                    all[at] = &changed;
                    match model::from_toml(&all.join("\n")) {
                        Ok(model) => {
                            accepted += 1;
                            let result = conformance::device(&|| model.build(), 1);
                            assert_eq!(result, Ok(()), "{changed}");
                        }
                        Err(error) => {
                            refused += 1;
                            assert!(!error.to_string().is_empty());
                        }
                    }
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 100 && refused > 1_000);
}
