//! How fast simulations are on this machine: `cargo run --release -p forerun-sim --example speed`.
//!
//! Three figures, each against its limit, and an exit code of 1 if one misses it:
//!
//! ```text
//! LRU       references a second through demand-lru on `instant`, one thread
//! disk      requests a second through demand-lru on disks with arm, platter and scheduler
//! synth     seconds for every hinted method on the paper's loop, 1 to 16 disks, two threads
//! ```
//!
//! The first two are whole runs, from records on: numbering blocks, LRU, host, device; they count
//! the time in which the processor worked for them, in the best of some rounds. A program and no
//! test, because machines differ; `hdd_speed` has the disks alone.

use std::process::ExitCode;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use forerun_baselines::METHODS;
use forerun_core::{Bytes, Nanos};
use forerun_sim::device::Device;
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::host::Host;
use forerun_sim::hinted::synth;
use forerun_sim::random::Random;
use forerun_sim::scheduled::behind;
use forerun_sim::simulate::placing::{Layout, Placing};
use forerun_sim::simulate::recorded::Recorded;
use forerun_sim::simulate::requests::{Manner, Records, RequestsError, Source};
use forerun_sim::simulate::streamed::References;
use forerun_sim::simulate::{hinted, lru};
use forerun_sim::trace::{Record, TraceError};

/// The limit of each figure: at least so many reads and disk requests a second, at most so long.
const READS: f64 = 5e6;
const REQUESTS: f64 = 1e6;
const SECONDS: f64 = 20.0;

const BLOCK: u32 = 8192;
const CACHE: u32 = 20_000;
/// Rounds of the first two figures, each some tenths of a second.
const ROUNDS: u32 = 7;

fn main() -> ExitCode {
    let figures = [lru_reads(), disk_requests(), synth_seconds()];
    if figures.iter().all(|is_met| *is_met) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Random references, of which `hits` in a thousand go to blocks that fit the cache.
fn references(count: u64, hits: u64) -> Source {
    let open = move || -> Result<Records<'static>, TraceError> {
        let mut random = Random::new(1);
        let record = move |_| {
            let near = random.chance(hits);
            let block = match near {
                true => random.below(u64::from(CACHE) / 2),
                false => u64::from(CACHE) + random.below(100_000),
            };
            let range = Record::range(block * u64::from(BLOCK), BLOCK);
            Ok((None, range.unwrap_or(Record::block(block))))
        };
        Ok(Box::new((0..count).map(record)))
    };
    let manner = Manner {
        block_bytes: BLOCK,
        with_writes: false,
        think: None,
    };
    let open = Box::new(open);
    Source { open, manner }
}

/// The best of some rounds: a neighbour that takes caches and memory away is no figure of ours.
fn best(source: &Source, device: &str, scheduler: &str) -> (f64, f64) {
    let rounds = (0..ROUNDS).map(|_| run(source, device, scheduler).unwrap_or_default());
    rounds.fold((0.0, 0.0), |best, one| {
        (best.0.max(one.0), best.1.max(one.1))
    })
}

/// References a second of a run that keeps nothing, its reading for the first time included.
fn run(source: &Source, device: &str, scheduler: &str) -> Result<(f64, f64), RequestsError> {
    let start = worked();
    let recorded = Recorded::of(source.requests()?, None)?;
    let placing = Placing::new(&recorded, None, Layout::default(), BLOCK);
    let host = Host {
        driver: Nanos(0),
        block_bytes: Bytes(BLOCK.into()),
        ..Host::default()
    };
    let devices: Vec<Box<dyn Device>> = behind(device, scheduler).into_iter().collect();
    let references = References::new(source, &recorded)?;
    let place = |block| placing.place(block);
    let outcome = lru::run(&host, CACHE, devices, place, references)?;
    let seconds = worked().saturating_sub(start).as_secs_f64();
    Ok((
        outcome.reads as f64 / seconds,
        outcome.fetches as f64 / seconds,
    ))
}

fn lru_reads() -> bool {
    let mut is_met = true;
    for (hits, what) in [
        (1000, "all hits"),
        (900, "one miss in ten"),
        (0, "nearly all misses"),
    ] {
        let (reads, _) = best(&references(2_000_000, hits), "instant", "fcfs");
        is_met &= reads >= READS;
        report(&format!(
            "LRU on instant, {what}: {:.1} M reads/s (at least {:.0})",
            reads / 1e6,
            READS / 1e6
        ));
    }
    is_met
}

fn disk_requests() -> bool {
    let mut is_met = true;
    for device in ["hdd", "hp97560", "ibm_36gb_10k"] {
        let (_, requests) = best(&references(1_000_000, 0), device, "cscan");
        is_met &= requests >= REQUESTS;
        report(&format!(
            "disk-accurate, cscan:{device}: {:.2} M requests/s (at least {:.0})",
            requests / 1e6,
            REQUESTS / 1e6
        ));
    }
    is_met
}

/// Every hinted method on every number of disks, shared out over two threads.
fn synth_seconds() -> bool {
    let start = now();
    let disks = (1..=16u16).flat_map(|disks| METHODS.hinted.iter().map(move |m| (disks, m)));
    let left = Mutex::new(disks.collect::<Vec<_>>());
    let next = || left.lock().ok().and_then(|mut left| left.pop());
    let work = || {
        while let Some((disks, method)) = next() {
            let setup = Setup::of(method.spec.name, disks, synth::CACHE_BLOCKS, &METHODS);
            let reads = synth::synth(disks, 1);
            let devices = (0..disks).filter_map(|_| behind("hp97560", "cscan").ok());
            let run = setup.map(|s| hinted(&s, &Host::default(), &reads, devices.collect()));
            if !matches!(run, Ok(Ok(_))) {
                report(&format!("{} on {disks} disks failed", method.spec.name));
            }
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the figure is one of two threads"
    )]
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let seconds = start.elapsed().as_secs_f64();
    report(&format!(
        "synth, {} methods, 1 to 16 disks, two threads: {seconds:.1} s (at most {SECONDS:.0})",
        METHODS.hinted.len()
    ));
    seconds <= SECONDS
}

/// How long the processor worked for this thread, as others may want it too: Linux counts that in
/// nanoseconds, else it is the time of day.
fn worked() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanos = counted
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    static BEGAN: LazyLock<Instant> = LazyLock::new(now);
    nanos.map_or_else(|| BEGAN.elapsed(), Duration::from_nanos)
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures this machine, not the simulation"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "the program's output")]
fn report(line: &str) {
    println!("{line}");
}
