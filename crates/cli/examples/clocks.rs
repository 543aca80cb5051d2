//! How far real time is from virtual time on the emulated device:
//! `cargo run --release -p forerun --example clocks`.
//!
//! The same runs in both clocks, real and virtual in turns, medians; for each the ratio of the two.
//! An idle machine keeps within a twentieth. A program and no test, because the machine's other
//! work is in every figure: beside busy loops the same run takes twice as long.

use std::error::Error;
use std::io::Write;

use clap::Parser;
use forerun::args::Args;

/// Turns of each run.
const TURNS: usize = 5;

/// Readers of their own files, and announced reads in a shuffled order on two disks.
const RUNS: [&str; 4] = [
    "--emulate switching=4ms,rate=80MB/s --file-bytes 4MB --readers 8 --memory 32MiB --preset forerun",
    "--emulate switching=4ms,rate=80MB/s --file-bytes 4MB --readers 8 --memory 32MiB --preset linux-2.6.24",
    "--emulate switching=5ms,rate=100MB/s --file-bytes 4MB --hints --disks 2 --preset forestall",
    "--emulate switching=5ms,rate=100MB/s --file-bytes 4MB --hints --disks 2 --preset linux-2.6.24",
];

/// How long one run takes by its own clock, in milliseconds.
fn elapsed_ms(clock: &str, run: &str) -> Result<f64, Box<dyn Error>> {
    let words = format!("forerun bench --format json --clock {clock} {run}");
    let mut out = Vec::new();
    forerun::run(&Args::try_parse_from(words.split(' '))?, &mut out)?;
    let row: serde_json::Value = serde_json::from_slice(&out)?;
    let elapsed = row["elapsed_ns"].as_f64();
    Ok(elapsed.ok_or("a row without elapsed_ns")? / 1e6)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "    real   virtual  ratio")?;
    for run in RUNS {
        let (mut real, mut modelled) = (Vec::new(), 0.0);
        for _ in 0..TURNS {
            real.push(elapsed_ms("real", run)?);
            modelled = elapsed_ms("virtual", run)?;
        }
        real.sort_by(f64::total_cmp);
        let median = real[TURNS / 2];
        let ratio = median / modelled;
        writeln!(out, "{median:6.1} ms {modelled:6.1} ms  {ratio:.3}  {run}")?;
    }
    Ok(())
}
