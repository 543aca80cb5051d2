//! How punctual an emulated disk is: `cargo run --release -p forerun-emulated --example punctual`.
//!
//! A thousand requests, half of them continuing the one before; their real time from the first to
//! the last over the modelled one, and how late single ones were. An idle machine keeps within a
//! hundredth. A program and no test, because lateness is the machine's.

use std::error::Error;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use forerun_emulated::{Disk, clock};
use forerun_sim::device;

const DEVICE: &str = "switching(cost_ns=2000000,rate_bytes_per_second=80000000)";
const REQUESTS: u64 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (sender, ended) = mpsc::channel();
    let disk = Disk::start(
        "disk",
        || device::parse(DEVICE),
        move |(), _| {
            // The receiver is there until the disk is dropped.
            let _ = sender.send(clock::now());
        },
    )?;
    let (began, mut at) = (clock::now(), 0);
    for request in 0..REQUESTS {
        if request % 2 == 0 {
            at = (request * 7919 % 1009) << 20;
        }
        let bytes = 4096 * (1 + request * 31 % 64);
        disk.submit(at, bytes, ());
        at += bytes;
    }
    let mut last = began;
    for _ in 0..REQUESTS {
        last = ended.recv()?;
    }
    let meter = disk.meter();
    let count = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed) as f64;
    let real = (last.0 - began.0) as f64;
    writeln!(
        std::io::stdout(),
        "{REQUESTS} requests: {:.1} ms real, {:.1} ms modelled, ratio {:.4}; late by {:.0} us, at \
         most {:.0} us; real-time priority: {}",
        real / 1e6,
        count(&meter.busy_ns) / 1e6,
        real / count(&meter.busy_ns),
        count(&meter.late_ns) / 1e3 / REQUESTS as f64,
        count(&meter.late_max_ns) / 1e3,
        meter.is_realtime.load(Ordering::Relaxed),
    )?;
    Ok(())
}
