//! `forerun profile`: measures a device, prints what it found, and writes it down for `--profile`.
//!
//! The measuring is in `measure`; here is what a person sees: a progress bar while it runs, two
//! tables, the competitive depth that follows (Li and Shen 2004, section 2.1), and the
//! `read_ahead_kb` Linux would need to do as well with its one constant. It changes nothing on the
//! device and does not set what it advises.
//!
//! The rule is for a device that serves one request at a time, where a switch costs what the depth
//! makes up for. A device that serves several at once is kept busy by more requests, not by the right
//! length of one; latency times the rate of one request then says too little (64 kB on a disk that
//! was 5 to 9 times as fast with 8 MiB). So there the present value is advised.

use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use forerun_core::profile::SERVERS_MAX;
use forerun_core::{Bytes, Profile};
use rustix::fs::{major, minor};

use crate::args;
use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::measure::{self, Direct, Subject};
use crate::profile_file;
use crate::progress;
use crate::quantity::{rough_duration, rough_size};

/// Runs the command.
///
/// # Errors
/// A path that cannot be measured, a read that failed, output that cannot be written.
pub fn run(args: &args::Profile, out: &mut dyn Write) -> Result<(), Failure> {
    if args.path.is_dir() {
        let why =
            "is a directory: name a large file in it, which need not be used for anything else";
        return Err(Failure::unusable(&args.path, why));
    }
    let mut device = Direct::open(&args.path)?;
    files::check_not_read(args.output.as_deref(), std::slice::from_ref(&args.path))?;
    // Begun before the minutes of measuring, not found impossible after them.
    let target = args.output.as_deref().map(NewFile::create).transpose()?;
    let bar = progress::steps("measuring", measure::steps(device.bytes()));
    let profile = measure::measure(&mut device, &mut || bar.inc(1))
        .map_err(|e| Failure::broken(&args.path, e))?;
    bar.finish_and_clear();
    let report = report(&args.path, device.bytes(), &profile);
    out.write_all(report.as_bytes())
        .map_err(|e| Failure::output(&e))?;
    target.map_or(Ok(()), |target| write(target, &profile, &report))
}

fn write(target: NewFile, profile: &Profile, report: &str) -> Result<(), Failure> {
    let comment = format!(
        "Written by forerun {}\n\n{report}",
        env!("CARGO_PKG_VERSION")
    );
    let text = profile_file::print(profile, &comment).map_err(|e| Failure::Run(e.to_string()))?;
    target.write(text.as_bytes())
}

fn report(path: &Path, bytes: Bytes, profile: &Profile) -> String {
    let distance = mean_distance(bytes);
    let depth = profile.competitive_depth(distance, Bytes(bytes.0 / 2));
    let mut text = format!("{}, {}\n\n", path.display(), rough_size(bytes.0 as f64));
    let _ = writeln!(text, "{:>14}  {:>14}", "distance", "switching cost");
    for &(distance, cost) in profile.switching_points() {
        let far = rough_size(distance.0 as f64);
        let _ = writeln!(text, "{far:>14}  {:>14}", rough_duration(cost));
    }
    let _ = writeln!(text, "\n{:>14}  {:>14}", "location", "transfer rate");
    for &(location, rate) in profile.rate_points() {
        let place = rough_size(location.0 as f64);
        let _ = writeln!(text, "{place:>14}  {:>12}/s", rough_size(rate as f64));
    }
    let far = rough_size(distance.0 as f64);
    let _ = writeln!(
        text,
        "\ncompetitive depth {} (over {far})",
        rough_size(depth.0 as f64)
    );
    let requests = match profile.servers() {
        SERVERS_MAX => "several".to_owned(),
        servers => servers.to_string(),
    };
    let _ = writeln!(text, "requests at once {requests}");
    let advice = advice(profile.servers(), depth, present_read_ahead_kb(path));
    let _ = writeln!(text, "advised read_ahead_kb {advice}");
    text
}

/// What to write into `read_ahead_kb`, beside what it is now.
fn advice(servers: u32, depth: Bytes, present: Option<u64>) -> String {
    let now = present.map_or(String::new(), |now| format!(", now {now}"));
    if servers == 1 {
        return format!("{}{now}", read_ahead_kb(depth));
    }
    match present {
        Some(now) => format!("{now}, as it is: the device serves several requests at once"),
        None => "none: the device serves several requests at once".to_owned(),
    }
}

/// What it is now for the device of a file, or for a block device.
fn present_read_ahead_kb(path: &Path) -> Option<u64> {
    let there = path.metadata().ok()?;
    let device = if there.file_type().is_block_device() {
        there.rdev()
    } else {
        there.dev()
    };
    let (major, minor) = (major(device), minor(device));
    let text = std::fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
    text.ok()?.trim().parse().ok()
}

/// How far apart two random places are on average: a third of the whole.
fn mean_distance(bytes: Bytes) -> Bytes {
    Bytes(bytes.0 / 3)
}

/// The depth as Linux takes it, in KiB, rounded up to a power of two: its windows double, and on
/// the disk of 8 ms and 80 MB/s (625 KiB) 1024 was measured to be best of all powers.
fn read_ahead_kb(depth: Bytes) -> u64 {
    depth.0.div_ceil(1024).clamp(4, 1 << 40).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_nobody_measured_is_advised_a_mebibyte() {
        let depth = Profile::default().competitive_depth(Bytes(0), Bytes(0));
        assert_eq!(read_ahead_kb(depth), 1024);
        assert_eq!(read_ahead_kb(Bytes(0)), 4);
    }

    #[test]
    fn a_device_that_serves_several_requests_keeps_what_it_has() {
        let depth = Bytes(64_000);
        assert_eq!(advice(1, depth, Some(128)), "64, now 128");
        assert_eq!(advice(1, depth, None), "64");
        assert!(advice(SERVERS_MAX, depth, Some(8192)).starts_with("8192, as it is"));
        assert!(advice(4, depth, None).starts_with("none"));
    }
}
