//! Parity: one workload through both drivers gives the same journal, line for line.
//!
//! The simulated world runs it on a device that answers at once; the real-time driver runs it on
//! generated content, which arrives at once too, one read at a time on one thread. Times are left
//! out: nothing is decided by them. What concurrency adds is covered by replaying journals of
//! concurrent runs (`cli/journal.rs` and the bench tests).

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};

use forerun_core::{Bytes, Nanos, Profile, Settings, preset};
use forerun_io::{BackendChoice, Clock, Config, Driver, Reader};
use forerun_sim::device::instant::Instant;
use forerun_sim::device::{Completion, Device, Request, Usage};
use forerun_sim::record::Text;
use forerun_sim::workload::{self, Workload};
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
    Scene::new(settings, AtOnce::default(), workload)
        .run(&mut text)
        .unwrap();
    text.finish().unwrap()
}

fn in_real_time(settings: Settings, workload: &dyn Workload) -> String {
    let lines = Lines::default();
    let journal: Option<Box<dyn Write + Send>> = Some(Box::new(lines.clone()));
    let config = Config {
        backend: BackendChoice::named("memory").unwrap(),
        clock: Clock::Logical,
        journal,
        ..Config::new(settings)
    };
    let driver = Driver::new(config).unwrap();
    let files = workload.files();
    let open = |(reader, file): (usize, usize)| {
        let opened = driver
            .open_generated(1, file as u64, files[file].0)
            .unwrap();
        (opened, workload.steps(reader))
    };
    let mut turns: VecDeque<(Reader, _)> = workload
        .readers()
        .into_iter()
        .enumerate()
        .map(open)
        .collect();
    let mut buf = Vec::new();
    while let Some((reader, mut steps)) = turns.pop_front() {
        let Some(step) = steps.next() else { continue };
        buf.resize(step.bytes.0 as usize, 0);
        reader.read_at(&mut buf, step.offset.0).unwrap();
        turns.push_back((reader, steps));
    }
    driver.finish().unwrap().check().unwrap();
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
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

#[test]
fn both_drivers_reach_the_same_decisions_on_every_preset_and_workload() {
    for preset in preset::LIST {
        for name in WORKLOADS {
            let workload = workload::parse(name).unwrap();
            let settings = preset.settings(MEMORY).unwrap();
            let sim = in_virtual_time(settings.clone(), &*workload);
            let io = in_real_time(settings, &*workload);
            let mut lines = sim
                .lines()
                .map(timeless)
                .zip(io.lines().map(timeless))
                .enumerate();
            if let Some((at, (sim, io))) = lines.find(|(_, (sim, io))| sim != io) {
                panic!(
                    "{} {name}, line {}:\n sim {sim}\n io  {io}",
                    preset.name,
                    at + 1
                );
            }
            assert_eq!(
                sim.lines().count(),
                io.lines().count(),
                "{} {name}",
                preset.name
            );
            assert!(
                sim.contains("> evict"),
                "{} {name} must give blocks up",
                preset.name
            );
        }
    }
}
