//! `forerun profile`: measures a device, prints its costs, and writes them down for `--profile`.
//!
//! The measuring is in `measure`; here is the output for people: a progress bar while it runs, two
//! tables, the figures that follow from them with a word on each (the competitive depth is that of
//! Li et al. 2004, section 2.1), and the `read_ahead_kb` with which Linux's one constant would do
//! as well. It is advised only if a trial read faster with it than with the present value: see
//! [`read_ahead`]. The command changes nothing on the device.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use forerun_core::{Bytes, Profile};

use crate::args;
use crate::failure::Failure;
use crate::files::{self, NewFile, plain};
use crate::measure::read_ahead::{self, Rates, ReadAhead};
use crate::measure::{self, Direct, Remote, Subject};
use crate::messages::without_secrets;
use crate::profile_file;
use crate::progress;
use crate::quantity::{rough_duration, rough_size, size};
use crate::sources::{Sources, address, check_anonymous};

/// Runs the command.
///
/// # Errors
/// A path that cannot be measured, a read that failed, output that cannot be written.
pub fn run(args: &args::Profile, out: &mut dyn Write) -> Result<(), Failure> {
    check_anonymous(args.anonymous, std::slice::from_ref(&args.path))?;
    if args.path.is_dir() {
        let why =
            "is a directory: name a large file in it, which need not be used for anything else";
        return Err(Failure::unusable(&args.path, why));
    }
    let mut device: Box<dyn Subject> = match address(&args.path) {
        Some(url) => Box::new(Remote::new(
            &args.path,
            Sources::default().anonymous(args.anonymous).object(url)?,
        )?),
        None => Box::new(Direct::open(&args.path)?),
    };
    files::check_not_read(args.output.as_deref(), std::slice::from_ref(&args.path))?;
    // Begun before the minutes of measuring, not found impossible after them.
    let target = args.output.as_deref().map(NewFile::create).transpose()?;
    let bar = progress::steps("measuring", measure::steps(device.bytes()));
    let profile = measure::measure(&mut *device, &mut || bar.inc(1))
        .map_err(|e| Failure::broken(&args.path, e))?;
    bar.finish_and_clear();
    let bytes = device.bytes();
    let report = report(&args.path, bytes, &profile) + &advice(&args.path, bytes, &profile);
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
    let place = without_secrets(&path.to_string_lossy());
    let mut text = format!("{place}, {}\n\n", rough_size(bytes.0 as f64));
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
    let (switching, servers) = (profile.switching(distance), profile.servers());
    let switching = rough_duration(switching);
    let rate = rough_size(profile.rate(Bytes(bytes.0 / 2)) as f64);
    let depth = rough_size(depth.0 as f64);
    let _ = write!(
        text,
        "
switching cost     {switching}: from a read elsewhere ({far} away) to its first byte
transfer rate      {rate}/s: one stream, from there on
competitive depth  {depth}: the bytes it transfers during a switch, the least worth fetching ahead
requests at once   {servers}: more than these bring nothing

With --profile mount, read and bench fetch ahead at least so deep and send so many requests at once,
and bench --clock virtual models the device; simulate takes its devices by --device.
"
    );
    text
}

/// The depth of a profile as Linux takes it, if that reads a file faster than the present value.
fn advice(path: &Path, bytes: Bytes, profile: &Profile) -> String {
    let depth = profile.competitive_depth(mean_distance(bytes), Bytes(bytes.0 / 2));
    let Some(setting) = ReadAhead::of(path) else {
        return "\nread_ahead_kb      none is advised: the device has none\n".to_owned();
    };
    let (now, wanted) = (setting.present, read_ahead_kb(depth));
    let rates = if bytes < read_ahead::PART {
        let least = size(read_ahead::PART);
        Err(format!("to try another takes a file of {least}"))
    } else if wanted == now {
        Err("it is the depth".to_owned())
    } else {
        let rates = setting.compare(path, bytes, wanted);
        rates.map_err(|e| format!("{wanted} cannot be tried: {}", plain(&e)))
    };
    format!("\nread_ahead_kb      {}\n", judge(now, wanted, rates))
}

/// Which of two settings is better, by the rates with each or why there are none.
fn judge(now: u64, wanted: u64, rates: Result<Rates, String>) -> String {
    let rates = match rates {
        Ok(rates) => rates,
        Err(why) => return format!("{now} stays: {why}"),
    };
    let rate = |rate: u64| rough_size(rate as f64) + "/s";
    let (present, other) = rates.medians();
    let (present, other) = (rate(present), rate(other));
    match rates.other_is_better() {
        true => format!("{wanted} is advised: {other} with it, {present} with {now} as it is now"),
        false => format!("{now} stays: {present} with it, {other} with {wanted}, the depth"),
    }
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
    fn a_setting_is_advised_with_both_rates_and_only_if_it_read_faster() {
        let of = |present: u64, other: u64| {
            let pairs = vec![(present, other); 5];
            judge(128, 1024, Ok(Rates { pairs }))
        };
        assert_eq!(
            of(40_000_000, 77_000_000),
            "1024 is advised: 77.0 MB/s with it, 40.0 MB/s with 128 as it is now"
        );
        assert_eq!(
            of(1_490_000_000, 700_000_000),
            "128 stays: 1.49 GB/s with it, 700.0 MB/s with 1024, the depth"
        );
        assert_eq!(judge(128, 1024, Err("why".to_owned())), "128 stays: why");
    }
}
