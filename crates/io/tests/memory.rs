//! Memory outside the blocks: at most 0.4 % of what is managed, counted by the allocator.
//!
//! 256 MiB in 4 KiB blocks, filled by sequential, dense random and sparse random reads, with one order
//! for all blocks and with a prefetch cache apart. Every byte the engine, the driver and their threads allocate counts; the blocks themselves are a
//! mapping and do not. One test, because the allocator counts the whole process.
//!
//! One method takes more: the order of arrival of blocks that come one by one (`fifo`, random reads) is 12 bytes
//! for each of them, up to 0.47 % here. It is paid out of the memory, as all that the engine keeps.
//!
//! The table alone is 0.382 %. With threads that read, the number of requests under way varies from run to run and
//! with the machine's load, at most 256 at the device, of 200 bytes each and twice that while a queue grows: 0.387 to
//! 0.4003 % were seen.
//! An eviction history takes up to 0.402 %.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, preset};
use forerun_io::{BackendChoice, Config, Driver, generated};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: passes everything on to the system allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEMORY: u64 = 256 << 20;

/// The offsets of one pattern: how many, and the i-th.
struct Pattern {
    name: &'static str,
    file_bytes: u64,
    reads: u64,
    read_bytes: usize,
    offset: fn(u64) -> u64,
}

fn scattered(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).wrapping_mul(0xd134_2543_de82_ef95) >> 30
}

const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "sequential",
        file_bytes: 512 << 20,
        reads: (512 << 20) / (64 << 10),
        read_bytes: 64 << 10,
        offset: |i| i * (64 << 10),
    },
    Pattern {
        name: "dense random",
        file_bytes: 300 << 20,
        reads: 150_000,
        read_bytes: 4096,
        offset: |i| scattered(i) % (300 << 8) * 4096,
    },
    Pattern {
        name: "sparse random",
        file_bytes: 1 << 40,
        reads: 80_000,
        read_bytes: 4096,
        offset: |i| scattered(i) % (1 << 28) * 4096,
    },
];

/// A backend and a reclaim method. Orders by arrival and by streams, with CPU times and hints, and an eviction
/// history where the part moves.
const RUNS: [(&str, &str); 6] = [
    ("memory", "lru"),
    ("memory", "longest"),
    ("memory", "fifo(step_percent=2)"),
    ("memory", "coldest-cpu(step_percent=2)"),
    ("memory", "furthest(step_percent=2)"),
    ("pread", "lru"),
];

/// The most that was allocated while a pattern ran, and the engine's own count.
fn run(pattern: &Pattern, backend: &str, method: &str) -> (usize, Bytes) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let preset = preset::find("forerun").unwrap();
    let mut settings = preset.settings(Bytes(MEMORY)).unwrap();
    settings.reclaim = Choice::parse("reclaim", METHODS.reclaim, method).unwrap();
    // Memory measured as a device of a hundred gigabytes a second has windows of eighty mebibytes, and all
    // their requests at once: 0.6 % instead of 0.4 %.
    settings.measure = Choice::of(&forerun_baselines::measure::given::METHOD);
    let mut config = Config::new(settings);
    config.backend = BackendChoice::named(backend).unwrap();
    let driver = Driver::new(config).unwrap();
    let reader = driver.open_generated(1, 1, pattern.file_bytes).unwrap();
    let mut buf = vec![0; pattern.read_bytes];
    for i in 0..pattern.reads {
        let offset = (pattern.offset)(i);
        assert_eq!(reader.read_at(&mut buf, offset).unwrap(), buf.len());
        assert_eq!(generated::check(1, 1, offset, &buf[..64]), Ok(()));
    }
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    (
        PEAK.load(Ordering::Relaxed) - before - buf.len(),
        ledger.memory_peak,
    )
}

/// Requests that may be under way at once while threads read, in percent of the memory; the memory backend ends each
/// before the next.
fn threads_percent(backend: &str) -> f64 {
    const REQUESTS: f64 = 256.0;
    /// 200 were seen, twice that while a queue of them grows.
    const REQUEST_BYTES: f64 = 400.0;
    match backend {
        "memory" => 0.0,
        _ => REQUESTS * REQUEST_BYTES * 100.0 / MEMORY as f64,
    }
}

#[test]
fn bookkeeping_stays_below_four_per_mille_of_the_memory() {
    for pattern in PATTERNS {
        for (backend, method) in RUNS {
            let (allocated, peak) = run(pattern, backend, method);
            let percent = allocated as f64 * 100.0 / MEMORY as f64;
            println!(
                "{:13} {backend:6} {method:27} {allocated} bytes, {percent:.4} %, peak {peak} of {MEMORY}",
                pattern.name
            );
            // The ring of arrivals grows by quarters. An eviction history comes to a little more than the others.
            let most = match method.split_once('(') {
                Some(("fifo", _)) if pattern.name != "sequential" => 0.5,
                Some(_) => 0.41,
                None => 0.4,
            } + threads_percent(backend);
            assert!(percent <= most, "{} {method}: {percent:.4} %", pattern.name);
            assert!(
                peak.0 <= MEMORY && peak.0 > MEMORY * 98 / 100,
                "{}: {peak}",
                pattern.name
            );
        }
    }
}
