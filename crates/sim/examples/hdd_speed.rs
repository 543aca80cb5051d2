//! How many disk-accurate requests a second one thread serves: `cargo run --release -p
//! forerun-sim --example hdd_speed [device ..]`.
//!
//! Random reads of 8 KiB over the whole device, one at a time, through the [`Device`] interface.
//! Prints requests a second of this machine and the mean response time in virtual time, which is
//! the same on every machine. It is a program and no test: machines differ.

use std::time::Instant;

use forerun_core::{Bytes, Nanos};
use forerun_sim::device::{self, Device, Request};
use forerun_sim::random::Random;

const REQUESTS: u64 = 3_000_000;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let names = if named.is_empty() {
        ["hp97560", "hp_c2247a", "ibm_36gb_10k", "cscan:hp97560"]
            .map(String::from)
            .into()
    } else {
        named
    };
    for name in names {
        match device::parse(&name) {
            Ok(mut device) => run(&name, &mut *device),
            Err(error) => report(&format!("{name}: {error}")),
        }
    }
}

fn run(name: &str, device: &mut dyn Device) {
    let room = device.capacity().map_or(1 << 36, |end| end.0) / 8192;
    let mut random = Random::new(1);
    let mut done = Vec::new();
    let (mut now, mut sum) = (Nanos(0), 0);
    #[expect(
        clippy::disallowed_methods,
        reason = "measures this machine, not the simulation"
    )]
    let start = Instant::now();
    for id in 0..REQUESTS {
        let (at, bytes) = (Bytes(random.below(room) * 8192), Bytes(8192));
        device.submit(now, Request::new(id, at, bytes));
        while let Some(next) = device.next_event() {
            device.advance(next, &mut done);
        }
        for ended in done.drain(..) {
            sum += ended.at.since(now).0;
            now = now.max(ended.at);
        }
    }
    let rate = REQUESTS as f64 / start.elapsed().as_secs_f64();
    let mean = sum as f64 / REQUESTS as f64 / 1e6;
    report(&format!(
        "{name}: {:.2} M requests/s, mean response {mean:.3} ms",
        rate / 1e6
    ));
}

#[expect(clippy::print_stdout, reason = "the program's output")]
fn report(line: &str) {
    println!("{line}");
}
