//! How much memory a simulation takes: `cargo run --release -p forerun-sim --example memory`.
//!
//! Runs each preset in a process of its own and asks the kernel for the most that was resident
//! (`VmHWM`), at two numbers of different blocks with equally many references, and at two numbers
//! of references over equally many blocks:
//!
//! ```text
//! bytes a distinct block   (most blocks - few blocks) / difference      the trace's length is equal
//! bytes a reference        (long - short) / difference                  the blocks are equal
//! ```
//!
//! A distinct block must take less than 64 bytes beyond the trace; exit code 1 if one does not. A
//! reference takes nothing where the trace is a stream.

use std::process::{Command, ExitCode};

use forerun_baselines::METHODS;
use forerun_core::{Bytes, Nanos};
use forerun_sim::device::Device;
use forerun_sim::device::instant::Instant;
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::host::Host;
use forerun_sim::simulate::pacing::Pacing;
use forerun_sim::simulate::placing::{Layout, Placing};
use forerun_sim::simulate::recorded::{Recorded, Room};
use forerun_sim::simulate::requests::{Manner, Records, Source};
use forerun_sim::simulate::streamed::{References, Streamed};
use forerun_sim::simulate::{PAGE_BYTES, bound, engine, hinted, lru};
use forerun_sim::trace::{Record, TraceError};

/// Memory of a distinct block beyond the trace, at most.
const BYTES_MAX: f64 = 64.0;

/// Few blocks, and many: just past a power of two, where tables that double are emptiest.
const FEW: u64 = 20_000;
const MANY: u64 = (1 << 21) + 20_000;
const SHORT: u64 = MANY;
const LONG: u64 = 2 * MANY;

const BLOCK: u32 = 8192;
/// Few frames, so that all loops miss alike: the memory of a plan for each fetch does not depend on
/// the number of different blocks.
const CACHE: u32 = 1_000;

const PRESETS: [&str; 9] = [
    "demand-lru",
    "demand-opt",
    "fixed-horizon",
    "aggressive",
    "reverse-aggressive",
    "forestall",
    "forerun",
    "linux-2.6.24",
    "none",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [preset, references, blocks] => {
            let numbers = [references, blocks].map(|text| text.parse().unwrap_or(0));
            let done = simulate(preset, numbers[0], numbers[1]);
            report(&format!("{}", done.and_then(|()| peak_kib()).unwrap_or(0)));
            ExitCode::SUCCESS
        }
        _ => all(),
    }
}

fn all() -> ExitCode {
    let mut is_met = true;
    report("preset               MiB at most  bytes a distinct block  bytes a reference");
    for preset in PRESETS {
        let peak = |references, blocks| measured(preset, references, blocks).unwrap_or(f64::NAN);
        let (few, many, long) = (peak(SHORT, FEW), peak(SHORT, MANY), peak(LONG, FEW));
        let block = (many - few) / (MANY - FEW) as f64;
        let reference = (long - few) / (LONG - SHORT) as f64;
        is_met &= block < BYTES_MAX;
        let mib = many / f64::from(1 << 20);
        report(&format!(
            "{preset:20} {mib:11.0}  {block:22.1}  {reference:17.1}"
        ));
    }
    if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The bytes that a process of its own took at most.
fn measured(preset: &str, references: u64, blocks: u64) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let arguments = [
        preset.to_owned(),
        references.to_string(),
        blocks.to_string(),
    ];
    let output = Command::new(program).args(arguments).output().ok()?;
    let kib: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    (kib > 0.0).then_some(kib * 1024.0)
}

/// Peak memory of this process by the kernel's account, in KiB.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Loops over so many blocks that lie apart, so that nothing is prefetched for nothing.
fn source(references: u64, blocks: u64) -> Source {
    let open = move || -> Result<Records<'static>, TraceError> {
        let record = move |at: u64| {
            let address = at % blocks.max(1) * 7 * u64::from(BLOCK);
            let range = Record::range(address, BLOCK);
            Ok((None, range.unwrap_or(Record::block(at))))
        };
        Ok(Box::new((0..references).map(record)))
    };
    let manner = Manner {
        block_bytes: BLOCK,
        with_writes: false,
        think: Some(Nanos(1_000_000)),
    };
    let open = Box::new(open);
    Source { open, manner }
}

/// One preset as `forerun simulate` runs it, its bound included.
fn simulate(preset: &str, references: u64, blocks: u64) -> Option<()> {
    let source = source(references, blocks);
    let engine_preset = forerun_baselines::preset(preset).ok();
    let is_streamed = preset == "demand-lru" || engine_preset.is_some();
    let kept = (!is_streamed).then_some(Room::ENDLESS);
    let mut recorded = Recorded::of(source.requests().ok()?, kept).ok()?;
    if kept.is_some() {
        recorded.forget_lookup();
    }
    let placing = Placing::new(&recorded, Some(1), Layout::default(), BLOCK);
    let devices = || vec![Box::new(Instant::default()) as Box<dyn Device>];
    let host = Host {
        block_bytes: Bytes(BLOCK.into()),
        ..Host::default()
    };
    if let Some(preset) = engine_preset {
        let memory = Bytes(u64::from(CACHE) * u64::from(BLOCK));
        let mut settings = preset.settings(memory).ok()?;
        settings.block_bytes = PAGE_BYTES;
        let streamed = Streamed::new(&source, &recorded, &placing, Pacing::default());
        let outcome = engine(settings, host.driver, &streamed, None, devices()).ok()?;
        let least = bound::least_of(&devices(), &streamed.needs());
        let bound = bound::by_extent(outcome.compute_longest, least, 1);
        return (bound.least > 0).then_some(());
    }
    let bound = bound::by_block(&recorded, &placing, CACHE, &host, 0, &devices());
    if bound.least == 0 {
        return None;
    }
    if is_streamed {
        let references = References::new(&source, &recorded).ok()?;
        let place = |block| placing.place(block);
        lru::run(&host, CACHE, devices(), place, references).ok()?;
    } else {
        let reads = recorded.reads(Some(1), Layout::default(), BLOCK);
        let setup = Setup::of(preset, 1, CACHE, &METHODS).ok()?;
        hinted(&setup, &host, &reads, devices()).ok()?;
    }
    Some(())
}

#[expect(clippy::print_stdout, reason = "the program's output")]
fn report(line: &str) {
    println!("{line}");
}
