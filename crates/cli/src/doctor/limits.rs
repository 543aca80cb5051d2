//! Checks of limits: of the process, from `/proc/self/limits`, and of memory.

use std::path::Path;

use forerun_core::Bytes;

use super::{Check, Machine};
use crate::mount::limits::address_space;
use crate::quantity::size;

/// Memory of a mount that is given no other.
const MEMORY: Bytes = Bytes(256 << 20);

/// With fewer descriptors a mount works, with fewer threads, and cannot serve many files at once.
const DESCRIPTORS: u64 = 1024;
/// With fewer it does not begin.
const DESCRIPTORS_LEAST: u64 = 20;

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    vec![descriptors(machine), addresses(machine), memory(machine)]
}

/// The limit in force; none where there is no limit.
fn limit(machine: &Machine, name: &str) -> Option<u64> {
    let limits = machine.text("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn descriptors(machine: &Machine) -> Check {
    let remedy = "ulimit -n 65536, or LimitNOFILE=infinity in a unit";
    match limit(machine, "Max open files") {
        Some(few @ ..DESCRIPTORS_LEAST) => Check::fail(
            "descriptors",
            format!("at most {few} (ulimit -n), and a mount needs {DESCRIPTORS_LEAST}"),
            remedy,
        ),
        Some(few @ ..DESCRIPTORS) => Check::warn(
            "descriptors",
            format!("at most {few} (ulimit -n): each open file takes one, two while it is read"),
            remedy,
        ),
        Some(most) => Check::ok("descriptors", format!("at most {most}")),
        None => Check::ok("descriptors", "no limit"),
    }
}

fn addresses(machine: &Machine) -> Check {
    let needed = address_space(MEMORY);
    match limit(machine, "Max address space").map(Bytes) {
        Some(few) if few < needed => Check::fail(
            "addresses",
            format!(
                "address space of at most {} (ulimit -v), and a mount maps {}, of which it uses little",
                size(few),
                size(needed)
            ),
            "ulimit -v unlimited; memory is bounded by --memory",
        ),
        Some(most) => Check::ok(
            "addresses",
            format!("address space of at most {}", size(most)),
        ),
        None => Check::ok("addresses", "no limit of the address space"),
    }
}

/// The smallest limit of the control groups that this process is in.
fn of_groups(machine: &Machine) -> Option<Bytes> {
    let groups = machine.text("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |folder: &Path| {
        let file = Path::new("/sys/fs/cgroup").join(folder).join("memory.max");
        machine.text(file).ok()?.trim().parse().ok().map(Bytes)
    };
    Path::new(group).ancestors().filter_map(limit).min()
}

/// In whole GiB from 10 GiB on, in whole MiB below.
fn whole(bytes: Bytes) -> Bytes {
    let unit = if bytes.0 < 10 << 30 { 20 } else { 30 };
    Bytes(bytes.0 >> unit << unit)
}

fn memory(machine: &Machine) -> Check {
    let system = machine.text("/proc/meminfo").unwrap_or_default();
    let line = system
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let available = kib.map(|kib| Bytes(kib << 10));
    let needs = format!("a mount takes {} if --memory is not given", size(MEMORY));
    let told = |bytes: Bytes| format!("--memory {}", size(Bytes((bytes.0 * 3 / 4) >> 20 << 20)));
    match (of_groups(machine), available) {
        (Some(few), _) if few < MEMORY => Check::warn(
            "memory",
            format!(
                "the control group of this process has at most {}: {needs}",
                size(few)
            ),
            told(few),
        ),
        (_, Some(few)) if few < MEMORY => Check::warn(
            "memory",
            format!("{} are available: {needs}", size(whole(few))),
            told(few),
        ),
        (Some(most), _) => Check::ok(
            "memory",
            format!("at most {} for the control group", size(most)),
        ),
        (None, Some(free)) => Check::ok("memory", format!("{} available", size(whole(free)))),
        (None, None) => Check::ok("memory", "not known"),
    }
}
