//! Shared by the tests: short ways to a run, and to the windows in its journal.

use forerun_baselines::METHODS;
use forerun_core::journal::Entry;
use forerun_core::spec::Choice;
use forerun_core::{Block, Bytes, Input, Output, Settings, units::Extent};
use forerun_sim::{Record, Report, Scene, device, workload};

/// The disk of the numbers: 8 ms, 80 MB/s.
pub(crate) const DISK: &str = "switching";

/// Memory where nothing is said of it.
pub(crate) const MEMORY: u64 = 256 << 20;

/// Presets that read ahead in windows that grow.
pub(crate) const RAMPING: [&str; 3] = ["linux-2.6.24", "cp", "forerun"];

/// Small workloads of every kind, for tests that run them all many times.
pub(crate) const SMALL: [&str; 10] = [
    "sequential(file_bytes=3000000)",
    "sequential(file_bytes=300001,read_bytes=1000)",
    "interleaved(file_bytes=4000000,read_bytes=20000,streams=7,random_order=1)",
    "many-readers(file_bytes=1500000,readers=5,think_ns=300000)",
    "many-readers(file_bytes=3000000,readers=4,shared=1)",
    "strided(file_bytes=6000000)",
    "strided(file_bytes=3000000,stride_bytes=16384,backward=1)",
    "random(file_bytes=9000000,reads=300)",
    "reordered(file_bytes=4000000)",
    "retried(file_bytes=2000000)",
];

pub(crate) fn settings(name: &str, memory: u64) -> Settings {
    forerun_baselines::preset(name)
        .unwrap()
        .settings(Bytes(memory))
        .unwrap()
}

pub(crate) fn run_into(
    settings: Settings,
    device: &str,
    workload: &str,
    record: &mut dyn Record,
) -> Report {
    let built = workload::parse(workload).unwrap();
    let scene = Scene::new(settings, device::parse(device).unwrap(), &*built);
    scene
        .run(record)
        .unwrap_or_else(|e| panic!("{device} {workload}: {e}"))
}

pub(crate) fn run(preset: &str, device: &str, workload: &str) -> Report {
    run_into(settings(preset, MEMORY), device, workload, &mut ())
}

pub(crate) fn journal(preset: &str, device: &str, workload: &str) -> (Report, Vec<Entry>) {
    let mut entries = Vec::new();
    let report = run_into(settings(preset, MEMORY), device, workload, &mut entries);
    (report, entries)
}

/// The same with fetches handed over as they come.
pub(crate) fn journal_in_order(preset: &str, device: &str, workload: &str) -> (Report, Vec<Entry>) {
    let mut entries = Vec::new();
    let mut settings = settings(preset, MEMORY);
    settings.dispatch = Choice::parse("dispatch", METHODS.dispatch, "fifo").unwrap();
    settings.measure = Choice::parse("measure", METHODS.measure, "given(at_once=1)").unwrap();
    let report = run_into(settings, device, workload, &mut entries);
    (report, entries)
}

/// A run of blocks fetched on one occasion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Issued {
    pub(crate) extent: Extent,
    /// The block a reader wanted when it was issued, if it was issued at a read.
    pub(crate) at: Option<Block>,
}

/// The fetches, occasion by occasion; fetches that continue each other are one.
pub(crate) fn issued(journal: &[Entry]) -> Vec<Issued> {
    let mut all: Vec<Issued> = Vec::new();
    let (mut at, mut is_new) = (None, true);
    for entry in journal {
        match entry {
            Entry::Input(_, input) => {
                at = match input {
                    Input::Read { access, .. } => Some(access.block),
                    _ => None,
                };
                is_new = true;
            }
            Entry::Output(Output::Fetch(fetch)) => {
                let extent = fetch.extent;
                match all.last_mut() {
                    Some(last) if !is_new && continues(&last.extent, &extent) => {
                        last.extent.count += extent.count;
                    }
                    _ => all.push(Issued { extent, at }),
                }
                is_new = false;
            }
            Entry::Output(_) => {}
        }
    }
    all
}

fn continues(before: &Extent, after: &Extent) -> bool {
    before.file == after.file && before.end() == u64::from(after.first.0)
}
