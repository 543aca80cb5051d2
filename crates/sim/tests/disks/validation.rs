//! Published request streams, response time by response time.
//!
//! HP C2247A: 9,999 requests to a real drive, each with its measured response time. Ours and the
//! measured times are sorted; the distance is the root of the mean square of their differences,
//! rank by rank, the "demerit figure" of Ruemmler and Wilkes in absolute time.

use std::path::{Path, PathBuf};

use forerun_core::{Bytes, Nanos};
use forerun_sim::device::{Device, Model, Request, model};
use forerun_sim::trace::{self, Label};
use forerun_sim::validate::{self, Compared, Measured, mean_ms};

use crate::skipped::skipped;

/// The folder of the DiskSim set, if it is on this machine.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, printed where it counts"
)]
fn traces() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FORERUN_TRACES").map_or(beside, PathBuf::from);
    let found = folder.join("disksim");
    if found.is_dir() {
        return Some(found);
    }
    skipped(format_args!("no {} (FORERUN_TRACES)", found.display()));
    None
}

fn built_in(name: &str) -> &'static str {
    let found = model::BUILT_IN.iter().find(|(known, _)| *known == name);
    found.unwrap().1
}

#[test]
fn the_hp_c2247a_responds_as_the_real_one() {
    let Some(folder) = traces() else { return };
    let Some(Model::Hdd(drawing)) = Model::built_in("hp_c2247a") else {
        panic!("hp_c2247a is no disk");
    };
    let file = folder.join("hp_c2247a.trace.zst");
    let records = || trace::open(&file, None, &trace::Options::default()).unwrap();
    let requests = validate::requests(records(), &drawing).unwrap();
    assert_eq!(requests.len(), 9_999);
    let simulated = validate::replay(&drawing, &requests);
    let labels: Vec<Option<Label>> = records().map(|record| record.unwrap().label).collect();
    for (label, name) in Label::NAMES {
        let part = requests.iter().zip(&simulated).zip(&labels);
        let part = part.filter(|(_, found)| **found == Some(label));
        let (ours, times): (Vec<Measured>, Vec<Nanos>) = part.map(|((r, t), _)| (*r, *t)).unzip();
        tell(name, &Compared::new(&ours, &times, |_| true));
    }
    let all = Compared::new(&requests, &simulated, |_| true);
    tell("all", &all);
    let pairs = requests.iter().zip(&simulated);
    let close = pairs.filter(|(one, time)| one.response.0.abs_diff(time.0) < 300_000);
    let close = close.count();
    println!("within 0.3 ms request by request: {close}");
    // Half more than the reference simulator's own 0.09.
    assert!(all.distance_ms() <= 0.135, "{} ms", all.distance_ms());
    // A distribution can be right by chance; request by request it cannot.
    assert!(close >= 9_000, "{close}");
}

fn tell(name: &str, compared: &Compared) {
    println!(
        "{name}: {} requests, mean {:.3} ms, measured {:.3}, distance {:.3}",
        compared.requests(),
        mean_ms(compared.modelled()),
        mean_ms(compared.measured()),
        compared.distance_ms()
    );
}

/// Mean response of a stream of `time_ms device lbn sectors flags`, open loop.
fn mean_response(device: &mut dyn Device, file: &Path) -> f64 {
    let text = std::fs::read_to_string(file).unwrap();
    let mut sum = 0.0;
    let mut count = 0.0;
    let mut done = Vec::new();
    for (id, line) in (0..).zip(text.lines()) {
        let words: Vec<f64> = line
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let now = Nanos((words[0] * 1e6).round() as u64);
        device.advance(now, &mut done);
        let (at, bytes) = (words[2] as u64 * 512, words[3] as u64 * 512);
        let request = Request::new(id, Bytes(at), Bytes(bytes));
        device.submit(now, request);
        let before = done.len();
        device.advance(Nanos(u64::MAX), &mut done);
        assert_eq!(done.len(), before + 1);
        sum += done[before].at.since(now).0 as f64 / 1e6;
        count += 1.0;
    }
    sum / count
}

/// The five reference streams: file, whether the drive's cache is on, mean in milliseconds.
const HP_97560: [(&str, bool, f64); 5] = [
    ("rand8k.trace", true, 26.70),
    ("seq8k_gap20.trace", true, 3.03),
    ("seq8k_gap50.trace", true, 3.03),
    ("seq8k_gap20.trace", false, 14.34),
    ("seq8k_gap50.trace", false, 13.55),
];

/// The largest relative difference from the reference over its five streams.
fn worst_of_hp_97560(folder: &Path, cached: &str) -> f64 {
    let bare = cached.replace("segments = 1", "segments = 0");
    let differences = HP_97560.map(|(file, has_cache, expected)| {
        let text = if has_cache { cached } else { &bare };
        let mut device = model::from_toml(text).unwrap().build();
        let found = mean_response(&mut *device, &folder.join(file));
        let off = found / expected - 1.0;
        println!(
            "{file}, cache {has_cache}: {found:.3} ms, reference {expected}, {:+.2} %",
            off * 100.0
        );
        off.abs()
    });
    differences.into_iter().fold(0.0, f64::max)
}

#[test]
fn the_hp_97560_takes_what_the_reference_takes() {
    let Some(folder) = traces() else { return };
    let worst = worst_of_hp_97560(&folder, built_in("hp97560_calibrated"));
    assert!(worst <= 0.02, "{worst}");
}

/// The reference evidently takes the published curve's long branch at every distance: so read,
/// and with nothing calibrated, the published figures give all five of its means.
#[test]
fn with_the_reference_s_seeks_its_means_come_out_without_calibration() {
    let Some(folder) = traces() else { return };
    let is_kept = |line: &&str| !line.contains("from_cylinders = 1,");
    let lines: Vec<&str> = built_in("hp97560").lines().filter(is_kept).collect();
    let text = lines
        .join("\n")
        .replace("from_cylinders = 383", "from_cylinders = 1");
    assert_eq!(text.matches("from_cylinders").count(), 1);
    let worst = worst_of_hp_97560(&folder, &text);
    assert!(worst <= 0.005, "{worst}");
}

/// Spare tracks of the zones of an HP C2249A, a C2247A with 17 heads in place of 13 and no defects.
const HP_C2249A_SPARES: [u32; 8] = [425, 170, 85, 102, 68, 136, 102, 85];

/// Responses of DiskSim below these times, in ms, of 100,000: its published output for the trace.
const ASCII_BELOW: [(u64, u64); 6] = [
    (5, 26_735),
    (10, 39_143),
    (20, 82_368),
    (40, 99_152),
    (60, 99_904),
    (90, 99_995),
];

/// The bus of DiskSim's example takes 0.05 ms a sector.
fn hp_c2249a() -> String {
    let mut spares = HP_C2249A_SPARES.iter();
    let line = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        match key {
            "tracks_per_cylinder" => "tracks_per_cylinder = 17".to_owned(),
            "spare_tracks" => format!("spare_tracks = {}", spares.next().unwrap()),
            "slipped_tracks" => String::new(),
            "read_bytes_per_second" | "write_bytes_per_second" => format!("{key} = 10_240_000"),
            _ => line.to_owned(),
        }
    };
    let lines: Vec<String> = built_in("hp_c2247a").lines().map(line).collect();
    lines.join("\n")
}

/// The example `ascii` of DiskSim: 100,000 requests to 18 disks at their recorded arrivals, the busiest disk at work for
/// 16 % of the time. Published: a mean response of 12.439 ms, of reads 11.681, of writes 15.390, and the distribution.
#[test]
fn at_recorded_arrivals_eighteen_disks_respond_as_disksims_do() {
    let Some(folder) = traces() else { return };
    let file = folder.join("ascii.trace.zst");
    if !file.is_file() {
        skipped(format_args!("no {} (FORERUN_TRACES)", file.display()));
        return;
    }
    let Model::Hdd(drawing) = model::from_toml(&hp_c2249a()).unwrap() else {
        panic!("no disk");
    };
    assert_eq!(drawing.capacity(), Bytes(2_687_632 * 512));
    let format = trace::format::parse("disksim").unwrap();
    let records = trace::open(&file, Some(format), &trace::Options::default()).unwrap();
    let arrived = validate::arrive(records, &drawing).unwrap();
    let of = |is_in: fn(bool) -> bool| {
        let times = arrived
            .responses
            .iter()
            .filter(|(writes, _)| is_in(*writes));
        mean_ms(&times.map(|(_, time)| *time).collect::<Vec<_>>())
    };
    for (name, ours, published) in [
        ("all", of(|_| true), 12.439),
        ("reads", of(|writes| !writes), 11.681),
        ("writes", of(|writes| writes), 15.390),
    ] {
        println!("{name}: {ours:.3} ms, DiskSim {published}");
        assert!((ours / published - 1.0).abs() < 0.005, "{name}: {ours}");
    }
    for (ms, published) in ASCII_BELOW {
        let is_below = |(_, time): &&(bool, Nanos)| time.0 < ms * 1_000_000;
        let ours = arrived.responses.iter().filter(is_below).count() as u64;
        println!("below {ms} ms: {ours}, DiskSim {published}");
        assert!(ours.abs_diff(published) < 500, "{ms}: {ours}");
    }
}
