//! Parity: one workload through both drivers gives the same journal, line for line.
//!
//! The simulated world runs it on a device that answers at once; the real-time driver runs it on
//! generated content, which arrives at once too, one read at a time on one thread. Times are left
//! out: nothing is decided by them, but by forestall, which is told F, and by coldest, which is
//! left out. Concurrent runs are covered by replaying their journals (`cli/journal.rs` and the
//! bench tests).

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use forerun_baselines::{METHODS, PRESETS};
use forerun_core::preset::{self, Preset};
use forerun_core::{Bytes, Ledger, Nanos, Profile, Settings};
use forerun_io::{BackendChoice, Clock, Config, Driver, Reader};
use forerun_sim::announce::Announced;
use forerun_sim::device::instant::Instant;
use forerun_sim::device::{Completion, Device, Request, Usage};
use forerun_sim::record::Text;
use forerun_sim::workload::{self, Step, Workload};
use forerun_sim::world::Scene;

/// Few enough bytes that every long workload must give blocks up.
const MEMORY: Bytes = Bytes(2 << 20);

const WORKLOADS: &[&str] = &[
    "sequential(file_bytes=6000000,read_bytes=65536)",
    "sequential(file_bytes=3000001,read_bytes=10000)",
    "interleaved(file_bytes=4000000)",
    "strided(file_bytes=40000000)",
    "random(file_bytes=8000000,reads=400)",
    "reordered(file_bytes=5000000)",
    "strided(file_bytes=40000000,backward=1)",
];

/// Answers at once and is taken for a disk of 8 ms and 80 MB/s, as the other side takes its own.
#[derive(Debug, Default)]
struct AtOnce(Instant);

impl Device for AtOnce {
    fn profile(&self) -> Profile {
        Profile::default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.0.submit(now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.0.advance(now, done);
    }

    fn usage(&self) -> Usage {
        self.0.usage()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn in_virtual_time(settings: Settings, workload: &dyn Workload) -> String {
    let mut text = Text::new(String::new());
    let mut scene = Scene::new(settings, AtOnce::default(), workload);
    // The other driver's clock has a time for each event.
    scene.joins_instants = false;
    let report = scene.run(&mut text).unwrap();
    text.finish().unwrap() + &given_up(&report.ledger)
}

/// A line for the blocks that were given up, of which a journal says nothing.
fn given_up(ledger: &Ledger) -> String {
    format!("evicted {}\n", ledger.evicted)
}

fn in_real_time(settings: Settings, workload: &dyn Workload) -> String {
    let lines = Lines::default();
    let journal: Option<Box<dyn Write + Send>> = Some(Box::new(lines.clone()));
    let config = {
        let mut config = Config::new(settings);
        config.backend = BackendChoice::named("memory").unwrap();
        config.lab.clock = Clock::Logical;
        config.journal = journal;
        config
    };
    let driver = Driver::new(config).unwrap();
    let files = workload.files();
    let open = |(reader, file): (usize, usize)| {
        let opened = driver
            .open_generated(1, file as u64, files[file].0)
            .unwrap();
        (opened, workload.steps(reader))
    };
    let mut readers: VecDeque<(Reader, _)> = workload
        .readers()
        .into_iter()
        .enumerate()
        .map(open)
        .collect();
    if workload.hints().next().is_some() {
        let hints = workload.hints();
        let order = hints.map(|h| (&readers[h.reader].0, h.offset.0, h.bytes.0));
        driver.hint(order).unwrap();
    }
    let mut buf = Vec::new();
    let mut read = |reader: &Reader, step: Step| {
        buf.resize(step.bytes.0 as usize, 0);
        reader.read_at(&mut buf, step.offset.0).unwrap();
    };
    for turn in workload.turns().into_iter().flatten() {
        let (reader, steps) = &mut readers[turn];
        steps.next().into_iter().for_each(|step| read(reader, step));
    }
    while let Some((reader, mut steps)) = readers.pop_front() {
        let Some(step) = steps.next() else { continue };
        read(&reader, step);
        readers.push_back((reader, steps));
    }
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    let journal = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    journal + &given_up(&ledger)
}

/// A journal line without its time.
fn timeless(line: &str) -> String {
    match line
        .strip_prefix("< ")
        .and_then(|rest| rest.split_once(' '))
    {
        Some((_, input)) => format!("< {input}"),
        None => line.to_string(),
    }
}

fn assert_equal(what: &str, sim: &str, io: &str) {
    let mut lines = sim
        .lines()
        .map(timeless)
        .zip(io.lines().map(timeless))
        .enumerate();
    if let Some((at, (sim, io))) = lines.find(|(_, (sim, io))| sim != io) {
        panic!("{what}, line {}:\n sim {sim}\n io  {io}", at + 1);
    }
    assert_eq!(sim.lines().count(), io.lines().count(), "{what}");
}

/// The decisions of a run over several files. The world announces all files before it opens any
/// and lays them closer together, so lines before the first hint are left out.
fn from_first_hint(journal: &str) -> &str {
    let at = journal
        .lines()
        .find(|line| line.contains(" hint "))
        .unwrap();
    &journal[journal.find(at).unwrap()..]
}

/// Forestall reckons with times, which the two drivers do not share, unless F is given.
#[test]
fn both_drivers_reach_the_same_decisions_with_hints() {
    for method in METHODS.hinted {
        let name = match method.spec.name {
            "forestall" => "forestall(fixed_f_refs=8)",
            name => name,
        };
        for (wrong_percent, missing_percent) in [(0, 0), (30, 30)] {
            let shuffled = "shuffled(file_bytes=3000000,files=3,passes=2)";
            let shuffled = workload::parse(shuffled).unwrap();
            let workload = Announced {
                workload: &*shuffled,
                wrong_percent,
                missing_percent,
                seed: 11,
            };
            let mut settings = preset::find("forerun").unwrap().settings(MEMORY).unwrap();
            settings.hinted = METHODS.hinted(name).unwrap();
            let sim = in_virtual_time(settings.clone(), &workload);
            let io = in_real_time(settings, &workload);
            let what = format!("{name}, {wrong_percent} % wrong");
            assert_equal(&what, from_first_hint(&sim), from_first_hint(&io));
            let is_ahead = !name.starts_with("demand") || wrong_percent > 0;
            assert!(!sim.ends_with("evicted 0\n"), "{what} must give blocks up");
            assert_eq!(sim.contains(" ahead"), is_ahead, "{what}");
        }
    }
}

/// Coldest ranks streams by the time of their use, which a device that answers at once stands still
/// for.
#[test]
fn both_drivers_reach_the_same_decisions_on_every_preset_and_workload() {
    let is_by_time = |preset: &&Preset| preset.reclaim.starts_with("coldest");
    for preset in PRESETS.iter().filter(|preset| !is_by_time(preset)) {
        for name in WORKLOADS {
            let workload = workload::parse(name).unwrap();
            let settings = preset.settings(MEMORY).unwrap();
            let sim = in_virtual_time(settings.clone(), &*workload);
            let io = in_real_time(settings, &*workload);
            assert_equal(&format!("{} {name}", preset.name), &sim, &io);
            assert!(
                !sim.ends_with("evicted 0\n"),
                "{} {name} must give blocks up",
                preset.name
            );
        }
    }
}
