//! A cold sequential read against fio's, in turns on one file.
//!
//! `cargo run --release --example cold -- FILE [PAIRS]`. Ours: 1 MiB reads, 256 MiB of memory,
//! preset `forerun`. fio's: io_uring, direct, 1 MiB, depth 16. Neither uses the page cache. The
//! median ratio of the pairs (11 unless given) is printed, because one device's rate differs more
//! from minute to minute than the two sides do. Without fio it says so and shows ours alone.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver};

/// Bytes per second of one read from beginning to end.
fn ours(path: &Path) -> Result<f64, Box<dyn Error>> {
    let driver = Driver::new(Config::new(preset::default().settings(Bytes(256 << 20))?))?;
    let start = Instant::now();
    let reader = driver.open(path)?;
    let (mut buf, mut offset) = (vec![0; 1 << 20], 0);
    loop {
        let n = reader.read_at(&mut buf, offset)?;
        if n == 0 {
            break;
        }
        offset += n as u64;
    }
    Ok(offset as f64 / start.elapsed().as_secs_f64())
}

/// The same by fio, from the ninth field of its terse output's read part, KiB/s.
fn fio(path: &Path) -> Result<f64, Box<dyn Error>> {
    let output = Command::new("fio")
        .args([
            "--name=cold",
            "--rw=read",
            "--ioengine=io_uring",
            "--direct=1",
            "--bs=1M",
        ])
        .args([
            "--iodepth=16",
            "--readonly",
            "--output-format=terse",
            "--terse-version=3",
        ])
        .arg(format!("--filename={}", path.display()))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let field = text
        .lines()
        .rfind(|l| l.starts_with("3;"))
        .and_then(|l| l.split(';').nth(6));
    let kib: f64 = field.ok_or("fio printed no result")?.parse()?;
    Ok(kib * 1024.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let path = args.next().ok_or("which file?")?;
    let path = Path::new(&path);
    let pairs: usize = args
        .next()
        .map_or(Ok(11), |n| n.to_string_lossy().parse())?;
    let mut out = stdout().lock();
    if Command::new("fio").arg("--version").output().is_err() {
        writeln!(
            out,
            "fio is not installed; ours alone: {:.0} MB/s",
            ours(path)? / 1e6
        )?;
        return Ok(());
    }
    let mut ratios = Vec::new();
    for _ in 0..pairs.max(1) {
        let (theirs, ours) = (fio(path)?, ours(path)?);
        writeln!(
            out,
            "fio {:.0} MB/s, forerun {:.0} MB/s",
            theirs / 1e6,
            ours / 1e6
        )?;
        ratios.push(ours / theirs);
    }
    writeln!(out, "forerun against fio: {:.2}", median(ratios))?;
    Ok(())
}
