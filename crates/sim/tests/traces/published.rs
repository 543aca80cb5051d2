//! Published traces: read completely, with the totals known of them, and counted as others did.
//!
//! The traces themselves belong to others and are not in the repository. They are looked for in
//! `shared/traces` beside it, or where `FORERUN_TRACES` says; where they are missing, each test
//! is skipped. `tests/data/golden_lru_opt.csv` has misses of LRU and of optimal
//! demand fetching that two independent programs agree on. The same code runs over generated
//! inputs in `formats.rs`, without any of this.

use std::path::{Path, PathBuf};

use forerun_core::{Bytes, Nanos};
use forerun_sim::count::optimum::Uses;
use forerun_sim::count::{Numbering, Recency};
use forerun_sim::trace::{Format, Label, Op, Options, Place, Record, Summary, open};

use crate::skipped::skipped;

/// The folder of traces, if there is one.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "a test says where it looked")]
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("FORERUN_TRACES").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(format_args!(
        "no traces in {} (FORERUN_TRACES)",
        folder.display()
    ));
    None
}

fn records(folder: &Path, path: &str, format: &str) -> Vec<Record> {
    let format = Format::named(format).unwrap();
    let trace = open(&folder.join(path), Some(format), &Options::default()).unwrap();
    trace.map(|record| record.unwrap()).collect()
}

fn summary(records: &[Record]) -> Summary {
    Summary::of(
        records.iter().map(|r| Ok::<_, ()>(*r)),
        512,
        Bytes(u64::MAX),
    )
    .unwrap()
}

fn ids(folder: &Path, name: &str) -> Vec<u64> {
    let records = records(folder, &format!("lirs/{name}.trace.gz"), "lirs");
    records.iter().map(|r| *r.blocks(1).start()).collect()
}

fn lru_misses(ids: &[u64], capacity: usize) -> (u64, usize) {
    let (mut numbering, mut lru) = (Numbering::default(), Recency::new(capacity));
    let numbers = ids.iter().map(|id| numbering.number(*id).unwrap());
    let misses = numbers.filter(|block| !lru.touch(*block)).count();
    (misses as u64, numbering.len())
}

#[test]
fn counts_equal_the_golden_ones_in_every_row() {
    let Some(folder) = folder() else { return };
    let golden = include_str!("../data/golden_lru_opt.csv");
    let mut rows = 0;
    let mut loaded = (String::new(), Vec::new(), Uses::default());
    for row in golden.lines().skip(1) {
        let (name, numbers) = row.split_once(',').unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
        let [requests, distinct, capacity, lru, optimal] = numbers[..] else {
            panic!("{row}");
        };
        if loaded.0 != name {
            let ids = ids(&folder, name);
            let uses = Uses::of_ids(ids.iter().copied());
            loaded = (name.to_owned(), ids, uses);
        }
        let (_, ids, uses) = &loaded;
        assert_eq!(ids.len() as u64, requests, "{row}");
        let (misses, blocks) = lru_misses(ids, capacity as usize);
        assert_eq!((misses, blocks as u64), (lru, distinct), "{row}");
        assert_eq!(uses.misses(capacity), optimal, "{row}");
        rows += 1;
    }
    assert_eq!(rows, golden.lines().count() - 1);
    assert!(rows >= 36, "{rows} rows");
}

#[test]
fn loop_and_cs_have_closed_forms() {
    let Some(folder) = folder() else { return };
    let uses = Uses::of_ids(ids(&folder, "loop"));
    for k in [2u64, 100, 511, 1000] {
        // 505,500 references to 1011 blocks: see the closed form in `count.rs`.
        let (rounds, rest) = ((505_500 - 1011) / 1010, (505_500 - 1011) % 1010);
        let wanted = 1011 + rounds * (1011 - k) + u64::saturating_sub(rest, k - 1);
        assert_eq!(uses.misses(k), wanted, "loop, {k}");
    }
    // cs reads its files five times in one order, with some blocks twice in a row: 6657 references
    // are not to one of the last few blocks, and every block of cache saves one in each of the
    // four later rounds.
    let ids = ids(&folder, "cs");
    let uses = Uses::of_ids(ids.iter().copied());
    for k in [128u64, 200, 777, 1280] {
        assert_eq!(lru_misses(&ids, k as usize).0, 6657, "cs, {k}");
        assert_eq!(uses.misses(k), 6657 - 4 * k, "cs, {k}");
    }
}

#[test]
fn measured_requests_of_a_real_drive_are_all_there() {
    let Some(folder) = folder() else { return };
    let records = records(&folder, "disksim/hp_c2247a.trace.zst", "disksim-validate");
    let found = summary(&records);
    assert_eq!(
        (found.requests, found.reads, found.writes),
        (9999, 5115, 4884)
    );
    assert_eq!(found.answered, 9999);
    // The published mean is 15.298 ms.
    assert_eq!(found.response_ns / found.answered / 1000, 15_298);
    let labelled = |label| records.iter().filter(|r| r.label == Some(label)).count();
    let counts = Label::NAMES.map(|(label, _)| labelled(label));
    assert_eq!(counts, [1559, 3556, 3224, 1660]);
    assert_eq!(records[1].arrival, Some(Nanos(27_971_640)));
}

#[test]
fn request_streams_are_all_there() {
    let Some(folder) = folder() else { return };
    for (path, requests, last_ns) in [
        ("disksim/rand8k.trace", 10_000, 1_999_800_000_000),
        ("disksim/seq8k_gap20.trace", 3000, 59_980_000_000),
        ("disksim/seq8k_gap50.trace", 3000, 149_950_000_000),
    ] {
        let found = summary(&records(&folder, path, "disksim"));
        assert_eq!(
            (found.requests, found.reads),
            (requests, requests),
            "{path}"
        );
        assert_eq!((found.first_ns, found.last_ns), (0, last_ns), "{path}");
        assert_eq!(found.bytes, requests * 8192, "{path}");
        let is_sequential = found.sequential == requests - 1;
        assert_eq!(is_sequential, path.contains("seq"), "{path}");
    }
    // Whole nanoseconds; the first one's README counts line ends and misses the last line.
    for (path, requests, reads, sectors) in [
        (
            "timed/Financial1-first9999.ascii.zst",
            10_000,
            4077,
            107_967,
        ),
        ("timed/tpcc-small.trace.zst", 6999, 4381, 116_638),
        ("timed/wsrch-small.trace.zst", 24_783, 24_779, 746_324),
    ] {
        let found = summary(&records(&folder, path, "disksim"));
        assert_eq!((found.requests, found.reads), (requests, reads), "{path}");
        assert_eq!(
            (found.bytes, found.timed),
            (sectors * 512, requests),
            "{path}"
        );
    }
}

#[test]
fn two_hours_of_a_virtual_disk_are_all_there() {
    let Some(folder) = folder() else { return };
    let records = records(&folder, "timed/cloudPhysicsIO.vscsi.zst", "vscsi");
    let found = summary(&records);
    assert_eq!((found.requests, found.reads), (113_872, 46_974));
    assert_eq!((found.bytes, found.most_bytes), (4_205_978_112, 69_632));
    assert_eq!(
        found.duration_ns(),
        (5_641_098_458_687 - 5_633_898_368_802) * 1000
    );
    assert_eq!((records[0].op, records[0].bytes), (Op::Write, 512));
    assert_eq!(records[0].place, Place::Byte(42_932_745 * 512));
}

#[test]
fn every_published_trace_is_guessed() {
    let Some(folder) = folder() else { return };
    for (path, name) in [
        ("lirs/sprite.trace.gz", "lirs"),
        ("disksim/hp_c2247a.trace.zst", "disksim-validate"),
        ("disksim/rand8k.trace", "disksim"),
        ("timed/wsrch-small.trace.zst", "disksim"),
        ("timed/cloudPhysicsIO.vscsi.zst", "vscsi"),
    ] {
        let trace = open(&folder.join(path), None, &Options::default()).unwrap();
        assert_eq!(trace.format().name, name, "{path}");
    }
}
