//! Warm reads and opens beside `forerun watch`: `cargo run --release -p forerun-bed --example watch_warm -- FORERUN`.
//!
//! On a file system of its own (root, loop devices): for each size from 4 KiB to 1 MiB, and for opens, 21 pairs of passes
//! over files that are in memory, one with the watch and one without, in changing order. Measured is the processor time of
//! the reader, as other programs on the machine take none of that. Printed is the median of the ratios with its 95 %
//! interval (their 6th and 16th of 21 in order); it exits with 1 where an interval leaves 0.97 to 1.03.

#![allow(clippy::print_stdout, reason = "a program that prints figures")]

mod watching;

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use watching::{Disk, Failed};

const PAIRS: usize = 21;
/// The ranks of the interval of a median of 21: by the binomial distribution it holds in 97 % of all cases.
const INTERVAL: [usize; 2] = [5, 15];
const BYTES: usize = 32 << 20;
const FILES: usize = 400;
/// A loop takes some milliseconds.
const LOOPS: usize = 12;

/// Processor time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// The seconds of one pass: reads of this size, or opens where it is 0. The best of some loops, as disturbances only add.
fn pass(folder: &Path, size: usize) -> Result<f64, Failed> {
    let mut best = f64::INFINITY;
    let mut buffer = vec![0; size];
    let file = File::open(folder.join("large"))?;
    for _ in 0..LOOPS {
        let begun = processor();
        match size {
            0 => (0..FILES).try_for_each(|at| File::open(small(folder, at)).map(drop))?,
            _ => {
                let mut places = (0..BYTES).step_by(size);
                places.try_for_each(|at| file.read_exact_at(&mut buffer, at as u64))?;
                black_box(&buffer);
            }
        }
        best = best.min((processor() - begun).as_secs_f64());
    }
    Ok(best)
}

fn small(folder: &Path, at: usize) -> PathBuf {
    folder.join(format!("small{at}"))
}

/// All passes with a watch, or without.
fn side(disk: &Disk, forerun: Option<&Path>, sizes: &[usize]) -> Result<Vec<f64>, Failed> {
    let watch = forerun
        .map(|forerun| disk.watch(forerun, &[]))
        .transpose()?;
    let times = sizes
        .iter()
        .map(|size| pass(&disk.point(), *size))
        .collect();
    if let Some(mut watch) = watch {
        drop(watch.stdin.take());
        watch.wait()?;
    }
    times
}

fn main() -> Result<(), Failed> {
    let forerun = std::env::args_os().nth(1).ok_or("which forerun?")?;
    let forerun = Path::new(&forerun);
    let disk = Disk::new(96 << 20)?;
    fs::write(disk.point().join("large"), vec![7; BYTES])?;
    for at in 0..FILES {
        fs::write(small(&disk.point(), at), "small")?;
    }
    let sizes = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
    let mut ratios = vec![Vec::new(); sizes.len()];
    for pair in 0..PAIRS {
        let [with, without] = match pair % 2 {
            0 => {
                let with = side(&disk, Some(forerun), &sizes)?;
                [with, side(&disk, None, &sizes)?]
            }
            _ => {
                let without = side(&disk, None, &sizes)?;
                [side(&disk, Some(forerun), &sizes)?, without]
            }
        };
        for (ratios, (with, without)) in ratios.iter_mut().zip(with.into_iter().zip(without)) {
            ratios.push(with / without);
        }
    }
    let mut is_within = true;
    for (size, ratios) in sizes.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let [least, most] = INTERVAL.map(|rank| ratios[rank]);
        let name = match size {
            0 => "open".to_owned(),
            size => format!("{} KiB", size >> 10),
        };
        println!(
            "{name:>9}  {:.3}  ({least:.3} to {most:.3})",
            ratios[PAIRS / 2]
        );
        is_within &= least >= 0.97 && most <= 1.03;
    }
    match is_within {
        true => Ok(()),
        false => Err("an interval leaves 0.97 to 1.03".into()),
    }
}
