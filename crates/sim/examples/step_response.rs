//! How a device that changes is followed: the plot of `docs/MEASURED.md`, as SVG on standard output.
//!
//! ```text
//! cargo run --release -p forerun-sim --example step_response > docs/step_response.svg
//! ```
//!
//! Ten readers on a disk of 8 ms and 80 MB/s whose switches turn ten times dearer after 15 s, and
//! which is a volume of 30 ms and 300 MB/s after 30 s. Lines: bytes delivered in each half second,
//! relative to the device's transfer rate, by a run that measures and one that keeps to the first
//! device's profile.

#![allow(clippy::print_stdout, reason = "a program that prints a plot")]

use std::collections::BTreeMap;

use forerun_baselines::METHODS;
use forerun_core::journal::Entry;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Input, Nanos, Output, RequestId, preset};
use forerun_sim::phased::Phased;
use forerun_sim::record::Record;
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::{Scene, device};

const SECOND: u64 = 1_000_000_000;
const SLOT: u64 = SECOND / 2;
const END: u64 = 45 * SECOND;
/// From when on which cost and rate hold, in seconds.
const PHASES: [(u64, u64, u64); 3] = [
    (0, 8_000_000, 80_000_000),
    (15, 80_000_000, 80_000_000),
    (30, 30_000_000, 300_000_000),
];

/// Bytes that arrived in each slot of time.
#[derive(Default)]
struct Arrivals {
    under_way: BTreeMap<RequestId, u64>,
    slots: Vec<u64>,
}

impl Record for Arrivals {
    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Output(Output::Fetch(fetch)) => {
                let bytes = u64::from(fetch.extent.count) * 4096;
                self.under_way.insert(fetch.request, bytes);
            }
            Entry::Input(now, Input::Completed { request, .. }) => {
                let slot = (now.0 / SLOT) as usize;
                self.slots.resize(self.slots.len().max(slot + 1), 0);
                self.slots[slot] += self.under_way.remove(request).unwrap_or(0);
            }
            _ => {}
        }
    }
}

fn run(method: &str) -> Vec<u64> {
    let built = |cost: u64, rate: u64| {
        let name = format!("switching(cost_ns={cost},rate_bytes_per_second={rate})");
        device::parse(&name).expect("a device")
    };
    let [(_, cost, rate), later @ ..] = PHASES;
    let later = later.map(|(from, cost, rate)| (Nanos(from * SECOND), built(cost, rate)));
    let workload = ManyReaders {
        file_bytes: 4 << 30,
        read_bytes: 64 << 10,
        think_ns: 0,
        readers: 10,
        shared: false,
    };
    let preset = preset::find("forerun").expect("a preset");
    let mut settings = preset.settings(Bytes(64 << 20)).expect("enough memory");
    settings.measure = Choice::parse("measure", METHODS.measure, method).expect("a method");
    let device = Phased::new(built(cost, rate), later.into());
    let mut scene = Scene::new(settings, device, &workload);
    scene.until = Some(Nanos(END));
    let mut arrivals = Arrivals::default();
    scene.run(&mut arrivals).expect("a run without faults");
    arrivals.slots
}

/// The rate of the phase in which a slot begins.
fn rate_at(slot: usize) -> u64 {
    let second = slot as u64 * SLOT / SECOND;
    let phases = PHASES.iter().rev();
    let mut phases = phases.filter(|(from, ..)| *from <= second);
    phases.next().map_or(1, |(_, _, rate)| *rate)
}

fn line(slots: &[u64], colour: &str) -> String {
    let points = slots.iter().enumerate().map(|(slot, bytes)| {
        let part = *bytes as f64 / (rate_at(slot) as f64 * SLOT as f64 / SECOND as f64);
        format!(
            "{:.1},{:.1}",
            60.0 + slot as f64 * 6.0,
            220.0 - part.min(1.1) * 180.0
        )
    });
    let points: Vec<String> = points.collect();
    format!(
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>",
        points.join(" ")
    )
}

fn main() {
    let text = |x: f64, y: f64, words: &str| {
        format!(
            "<text x=\"{x}\" y=\"{y}\" font-family=\"sans-serif\" font-size=\"12\">{words}</text>"
        )
    };
    println!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"280\" viewBox=\"0 0 700 280\">"
    );
    println!("<rect width=\"700\" height=\"280\" fill=\"white\"/>");
    println!("<path d=\"M60 20V220H660M55 40H660\" fill=\"none\" stroke=\"#888\"/>");
    println!("{}", line(&run("given"), "#c33"));
    println!("{}", line(&run("online"), "#06c"));
    for (from, cost, rate) in PHASES {
        let x = 60.0 + from as f64 * 12.0;
        println!("<path d=\"M{x} 20V225\" stroke=\"#888\" stroke-dasharray=\"3 3\"/>");
        let words = format!(
            "{from} s: {} ms, {} MB/s",
            cost / 1_000_000,
            rate / 1_000_000
        );
        println!("{}", text(x + 3.0, 240.0, &words));
    }
    println!("{}", text(8.0, 44.0, "100 %"));
    println!("{}", text(30.0, 224.0, "0"));
    println!(
        "{}",
        text(
            60.0,
            265.0,
            "part of the device's transfer rate: blue measured online, red kept to 8 ms and 80 MB/s"
        )
    );
    println!("</svg>");
}
